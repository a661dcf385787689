//! A flush while the program goes on: the logs so far are sealed, a thread of each rank moves them
//! to the file, and what is written meanwhile goes into a second pair.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use esker_comm::CommunicatorExt;
use esker_format::{Header, NumRecs};
use esker_store::{File, Locked};

use super::layout::Buffered;
use super::replay::{Damaged, Logs};
use super::restart;
use super::session::Pair;
use crate::chunked::Chunked;
use crate::commit::Committed;
use crate::counting::Begun;
use crate::dataset::Dataset;
use crate::error::Result;
use crate::ground::Ground;
use crate::layout::Several;
use crate::log::LogSource;
use crate::opening;
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
    begun: Option<Begun>,
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
        let Dataset { ground, layout, .. } = self;
        match layout.get_mut::<Buffered>() {
            Some(buffered) => buffered.flush_start(ground),
            None => Ok(Pending::ready(self.complete_puts())),
        }
    }

    /// Waits for a flush that was begun, tells how it ended, and empties its logs. Collective. After
    /// an error the data are still in the logs, and the next flush tries again.
    pub fn flush_wait(&mut self, token: Pending<()>) -> Result<()> {
        let outcome = token.wait();
        if let Some(buffered) = self.layout.get_mut::<Buffered>() {
            buffered.land(&mut self.ground)?;
        }
        outcome
    }

    /// What a flush in the background leaves to the dataset that it was begun by.
    fn after_chunks(mut self) -> Option<AfterChunks> {
        let chunked = Several::take(self.layout)?;
        let Ground { file, header, renamed, begun, .. } = &self.ground;
        let (file, header, renamed, begun) =
            (file.clone(), header.clone(), *renamed, begun.clone());
        Some(AfterChunks { file, renamed, header, chunked, begun, lock: self.ground.lock.take() })
    }
}

impl Buffered {
    fn flush_start(&mut self, ground: &mut Ground) -> Result<Pending<()>> {
        self.land(ground)?;
        // After a flush that failed both slots are in use.
        let comm = &ground.base.comm;
        let can = comm.may_use_threads() && comm.may_duplicate() && self.burst.has_a_slot();
        let started = match comm.all(can) {
            Ok(true) => self.take_off(ground),
            Ok(false) => Ok(Pending::ready(self.flush_logs(ground))),
            Err(error) => Err(error.into()),
        };
        self.stand_again(ground);
        started
    }

    fn take_off(&mut self, ground: &mut Ground) -> Result<Pending<()>> {
        let burst = &mut self.burst;
        let mut report = Report::default();
        let written = burst.pairs().iter_mut().try_for_each(|pair| pair.writer.flush(&mut report));
        let mine = [ground.records, burst.has_entries().into()];
        let [records, any] = ground.base.agree_with(written, mine)?;
        ground.records = records;
        let epoch = burst.epoch;
        burst.next_epoch();
        if any == 0 {
            return Ok(Pending::ready(Ok(())));
        }
        let base = &ground.base;
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
        let header = ground.header.clone();
        let (file, renamed) = (ground.file.clone(), false);
        let (container, heap, lock) = (None, None, None);
        let volume = ground.volume.clone();
        let committed = Committed { file, renamed, container, heap, volume, lock, rest: None };
        let existing = burst.records;
        let fills = ground.fills.clone();
        let mut lower = opening::dataset(lower_base, (committed, header, existing), fills);
        if let (Some(chunked), Some(own)) = (lower.layout.get_mut(), self.under.get::<Chunked>()) {
            // Readers go by tables that they have looked at, until it has landed.
            Chunked::take_off(chunked, own);
            lower.ground.begun = ground.begun.clone();
            // It may move the file, and the lock with it.
            lower.ground.lock = ground.lock.take();
        }
        let landing = Arc::new(OnceLock::new());
        let told = landing.clone();
        let token = ground.io.start(move || {
            let outcome = lower.replaying().replay(&mut logs, (existing, records), Damaged::Fails);
            let report = *lower.report();
            let (is_well, chunks) = (outcome.is_ok(), Mutex::new(lower.after_chunks()));
            let _ = told.set(Landing { is_well, report, chunks });
            outcome
        });
        burst.flight = Some(Flight { pairs, epoch, records, landing });
        burst.seen = Default::default();
        Ok(token)
    }

    /// Goes on with the file, the tables and the heap as a flush has left them.
    fn take_over(&mut self, ground: &mut Ground, after: AfterChunks) {
        let AfterChunks { file, renamed, header, mut chunked, begun, lock } = after;
        (ground.lock, ground.begun) = (lock, begun);
        chunked.land();
        // Room for chunks has moved everything, to another file or within this one.
        match Arc::ptr_eq(&file, &ground.file) && header.layout == ground.header.layout {
            true => ground.header = header,
            false => ground.file_moved(file, renamed, header),
        }
        ground.shown = Some(chunked.schema.clone());
        chunked.forget_chunks(ground);
        if let Some(own) = self.under.get_mut::<Chunked>() {
            *own = *chunked;
        }
    }

    /// Ends a flush in the background, if there is one. After a failure, which its token tells,
    /// everything is in the logs again. Collective.
    pub(crate) fn land(&mut self, ground: &mut Ground) -> Result<()> {
        let Some(mut flight) = self.burst.flight.take() else { return Ok(()) };
        // Reads too: they look at what is cut now.
        ground.io.drain();
        self.burst.seen = Default::default();
        let mut pairs = std::mem::take(&mut flight.pairs);
        let landing = flight.landing.get();
        if let Some(landing) = landing {
            ground.report.merge(&landing.report);
            let mut chunks = landing.chunks.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(after) = chunks.take() {
                self.take_over(ground, after);
            }
        }
        self.stand_again(ground);
        let burst = &mut self.burst;
        if !landing.is_some_and(|landing| landing.is_well) {
            // They come before what was written meanwhile, as they did.
            pairs.append(burst.pairs());
            *burst.pairs() = pairs;
            return Ok(());
        }
        burst.file_has(flight.records);
        let mut scratch = Report::default();
        let emptied = restart(&mut pairs, &ground.base, flight.epoch, &mut scratch);
        burst.spare = pairs.pop();
        ground.header.numrecs = NumRecs::Count(flight.records);
        ground.were_begun(flight.records);
        ground.base.agree(emptied)
    }
}
