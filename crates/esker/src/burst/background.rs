//! A flush while the program goes on: the logs so far are sealed, a thread of each rank moves them
//! to the file, and what is written meanwhile goes into a second pair.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, JoinHandle};

use esker_comm::CommunicatorExt;

use super::reader::Reader;
use super::replay::Damaged;
use super::session::Pair;
use super::{Burst, restart};
use crate::commit::Committed;
use crate::dataset::Dataset;
use crate::error::{Error, Result};
use crate::log::LogSource;
use crate::report::Report;

/// A flush that [`Dataset::flush_start`] began. [`Dataset::flush_wait`] ends it.
#[derive(Debug, Clone)]
pub struct FlushToken {
    done: Arc<AtomicBool>,
}

impl FlushToken {
    /// A token of something that is over.
    fn ready() -> FlushToken {
        FlushToken { done: Arc::new(AtomicBool::new(true)) }
    }

    /// Whether waiting for it would not take long: the work of this rank is over, well or not.
    pub fn test(&self) -> bool {
        self.done.load(Ordering::Acquire)
    }
}

/// What a thread gives back.
type Landed = (Result<()>, Report);

/// A flush under way.
#[derive(Debug)]
pub(super) struct Flight {
    /// Sealed logs, which readers look at until it has landed.
    pairs: Vec<Pair>,
    /// Their last epoch.
    epoch: u64,
    /// Records that the file has afterwards.
    records: u64,
    done: Arc<AtomicBool>,
    work: Option<Work>,
}

#[derive(Debug)]
enum Work {
    Thread(JoinHandle<Landed>),
    Over(Box<Landed>),
}

impl Flight {
    pub(super) fn sources(&self) -> impl Iterator<Item = LogSource> {
        self.pairs.iter().map(Pair::source)
    }

    fn wait(&mut self) -> Landed {
        match self.work.take() {
            Some(Work::Thread(thread)) => match thread.join() {
                Ok(landed) => landed,
                // A panic in the store is the store's; it goes on in this thread.
                Err(panic) => std::panic::resume_unwind(panic),
            },
            Some(Work::Over(landed)) => *landed,
            None => (Ok(()), Report::default()),
        }
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        // A thread that talks to other ranks must not outlive what it talks through.
        if let Some(Work::Thread(thread)) = self.work.take() {
            let _ = thread.join();
        }
    }
}

impl Dataset {
    /// Begins to move what is in the burst buffer to the file and returns; the program may go on
    /// writing and reading. Collective. A thread of each rank does the work, where ranks may talk
    /// to each other from several threads at once (with MPI: if it was initialised with
    /// `MPI_THREAD_MULTIPLE`); otherwise it is done when this returns.
    ///
    /// Whatever needs the data to be in the file ([`Dataset::flush`], sync, close, redefinition, a
    /// collective read, another `flush_start`) waits for it first.
    pub fn flush_start(&mut self) -> Result<FlushToken> {
        self.land()?;
        if self.burst.is_none() {
            return Ok(FlushToken::ready());
        }
        if !self.base.comm.all(self.base.comm.may_use_threads())? {
            self.flush()?;
            return Ok(FlushToken::ready());
        }
        let Some(mut burst) = self.burst.take() else { return Ok(FlushToken::ready()) };
        let started = self.take_off(&mut burst);
        self.burst = Some(burst);
        started
    }

    fn take_off(&mut self, burst: &mut Burst) -> Result<FlushToken> {
        let mut report = Report::default();
        let written = burst.pairs().iter_mut().try_for_each(|pair| pair.writer.flush(&mut report));
        let mine = [self.records, burst.has_entries().into()];
        let [records, any] = self.agree_with(written, mine)?;
        self.records = records;
        let epoch = burst.epoch;
        burst.next_epoch();
        if any == 0 {
            return Ok(FlushToken::ready());
        }
        let base = &self.base;
        let slot = 1 - burst.slot;
        let next = match burst.spare.take() {
            Some(pair) => pair,
            None => burst.session.make(base, slot)?,
        };
        burst.slot = slot;
        let pairs = std::mem::replace(burst.pairs(), vec![next]);
        let reader = base.agree(Reader::new(pairs.iter().map(Pair::source).collect(), None));
        let mut lower_base = base.clone();
        lower_base.comm = base.comm.duplicate()?;
        let header = self.header.clone();
        let (file, renamed) = (self.file.clone(), false);
        let committed = Committed { file, renamed, container: None, heap: None };
        let existing = burst.records;
        let mut lower =
            Dataset::new(lower_base, (committed, header, existing), self.fills.clone(), None);
        let done = Arc::new(AtomicBool::new(false));
        let flag = done.clone();
        let work = move || -> Landed {
            let outcome = reader.and_then(|mut reader| {
                lower.replay(&mut reader, (existing, records), Damaged::Fails)
            });
            let report = *lower.report();
            flag.store(true, Ordering::Release);
            (outcome, report)
        };
        let name = format!("flush of rank {}", base.comm.rank());
        let (hand_over, take) = std::sync::mpsc::channel::<Box<dyn FnOnce() -> Landed + Send>>();
        let thread = Builder::new().name(name).spawn(move || match take.recv() {
            Ok(work) => work(),
            Err(_) => (Err(Error::Garbled), Report::default()),
        });
        let work = match thread {
            Ok(thread) => {
                // It waits for this, so that it is there to take it.
                let _ = hand_over.send(Box::new(work));
                Work::Thread(thread)
            }
            // The others' threads count on this rank.
            Err(_) => Work::Over(Box::new(work())),
        };
        let flight = Flight { pairs, epoch, records, done: done.clone(), work: Some(work) };
        burst.flight = Some(flight);
        burst.seen = Default::default();
        Ok(FlushToken { done })
    }

    /// Waits for a flush that was begun, and tells how it ended. Collective. After an error the
    /// data are still in the logs, and the next flush tries again.
    pub fn flush_wait(&mut self, token: FlushToken) -> Result<()> {
        let is_this = |flight: &Flight| Arc::ptr_eq(&flight.done, &token.done);
        match self.burst.as_ref().and_then(|burst| burst.flight.as_ref()) {
            Some(flight) if is_this(flight) => self.land(),
            // Something else waited for it.
            _ => Ok(()),
        }
    }

    /// Ends a flush in the background, if there is one.
    pub(crate) fn land(&mut self) -> Result<()> {
        let Some(burst) = &mut self.burst else { return Ok(()) };
        let Some(mut flight) = burst.flight.take() else { return Ok(()) };
        let (outcome, report) = flight.wait();
        self.report.merge(&report);
        burst.seen = Default::default();
        let mut pairs = std::mem::take(&mut flight.pairs);
        if outcome.is_err() {
            // They come before what was written meanwhile, as they did.
            pairs.append(burst.pairs());
            *burst.pairs() = pairs;
            return outcome;
        }
        burst.file_has(flight.records);
        self.header.numrecs = esker_format::NumRecs::Count(flight.records);
        let mut scratch = Report::default();
        let emptied = restart(&mut pairs, &self.base, flight.epoch, &mut scratch);
        burst.spare = pairs.pop();
        self.base.agree(emptied)
    }
}
