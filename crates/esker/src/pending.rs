//! The token of work that goes on while the program does.

use std::any::Any;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use crate::error::Error;

/// Work that an [`IoThread`](crate::IoThread) does, or has done, for this program: a flush
/// ([`Dataset::flush_start`](crate::Dataset::flush_start)), a read
/// ([`Dataset::get_start`](crate::Dataset::get_start)), a replay (of `esker-tools`).
///
/// What went wrong is told by [`Pending::wait`]. Of collective work every rank hears of it.
///
/// Dropping it waits for nothing: a flush goes on, and a read that nobody will wait for is left
/// out if it has not begun.
#[must_use = "what went wrong is told by its `wait`"]
#[derive(Debug)]
pub struct Pending<T, E = Error> {
    slot: Arc<Slot<T, E>>,
}

/// How work ended: with its outcome, or with a panic, which goes on in the thread that waits.
pub(crate) type Ending<T, E> = Result<Result<T, E>, Box<dyn Any + Send>>;

/// Where the outcome comes to be.
pub(crate) struct Slot<T, E> {
    ending: Mutex<Option<Ending<T, E>>>,
    ended: Condvar,
    /// Whether nobody will ask.
    forgotten: AtomicBool,
}

impl<T, E> std::fmt::Debug for Slot<T, E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Slot").field("is_over", &self.lock().is_some()).finish_non_exhaustive()
    }
}

impl<T, E> Slot<T, E> {
    pub(crate) fn new() -> Arc<Slot<T, E>> {
        let (ending, ended) = (Mutex::new(None), Condvar::new());
        Arc::new(Slot { ending, ended, forgotten: AtomicBool::new(false) })
    }

    fn lock(&self) -> MutexGuard<'_, Option<Ending<T, E>>> {
        self.ending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn end(&self, ending: Ending<T, E>) {
        *self.lock() = Some(ending);
        self.ended.notify_all();
    }

    pub(crate) fn is_forgotten(&self) -> bool {
        self.forgotten.load(Ordering::Acquire)
    }
}

impl<T, E> Pending<T, E> {
    /// The token of something that is over.
    pub fn ready(outcome: Result<T, E>) -> Pending<T, E> {
        let slot = Slot::new();
        slot.end(Ok(outcome));
        Pending { slot }
    }

    pub(crate) fn of(slot: Arc<Slot<T, E>>) -> Pending<T, E> {
        Pending { slot }
    }

    /// Whether the work of this rank is over, well or not, so that [`Pending::wait`] does not wait.
    pub fn test(&self) -> bool {
        self.slot.lock().is_some()
    }

    /// Waits until the work is over, and gives what it made or why it did not.
    pub fn wait(self) -> Result<T, E> {
        let mut ending = self.slot.lock();
        loop {
            match ending.take() {
                Some(Ok(outcome)) => return outcome,
                Some(Err(panic)) => {
                    drop(ending);
                    resume_unwind(panic)
                }
                None => {
                    let waited = self.slot.ended.wait(ending);
                    ending = waited.unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
    }
}

impl<T, E> Drop for Pending<T, E> {
    fn drop(&mut self) {
        self.slot.forgotten.store(true, Ordering::Release);
    }
}
