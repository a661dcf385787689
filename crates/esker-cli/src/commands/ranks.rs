//! What a command does when a launcher has started it on several ranks.

use std::path::Path;
use std::sync::Arc;

use esker::Communicator;
use esker::SelfComm;
use esker_comm::mpi::{self, MpiSession};
use esker_models::ModelError;
use esker_store::{LocalStore, Store};
use esker_tools::whole::{self, Output, Shape};

use crate::failure::{Ended, Failure, Outcome};
use crate::terminal::say;

/// Set to anything, every process of a launcher runs its command.
const EVERY_RANK: &str = "ESKER_EVERY_RANK";

/// Whether this process is one of a launcher's that should leave a command that is not parallel
/// to rank 0.
pub(super) fn left_to_rank_0() -> bool {
    let rank = mpi::launched().and_then(|launched| launched.rank);
    rank.is_some_and(|rank| rank > 0) && std::env::var_os(EVERY_RANK).is_none_or(|v| v.is_empty())
}

/// Every rank fails, and one of them tells why. A launcher ends the whole job when the first
/// rank leaves with a failure, so nobody leaves before it was told.
pub(super) fn fail_together(comm: &Arc<dyn Communicator>, mine: Option<Failure>) -> Ended {
    if let Some(Failure::Sentence(sentence)) = mine {
        say(format_args!("esker: {sentence}"));
    }
    comm.barrier().map_err(Failure::sentence)?;
    Ok(Outcome::Unknown)
}

/// Does something with all ranks that a launcher has started, or alone; rank 0 gets to tell of it.
pub(super) fn together<T, E: std::fmt::Display>(
    work: impl FnOnce(Arc<dyn Communicator>) -> Result<T, E>,
    failure: impl FnOnce(E) -> Failure,
    tell: impl FnOnce(T) -> Ended,
) -> Ended {
    // A launcher that started one process (an interactive shell of srun) is none.
    if mpi::launched().is_none_or(|launched| launched.ranks == Some(1)) {
        return tell(work(Arc::new(SelfComm::new())).map_err(failure)?);
    }
    let comm = esker_comm::auto().map_err(Failure::sentence)?;
    // Aborts all ranks if this one panics.
    let _session = mpi::found().map(|_| MpiSession::start());
    let root = comm.rank() == 0;
    match work(comm.clone()) {
        Ok(done) if root => tell(done),
        Ok(_) => Ok(Outcome::Good),
        // Every rank has this error, one tells it.
        Err(error) => fail_together(&comm, root.then(|| failure(error))),
    }
}

/// Makes an output of a model with all ranks: whole or not at all. Collective.
pub(super) fn whole<T>(
    comm: &dyn Communicator,
    path: &Path,
    shape: Shape,
    overwrite: bool,
    make: impl FnOnce(&Path) -> Result<T, ModelError>,
) -> Result<T, ModelError> {
    let store: Arc<dyn Store> = Arc::new(LocalStore);
    let output = Output { path, shape, overwrite, sync: false };
    whole::together(comm, &store, &output, make)
}
