//! Thread-ranks that may not hang: a test waits for them for a limited time.
// Each test uses some of it.
#![allow(dead_code)]

use std::sync::Arc;
use std::sync::mpsc;
use std::time::Duration;

use esker::Communicator;
use esker_comm::{LaunchError, ThreadWorld};

/// No test here needs more than a few seconds, but the machine may be busy.
const LIMIT: Duration = Duration::from_secs(60);

/// Runs `program` on thread-ranks and panics if they hang.
pub(crate) fn on_ranks<R: Send + 'static>(
    ranks: usize,
    program: impl Fn(Arc<dyn Communicator>) -> R + Send + Sync + 'static,
) -> Vec<R> {
    launched(ranks, program).unwrap_or_else(|error| panic!("{error}"))
}

/// The same, where a rank may panic.
pub(crate) fn launched<R: Send + 'static>(
    ranks: usize,
    program: impl Fn(Arc<dyn Communicator>) -> R + Send + Sync + 'static,
) -> Result<Vec<R>, LaunchError> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let _ = sender.send(ThreadWorld::new(ranks).launch(program));
    });
    let outcome = receiver.recv_timeout(LIMIT);
    outcome.unwrap_or_else(|_| panic!("{ranks} ranks hang: nothing came within {LIMIT:?}"))
}
