//! Chunked variables of a classic file: values in boxes that went through filters.
//!
//! docs/format/chunked.md and docs/rooms/chunked.md are the pages. `define` makes them, `space` gives every
//! element an address to plan with, `tables` says where a chunk is, `heap` where there is room,
//! `policy` and `owners` who has which chunk, `write` and `read` are the roads.

mod begun;
mod commit;
mod decode;
mod deferred;
mod define;
mod encode;
mod end;
mod examine;
mod files;
mod heap;
mod layout;
mod once;
mod opening;
mod over;
mod owners;
pub mod policy;
mod read;
mod room;
mod select;
mod sole;
mod space;
mod stored;
mod tables;
mod write;

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use esker_codec::{Chunk, Pipeline, Scratch};
use esker_format::chunked::{
    Anchor, Axis, BEGUN, Grid, MadeFor, Seal, begun_of, end_of, from_file, heap_of, identity_of,
};
use esker_format::{ExternalType, Header, Schema, VarId, Variable, values};

pub(crate) use commit::write_tables;
pub(crate) use define::{Fresh, Placing, asked_for, fresh, is_wanted, physical};
pub(crate) use encode::{Batch, sections};
pub(crate) use end::write_end;
pub use examine::{ChunkFault, ChunkFaultKind, TableBlock};
pub(crate) use files::{SubFiles, is_chunk_file, new_folder, remove_others, tables_file};
pub(crate) use heap::Heap;
pub(crate) use layout::ChunkRoom;
pub(crate) use owners::{Chunks, assign};
pub(crate) use read::touched;
pub(crate) use space::{ChunkId, Space};
pub use stored::StoredChunk;
pub(crate) use tables::{Chain, HeapFile};

use self::decode::Cache;
use crate::base::Base;
use crate::bounded::CacheUse;
use crate::dataset::Dataset;
use crate::error::{Error, Result};
use crate::ground::Ground;
use crate::hints::Hints;
use crate::lists::Memo;
use crate::plan::SharedRuns;

/// How a variable is cut into chunks, and what they go through.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunking {
    /// The lengths of a chunk, slowest first.
    pub chunk: Vec<u64>,
    /// The filters.
    pub pipeline: Pipeline,
    pub(crate) grid: Grid,
    pub(crate) ty: ExternalType,
    /// The fill value, in external form.
    pub(crate) fill: Vec<u8>,
    shape: Vec<usize>,
}

impl Chunking {
    /// Of a variable that has its dimensions; what is wrong, if something is.
    fn new(
        schema: &Schema,
        variable: &Variable,
        chunk: &[u64],
        pipeline: Pipeline,
    ) -> Result<Self, String> {
        let grid = Grid::new(schema, variable, chunk)?;
        let (ty, fill, shape) = (variable.ty, values::fill_bytes(variable), grid.shape());
        let checked = pipeline.check(&Chunk::new(ty, &shape).with_fill(&fill));
        checked.map_err(|e| e.to_string())?;
        Ok(Chunking { chunk: chunk.to_vec(), pipeline, grid, ty, fill, shape })
    }

    /// Bytes of a chunk in memory.
    pub fn chunk_bytes(&self) -> u64 {
        self.grid.bytes
    }

    /// How many chunks there are with so many records, written or not.
    pub fn chunks(&self, records: u64) -> u64 {
        self.grid.chunks(records)
    }

    /// What a table for it is made for; `dims` are the numbers of its dimensions.
    fn made_for(&self, dims: &[esker_format::DimId]) -> MadeFor {
        let lengths = self.grid.dims.iter().zip(&self.chunk);
        let axes = dims.iter().zip(lengths);
        MadeFor {
            ty: self.ty,
            axes: axes
                .map(|(dim, (len, chunk))| Axis { dim: dim.0 as u64, len: *len, chunk: *chunk })
                .collect(),
            filters: self.pipeline.to_words(),
            fill: self.fill.clone(),
        }
    }

    /// What filters need to know of a chunk.
    fn of_chunk(&self) -> Chunk<'_> {
        Chunk::new(self.ty, &self.shape).with_fill(&self.fill)
    }

    /// Takes out what a chunk has of records that do not exist: a call that failed wrote them.
    fn forget_records(&self, number: u64, existing: u64, values: &mut [u8]) {
        let grid = &self.grid;
        let Some(group) = number.checked_div(grid.per_group).filter(|_| grid.has_records) else {
            return;
        };
        let first = group.saturating_mul(grid.group_records());
        let there = existing.saturating_sub(first).min(grid.group_records());
        let from = there * (grid.bytes / grid.group_records());
        if let Some(rest) = values.get_mut(from as usize..) {
            let elements = rest.chunks_exact_mut(self.fill.len().max(1));
            elements.for_each(|element| element.copy_from_slice(&self.fill));
        }
    }

    /// A chunk that nobody has written.
    fn fill_chunk(&self, out: &mut Vec<u8>) {
        out.clear();
        let bytes = self.grid.bytes as usize;
        out.reserve_exact(bytes);
        while out.len() < bytes {
            match out.len() {
                0 => out.extend_from_slice(&self.fill),
                n => out.extend_from_within(..n.min(bytes - n)),
            }
        }
    }
}

