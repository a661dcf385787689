//! The exchange over windows: the file is cut into windows, each aggregator has one in a round, gets everyone's pieces of
//! it, and writes or reads it with few calls.
//!
//! Windows lie in memory ([`crate::reach`]) that an aggregator shares with the other ranks of its node, or has for itself.
//! Who reaches a window converts straight into it; what the others have of it comes by message, and is laid upon that.

use std::cell::Cell;
use std::mem;
use std::thread::{self, Scope, ScopedJoinHandle};
use std::time::{Duration, Instant};

use esker_comm::{Communicator, Laying, Message};
use esker_store::File;

use crate::comb::Comb;
use crate::error::{Error, Result};
use crate::exchange::{self, Came, Got, Sink, Source, Unit, Units, With};
use crate::gathered;
use crate::hints::Automatic;
use crate::notes::Notes;
use crate::plan::{Overlap, Plan, Sweep};
use crate::reach::{Cut, Place, Reach, Turns};
use crate::report::{Report, Tally};
use crate::request::Request;
use crate::window::{AT_ONCE, Window};
use crate::wire;

/// An exchange over windows of a file.
pub(crate) struct InWindows<'e> {
    pub(crate) cut: Cut<'e>,
    pub(crate) file: &'e dyn File,
    /// Told when ranks write the same bytes, if somebody wants to know.
    pub(crate) met: Option<&'e Cell<bool>>,
}

/// What is kept from call to call: fresh memory costs as much as the copy into it.
#[derive(Debug, Default)]
pub(crate) struct Buffers {
    reach: Reach,
    /// What the file has where something was laid.
    there: Vec<u8>,
    /// Messages that came and are empty now, for those to be sent.
    messages: Vec<Vec<u8>>,
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
        let Buffers { reach, there, messages } = buffers;
        let mut notes = Notes::default();
        let shared: &[Request<'_>] = requests;
        report.aggregators = self.cut.windows.aggregators;
        report.road = reach.prepare(&self.cut)?;
        let moved = thread::scope(|scope| {
            let sieve = self.cut.hints.ds_write != Automatic::Disable;
            let (turns, file, met) = (Turns::new(&self.cut, reach), self.file, self.met);
            let (waits, writing, failed) = (false, None, None);
            let mut sink =
                Filling { turns, file, sieve, met, scope, there, waits, writing, failed };
            let mut with = With { puts: shared, notes: &mut notes, report };
            exchange::write(self.cut.comm, plan, &mut sink, messages, &mut with)?;
            sink.finish_write(report);
            report.rounds += sink.turns.rounds();
            Ok::<_, Error>(sink.failed)
        });
        if moved.is_err() {
            reach.leave();
        }
        let failed = moved?;
        notes.tell(requests);
        failed.map_or(Ok(()), Err)
    }

    /// Reads every rank's pieces. Gives where the file ended too early, if it did. Collective.
    pub(crate) fn read(
        &self,
        plan: &Plan<'_>,
        requests: &mut [Request<'_>],
        buffers: &mut Buffers,
        report: &mut Report,
    ) -> Result<Option<u64>> {
        let Buffers { reach, there, .. } = buffers;
        let hole = if self.cut.hints.ds_read == Automatic::Disable {
            0
        } else {
            self.cut.hints.sieve_hole
        };
        report.aggregators = self.cut.windows.aggregators;
        report.road = reach.prepare(&self.cut)?;
        let (turns, file, wants) = (Turns::new(&self.cut, reach), self.file, Vec::new());
        let mut source = Fetching { turns, file, hole, there, wants, failed: None, short: None };
        let read = exchange::read(self.cut.comm, plan, &mut source, requests, report);
        report.rounds += source.turns.rounds();
        let Fetching { failed, short, .. } = source;
        if read.is_err() {
            reach.leave();
        }
        read.and(failed.map_or(Ok(short), Err))
    }
}

/// A window on its way to the store.
type Writing<'s> = ScopedJoinHandle<'s, Written>;

/// What came of a window that was written: memory for the next, the outcome, and what it took.
type Written = (Vec<u8>, Result<()>, Tally, Duration);

/// Windows that are filled and written.
struct Filling<'s, 'e, 'b> {
    turns: Turns<'b>,
    file: &'e dyn File,
    sieve: bool,
    met: Option<&'e Cell<bool>>,
    scope: &'s Scope<'s, 'e>,
    there: &'b mut Vec<u8>,
    /// What the last write of a window told about the store.
    waits: bool,
    writing: Option<Writing<'s>>,
    failed: Option<Error>,
}

