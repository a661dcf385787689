//! Windows of the file as units: each aggregator owns one in every round, two-phase as ROMIO does it.

use std::cell::Cell;
use std::mem;
use std::thread::{self, Scope, ScopedJoinHandle};
use std::time::{Duration, Instant};

use esker_comm::{Communicator, Message};
use esker_store::File;

use crate::comb::Comb;
use crate::error::{Error, Result};
use crate::exchange::{self, Got, Sink, Source, Unit, Units, With};
use crate::hints::{Automatic, Hints};
use crate::near::{Looking, Near, Sharing};
use crate::notes::Notes;
use crate::plan::{Overlap, Plan, Sweep};
use crate::report::{Report, Tally};
use crate::request::Request;
use crate::rounds::Rounds;
use crate::strategy::{Windows, aggregator_number, aggregator_rank};
use crate::window::{AT_ONCE, Window};
use crate::wire;

/// An exchange over windows of a file.
pub(crate) struct InWindows<'e> {
    pub(crate) comm: &'e dyn Communicator,
    pub(crate) file: &'e dyn File,
    pub(crate) hints: &'e Hints,
    pub(crate) windows: Windows,
    /// Told when ranks write the same bytes, if somebody wants to know.
    pub(crate) met: Option<&'e Cell<bool>>,
    /// Whether all ranks are on one node.
    pub(crate) one_node: bool,
}

/// The windows that an owner fills and writes in turn, kept from call to call: fresh memory
/// costs as much as the copy into it.
#[derive(Debug, Default)]
pub(crate) struct Buffers {
    filling: Window,
    spare: Window,
    /// Messages that came and are empty now, for those to be sent.
    messages: Vec<Vec<u8>>,
    /// Windows that all ranks of the node reach.
    near: Near,
}

