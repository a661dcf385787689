//! A flush while the program goes on: the logs so far are sealed, a thread of each rank moves them
//! to the file, and what is written meanwhile goes into a second pair.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use esker_comm::CommunicatorExt;
use esker_format::{Header, NumRecs};
use esker_store::{File, Locked};

use super::replay::{Damaged, Logs};
use super::session::Pair;
use super::{Burst, restart};
use crate::chunked::Chunked;
use crate::commit::Committed;
use crate::dataset::Dataset;
use crate::error::Result;
use crate::log::LogSource;
use crate::pending::Pending;
use crate::report::Report;

/// A flush under way.
#[derive(Debug)]
pub(super) struct Flight {
    /// Sealed logs, which readers look at until it has landed.
    pairs: Vec<Pair>,
    /// Their last epoch.
    epoch: u64,
    /// Records that the file has afterwards.
    records: u64,
    landing: Arc<OnceLock<Landing>>,
}

/// How it ended. Why it failed is in the token.
#[derive(Debug)]
struct Landing {
    is_well: bool,
    report: Report,
    /// What has become of a file with chunked variables.
    chunks: Mutex<Option<AfterChunks>>,
}

/// The file with chunked variables after a flush, well or not.
#[derive(Debug)]
struct AfterChunks {
    file: Arc<dyn File>,
    renamed: bool,
    header: Header,
    chunked: Box<Chunked>,
    lock: Option<Locked>,
}

impl Flight {
    pub(super) fn sources(&self) -> impl Iterator<Item = LogSource> {
        self.pairs.iter().map(Pair::source)
    }
}

impl Dataset {
    /// Begins to move what is in the burst buffer to the file and returns; the program may go on
    /// writing and reading. Collective. The I/O thread of each rank does the work, where ranks may
    /// talk to each other from several threads at once (with MPI: if it was initialised with
    /// `MPI_THREAD_MULTIPLE`); otherwise it is done when this returns.
    ///
    /// The token says how it ended; [`Dataset::flush_wait`] also empties the logs. Whatever needs
    /// the data to be in the file ([`Dataset::flush`], sync, close, redefinition, a collective
    /// read, another `flush_start`) waits for it first. After a failure the data are still in the
    /// logs, and these calls try again: so nothing is lost when the token is dropped, and an
    /// error that lasts is theirs.
    pub fn flush_start(&mut self) -> Result<Pending<()>> {
        self.land()?;
        let Some(mut burst) = self.burst.take() else {
            return Ok(Pending::ready(self.complete_puts()));
        };
        // After a flush that failed both slots are in use.
        let comm = &self.base.comm;
        let can = comm.may_use_threads() && comm.may_duplicate() && burst.has_a_slot();
        let can = self.base.comm.all(can);
        let started = match can {
            Ok(true) => self.take_off(&mut burst),
            Ok(false) => Ok(Pending::ready(self.flush_logs(&mut burst))),
            Err(error) => Err(error.into()),
        };
        self.rejoin(Some(burst));
        started
    }

    fn take_off(&mut self, burst: &mut Burst) -> Result<Pending<()>> {
        let mut report = Report::default();
        let written = burst.pairs().iter_mut().try_for_each(|pair| pair.writer.flush(&mut report));
        let mine = [self.records, burst.has_entries().into()];
        let [records, any] = self.base.agree_with(written, mine)?;
        self.records = records;
        let epoch = burst.epoch;
        burst.next_epoch();
        if any == 0 {
            return Ok(Pending::ready(Ok(())));
        }
        let base = &self.base;
        let slot = 1 - burst.slot;
        let next = match burst.spare.take() {
            Some(pair) => pair,
            None => burst.session.make(base, slot)?,
        };
        burst.slot = slot;
        let pairs = std::mem::replace(burst.pairs(), vec![next]);
        let mut logs = Logs::new(pairs.iter().map(Pair::source).collect(), None, &base.hints);
        let mut lower_base = base.clone();
        lower_base.comm = base.comm.duplicate()?;
        let header = self.header.clone();
        let (file, renamed) = (self.file.clone(), false);
        let (container, heap, lock) = (None, None, None);
        let spread = self.spread.clone();
        let committed = Committed { file, renamed, container, heap, spread, lock };
        let existing = burst.records;
        let mut lower =
            Dataset::new(lower_base, (committed, header, existing), self.fills.clone(), None);
        if let (Some(chunked), Some(own)) = (&mut lower.chunked, &self.chunked) {
            // Readers go by tables that they have looked at, until it has landed.
            chunked.take_off(own);
            // It may move the file, and the lock with it.
            lower.lock = self.lock.take();
        }
        let landing = Arc::new(OnceLock::new());
        let told = landing.clone();
        let token = self.io.start(move || {
            let outcome = lower.replay(&mut logs, (existing, records), Damaged::Fails);
            let report = *lower.report();
            let (is_well, chunks) = (outcome.is_ok(), Mutex::new(lower.after_chunks()));
            let _ = told.set(Landing { is_well, report, chunks });
            outcome
        });
        burst.flight = Some(Flight { pairs, epoch, records, landing });
        burst.seen = Default::default();
        Ok(token)
    }

    /// What a flush in the background leaves to the dataset that it was begun by.
    fn after_chunks(&mut self) -> Option<AfterChunks> {
        let chunked = self.chunked.take()?;
        let (file, header, lock) = (self.file.clone(), self.header.clone(), self.lock.take());
        Some(AfterChunks { file, renamed: self.is_renamed(), header, chunked, lock })
    }

    /// Goes on with the file, the tables and the heap as a flush has left them.
    fn take_over(&mut self, after: AfterChunks) {
        let AfterChunks { file, renamed, header, mut chunked, lock } = after;
        self.lock = lock;
        chunked.land();
        // Room for chunks has moved everything, to another file or within this one.
        match Arc::ptr_eq(&file, &self.file) && header.layout == self.header.layout {
            true => self.header = header,
            false => self.file_moved(file, renamed, header),
        }
        self.chunked = Some(chunked);
        self.forget_chunks();
    }

    /// Waits for a flush that was begun, tells how it ended, and empties its logs. Collective. After
    /// an error the data are still in the logs, and the next flush tries again.
    pub fn flush_wait(&mut self, token: Pending<()>) -> Result<()> {
        let outcome = token.wait();
        self.land()?;
        outcome
    }

    /// Ends a flush in the background, if there is one. After a failure, which its token tells,
    /// everything is in the logs again. Collective.
    pub(crate) fn land(&mut self) -> Result<()> {
        let Some(burst) = &mut self.burst else { return Ok(()) };
        let Some(mut flight) = burst.flight.take() else { return Ok(()) };
        // Reads too: they look at what is cut now.
        self.io.drain();
        burst.seen = Default::default();
        let mut pairs = std::mem::take(&mut flight.pairs);
        let landing = flight.landing.get();
        if let Some(landing) = landing {
            self.report.merge(&landing.report);
            let mut chunks = landing.chunks.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(after) = chunks.take() {
                self.take_over(after);
            }
        }
        let Some(burst) = &mut self.burst else { return Ok(()) };
        if !landing.is_some_and(|landing| landing.is_well) {
            // They come before what was written meanwhile, as they did.
            pairs.append(burst.pairs());
            *burst.pairs() = pairs;
            return Ok(());
        }
        burst.file_has(flight.records);
        let mut scratch = Report::default();
        let emptied = restart(&mut pairs, &self.base, flight.epoch, &mut scratch);
        burst.spare = pairs.pop();
        self.header.numrecs = NumRecs::Count(flight.records);
        self.were_begun(flight.records);
        self.base.agree(emptied)
    }
}
