//! One thread for the input and output of a rank, which is not there before it is needed
//! (seeds/000 §7.2).

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, PoisonError, mpsc};
use std::thread::{Builder, JoinHandle};

use crate::pending::{Pending, Slot};

/// A thread that does one piece of work after the other, in the order in which they were begun.
/// The first one brings it into being.
///
/// Each rank of a dataset has one. So pieces of work of several ranks that wait for each other, as
/// collective ones do, must be begun in the same order on all of them, and then find each other.
///
/// Dropping it waits for everything that was begun.
#[derive(Debug)]
pub struct IoThread {
    name: String,
    running: Mutex<Option<Running>>,
}

type Job = Box<dyn FnOnce() + Send>;

#[derive(Debug)]
struct Running {
    jobs: mpsc::Sender<Job>,
    thread: JoinHandle<()>,
    /// A process that was forked has this, but not the thread.
    process: u32,
}

impl Running {
    fn is_here(&self) -> bool {
        self.process == std::process::id()
    }
}

impl IoThread {
    /// What will be a thread of this name.
    pub fn new(name: impl Into<String>) -> IoThread {
        IoThread { name: name.into(), running: Mutex::new(None) }
    }

    /// Begins a piece of work. It is done even if nobody waits for it; here and now, if the
    /// system has no thread to give.
    pub fn start<T, E>(&self, work: impl FnOnce() -> Result<T, E> + Send + 'static) -> Pending<T, E>
    where
        T: Send + 'static,
        E: Send + 'static,
    {
        let slot = Slot::new();
        let place = slot.clone();
        self.hand_over(Box::new(move || place.end(catch_unwind(AssertUnwindSafe(work)))));
        Pending::of(slot)
    }

    /// The same for work that changes nothing: it is left out if its token is gone by its turn.
    pub(crate) fn start_for_token<T, E>(
        &self,
        work: impl FnOnce() -> Result<T, E> + Send + 'static,
    ) -> Pending<T, E>
    where
        T: Send + 'static,
        E: Send + 'static,
    {
        let slot = Slot::new();
        let place = slot.clone();
        self.hand_over(Box::new(move || {
            if !place.is_forgotten() {
                place.end(catch_unwind(AssertUnwindSafe(work)));
            }
        }));
        Pending::of(slot)
    }

    /// Waits until everything that was begun is over.
    pub fn drain(&self) {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let is_running = running.as_ref().is_some_and(Running::is_here);
        drop(running);
        if is_running {
            let _ = self.start(|| Ok::<(), ()>(())).wait();
        }
    }

    fn hand_over(&self, job: Job) {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        if !running.as_ref().is_some_and(Running::is_here) {
            // Nobody can wait for a thread of another process, or tell it that there is no more work.
            std::mem::forget(running.take());
            *running = self.spawn();
        }
        let refused = match &*running {
            Some(there) => there.jobs.send(job).err().map(|mpsc::SendError(job)| job),
            None => Some(job),
        };
        drop(running);
        if let Some(job) = refused {
            // Other ranks may count on it.
            job();
        }
    }

    fn spawn(&self) -> Option<Running> {
        let (jobs, next) = mpsc::channel::<Job>();
        let work = move || next.into_iter().for_each(|job| job());
        let thread = Builder::new().name(self.name.clone()).spawn(work).ok()?;
        Some(Running { jobs, thread, process: std::process::id() })
    }
}

impl Drop for IoThread {
    fn drop(&mut self) {
        let running = self.running.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(Running { jobs, thread, process }) = running {
            if process != std::process::id() {
                std::mem::forget((jobs, thread));
                return;
            }
            drop(jobs);
            // Panics of the work are in its tokens.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn work_is_done_in_its_order_and_outlives_its_token() {
        let thread = IoThread::new("test");
        let (tell, told) = channel();
        for turn in 0..100 {
            let tell = tell.clone();
            let token = thread.start(move || tell.send(turn).map_err(|e| e.to_string()));
            if turn % 3 == 0 {
                token.wait().unwrap();
            }
        }
        drop((thread, tell));
        assert!(told.into_iter().eq(0..100));
    }

    #[test]
    fn a_token_is_not_ready_before_its_work_is_over() {
        let thread = IoThread::new("test");
        let (go, wait) = channel::<()>();
        let token = thread.start(move || wait.recv());
        let second = thread.start(|| Err::<(), _>("it failed"));
        assert!(!token.test() && !second.test());
        go.send(()).unwrap();
        assert_eq!(second.wait(), Err("it failed"));
        assert!(token.test());
        token.wait().unwrap();
    }

    #[test]
    fn a_panic_goes_on_where_it_is_waited_for_and_the_thread_goes_on_too() {
        let thread = IoThread::new("test");
        let token: Pending<(), ()> = thread.start(|| std::panic::panic_any("a bug"));
        let after = thread.start(|| Ok::<_, ()>(1));
        assert_eq!(after.wait(), Ok(1));
        let panic = catch_unwind(AssertUnwindSafe(|| token.wait())).unwrap_err();
        assert_eq!(*panic.downcast::<&str>().unwrap(), "a bug");
    }

    #[test]
    fn what_is_read_for_nobody_is_not_read() {
        let thread = IoThread::new("test");
        let (go, wait) = channel::<()>();
        let first = thread.start(move || wait.recv());
        let (tell, told) = channel();
        drop(thread.start_for_token(move || tell.send(())));
        go.send(()).unwrap();
        first.wait().unwrap();
        thread.drain();
        assert!(told.recv().is_err());
    }
}
