//! A file that is not there: the classic file that a log would make.
//!
//! Reads of it find, for each byte, the variable and the record it belongs to by the header's
//! placing, and the newest entry that has it by the index. What no entry has is the variable's
//! fill value or, if there is a file underneath, what that has.

use std::collections::HashMap;
use std::io;
use std::ops::{Deref, DerefMut};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use esker_format::log::BLOCK;
use esker_format::{Header, NumRecs, Placement, VarId, Variable, values};
use esker_store::{File, FileRun, StoreError};

use super::filtered::{Decoded, Filtered};
use super::index::{Found, Index};
use crate::plan::{Piece, later_wins, sort_by_offset};

/// What a read asks a view for at once. Entries' payloads are checked in blocks, so that small
/// reads would check the same blocks again and again.
const READ: u64 = 1 << 20;

/// Payload between two pieces that is read along.
const HOLE: u64 = 16 * 1024;

/// How often elements were written over, on average, before it is worth finding the newest first.
const OVERWRITTEN: u64 = 4;

/// Payload that is read at once, so that it stays in the cache until it is laid out.
const SPAN: u64 = 256 * 1024;

#[derive(Debug)]
pub(crate) struct View {
    /// What errors call it.
    path: PathBuf,
    under: Option<Arc<dyn File>>,
    state: RwLock<State>,
    /// Memory of earlier reads.
    scratch: Mutex<Vec<Vec<u8>>>,
    decoded: Decoded,
}

#[derive(Debug)]
pub(crate) struct State {
    pub(crate) index: Index,
    /// Records that the file underneath has; the others are not filled there yet.
    pub(crate) under_records: u64,
    header: Header,
    head: Vec<u8>,
    /// Variables without records by where they begin, and those with.
    fixed: Vec<VarId>,
    records: Vec<VarId>,
    /// Where the file would end.
    end: u64,
    /// The filters of each variable that has any.
    filters: HashMap<VarId, Arc<Filtered>>,
}

/// A stretch of one record of one variable.
struct Stretch<'h> {
    var: VarId,
    variable: &'h Variable,
    record: u64,
    /// Where the variable's record begins in the file, and how many bytes it has.
    begin: u64,
    len: u64,
}

impl Stretch<'_> {
    /// The runs at the front that are whole elements of the stretch, as wants whose places
    /// begin at `at`; gives how many.
    fn wants(&self, runs: &[FileRun], mut at: u64, wants: &mut Vec<Want>) -> usize {
        let width = self.variable.ty.size();
        wants.clear();
        for run in runs {
            let Some(from) = run.offset.checked_sub(self.begin) else { break };
            let to = from + run.len as u64;
            let whole = from.is_multiple_of(width) && to.is_multiple_of(width);
            if !whole || to > self.len || wants.last().is_some_and(|w| w.to * width > from) {
                break;
            }
            wants.push(Want { from: from / width, to: to / width, at });
            at += run.len as u64;
        }
        wants.len()
    }
}

/// Memory that was used before.
struct Scratch {
    bytes: Vec<u8>,
    len: usize,
}

impl Deref for Scratch {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

impl DerefMut for Scratch {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[..self.len]
    }
}

/// Elements of a stretch that are wanted, and where in the reader's memory.
#[derive(Debug, Clone, Copy)]
struct Want {
    from: u64,
    to: u64,
    at: u64,
}

impl View {
    pub(crate) fn new(
        path: PathBuf,
        under: Option<Arc<dyn File>>,
        index: Index,
        header: Header,
    ) -> View {
        let (scratch, decoded) = (Mutex::default(), Decoded::default());
        View { path, under, state: RwLock::new(State::new(index, header)), scratch, decoded }
    }

