//! The road of a write: pieces to the owners of chunks, chunks through filters into the heap.

use std::collections::BTreeMap;
use std::mem;
use std::thread::{self, Scope, ScopedJoinHandle};
use std::time::{Duration, Instant};

use esker_comm::{Communicator, CommunicatorExt, Message};
use esker_format::chunked::Entry;
use esker_format::{RangeReport, VarId};
use esker_store::File;

use super::encode::{Batch, Encoded, Encoder, Failed, Round};
use super::files::Own;
use super::heap::{Heap, room_for};
use super::owners::{self, Assigned, Chunks};
use super::tables::HeapFile;
use super::wait::Planned;
use super::{ChunkId, Chunked};
use crate::dataset::Dataset;
use crate::engine::detach_extents;
use crate::error::{Error, Result};
use crate::exchange::{self, Sink, Unit, Units, With};
use crate::hints::Rewrite;
use crate::notes::Notes;
use crate::plan::{Plan, Sweep};
use crate::report::{Report, Strategy, Tally};
use crate::request::Request;
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

impl Dataset {
    /// Writes requests of chunked variables together with all other ranks, which have the same records. Collective.
    pub(super) fn write_chunked(
        &mut self,
        puts: &mut [Request<'_>],
        Planned { plan, units, .. }: &Planned<'_>,
        together: &ForUnits,
        report: &mut Report,
    ) -> Result<()> {
        if together.written == 0 {
            return Ok(());
        }
        let mut existing = self.records;
        let mut records = together.records.max(existing);
        let mending = self.chunked.as_ref().is_some_and(|chunked| chunked.mending);
        if mending {
            (records, existing) = (self.counted(), self.counted());
        }
        let accesses = together.written.saturating_mul(self.base.comm.size() as u64);
        let touched = Touched { units, accesses, records: together.records > 0 };
        let placed = loop {
            let begun = self.begin_records(records);
            match self.write_units(plan, touched, existing, puts, begun, report)? {
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
        self.grow_together(records)?;
        self.note_records(puts);
        Ok(())
    }

    /// Writes requests that were in a log, whose records will be counted when all of it is written: no
    /// record is more than `records`. Collective.
    pub(crate) fn replay_chunked(
        &mut self,
        puts: &mut [Request<'_>],
        records: u64,
        report: &mut Report,
    ) -> Result<()> {
        let Some(chunked) = &self.chunked else { return Ok(()) };
        let extents = detach_extents(puts);
        let planned = chunked.plan(&extents);
        planned.count(report);
        let Planned { plan, units, .. } = planned;
        // Before anything is written.
        let sole = if self.base.is_root() { self.require_sole() } else { Ok(()) };
        let [most_units] = self.base.agree_with(sole, [units.len() as u64])?;
        if most_units == 0 {
            return Ok(());
        }
        let accesses = most_units.saturating_mul(self.base.comm.size() as u64);
        let touched = Touched { units: &units, accesses, records: true };
        let placed = loop {
            let begun = self.begin_records(records);
            // What flushes that failed have left is gone, so that all that a chunk has is to stay.
            match self.write_units(&plan, touched, records, puts, begun, report)? {
                Written::Placed(placed) => break placed,
                Written::NoRoom(needed) => self.make_room(needed)?,
            }
        };
        self.commit_chunks(&placed)
    }

    /// Remembers how many records of variables were written by a flush.
    pub(crate) fn note_records_of(&mut self, written: &BTreeMap<VarId, u64>) {
        let Some(chunked) = &mut self.chunked else { return };
        for (var, records) in written {
            chunked.note_records(*var, *records);
        }
    }

    /// Brings pieces to the owners of chunks and these into the heap. Collective.
    fn write_units(
        &mut self,
        plan: &Plan<'_>,
        Touched { units, accesses, records }: Touched<'_>,
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
            let weights = (self.base.hints.chunk_buffer, self.penalty());
            let assigned = owners::assign(&*comm, &chunked.space, units, accesses, weights)?;
            report.rounds += assigned.rounds;
            if records {
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
            let who = (&assigned, units);
            self.write_rounds(&chunked, ends, plan, who, existing, puts, begun, report)
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

    /// Exchanges, encodes and writes round by round. Gives the chunks that have a place now; the error of the
    /// call is one that ranks cannot go on after. Collective.
    #[allow(clippy::too_many_arguments)]
    fn write_rounds(
        &self,
        chunked: &Chunked,
        mut ends: Ends<'_>,
        plan: &Plan<'_>,
        (assigned, touched): (&Assigned, &[(u64, u64)]),
        existing: u64,
        puts: &mut [Request<'_>],
        begun: Result<()>,
        report: &mut Report,
    ) -> Result<Written> {
        let tables = self.tables_file(chunked)?;
        let file = HeapFile { begin: ends.heap.begin, ..chunked.heap_in(&*tables) };
        // Where chunks are written.
        let own = ends.own.as_ref().map(|own| own.file.clone());
        let target = own.as_deref().map_or(file, |own| HeapFile::new(own, 0));
        let apart = assigned.rounds > 1;
        // Not where a later round may find no room: all of it is done again then, and needs what the
        // chunks were.
        let in_place = self.base.hints.chunk_rewrite == Rewrite::InPlace
            && !ends.heap.held
            && (!apart || ends.heap.limit.is_none());
        let threads = self.owner_threads(assigned)?;
        let mut notes = Notes::default();
        let shared: &[Request<'_>] = puts;
        let encoder = Encoder { chunked, heap: file, plan, puts: shared, existing, threads };
        let done = thread::scope(|scope| {
            let mut sink = Encoding {
                dataset: self,
                encoder: &encoder,
                chunks: Chunks::new(&chunked.space, assigned, touched),
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
            exchange::write(&*self.base.comm, plan, &mut sink, &mut Vec::new(), &mut with)?;
            sink.finish(report)
        })?;
        notes.append(done.notes);
        notes.tell(puts);
        let ordered = self.base.hints.chunk_rewrite == Rewrite::Ordered && done.missing.is_none();
        let stored = done.failed.map_or(Ok(()), Err).and_then(|()| match ordered {
            true => self.reach_disk(&*tables, own.as_deref()),
            false => Ok(()),
        });
        self.base.agree(stored)?;
        if ordered {
            // What calls before this one have replaced was replaced on the disk.
            ends.heap.synced();
        }
        Ok(done.missing.map_or(Written::Placed(done.placed), Written::NoRoom))
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
    dataset: &'w Dataset,
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

    fn memory(&self) -> u64 {
        0
    }
}

impl Sink for Encoding<'_, '_, '_, '_> {
    /// They are laid into their chunks when these are encoded, which are then in the cache.
    fn own(&mut self, _: &Unit, _: &mut Sweep<'_, '_>, _: &mut With<'_, '_>) -> Result<()> {
        Ok(())
    }

    fn put(
        &mut self,
        round: u64,
        messages: Vec<Message>,
        report: &mut Report,
    ) -> Result<Vec<Message>> {
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
                self.failed.get_or_insert_with(|| self.dataset.trouble(id.var, trouble));
            }
            Some(Failed::Call(error)) => {
                self.failed.get_or_insert(error);
            }
        }
        if self.failed.is_some() {
            round.clear();
        }
        let clock = Instant::now();
        let placed = self.dataset.place(self.ends, &round.encoded, self.in_place)?;
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

impl Dataset {
    /// Writes the fill value over one record of a chunked variable. Collective.
    pub(crate) fn fill_chunked_record(&mut self, var: VarId, record: u64) -> Result<()> {
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
