//! Windows in memory that the ranks of a node share: pieces go straight into them and out of them, without messages
//! (docs/rooms/node.md).

use std::mem;
use std::ops::Range;
use std::thread::{Scope, ScopedJoinHandle};
use std::time::{Duration, Instant};

use esker_comm::{Communicator, Laying, Message, NodeMemory, Stages, Whole};
use esker_store::File;

use crate::comb::Comb;
use crate::error::{Error, Result};
use crate::exchange::{Got, Sink, Source, Unit, Units, With};
use crate::plan::{Overlap, Sweep};
use crate::report::{Report, Road, Tally};
use crate::strategy::aggregator_rank;
use crate::window::{AT_ONCE, SLACK, View};
use crate::windows::{Cut, InWindows};

/// The windows of a node's aggregators, kept from call to call, or why there are none.
#[derive(Debug, Default)]
pub(crate) struct Near {
    memory: Option<NodeMemory>,
    /// The turn that each aggregator's window comes to next: the same on every rank.
    turns: Vec<u64>,
    refused: bool,
    /// What the file has where something was laid, kept for the next time.
    there: Vec<u8>,
}

/// Windows are made for so many bytes, where the hint allows it, so that they are not made anew for every longer call.
const AT_LEAST: u64 = 256 << 10;

impl Near {
    /// After an error: whoever waits for this rank is told, and nobody uses it again.
    pub(crate) fn leave(&self) {
        if let Some(memory) = &self.memory {
            memory.leave();
        }
    }
}

impl InWindows<'_> {
    /// Memory for the windows of this exchange, if there is some, and the road that is taken. Collective.
    pub(crate) fn near<'n>(&self, near: &'n mut Near) -> Result<(Option<&'n mut Near>, Road)> {
        let most = match (self.comm.size(), self.hints.node_memory) {
            (1, _) => return Ok((None, Road::Nothing)),
            (_, 0) => return Ok((None, Road::Messages)),
            (_, most) => most,
        };
        // Who wants to know of ranks that meet hears it from messages.
        if !self.one_node || self.met.is_some() {
            return Ok((None, Road::Messages));
        }
        let ranks = self.comm.size();
        let count = self.windows.aggregators as usize;
        let owners: Vec<usize> = (0..count).map(|n| aggregator_rank(n, count, ranks)).collect();
        let len = self.windows.len();
        let fits = |memory: &NodeMemory| {
            let stages = memory.stages();
            // After a failed call it is broken for all of them, because they agree on its outcome.
            let long = stages.bytes as u64 >= len + SLACK as u64;
            long && stages.owners == owners && !memory.is_broken()
        };
        if !near.memory.as_ref().is_some_and(fits) {
            // Fewer bytes first: what is there is not needed any more.
            near.memory = None;
            // Later calls may have longer windows, but seldom.
            let bytes = (len.max(AT_LEAST).next_power_of_two(), len);
            let tries = [(bytes.0, 2), (bytes.1, 2), (bytes.1, 1)].map(|(bytes, buffers)| Stages {
                owners: owners.clone(),
                bytes: usize::try_from(bytes).unwrap_or(usize::MAX).saturating_add(SLACK),
                buffers,
            });
            let fits = |stages: &&Stages| stages.memory(ranks).is_some_and(|n| n as u64 <= most);
            let Some(stages) = tries.iter().find(fits) else {
                return Ok((None, Road::HintTooSmall));
            };
            if near.refused {
                return Ok((None, Road::Refused));
            }
            match self.comm.node_memory(stages)? {
                Ok(memory) => (near.memory, near.turns) = (Some(memory), vec![0; count]),
                Err(_) => {
                    near.refused = true;
                    return Ok((None, Road::Refused));
                }
            }
        }
        Ok((Some(near), Road::NodeMemory))
    }
}