impl Units for Filling<'_, '_, '_> {
    const ASCEND: bool = true;

    fn reaches(&self, unit: &Unit, _: usize) -> bool {
        self.turns.place_of(unit.start).is_some()
    }

    fn all_reached(&self) -> bool {
        self.turns.all_reached
    }

    fn next_round(
        &mut self,
        comm: &dyn Communicator,
        sweep: &Sweep<'_, '_>,
    ) -> Result<Option<u64>> {
        self.turns.next_round(comm, sweep)
    }

    fn of_round(&mut self, _: u64) -> Vec<Unit> {
        self.turns.units()
    }

    fn memory(&self) -> u64 {
        self.turns.memory() + self.there.len() as u64
    }
}

impl Sink for Filling<'_, '_, '_> {
    fn own(
        &mut self,
        unit: &Unit,
        sweep: &mut Sweep<'_, '_>,
        with: &mut With<'_, '_>,
    ) -> Result<()> {
        let place = self.turns.place_of(unit.start).ok_or(Error::Garbled)?;
        let taken = sweep.take_together(unit.start, unit.end, Overlap::LaterWins);
        let clock = Instant::now();
        let mut laying = self.turns.lay(place)?;
        with.report.phases.exchange += clock.elapsed();
        with.report.copied += taken.bytes();
        if !place.own {
            with.report.node_bytes += taken.bytes();
        }
        taken.lay(&mut laying, unit.start, with.puts, with.notes)?;
        self.note_meeting(laying.has_lost());
        Ok(laying.finish()?)
    }

    fn put(&mut self, _: u64, came: Came, report: &mut Report) -> Result<Vec<Message>> {
        self.finish_write(report);
        if let Some(own) = self.turns.own() {
            self.write_own(&own, &came, report)?;
        }
        // A window that nobody else reaches stays in the cache while its store is fast.
        self.turns.end_round(self.waits);
        Ok(came.into_iter().map(|(_, message)| message).collect())
    }
}

impl Filling<'_, '_, '_> {
    /// Lays what came upon this rank's own window, and writes it.
    fn write_own(&mut self, own: &Place, came: &Came, report: &mut Report) -> Result<()> {
        if self.waits || !self.turns.is_private() {
            // Then nobody waits for the write.
            self.turns.open_ahead(own)?;
        }
        let clock = Instant::now();
        let mut whole = self.turns.take(own)?;
        report.phases.exchange += clock.elapsed();
        let clock = Instant::now();
        let start = own.range.start;
        let (bytes, known) = whole.parts();
        for (_, message) in came {
            if self.met.is_some_and(|met| !met.get()) {
                self.note_meeting(meets(start, known, message)?);
            }
            for section in wire::sections(message) {
                let (_, place) = section.ok_or(Error::Garbled)?;
                report.copied += gathered::lay_section(start, bytes, known, &message[place])?;
            }
        }
        report.phases.convert += clock.elapsed();
        if self.failed.is_some() {
            // Nothing is written after a failure.
            return Ok(());
        }
        let (file, sieve, mut there) = (self.file, self.sieve, mem::take(self.there));
        let write = move || {
            let clock = Instant::now();
            let mut tally = Tally::default();
            let (bytes, known) = whole.parts();
            let mut window = Window::new(start, bytes, known, &mut there);
            let outcome = window.write(file, sieve, &mut tally);
            drop(whole);
            (there, outcome, tally, clock.elapsed())
        };
        if self.waits && self.turns.go_on() {
            self.writing = Some(self.scope.spawn(write));
            return Ok(());
        }
        let written = write();
        let (_, _, tally, time) = &written;
        let slow = tally.bytes_written as f64 / AT_ONCE < time.as_secs_f64();
        self.waits = slow && self.turns.has_two_buffers();
        self.note(written, report);
        Ok(())
    }

    /// Waits for a window that is being written.
    fn finish_write(&mut self, report: &mut Report) {
        let Some(writing) = self.writing.take() else { return };
        // A panic in the store is the store's; it goes on in this thread.
        let written = writing.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        self.note(written, report);
    }

    fn note(&mut self, (there, outcome, tally, time): Written, report: &mut Report) {
        report.add(tally);
        report.phases.write += time;
        *self.there = there;
        self.failed = self.failed.take().or(outcome.err());
    }

    fn note_meeting(&self, is_one: bool) {
        if let Some(met) = self.met.filter(|_| is_one) {
            met.set(true);
        }
    }
}

