//! A file that is not there: the classic file that a log would make.
//!
//! It is for those who want bytes: values are read by variable, record and elements (`reading`).
//! Reads of it find, for each byte, the variable and the record it belongs to by the header's
//! placing, and the newest entry that has it by the index. What no entry has is the variable's
//! fill value or, if there is a file underneath, what that has.

use std::collections::HashMap;
use std::io;
use std::ops::{Deref, DerefMut, Range};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use esker_format::{At, FileOrder, Header, NumRecs, VarId, Variable, values};
use esker_store::{File, StoreError};

use super::filtered::{Decoded, Filtered};
use super::grid::Grid;
use super::index::{Grids, Index};
pub(crate) use super::lay::Want;
use super::lay::{Laying, Stretch};
use super::reading::Batch;
use super::slabs::Target;
use crate::bounded::CacheUse;

/// What a read asks a view for at once. Entries' payloads are checked in blocks, so that small
/// reads would check the same blocks again and again.
pub(super) const READ: u64 = 1 << 20;

#[derive(Debug)]
pub(crate) struct View {
    /// What errors call it.
    path: PathBuf,
    pub(super) under: Option<Arc<dyn File>>,
    state: RwLock<State>,
    /// Memory of earlier reads.
    scratch: Mutex<Vec<Vec<u8>>>,
    pub(super) decoded: Decoded,
    /// Whether payloads are compared with their checksums.
    pub(super) compares: bool,
}

#[derive(Debug)]
pub(crate) struct State {
    pub(crate) index: Index,
    /// Records that the file underneath has; the others are not filled there yet.
    pub(crate) under_records: u64,
    pub(super) header: Header,
    head: Vec<u8>,
    /// Variables of which entries say nothing: what stands for chunked ones.
    left_out: Vec<VarId>,
    /// Variables without records by where they begin, and those with.
    order: FileOrder,
    /// Where the file would end.
    end: u64,
    /// The filters of each variable that has any.
    pub(super) filters: HashMap<VarId, Arc<Filtered>>,
}

/// Memory that was used before.
pub(super) struct Scratch {
    bytes: Vec<u8>,
    len: usize,
}

impl Scratch {
    /// Has `len` bytes from now on, those in `kept` first.
    pub(super) fn keep(&mut self, kept: Range<usize>, len: usize) {
        self.bytes.copy_within(kept, 0);
        if self.bytes.len() < len {
            self.bytes.resize(len, 0);
        }
        self.len = len;
    }
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

impl View {
    /// Bytes that are kept for later reads: footprints and tables, and payloads that were decoded.
    pub(crate) fn cached(&self) -> [CacheUse; 2] {
        let index = &self.state().index;
        let budget = index.runs_room() as u64 + index.weaves_budget();
        let decoded = (self.decoded.memory(), index.decoded_budget());
        [
            CacheUse { what: "footprints of a log", bytes: index.cached(), budget },
            CacheUse { what: "decoded payloads of a log", bytes: decoded.0, budget: decoded.1 },
        ]
    }

    pub(crate) fn new(
        path: PathBuf,
        under: Option<Arc<dyn File>>,
        index: Index,
        header: Header,
    ) -> View {
        let (scratch, decoded) = (Mutex::default(), Decoded::default());
        let state = RwLock::new(State::new(index, header));
        View { path, under, state, scratch, decoded, compares: true }
    }

    /// The same, which compares payloads with their checksums or believes them.
    pub(crate) fn comparing(self, compares: bool) -> View {
        View { compares, ..self }
    }

