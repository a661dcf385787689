//! Reading: chunks are decoded once, and what requests want is taken out of them.

use std::sync::{Arc, OnceLock, PoisonError};
use std::time::Instant;

use esker_comm::Communicator;

use super::decode::Cache;
use super::deferred::OwnPuts;
use super::layout::Planned;
use super::over::Overlay;
use super::owners::{self, Assigned, Chunks};
use super::{Chunked, Space};
use crate::canonical::detach_extents;
use crate::comb::Comb;
use crate::error::{Error, Result};
use crate::exchange::{self, Got, Source, Unit, Units};
use crate::ground::Ground;
use crate::layout::Over;
use crate::plan::{Extent, Overlap, Sweep};
use crate::report::{Report, Strategy};
use crate::request::Request;
use crate::strategy::ForUnits;

/// Decoded chunks that a read holds at a time, in bytes.
const BATCH: u64 = 16 << 20;

/// When a rank would decode in vain this part of what another one wants, owners decode for all.
const IN_VAIN: u64 = 8;

/// What lies over chunks that a rank reads alone.
enum Lies<'d> {
    /// Entries of its logs.
    Logs(Overlay<'d>),
    /// What it has put itself.
    Own(OwnPuts<'d>),
}

impl Chunked {
    /// The chunks that extents touch, with the bytes that they have of each, by address.
    pub(crate) fn touched_by(&self, extents: &[Extent]) -> Vec<(u64, u64)> {
        touched(&self.space, extents.iter())
    }
}

/// The chunks that requests touch, with the bytes that they want of each, by address.
pub(crate) fn touched<'e>(
    space: &Space,
    extents: impl Iterator<Item = &'e Extent>,
) -> Vec<(u64, u64)> {
    let mut units: Vec<(u64, u64)> = Vec::new();
    let (mut start, mut end) = (0, 0);
    let mut add = |mut at: u64, mut len: u64| {
        while len > 0 {
            if !(start..end).contains(&at) {
                let Some((_, begin, bytes)) = space.chunk_at(at) else { return };
                (start, end) = (begin, begin + bytes);
            }
            let n = len.min(end - at);
            match units.last_mut() {
                Some((unit, bytes)) if *unit == start => *bytes += n,
                _ => units.push((start, n)),
            }
            (at, len) = (at + n, len - n);
        }
    };
    // A box lies within one chunk, whatever its bytes are; runs are cut, but those of a shared list, which were.
    for extent in extents {
        if let Some((shared, base)) = extent.shared() {
            shared.units.iter().for_each(|(unit, bytes)| add(base + unit, *bytes));
        }
        extent.parts_not_shared(|at, len, whole| match whole {
            true => add(at, len),
            false => {
                if let Some((_, begin, bytes)) = space.chunk_at(at) {
                    add(begin, len.min(bytes));
                }
            }
        });
    }
    if !units.is_sorted_by_key(|(unit, _)| *unit) {
        units.sort_unstable();
    }
    units.dedup_by(|later, first| {
        let same = later.0 == first.0;
        if same {
            first.1 += later.1;
        }
        same
    });
    units
}

impl Ground {
    /// Threads that a rank may use for its chunks.
    pub(super) fn chunk_threads(&self) -> usize {
        static CORES: OnceLock<usize> = OnceLock::new();
        let cores =
            *CORES.get_or_init(|| std::thread::available_parallelism().map_or(1, |n| n.get()));
        (cores / self.base.comm.size()).max(1)
    }

    /// Threads that a rank may use for the chunks that it owns: ranks that own none leave their cores to
    /// the others. Collective.
    pub(super) fn owner_threads(&self, assigned: &Assigned) -> Result<usize> {
        let machine = self.machine()?;
        let cores = machine.nodes.saturating_mul(machine.cores);
        Ok(usize::try_from(cores / assigned.owners.max(1)).unwrap_or(usize::MAX).max(1))
    }