/// A window of the round: the aggregator's number, and where it is.
#[derive(Debug, Clone)]
struct Place {
    stage: usize,
    range: Range<u64>,
}

/// What writing and reading have in common.
struct Stage<'n> {
    cut: Cut,
    memory: NodeMemory,
    turns: &'n mut [u64],
    /// The windows of this round, by address.
    round: Vec<Place>,
}

impl<'n> Stage<'n> {
    /// `None` without memory.
    fn new(of: &InWindows<'_>, near: &'n mut Near) -> Option<(Stage<'n>, &'n mut Vec<u8>)> {
        let memory = near.memory.clone()?;
        let stage = Stage { cut: Cut::new(of), memory, turns: &mut near.turns, round: Vec::new() };
        Some((stage, &mut near.there))
    }

    /// The next round, whose own window is open.
    fn next_round(
        &mut self,
        comm: &dyn Communicator,
        sweep: &Sweep<'_, '_>,
    ) -> Result<Option<u64>> {
        let Some(round) = self.cut.rounds.next(comm, sweep)? else { return Ok(None) };
        self.round.clear();
        for number in 0..self.cut.windows.aggregators {
            let range = self.cut.windows.window(round, number);
            if range.start < range.end {
                self.round.push(Place { stage: number as usize, range });
            }
        }
        if let Some(own) = self.own() {
            self.memory.open(own.stage, self.turns[own.stage])?;
        }
        Ok(Some(round))
    }

    /// This rank's own window of the round, if it has one.
    fn own(&self) -> Option<Place> {
        let mine = self.cut.mine?;
        self.round.iter().find(|place| place.stage as u64 == mine).cloned()
    }

    fn units(&self) -> Vec<Unit> {
        let unit = |place: &Place| Unit {
            owner: self.memory.stages().owners[place.stage],
            start: place.range.start,
            end: place.range.end,
            bytes: 0,
        };
        self.round.iter().map(unit).collect()
    }

    fn lay(&self, place: &Place) -> Result<Laying> {
        Ok(self.memory.lay(place.stage, self.turns[place.stage], len(place))?)
    }

    fn take(&self, place: &Place) -> Result<Whole> {
        Ok(self.memory.take(place.stage, self.turns[place.stage], len(place))?)
    }

    /// Every window of the round has had its turn.
    fn end_round(&mut self) {
        self.round.iter().for_each(|place| self.turns[place.stage] += 1);
    }

    fn memory(&self) -> u64 {
        match self.cut.mine {
            Some(_) => (self.memory.memory() / self.memory.stages().owners.len()) as u64,
            None => 0,
        }
    }
}

/// Bytes of a window, with those behind it of an element that begins in it.
fn len(place: &Place) -> usize {
    (place.range.end - place.range.start) as usize + SLACK
}

/// A window on its way to the store.
type Writing<'s> = ScopedJoinHandle<'s, (Vec<u8>, Result<()>, Tally, Duration)>;

/// Windows that ranks fill together, and their owners write.
pub(crate) struct Sharing<'s, 'e, 'n> {
    stage: Stage<'n>,
    file: &'e dyn File,
    sieve: bool,
    scope: &'s Scope<'s, 'e>,
    there: &'n mut Vec<u8>,
    /// What the last write of a window told about the store.
    waits: bool,
    writing: Option<Writing<'s>>,
    failed: Option<Error>,
}

impl<'s, 'e, 'n> Sharing<'s, 'e, 'n> {
    pub(crate) fn new(
        of: &InWindows<'e>,
        near: &'n mut Near,
        sieve: bool,
        scope: &'s Scope<'s, 'e>,
    ) -> Option<Self> {
        let (stage, there) = Stage::new(of, near)?;
        let (file, writing, failed) = (of.file, None, None);
        Some(Sharing { stage, file, sieve, scope, there, waits: false, writing, failed })
    }