/// Why the chunks of files from before the first release are not read.
const BEFORE: &str = "its chunk table is of a form from before the first release, which cannot tell lost \
                      entries from chunks that were never written: copy the file with the Esker that \
                      wrote it (esker copy --contiguous)";

/// Why chunks cannot begin there, if they cannot: it is where the file has something else.
fn misplaced(header: &Header, begin: u64) -> Option<String> {
    // What lies behind the beginning was put there by others: a hole of the heap, as its end variable.
    let before = header.vars().filter(|(_, v, p)| !header.schema.is_record(v) && p.begin < begin);
    let ends = before.map(|(_, _, place)| place.begin.saturating_add(place.vsize));
    let fixed = ends.fold(header.layout.header_len, u64::max);
    let records = header.layout.record_begin.filter(|records| begin > *records);
    let why = match records {
        _ if begin < fixed => format!("before byte {fixed}, where its header and variables end"),
        Some(records) => format!("behind byte {records}, where its records begin"),
        None => return None,
    };
    Some(format!("the file says that its chunks begin at byte {begin}, {why}"))
}

/// Why chunks are too large to be held in memory, if they are.
pub(crate) fn too_large(chunking: &Chunking, most: u64) -> Option<String> {
    let bytes = chunking.chunk_bytes();
    (bytes > most).then(|| {
        format!(
            "a chunk of it has {bytes} bytes in memory, more than the {most} that the hint \
             esker_chunk_max allows: set the hint, or make the chunks smaller"
        )
    })
}

/// A chunked variable of an open dataset.
#[derive(Debug)]
pub(crate) struct ChunkedVar {
    pub(crate) chunking: Chunking,
    pub(crate) anchor: Anchor,
    pub(crate) chain: Mutex<Chain>,
}

impl ChunkedVar {
    pub(crate) fn grid(&self) -> &Grid {
        &self.chunking.grid
    }
}

/// The chunked variables of an open dataset.
#[derive(Debug)]
pub(crate) struct Chunked {
    /// By the file's numbers; an error says why an anchor is none.
    vars: Vec<Option<std::result::Result<ChunkedVar, String>>>,
    pub(crate) space: Space,
    /// What programs see, in the file's order.
    pub(crate) schema: Schema,
    pub(crate) heap: Heap,
    /// The files of a sub-filed dataset.
    pub(crate) files: Option<Box<SubFiles>>,
    cache: Mutex<Cache>,
    scratch: Mutex<Vec<Scratch>>,
    /// Memory of chunks that were read: fresh memory costs as much as decoding into it.
    buffers: Mutex<Vec<Vec<u8>>>,
    /// What threads encode chunks with.
    benches: Mutex<Vec<encode::Bench>>,
    /// Lists of blocks that were cut before.
    cuts: Mutex<Memo<SharedRuns>>,
    /// Whether records were written of a variable since its attribute was.
    pub(crate) grown: bool,
    /// Whether what a failed call has left is being taken away.
    mending: bool,
    /// Whether the header says that these ranks write.
    claimed: bool,
    /// Where the header says so, once somebody has asked.
    writer_at: OnceLock<Option<u64>>,
    /// What this rank has put alone.
    deferred: deferred::Deferred,
}

