//! Reading: chunks are decoded once, and what requests want is taken out of them.

use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Instant;

use esker_comm::Communicator;

use super::Chunked;
use super::decode::Cache;
use super::deferred::OwnPuts;
use super::over::Overlay;
use super::owners::{self, Assigned, Chunks};
use super::wait::Planned;
use crate::comb::Comb;
use crate::dataset::Dataset;
use crate::engine::detach_extents;
use crate::error::{Error, Result};
use crate::exchange::{self, Got, Source, Unit, Units};
use crate::plan::{Extent, Overlap, Sweep};
use crate::report::{Report, Strategy};
use crate::request::Request;
use crate::strategy::ForUnits;

/// Decoded chunks that a read holds at a time, in bytes.
const BATCH: u64 = 16 << 20;

/// When a rank would decode in vain this part of what another one wants, owners decode for all.
const IN_VAIN: u64 = 8;

/// What lies over chunks that a rank reads alone.
enum Over<'d> {
    /// Entries of its logs.
    Logs(Overlay),
    /// What it has put itself.
    Own(OwnPuts<'d>),
}

impl Chunked {
    /// The chunks that extents touch, with the bytes that they have of each, by address.
    pub(crate) fn touched_by(&self, extents: &[Extent]) -> Vec<(u64, u64)> {
        touched(self, extents)
    }
}

/// The chunks that requests touch, with the bytes that they want of each, by address.
pub(super) fn touched(chunked: &Chunked, extents: &[Extent]) -> Vec<(u64, u64)> {
    let mut units: Vec<(u64, u64)> = Vec::new();
    let (mut start, mut end) = (0, 0);
    let mut add = |mut at: u64, mut len: u64| {
        while len > 0 {
            if !(start..end).contains(&at) {
                let Some((_, begin, bytes)) = chunked.space.chunk_at(at) else { return };
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
                if let Some((_, begin, bytes)) = chunked.space.chunk_at(at) {
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

impl Dataset {
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

    /// Forgets decoded chunks.
    pub(crate) fn forget_chunks(&mut self) {
        if let Some(chunked) = &mut self.chunked {
            *chunked.cache.get_mut().unwrap_or_else(PoisonError::into_inner) = Cache::default();
            // Reads in the background begin anew, too.
            self.reading = Mutex::default();
        }
    }

    /// Reads requests of chunked variables, by this rank alone.
    pub(crate) fn read_chunked(
        &self,
        requests: &mut [Request<'_>],
        report: &mut Report,
    ) -> Result<()> {
        let Some(chunked) = &self.chunked else { return Ok(()) };
        let extents = detach_extents(requests);
        let planned = chunked.plan(&extents);
        planned.count(report);
        let overlay = match OwnPuts::of(&chunked.deferred) {
            Some(own) => Some(Over::Own(own)),
            None => self.overlay()?.map(Over::Logs),
        };
        self.read_own(chunked, &planned, (true, overlay), requests, report)
    }

    fn read_own(
        &self,
        chunked: &Chunked,
        Planned { plan, units, .. }: &Planned<'_>,
        (keep, overlay): (bool, Option<Over<'_>>),
        requests: &mut [Request<'_>],
        report: &mut Report,
    ) -> Result<()> {
        let mut sweep = plan.sweep();
        let mut own = match &overlay {
            Some(Over::Own(own)) => Some((own, own.sweep())),
            _ => None,
        };
        let mut rest = &units[..];
        while !rest.is_empty() {
            let mut held = 0;
            let fits = |(unit, _): &&(u64, u64)| {
                let bytes = chunked.space.chunk_at(*unit).map_or(0, |(_, _, bytes)| bytes);
                let first = held == 0;
                held += bytes;
                first || held <= BATCH
            };
            let now: Vec<u64> = rest.iter().take_while(fits).map(|(unit, _)| *unit).collect();
            rest = &rest[now.len()..];
            let decoded = self.decode_all(chunked, &now, (self.chunk_threads(), keep), report)?;
            let clock = Instant::now();
            for (unit, values) in now.iter().zip(&decoded) {
                let end = unit + values.len() as u64;
                let taken = sweep.take_together(*unit, end, Overlap::Shared);
                let over = match (&overlay, &mut own, chunked.space.chunk_at(*unit)) {
                    (Some(Over::Logs(logs)), _, Some((id, _, _))) => {
                        Some(logs.over(chunked, id, values)?)
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
            decoded.into_iter().for_each(|values| chunked.give_buffer(values));
        }
        Ok(())
    }

    /// Reads requests of chunked variables together with all other ranks. Collective.
    pub(super) fn read_shared(
        &self,
        planned: &Planned<'_>,
        requests: &mut [Request<'_>],
        together: &ForUnits,
        report: &mut Report,
    ) -> Result<()> {
        let Some(chunked) = self.chunked.as_ref().filter(|_| together.wanted > 0) else {
            return Ok(());
        };
        let comm = &*self.base.comm;
        // Little in vain, compared with what whoever wants most has to get.
        if comm.size() == 1 || together.vain.saturating_mul(IN_VAIN) < together.wanted {
            report.read_strategy = Strategy::Direct;
            let (whole, wanted) = planned.whole_and_wanted(chunked);
            let keep = wanted < whole;
            let outcome = self.read_own(chunked, planned, (keep, None), requests, report);
            return self.base.agree(outcome);
        }
        let Planned { plan, units, .. } = planned;
        let accesses = together.read.saturating_mul(comm.size() as u64);
        report.read_strategy = Strategy::Exchanged;
        let clock = Instant::now();
        let weights = (self.base.hints.chunk_buffer, self.penalty());
        let assigned = owners::assign(comm, &chunked.space, units, accesses, weights)?;
        report.phases.agree += clock.elapsed();
        let mut source = Decoding {
            dataset: self,
            chunked,
            chunks: Chunks::new(&chunked.space, &assigned, units),
            threads: self.owner_threads(&assigned)?,
            // What all ranks together have read, nobody is likely to ask for again.
            keep: !assigned.whole,
            held: 0,
            failed: None,
        };
        exchange::read(comm, plan, &mut source, requests, report)?;
        report.rounds += assigned.rounds;
        self.base.agree(source.failed.map_or(Ok(()), Err))
    }

    /// The weight of what a rank owns already.
    pub(super) fn penalty(&self) -> f64 {
        self.base.hints.chunk_penalty as f64 / 100.0
    }
}

/// Chunks that their owners decode for all.
struct Decoding<'d> {
    dataset: &'d Dataset,
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
            let (dataset, how) = (self.dataset, (self.threads, self.keep));
            let values =
                dataset.decode_all(self.chunked, now, how, report).unwrap_or_else(|error| {
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
