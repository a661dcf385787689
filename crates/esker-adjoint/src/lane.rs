//! A thread that does one thing after the other beside the model.

use std::cell::RefCell;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use esker_codec::Scratch;

type Job = Box<dyn FnOnce(&mut Scratch) + Send>;

/// A thread with the memory that filters need; it ends with its owner. Or nobody: jobs are then done where they are given.
#[derive(Debug)]
pub(crate) struct Lane {
    jobs: Option<Sender<Job>>,
    thread: Option<JoinHandle<()>>,
    own: RefCell<Scratch>,
}

/// What a job will give.
#[derive(Debug)]
pub(crate) struct Promise<T>(Receiver<T>);

impl<T> Promise<T> {
    /// What was done already.
    pub(crate) fn kept(value: T) -> Promise<T> {
        let (answer, promise) = channel();
        let _ = answer.send(value);
        Promise(promise)
    }

    /// Waits for it; `None` if the thread is gone.
    pub(crate) fn wait(self) -> Option<T> {
        self.0.recv().ok()
    }
}

impl Lane {
    /// Starts the thread, if jobs are to be done beside the model. Where there can be none, they are done at once.
    pub(crate) fn start(name: &str, beside: bool) -> Lane {
        let own = RefCell::new(Scratch::new());
        if !beside {
            return Lane { jobs: None, thread: None, own };
        }
        let (jobs, inbox) = channel::<Job>();
        let work = move || {
            let mut scratch = Scratch::new();
            while let Ok(job) = inbox.recv() {
                job(&mut scratch);
            }
        };
        match std::thread::Builder::new().name(name.into()).spawn(work) {
            Ok(thread) => Lane { jobs: Some(jobs), thread: Some(thread), own },
            Err(_) => Lane { jobs: None, thread: None, own },
        }
    }

    /// Whether jobs are done beside the model.
    pub(crate) fn is_beside(&self) -> bool {
        self.jobs.is_some()
    }

    /// Does `work` after what was given before.
    pub(crate) fn submit<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Scratch) -> T + Send + 'static,
    ) -> Promise<T> {
        let (answer, promise) = channel();
        let job: Job = Box::new(move |scratch| {
            // Nobody waits for it any more when a run has failed.
            let _ = answer.send(work(scratch));
        });
        match &self.jobs {
            Some(jobs) => {
                if let Err(back) = jobs.send(job) {
                    (back.0)(&mut self.own.borrow_mut());
                }
            }
            None => job(&mut self.own.borrow_mut()),
        }
        Promise(promise)
    }
}

impl Drop for Lane {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
