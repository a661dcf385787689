//! Times that all ranks agree on.

use std::time::Instant;

use esker_comm::{Communicator, ReduceOp, Reduction};

use crate::worker::WorkerError;

/// Runs one phase on all ranks: they start together, and it lasts until the last is done.
pub(crate) fn phase<T>(
    comm: &dyn Communicator,
    seconds: &mut f64,
    act: impl FnOnce() -> Result<T, WorkerError>,
) -> Result<T, WorkerError> {
    comm.barrier()?;
    let start = Instant::now();
    let result = act()?;
    let mut longest = [start.elapsed().as_secs_f64()];
    comm.all_reduce(Reduction::F64(&mut longest), ReduceOp::Max)?;
    *seconds = longest[0];
    Ok(result)
}
