//! The burst buffer: what is written to a classic file goes into a log first, on a faster device.
//!
//! `names` says where the logs are, `session` makes them, `patient` is a log's file on a device that
//! may be full, `reader` and `portion` turn entries back into requests, `replay` moves those to the
//! classic file, `found` and `recover` are for logs that somebody left.

mod background;
mod chunks;
mod found;
mod layout;
mod names;
mod patient;
mod portion;
mod reader;
mod recover;
mod replay;
mod session;

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use esker_format::Header;
use esker_store::File;

pub(crate) use layout::{Buffered, Overlaid};
pub use recover::{RecoverOptions, Recovery, recover};

use self::background::Flight;
use self::replay::{Damaged, Logs, Replaying};
use self::session::{BESIDE, Pair, Session};
use crate::base::Base;
use crate::bounded::CacheUse;
use crate::chunked::Chunked;
use crate::dataset::Dataset;
use crate::error::{Error, Result};
use crate::ground::Ground;
use crate::hints::Hints;
use crate::layout::Stage;
use crate::log::{Index, Lengths, LogSource, View};
use crate::report::Report;
use crate::request::Request;

/// Bytes of a lane's block in shared metadata and data files.
const META_BLOCK: u64 = 256 << 10;
const DATA_BLOCK: u64 = 8 << 20;

/// The logs before a classic file.
#[derive(Debug)]
pub(crate) struct Burst {
    session: Session,
    /// What is appended to, the last of them; reading needs what was written to be in the files,
    /// and threads read at the same time.
    pairs: Mutex<Vec<Pair>>,
    /// The slot of the first of them.
    slot: u32,
    /// The pair that is not in use, once there was a flush in the background.
    spare: Option<Pair>,
    flight: Option<Flight>,
    /// Collective calls so far.
    epoch: u64,
    /// Records that the file has.
    records: u64,
    view: Option<Arc<View>>,
    seen: Mutex<Seen>,
    notes: Vec<String>,
    /// Whether the names of the logs are safe from power loss.
    named: bool,
}

/// What the view's index has.
#[derive(Debug, Default)]
struct Seen {
    /// Whether it has the logs that there are.
    logs: bool,
    lengths: Vec<Lengths>,
}

impl Burst {
    /// Tells what is known of the dataset already.
    pub(crate) fn note(&mut self, notes: &[String]) {
        let new = notes.iter().filter(|note| !self.notes.contains(note));
        let new: Vec<String> = new.cloned().collect();
        self.notes.extend(new);
    }

    /// Begins to log, if that is wanted. Collective.
    /// Who may read the file `like`, the dataset's, may read them.
    pub(crate) fn start(base: &Base, like: &Path) -> Result<Option<Box<Burst>>> {
        if !base.hints.burst_buf.is_on() || !base.writable {
            return Ok(None);
        }
        let session = Session::begin(base, like)?;
        let pair = session.make(base, 0)?;
        Ok(Some(Box::new(Burst {
            session,
            pairs: Mutex::new(vec![pair]),
            slot: 0,
            spare: None,
            flight: None,
            epoch: 0,
            records: 0,
            view: None,
            seen: Mutex::default(),
            notes: Vec::new(),
            named: false,
        })))
    }

    /// The classic file behind the logs is this one now.
    pub(crate) fn stands_before(
        &mut self,
        base: &Base,
        file: &Arc<dyn File>,
        header: &Header,
        chunked: Option<&Chunked>,
    ) {
        let index = Index::new(base.hints.index_memory as usize);
        let view = View::new(base.path.clone(), Some(file.clone()), index, header.clone());
        let anchors = chunked.iter().flat_map(|chunked| chunked.anchors()).collect();
        let view = view.comparing(base.hints.checksums.of_stored());
        view.change().leave_out(anchors);
        view.change().under_records = self.records;
        self.view = Some(Arc::new(view));
        self.seen = Mutex::default();
    }

    /// Whether what it shows underneath the logs is this file, with variables in these places. (A file without
    /// records gets more room for chunks in its place.)
    pub(crate) fn is_before(&self, file: &Arc<dyn File>, header: &Header) -> bool {
        let same = |view: &Arc<View>| {
            let under = view.under().is_some_and(|under| Arc::ptr_eq(under, file));
            under && view.state().header().layout == header.layout
        };
        self.view.as_ref().is_some_and(same)
    }

    /// What its caches hold.
    pub(crate) fn caches(&self, hints: &Hints) -> Vec<CacheUse> {
        let pairs = self.pairs.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes = pairs.iter().map(|pair| pair.writer.cached()).sum();
        let budget = hints.cache / 2 * pairs.len() as u64;
        let mut all = vec![CacheUse { what: "footprints written", bytes, budget }];
        all.extend(self.view.iter().flat_map(|view| view.cached()));
        all
    }

