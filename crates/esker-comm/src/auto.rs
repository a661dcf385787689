//! The communicator that a program should use if it was told nothing else.

use std::sync::Arc;

use crate::mpi::{self, MpiComm};
use crate::{CommError, Communicator, Result, SelfComm};

/// MPI's world if the program was started by `mpiexec` or uses MPI already; this process alone
/// if not. Collective.
///
/// If a launcher started several processes and MPI cannot be used, this is an error, and not
/// that many programs which each believe to be alone and write the same file.
///
/// ```
/// # use esker_comm::Communicator;
/// let comm = esker_comm::auto()?;
/// println!("rank {} of {}", comm.rank(), comm.size());
/// # Ok::<(), esker_comm::CommError>(())
/// ```
pub fn auto() -> Result<Arc<dyn Communicator>> {
    let launched = mpi::launched();
    if launched.is_none() && !mpi::is_in_use() {
        return Ok(Arc::new(SelfComm::new()));
    }
    match MpiComm::world() {
        Ok(world) => Ok(Arc::new(world)),
        Err(CommError::MpiUnavailable { .. })
            if launched.is_some_and(|launched| launched.ranks == Some(1)) =>
        {
            Ok(Arc::new(SelfComm::new()))
        }
        Err(error) => Err(error),
    }
}
