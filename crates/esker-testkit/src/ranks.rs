//! Ranks that are threads and may not hang: a test waits for them for a limited time.

use std::sync::Arc;
use std::sync::mpsc;
use std::time::Duration;

use esker_comm::{Communicator, LaunchError, ThreadWorld};

/// No test needs more than some seconds; but the machine may be slow and busy, and only a hang
/// takes this long.
pub const HANG: Duration = Duration::from_secs(600);

/// Runs `program` on thread-ranks and panics if they hang.
pub fn on_ranks<R: Send + 'static>(
    ranks: usize,
    program: impl Fn(Arc<dyn Communicator>) -> R + Send + Sync + 'static,
) -> Vec<R> {
    launched(ranks, program).unwrap_or_else(|error| panic!("{error}"))
}

/// The same, where a rank may panic.
pub fn launched<R: Send + 'static>(
    ranks: usize,
    program: impl Fn(Arc<dyn Communicator>) -> R + Send + Sync + 'static,
) -> Result<Vec<R>, LaunchError> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let _ = sender.send(ThreadWorld::new(ranks).launch(program));
    });
    let outcome = receiver.recv_timeout(HANG);
    outcome.unwrap_or_else(|_| panic!("{ranks} ranks hang: nothing came within {HANG:?}"))
}