    fn pairs(&mut self) -> &mut Vec<Pair> {
        self.pairs.get_mut().unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends to this rank's log; beside the classic file, when the burst buffer is full. The
    /// records that a rank has never go ahead of those of its log.
    pub(crate) fn append(
        &mut self,
        base: &Base,
        put: &mut Request<'_>,
        step: u64,
        report: &mut Report,
    ) -> Result<()> {
        let epoch = self.epoch;
        let pairs = self.pairs();
        let Some(last) = pairs.last_mut() else { return Ok(()) };
        // What a full device did not take is in memory, which is not to grow.
        let appended = match last.is_full() {
            false => last.writer.append(put, step, epoch, None, report),
            true => Err(full(base, last.beside)),
        };
        let Err(error) = appended else { return Ok(()) };
        if !is_full(&error) || self.pairs().last().is_some_and(|pair| pair.beside) {
            return Err(error);
        }
        let slot = BESIDE + self.slot;
        let beside = match self.session.make_beside(base, slot) {
            Ok(pair) => pair,
            // The first failure is what the caller should hear of.
            Err(_) => return Err(error),
        };
        self.notes.push(format!(
            "the burst buffer {} is full: the log goes on beside the file until the next flush",
            self.session.dir.display()
        ));
        self.pairs().push(beside);
        self.seen = Mutex::default();
        let Some(last) = self.pairs().last_mut() else { return Ok(()) };
        // What was appended of it before the device was full comes again, with the same values.
        last.writer.append(put, step, epoch, None, report)
    }

    /// Whether the next collective call should flush.
    pub(crate) fn is_over(&mut self, base: &Base) -> bool {
        let limit = base.hints.burst_limit;
        let pairs = self.pairs();
        let payload: u64 = pairs.iter().map(|pair| pair.writer.payload()).sum();
        (limit > 0 && payload > limit) || pairs.iter().any(Pair::is_full)
    }

    /// Whether there is room for a second pair of logs.
    fn has_a_slot(&mut self) -> bool {
        self.pairs().iter().filter(|pair| !pair.beside).count() < 2
    }

    fn has_entries(&mut self) -> bool {
        self.pairs().iter().any(|pair| pair.writer.payload() > 0)
    }

    /// The next collective call begins: what was written so far is older than what comes.
    pub(crate) fn next_epoch(&mut self) {
        self.epoch += 1;
    }

    /// What independent reads look at: the file with this rank's own entries over it.
    pub(crate) fn see(&self, records: u64) -> Result<Option<Arc<View>>> {
        let Some(view) = &self.view else { return Ok(None) };
        // In the order of the locks: first what was seen.
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let mut pairs = self.pairs.lock().unwrap_or_else(PoisonError::into_inner);
        if self.flight.is_none() && pairs.iter().all(|pair| pair.writer.payload() == 0) {
            return Ok(None);
        }
        let mut lengths = Vec::new();
        for pair in pairs.iter_mut() {
            pair.writer.flush(&mut Report::default())?;
            lengths.push(pair.writer.lengths());
        }
        if seen.logs && seen.lengths == lengths {
            // Without waiting for whoever reads just now.
            view.have_records(records);
            return Ok(Some(view.clone()));
        }
        let mut state = view.change();
        if !seen.logs {
            seen.logs = true;
            seen.lengths.clear();
            let budget = state.index.budget();
            state.renew_index(budget);
            let sealed = self.flight.iter().flat_map(|flight| flight.sources());
            let sources = sealed.chain(pairs.iter().map(Pair::source));
            // Each log of this rank begins where the one before it ended.
            for (session, source) in (0..).zip(sources) {
                let orders = LogSource::in_one_session(session);
                state.index.add(LogSource { orders, ..source });
            }
        }
        if seen.lengths != lengths {
            let logs = state.index.logs.len();
            state.index.catch_up(0..logs)?;
            seen.lengths = lengths;
        }
        drop(state);
        view.have_records(records);
        Ok(Some(view.clone()))
    }

    /// The file has so many records.
    pub(crate) fn file_has(&mut self, records: u64) {
        self.records = records;
        if let Some(view) = &self.view {
            view.change().under_records = records;
        }
    }

    /// The header has changed, but no place of a variable.
    pub(crate) fn amend(&self, header: &Header) {
        if let Some(view) = &self.view {
            view.change().set_header(header.clone());
        }
    }

    /// Everything up to the epoch before is in the file, which has so many records.
    fn begin_anew(&mut self, base: &Base, epoch: u64, report: &mut Report) -> Result<()> {
        self.seen = Mutex::default();
        let mut pairs = std::mem::take(self.pairs());
        let outcome = restart(&mut pairs, base, epoch, report);
        // Two are left after a flush in the background that failed.
        if pairs.len() > 1 {
            self.spare = Some(pairs.remove(0));
        }
        *self.pairs() = pairs;
        outcome
    }

    /// Waits until the logs are known to be empty even after a loss of power.
    pub(crate) fn sync(&mut self, base: &Base) -> Result<()> {
        let names = !std::mem::replace(&mut self.named, true);
        let spare = self.spare.take();
        let synced = self.pairs().iter().chain(&spare).try_for_each(|pair| pair.sync(base, names));
        self.spare = spare;
        synced
    }

    /// Removes the files of logs that are empty, as well as it can be done.
    pub(crate) fn discard(&mut self, base: &Base) {
        let spare = self.spare.take();
        for pair in self.pairs().iter().chain(&spare) {
            let _ = pair.remove(base);
        }
        self.session.remove_dir(base);
    }

    /// Removes the files, when everything is in the classic one. Collective.
    pub(crate) fn remove(&mut self, base: &Base) -> Result<()> {
        if !base.hints.burst_del_on_close.is_on() {
            return Ok(());
        }
        let spare = self.spare.take();
        let removed = self.pairs().iter().chain(&spare).try_for_each(|pair| pair.remove(base));
        base.agree(removed)?;
        self.session.remove_dir(base);
        Ok(())
    }
}

/// Empties logs whose entries are in the file, and removes those beside it.
fn restart(pairs: &mut Vec<Pair>, base: &Base, epoch: u64, report: &mut Report) -> Result<()> {
    // The oldest first: as long as a later one is there, one of them says what was replayed.
    pairs.iter_mut().try_for_each(|pair| pair.restart(epoch, report))?;
    let is_beside = |pair: &Pair| pair.beside;
    let removed = pairs.iter().filter(|p| is_beside(p)).try_for_each(|pair| pair.remove(base));
    pairs.retain(|pair| !is_beside(pair));
    removed
}

fn is_full(error: &Error) -> bool {
    matches!(error, Error::Store(error) if patient::is_full(error))
}

fn full(base: &Base, beside: bool) -> Error {
    let kind = std::io::ErrorKind::StorageFull;
    let device = match beside {
        false => base.hints.burst_dirname.clone().into(),
        true => names::directory_of(&base.path),
    };
    esker_store::StoreError::new(device, "append", kind.into()).into()
}

impl Buffered {
    /// Moves what is in the logs to the layout under them. Collective.
    pub(super) fn flush(&mut self, ground: &mut Ground) -> Result<()> {
        ground.base.require_own_process()?;
        self.land(ground)?;
        // Reads in the background look at what is cut then.
        ground.io.drain();
        let outcome = self.flush_logs(ground);
        self.stand_again(ground);
        outcome
    }

