//! The road of a write: pieces to the owners of chunks, chunks through filters into the heap.

use std::collections::BTreeMap;
use std::mem;
use std::sync::{Mutex, PoisonError};
use std::thread::{self, ScopedJoinHandle};
use std::time::{Duration, Instant};

use esker_comm::{CommunicatorExt, ReduceOp, Reduction};
use esker_format::RangeReport;
use esker_format::chunked::Entry;
use esker_store::File;

use super::files::Own;
use super::heap::{Heap, room_for};
use super::once::Treat;
use super::owners::{self, Assigned};
use super::read::touched;
use super::tables::{HeapFile, Trouble};
use super::{ChunkId, Chunked};
use crate::dataset::Dataset;
use crate::engine::{count, detach_extents};
use crate::error::{Error, Result};
use crate::exchange;
use crate::hints::Rewrite;
use crate::plan::{Overlap, Piece, Plan};
use crate::report::{Report, Strategy, Tally};
use crate::request::Request;
use crate::taken::Taken;
use crate::window::Window;
use crate::wire;

/// Stored chunks that are written at once, in bytes, where they lie side by side.
const AT_ONCE: usize = 4 << 20;

/// A chunk that was encoded.
struct Encoded {
    id: ChunkId,
    /// What the table says of it until now.
    old: Option<Entry>,
    stored: Vec<u8>,
    mask: u16,
    crc32c: u32,
    /// Whether values of it have been through a filter that does not settle.
    changed: bool,
}

/// A chunk that has its place.
#[derive(Debug, Clone, Copy)]
pub(super) struct Placed {
    pub(super) id: ChunkId,
    pub(super) old: Option<Entry>,
    pub(super) entry: Entry,
}

/// Where new chunks go: the heap, or the file that this rank's chunks go to.
struct Ends<'e> {
    heap: &'e mut Heap,
    own: Option<&'e mut Own>,
}

/// What a write has come to.
enum Written {
    /// Chunks are in their places, and tables may say so.
    Placed(Vec<Placed>),
    /// The heap must become this long first.
    NoRoom(u64),
}

/// What a round has made of its chunks, and how long it took.
type Round = (Vec<Encoded>, Option<(ChunkId, Trouble)>, Duration);
type Encoding<'s> = ScopedJoinHandle<'s, Round>;
type Writing<'s> = ScopedJoinHandle<'s, (Result<()>, Tally, Duration)>;

