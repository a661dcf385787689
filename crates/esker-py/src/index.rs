//! Keys of integers, slices and ellipses become hyperslabs.
//!
//! Keys with arrays are not ours: the Python side decomposes them (`_indexing.py`).

use pyo3::exceptions::{PyIndexError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyEllipsis, PyInt, PySlice, PyTuple};

/// One hyperslab, and what the result of indexing with it looks like.
#[derive(Debug, Clone, Default)]
pub(crate) struct Slab {
    pub(crate) start: Vec<u64>,
    pub(crate) count: Vec<u64>,
    pub(crate) stride: Vec<u64>,
    /// The dimensions that the result has; an integer takes its dimension away.
    pub(crate) kept: Vec<usize>,
    /// The dimensions that the result has turned around: slices with a negative step.
    pub(crate) flipped: Vec<usize>,
    /// Whether the key has an ellipsis, with which NumPy gives arrays and never scalars.
    pub(crate) has_ellipsis: bool,
}

impl Slab {
    /// The shape of the result.
    pub(crate) fn result(&self) -> Vec<u64> {
        self.kept.iter().map(|dim| self.count[*dim]).collect()
    }
}

/// A variable as keys see it.
pub(crate) struct Indexed<'a> {
    pub(crate) shape: &'a [u64],
    /// The variable's name and its dimensions', which only errors need.
    pub(crate) names: &'a dyn Fn() -> (String, Vec<String>),
    /// What is written, where the first dimension may grow.
    pub(crate) growing: Option<Growing<'a>>,
}

/// The shape of what is written to a record variable, which says how far an open slice goes.
pub(crate) struct Growing<'a> {
    pub(crate) value: &'a [usize],
}

enum Item<'py> {
    Integer(i64),
    Slice(Bound<'py, PySlice>),
    /// `:`, or a dimension that the key does not name.
    All,
}

/// The hyperslab that a key means; `None` when there is an array in it.
pub(crate) fn parse<'py>(key: &Bound<'py, PyAny>, of: &Indexed<'_>) -> PyResult<Option<Slab>> {
    let rank = of.shape.len();
    let mut items: Vec<Item<'py>> = Vec::with_capacity(rank);
    // Where the ellipsis stands.
    let mut gap = None;
    let mut each = |item: Bound<'py, PyAny>| -> PyResult<bool> {
        if let Ok(slice) = item.cast::<PySlice>() {
            items.push(Item::Slice(slice.clone()));
        } else if item.is_exact_instance_of::<PyInt>() {
            items.push(Item::Integer(integer(&item)?));
        } else if item.is_instance_of::<PyEllipsis>() {
            if gap.is_some() {
                return Err(PyIndexError::new_err("a key can have a single ellipsis ('...')"));
            }
            gap = Some(items.len());
        } else if item.is_none() {
            return Err(PyIndexError::new_err(
                "None (numpy.newaxis) cannot index a variable: index the array that is read",
            ));
        } else if item.is_instance_of::<PyBool>() || item.hasattr("__len__")? {
            // A list, or an array with dimensions; an array without any is an integer below.
            let is_scalar_array = item.hasattr("ndim")? && item.getattr("ndim")?.eq(0)?;
            let kind = if is_scalar_array {
                item.getattr("dtype")?.getattr("kind")?.to_string()
            } else {
                String::new()
            };
            if kind != "i" && kind != "u" {
                return Ok(false);
            }
            items.push(Item::Integer(integer(&item)?));
        } else if item.hasattr("__index__")? && !is_bool_scalar(&item)? {
            items.push(Item::Integer(integer(&item)?));
        } else if item.hasattr("__array__")? {
            return Ok(false);
        } else {
            let kind = item.get_type().name()?.to_string();
            return Err(PyIndexError::new_err(format!(
                "a key is made of integers, slices, '...' and arrays of integers or bools, not of {kind}"
            )));
        }
        Ok(true)
    };
    match key.cast::<PyTuple>() {
        Ok(tuple) => {
            for item in tuple.iter() {
                if !each(item)? {
                    return Ok(None);
                }
            }
        }
        Err(_) => {
            if !each(key.clone())? {
                return Ok(None);
            }
        }
    }
    if items.len() > rank {
        let ((name, _), given) = ((of.names)(), items.len());
        return Err(PyIndexError::new_err(format!(
            "too many indices: variable \"{name}\" has {rank} dimensions, but {given} were indexed"
        )));
    }
    let missing = rank - items.len();
    let at = gap.unwrap_or(items.len());
    items.splice(at..at, (0..missing).map(|_| Item::All));
    let slab = resolve(&items, of)?;
    Ok(Some(Slab { has_ellipsis: gap.is_some(), ..slab }))
}

