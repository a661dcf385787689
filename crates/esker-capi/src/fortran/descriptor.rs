//! Arrays as gfortran passes them to procedures of modules: by descriptors.
//!
//! The layout is that of GCC 8 and newer.

use std::ffi::c_int;

use crate::transfer::Offset;

/// One dimension of an array.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
struct Dimension {
    /// Elements from one to the next.
    stride: isize,
    lower: isize,
    upper: isize,
}

/// An array whose shape the caller knows. As many dimensions as it has are there.
#[derive(Debug)]
#[repr(C)]
pub struct Descriptor {
    /// The first element.
    base: *mut u8,
    offset: usize,
    element_len: usize,
    version: c_int,
    rank: i8,
    kind: i8,
    attribute: i16,
    span: isize,
    dimensions: [Dimension; 7],
}

/// Values in memory: an array, or a part of one, the first dimension running fastest.
#[derive(Debug, Clone)]
pub(crate) struct Values {
    base: *mut u8,
    /// Bytes of an element.
    size: usize,
    shape: Vec<usize>,
    /// Elements from one to the next, by dimension.
    steps: Vec<isize>,
}

impl Values {
    /// One value.
    pub(crate) fn one(base: *mut u8, size: usize) -> Values {
        Values { base, size, shape: Vec::new(), steps: Vec::new() }
    }

    /// One text: its characters.
    pub(crate) fn text(base: *mut u8, len: usize) -> Values {
        Values { base, size: 1, shape: vec![len], steps: vec![1] }
    }

    /// An array of values.
    ///
    /// # Safety
    ///
    /// The descriptor is of an array with `rank` dimensions.
    pub(crate) unsafe fn array(array: *const Descriptor, rank: usize, size: usize) -> Values {
        let mut values = Values { base: std::ptr::null_mut(), size, shape: vec![], steps: vec![] };
        // SAFETY: the caller vouches for the descriptor. Only the dimensions that it has are
        // read, through pointers, because it may be shorter than the type.
        unsafe {
            values.base = (&raw const (*array).base).read();
            let dimensions = (&raw const (*array).dimensions).cast::<Dimension>();
            for place in 0..rank {
                let Dimension { stride, lower, upper } = dimensions.add(place).read();
                values.shape.push(usize::try_from(upper - lower + 1).unwrap_or(0));
                // A first dimension without gaps may be marked by zero.
                values.steps.push(if stride == 0 && place == 0 { 1 } else { stride });
            }
        }
        values
    }

    /// An array of texts of `len` characters: their characters.
    ///
    /// # Safety
    ///
    /// As [`Values::array`].
    pub(crate) unsafe fn texts(array: *const Descriptor, rank: usize, len: usize) -> Values {
        // SAFETY: the caller vouches for the descriptor.
        let mut values = unsafe { Values::array(array, rank, 1) };
        for step in &mut values.steps {
            *step *= len as isize;
        }
        values.shape.insert(0, len);
        values.steps.insert(0, 1);
        values
    }

    /// The first element.
    pub(crate) fn base(&self) -> *mut u8 {
        self.base
    }

    /// Lengths by dimension.
    pub(crate) fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Elements in all.
    pub(crate) fn elements(&self) -> usize {
        self.shape.iter().product()
    }

    /// Whether the elements lie one after another.
    pub(crate) fn is_dense(&self) -> bool {
        let mut expected = 1;
        self.elements() == 0
            || self.shape.iter().zip(&self.steps).all(|(len, step)| {
                let fits = *len == 1 || *step == expected;
                expected *= *len as isize;
                fits
            })
    }

    /// Where the elements of a hyperslab with these counts lie, as an imap: known if the counts
    /// are the shape, but for dimensions of length one.
    pub(crate) fn map_for(&self, counts: &[Offset]) -> Option<Vec<Offset>> {
        let mut mine = self.shape.iter().zip(&self.steps).filter(|(len, _)| **len != 1);
        let mut map = Vec::new();
        for count in counts {
            if *count == 1 {
                map.push(1);
                continue;
            }
            let (len, step) = mine.next()?;
            if usize::try_from(*count) != Ok(*len) {
                return None;
            }
            map.push(*step as Offset);
        }
        mine.next().is_none().then_some(map)
    }

    /// The address of each element, in order.
    fn places(&self) -> impl Iterator<Item = *mut u8> + '_ {
        let mut index = vec![0; self.shape.len()];
        (0..self.elements()).map(move |_| {
            let steps = index.iter().zip(&self.steps);
            let at: isize = steps.map(|(place, step)| *place as isize * step).sum();
            for (place, len) in index.iter_mut().zip(&self.shape) {
                *place += 1;
                if *place < *len {
                    break;
                }
                *place = 0;
            }
            self.base.wrapping_offset(at * self.size as isize)
        })
    }

    /// A copy of the values without gaps.
    ///
    /// # Safety
    ///
    /// The array is there.
    pub(crate) unsafe fn pack(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.elements() * self.size);
        for place in self.places() {
            // SAFETY: the caller vouches for the elements.
            bytes.extend_from_slice(unsafe { std::slice::from_raw_parts(place, self.size) });
        }
        bytes
    }

    /// Writes values without gaps back; as many as there are.
    ///
    /// # Safety
    ///
    /// The array is there and may be written.
    pub(crate) unsafe fn unpack(&self, bytes: &[u8]) {
        for (place, value) in self.places().zip(bytes.chunks_exact(self.size)) {
            // SAFETY: the caller vouches for the elements.
            unsafe { std::ptr::copy_nonoverlapping(value.as_ptr(), place, self.size) };
        }
    }
}

/// A list of offsets, if it is there.
///
/// # Safety
///
/// The descriptor is null or of an array with one dimension.
pub(crate) unsafe fn offsets(array: *const Descriptor) -> Option<Vec<Offset>> {
    if array.is_null() {
        return None;
    }
    // SAFETY: the caller vouches for the descriptor and what it describes.
    let values = unsafe { Values::array(array, 1, size_of::<Offset>()) };
    Some(values.places().map(|place| unsafe { place.cast::<Offset>().read_unaligned() }).collect())
}

/// The columns of a table of offsets, if it is there.
///
/// # Safety
///
/// The descriptor is null or of an array with two dimensions.
pub(crate) unsafe fn columns(array: *const Descriptor) -> Option<Vec<Vec<Offset>>> {
    if array.is_null() {
        return None;
    }
    // SAFETY: the caller vouches for the descriptor and what it describes.
    let values = unsafe { Values::array(array, 2, size_of::<Offset>()) };
    let rows = values.shape().first().copied().unwrap_or(0).max(1);
    let numbers: Vec<Offset> =
        values.places().map(|place| unsafe { place.cast::<Offset>().read_unaligned() }).collect();
    Some(numbers.chunks(rows).map(<[Offset]>::to_vec).collect())
}