impl Chunked {
    /// Those of a file, if it has any.
    pub(crate) fn of(header: &Header, base: &Base) -> Option<Box<Chunked>> {
        let schema = &header.schema;
        if !schema.vars.iter().any(|v| Anchor::of(v).is_some()) {
            return None;
        }
        let (begin, identity) = (heap_of(schema), identity_of(schema));
        let files = files::stem_of(schema).map(|stem| SubFiles::new(base, stem));
        let (files, wrong) = match files {
            None => (None, None),
            Some(Ok(files)) => (Some(Box::new(files)), None),
            Some(Err(why)) => (None, Some(why)),
        };
        let inside = begin.filter(|_| files.is_none());
        let wrong = wrong.or_else(|| inside.and_then(|begin| misplaced(header, begin)));
        let mut seen = Vec::new();
        let mut found = Vec::with_capacity(schema.vars.len());
        for (number, variable) in schema.vars.iter().enumerate() {
            let Some(anchor) = Anchor::of(variable) else {
                found.push(None);
                continue;
            };
            let parsed = anchor.and_then(|anchor| {
                if begin.is_none() {
                    return Err("the file does not say where its chunks are".to_string());
                }
                if let Some(why) = &wrong {
                    return Err(why.clone());
                }
                let Some(identity) = identity else {
                    return Err(BEFORE.to_string());
                };
                let pipeline = Pipeline::from_words(&anchor.filters).map_err(|e| e.to_string())?;
                let one = [(number, anchor.clone(), pipeline.to_string())];
                let whole = Variable { dims: anchor.dims.clone(), ..variable.clone() };
                let chunking = Chunking::new(schema, &whole, &anchor.shape, pipeline)?;
                if chunking.grid.has_records && begun_of(schema).is_none() {
                    return Err(format!("the attribute {BEGUN} of its file is missing or wrong"));
                }
                seen.extend(one);
                let made_for = Arc::new(chunking.made_for(&anchor.dims));
                let seal = Seal::new(identity, VarId(number));
                let chain = Mutex::new(Chain::new(anchor.refs, seal, made_for));
                Ok(ChunkedVar { chunking, anchor, chain })
            });
            found.push(Some(parsed));
        }
        let seen = from_file(schema, &seen);
        let grids = found.iter().map(|v| v.as_ref()?.as_ref().ok().map(ChunkedVar::grid));
        let space = Space::new(grids);
        let limit = header.layout.record_begin.zip(inside).map(|(records, begin)| {
            let end = end_of(&header.schema).and_then(|var| header.place(var));
            let end = end.map_or(records, |place| place.begin).clamp(begin, records.max(begin));
            end - begin
        });
        let heap = Heap::new(begin.unwrap_or(0), None, limit);
        let (cache, scratch, buffers) = (Mutex::default(), Mutex::default(), Mutex::default());
        Some(Box::new(Chunked {
            vars: found,
            space,
            schema: seen,
            heap,
            files,
            cache,
            scratch,
            buffers,
            benches: Mutex::default(),
            cuts: Mutex::default(),
            grown: false,
            mending: false,
            claimed: false,
            writer_at: OnceLock::new(),
            deferred: deferred::Deferred::default(),
        }))
    }

    /// The chunked variable of this number, if it is one.
    pub(crate) fn var(&self, var: VarId) -> Option<&std::result::Result<ChunkedVar, String>> {
        self.vars.get(var.0)?.as_ref()
    }

    /// The variable of a chunk of the space, all of which are of sound variables.
    pub(crate) fn of_chunk(&self, id: ChunkId) -> Result<&ChunkedVar> {
        match self.var(id.var) {
            Some(Ok(var)) => Ok(var),
            _ => Err(Error::Garbled),
        }
    }

    /// All sound ones, by the file's numbers.
    pub(crate) fn sound(&self) -> impl Iterator<Item = (VarId, &ChunkedVar)> {
        let all = self.vars.iter().enumerate();
        all.filter_map(|(n, v)| Some((VarId(n), v.as_ref()?.as_ref().ok()?)))
    }

    /// The numbers of the scalars that stand for variables with chunks, sound or not.
    pub(crate) fn anchors(&self) -> impl Iterator<Item = VarId> {
        let all = self.vars.iter().enumerate();
        all.filter_map(|(n, var)| var.is_some().then_some(VarId(n)))
    }

    /// Begins to write while `other`, of the same file, is read: what that may look at stays.
    pub(crate) fn take_off(&mut self, other: &Chunked) {
        self.know(other);
        self.heap = other.heap.clone();
        self.heap.held = true;
        (self.grown, self.claimed) = (other.grown, other.claimed);
        self.keep_records(other);
    }

    /// Knows what the other one knows of how many records were written of each variable.
    fn keep_records(&mut self, other: &Chunked) {
        for (new, old) in self.vars.iter_mut().zip(&other.vars) {
            if let (Some(Ok(new)), Some(Ok(old))) = (new, old) {
                new.anchor.records = old.anchor.records;
            }
        }
    }

    /// Nobody reads any more what there was before.
    pub(crate) fn land(&mut self) {
        self.heap.held = false;
    }

    /// Whether any of them has records.
    pub(crate) fn has_records(&self) -> bool {
        self.sound().any(|(_, var)| var.grid().has_records)
    }

    /// What its caches hold.
    pub(crate) fn caches_now(&self, hints: &Hints) -> [CacheUse; 2] {
        let chunks = self.cache.lock().unwrap_or_else(PoisonError::into_inner).memory();
        let lists = self.cuts.lock().unwrap_or_else(PoisonError::into_inner).memory();
        [
            CacheUse { what: "decoded chunks", bytes: chunks, budget: hints.chunk_cache },
            CacheUse { what: "lists of blocks in chunks", bytes: lists, budget: hints.cache },
        ]
    }

