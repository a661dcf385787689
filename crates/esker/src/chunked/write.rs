//! The road of a write: pieces to the owners of chunks, chunks through filters into the heap.

use std::collections::BTreeMap;
use std::mem;
use std::thread::{self, Scope, ScopedJoinHandle};
use std::time::{Duration, Instant};

use esker_comm::{Communicator, CommunicatorExt, Message};
use esker_format::chunked::Entry;
use esker_format::{RangeReport, Values, VarId};
use esker_store::File;

use super::encode::{Batch, Encoded, Encoder, Failed, Round};
use super::files::Own;
use super::heap::{Heap, room_for};
use super::layout::Planned;
use super::owners::{self, Assigned, Chunks};
use super::tables::HeapFile;
use super::{ChunkId, Chunked};
use crate::canonical::detach_extents;
use crate::error::{Error, Result};
use crate::exchange::{self, Came, Sink, Unit, Units, With};
use crate::ground::Ground;
use crate::hints::Rewrite;
use crate::layout::{Asked, Wait, together};
use crate::memory::{Lent, MemoryLayout};
use crate::notes::Notes;
use crate::plan::{Plan, Sweep};
use crate::report::{Report, Strategy, Tally};
use crate::request::{Direction, Request, RequestId};
use crate::selection::{Purpose, Selection, Space};
use crate::strategy::ForUnits;

/// Stored chunks that are written at once, in bytes, where they lie side by side.
const AT_ONCE: usize = 4 << 20;

/// So many bytes side by side are written as they are, fewer together with what is before and behind.
const APART: usize = 256 << 10;

/// A chunk that has its place.
#[derive(Debug, Clone, Copy)]
pub(super) struct Placed {
    pub(super) id: ChunkId,
    pub(super) old: Option<Entry>,
    pub(super) entry: Entry,
}

/// The chunks that a rank writes to, by address with the bytes that it has of each, how many accesses all ranks
/// together have at most, and whether any of these is to a variable with records.
#[derive(Clone, Copy)]
struct Touched<'u> {
    units: &'u [(u64, u64)],
    accesses: u64,
    records: bool,
    /// Records that there were before.
    existing: u64,
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