    fn flush_logs(&mut self, ground: &mut Ground) -> Result<()> {
        let burst = &mut self.burst;
        let mut report = Report::default();
        let written = burst.pairs().iter_mut().try_for_each(|pair| pair.writer.flush(&mut report));
        let mine = [ground.records, burst.has_entries().into()];
        let [records, any] = ground.base.agree_with(written, mine)?;
        let epoch = burst.epoch;
        burst.next_epoch();
        if any == 0 {
            return ground.grow_together(records);
        }
        ground.records = records;
        let sources = burst.pairs().iter().map(Pair::source).collect();
        let existing = burst.records;
        let mut logs = Logs::new(sources, None, &ground.base.hints);
        let mut replaying = Replaying { ground, chunked: self.under.get_mut() };
        replaying.replay(&mut logs, (existing, records), Damaged::Fails)?;
        burst.file_has(records);
        let emptied = burst.begin_anew(&ground.base, epoch, &mut report);
        ground.report.writes += report.writes;
        ground.base.agree(emptied)
    }
}

impl Dataset {
    /// Moves what is in the burst buffer to the file, where every other reader sees it. Collective.
    /// Without a burst buffer there is nothing to move.
    pub fn flush(&mut self) -> Result<()> {
        self.layout.settle(&mut self.ground, Stage::Brought)
    }

    /// What happened that the program may want to know: a burst buffer that was full, or one that was
    /// asked for where it has no use; versions of a container that are newer than the one that is read and
    /// cannot be; records that were begun and are not counted; variables that are not what they were when they were
    /// written, so that what has their names may be others.
    pub fn notes(&self) -> &[String] {
        self.layout.notes().unwrap_or(&self.ground.base.notes)
    }
}
