//! Pieces to their owners and back: rounds of windows, one message per pair of ranks.
//!
//! Every function here is collective. A failure of the store does not stop a rank from taking
//! part in the rounds that are left (the others would wait for it for ever); it is remembered
//! and becomes everyone's at the end.

use std::cell::Cell;
use std::mem;
use std::thread::{self, ScopedJoinHandle};
use std::time::{Duration, Instant};

use esker_comm::{Communicator, Message, Sending, Tag};
use esker_store::File;

use crate::error::{Error, Result};
use crate::hints::{Automatic, Hints};
use crate::plan::{Overlap, Plan};
use crate::report::{Report, Tally};
use crate::request::Request;
use crate::rounds::Rounds;
use crate::strategy::{Windows, aggregator_number, aggregator_rank};
use crate::taken::Taken;
use crate::window::Window;
use crate::wire::{self, RunList};

/// The tag of the pieces that owners send back to readers.
const REPLY: Tag = 1;

/// What an exchange needs to know.
pub(crate) struct Exchange<'e> {
    pub(crate) comm: &'e dyn Communicator,
    pub(crate) file: &'e dyn File,
    pub(crate) hints: &'e Hints,
    pub(crate) windows: Windows,
    /// Told when ranks write the same bytes, if somebody wants to know.
    pub(crate) met: Option<&'e Cell<bool>>,
}

/// The windows that an owner fills and writes in turn, kept from call to call: fresh memory
/// costs as much as the copy into it.
#[derive(Debug, Default)]
pub(crate) struct Buffers {
    filling: Window,
    spare: Window,
    /// Messages that came and are empty now, for those to be sent.
    messages: Vec<Vec<u8>>,
}

/// A store that takes a window this fast (bytes a second) copies it into memory; then a thread
/// to wait for it would only compete with the ranks for the cores.
const AT_ONCE: f64 = 500e6;

/// A window on its way to the store.
type Writing<'s> = ScopedJoinHandle<'s, (Window, Result<()>, Tally, Duration)>;

