//! Values of attributes, to Python and back.

use esker::{ExternalType, Values};
use numpy::{PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

use crate::dtype;
use crate::memory::{Lent, empty, scalar_or_array};

/// Text becomes `str`, one number a NumPy scalar, several an array.
pub(crate) fn to_python<'py>(py: Python<'py>, values: &Values) -> PyResult<Bound<'py, PyAny>> {
    if let Values::Char(bytes) = values {
        return Ok(text(py, bytes).into_any());
    }
    let dtype = dtype::of_type(py, values.ty())?;
    let shape = if values.len() == 1 { vec![] } else { vec![values.len() as u64] };
    let array = empty(py, &shape, dtype)?;
    let mut lent = Lent::dense(&array, true)?;
    let whole = lent.whole();
    let (bytes, _) = lent.bytes_mut(&whole);
    bytes.copy_from_slice(values.native_bytes());
    drop(lent);
    scalar_or_array(array)
}

/// UTF-8, or what most old files that are not have: Latin-1, which every byte is. Zeros are C's end
/// of a string and no text; netCDF4-python leaves them out too.
fn text<'py>(py: Python<'py>, bytes: &[u8]) -> Bound<'py, PyString> {
    let without: Vec<u8>;
    let mut bytes = bytes;
    if bytes.contains(&0) {
        without = bytes.iter().copied().filter(|byte| *byte != 0).collect();
        bytes = &without;
    }
    match std::str::from_utf8(bytes) {
        Ok(text) => PyString::new(py, text),
        Err(_) => {
            PyString::new(py, &bytes.iter().map(|byte| char::from(*byte)).collect::<String>())
        }
    }
}

/// What the Python side has prepared: `bytes` for text, or an array of one of the eleven dtypes.
pub(crate) fn from_python(value: &Bound<'_, PyAny>) -> PyResult<Values> {
    if let Ok(bytes) = value.cast::<PyBytes>() {
        return Ok(Values::Char(bytes.as_bytes().to_vec()));
    }
    let array = value.cast::<PyUntypedArray>()?;
    let Some(memory) = dtype::memory_type(&array.dtype()) else {
        let dtype = array.dtype();
        return Err(PyTypeError::new_err(format!("attributes cannot have dtype {dtype}")));
    };
    let ty: ExternalType = memory.natural();
    let lent = Lent::dense(array, false)?;
    let mut values = Values::zeros(ty, array.len());
    let whole = lent.whole();
    let (bytes, _) = lent.bytes(&whole);
    values.native_bytes_mut().copy_from_slice(bytes);
    Ok(values)
}
