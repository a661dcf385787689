//! Flushes and reads that go on while Python does.

use std::sync::{Mutex, PoisonError};

use esker::{Dataset, Pending, Values};
use numpy::PyUntypedArray;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::dtype;
use crate::handle::Handle;
use crate::memory::{Lent, empty};

/// What was begun.
pub(crate) enum Work {
    Flush(Pending<()>),
    /// A read, and the shape of its array.
    Read(Pending<Values>, Vec<u64>),
}

/// The token of something that goes on in the background.
#[pyclass(frozen, module = "esker._esker")]
pub(crate) struct Token {
    pub(crate) handle: Py<Handle>,
    pub(crate) work: Mutex<Option<Work>>,
}

impl Token {
    pub(crate) fn new(handle: Py<Handle>, work: Work) -> Token {
        Token { handle, work: Mutex::new(Some(work)) }
    }
}

#[pymethods]
impl Token {
    /// Whether it is over, so that :meth:`wait` does not wait.
    fn test(&self) -> bool {
        let work = self.work.lock().unwrap_or_else(PoisonError::into_inner);
        match &*work {
            Some(Work::Flush(pending)) => pending.test(),
            Some(Work::Read(pending, _)) => pending.test(),
            None => true,
        }
    }

    /// Waits until it is over; gives the array of a read.
    fn wait<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyUntypedArray>>> {
        let work = self.work.lock().unwrap_or_else(PoisonError::into_inner).take();
        match work {
            None => Err(PyValueError::new_err("it was waited for already")),
            Some(Work::Flush(pending)) => {
                let wait = |dataset: &mut Dataset| dataset.flush_wait(pending);
                self.handle.get().free(py, || self.handle.get().shared.change(true, wait))?;
                Ok(None)
            }
            Some(Work::Read(pending, shape)) => {
                let values = self.handle.get().free(py, || Ok(pending.wait()?))?;
                let array = empty(py, &shape, dtype::of_type(py, values.ty())?)?;
                let mut lent = Lent::dense(&array, true)?;
                let whole = lent.whole();
                let (bytes, _) = lent.bytes_mut(&whole);
                bytes.copy_from_slice(values.native_bytes());
                Ok(Some(array))
            }
        }
    }
}