/// numpy.bool has an `__index__` that fails.
fn is_bool_scalar(item: &Bound<'_, PyAny>) -> PyResult<bool> {
    match item.getattr("dtype") {
        Ok(dtype) => Ok(dtype.getattr("kind")?.to_string() == "b"),
        Err(_) => Ok(false),
    }
}

fn integer(item: &Bound<'_, PyAny>) -> PyResult<i64> {
    let number = item.call_method0("__index__").and_then(|index| index.extract());
    number.map_err(|_| PyIndexError::new_err(format!("index {item} is too large")))
}

fn resolve(items: &[Item<'_>], of: &Indexed<'_>) -> PyResult<Slab> {
    let rank = items.len();
    let mut slab = Slab {
        start: Vec::with_capacity(rank),
        count: Vec::with_capacity(rank),
        stride: Vec::with_capacity(rank),
        kept: Vec::with_capacity(rank),
        flipped: Vec::new(),
        has_ellipsis: false,
    };
    let kept = items.iter().filter(|item| !matches!(item, Item::Integer(_))).count();
    for (dim, (item, len)) in items.iter().zip(of.shape).enumerate() {
        let growing = of.growing.as_ref().filter(|_| dim == 0);
        let (start, count, stride) = match item {
            Item::Integer(index) => {
                let at = if *index < 0 { index + *len as i64 } else { *index };
                let beyond = at >= *len as i64 && growing.is_none();
                if at < 0 || beyond {
                    let (var, dims) = (of.names)();
                    let name = dims.get(dim).map_or("", String::as_str);
                    return Err(PyIndexError::new_err(format!(
                        "variable \"{var}\": index {index} is out of bounds for dimension \"{name}\" with length {len}"
                    )));
                }
                (at as u64, 1, 1)
            }
            Item::All => match growing {
                None => (0, *len, 1),
                Some(growing) => (0, growing.open_count(0, 1, *len, kept), 1),
            },
            Item::Slice(slice) => {
                let (start, count, step) = match growing {
                    None => within(slice, *len)?,
                    Some(growing) => growing.slice(slice, *len, kept)?,
                };
                if step < 0 {
                    slab.flipped.push(dim);
                    // The same elements from the other end.
                    let back = step.unsigned_abs();
                    (start - count.saturating_sub(1) * back, count, back)
                } else {
                    (start, count, step as u64)
                }
            }
        };
        if !matches!(item, Item::Integer(_)) {
            slab.kept.push(dim);
        }
        slab.start.push(if count == 0 { 0 } else { start });
        slab.count.push(count);
        // A stride that is never taken may be anything, and might be too large.
        slab.stride.push(if count > 1 { stride } else { 1 });
    }
    Ok(slab)
}

/// A slice of a dimension that does not grow: where it begins, how many, and the step.
fn within(slice: &Bound<'_, PySlice>, len: u64) -> PyResult<(u64, u64, i64)> {
    let found = slice.indices(len as isize)?;
    Ok((found.start.max(0) as u64, found.slicelength as u64, found.step as i64))
}

impl Growing<'_> {
    /// A slice of the record dimension when writing, which may go beyond the last record.
    fn slice(
        &self,
        slice: &Bound<'_, PySlice>,
        len: u64,
        kept: usize,
    ) -> PyResult<(u64, u64, i64)> {
        let number = |name: &str| -> PyResult<Option<i64>> {
            let bound = slice.getattr(name)?;
            if bound.is_none() { Ok(None) } else { integer(&bound).map(Some) }
        };
        let (start, stop, step) = (number("start")?, number("stop")?, number("step")?.unwrap_or(1));
        if step == 0 {
            return Err(PyValueError::new_err("slice step cannot be zero"));
        }
        if step < 0 {
            return within(slice, len);
        }
        let place = |at: i64| if at < 0 { (at + len as i64).max(0) as u64 } else { at as u64 };
        let (start, step) = (place(start.unwrap_or(0)), step as u64);
        let count = match stop {
            Some(stop) => place(stop).saturating_sub(start).div_ceil(step),
            None => self.open_count(start, step, len, kept),
        };
        Ok((start, count, step as i64))
    }

    /// How many records an open slice has: as many as the value has, or as there are when the
    /// value is broadcast over them.
    fn open_count(&self, start: u64, step: u64, len: u64, kept: usize) -> u64 {
        let there = len.saturating_sub(start).div_ceil(step);
        match self.value.first() {
            Some(records) if self.value.len() == kept => match *records as u64 {
                1 => there.max(1),
                records => records,
            },
            _ => there,
        }
    }
}
