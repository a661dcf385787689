//! The memory of NumPy arrays, lent to the library: the one file that touches it.

use std::ffi::c_int;

pub(crate) use esker::long::Block;
use esker::{MemoryLayout, MemoryType};
use numpy::npyffi::{NPY_ARRAY_WRITEABLE, NpyTypes, get_type_object, npy_intp};
use numpy::{
    PY_ARRAY_API, PyArrayDescr, PyArrayDescrMethods, PyUntypedArray, PyUntypedArrayMethods,
};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use crate::dtype;
use crate::index::Slab;

/// A new array of this shape, whose elements are not set.
#[allow(unsafe_code)]
pub(crate) fn empty<'py>(
    py: Python<'py>,
    shape: &[u64],
    dtype: Bound<'py, PyArrayDescr>,
) -> PyResult<Bound<'py, PyUntypedArray>> {
    let mut dims: Vec<npy_intp> = Vec::with_capacity(shape.len());
    for len in shape {
        let len = npy_intp::try_from(*len);
        dims.push(
            len.map_err(|_| PyValueError::new_err("the array is larger than memory can be"))?,
        );
    }
    // SAFETY: the class is NumPy's own, the descriptor's reference is given away as the call
    // demands, `dims` has `nd` numbers; without data and strides NumPy allocates a C-ordered array.
    let made = unsafe {
        let class = get_type_object(py, NpyTypes::PyArray_Type);
        let (nd, dims) = (dims.len() as c_int, dims.as_mut_ptr());
        let (none, nothing) = (std::ptr::null_mut(), std::ptr::null_mut());
        let dtype = dtype.into_dtype_ptr();
        let object = std::ptr::null_mut();
        let array =
            PY_ARRAY_API.PyArray_NewFromDescr(py, class, dtype, nd, dims, none, nothing, 0, object);
        Bound::from_owned_ptr_or_err(py, array)?
    };
    Ok(made.cast_into::<PyUntypedArray>()?)
}

/// The array itself, or the scalar that an array without dimensions is.
#[allow(unsafe_code)]
pub(crate) fn scalar_or_array<'py>(
    array: Bound<'py, PyUntypedArray>,
) -> PyResult<Bound<'py, PyAny>> {
    if array.ndim() > 0 {
        return Ok(array.into_any());
    }
    let py = array.py();
    // SAFETY: the call takes over the reference that it is given, and gives one back.
    unsafe {
        let returned = PY_ARRAY_API.PyArray_Return(py, array.into_ptr().cast());
        Bound::from_owned_ptr_or_err(py, returned)
    }
}

/// Elements of a NumPy array in the order of a selection, in all of the selection's dimensions.
pub(crate) struct Lent {
    /// Keeps the memory alive: NumPy frees and moves it only when nobody refers to the array.
    _array: Py<PyUntypedArray>,
    /// The lowest of its bytes, and how many there are up to the highest.
    lowest: *mut u8,
    bytes: usize,
    ty: MemoryType,
    /// Of the first element, in elements from the lowest.
    offset: isize,
    shape: Vec<u64>,
    /// In elements.
    strides: Vec<isize>,
    is_dense: bool,
}

// SAFETY: the pointer is into memory that `_array` keeps alive, whoever holds it. It is read and
// written while the GIL is released, as NumPy's own functions do: a program that changes an array
// in one thread while another one is reading it from a file gets either value.
#[allow(unsafe_code)]
unsafe impl Send for Lent {}
// SAFETY: as above; writing needs `&mut`.
#[allow(unsafe_code)]
unsafe impl Sync for Lent {}

impl Lent {
    /// The memory of a new array that has the shape of the slab's result, to be read into.
    pub(crate) fn target(array: &Bound<'_, PyUntypedArray>, slab: &Slab) -> PyResult<Lent> {
        Self::require_writeable(array)?;
        let own = Self::strides_of(array)?;
        if array.shape().len() != slab.kept.len() {
            return Err(Self::misfit(array, &slab.result()));
        }
        Self::arranged(array, own, slab)
    }

