//! Reading: chunks are decoded once, and what requests want is taken out of them.

use std::collections::{BTreeMap, HashMap};
use std::iter::Peekable;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Instant;
use std::vec::IntoIter;

use esker_comm::{Message, ReduceOp, Reduction, Sending, Tag};
use esker_format::chunked::Entry;
use esker_format::runs::Run;

use super::deferred::OwnPuts;
use super::over::Overlay;
use super::owners::{self, Assigned};
use super::tables::Trouble;
use super::{ChunkId, Chunked};
use crate::bounded::Bounded;
use crate::dataset::Dataset;
use crate::engine::{count, detach_extents};
use crate::error::{Error, Result};
use crate::plan::{Extent, Overlap, Piece, Plan};
use crate::report::{Report, Strategy};
use crate::request::Request;
use crate::taken;
use crate::wire::{self, RunList};

/// The tag of values that owners send to readers.
const REPLY: Tag = 2;

/// Decoded chunks that a read holds at a time, in bytes.
const BATCH: u64 = 16 << 20;

/// When all ranks together would decode this many hundredths of what they want, owners decode for all.
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

/// Chunks that were decoded lately, each with what the table said then: one that was written since
/// is another one. (It may be in the same place and have the same checksum, which for data that end
/// with their own is a constant, so that whoever writes forgets all.)
pub(crate) type Cache = Bounded<ChunkId, (Entry, Decoded)>;

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
                    let kept = cache.get(id).filter(|(then, _)| then == entry);
                    out[i] = kept.map(|(_, values)| values.clone());
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
            // One that would push out most of the others is not kept.
            let bytes = values.len() as u64;
            if keep && bytes <= most / 2 {
                let kept = (entry, values.clone());
                gone.extend(cache.put(ids[*i], kept, bytes, most).into_iter().map(|(_, old)| old));
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

    /// Reads requests of chunked variables, by this rank alone or together with all others, which is
    /// collective.
    pub(crate) fn read_chunked(
        &self,
        requests: &mut [Request<'_>],
        together: bool,
        report: &mut Report,
    ) -> Result<()> {
        let Some(chunked) = &self.chunked else { return Ok(()) };
        let extents = detach_extents(requests);
        let plan = Plan::new(extents.iter());
        count(report, &plan, requests.len());
        let units = touched(chunked, &extents);
        match together {
            true => self.read_shared(chunked, &plan, &units, requests, report),
            false => {
                let overlay = match OwnPuts::of(&chunked.deferred) {
                    Some(own) => Some(Over::Own(own)),
                    None => self.overlay()?.map(Over::Logs),
                };
                self.read_own(chunked, &plan, &units, (true, overlay), requests, report)
            }
        }
    }

    fn read_own(
        &self,
        chunked: &Chunked,
        plan: &Plan<'_>,
        units: &[(u64, u64)],
        (keep, overlay): (bool, Option<Over<'_>>),
        requests: &mut [Request<'_>],
        report: &mut Report,
    ) -> Result<()> {
        let mut sweep = plan.sweep();
        let mut own = match &overlay {
            Some(Over::Own(own)) => Some((own, own.sweep())),
            _ => None,
        };
        let mut rest = units;
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

    fn read_shared(
        &self,
        chunked: &Chunked,
        plan: &Plan<'_>,
        units: &[(u64, u64)],
        requests: &mut [Request<'_>],
        report: &mut Report,
    ) -> Result<()> {
        let comm = &*self.base.comm;
        let bytes_of = |unit: u64| chunked.space.chunk_at(unit).map_or(0, |(_, _, bytes)| bytes);
        let decoded: u64 = units.iter().map(|(unit, _)| bytes_of(*unit)).sum();
        let wanted: u64 = units.iter().map(|(_, bytes)| bytes).sum();
        let mut sums = [decoded, wanted, units.len() as u64];
        let clock = Instant::now();
        if comm.size() > 1 {
            comm.all_reduce(Reduction::U64(&mut sums), ReduceOp::Sum)?;
        }
        report.phases.agree += clock.elapsed();
        let [decoded, wanted, accesses] = sums;
        if wanted == 0 {
            return Ok(());
        }
        if comm.size() == 1 || decoded.saturating_mul(100) < wanted.saturating_mul(SHARED) {
            report.read_strategy = Strategy::Direct;
            let keep = wanted < decoded;
            let outcome = self.read_own(chunked, plan, units, (keep, None), requests, report);
            return self.base.agree(outcome);
        }
        report.read_strategy = Strategy::Exchanged;
        let clock = Instant::now();
        let weights = (self.base.hints.chunk_buffer, self.penalty());
        let assigned = owners::assign(comm, &chunked.space, units, accesses, weights)?;
        report.phases.agree += clock.elapsed();
        let threads = self.owner_threads(&assigned)?;
        let mut failed = None;
        for round in 0..assigned.rounds {
            let this = (round, threads);
            let outcome = self.read_round(chunked, plan, &assigned, this, requests, report)?;
            failed = failed.or(outcome);
        }
        report.rounds += assigned.rounds;
        self.base.agree(failed.map_or(Ok(()), Err))
    }

    /// One round of a collective read; gives what went wrong with this rank's own chunks.
    fn read_round(
        &self,
        chunked: &Chunked,
        plan: &Plan<'_>,
        assigned: &Assigned,
        (round, threads): (u64, usize),
        requests: &mut [Request<'_>],
        report: &mut Report,
    ) -> Result<Option<Error>> {
        let comm = &*self.base.comm;
        let none = Vec::new();
        let owned = assigned.owned.get(round as usize).unwrap_or(&none);
        let bytes_of = |unit: u64| chunked.space.chunk_at(unit).map_or(0, |(_, _, bytes)| bytes);
        let all = || assigned.mine.iter().filter(|m| m.round == round);
        let mut sweep = plan.sweep();
        let mut asked_of: BTreeMap<usize, Asked> = BTreeMap::new();
        let clock = Instant::now();
        for mine in all().filter(|m| m.owner != comm.rank()) {
            let bytes = bytes_of(mine.address);
            let pieces = sweep.take(mine.address, mine.address + bytes, Overlap::Shared);
            let asked = asked_of.entry(mine.owner).or_default();
            match is_asked_whole(pieces, bytes) {
                true => asked.whole.push(mine.address),
                false => asked.pieces.extend_from_slice(pieces),
            }
        }
        let mut messages = Vec::with_capacity(asked_of.len());
        for (rank, asked) in &asked_of {
            let message = asked.message();
            report.messages += 1;
            report.message_bytes += message.len() as u64;
            messages.push((*rank, message));
        }
        report.phases.convert += clock.elapsed();
        let clock = Instant::now();
        let asked = comm.sparse_exchange(messages)?;
        report.phases.exchange += clock.elapsed();
        let mut answers = Vec::with_capacity(asked.len());
        for (rank, message) in &asked {
            answers.push(Answer::to(*rank, message).ok_or(Error::Garbled)?);
        }
        let mut sends = Vec::with_capacity(asked.len());
        let mut failed = None;
        let mut own = all().filter(|m| m.owner == comm.rank()).peekable();
        let mut sweep = plan.sweep();
        let mut rest = &owned[..];
        // What all ranks together have read, nobody is likely to ask for again.
        let keep = !assigned.whole;
        // A few chunks at a time, so that their memory is used again.
        while !rest.is_empty() {
            let count = how_many(rest, threads, bytes_of);
            let (now, later) = rest.split_at(count);
            rest = later;
            let end = rest.first().copied().unwrap_or(u64::MAX);
            let values = match self.decode_all(chunked, now, (threads, keep), report) {
                Ok(values) => values,
                // The askers get some bytes all the same, and the error at the end.
                Err(error) => {
                    failed.get_or_insert(error);
                    Vec::new()
                }
            };
            let clock = Instant::now();
            for answer in &mut answers {
                let rank = answer.rank;
                answer.take_out(now, end, &values, |address| {
                    let at = now.binary_search(&address).map_err(|_| Error::Garbled)?;
                    let zeros = || Arc::new(vec![0; bytes_of(address) as usize]);
                    let whole = Message::from(values.get(at).cloned().unwrap_or_else(zeros));
                    report.messages += 1;
                    report.message_bytes += whole.len() as u64;
                    sends.push(comm.isend(rank, REPLY, whole)?);
                    Ok(())
                })?;
            }
            while let Some(mine) = own.next_if(|m| m.address < end) {
                let at = now.binary_search(&mine.address).map_err(|_| Error::Garbled)?;
                let Some(values) = values.get(at) else { continue };
                let end = mine.address + values.len() as u64;
                let taken = sweep.take_together(mine.address, end, Overlap::Shared);
                taken.take_out(mine.address, values, requests)?;
                report.copied += taken.bytes();
            }
            report.phases.convert += clock.elapsed();
            let memory = values.iter().map(|v| v.len() as u64).sum::<u64>();
            report.peak_memory = report.peak_memory.max(memory);
            values.into_iter().for_each(|values| chunked.give_buffer(values));
        }
        for Answer { rank, pieces, .. } in answers {
            if !pieces.is_empty() {
                report.copied += pieces.len() as u64;
                report.messages += 1;
                report.message_bytes += pieces.len() as u64;
                sends.push(comm.isend(rank, REPLY, Message::from(pieces))?);
            }
        }
        // Whole chunks in the order of the plan; each owner sends in that order too.
        let mut sweep = plan.sweep();
        for mine in all().filter(|m| m.owner != comm.rank()) {
            let asked = asked_of.get(&mine.owner).ok_or(Error::Garbled)?;
            if asked.whole.binary_search(&mine.address).is_err() {
                continue;
            }
            let bytes = bytes_of(mine.address);
            let clock = Instant::now();
            let receiving = comm.irecv_sized(mine.owner, REPLY, bytes as usize)?;
            let chunk = receiving.wait()?.message;
            report.phases.exchange += clock.elapsed();
            let clock = Instant::now();
            let taken = sweep.take_together(mine.address, mine.address + bytes, Overlap::Shared);
            taken.take_out(mine.address, &chunk, requests)?;
            report.copied += taken.bytes();
            report.phases.convert += clock.elapsed();
        }
        for (rank, Asked { pieces, .. }) in asked_of.iter().filter(|(_, a)| !a.pieces.is_empty()) {
            let length = taken::union_len(pieces);
            let clock = Instant::now();
            let reply = comm.irecv_sized(*rank, REPLY, length as usize)?.wait()?.message;
            report.phases.exchange += clock.elapsed();
            let clock = Instant::now();
            taken::unpack(&reply, pieces, requests)?;
            report.copied += length;
            report.phases.convert += clock.elapsed();
        }
        Sending::wait_all(sends)?;
        Ok(failed)
    }

    /// The weight of what a rank owns already.
    pub(super) fn penalty(&self) -> f64 {
        self.base.hints.chunk_penalty as f64 / 100.0
    }
}

/// What a rank wants of chunks that another one owns.
#[derive(Debug, Default)]
struct Asked {
    /// Chunks that it takes pieces out of itself, by address.
    whole: Vec<u64>,
    /// Pieces of the others.
    pieces: Vec<Piece>,
}

/// Bytes that can be sent in the time that a run takes which is told, found and copied for itself:
/// 40 ns at 4 GB/s.
const RUN: u64 = 160;

/// A chunk that is sent whole is a message of its own, which should not be a short one.
const LONG: u64 = 64 << 10;

/// Whether the owner of a chunk should send all of it to one who wants these pieces.
fn is_asked_whole(pieces: &[Piece], bytes: u64) -> bool {
    if bytes < LONG {
        return false;
    }
    let wanted: u64 = pieces.iter().map(|p| p.len).sum();
    bytes <= wanted.saturating_add(RUN * pieces.len() as u64)
}

impl Asked {
    /// How many chunks are wanted whole, their addresses, then the runs of pieces.
    fn message(&self) -> Message {
        let numbers = [self.whole.len() as u64].into_iter().chain(self.whole.iter().copied());
        let mut message: Vec<u8> = numbers.flat_map(u64::to_le_bytes).collect();
        let mut list = RunList::new(0);
        self.pieces.iter().for_each(|p| list.push(Run { offset: p.offset, len: p.len }));
        message.append(&mut list.finish(false, Vec::new()).0);
        Message::from(message)
    }
}

/// What another rank has asked for, as far as it was not found yet.
struct Answer<'m> {
    rank: usize,
    /// Chunks that it wants whole, by address.
    whole: Peekable<IntoIter<u64>>,
    runs: wire::RunsOf<'m>,
    /// What is left of the run that was looked at last.
    open: Option<Run>,
    /// The bytes of the runs so far.
    pieces: Vec<u8>,
}

impl<'m> Answer<'m> {
    fn to(rank: usize, message: &'m [u8]) -> Option<Answer<'m>> {
        let (count, rest) = message.split_first_chunk::<8>()?;
        let bytes = u64::from_le_bytes(*count).checked_mul(8)?;
        let (whole, list) = rest.split_at_checked(usize::try_from(bytes).ok()?)?;
        let whole = whole.as_chunks::<8>().0.iter().map(|n| u64::from_le_bytes(*n));
        let whole = whole.collect::<Vec<u64>>().into_iter().peekable();
        let (combs, _) = wire::open(list, 0)?;
        let len = combs.clone().map(|comb| comb.bytes() as usize).sum();
        Some(Answer {
            rank,
            whole,
            runs: combs.runs(),
            open: None,
            pieces: Vec::with_capacity(len),
        })
    }

    /// Takes what is wanted out of these chunks, behind which the next one begins at `end`.
    fn take_out(
        &mut self,
        chunks: &[u64],
        end: u64,
        values: &[Decoded],
        mut send: impl FnMut(u64) -> Result<()>,
    ) -> Result<()> {
        while let Some(address) = self.whole.next_if(|address| *address < end) {
            send(address)?;
        }
        let mut number = 0;
        while let Some(run) = self.open.take().or_else(|| self.runs.next()) {
            if run.offset >= end {
                self.open = Some(run);
                return Ok(());
            }
            let here = Run { len: run.end().min(end) - run.offset, ..run };
            append_run(&mut self.pieces, here, chunks, values, &mut number);
            if here.end() < run.end() {
                self.open = Some(Run { offset: end, len: run.end() - end });
                return Ok(());
            }
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

/// Appends the bytes of a run, which may lie in several chunks; zeros where they are not known. `next`
/// is the number of a chunk that the runs before it have come to.
fn append_run(out: &mut Vec<u8>, run: Run, owned: &[u64], values: &[Decoded], next: &mut usize) {
    let (mut at, end) = (run.offset, run.end());
    while at < end {
        while owned.get(*next + 1).is_some_and(|start| *start <= at) {
            *next += 1;
        }
        let chunk = owned.get(*next).filter(|start| **start <= at).zip(values.get(*next));
        match chunk.filter(|(start, values)| at < **start + values.len() as u64) {
            Some((start, values)) => {
                let from = (at - start) as usize;
                let n = (end - at).min(values.len() as u64 - from as u64);
                out.extend_from_slice(&values[from..from + n as usize]);
                at += n;
            }
            None => {
                out.resize(out.len() + (end - at) as usize, 0);
                at = end;
            }
        }
    }
}
