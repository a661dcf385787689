//! The eleven external types and NumPy's.

use esker::{ExternalType, MemoryType};
use numpy::{PyArrayDescr, PyArrayDescrMethods};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

/// NumPy's name of each external type, by the type's code minus 1.
const NAMES: [(ExternalType, &str); 11] = [
    (ExternalType::Byte, "i1"),
    (ExternalType::Char, "S1"),
    (ExternalType::Short, "i2"),
    (ExternalType::Int, "i4"),
    (ExternalType::Float, "f4"),
    (ExternalType::Double, "f8"),
    (ExternalType::UByte, "u1"),
    (ExternalType::UShort, "u2"),
    (ExternalType::UInt, "u4"),
    (ExternalType::Int64, "i8"),
    (ExternalType::UInt64, "u8"),
];

/// NumPy's dtype of values of this type.
pub(crate) fn of_type(py: Python<'_>, ty: ExternalType) -> PyResult<Bound<'_, PyArrayDescr>> {
    static MADE: PyOnceLock<Vec<Py<PyArrayDescr>>> = PyOnceLock::new();
    let made = MADE.get_or_try_init(py, || {
        let make = |(_, name): &(_, &str)| Ok(PyArrayDescr::new(py, *name)?.unbind());
        NAMES.iter().map(make).collect::<PyResult<Vec<_>>>()
    })?;
    match made.get(ty.code() as usize - 1) {
        Some(dtype) => Ok(dtype.bind(py).clone()),
        None => Err(PyTypeError::new_err(format!("{ty} has no dtype"))),
    }
}

/// The external type that NumPy calls so: `f4`, `S1`.
pub(crate) fn by_name(name: &str) -> PyResult<ExternalType> {
    let found = NAMES.iter().find(|(_, known)| *known == name).map(|(ty, _)| *ty);
    found.ok_or_else(|| {
        let known: Vec<&str> = NAMES.iter().map(|(_, name)| *name).collect();
        PyTypeError::new_err(format!(
            "dtype {name:?} cannot be stored in a classic file: use one of {}",
            known.join(", ")
        ))
    })
}

/// What elements of a dtype are in memory, if the library takes them as they are.
pub(crate) fn memory_type(dtype: &Bound<'_, PyArrayDescr>) -> Option<MemoryType> {
    if dtype.is_native_byteorder() == Some(false) {
        return None;
    }
    Some(match (dtype.kind(), dtype.itemsize()) {
        (b'i', 1) => MemoryType::I8,
        // A bool is a byte that is 0 or 1.
        (b'u' | b'b', 1) => MemoryType::U8,
        (b'i', 2) => MemoryType::I16,
        (b'u', 2) => MemoryType::U16,
        (b'i', 4) => MemoryType::I32,
        (b'u', 4) => MemoryType::U32,
        (b'i', 8) => MemoryType::I64,
        (b'u', 8) => MemoryType::U64,
        (b'f', 4) => MemoryType::F32,
        (b'f', 8) => MemoryType::F64,
        (b'S', 1) => MemoryType::Text,
        _ => return None,
    })
}