impl Chunked {
    /// Writes requests of chunked variables together with all other ranks, which have the same records. Collective.
    pub(super) fn write_planned(
        &mut self,
        ground: &mut Ground,
        puts: &mut [Request<'_>],
        Planned { plan, units, .. }: &Planned<'_>,
        together: &ForUnits,
        report: &mut Report,
    ) -> Result<()> {
        if together.written == 0 {
            return Ok(());
        }
        let mut existing = ground.records;
        let mut records = together.records.max(existing);
        let mending = self.mending;
        if mending {
            (records, existing) = (ground.counted(), ground.counted());
        }
        let accesses = together.written.saturating_mul(ground.base.comm.size() as u64);
        let touched = Touched { units, accesses, records: together.records > 0, existing };
        let placed = loop {
            let begun = ground.begin_records(records);
            match self.write_units(ground, plan, touched, puts, begun, report)? {
                Written::Placed(placed) => break placed,
                Written::NoRoom(needed) => self.make_room(ground, needed)?,
            }
            // Values are looked at again.
            puts.iter_mut().for_each(|put| put.range = RangeReport::default());
        };
        let clock = Instant::now();
        if records > existing && ground.fills_records() {
            let filled = ground.fill_share(existing, records, None);
            if let Err(error) = ground.base.agree(filled) {
                self.heap.give_back(&placed);
                return Err(error);
            }
        }
        self.commit_chunks(ground, &placed)?;
        report.phases.agree += clock.elapsed();
        if mending {
            return Ok(());
        }
        ground.grow_together(records)?;
        puts.iter().for_each(|put| self.note_records(put.var, put.records));
        Ok(())
    }

    /// Writes requests that were in a log, whose records will be counted when all of it is written: no
    /// record is more than `records`. Collective.
    pub(crate) fn replay(
        &mut self,
        ground: &mut Ground,
        puts: &mut [Request<'_>],
        records: u64,
        report: &mut Report,
    ) -> Result<()> {
        let extents = detach_extents(puts);
        let planned = self.plan(&extents);
        planned.count(report);
        let Planned { plan, units, .. } = planned;
        // Before anything is written.
        let sole = if ground.base.is_root() { self.require_sole(ground) } else { Ok(()) };
        let [most_units] = ground.base.agree_with(sole, [units.len() as u64])?;
        if most_units == 0 {
            return Ok(());
        }
        let accesses = most_units.saturating_mul(ground.base.comm.size() as u64);
        // What flushes that failed have left is gone, so that all that a chunk has is to stay.
        let touched = Touched { units: &units, accesses, records: true, existing: records };
        let placed = loop {
            let begun = ground.begin_records(records);
            match self.write_units(ground, &plan, touched, puts, begun, report)? {
                Written::Placed(placed) => break placed,
                Written::NoRoom(needed) => self.make_room(ground, needed)?,
            }
        };
        self.commit_chunks(ground, &placed)
    }

    /// Remembers how many records of variables were written by a flush.
    pub(crate) fn note_records_of(&mut self, written: &BTreeMap<VarId, u64>) {
        for (var, records) in written {
            self.note_records(*var, *records);
        }
    }

    /// Brings pieces to the owners of chunks and these into the heap. Collective.
    fn write_units(
        &mut self,
        ground: &mut Ground,
        plan: &Plan<'_>,
        Touched { units, accesses, records, existing }: Touched<'_>,
        puts: &mut [Request<'_>],
        begun: Result<()>,
        report: &mut Report,
    ) -> Result<Written> {
        let clock = Instant::now();
        self.know_heap(ground)?;
        self.forget_chunks(ground);
        let comm = ground.base.comm.clone();
        let shared = self.files.as_mut().map_or(Ok(()), |files| files.share(&ground.base));
        let mut own = self.files.as_mut().and_then(|files| files.own.take());
        let mut heap = mem::take(&mut self.heap);
        let mut before = heap.clone();
        let written = shared.and_then(|()| {
            let weights = (ground.base.hints.chunk_buffer, ground.penalty());
            let assigned = owners::assign(&*comm, &self.space, units, accesses, weights)?;
            report.rounds += assigned.rounds;
            if records {
                // Before anything else, so that entries find their places when chunks are written.
                let ids = assigned.owned.iter().flatten();
                let ids = ids.filter_map(|unit| self.space.chunk_at(*unit).map(|(id, _, _)| id));
                let longer = self.lengthen_tables(ground, &mut heap, ids);
                before.end = heap.end;
                if let Some(needed) = longer? {
                    return Ok(Written::NoRoom(needed));
                }
            }
            report.phases.agree += clock.elapsed();
            report.write_strategy = Strategy::Exchanged;
            let ends = Ends { heap: &mut heap, own: own.as_mut() };
            let who = (&assigned, units);
            self.write_rounds(ground, ends, plan, who, existing, puts, begun, report)
        });
        if !matches!(written, Ok(Written::Placed(_))) {
            // What was written for nothing is written over; tables that are longer now stay so.
            heap = before;
        }
        self.heap = heap;
        if let Some(files) = &mut self.files {
            files.own = own;
        }
        written
    }

    /// Exchanges, encodes and writes round by round. Gives the chunks that have a place now; the error of the
    /// call is one that ranks cannot go on after. Collective.
    #[allow(clippy::too_many_arguments)]
    fn write_rounds(
        &self,
        ground: &Ground,
        mut ends: Ends<'_>,
        plan: &Plan<'_>,
        (assigned, touched): (&Assigned, &[(u64, u64)]),
        existing: u64,
        puts: &mut [Request<'_>],
        begun: Result<()>,
        report: &mut Report,
    ) -> Result<Written> {
        let tables = self.tables_file(ground)?;
        let file = HeapFile { begin: ends.heap.begin, ..self.heap_in(&*tables) };
        // Where chunks are written.
        let own = ends.own.as_ref().map(|own| own.file.clone());
        let target = own.as_deref().map_or(file, |own| HeapFile::new(own, 0));
        let apart = assigned.rounds > 1;
        // Not where a later round may find no room: all of it is done again then, and needs what the
        // chunks were.
        let in_place = ground.base.hints.chunk_rewrite == Rewrite::InPlace
            && !ends.heap.held
            && (!apart || ends.heap.limit.is_none());
        let threads = ground.owner_threads(assigned)?;
        let mut notes = Notes::default();
        let shared: &[Request<'_>] = puts;
        let encoder = Encoder { chunked: self, heap: file, plan, puts: shared, existing, threads };
        let done = thread::scope(|scope| {
            let mut sink = Encoding {
                ground,
                encoder: &encoder,
                chunks: Chunks::new(&self.space, assigned, touched),
                scope,
                ends: &mut ends,
                in_place,
                target,
                apart,
                encoded: None,
                stored: None,
                notes: Notes::default(),
                placed: Vec::new(),
                missing: None,
                failed: begun.err(),
            };
            let mut with = With { puts: shared, notes: &mut notes, report };
            exchange::write(&*ground.base.comm, plan, &mut sink, &mut Vec::new(), &mut with)?;
            sink.finish(report)
        })?;
        notes.append(done.notes);
        notes.tell(puts);
        let ordered = ground.base.hints.chunk_rewrite == Rewrite::Ordered && done.missing.is_none();
        let stored = done.failed.map_or(Ok(()), Err).and_then(|()| match ordered {
            true => reach_disk(ground, &*tables, own.as_deref()),
            false => Ok(()),
        });
        ground.base.agree(stored)?;
        if ordered {
            // What calls before this one have replaced was replaced on the disk.
            ends.heap.synced();
        }
        Ok(done.missing.map_or(Written::Placed(done.placed), Written::NoRoom))
    }
}

/// Waits until this rank's chunks, and what was written before them, are on the disk.
fn reach_disk(ground: &Ground, tables: &dyn File, own: Option<&dyn File>) -> Result<()> {
    tables.sync()?;
    if let Some(own) = own {
        own.sync()?;
        // The header is in another file.
        if ground.base.is_root() {
            ground.file.sync()?;
        }
    }
    Ok(())
}

/// Finds places for encoded chunks: holes of this rank, or one stretch at the end. Collective; the
/// inner error, the same on every rank, is how long a heap must be that has room for them.
fn place(
    ground: &Ground,
    ends: &mut Ends<'_>,
    encoded: &[Encoded],
    in_place: bool,
) -> Result<Result<Vec<Placed>, u64>> {
    let Ends { heap, own } = ends;
    // Those who put chunks into the same file.
    let comm = own.as_ref().map_or(&*ground.base.comm, |own| &*own.group);
    let file = own.as_ref().map_or(0, |own| own.number);
    let mut places: Vec<Option<u64>> = Vec::with_capacity(encoded.len());
    let mut total = 0;
    for chunk in encoded {
        let len = chunk.range.len() as u64;
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
        // One step instead of two.
        ranks if ranks <= 256 => {
            let totals = comm.all_gather_u64(&[total])?;
            let before = totals.iter().take(comm.rank()).sum();
            (before, totals.iter().sum())
        }
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
        let size = chunk.range.len() as u64;
        let place = place.unwrap_or_else(|| {
            let here = at;
            at += room_for(size);
            heap.put(here);
            here
        });
        let Encoded { id, old, mask, crc32c, tail, changed, .. } = *chunk;
        let entry = Entry { place, size, crc32c, tail, mask, file, changed };
        placed.push(Placed { id, old, entry });
    }
    Ok(Ok(placed))
}

/// What a rank's share of a write has come to.
struct Done {
    placed: Vec<Placed>,
    /// How long the heap must be first, if there is no room.
    missing: Option<u64>,
    failed: Option<Error>,
    notes: Notes,
}

/// Chunks that are encoded, get their places, and are stored: each round while the next ones are gathered.
struct Encoding<'s, 'e, 'w, 'h> {
    ground: &'w Ground,
    encoder: &'e Encoder<'e>,
    chunks: Chunks<'w>,
    scope: &'s Scope<'s, 'e>,
    ends: &'w mut Ends<'h>,
    in_place: bool,
    target: HeapFile<'e>,
    /// Whether there is more than one round, so that threads are worth it.
    apart: bool,
    encoded: Option<ScopedJoinHandle<'s, (Round, Duration)>>,
    stored: Option<ScopedJoinHandle<'s, (Result<()>, Tally, Duration)>>,
    notes: Notes,
    placed: Vec<Placed>,
    missing: Option<u64>,
    failed: Option<Error>,
}

impl Units for Encoding<'_, '_, '_, '_> {
    const ASCEND: bool = false;

    fn next_round(&mut self, _: &dyn Communicator, _: &Sweep<'_, '_>) -> Result<Option<u64>> {
        Ok(self.chunks.next_round())
    }

    fn of_round(&mut self, round: u64) -> Vec<Unit> {
        self.chunks.of_round(round)
    }
}

impl Sink for Encoding<'_, '_, '_, '_> {
    /// They are laid into their chunks when these are encoded, which are then in the cache.
    fn own(&mut self, _: &Unit, _: &mut Sweep<'_, '_>, _: &mut With<'_, '_>) -> Result<()> {
        Ok(())
    }

    fn put(&mut self, round: u64, messages: Came, report: &mut Report) -> Result<Vec<Message>> {
        let encoder = self.encoder;
        let batch = Batch { owned: self.chunks.owned(round).to_vec(), messages };
        let encode = move || {
            let clock = Instant::now();
            (encoder.encode(&batch), clock.elapsed())
        };
        // What was gathered in the round before is encoded by now.
        let mut finished = self.encoded.take().map(joined);
        match self.apart {
            true => self.encoded = Some(self.scope.spawn(encode)),
            false => finished = Some(encode()),
        }
        if let Some(finished) = finished {
            self.store(finished, report)?;
        }
        Ok(Vec::new())
    }
}

impl Encoding<'_, '_, '_, '_> {
    /// Finds places for the chunks of a round, and stores them. Collective.
    fn store(&mut self, (mut round, time): (Round, Duration), report: &mut Report) -> Result<()> {
        report.phases.convert += time;
        report.copied += round.copied;
        report.peak_memory = report.peak_memory.max(round.memory());
        self.notes.append(mem::take(&mut round.notes));
        match round.failed.take() {
            None => {}
            Some(Failed::Chunk(id, trouble)) => {
                self.failed.get_or_insert_with(|| self.ground.trouble(id.var, trouble));
            }
            Some(Failed::Call(error)) => {
                self.failed.get_or_insert(error);
            }
        }
        if self.failed.is_some() {
            round.clear();
        }
        let clock = Instant::now();
        let placed = place(self.ground, self.ends, &round.encoded, self.in_place)?;
        report.phases.agree += clock.elapsed();
        let placed = placed.unwrap_or_else(|needed| {
            // The same on every rank. The rounds that follow tell how much is missing.
            self.missing = Some(self.missing.unwrap_or(0).max(needed));
            round.clear();
            Vec::new()
        });
        self.placed.extend(&placed);
        let target = self.target;
        let store = move || {
            let clock = Instant::now();
            let mut tally = Tally::default();
            let outcome = store(target, &round, &placed, &mut tally);
            (outcome, tally, clock.elapsed())
        };
        self.finish_store(report);
        match self.apart {
            true => self.stored = Some(self.scope.spawn(store)),
            false => self.note(store(), report),
        }
        Ok(())
    }

    /// Waits for chunks that are being stored.
    fn finish_store(&mut self, report: &mut Report) {
        if let Some(stored) = self.stored.take() {
            self.note(joined(stored), report);
        }
    }

    fn note(&mut self, (outcome, tally, time): (Result<()>, Tally, Duration), report: &mut Report) {
        report.add(tally);
        report.phases.write += time;
        if let Err(error) = outcome {
            self.failed.get_or_insert(error);
        }
    }

    /// After the last round. Collective.
    fn finish(mut self, report: &mut Report) -> Result<Done> {
        if let Some(encoded) = self.encoded.take() {
            self.store(joined(encoded), report)?;
        }
        self.finish_store(report);
        let Encoding { placed, missing, failed, notes, .. } = self;
        Ok(Done { placed, missing, failed, notes })
    }
}

/// The outcome of a thread. A panic in it is the caller's too.
fn joined<T>(handle: ScopedJoinHandle<'_, T>) -> T {
    handle.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Writes chunks to their places; neighbours together.
fn store(heap: HeapFile<'_>, round: &Round, placed: &[Placed], tally: &mut Tally) -> Result<()> {
    let mut block: Vec<u8> = Vec::new();
    let mut start = 0;
    let chunks: Vec<(&Encoded, u64)> =
        round.encoded.iter().zip(placed.iter().map(|placed| placed.entry.place)).collect();
    let side_by_side = |(a, at): &(&Encoded, u64), (b, behind): &(&Encoded, u64)| {
        at + room_for(a.range.len() as u64) == *behind && round.is_followed_by(a, b)
    };
    for stretch in chunks.chunk_by(side_by_side) {
        let (Some((first, place)), Some((last, _))) = (stretch.first(), stretch.last()) else {
            continue;
        };
        let bytes = round.stretch(first, last);
        let padded = room_for(block.len() as u64);
        let follows = !block.is_empty() && start + padded == *place;
        if !follows || block.len() + bytes.len() > AT_ONCE {
            flush(heap, start, &mut block, tally)?;
            start = *place;
        } else {
            block.resize(padded as usize, 0);
        }
        // What is long goes as it is.
        if block.is_empty() && bytes.len() >= APART {
            for (part, at) in bytes.chunks(AT_ONCE).zip((*place..).step_by(AT_ONCE)) {
                heap.file.write_at(heap.begin + at, part)?;
                tally.wrote(1, part.len() as u64);
            }
            start = 0;
            continue;
        }
        block.extend_from_slice(bytes);
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

impl Chunked {
    /// Writes values of this rank, in external form, to a selection of a variable; others may have none. Collective.
    pub(super) fn write_own(
        &mut self,
        ground: &mut Ground,
        var: VarId,
        selection: &Selection,
        values: &[u8],
    ) -> Result<()> {
        let ty = self.found(ground, var)?.ok_or(Error::Garbled)?.chunking.ty;
        let elements = values.len() / ty.size() as usize;
        let values = Values::decode(ty, elements, values).ok_or(Error::Garbled)?;
        let mut wait = Wait::default();
        let queued = match elements {
            0 => Ok(()),
            _ => {
                let purpose = Purpose::Write { elements: elements as u64 };
                let asked = Asked { var, selection, purpose, space: Space::File };
                self.check_in_chunks(ground, asked).and_then(|checked| {
                    let (lent, dense) =
                        (Lent::Source(values.native_bytes()), MemoryLayout::dense());
                    let memory = ground.memory(var, lent, ty.natural(), dense)?;
                    let what = (Direction::Put, var, checked);
                    wait.puts.push(Request::new(RequestId::REPLAYED, what, memory, ground.epoch));
                    Ok(())
                })
            }
        };
        together(self, ground, &mut wait, queued)
    }

    /// Writes the fill value over one record of a variable. Collective.
    pub(super) fn fill_one_record(
        &mut self,
        ground: &mut Ground,
        var: VarId,
        record: u64,
    ) -> Result<()> {
        let Some(found) = self.found(ground, var)? else { return Err(Error::Garbled) };
        let mut shape = found.grid().dims.clone();
        if shape.is_empty() {
            return Ok(());
        }
        let mut start = vec![0; shape.len()];
        (start[0], shape[0]) = (record, 1);
        let elements = if ground.base.is_root() { shape.iter().product::<u64>() } else { 0 };
        let values = found.chunking.fill.repeat(elements as usize);
        self.write_own(ground, var, &Selection::slab(&start, &shape), &values)
    }
}