    /// Ends everything; gives how many rounds there were, and what went wrong.
    pub(crate) fn end(mut self, report: &mut Report) -> (u64, Option<Error>) {
        self.finish_write(report);
        (self.stage.cut.rounds.made, self.failed)
    }

    /// Waits for a window that is being written.
    fn finish_write(&mut self, report: &mut Report) {
        let Some(writing) = self.writing.take() else { return };
        match writing.join() {
            Ok((there, outcome, tally, time)) => {
                report.add(tally);
                report.phases.write += time;
                *self.there = there;
                self.failed = self.failed.take().or(outcome.err());
            }
            // A panic in the store is the store's; it goes on in this thread.
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }

    /// Opens what may be opened before its round: then nobody waits for this rank's write.
    fn open_ahead(&self, own: &Place) -> Result<()> {
        let next = self.stage.turns[own.stage] + 1;
        let two = self.stage.memory.stages().buffers == 2;
        if two && self.stage.cut.rounds.go_on() {
            self.stage.memory.open(own.stage, next)?;
        }
        Ok(())
    }
}

impl Units for Sharing<'_, '_, '_> {
    const ASCEND: bool = true;
    const NEAR: bool = true;

    fn next_round(
        &mut self,
        comm: &dyn Communicator,
        sweep: &Sweep<'_, '_>,
    ) -> Result<Option<u64>> {
        self.stage.next_round(comm, sweep)
    }

    fn of_round(&mut self, _: u64) -> Vec<Unit> {
        self.stage.units()
    }

    fn memory(&self) -> u64 {
        self.stage.memory() + self.there.len() as u64
    }
}

impl Sink for Sharing<'_, '_, '_> {
    fn own(
        &mut self,
        unit: &Unit,
        sweep: &mut Sweep<'_, '_>,
        with: &mut With<'_, '_>,
    ) -> Result<()> {
        let found = self.stage.round.iter().find(|place| place.range.start == unit.start);
        let place = found.ok_or(Error::Garbled)?;
        let taken = sweep.take_together(unit.start, unit.end, Overlap::LaterWins);
        let clock = Instant::now();
        let mut laying = self.stage.lay(place)?;
        with.report.phases.exchange += clock.elapsed();
        with.report.copied += taken.bytes();
        if Some(place.stage as u64) != self.stage.cut.mine {
            with.report.node_bytes += taken.bytes();
        }
        taken.claim(&mut laying, unit.start, with.puts, with.notes)?;
        Ok(laying.finish()?)
    }

    fn put(&mut self, _: u64, came: Vec<Message>, report: &mut Report) -> Result<Vec<Message>> {
        self.finish_write(report);
        if let Some(own) = self.stage.own() {
            self.open_ahead(&own)?;
            let clock = Instant::now();
            let mut whole = self.stage.take(&own)?;
            report.phases.exchange += clock.elapsed();
            let (start, file, sieve) = (own.range.start, self.file, self.sieve);
            let mut there = mem::take(self.there);
            let write = move || {
                let clock = Instant::now();
                let mut tally = Tally::default();
                let (bytes, known) = whole.parts();
                let outcome =
                    View::new(start, bytes, known, &mut there).write(file, sieve, &mut tally);
                drop(whole);
                (there, outcome, tally, clock.elapsed())
            };
            if self.failed.is_some() {
                // Nothing is written after a failure.
                drop(write);
            } else if self.waits && self.stage.cut.rounds.go_on() {
                self.writing = Some(self.scope.spawn(write));
            } else {
                let (there, outcome, tally, time) = write();
                *self.there = there;
                self.failed = outcome.err();
                let two = self.stage.memory.stages().buffers == 2;
                self.waits = two && tally.bytes_written as f64 / AT_ONCE < time.as_secs_f64();
                report.add(tally);
                report.phases.write += time;
            }
        }
        self.stage.end_round();
        Ok(came)
    }
}