/// Windows that are fetched and looked at.
struct Fetching<'e, 'b> {
    turns: Turns<'b>,
    file: &'e dyn File,
    /// Holes of so many bytes are read along.
    hole: u64,
    there: &'b mut Vec<u8>,
    /// What this rank wants of each window that it reaches in the round, and others of its own.
    wants: Vec<(u64, Laying)>,
    failed: Option<Error>,
    /// Where the file ended too early.
    short: Option<u64>,
}

impl Units for Fetching<'_, '_> {
    const ASCEND: bool = true;

    fn reaches(&self, unit: &Unit, _: usize) -> bool {
        self.turns.place_of(unit.start).is_some()
    }

    fn all_reached(&self) -> bool {
        self.turns.all_reached
    }

    fn next_round(
        &mut self,
        comm: &dyn Communicator,
        sweep: &Sweep<'_, '_>,
    ) -> Result<Option<u64>> {
        let round = self.turns.next_round(comm, sweep)?;
        if round.is_some() {
            let wants = |place: &Place| Ok((place.range.start, self.turns.lay(place)?));
            self.wants = self.turns.reached().map(wants).collect::<Result<_>>()?;
        }
        Ok(round)
    }

    fn of_round(&mut self, _: u64) -> Vec<Unit> {
        self.turns.units()
    }

    fn memory(&self) -> u64 {
        self.turns.memory()
    }
}

impl Source for Fetching<'_, '_> {
    const BY_RUNS: bool = true;

    /// A window is as long as it is because of what is wanted of it.
    const WHOLE: u64 = u64::MAX;

    fn want(&mut self, comb: &Comb) {
        // Windows are by address, and runs are of the last that begins at or before them.
        let behind = self.wants.partition_point(|(start, _)| *start <= comb.offset);
        let Some((start, wants)) = behind.checked_sub(1).and_then(|n| self.wants.get_mut(n)) else {
            return;
        };
        let at = (comb.offset - *start) as usize;
        match comb.hole() <= self.hole {
            true => wants.want(at, comb.span() as usize),
            false => (0..comb.runs as usize)
                .for_each(|n| wants.want(at + n * comb.step as usize, comb.len as usize)),
        }
    }

    fn get(
        &mut self,
        _: u64,
        report: &mut Report,
        give: &mut dyn FnMut(&[Got<'_>], &mut Report) -> Result<()>,
    ) -> Result<()> {
        for (_, wants) in self.wants.drain(..) {
            wants.finish()?;
        }
        if let Some(own) = self.turns.own() {
            let clock = Instant::now();
            let mut whole = self.turns.take(&own)?;
            report.phases.exchange += clock.elapsed();
            let clock = Instant::now();
            let mut tally = Tally::default();
            let (bytes, known) = whole.parts();
            let mut window = Window::new(own.range.start, bytes, known, self.there);
            match window.fetch(self.file, self.hole, &mut tally) {
                Ok(end) => self.short = self.short.or(end),
                // All who want them get bytes all the same, and the error at the end.
                Err(error) => self.failed = self.failed.take().or(Some(error)),
            }
            whole.show();
            report.add(tally);
            report.phases.read += clock.elapsed();
        }
        for place in self.turns.reached() {
            let clock = Instant::now();
            let shown = self.turns.look(place)?;
            report.phases.exchange += clock.elapsed();
            let clock = Instant::now();
            let (start, end, before) = (place.range.start, place.range.end, report.copied);
            give(&[Got { start, end, bytes: shown.bytes(), shared: None }], report)?;
            if !place.own {
                report.node_bytes += report.copied - before;
            }
            report.phases.convert += clock.elapsed();
        }
        self.turns.end_round(false);
        Ok(())
    }
}

/// Whether a message has a byte of the window at `start` that is known already.
fn meets(start: u64, known: &[u64], message: &[u8]) -> Result<bool> {
    for section in wire::sections(message) {
        let (_, place) = section.ok_or(Error::Garbled)?;
        let (combs, _) = wire::open(&message[place], start).ok_or(Error::Garbled)?;
        let at = |offset: u64| (offset - start) as usize;
        if combs.runs().any(|run| gathered::has_any(known, at(run.offset), run.len as usize)) {
            return Ok(true);
        }
    }
    Ok(false)
}