    /// The memory of a value, broadcast to the slab's result, to be written from.
    pub(crate) fn source(array: &Bound<'_, PyUntypedArray>, slab: &Slab) -> PyResult<Lent> {
        let result = slab.result();
        let own = Self::strides_of(array)?;
        let surplus = array.ndim().saturating_sub(result.len());
        // NumPy lets a value have more dimensions in front, if they are of length 1.
        if array.shape()[..surplus].iter().any(|len| *len != 1) {
            return Err(Self::misfit(array, &result));
        }
        let (shape, own) = (&array.shape()[surplus..], &own[surplus..]);
        let missing = result.len() - shape.len();
        let mut strides = vec![0; result.len()];
        for (place, wanted) in result.iter().enumerate().skip(missing) {
            let len = shape[place - missing] as u64;
            if len == *wanted {
                strides[place] = own[place - missing];
            } else if len != 1 {
                return Err(Self::misfit(array, &result));
            }
        }
        Self::arranged(array, strides, slab)
    }

    /// The memory of a dense array, as it lies.
    pub(crate) fn dense(array: &Bound<'_, PyUntypedArray>, writing: bool) -> PyResult<Lent> {
        if writing {
            Self::require_writeable(array)?;
        }
        if !array.is_c_contiguous() {
            return Err(PyValueError::new_err("the array must be C-contiguous"));
        }
        let strides = Self::strides_of(array)?;
        let shape = array.shape().iter().map(|len| *len as u64).collect();
        Self::new(array, shape, strides)
    }

    /// Lays the strides of the result's dimensions out over all of the slab's.
    fn arranged(
        array: &Bound<'_, PyUntypedArray>,
        result: Vec<isize>,
        slab: &Slab,
    ) -> PyResult<Lent> {
        let mut strides = vec![0; slab.count.len()];
        for (stride, dim) in result.iter().zip(&slab.kept) {
            strides[*dim] = *stride;
        }
        for dim in &slab.flipped {
            strides[*dim] = -strides[*dim];
        }
        Self::new(array, slab.count.clone(), strides).map(|mut lent| {
            // The first element of a dimension that is turned is the array's last.
            for dim in &slab.flipped {
                let reach = lent.strides[*dim] * (lent.shape[*dim] as isize - 1).max(0);
                lent.move_lowest(-reach);
            }
            lent
        })
    }

    /// `array`'s data pointer is the first element, before anything is turned.
    #[allow(unsafe_code)]
    fn new(
        array: &Bound<'_, PyUntypedArray>,
        shape: Vec<u64>,
        strides: Vec<isize>,
    ) -> PyResult<Lent> {
        let ty = Self::type_of(array)?;
        let size = ty.size() as isize;
        // SAFETY: the array is alive, so its fields are.
        let data =
            unsafe { (*numpy::npyffi::objects::_PyArray_GET_ITEM_DATA(array.as_array_ptr())).data };
        let (mut low, mut high) = (0isize, 0isize);
        for (len, stride) in shape.iter().zip(&strides) {
            let reach = (*len as isize - 1).max(0) * stride;
            if reach < 0 { low += reach } else { high += reach }
        }
        let is_empty = shape.contains(&0);
        let bytes = if is_empty { 0 } else { ((high - low + 1) * size) as usize };
        let lowest = data.cast::<u8>().wrapping_offset(low * size);
        let mut dense = 1;
        let mut is_dense = true;
        for (len, stride) in shape.iter().zip(&strides).rev() {
            is_dense &= *len <= 1 || *stride == dense;
            dense *= *len as isize;
        }
        let array = array.clone().unbind();
        let offset = -low;
        Ok(Lent { _array: array, lowest, bytes, ty, offset, shape, strides, is_dense })
    }

    /// Moves the memory's beginning by so many elements, to where turned dimensions begin.
    fn move_lowest(&mut self, elements: isize) {
        self.lowest = self.lowest.wrapping_offset(elements * self.ty.size() as isize);
    }

    /// Which bytes it is, to see whether two overlap.
    pub(crate) fn range(&self) -> std::ops::Range<usize> {
        self.lowest as usize..self.lowest as usize + self.bytes
    }

    pub(crate) fn memory_type(&self) -> MemoryType {
        self.ty
    }

    /// All of it.
    pub(crate) fn whole(&self) -> Block {
        Block { start: vec![0; self.shape.len()], count: self.shape.clone() }
    }