/// Windows that their owners fetch, and all ranks look at.
pub(crate) struct Looking<'e, 'n> {
    stage: Stage<'n>,
    file: &'e dyn File,
    /// Holes of so many bytes are read along.
    hole: u64,
    there: &'n mut Vec<u8>,
    /// What this rank wants of each window of the round.
    wants: Vec<Laying>,
    pub(crate) failed: Option<Error>,
    /// Where the file ended too early.
    pub(crate) short: Option<u64>,
}

impl<'e, 'n> Looking<'e, 'n> {
    pub(crate) fn new(of: &InWindows<'e>, near: &'n mut Near, hole: u64) -> Option<Self> {
        let (stage, there) = Stage::new(of, near)?;
        let (file, wants, failed, short) = (of.file, Vec::new(), None, None);
        Some(Looking { stage, file, hole, there, wants, failed, short })
    }

    pub(crate) fn rounds(&self) -> u64 {
        self.stage.cut.rounds.made
    }
}

impl Units for Looking<'_, '_> {
    const ASCEND: bool = true;
    const NEAR: bool = true;

    fn next_round(
        &mut self,
        comm: &dyn Communicator,
        sweep: &Sweep<'_, '_>,
    ) -> Result<Option<u64>> {
        let round = self.stage.next_round(comm, sweep)?;
        if round.is_some() {
            let wants = self.stage.round.iter().map(|place| self.stage.lay(place));
            self.wants = wants.collect::<Result<_>>()?;
        }
        Ok(round)
    }

    fn of_round(&mut self, _: u64) -> Vec<Unit> {
        self.stage.units()
    }

    fn memory(&self) -> u64 {
        self.stage.memory()
    }
}

impl Source for Looking<'_, '_> {
    const BY_RUNS: bool = true;
    const WHOLE: u64 = u64::MAX;

    fn want(&mut self, comb: &Comb) {
        let of = |place: &Place| place.range.contains(&comb.offset);
        let Some(number) = self.stage.round.iter().position(of) else { return };
        let (wants, at) =
            (&mut self.wants[number], comb.offset - self.stage.round[number].range.start);
        match comb.hole() <= self.hole {
            true => wants.want(at as usize, comb.span() as usize),
            false => (0..comb.runs)
                .for_each(|n| wants.want((at + n * comb.step) as usize, comb.len as usize)),
        }
    }

    fn get(
        &mut self,
        _: u64,
        report: &mut Report,
        give: &mut dyn FnMut(&[Got<'_>], &mut Report) -> Result<()>,
    ) -> Result<()> {
        for wants in self.wants.drain(..) {
            wants.finish()?;
        }
        if let Some(own) = self.stage.own() {
            let clock = Instant::now();
            let mut whole = self.stage.take(&own)?;
            report.phases.exchange += clock.elapsed();
            let clock = Instant::now();
            let mut tally = Tally::default();
            let (bytes, known) = whole.parts();
            let mut view = View::new(own.range.start, bytes, known, self.there);
            match view.fetch(self.file, self.hole, &mut tally) {
                Ok(end) => self.short = self.short.or(end),
                // All ranks get bytes all the same, and the error at the end.
                Err(error) => self.failed = self.failed.take().or(Some(error)),
            }
            whole.show();
            report.add(tally);
            report.phases.read += clock.elapsed();
        }
        for place in &self.stage.round {
            let clock = Instant::now();
            let shown =
                self.stage.memory.look(place.stage, self.stage.turns[place.stage], len(place))?;
            report.phases.exchange += clock.elapsed();
            let clock = Instant::now();
            let Range { start, end } = place.range;
            let before = report.copied;
            give(&[Got { start, end, bytes: shown.bytes(), shared: None }], report)?;
            if Some(place.stage as u64) != self.stage.cut.mine {
                report.node_bytes += report.copied - before;
            }
            report.phases.convert += clock.elapsed();
        }
        self.stage.end_round();
        Ok(())
    }
}
