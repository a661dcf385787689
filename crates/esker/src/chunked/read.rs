//! Reading: chunks are decoded once, and what requests want is taken out of them.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Instant;

use esker_comm::Communicator;
use esker_format::chunked::Entry;

use super::deferred::OwnPuts;
use super::over::Overlay;
use super::owners::{self, Assigned, Chunks};
use super::tables::Trouble;
use super::wait::Planned;
use super::{ChunkId, Chunked};
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

/// When a rank would decode this many hundredths of what it wants, owners decode for all.
const SHARED: u64 = 150;

/// What lies over chunks that a rank reads alone.
enum Over<'d> {
    /// Entries of its logs.
    Logs(Overlay),
    /// What it has put itself.
    Own(OwnPuts<'d>),
}

/// The values of a chunk, in external form.
type Decoded = Arc<Vec<u8>>;

/// Chunks that were decoded lately.
#[derive(Debug, Default)]
pub(crate) struct Cache {
    chunks: HashMap<ChunkId, Kept>,
    /// By when they were used.
    order: BTreeMap<u64, ChunkId>,
    memory: u64,
    clock: u64,
}

#[derive(Debug)]
struct Kept {
    /// What the table said then: a chunk that was written since is another one. (It may be in the same
    /// place and have the same checksum, which for data that end with their own is a constant, so
    /// that whoever writes forgets all.)
    entry: Entry,
    values: Decoded,
    used: u64,
}

impl Cache {
    /// Memory of a chunk, with what it takes to keep it.
    fn memory_of(values: &Decoded) -> u64 {
        values.len() as u64 + 400
    }

    fn get(&mut self, id: ChunkId, entry: &Entry) -> Option<Decoded> {
        self.clock += 1;
        let kept = self.chunks.get_mut(&id).filter(|kept| kept.entry == *entry)?;
        self.order.remove(&kept.used);
        self.order.insert(self.clock, id);
        kept.used = self.clock;
        Some(kept.values.clone())
    }

