//! A thread that does one thing after the other beside the model.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use esker_codec::Scratch;

type Job = Box<dyn FnOnce(&mut Scratch) + Send>;

/// A thread with the memory that filters need; it ends with its owner.
#[derive(Debug)]
pub(crate) struct Lane {
    jobs: Option<Sender<Job>>,
    thread: Option<JoinHandle<()>>,
}

/// What a job will give.
#[derive(Debug)]
pub(crate) struct Promise<T>(Receiver<T>);

impl<T> Promise<T> {
    /// Waits for it; `None` if the thread is gone.
    pub(crate) fn wait(self) -> Option<T> {
        self.0.recv().ok()
    }
}

impl Lane {
    /// Starts the thread. Where there can be none, jobs are done at once.
    pub(crate) fn start(name: &str) -> Lane {
        let (jobs, inbox) = channel::<Job>();
        let work = move || {
            let mut scratch = Scratch::new();
            while let Ok(job) = inbox.recv() {
                job(&mut scratch);
            }
        };
        match std::thread::Builder::new().name(name.into()).spawn(work) {
            Ok(thread) => Lane { jobs: Some(jobs), thread: Some(thread) },
            Err(_) => Lane { jobs: None, thread: None },
        }
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
                    (back.0)(&mut Scratch::new());
                }
            }
            None => job(&mut Scratch::new()),
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