impl Dataset {
    /// Writes requests of chunked variables together with all other ranks. Collective.
    pub(crate) fn write_chunked(
        &mut self,
        puts: &mut [Request<'_>],
        report: &mut Report,
    ) -> Result<()> {
        let clock = Instant::now();
        let Some(chunked) = &self.chunked else { return Ok(()) };
        let extents = detach_extents(puts);
        let plan = Plan::new(extents.iter());
        count(report, &plan, puts.len());
        let units = touched(chunked, &extents);
        report.phases.plan += clock.elapsed();
        let clock = Instant::now();
        let needed = puts.iter().map(|r| r.records).max().unwrap_or(0).max(self.records);
        let mut numbers = [needed, units.len() as u64, self.records];
        let comm = self.base.comm.clone();
        if comm.size() > 1 {
            comm.all_reduce(Reduction::U64(&mut numbers), ReduceOp::Max)?;
        }
        let [mut records, most_units, mut existing] = numbers;
        if most_units == 0 {
            return Ok(());
        }
        let mending = self.chunked.as_ref().is_some_and(|chunked| chunked.mending);
        if mending {
            (records, existing) = (self.counted(), self.counted());
        }
        report.phases.agree += clock.elapsed();
        let placed = loop {
            let begun = self.begin_records(records);
            match self.write_units(&plan, &units, existing, puts, begun, report)? {
                Written::Placed(placed) => break placed,
                Written::NoRoom(needed) => self.make_room(needed)?,
            }
            // Values are looked at again.
            puts.iter_mut().for_each(|put| put.range = RangeReport::default());
        };
        let clock = Instant::now();
        if records > existing && self.fills_records() {
            let filled = self.fill_share(existing, records, None);
            if let Err(error) = self.base.agree(filled) {
                if let Some(chunked) = &mut self.chunked {
                    chunked.heap.give_back(&placed);
                }
                return Err(error);
            }
        }
        self.commit_chunks(&placed)?;
        report.phases.agree += clock.elapsed();
        if mending {
            return Ok(());
        }
        self.note_records(puts);
        self.grow_together(records)
    }

    /// Brings pieces to the owners of chunks and these into the heap. Collective.
    fn write_units(
        &mut self,
        plan: &Plan<'_>,
        units: &[(u64, u64)],
        existing: u64,
        puts: &mut [Request<'_>],
        begun: Result<()>,
        report: &mut Report,
    ) -> Result<Written> {
        let clock = Instant::now();
        self.know_heap()?;
        self.forget_chunks();
        let comm = self.base.comm.clone();
        let Some(mut chunked) = self.chunked.take() else { return Ok(Written::Placed(Vec::new())) };
        let shared = chunked.files.as_mut().map_or(Ok(()), |files| files.share(&self.base));
        let mut own = chunked.files.as_mut().and_then(|files| files.own.take());
        let mut heap = mem::take(&mut chunked.heap);
        let mut before = heap.clone();
        let written = shared.and_then(|()| {
            let (buffer, weight) = (self.base.hints.chunk_buffer, self.penalty());
            let assigned = owners::assign(&*comm, &chunked.space, units, buffer, weight)?;
            report.rounds += assigned.rounds;
            if chunked.has_records() {
                // Before anything else, so that entries find their places when chunks are written.
                let ids = assigned.owned.iter().flatten();
                let ids = ids.filter_map(|unit| chunked.space.chunk_at(*unit).map(|(id, _, _)| id));
                let longer = self.lengthen_tables(&chunked, &mut heap, ids);
                before.end = heap.end;
                if let Some(needed) = longer? {
                    return Ok(Written::NoRoom(needed));
                }
            }
            report.phases.agree += clock.elapsed();
            report.write_strategy = Strategy::Exchanged;
            let ends = Ends { heap: &mut heap, own: own.as_mut() };
            self.write_rounds(&chunked, ends, plan, &assigned, existing, puts, begun, report)
        });
        if !matches!(written, Ok(Written::Placed(_))) {
            // What was written for nothing is written over; tables that are longer now stay so.
            heap = before;
        }
        chunked.heap = heap;
        if let Some(files) = &mut chunked.files {
            files.own = own;
        }
        self.chunked = Some(chunked);
        written
    }

    /// Remembers how many records of each variable were written, for its attribute.
    fn note_records(&mut self, puts: &[Request<'_>]) {
        let Some(chunked) = &mut self.chunked else { return };
        for put in puts {
            chunked.note_records(put.var, put.records);
        }
    }

    /// Exchanges, encodes and writes round by round. Gives the chunks that have a place now, and what
    /// went wrong with this rank's share; the error of the call is one that ranks cannot go on after.
    #[allow(clippy::too_many_arguments)]
    fn write_rounds(
        &self,
        chunked: &Chunked,
        mut ends: Ends<'_>,
        plan: &Plan<'_>,
        assigned: &Assigned,
        existing: u64,
        puts: &mut [Request<'_>],
        begun: Result<()>,
        report: &mut Report,
    ) -> Result<Written> {
        let tables = self.tables_file(chunked)?;
        let begin = ends.heap.begin;
        let file = HeapFile { begin, ..chunked.heap_in(&*tables) };
        // Where chunks are written.
        let own = ends.own.as_ref().map(|own| own.file.clone());
        let target = own.as_deref().map_or(file, |own| HeapFile::new(own, 0));
        let mut placed: Vec<Placed> = Vec::new();
        let mut failed: Option<Error> = begun.err();
        let mut missing: Option<u64> = None;
        let threads = self.chunk_threads();
        let apart = assigned.rounds > 1;
        // Not where a later round may find no room: all of it is done again then, and needs what the
        // chunks were.
        let in_place = self.base.hints.chunk_rewrite == Rewrite::InPlace
            && (!apart || ends.heap.limit.is_none());
        let mut spare: Vec<Window> = Vec::new();
        thread::scope(|scope| {
            let mut encoding: Option<Encoding<'_>> = None;
            let mut writing: Option<Writing<'_>> = None;
            for round in 0..=assigned.rounds {
                let windows = match round < assigned.rounds {
                    false => None,
                    true => {
                        Some(self.gather(chunked, plan, assigned, round, puts, &mut spare, report)?)
                    }
                };
                let encode = |windows: Vec<Window>| {
                    let clock = Instant::now();
                    let (encoded, trouble) = encode_all(chunked, file, windows, existing, threads);
                    (encoded, trouble, clock.elapsed())
                };
                // What was gathered in the round before is encoded by now.
                let mut finished = encoding.take().map(joined);
                match windows {
                    Some(windows) if apart => encoding = Some(scope.spawn(move || encode(windows))),
                    Some(windows) => finished = Some(encode(windows)),
                    None => {}
                }
                let Some((mut encoded, trouble, time)) = finished else { continue };
                report.phases.convert += time;
                if let Some((id, trouble)) = trouble {
                    failed.get_or_insert(self.trouble(id.var, trouble));
                }
                if failed.is_some() {
                    encoded.clear();
                }
                let clock = Instant::now();
                let entries = self.place(&mut ends, &encoded, in_place)?;
                report.phases.agree += clock.elapsed();
                let entries = match entries {
                    Ok(entries) => entries,
                    Err(needed) => {
                        // The same on every rank. The rounds that follow tell how much is missing.
                        missing = Some(missing.unwrap_or(0).max(needed));
                        encoded.clear();
                        Vec::new()
                    }
                };
                placed.extend(&entries);
                let store = move || {
                    let clock = Instant::now();
                    let mut tally = Tally::default();
                    let outcome = store(target, &encoded, &entries, &mut tally);
                    (outcome, tally, clock.elapsed())
                };
                let mut done = writing.take().map(joined);
                match apart {
                    true => writing = Some(scope.spawn(store)),
                    false => done = Some(store()),
                }
                note(done, &mut failed, report);
            }
            note(writing.take().map(joined), &mut failed, report);
            Ok::<(), Error>(())
        })?;
        let ordered = self.base.hints.chunk_rewrite == Rewrite::Ordered && missing.is_none();
        let stored = failed.map_or(Ok(()), Err).and_then(|()| match ordered {
            true => self.reach_disk(&*tables, own.as_deref()),
            false => Ok(()),
        });
        self.base.agree(stored)?;
        if ordered {
            // What calls before this one have replaced was replaced on the disk.
            ends.heap.synced();
        }
        Ok(missing.map_or(Written::Placed(placed), Written::NoRoom))
    }

    /// Waits until this rank's chunks, and what was written before them, are on the disk.
    fn reach_disk(&self, tables: &dyn File, own: Option<&dyn File>) -> Result<()> {
        tables.sync()?;
        if let Some(own) = own {
            own.sync()?;
            // The header is in another file.
            if self.base.is_root() {
                self.file.sync()?;
            }
        }
        Ok(())
    }

    /// The pieces of a round, laid into the chunks that this rank owns. Collective.
    #[allow(clippy::too_many_arguments)]
    fn gather(
        &self,
        chunked: &Chunked,
        plan: &Plan<'_>,
        assigned: &Assigned,
        round: u64,
        puts: &mut [Request<'_>],
        spare: &mut Vec<Window>,
        report: &mut Report,
    ) -> Result<Vec<Window>> {
        let comm = &*self.base.comm;
        let none = Vec::new();
        let owned = assigned.owned.get(round as usize).unwrap_or(&none);
        let bytes_of = |unit: u64| chunked.space.chunk_at(unit).map_or(0, |(_, _, bytes)| bytes);
        let mut windows: Vec<Window> = Vec::with_capacity(owned.len());
        for unit in owned {
            let mut window = spare.pop().unwrap_or_default();
            window.reset(*unit, bytes_of(*unit));
            windows.push(window);
        }
        let clock = Instant::now();
        let mut sweep = plan.sweep();
        let mut away: BTreeMap<usize, Vec<Piece>> = BTreeMap::new();
        let mut next = 0;
        for mine in assigned.mine.iter().filter(|m| m.round == round) {
            let end = mine.address + bytes_of(mine.address);
            if mine.owner != comm.rank() {
                let pieces = sweep.take(mine.address, end, Overlap::LaterWins);
                report.copied += pieces.iter().map(|p| p.len).sum::<u64>();
                away.entry(mine.owner).or_default().extend_from_slice(pieces);
                continue;
            }
            let taken = sweep.take_together(mine.address, end, Overlap::LaterWins);
            report.copied += taken.bytes();
            next += owned[next..].partition_point(|unit| *unit < mine.address);
            let window = windows.get_mut(next).ok_or(Error::Garbled)?;
            taken.lay(window, puts)?;
        }
        let mut messages = Vec::with_capacity(away.len());
        for (rank, pieces) in away {
            let taken = Taken::Pieces(pieces.into());
            let message = exchange::pack(0, &taken, puts, None)?;
            report.messages += 1;
            report.message_bytes += message.len() as u64;
            messages.push((rank, message));
        }
        report.phases.convert += clock.elapsed();
        if comm.size() == 1 {
            return Ok(windows);
        }
        let clock = Instant::now();
        let mut received = comm.sparse_exchange(messages)?;
        report.phases.exchange += clock.elapsed();
        let clock = Instant::now();
        // In the order of ranks, so that what several ranks write is the same every time.
        received.sort_by_key(|(rank, _)| *rank);
        let came: u64 = received.iter().map(|(_, m)| m.len() as u64).sum();
        for (_, message) in received {
            report.copied += lay(&mut windows, owned, &message)?;
        }
        report.phases.convert += clock.elapsed();
        let memory = windows.iter().map(Window::memory).sum::<u64>() + came;
        report.peak_memory = report.peak_memory.max(memory);
        Ok(windows)
    }

    /// Finds places for encoded chunks: holes of this rank, or one stretch at the end. Collective; the
    /// inner error, the same on every rank, is how long a heap must be that has room for them.
    fn place(
        &self,
        ends: &mut Ends<'_>,
        encoded: &[Encoded],
        in_place: bool,
    ) -> Result<Result<Vec<Placed>, u64>> {
        let Ends { heap, own } = ends;
        // Those who put chunks into the same file.
        let comm = own.as_ref().map_or(&*self.base.comm, |own| &*own.group);
        let file = own.as_ref().map_or(0, |own| own.number);
        let mut places: Vec<Option<u64>> = Vec::with_capacity(encoded.len());
        let mut total = 0;
        for chunk in encoded {
            let len = chunk.stored.len() as u64;
            let fits = chunk
                .old
                .filter(|old| in_place && old.file == file && room_for(len) <= room_for(old.size));
            let place = match fits {
                Some(old) => Some(old.place),
                None => heap.take(len),
            };
            if place.is_none() {
                total += room_for(len);
            }
            places.push(place);
        }
        let (mut at, all) = match comm.size() {
            1 => (0, total),
            _ => {
                let mut before = [total];
                comm.exclusive_scan(&mut before)?;
                (before[0], comm.sum_u64(total)?)
            }
        };
        let end = own.as_ref().map_or(heap.end.unwrap_or(0), |own| own.end);
        let limit = heap.limit.filter(|_| file == 0);
        match own {
            Some(own) => own.end = end + all,
            None => heap.end = Some(end + all),
        }
        if limit.is_some_and(|limit| end.saturating_add(all) > limit) {
            return Ok(Err(end + all));
        }
        at += end;
        let mut placed = Vec::with_capacity(encoded.len());
        for (chunk, place) in encoded.iter().zip(places) {
            let size = chunk.stored.len() as u64;
            let place = place.unwrap_or_else(|| {
                let here = at;
                at += room_for(size);
                heap.put(here);
                here
            });
            let Encoded { id, old, mask, crc32c, changed, .. } = *chunk;
            let entry = Entry { place, size, crc32c, mask, file, changed };
            placed.push(Placed { id, old, entry });
        }
        Ok(Ok(placed))
    }
}

/// The outcome of a thread. A panic in it is the caller's too.
fn joined<T>(handle: ScopedJoinHandle<'_, T>) -> T {
    handle.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

fn note(
    done: Option<(Result<()>, Tally, Duration)>,
    failed: &mut Option<Error>,
    report: &mut Report,
) {
    let Some((outcome, tally, time)) = done else { return };
    report.add(tally);
    report.phases.write += time;
    if let Err(error) = outcome {
        failed.get_or_insert(error);
    }
}

/// Lays the pieces of a message into the chunks that they are of.
fn lay(windows: &mut [Window], owned: &[u64], message: &[u8]) -> Result<u64> {
    let (runs, payload) = wire::open(message, 0).ok_or(Error::Garbled)?;
    let mut rest = payload;
    let mut next = 0;
    for run in runs.runs() {
        let (mut at, end) = (run.offset, run.end());
        // A run may go on in the chunk behind.
        while at < end {
            next += owned[next..].partition_point(|unit| *unit <= at);
            let number = next.checked_sub(1).ok_or(Error::Garbled)?;
            next = number;
            let to = owned.get(number + 1).map_or(end, |behind| end.min(*behind));
            let window = &mut windows[number];
            let (now, later) = rest.split_at_checked((to - at) as usize).ok_or(Error::Garbled)?;
            window.lay_checked(at, now).ok_or(Error::Garbled)?;
            (rest, at) = (later, to);
        }
    }
    Ok(payload.len() as u64)
}

/// Completes chunks with what is stored of them, or fill values, and encodes them, on several threads.
fn encode_all(
    chunked: &Chunked,
    heap: HeapFile<'_>,
    windows: Vec<Window>,
    existing: u64,
    threads: usize,
) -> (Vec<Encoded>, Option<(ChunkId, Trouble)>) {
    let count = windows.len();
    let old = match old_entries(chunked, heap, &windows) {
        Ok(old) => old,
        Err(failed) => return (Vec::new(), Some(failed)),
    };
    let queue = Mutex::new(windows.into_iter().zip(old).enumerate());
    let done: Mutex<Vec<Option<Encoded>>> = Mutex::new((0..count).map(|_| None).collect());
    let failed: Mutex<Option<(usize, ChunkId, Trouble)>> = Mutex::new(None);
    let work = || {
        let mut scratch = chunked.take_scratch();
        let (mut stored, mut there) = (Vec::new(), Vec::new());
        loop {
            let next = queue.lock().unwrap_or_else(PoisonError::into_inner).next();
            let Some((n, (mut window, (id, old)))) = next else { break };
            let Ok(var) = chunked.of_chunk(id) else { break };
            let chunking = &var.chunking;
            let bytes = chunking.grid.bytes;
            let treat = chunking.treat(id.number, &window, old.as_ref(), existing);
            let outcome = (|| {
                if !window.is_covered(bytes) {
                    match &old {
                        None => chunking.fill_chunk(&mut there),
                        Some(entry) => {
                            let memory = (&mut stored, &mut scratch);
                            var.decode(heap, id.number, entry, &mut there, memory)?;
                            chunking.forget_records(id.number, existing, &mut there);
                        }
                    }
                    window.complete(&there);
                }
                let mut out = Vec::new();
                let values = window.front(bytes);
                let (pipeline, chunk) = (&chunking.pipeline, chunking.of_chunk());
                let encoded = match treat {
                    Treat::Whole => pipeline.encode(&chunk, values, &mut out, &mut scratch),
                    Treat::Keep | Treat::Wait => {
                        pipeline.encode_exactly(&chunk, values, &mut out, &mut scratch)
                    }
                };
                let encoded = encoded.map_err(|error| {
                    Trouble::Damage(format!("chunk {} cannot be encoded: {error}", id.number))
                })?;
                Ok((out, encoded))
            })();
            match outcome {
                Ok((stored, encoded)) => {
                    let (mask, crc32c) = (encoded.mask.0, encoded.crc32c);
                    let changed = treat == Treat::Keep || chunking.pipeline.unsettles(encoded.mask);
                    let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
                    done[n] = Some(Encoded { id, old, stored, mask, crc32c, changed });
                }
                Err(trouble) => {
                    let mut failed = failed.lock().unwrap_or_else(PoisonError::into_inner);
                    if failed.as_ref().is_none_or(|(first, _, _)| n < *first) {
                        *failed = Some((n, id, trouble));
                    }
                }
            }
        }
        chunked.give_scratch(scratch);
    };
    match threads.min(count) {
        0 | 1 => work(),
        threads => thread::scope(|scope| {
            (1..threads).for_each(|_| drop(scope.spawn(work)));
            work();
        }),
    }
    let failed = failed.into_inner().unwrap_or_else(PoisonError::into_inner);
    let done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    (done.into_iter().flatten().collect(), failed.map(|(_, id, trouble)| (id, trouble)))
}

/// What the tables say of these chunks.
#[allow(clippy::type_complexity)]
fn old_entries(
    chunked: &Chunked,
    heap: HeapFile<'_>,
    windows: &[Window],
) -> std::result::Result<Vec<(ChunkId, Option<Entry>)>, (ChunkId, Trouble)> {
    let id_of = |window: &Window| chunked.space.chunk_at(window.start()).map(|(id, _, _)| id);
    let ids: Vec<ChunkId> = windows.iter().filter_map(id_of).collect();
    let mut out: Vec<(ChunkId, Option<Entry>)> = ids.iter().map(|id| (*id, None)).collect();
    let mut order: Vec<usize> = (0..ids.len()).collect();
    order.sort_by_key(|i| ids[*i]);
    for group in order.chunk_by(|a, b| ids[*a].var == ids[*b].var) {
        let Some(id) = group.first().map(|i| ids[*i]) else { continue };
        let Ok(var) = chunked.of_chunk(id) else { continue };
        let numbers: Vec<u64> = group.iter().map(|i| ids[*i].number).collect();
        let found = var.entries(heap, &numbers).map_err(|trouble| (id, trouble))?;
        group.iter().zip(found).for_each(|(i, entry)| out[*i].1 = entry);
    }
    Ok(out)
}

/// Writes chunks to their places; neighbours together.
fn store(
    heap: HeapFile<'_>,
    encoded: &[Encoded],
    placed: &[Placed],
    tally: &mut Tally,
) -> Result<()> {
    let mut block: Vec<u8> = Vec::new();
    let mut start = 0;
    for (chunk, placed) in encoded.iter().zip(placed) {
        let place = placed.entry.place;
        let padded = room_for(block.len() as u64);
        if start + padded != place || block.len() > AT_ONCE {
            flush(heap, start, &mut block, tally)?;
            start = place;
        } else {
            block.resize(padded as usize, 0);
        }
        block.extend_from_slice(&chunk.stored);
    }
    flush(heap, start, &mut block, tally)
}

fn flush(heap: HeapFile<'_>, start: u64, block: &mut Vec<u8>, tally: &mut Tally) -> Result<()> {
    if !block.is_empty() {
        heap.file.write_at(heap.begin + start, block)?;
        tally.wrote(1, block.len() as u64);
        block.clear();
    }
    Ok(())
}

impl Dataset {
    /// Writes the fill value over one record of a chunked variable. Collective.
    pub(crate) fn fill_chunked_record(
        &mut self,
        var: esker_format::VarId,
        record: u64,
    ) -> Result<()> {
        let mut shape = self.shape(var)?;
        if shape.is_empty() {
            return Ok(());
        }
        let mut start = vec![0; shape.len()];
        (start[0], shape[0]) = (record, 1);
        let selection = crate::selection::Selection::slab(&start, &shape);
        let root = self.base.is_root();
        let values = self.file_var(var).and_then(|id| {
            let elements = if root { shape.iter().product::<u64>() } else { 0 };
            let found = self.chunked_var(id)?;
            let one = found.map_or(Vec::new(), |found| found.chunking.fill.clone());
            let ty = self.variable(var)?.ty;
            let bytes = one.repeat(elements as usize);
            Ok(esker_format::Values::decode(ty, elements as usize, &bytes))
        });
        let mut queue = crate::request::Requests::new();
        let values = values.and_then(|values| values.ok_or(Error::Garbled));
        let queued = match (&values, root) {
            (Ok(values), true) => {
                let memory = (values.native_bytes(), values.ty().natural());
                let dense = crate::memory::MemoryLayout::dense();
                self.iput_bytes(&mut queue, var, &selection, memory, dense).map(drop)
            }
            (Ok(_), false) => Ok(()),
            (Err(_), _) => Err(Error::Garbled),
        };
        let queued = self.base.agree(queued);
        queued.and_then(|()| self.wait_all(&mut queue))
    }
}
