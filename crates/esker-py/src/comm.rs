//! mpi4py's communicators.

use std::ffi::CString;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use esker_comm::mpi::{MpiComm, wrong_launcher};
use esker_comm::{Communicator, SelfComm};
use pyo3::exceptions::{PyRuntimeError, PyRuntimeWarning, PyTypeError};
use pyo3::prelude::*;

/// The ranks that `comm=` means: an mpi4py communicator's, or this process alone.
///
/// The communicator is duplicated, so this is collective over it.
#[allow(unsafe_code)]
pub(crate) fn ranks(comm: Option<&Bound<'_, PyAny>>) -> PyResult<Arc<dyn Communicator>> {
    let Some(comm) = comm.filter(|comm| !comm.is_none()) else {
        return Ok(Arc::new(SelfComm::new()));
    };
    let handle = handle_of(comm)?;
    let adopted = comm.py().detach(|| {
        // SAFETY: mpi4py vouches for its handle; a communicator that was freed has MPI_COMM_NULL,
        // which is refused.
        unsafe { MpiComm::from_raw_handle(handle) }
    });
    match adopted {
        Ok(found) => {
            warn_of_launcher(comm.py())?;
            Ok(Arc::new(found))
        }
        Err(error) => Err(PyRuntimeError::new_err(error.to_string())),
    }
}

/// Says once that mpi4py's MPI is not the launcher's.
fn warn_of_launcher(py: Python<'_>) -> PyResult<()> {
    static TOLD: AtomicBool = AtomicBool::new(false);
    if TOLD.swap(true, Ordering::Relaxed) {
        return Ok(());
    }
    match wrong_launcher() {
        None => Ok(()),
        Some(why) => {
            let category = py.get_type::<PyRuntimeWarning>();
            let why = CString::new(why).unwrap_or_default();
            PyErr::warn(py, category.as_any(), &why, 2)
        }
    }
}

/// The `MPI_Comm` of an mpi4py communicator, as a number.
fn handle_of(comm: &Bound<'_, PyAny>) -> PyResult<usize> {
    let py = comm.py();
    let refused = || {
        let class = comm.get_type().name().map_or("?".to_string(), |name| name.to_string());
        PyTypeError::new_err(format!("comm must be a communicator of mpi4py, not {class}"))
    };
    // Only mpi4py itself knows whether this is one; if it was not imported, this is not.
    let modules = py.import("sys")?.getattr("modules")?;
    let Ok(mpi) = modules.get_item("mpi4py.MPI") else { return Err(refused()) };
    if !comm.is_instance(&mpi.getattr("Comm")?)? {
        return Err(refused());
    }
    // MPICH's handles are ints, and negative ones are no addresses.
    let handle: i128 = mpi.call_method1("_handleof", (comm,))?.extract()?;
    Ok(handle as usize)
}