    /// Memory for a chunk, with anything in it.
    pub(crate) fn take_buffer(&self) -> Vec<u8> {
        let mut pool = self.buffers.lock().unwrap_or_else(PoisonError::into_inner);
        pool.pop().unwrap_or_default()
    }

    /// Takes the memory of a chunk back, if nobody else has it.
    pub(crate) fn give_buffer(&self, values: Arc<Vec<u8>>) {
        const MOST: usize = 16 << 20;
        let Some(values) = Arc::into_inner(values) else { return };
        let mut pool = self.buffers.lock().unwrap_or_else(PoisonError::into_inner);
        let held: usize = pool.iter().map(Vec::capacity).sum();
        if held + values.capacity() <= MOST && pool.len() < 64 {
            pool.push(values);
        }
    }

    pub(crate) fn take_scratch(&self) -> Scratch {
        let mut pool = self.scratch.lock().unwrap_or_else(PoisonError::into_inner);
        pool.pop().unwrap_or_default()
    }

    pub(crate) fn give_scratch(&self, scratch: Scratch) {
        let mut pool = self.scratch.lock().unwrap_or_else(PoisonError::into_inner);
        if pool.len() < 16 {
            pool.push(scratch);
        }
    }
}

impl Dataset {
    /// How a variable is cut into chunks; `None` for an ordinary variable.
    pub fn chunking(&self, var: VarId) -> Option<&Chunking> {
        let var = self.file_var(var).ok()?;
        match self.layout.get::<Chunked>()?.var(var)? {
            Ok(found) => Some(&found.chunking),
            Err(_) => None,
        }
    }

    /// Writes what ranks have put alone into chunked variables, which otherwise waits for the next collective read
    /// or write, sync, redefinition or close. Collective.
    pub fn complete_puts(&mut self) -> Result<()> {
        // A burst buffer has taken it.
        if self.layout.space() == crate::selection::Space::Log {
            return Ok(());
        }
        match self.layout.get_mut::<Chunked>() {
            Some(chunked) => chunked.complete_puts(&mut self.ground),
            None => Ok(()),
        }
    }
}

impl Chunked {
    /// Fails when attributes that say how values are stored would change.
    fn require_same(&self, ground: &Ground, changed: &Schema) -> Result<()> {
        let old = &ground.header.schema;
        let same = old.vars.len() == changed.vars.len() && heap_of(old) == heap_of(changed);
        let pairs = old.vars.iter().zip(&changed.vars).enumerate();
        let is_other = |(a, b): (&Variable, &Variable)| {
            let anchor = Anchor::of(a);
            anchor != Anchor::of(b)
                || (anchor.is_some() && values::fill_bytes(a) != values::fill_bytes(b))
        };
        let differs = pairs.filter(|(_, pair)| is_other(*pair)).map(|(n, _)| n).next();
        match differs.or((!same).then_some(0)) {
            None => Ok(()),
            Some(var) => {
                let why = "attributes that say how its values are stored cannot be changed";
                Err(ground.chunk_error(VarId(var), why.to_string()))
            }
        }
    }

    /// The header is another one, of the same chunks.
    fn describe_again(&mut self, ground: &mut Ground) {
        let Some(anew) = Chunked::of(&ground.header, &ground.base) else { return };
        ground.shown = Some(anew.schema.clone());
        let old = std::mem::replace(self, *anew);
        self.heap = old.heap;
        self.files = old.files;
        self.grown = old.grown;
        (self.mending, self.claimed) = (old.mending, old.claimed);
        self.deferred = old.deferred;
        for (new, old) in self.vars.iter_mut().zip(old.vars) {
            if let (Some(Ok(new)), Some(Ok(old))) = (new, old) {
                new.anchor.records = old.anchor.records;
                new.chain = old.chain;
            }
        }
    }

    /// The chunked variable of the file's number, if it is one.
    pub(crate) fn found(&self, ground: &Ground, var: VarId) -> Result<Option<&ChunkedVar>> {
        match self.var(var) {
            None => Ok(None),
            Some(Ok(found)) => Ok(Some(found)),
            Some(Err(why)) => Err(ground.chunk_error(var, why.clone())),
        }
    }

    /// Fails if a chunk is larger than what may be held of one: what a file says is not believed.
    fn require_chunk_memory(&self, ground: &Ground, (id, var): (VarId, &ChunkedVar)) -> Result<()> {
        match too_large(&var.chunking, ground.base.hints.chunk_max) {
            None => Ok(()),
            Some(why) => Err(ground.chunk_error(id, why)),
        }
    }
}

impl Ground {
    pub(crate) fn chunk_error(&self, var: VarId, why: String) -> Error {
        Error::Chunked { path: self.base.path.clone(), var: self.name(var), why }
    }
}