    /// The weight of what a rank owns already.
    pub(crate) fn penalty(&self) -> f64 {
        self.base.hints.chunk_penalty as f64 / 100.0
    }
}

impl Chunked {
    /// Forgets decoded chunks.
    pub(crate) fn forget_chunks(&mut self, ground: &mut Ground) {
        *self.cache.get_mut().unwrap_or_else(PoisonError::into_inner) = Cache::default();
        // Reads in the background begin anew, too.
        ground.generation += 1;
    }

    /// Reads requests by this rank alone; `over` is what logs have to tell.
    pub(super) fn read_by_itself(
        &self,
        ground: &Ground,
        requests: &mut [Request<'_>],
        over: Option<&Arc<dyn Over>>,
        report: &mut Report,
    ) -> Result<()> {
        let extents = detach_extents(requests);
        let planned = self.plan(&extents);
        planned.count(report);
        let overlay = match OwnPuts::of(&self.deferred) {
            Some(own) => Some(Lies::Own(own)),
            None => over.and_then(|over| Overlay::new(&**over, ground.records)).map(Lies::Logs),
        };
        self.read_own(ground, &planned, (true, overlay), requests, report)
    }

    fn read_own(
        &self,
        ground: &Ground,
        Planned { plan, units, .. }: &Planned<'_>,
        (keep, overlay): (bool, Option<Lies<'_>>),
        requests: &mut [Request<'_>],
        report: &mut Report,
    ) -> Result<()> {
        let mut sweep = plan.sweep();
        let mut own = match &overlay {
            Some(Lies::Own(own)) => Some((own, own.sweep())),
            _ => None,
        };
        let mut rest = &units[..];
        while !rest.is_empty() {
            let mut held = 0;
            let fits = |(unit, _): &&(u64, u64)| {
                let bytes = self.space.chunk_at(*unit).map_or(0, |(_, _, bytes)| bytes);
                let first = held == 0;
                held += bytes;
                first || held <= BATCH
            };
            let now: Vec<u64> = rest.iter().take_while(fits).map(|(unit, _)| *unit).collect();
            rest = &rest[now.len()..];
            let decoded = self.decode_all(ground, &now, (ground.chunk_threads(), keep), report)?;
            let clock = Instant::now();
            for (unit, values) in now.iter().zip(&decoded) {
                let end = unit + values.len() as u64;
                let taken = sweep.take_together(*unit, end, Overlap::Shared);
                let over = match (&overlay, &mut own, self.space.chunk_at(*unit)) {
                    (Some(Lies::Logs(logs)), _, Some((id, _, _))) => {
                        Some(logs.over(self, id, values)?)
                    }
                    (_, Some((puts, sweep)), _) => puts.over(sweep, *unit, values)?,
                    _ => None,
                };
                taken.take_out(*unit, over.as_ref().unwrap_or(values), requests)?;
                report.copied += taken.bytes();
            }
            report.phases.convert += clock.elapsed();
            let memory = decoded.iter().map(|values| values.len() as u64).sum();
            report.peak_memory = report.peak_memory.max(memory);
            decoded.into_iter().for_each(|values| self.give_buffer(values));
        }
        Ok(())
    }

    /// Reads requests of chunked variables together with all other ranks. Collective.
    pub(super) fn read_shared(
        &self,
        ground: &Ground,
        planned: &Planned<'_>,
        requests: &mut [Request<'_>],
        together: &ForUnits,
        report: &mut Report,
    ) -> Result<()> {
        if together.wanted == 0 {
            return Ok(());
        }
        let comm = &*ground.base.comm;
        // Little in vain, compared with what whoever wants most has to get.
        if comm.size() == 1 || together.vain.saturating_mul(IN_VAIN) < together.wanted {
            report.read_strategy = Strategy::Direct;
            let (whole, wanted) = planned.whole_and_wanted(self);
            let keep = wanted < whole;
            let outcome = self.read_own(ground, planned, (keep, None), requests, report);
            return ground.base.agree(outcome);
        }
        let Planned { plan, units, .. } = planned;
        let accesses = together.read.saturating_mul(comm.size() as u64);
        report.read_strategy = Strategy::Exchanged;
        let clock = Instant::now();
        let weights = (ground.base.hints.chunk_buffer, ground.penalty());
        let assigned = owners::assign(comm, &self.space, units, accesses, weights)?;
        report.phases.agree += clock.elapsed();
        let mut source = Decoding {
            ground,
            chunked: self,
            chunks: Chunks::new(&self.space, &assigned, units),
            threads: ground.owner_threads(&assigned)?,
            // What all ranks together have read, nobody is likely to ask for again.
            keep: !assigned.whole,
            held: 0,
            failed: None,
        };
        exchange::read(comm, plan, &mut source, requests, report)?;
        report.rounds += assigned.rounds;
        ground.base.agree(source.failed.map_or(Ok(()), Err))
    }
}

/// Chunks that their owners decode for all.
struct Decoding<'d> {
    ground: &'d Ground,
    chunked: &'d Chunked,
    chunks: Chunks<'d>,
    threads: usize,
    /// Whether they are put into the cache.
    keep: bool,
    /// Bytes of those that were decoded last.
    held: u64,
    /// What went wrong with this rank's own.
    failed: Option<Error>,
}

impl Units for Decoding<'_> {
    const ASCEND: bool = false;

    fn next_round(&mut self, _: &dyn Communicator, _: &Sweep<'_, '_>) -> Result<Option<u64>> {
        Ok(self.chunks.next_round())
    }

    fn of_round(&mut self, round: u64) -> Vec<Unit> {
        self.chunks.of_round(round)
    }

    fn memory(&self) -> u64 {
        self.held
    }
}

impl Source for Decoding<'_> {
    /// They are decoded whole.
    const BY_RUNS: bool = false;

    /// A chunk that is sent whole is a message of its own, which should not be a short one.
    const WHOLE: u64 = 64 << 10;

    fn want(&mut self, _: &Comb) {}

    fn get(
        &mut self,
        round: u64,
        report: &mut Report,
        give: &mut dyn FnMut(&[Got<'_>], &mut Report) -> Result<()>,
    ) -> Result<()> {
        let mut rest = self.chunks.owned(round);
        // A few chunks at a time, so that their memory is used again.
        while !rest.is_empty() {
            let count = how_many(rest, self.threads, |chunk| self.chunks.bytes_of(chunk));
            let (now, later) = rest.split_at(count);
            rest = later;
            let how = (self.threads, self.keep);
            let values =
                self.chunked.decode_all(self.ground, now, how, report).unwrap_or_else(|error| {
                    // The askers get some bytes all the same, and the error at the end.
                    self.failed.get_or_insert(error);
                    Vec::new()
                });
            let clock = Instant::now();
            let got = |(n, start): (usize, &u64)| {
                let (start, shared) = (*start, values.get(n));
                let bytes = shared.map_or(&[][..], |values| values);
                Got { start, end: start + self.chunks.bytes_of(start), bytes, shared }
            };
            let got: Vec<Got<'_>> = now.iter().enumerate().map(got).collect();
            self.held = values.iter().map(|v| v.len() as u64).sum();
            give(&got, report)?;
            report.phases.convert += clock.elapsed();
            values.into_iter().for_each(|values| self.chunked.give_buffer(values));
        }
        Ok(())
    }
}

/// How many of these chunks are decoded at a time: as few as keep all threads busy.
fn how_many(chunks: &[u64], threads: usize, bytes_of: impl Fn(u64) -> u64) -> usize {
    const LITTLE: u64 = 2 << 20;
    let mut held = 0;
    let full = chunks.iter().position(|chunk| {
        held += bytes_of(*chunk);
        held > LITTLE.saturating_mul(threads as u64)
    });
    full.map_or(chunks.len(), |n| n.max(threads).max(1)).min(chunks.len())
}