    /// To look at what is seen. Reads hold it while they read.
    pub(crate) fn state(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// The file underneath, if there is one.
    pub(crate) fn under(&self) -> Option<&Arc<dyn File>> {
        self.under.as_ref()
    }

    /// Whether there is a file underneath.
    pub(super) fn has_under(&self) -> bool {
        self.under.is_some()
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

    pub(super) fn failed(&self, action: String, why: String) -> StoreError {
        StoreError::new(&self.path, action, io::Error::new(io::ErrorKind::InvalidData, why))
    }

    pub(crate) fn store_error(&self, error: crate::error::Error) -> StoreError {
        match error {
            crate::error::Error::Store(error) => error,
            other => self.failed("read of the log".to_string(), other.to_string()),
        }
    }

    /// Puts the bytes of `stretch` from `from` to `to`, counted from its beginning, into `out`.
    fn lay(
        &self,
        (state, index): (&State, &Index),
        stretch: &Stretch<'_>,
        (from, to): (u64, u64),
        out: &mut [u8],
    ) -> esker_store::Result<()> {
        let width = stretch.variable.ty.size();
        let (first, end) = (from / width, to.div_ceil(width));
        let want = Want { from: first, to: end, at: 0 };
        let laying = Laying { view: self, state, index, stretch, native: false, over: false };
        if (first * width, end * width) == (from, to) {
            return laying.lay(&[want], out);
        }
        // A read that cuts elements: they are laid out whole beside it.
        let mut whole = self.take_scratch(((end - first) * width) as usize);
        let laid = laying.lay(&[want], &mut whole);
        let skip = (from - first * width) as usize;
        out.copy_from_slice(&whole[skip..skip + out.len()]);
        self.give_scratch(whole);
        laid
    }

    /// Memory of `len` bytes with anything in it: what it held before is written over, so that
    /// only new memory is cleared.
    pub(super) fn take_scratch(&self, len: usize) -> Scratch {
        let mut pool = self.scratch.lock().unwrap_or_else(PoisonError::into_inner);
        let mut bytes = pool.pop().unwrap_or_default();
        drop(pool);
        if bytes.len() < len {
            bytes.resize(len, 0);
        }
        Scratch { bytes, len }
    }

    pub(super) fn give_scratch(&self, Scratch { bytes, .. }: Scratch) {
        const MOST: usize = 8;
        let mut pool = self.scratch.lock().unwrap_or_else(PoisonError::into_inner);
        if pool.len() < MOST && bytes.capacity() as u64 <= 2 * READ {
            pool.push(bytes);
        }
    }
}

impl State {
    fn new(index: Index, header: Header) -> State {
        let (head, order) = (Vec::new(), FileOrder::default());
        let (filters, under_records) = (HashMap::new(), 0);
        let left_out = Vec::new();
        let mut state =
            State { index, under_records, header, head, left_out, order, end: 0, filters };
        state.place();
        state
    }

    /// The header of the file that is seen.
    pub(crate) fn header(&self) -> &Header {
        &self.header
    }

    /// The dataset has this header now.
    pub(crate) fn set_header(&mut self, header: Header) {
        self.header = header;
        self.place();
    }

    /// Entries of these variables are not of what stands in the file under their numbers.
    pub(crate) fn leave_out(&mut self, variables: Vec<VarId>) {
        self.left_out = variables;
        self.place();
    }

    /// There are so many records now.
    fn set_records(&mut self, records: u64) {
        self.header.numrecs = NumRecs::Count(records);
        self.head = self.header.encode();
        self.end = self.header.data_end(records);
        self.order.set_records(records);
    }

    /// Another index takes the place of the one that there was.
    pub(crate) fn renew_index(&mut self, budget: usize) {
        self.index = Index::new(budget);
        self.index.see_in(grids_of(&self.header));
    }

    fn place(&mut self) {
        self.head = self.header.encode();
        self.index.see_in(grids_of(&self.header));
        let header = &self.header;
        self.order = FileOrder::of_those(header, |id| !self.left_out.contains(&id));
        self.order.set_records(self.numrecs());
        self.end = header.data_end(self.numrecs());
        // What cannot be understood is an error when it is read.
        let filters = header.vars().filter_map(|(id, variable, _)| {
            Some((id, Arc::new(Filtered::of(variable).ok().flatten()?)))
        });
        self.filters = filters.collect();
    }

    fn numrecs(&self) -> u64 {
        match self.header.numrecs {
            NumRecs::Count(records) => records,
            NumRecs::Streaming => 0,
        }
    }

    fn stretch(&self, at: At) -> Option<Stretch<'_>> {
        let variable = self.header.schema.variable(at.var)?;
        let At { var, record, begin, bytes, .. } = at;
        Some(Stretch { var, variable, record, begin, len: bytes })
    }

    /// Calls `each` with every variable's stretch that meets `from..to` of the file, and the part
    /// of it that does, padding included.
    fn stretches<'s>(
        &'s self,
        from: u64,
        to: u64,
        mut each: impl FnMut(Stretch<'s>, (u64, u64)) -> esker_store::Result<()>,
    ) -> esker_store::Result<()> {
        let mut next = from;
        while let Some(at) = self.order.at_or_after(next).filter(|at| at.begin < to) {
            next = at.padded_end();
            let part = (from.max(at.begin) - at.begin, to.min(next) - at.begin);
            if let Some(stretch) = self.stretch(at) {
                each(stretch, part)?;
            }
        }
        Ok(())
    }
}

/// The grids of all variables that have more than one dimension in a record.
pub(crate) fn grids_of(header: &Header) -> Arc<Grids> {
    let all = header.vars().map(|(id, _, _)| (id.0 as u64, Grid::of(header, id)));
    Arc::new(all.filter(|(_, grid)| *grid != Grid::LINEAR).collect())
}

impl File for View {
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> esker_store::Result<usize> {
        let state = self.state();
        self.read_with((&state, &state.index), offset, buf)
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
    /// Lays what these entries make of a batch. With `over`, only what they have: the rest of
    /// `out` stays.
    pub(crate) fn lay_batch(
        &self,
        (state, index): (&State, &Index),
        batch: &Batch,
        over: bool,
        out: &mut [u8],
    ) -> esker_store::Result<()> {
        let (var, native) = (batch.var, batch.native);
        let header = &state.header;
        let (Some(variable), Some(place)) = (header.schema.variable(var), header.place(var)) else {
            let why = format!("it has no variable number {}", var.0);
            return Err(self.failed("read of the log".to_string(), why));
        };
        let stretch = Stretch { var, variable, record: 0, begin: place.begin, len: place.bytes };
        if let Some((grid, slab, at)) = batch.slab(variable.ty.size()) {
            let laying = Laying { view: self, state, index, stretch: &stretch, native, over };
            return laying.lay_slab(Target { grid, slab: *slab, at }, out);
        }
        for (record, wants) in batch.records() {
            let begin = place.begin + record * header.layout.record_size;
            let stretch = Stretch { record, begin, ..stretch };
            Laying { view: self, state, index, stretch: &stretch, native, over }.lay(wants, out)?;
        }
        Ok(())
    }

    /// Reads what these entries make of the file.
    fn read_with(
        &self,
        (state, index): (&State, &Index),
        offset: u64,
        buf: &mut [u8],
    ) -> esker_store::Result<usize> {
        let mut n = state.end.saturating_sub(offset).min(buf.len() as u64);
        if let Some(under) = self.under.as_ref().filter(|_| n < buf.len() as u64) {
            n = n.max(under.len()?.saturating_sub(offset)).min(buf.len() as u64);
        }
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
            self.lay_between(at, &mut buf[hole])?;
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
                _ => self.lay((state, index), &stretch, (from, from + values), out),
            }
        })?;
        self.lay_between(at, &mut buf[(at - offset) as usize..])?;
        Ok(n as usize)
    }
}

impl View {
    /// What lies between variables: zeros, or what the file underneath has there, chunks perhaps.
    fn lay_between(&self, offset: u64, out: &mut [u8]) -> esker_store::Result<()> {
        let there = match &self.under {
            Some(under) if !out.is_empty() => under.read_at(offset, out)?,
            _ => 0,
        };
        out[there..].fill(0);
        Ok(())
    }

    /// Lays what entries say of a record of a variable over `out`, which has the values that the wanted
    /// elements have without them, in external form. `variable` has the dimensions that entries mean.
    pub(crate) fn lay_over(
        &self,
        (var, variable): (VarId, &Variable),
        record: u64,
        wants: &[Want],
        out: &mut [u8],
    ) -> esker_store::Result<()> {
        let state = self.state();
        let stretch = Stretch { var, variable, record, begin: 0, len: u64::MAX };
        let (stretch, index) = (&stretch, &state.index);
        let laying =
            Laying { view: self, state: &state, index, stretch, native: false, over: true };
        laying.lay(wants, out)
    }

    fn read_only(&self, action: &str) -> StoreError {
        let why = "a log is appended to, not written over";
        StoreError::new(&self.path, action, io::Error::new(io::ErrorKind::Unsupported, why))
    }
}