impl Exchange<'_> {
    /// The number of this rank among the aggregators, if it is one.
    fn my_number(&self) -> Option<u64> {
        let count = self.windows.aggregators as usize;
        let number = aggregator_number(self.comm.rank(), count, self.comm.size());
        number.map(|n| n as u64)
    }

    fn rank_of(&self, aggregator: u64) -> usize {
        let count = self.windows.aggregators as usize;
        aggregator_rank(aggregator as usize, count, self.comm.size())
    }

    /// Writes every rank's pieces.
    pub(crate) fn write(
        &self,
        plan: &Plan<'_>,
        requests: &mut [Request<'_>],
        buffers: &mut Buffers,
        report: &mut Report,
    ) -> Result<()> {
        let sieve = self.hints.ds_write != Automatic::Disable;
        let mut rounds = Rounds::new(self.windows);
        let mine = self.my_number();
        let mut sweep = plan.sweep();
        let failed = thread::scope(|scope| {
            let mut failed: Option<Error> = None;
            let Buffers { filling: window, spare, messages: pool } = buffers;
            // What the last write of a window told about the store.
            let mut waits = false;
            let mut writing: Option<Writing<'_>> = None;
            while let Some(round) = rounds.next(self.comm, &sweep)? {
                let clock = Instant::now();
                let mut messages = Vec::new();
                for aggregator in 0..self.windows.aggregators {
                    let range = self.windows.window(round, aggregator);
                    let own = mine == Some(aggregator);
                    if own {
                        window.reset(range.start, range.end - range.start);
                    }
                    let taken = sweep.take_together(range.start, range.end, Overlap::LaterWins);
                    report.copied += taken.bytes();
                    if own {
                        taken.lay(window, requests)?;
                    } else if !taken.is_empty() {
                        let message = pack(range.start, &taken, requests, pool.pop())?;
                        report.messages += 1;
                        report.message_bytes += message.len() as u64;
                        messages.push((self.rank_of(aggregator), message));
                    }
                }
                report.phases.convert += clock.elapsed();
                let held = messages.iter().map(|(_, m)| m.len() as u64).sum::<u64>();
                let received = self.exchange(messages, report)?;
                let came = received.iter().map(|(_, m)| m.len() as u64).sum::<u64>();
                let windows = window.memory() + spare.memory();
                let memory = held + came + windows + sweep.memory();
                report.peak_memory = report.peak_memory.max(memory);
                let clock = Instant::now();
                let start = mine.map_or(0, |number| self.windows.window(round, number).start);
                for (_, message) in received {
                    if let Some(met) = self.met.filter(|met| !met.get()) {
                        met.set(meets(window, start, &message)?);
                    }
                    report.copied += lay(window, start, &message)?;
                    if (pool.len() as u64) < self.windows.aggregators {
                        pool.push(message.into_vec());
                    }
                }
                report.phases.convert += clock.elapsed();
                if let Some(writing) = writing.take() {
                    let (back, outcome) = finish_write(writing, report);
                    *spare = back;
                    failed = failed.or(outcome.err());
                }
                if mine.is_none() || failed.is_some() {
                    continue;
                }
                if waits && rounds.go_on() {
                    let (mut full, file) = (mem::take(window), self.file);
                    mem::swap(window, spare);
                    writing = Some(scope.spawn(move || {
                        let clock = Instant::now();
                        let mut tally = Tally::default();
                        let outcome = full.write(file, sieve, &mut tally);
                        (full, outcome, tally, clock.elapsed())
                    }));
                } else {
                    let clock = Instant::now();
                    let mut tally = Tally::default();
                    failed = window.write(self.file, sieve, &mut tally).err();
                    let time = clock.elapsed();
                    waits = tally.bytes_written as f64 / AT_ONCE < time.as_secs_f64();
                    report.add(tally);
                    report.phases.write += time;
                }
            }
            if let Some(writing) = writing.take() {
                let (back, outcome) = finish_write(writing, report);
                *spare = back;
                failed = failed.or(outcome.err());
            }
            Ok::<Option<Error>, Error>(failed)
        })?;
        report.rounds += rounds.made;
        report.aggregators = self.windows.aggregators;
        failed.map_or(Ok(()), Err)
    }

    /// Reads every rank's pieces. Gives where the file ended too early, if it did.
    pub(crate) fn read(
        &self,
        plan: &Plan<'_>,
        requests: &mut [Request<'_>],
        buffers: &mut Buffers,
        report: &mut Report,
    ) -> Result<Option<u64>> {
        let hole = if self.hints.ds_read == Automatic::Disable { 0 } else { self.hints.sieve_hole };
        let mut rounds = Rounds::new(self.windows);
        let mine = self.my_number();
        let mut sweep = plan.sweep();
        let window = &mut buffers.filling;
        let mut failed: Option<Error> = None;
        let mut short = None;
        while let Some(round) = rounds.next(self.comm, &sweep)? {
            // What this rank wants of each window of the round.
            let mut wanted: Vec<(u64, Taken<'_>)> = Vec::new();
            let mut messages = Vec::new();
            let clock = Instant::now();
            for aggregator in 0..self.windows.aggregators {
                let range = self.windows.window(round, aggregator);
                let own = mine == Some(aggregator);
                if own {
                    window.reset(range.start, range.end - range.start);
                }
                let taken = sweep.take_together(range.start, range.end, Overlap::Shared);
                if taken.is_empty() {
                    continue;
                }
                if own {
                    taken.want(window, hole);
                } else {
                    let mut list = RunList::new(range.start);
                    taken.list(&mut list);
                    let message = Message::from(list.finish(false, Vec::new()).0);
                    report.messages += 1;
                    report.message_bytes += message.len() as u64;
                    messages.push((self.rank_of(aggregator), message));
                }
                wanted.push((aggregator, taken.into_owned()));
            }
            report.phases.convert += clock.elapsed();
            let asked = self.exchange(messages, report)?;
            let start = mine.map_or(0, |number| self.windows.window(round, number).start);
            for (_, message) in &asked {
                let (combs, _) = wire::open(message, start).ok_or_else(garbled)?;
                combs.for_each(|comb| window.want(&comb, hole));
            }
            let clock = Instant::now();
            let mut tally = Tally::default();
            match window.fetch(self.file, hole, &mut tally) {
                Ok(end) => short = short.or(end),
                // The askers get their bytes all the same, and the error at the end.
                Err(error) => failed = failed.or(Some(error)),
            }
            report.add(tally);
            report.phases.read += clock.elapsed();
            let lists: u64 = wanted.iter().map(|(_, taken)| taken.memory()).sum();
            let came: u64 = asked.iter().map(|(_, message)| message.len() as u64).sum();
            let lists = lists + came + sweep.memory();
            report.peak_memory = report.peak_memory.max(window.memory() + lists);
            let sends = self.reply(&asked, start, window, report)?;
            self.collect(mine, &wanted, window, requests, report)?;
            Sending::wait_all(sends)?;
        }
        report.rounds += rounds.made;
        report.aggregators = self.windows.aggregators;
        failed.map_or(Ok(short), Err)
    }

    /// Sends every asker the bytes of the runs it asked for, without waiting for it.
    fn reply(
        &self,
        asked: &[(usize, Message)],
        start: u64,
        window: &Window,
        report: &mut Report,
    ) -> Result<Vec<Sending>> {
        let mut sends = Vec::new();
        for (rank, message) in asked {
            let (combs, _) = wire::open(message, start).ok_or_else(garbled)?;
            let clock = Instant::now();
            let mut reply = vec![0; combs.clone().map(|c| c.bytes() as usize).sum()];
            let mut rest = &mut reply[..];
            for comb in combs {
                let (now, later) = rest.split_at_mut(comb.bytes() as usize);
                comb.gather(window.bytes(comb.offset, comb.span()), now);
                rest = later;
            }
            report.copied += reply.len() as u64;
            report.messages += 1;
            report.message_bytes += reply.len() as u64;
            report.phases.convert += clock.elapsed();
            let clock = Instant::now();
            sends.push(self.comm.isend(*rank, REPLY, Message::from(reply))?);
            report.phases.exchange += clock.elapsed();
        }
        Ok(sends)
    }

    /// Takes the wanted pieces out of the own window and out of what the owners send.
    fn collect(
        &self,
        mine: Option<u64>,
        wanted: &[(u64, Taken<'_>)],
        window: &Window,
        requests: &mut [Request<'_>],
        report: &mut Report,
    ) -> Result<()> {
        for (aggregator, taken) in wanted {
            report.copied += taken.bytes();
            if mine == Some(*aggregator) {
                let clock = Instant::now();
                taken.take_out(window.start(), window.all(), requests)?;
                report.phases.convert += clock.elapsed();
                continue;
            }
            let length = taken.union_len();
            let rank = self.rank_of(*aggregator);
            let clock = Instant::now();
            let reply = self.comm.irecv_sized(rank, REPLY, length as usize)?.wait()?.message;
            report.phases.exchange += clock.elapsed();
            let clock = Instant::now();
            taken.unpack(&reply, requests)?;
            report.phases.convert += clock.elapsed();
        }
        Ok(())
    }

    fn exchange(
        &self,
        messages: Vec<(usize, Message)>,
        report: &mut Report,
    ) -> Result<Vec<(usize, Message)>> {
        if self.comm.size() == 1 {
            return Ok(Vec::new());
        }
        let clock = Instant::now();
        let received = self.comm.sparse_exchange(messages)?;
        report.phases.exchange += clock.elapsed();
        Ok(received)
    }
}

fn garbled() -> Error {
    Error::Garbled
}

/// The runs and values of what was taken, for the owner of the window at `base`.
pub(crate) fn pack(
    base: u64,
    taken: &Taken<'_>,
    requests: &mut [Request<'_>],
    buffer: Option<Vec<u8>>,
) -> Result<Message> {
    let mut list = RunList::new(base);
    taken.list(&mut list);
    let (mut message, start) = list.finish(true, buffer.unwrap_or_default());
    taken.pack(&mut message[start..], requests)?;
    Ok(Message::from(message))
}

/// Whether a message has a byte that the window has already.
fn meets(window: &Window, base: u64, message: &[u8]) -> Result<bool> {
    let (combs, _) = wire::open(message, base).ok_or_else(garbled)?;
    Ok(combs.runs().any(|run| window.has_any(run.offset, run.len)))
}

/// Lays the pieces of a message into the window that begins at `base`; gives their bytes.
fn lay(window: &mut Window, base: u64, message: &[u8]) -> Result<u64> {
    let (combs, payload) = wire::open(message, base).ok_or_else(garbled)?;
    let mut rest = payload;
    for comb in combs {
        let (now, later) = rest.split_at_checked(comb.bytes() as usize).ok_or_else(garbled)?;
        comb.scatter(now, window.lay_comb(&comb));
        rest = later;
    }
    Ok(payload.len() as u64)
}

/// Waits for a window that is being written.
fn finish_write(writing: Writing<'_>, report: &mut Report) -> (Window, Result<()>) {
    match writing.join() {
        Ok((window, outcome, tally, time)) => {
            report.add(tally);
            report.phases.write += time;
            (window, outcome)
        }
        // A panic in the store is the store's; it goes on in this thread.
        Err(panic) => std::panic::resume_unwind(panic),
    }
}