    /// To look at what is seen. Reads hold it while they read.
    pub(crate) fn state(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// The filters of a variable, if it has any.
    pub(crate) fn filters(&self, var: VarId) -> Option<Arc<Filtered>> {
        self.state().filters.get(&var).cloned()
    }

    /// To change what is seen.
    pub(crate) fn change(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// There are so many records now.
    pub(crate) fn have_records(&self, records: u64) {
        if self.state().numrecs() != records {
            self.change().set_records(records);
        }
    }

    fn failed(&self, action: String, why: String) -> StoreError {
        StoreError::new(&self.path, action, io::Error::new(io::ErrorKind::InvalidData, why))
    }

    fn store_error(&self, error: crate::error::Error) -> StoreError {
        match error {
            crate::error::Error::Store(error) => error,
            other => self.failed("read of the log".to_string(), other.to_string()),
        }
    }

    /// Puts the bytes of `stretch` from `from` to `to`, counted from its beginning, into `out`.
    fn lay(
        &self,
        state: &State,
        stretch: &Stretch<'_>,
        (from, to): (u64, u64),
        out: &mut [u8],
    ) -> esker_store::Result<()> {
        let width = stretch.variable.ty.size();
        let (first, end) = (from / width, to.div_ceil(width));
        let want = Want { from: first, to: end, at: 0 };
        if (first * width, end * width) == (from, to) {
            return self.lay_wanted(state, stretch, &[want], out);
        }
        // A read that cuts elements: they are laid out whole beside it.
        let mut whole = self.take_scratch(((end - first) * width) as usize);
        let laid = self.lay_wanted(state, stretch, &[want], &mut whole);
        let skip = (from - first * width) as usize;
        out.copy_from_slice(&whole[skip..skip + out.len()]);
        self.give_scratch(whole);
        laid
    }

    /// Puts the wanted elements, which are sorted, to their places in `out`.
    fn lay_wanted(
        &self,
        state: &State,
        stretch: &Stretch<'_>,
        wants: &[Want],
        out: &mut [u8],
    ) -> esker_store::Result<()> {
        let width = stretch.variable.ty.size();
        let (Some(first), Some(last)) = (wants.first(), wants.last()) else { return Ok(()) };
        let mut entries: Vec<Found> = Vec::new();
        let index = &state.index;
        let var = stretch.var.0 as u64;
        index
            .ask(var, stretch.record, (first.from, last.to), |found| {
                // An entry of another width belongs to something that had this number once.
                if u64::from(found.width) == width {
                    entries.push(found.clone());
                }
            })
            .map_err(|e| self.store_error(e))?;
        entries.sort_by_key(|found| found.order);
        let mut pieces: Vec<Piece> = Vec::new();
        // Where each entry's pieces begin.
        let mut starts = Vec::with_capacity(entries.len() + 1);
        for (number, found) in entries.iter().enumerate() {
            starts.push(pieces.len());
            let Some(runs) = index.runs(found).map_err(|e| self.store_error(e))? else {
                let rank = index.logs[found.log as usize].rank;
                let why = format!("the metadata log of rank {rank} has changed");
                return Err(self.failed("read of the log".to_string(), why));
            };
            let row = (stretch.record - found.records.first) / found.records.step;
            let before = row * found.elements;
            let mut cursor = 0;
            let reached = wants.partition_point(|want| want.to <= found.first);
            for want in wants[reached..].iter().take_while(|want| want.from < found.end) {
                let low = want.from.saturating_sub(found.first);
                runs.within(&mut cursor, low, want.to - found.first, |start, len, element| {
                    pieces.push(Piece {
                        offset: want.at + (found.first + start - want.from) * width,
                        len: len * width,
                        request: number as u32,
                        element: before + element,
                    });
                });
            }
        }
        starts.push(pieces.len());
        let total: u64 = pieces.iter().map(|p| p.len).sum();
        let wanted: u64 = wants.iter().map(|want| (want.to - want.from) * width).sum();
        if total > OVERWRITTEN * wanted {
            // Much of it was written over: only what the newest left is read.
            sort_by_offset(&mut pieces, |p| p.offset);
            pieces = later_wins(&pieces, &vec![width; entries.len()]);
            pieces.sort_by_key(|p| (p.request, p.element));
            starts = (0..=entries.len())
                .map(|number| pieces.partition_point(|p| (p.request as usize) < number))
                .collect();
        }
        let whole = |w: &[usize]| w[1] - w[0] == 1 && pieces[w[0]].len == wanted;
        if !starts.windows(2).any(whole) {
            for want in wants {
                let len = (want.to - want.from) * width;
                let target = &mut out[want.at as usize..(want.at + len) as usize];
                self.lay_rest(state, stretch, want.from * width, target)?;
            }
        }
        // Oldest first: what is newer comes to lie over it.
        for (found, w) in entries.iter().zip(starts.windows(2)) {
            let group = &mut pieces[w[0]..w[1]];
            // Payloads are read in their own order, in which an entry also overwrites itself.
            if !group.is_sorted_by_key(|p| p.element) {
                group.sort_by_key(|p| p.element);
            }
            match found.encoded {
                false => self.lay_payload(index, stretch, found, group, out)?,
                true => self.lay_decoded(state, stretch, found, group, out)?,
            }
        }
        Ok(())
    }

    /// Lays what is there where no entry is.
    fn lay_rest(
        &self,
        state: &State,
        stretch: &Stretch<'_>,
        from: u64,
        out: &mut [u8],
    ) -> esker_store::Result<()> {
        let is_record = state.header.schema.is_record(stretch.variable);
        let is_there = !is_record || stretch.record < state.under_records;
        match &self.under {
            Some(file) if is_there => {
                let n = file.read_at(stretch.begin + from, out)?;
                out[n..].fill(0);
            }
            _ => {
                let fill = values::fill_bytes(stretch.variable);
                let mut done = fill.len().min(out.len());
                out[..done].copy_from_slice(&fill[..done]);
                while done < out.len() {
                    let n = done.min(out.len() - done);
                    out.copy_within(..n, done);
                    done += n;
                }
            }
        }
        Ok(())
    }

    /// Lays the pieces of one entry, which are sorted by their place in its payload.
    fn lay_payload(
        &self,
        index: &Index,
        stretch: &Stretch<'_>,
        found: &Found,
        pieces: &[Piece],
        out: &mut [u8],
    ) -> esker_store::Result<()> {
        let width = u64::from(found.width);
        let mut rest = pieces;
        while let Some(first) = rest.first() {
            let start = first.element * width;
            let mut end = start;
            let mut count = 0;
            for piece in rest {
                let (from, to) = (piece.element * width, piece.element * width + piece.len);
                if count > 0 && (from > end + HOLE || to - start > SPAN) {
                    break;
                }
                end = end.max(to);
                count += 1;
            }
            let (now, later) = rest.split_at(count);
            rest = later;
            match now {
                // One long piece: a span at a time.
                [piece] if piece.len > SPAN => {
                    let mut done = 0;
                    while done < piece.len {
                        let n = SPAN.min(piece.len - done);
                        let (offset, element) = (piece.offset + done, piece.element + done / width);
                        let part = Piece { offset, len: n, element, ..*piece };
                        let range = (element * width, element * width + n);
                        self.lay_span(index, stretch, found, range, &[part], out)?;
                        done += n;
                    }
                }
                _ => self.lay_span(index, stretch, found, (start, end), now, out)?,
            }
        }
        Ok(())
    }

    /// Lays the pieces of an entry that went through filters.
    fn lay_decoded(
        &self,
        state: &State,
        stretch: &Stretch<'_>,
        found: &Found,
        pieces: &[Piece],
        out: &mut [u8],
    ) -> esker_store::Result<()> {
        let failed = |why: String| {
            let rank = state.index.logs[found.log as usize].rank;
            let why = format!(
                "the payload at byte {} of the data log of rank {rank} cannot be decoded: {why}",
                found.place
            );
            let name = &stretch.variable.name;
            self.failed(format!("read of variable {name:?}, record {}", stretch.record), why)
        };
        if pieces.is_empty() {
            return Ok(());
        }
        let Some(filters) = state.filters.get(&stretch.var) else {
            return Err(failed("the variable has no filters, or unknown ones".to_string()));
        };
        let Some(runs) = state.index.runs(found).map_err(|e| self.store_error(e))? else {
            return Err(failed("its footprint is lost".to_string()));
        };
        let shape = runs.payload_shape(found.records.count, found.elements);
        let key = (found.log, found.place);
        let read = || {
            let payload = self.checked_payload(&state.index, stretch, found, (0, found.len))?;
            Ok(payload.to_vec())
        };
        let elements = self.decoded.get(key, filters, &shape, read, failed)?;
        let width = found.width as usize;
        for piece in pieces {
            let at = piece.element as usize * width;
            let payload = &elements[at..at + piece.len as usize];
            out[piece.offset as usize..piece.end() as usize].copy_from_slice(payload);
        }
        Ok(())
    }

    /// Reads `start..end` of a payload, checks it, and lays the pieces that are in it.
    fn lay_span(
        &self,
        index: &Index,
        stretch: &Stretch<'_>,
        found: &Found,
        (start, end): (u64, u64),
        pieces: &[Piece],
        out: &mut [u8],
    ) -> esker_store::Result<()> {
        let from = start / BLOCK as u64 * BLOCK as u64;
        let bytes = self.checked_payload(index, stretch, found, (start, end))?;
        let width = u64::from(found.width);
        for piece in pieces {
            let at = (piece.element * width - from) as usize;
            let payload = &bytes[at..at + piece.len as usize];
            let target = &mut out[piece.offset as usize..piece.end() as usize];
            match found.little {
                true => values::copy_reversed(payload, target, width as usize),
                false => target.copy_from_slice(payload),
            }
        }
        self.give_scratch(bytes);
        Ok(())
    }

    /// The blocks of a payload that hold `start..end`, after their checksums were compared.
    fn checked_payload(
        &self,
        index: &Index,
        stretch: &Stretch<'_>,
        found: &Found,
        (start, end): (u64, u64),
    ) -> esker_store::Result<Scratch> {
        let block = BLOCK as u64;
        let from = start / block * block;
        let to = end.next_multiple_of(block).min(found.len);
        let source = &index.logs[found.log as usize];
        let mut bytes = self.take_scratch((to - from) as usize);
        let n = source.data.read_at(found.place + from, &mut bytes)?;
        let sums = &found.sums[(from / block) as usize..];
        let whole = n == bytes.len();
        let bad = bytes.chunks(BLOCK).zip(sums).position(|(b, sum)| crc32c::crc32c(b) != *sum);
        if let Some(bad) = bad.or((!whole).then_some(0)) {
            let at = found.place + from + (bad * BLOCK) as u64;
            let why = format!(
                "the payload at byte {at} of the data log of rank {} does not match its checksum",
                source.rank
            );
            let name = &stretch.variable.name;
            let action = format!("read of variable {name:?}, record {}", stretch.record);
            return Err(self.failed(action, why));
        }
        Ok(bytes)
    }

    /// Memory of `len` bytes with anything in it: what it held before is written over, so that
    /// only new memory is cleared.
    fn take_scratch(&self, len: usize) -> Scratch {
        let mut pool = self.scratch.lock().unwrap_or_else(PoisonError::into_inner);
        let mut bytes = pool.pop().unwrap_or_default();
        drop(pool);
        if bytes.len() < len {
            bytes.resize(len, 0);
        }
        Scratch { bytes, len }
    }

    fn give_scratch(&self, Scratch { bytes, .. }: Scratch) {
        const MOST: usize = 8;
        let mut pool = self.scratch.lock().unwrap_or_else(PoisonError::into_inner);
        if pool.len() < MOST && bytes.capacity() as u64 <= 2 * READ {
            pool.push(bytes);
        }
    }
}

impl State {
    fn new(index: Index, header: Header) -> State {
        let (head, fixed, records) = (Vec::new(), Vec::new(), Vec::new());
        let (filters, under_records) = (HashMap::new(), 0);
        let mut state =
            State { index, under_records, header, head, fixed, records, end: 0, filters };
        state.place();
        state
    }

    /// The dataset has this header now.
    pub(crate) fn set_header(&mut self, header: Header) {
        self.header = header;
        self.place();
    }

    /// There are so many records now.
    fn set_records(&mut self, records: u64) {
        self.header.numrecs = NumRecs::Count(records);
        self.head = self.header.encode();
        self.end = self.header.data_end(records);
    }

    fn place(&mut self) {
        self.head = self.header.encode();
        let header = &self.header;
        let empty = |place: &Placement| place.bytes == 0;
        let all = header.vars().filter(|(_, _, place)| !empty(place));
        let (mut records, mut fixed): (Vec<VarId>, Vec<VarId>) =
            all.map(|(id, _, _)| id).partition(|id| {
                header.schema.variable(*id).is_some_and(|v| header.schema.is_record(v))
            });
        let begin = |id: &VarId| header.place(*id).map_or(0, |p| p.begin);
        fixed.sort_by_key(begin);
        records.sort_by_key(begin);
        self.end = header.data_end(self.numrecs());
        // What cannot be understood is an error when it is read.
        let filters = header.vars().filter_map(|(id, variable, _)| {
            Some((id, Arc::new(Filtered::of(variable).ok().flatten()?)))
        });
        self.filters = filters.collect();
        (self.fixed, self.records) = (fixed, records);
    }

    fn numrecs(&self) -> u64 {
        match self.header.numrecs {
            NumRecs::Count(records) => records,
            NumRecs::Streaming => 0,
        }
    }

    /// Bytes of a variable's values (in one record) and of the padding behind them.
    fn padded(&self, id: VarId, place: &Placement) -> u64 {
        let is_record =
            self.header.schema.variable(id).is_some_and(|v| self.header.schema.is_record(v));
        // A lone record variable of a small type is not padded.
        let most = if is_record { self.header.layout.record_size } else { u64::MAX };
        place.vsize.min(most).max(place.bytes)
    }

    /// Calls `each` with every variable's stretch that meets `from..to` of the file, and the part
    /// of it that does, padding included.
    fn stretches<'s, E>(
        &'s self,
        from: u64,
        to: u64,
        mut each: impl FnMut(Stretch<'s>, (u64, u64)) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        let header = &self.header;
        let mut meet = |id: VarId, record: u64, shift: u64| {
            let (Some(variable), Some(place)) = (header.schema.variable(id), header.place(id))
            else {
                return Ok(());
            };
            let begin = place.begin + shift;
            let (start, end) = (from.max(begin), to.min(begin + self.padded(id, place)));
            if start >= end {
                return Ok(());
            }
            let stretch = Stretch { var: id, variable, record, begin, len: place.bytes };
            each(stretch, (start - begin, end - begin))
        };
        let end_of = |id: &VarId| header.place(*id).map_or(0, |p| p.begin + self.padded(*id, p));
        let first = self.fixed.partition_point(|id| end_of(id) <= from);
        for id in &self.fixed[first..] {
            if header.place(*id).is_some_and(|p| p.begin >= to) {
                break;
            }
            meet(*id, 0, 0)?;
        }
        let size = header.layout.record_size;
        let Some(start) = self.records.first().and_then(|id| header.place(*id)) else {
            return Ok(());
        };
        if size == 0 || to <= start.begin {
            return Ok(());
        }
        let first = from.saturating_sub(start.begin) / size;
        let last = ((to - 1 - start.begin) / size + 1).min(self.numrecs());
        for record in first..last {
            let shift = record * size;
            let first = self.records.partition_point(|id| end_of(id) + shift <= from);
            for id in &self.records[first..] {
                if header.place(*id).is_some_and(|p| p.begin + shift >= to) {
                    break;
                }
                meet(*id, record, shift)?;
            }
        }
        Ok(())
    }
}

impl File for View {
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> esker_store::Result<usize> {
        let state = self.state();
        let n = state.end.saturating_sub(offset).min(buf.len() as u64);
        let buf = &mut buf[..n as usize];
        // What lies between variables, in order of the file.
        let mut at = offset;
        let end = offset + n;
        let head_len = state.head.len() as u64;
        if at < head_len {
            let to = end.min(head_len);
            let head = &state.head[at as usize..to as usize];
            buf[..head.len()].copy_from_slice(head);
            at = to;
        }
        state.stretches(at, end, |stretch, (from, to)| {
            // The padding of a header that lies may reach into what follows.
            let from = from.max(at.saturating_sub(stretch.begin));
            if from >= to {
                return Ok(());
            }
            let start = stretch.begin + from;
            let (hole, rest) =
                ((at - offset) as usize..(start - offset) as usize, (start - offset) as usize);
            buf[hole].fill(0);
            at = stretch.begin + to;
            let out = &mut buf[rest..rest + (to - from) as usize];
            let values = to.min(stretch.len).saturating_sub(from);
            let (out, padding) = out.split_at_mut(values as usize);
            // netCDF pads with the variable's fill value.
            let fill = values::fill_bytes(stretch.variable);
            let skip = (from + values).saturating_sub(stretch.len) as usize;
            let bytes = fill.iter().cycle().skip(skip % fill.len().max(1));
            padding.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
            match values {
                0 => Ok(()),
                _ => self.lay(&state, &stretch, (from, from + values), out),
            }
        })?;
        // Between variables that are aligned, and behind them, there are zeros.
        buf[(at - offset) as usize..].fill(0);
        Ok(n as usize)
    }

    fn read_runs(&self, runs: &[FileRun], buf: &mut [u8]) -> esker_store::Result<usize> {
        let state = self.state();
        let mut done = 0;
        let mut rest = runs;
        let mut wants: Vec<Want> = Vec::new();
        while let Some(first) = rest.first() {
            // The variable's record that the run is in, if it is in one, and all that follow.
            let mut within = None;
            let end = first.offset + first.len as u64;
            state.stretches(first.offset, end, |stretch, (from, to)| {
                let all = to - from == first.len as u64;
                within = all.then_some(stretch);
                Ok::<_, StoreError>(())
            })?;
            let count = match &within {
                Some(stretch) => stretch.wants(rest, done as u64, &mut wants),
                None => 0,
            };
            if let (Some(stretch), true) = (&within, count > 0) {
                self.lay_wanted(&state, stretch, &wants, buf)?;
                done += rest[..count].iter().map(|run| run.len).sum::<usize>();
                rest = &rest[count..];
            } else {
                // Across variables, or not whole elements.
                let n = self.read_at(first.offset, &mut buf[done..done + first.len])?;
                done += n;
                if n < first.len {
                    break;
                }
                rest = &rest[1..];
            }
        }
        Ok(done)
    }

    fn is_made_up(&self) -> bool {
        true
    }

    fn write_at(&self, _: u64, _: &[u8]) -> esker_store::Result<()> {
        Err(self.read_only("write"))
    }

    fn len(&self) -> esker_store::Result<u64> {
        Ok(self.state().end)
    }

    fn set_len(&self, _: u64) -> esker_store::Result<()> {
        Err(self.read_only("setting the length"))
    }

    fn sync(&self) -> esker_store::Result<()> {
        Ok(())
    }

    fn block_size(&self) -> u64 {
        READ
    }
}

impl View {
    fn read_only(&self, action: &str) -> StoreError {
        let why = "a log is appended to, not written over";
        StoreError::new(&self.path, action, io::Error::new(io::ErrorKind::Unsupported, why))
    }
}