    /// Keeps a chunk; what it takes the place of goes to `gone`.
    fn put(
        &mut self,
        (id, entry): (ChunkId, Entry),
        values: &Decoded,
        most: u64,
        gone: &mut Vec<Decoded>,
    ) {
        let bytes = Cache::memory_of(values);
        if bytes > most / 2 {
            return;
        }
        self.clock += 1;
        let kept = Kept { entry, values: values.clone(), used: self.clock };
        self.order.insert(self.clock, id);
        if let Some(old) = self.chunks.insert(id, kept) {
            self.order.remove(&old.used);
            self.memory -= Cache::memory_of(&old.values);
            gone.push(old.values);
        }
        self.memory += bytes;
        while self.memory > most {
            let Some((_, oldest)) = self.order.pop_first() else { break };
            if let Some(old) = self.chunks.remove(&oldest) {
                self.memory -= Cache::memory_of(&old.values);
                gone.push(old.values);
            }
        }
    }
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
    // A box lies within one chunk, whatever its bytes are; runs are cut.
    for extent in extents {
        if let Some((shared, base)) = extent.shared() {
            shared.units.iter().for_each(|(unit, bytes)| add(base + unit, *bytes));
        }
        extent.parts(|at, len, whole| match whole {
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

    /// Decodes these chunks, by address, all in memory; `keep` puts them into the cache.
    fn decode_all(
        &self,
        chunked: &Chunked,
        units: &[u64],
        (threads, keep): (usize, bool),
        report: &mut Report,
    ) -> Result<Vec<Decoded>> {
        let clock = Instant::now();
        let mut ids = Vec::with_capacity(units.len());
        for unit in units {
            ids.push(chunked.space.chunk_at(*unit).ok_or(Error::Garbled)?.0);
        }
        let Some(first) = ids.first() else { return Ok(Vec::new()) };
        let tables = self.tables_of(chunked, first.var)?;
        let heap = chunked.heap_in(&*tables);
        let mut entries: Vec<Option<Entry>> = vec![None; ids.len()];
        let mut order: Vec<usize> = (0..ids.len()).collect();
        order.sort_by_key(|i| ids[*i]);
        for group in order.chunk_by(|a, b| ids[*a].var == ids[*b].var) {
            let Some(first) = group.first() else { continue };
            let numbers: Vec<u64> = group.iter().map(|i| ids[*i].number).collect();
            let found = chunked.of_chunk(ids[*first])?.entries(heap, &numbers);
            let found = found.map_err(|t| self.trouble(ids[*first].var, t))?;
            group.iter().zip(found).for_each(|(i, entry)| entries[*i] = entry);
        }
        let most = self.base.hints.chunk_cache;
        let mut out: Vec<Option<Decoded>> = vec![None; ids.len()];
        let mut fills: HashMap<usize, Decoded> = HashMap::new();
        let mut todo: Vec<usize> = Vec::new();
        for (i, (id, entry)) in ids.iter().zip(&entries).enumerate() {
            match entry {
                None => {
                    let filled = fills.entry(id.var.0);
                    let fill = match filled {
                        std::collections::hash_map::Entry::Occupied(o) => o.into_mut(),
                        std::collections::hash_map::Entry::Vacant(v) => {
                            let mut values = Vec::new();
                            chunked.of_chunk(*id)?.chunking.fill_chunk(&mut values);
                            v.insert(Arc::new(values))
                        }
                    };
                    out[i] = Some(fill.clone());
                }
                Some(entry) => {
                    let mut cache = chunked.cache.lock().unwrap_or_else(PoisonError::into_inner);
                    out[i] = cache.get(*id, entry);
                    if out[i].is_none() {
                        todo.push(i);
                    }
                }
            }
        }
        let next = AtomicUsize::new(0);
        let failed: Mutex<Option<(usize, Trouble)>> = Mutex::new(None);
        let decoded: Vec<OnceLock<Decoded>> = todo.iter().map(|_| OnceLock::new()).collect();
        let work = || {
            let mut scratch = chunked.take_scratch();
            let mut stored = Vec::new();
            loop {
                let n = next.fetch_add(1, Ordering::Relaxed);
                let Some(i) = todo.get(n) else { break };
                let (Some(entry), Ok(var)) = (&entries[*i], chunked.of_chunk(ids[*i])) else {
                    break;
                };
                let mut values = chunked.take_buffer();
                let memory = (&mut stored, &mut scratch);
                match var.decode(heap, ids[*i].number, entry, &mut values, memory) {
                    Ok(()) => drop(decoded[n].set(Arc::new(values))),
                    Err(trouble) => {
                        let mut failed = failed.lock().unwrap_or_else(PoisonError::into_inner);
                        // The first in order, whichever thread was faster.
                        if failed.as_ref().is_none_or(|(first, _)| n < *first) {
                            *failed = Some((n, trouble));
                        }
                    }
                }
            }
            chunked.give_scratch(scratch);
        };
        let threads = threads.min(todo.len());
        match threads {
            0 => {}
            1 => work(),
            _ => std::thread::scope(|scope| {
                (1..threads).for_each(|_| drop(scope.spawn(work)));
                work();
            }),
        }
        if let Some((n, trouble)) = failed.into_inner().unwrap_or_else(PoisonError::into_inner) {
            return Err(self.trouble(ids[todo[n]].var, trouble));
        }
        let mut cache = chunked.cache.lock().unwrap_or_else(PoisonError::into_inner);
        let mut gone = Vec::new();
        for (i, values) in todo.iter().zip(decoded) {
            let (Some(values), Some(entry)) = (values.into_inner(), entries[*i]) else {
                return Err(Error::Garbled);
            };
            if keep {
                cache.put((ids[*i], entry), &values, most, &mut gone);
            }
            report.reads += 1;
            report.bytes_read += entry.size;
            out[*i] = Some(values);
        }
        drop(cache);
        gone.into_iter().for_each(|values| chunked.give_buffer(values));
        report.phases.read += clock.elapsed();
        out.into_iter().map(|values| values.ok_or(Error::Garbled)).collect()
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
        let Some(chunked) = self.chunked.as_ref().filter(|_| together.read > 0) else {
            return Ok(());
        };
        let comm = &*self.base.comm;
        let ForUnits { whole, wanted, .. } = *together;
        // Whoever has most decides how long it takes.
        if comm.size() == 1 || whole.saturating_mul(100) < wanted.saturating_mul(SHARED) {
            report.read_strategy = Strategy::Direct;
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
    /// A chunk that is sent whole is a message of its own, which should not be a short one.
    const WHOLE: u64 = 64 << 10;

    /// They are decoded whole.
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
