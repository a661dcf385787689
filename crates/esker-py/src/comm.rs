//! mpi4py's communicators.

use std::sync::Arc;

use esker_comm::mpi::MpiComm;
use esker_comm::{Communicator, SelfComm};
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
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
        Ok(comm) => Ok(Arc::new(comm)),
        Err(error) => Err(PyRuntimeError::new_err(error.to_string())),
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
