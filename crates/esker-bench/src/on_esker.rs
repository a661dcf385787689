//! A plan carried out with Esker.

use std::path::Path;
use std::sync::Arc;

use esker_comm::Communicator;
use serde_json::Value;

use crate::measure::Phases;
use crate::plan::Plan;
use crate::values::Buffer;
use crate::worker::WorkerError;

/// What a run was.
pub(crate) struct Run {
    pub(crate) write: Phases,
    pub(crate) read: Phases,
    pub(crate) write_report: Value,
    pub(crate) read_report: Value,
}

/// MPI's world.
pub(crate) fn mpi() -> Result<Arc<dyn Communicator>, WorkerError> {
    Ok(esker_comm::auto()?)
}

/// Writes a plan's values and reads them back.
pub(crate) fn run(
    _comm: &Arc<dyn Communicator>,
    _plan: &Plan,
    _path: &Path,
    _sync: bool,
    _memory: &mut [Buffer],
) -> Result<Run, WorkerError> {
    Err(WorkerError::Start("not yet".into()))
}