    /// The bytes of a block and how its elements lie in them, to be written to a file.
    #[allow(unsafe_code)]
    pub(crate) fn bytes(&self, block: &Block) -> (&[u8], MemoryLayout) {
        let (start, len, layout) = self.place(block);
        // SAFETY: `place` gives a part of the `bytes` from `lowest` on, which are the array's and
        // alive; any byte is a valid u8.
        let bytes = match len {
            0 => &[],
            _ => unsafe { std::slice::from_raw_parts(self.lowest.add(start), len) },
        };
        (bytes, layout)
    }

    /// The bytes of a block and how its elements lie in them, to be read into.
    #[allow(unsafe_code)]
    pub(crate) fn bytes_mut(&mut self, block: &Block) -> (&mut [u8], MemoryLayout) {
        let (start, len, layout) = self.place(block);
        // SAFETY: as in `bytes`; the array is writeable (checked when this was made), and this is
        // the only slice of it that we make: queued requests that overlap get memory of their own.
        let bytes = match len {
            0 => &mut [],
            _ => unsafe { std::slice::from_raw_parts_mut(self.lowest.add(start), len) },
        };
        (bytes, layout)
    }

    /// The bytes of each of these blocks, which are all of it and in order, if they lie one behind the
    /// other.
    pub(crate) fn parts_mut(&mut self, blocks: &[Block]) -> Option<Vec<&mut [u8]>> {
        if !self.is_dense {
            return None;
        }
        let size = self.ty.size() as u64;
        let (mut rest, _) = self.bytes_mut(&self.whole());
        let mut parts = Vec::with_capacity(blocks.len());
        for block in blocks {
            let bytes = block.count.iter().product::<u64>() * size;
            let (part, later) = rest.split_at_mut_checked(bytes as usize)?;
            parts.push(part);
            rest = later;
        }
        Some(parts)
    }

    fn place(&self, block: &Block) -> (usize, usize, MemoryLayout) {
        let inner: isize =
            block.start.iter().zip(&self.strides).map(|(at, stride)| *at as isize * stride).sum();
        let size = self.ty.size();
        if self.is_dense {
            let elements: u64 = block.count.iter().product();
            // A block of dense memory is dense: it is whole in all but the first of its dimensions.
            return (inner as usize * size, elements as usize * size, MemoryLayout::dense());
        }
        let offset = (self.offset + inner) as usize;
        (0, self.bytes, MemoryLayout::strided(offset, &block.count, &self.strides))
    }

    fn type_of(array: &Bound<'_, PyUntypedArray>) -> PyResult<MemoryType> {
        dtype::memory_type(&array.dtype()).ok_or_else(|| {
            PyTypeError::new_err(format!("arrays of dtype {} cannot be moved", array.dtype()))
        })
    }

    /// The array's strides in elements.
    fn strides_of(array: &Bound<'_, PyUntypedArray>) -> PyResult<Vec<isize>> {
        let size = Self::type_of(array)?.size() as isize;
        let whole = |stride: &isize| (stride % size == 0).then_some(stride / size);
        let strides: Option<Vec<isize>> = array.strides().iter().map(whole).collect();
        strides.ok_or_else(|| PyValueError::new_err("the array's strides are not whole elements"))
    }

    #[allow(unsafe_code)]
    fn require_writeable(array: &Bound<'_, PyUntypedArray>) -> PyResult<()> {
        // SAFETY: the array is alive, so its fields are.
        let flags = unsafe {
            (*numpy::npyffi::objects::_PyArray_GET_ITEM_DATA(array.as_array_ptr())).flags
        };
        match flags & NPY_ARRAY_WRITEABLE {
            0 => Err(PyValueError::new_err("the array to read into is read-only")),
            _ => Ok(()),
        }
    }

    fn misfit(array: &Bound<'_, PyUntypedArray>, result: &[u64]) -> PyErr {
        let words = |shape: Vec<String>| match shape.len() {
            1 => format!("({},)", shape[0]),
            _ => format!("({})", shape.join(", ")),
        };
        let given = words(array.shape().iter().map(usize::to_string).collect());
        let wanted = words(result.iter().map(u64::to_string).collect());
        PyValueError::new_err(format!(
            "an array of shape {given} does not fit the selection, which has shape {wanted}"
        ))
    }
}