impl InWindows<'_> {
    /// Writes every rank's pieces. Collective.
    pub(crate) fn write(
        &self,
        plan: &Plan<'_>,
        requests: &mut [Request<'_>],
        buffers: &mut Buffers,
        report: &mut Report,
    ) -> Result<()> {
        let mut notes = Notes::default();
        let (near, road) = self.near(&mut buffers.near)?;
        report.road = road;
        let moved = match near {
            Some(near) => self.write_near(plan, (requests, &mut notes), near, report),
            None => self.write_by_messages(plan, (requests, &mut notes), buffers, report),
        };
        if moved.is_err() {
            buffers.near.leave();
        }
        let failed = moved?;
        notes.tell(requests);
        report.aggregators = self.windows.aggregators;
        failed.map_or(Ok(()), Err)
    }

    /// Through windows in memory that the ranks share; gives what went wrong with this rank's own.
    fn write_near(
        &self,
        plan: &Plan<'_>,
        (puts, notes): (&[Request<'_>], &mut Notes),
        near: &mut Near,
        report: &mut Report,
    ) -> Result<Option<Error>> {
        thread::scope(|scope| {
            let sieve = self.hints.ds_write != Automatic::Disable;
            let mut sink = Sharing::new(self, near, sieve, scope).ok_or(Error::Garbled)?;
            let mut with = With { puts, notes, report };
            exchange::write(self.comm, plan, &mut sink, &mut Vec::new(), &mut with)?;
            let (rounds, failed) = sink.end(report);
            report.rounds += rounds;
            Ok(failed)
        })
    }

    /// Through messages to the owners of windows; gives the same.
    fn write_by_messages(
        &self,
        plan: &Plan<'_>,
        (puts, notes): (&[Request<'_>], &mut Notes),
        buffers: &mut Buffers,
        report: &mut Report,
    ) -> Result<Option<Error>> {
        let Buffers { filling, spare, messages, .. } = buffers;
        thread::scope(|scope| {
            let mut sink = Filling {
                cut: Cut::new(self),
                file: self.file,
                sieve: self.hints.ds_write != Automatic::Disable,
                met: self.met,
                scope,
                window: filling,
                spare,
                waits: false,
                writing: None,
                failed: None,
            };
            let mut with = With { puts, notes, report };
            exchange::write(self.comm, plan, &mut sink, messages, &mut with)?;
            sink.finish_write(report);
            report.rounds += sink.cut.rounds.made;
            Ok(sink.failed)
        })
    }

    /// Reads every rank's pieces. Gives where the file ended too early, if it did. Collective.
    pub(crate) fn read(
        &self,
        plan: &Plan<'_>,
        requests: &mut [Request<'_>],
        buffers: &mut Buffers,
        report: &mut Report,
    ) -> Result<Option<u64>> {
        let hole = if self.hints.ds_read == Automatic::Disable { 0 } else { self.hints.sieve_hole };
        let (near, road) = self.near(&mut buffers.near)?;
        report.road = road;
        report.aggregators = self.windows.aggregators;
        if let Some(near) = near {
            let mut source = Looking::new(self, near, hole).ok_or(Error::Garbled)?;
            let read = exchange::read(self.comm, plan, &mut source, requests, report);
            report.rounds += source.rounds();
            let (failed, short) = (source.failed.take(), source.short);
            drop(source);
            if read.is_err() {
                buffers.near.leave();
            }
            return read.and(failed.map_or(Ok(short), Err));
        }
        let mut source = Fetching {
            cut: Cut::new(self),
            file: self.file,
            hole,
            window: &mut buffers.filling,
            failed: None,
            short: None,
        };
        exchange::read(self.comm, plan, &mut source, requests, report)?;
        report.rounds += source.cut.rounds.made;
        source.failed.map_or(Ok(source.short), Err)
    }
}

/// How the file is cut, as this rank sees it.
pub(crate) struct Cut {
    pub(crate) windows: Windows,
    pub(crate) rounds: Rounds,
    ranks: usize,
    me: usize,
    /// The number of this rank among the aggregators, if it is one.
    pub(crate) mine: Option<u64>,
}

impl Cut {
    pub(crate) fn new(of: &InWindows<'_>) -> Cut {
        let (me, ranks, windows) = (of.comm.rank(), of.comm.size(), of.windows);
        let mine = aggregator_number(me, windows.aggregators as usize, ranks);
        Cut { windows, rounds: Rounds::new(windows), ranks, me, mine: mine.map(|n| n as u64) }
    }

    /// The windows of a round; the own one is made empty.
    fn of_round(&self, round: u64, own: &mut Window) -> Vec<Unit> {
        let count = self.windows.aggregators;
        let unit = |aggregator: u64| {
            let range = self.windows.window(round, aggregator);
            let owner = aggregator_rank(aggregator as usize, count as usize, self.ranks);
            if owner == self.me {
                own.reset(range.start, range.end - range.start);
            }
            Unit { owner, start: range.start, end: range.end, bytes: 0 }
        };
        (0..count).map(unit).filter(|unit| unit.start < unit.end).collect()
    }
}

/// A window on its way to the store.
type Writing<'s> = ScopedJoinHandle<'s, (Window, Result<()>, Tally, Duration)>;

/// Windows that are filled and written.
struct Filling<'s, 'e, 'w> {
    cut: Cut,
    file: &'e dyn File,
    sieve: bool,
    met: Option<&'w Cell<bool>>,
    scope: &'s Scope<'s, 'e>,
    window: &'w mut Window,
    spare: &'w mut Window,
    /// What the last write of a window told about the store.
    waits: bool,
    writing: Option<Writing<'s>>,
    failed: Option<Error>,
}

impl Units for Filling<'_, '_, '_> {
    const ASCEND: bool = true;

    fn next_round(
        &mut self,
        comm: &dyn Communicator,
        sweep: &Sweep<'_, '_>,
    ) -> Result<Option<u64>> {
        self.cut.rounds.next(comm, sweep)
    }

    fn of_round(&mut self, round: u64) -> Vec<Unit> {
        self.cut.of_round(round, self.window)
    }

    fn memory(&self) -> u64 {
        self.window.memory() + self.spare.memory()
    }
}

impl Sink for Filling<'_, '_, '_> {
    fn own(
        &mut self,
        unit: &Unit,
        sweep: &mut Sweep<'_, '_>,
        with: &mut With<'_, '_>,
    ) -> Result<()> {
        let taken = sweep.take_together(unit.start, unit.end, Overlap::LaterWins);
        with.report.copied += taken.bytes();
        taken.lay(self.window, with.puts, with.notes)
    }

    fn put(&mut self, _: u64, came: Vec<Message>, report: &mut Report) -> Result<Vec<Message>> {
        let clock = Instant::now();
        for message in &came {
            if let Some(met) = self.met.filter(|met| !met.get()) {
                met.set(meets(self.window, message)?);
            }
            for section in wire::sections(message) {
                let (_, place) = section.ok_or(Error::Garbled)?;
                report.copied += self.window.lay_section(&message[place])?;
            }
        }
        report.phases.convert += clock.elapsed();
        self.finish_write(report);
        if self.cut.mine.is_none() || self.failed.is_some() {
            return Ok(came);
        }
        if self.waits && self.cut.rounds.go_on() {
            let (mut full, file, sieve) = (mem::take(self.window), self.file, self.sieve);
            mem::swap(self.window, self.spare);
            self.writing = Some(self.scope.spawn(move || {
                let clock = Instant::now();
                let mut tally = Tally::default();
                let outcome = full.write(file, sieve, &mut tally);
                (full, outcome, tally, clock.elapsed())
            }));
            return Ok(came);
        }
        let clock = Instant::now();
        let mut tally = Tally::default();
        self.failed = self.window.write(self.file, self.sieve, &mut tally).err();
        let time = clock.elapsed();
        self.waits = tally.bytes_written as f64 / AT_ONCE < time.as_secs_f64();
        report.add(tally);
        report.phases.write += time;
        Ok(came)
    }
}

impl Filling<'_, '_, '_> {
    /// Waits for a window that is being written.
    fn finish_write(&mut self, report: &mut Report) {
        let Some(writing) = self.writing.take() else { return };
        match writing.join() {
            Ok((window, outcome, tally, time)) => {
                report.add(tally);
                report.phases.write += time;
                *self.spare = window;
                self.failed = self.failed.take().or(outcome.err());
            }
            // A panic in the store is the store's; it goes on in this thread.
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}

/// Windows that are fetched and looked at.
struct Fetching<'e, 'w> {
    cut: Cut,
    file: &'e dyn File,
    /// Holes of so many bytes are read along.
    hole: u64,
    window: &'w mut Window,
    failed: Option<Error>,
    /// Where the file ended too early.
    short: Option<u64>,
}

impl Units for Fetching<'_, '_> {
    const ASCEND: bool = true;

    fn next_round(
        &mut self,
        comm: &dyn Communicator,
        sweep: &Sweep<'_, '_>,
    ) -> Result<Option<u64>> {
        self.cut.rounds.next(comm, sweep)
    }

    fn of_round(&mut self, round: u64) -> Vec<Unit> {
        self.cut.of_round(round, self.window)
    }

    fn memory(&self) -> u64 {
        self.window.memory()
    }
}

impl Source for Fetching<'_, '_> {
    const BY_RUNS: bool = true;

    /// A window is as long as it is because of what is wanted of it.
    const WHOLE: u64 = u64::MAX;

    fn want(&mut self, comb: &Comb) {
        self.window.want(comb, self.hole);
    }

    fn get(
        &mut self,
        round: u64,
        report: &mut Report,
        give: &mut dyn FnMut(&[Got<'_>], &mut Report) -> Result<()>,
    ) -> Result<()> {
        let Some(number) = self.cut.mine else { return give(&[], report) };
        let clock = Instant::now();
        let mut tally = Tally::default();
        match self.window.fetch(self.file, self.hole, &mut tally) {
            Ok(end) => self.short = self.short.or(end),
            // The askers get their bytes all the same, and the error at the end.
            Err(error) => self.failed = self.failed.take().or(Some(error)),
        }
        report.add(tally);
        report.phases.read += clock.elapsed();
        let clock = Instant::now();
        let range = self.cut.windows.window(round, number);
        let (start, bytes) = (self.window.start(), self.window.all());
        let got = Got { start, end: range.end, bytes, shared: None };
        let given = give(&[got], report);
        report.phases.convert += clock.elapsed();
        given
    }
}

/// Whether a message has a byte that the window has already.
fn meets(window: &Window, message: &[u8]) -> Result<bool> {
    for section in wire::sections(message) {
        let (start, place) = section.ok_or(Error::Garbled)?;
        let (combs, _) = wire::open(&message[place], start).ok_or(Error::Garbled)?;
        if combs.runs().any(|run| window.has_any(run.offset, run.len)) {
            return Ok(true);
        }
    }
    Ok(false)
}
