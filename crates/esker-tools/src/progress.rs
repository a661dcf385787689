//! How far a long task is.

/// Somebody who wants to know how far a task is. Any `FnMut(done, total)` is one.
pub trait Progress {
    /// `done` of `total` bytes are done. Called often: an observer that draws should wait
    /// between drawings.
    fn progress(&mut self, done: u64, total: u64);

    /// Whether the task is to end early, with an error and its output as it was before. Tasks ask when
    /// they have told how far they are.
    fn is_cancelled(&self) -> bool {
        false
    }
}

impl<F: FnMut(u64, u64)> Progress for F {
    fn progress(&mut self, done: u64, total: u64) {
        self(done, total);
    }
}

/// Nobody wants to know.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unseen;

impl Progress for Unseen {
    fn progress(&mut self, _done: u64, _total: u64) {}
}
