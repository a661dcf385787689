//! Define mode: dimensions, attributes and variables come into being.

mod names;

use std::any::Any;
use std::ffi::OsStr;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use esker_comm::{CommunicatorExt, ReduceOp, Reduction};
use esker_format::chunked::without_end;
use esker_format::graph::GraphSet;
use esker_format::{
    Alignment, DataLayout, DimId, DimLen, ExternalType, Header, NumRecs, Schema, SchemaError, VarId,
};
use esker_store::{CreateMode, Draft, File, Locked, Occupant, Store, StoreError};

use crate::base::{Base, broadcast_parts};
use crate::burst::{Buffered, Burst};
use crate::chunked::{self, Chunked, Placing};
use crate::commit::{self, Committed};
use crate::common::Common;
use crate::container::{self, Container};
use crate::counting;
use crate::dataset::Dataset;
use crate::decomposed::{Groups, NewMap};
use crate::error::{Error, Result};
use crate::graphs::{self, Content, GraphDraft, Placed};
use crate::ground::Ground;
use crate::hints::{ChunkFiles, Definitions, Hints, Layout as StoredAs};
use crate::layout::{Layout, Stage};
use crate::log::{FILTERS, Filtered};
use crate::merging::{self, Merged};
use crate::numbering::{FileOrder, Numbering};
use crate::opening;
use crate::options::{CreateOptions, FillMode};
use crate::report::Report;
use crate::tree;
use crate::writer;

/// A dataset in define mode. [`Define::enddef`] makes it a [`Dataset`] that holds data.
///
/// Nothing is written before: a new file appears, and a changed header replaces the old one,
/// in one step at `enddef`. Dropping a `Define` leaves everything as it was.
///
/// With several ranks, every rank may define what it likes: at `enddef` equal definitions are
/// one, and the dataset has those of all ranks. Numbers that a rank was given stay valid on
/// that rank. Renaming and deleting is done by all ranks alike or not at all.
#[derive(Debug)]
pub struct Define {
    pub(crate) base: Base,
    pub(crate) schema: Schema,
    /// The same in the file's order, where this rank has one of its own.
    file_order: Option<FileOrder>,
    /// Each variable's own fill mode, where it has one.
    fills: Vec<Option<FillMode>>,
    pub(crate) before: Option<Before>,
    /// The logs before the file, if there are any.
    burst: Option<Box<Burst>>,
    /// The sub-files of decomposed variables, if there will be any.
    pub(crate) groups: Option<Groups>,
    /// The file of a new dataset before it has its name, on rank 0. A failed attempt takes it away, and
    /// the next one begins another.
    draft: Option<Draft>,
    /// The file that holds the name of a new dataset until it is committed, if it must be new.
    placeholder: Option<PathBuf>,
    /// Whether something was renamed or deleted, which cannot be merged.
    removed: bool,
    /// Maps whose contents reach the file together with the header.
    pub(crate) maps: Vec<NewMap>,
    /// The graphs of variables.
    pub(crate) graphs: GraphDraft,
}

/// What a redefinition starts from.
#[derive(Debug)]
pub(crate) struct Before {
    pub(crate) file: Arc<dyn File>,
    /// The header of the file but for the variable that ends its chunks, which is made anew.
    pub(crate) header: Header,
    /// The header's bytes.
    pub(crate) bytes: Vec<u8>,
    pub(crate) records: u64,
    /// Whether the file's name is not safe from power loss yet.
    pub(crate) renamed: bool,
    /// How variables are stored, with nothing before it.
    pub(crate) layout: Option<Box<dyn Layout>>,
    /// Where the heap of chunked variables begins, and how long it is.
    pub(crate) heap: (u64, u64),
    /// Keeps other writers away, if it has one at a time.
    pub(crate) lock: Option<Locked>,
}

impl Before {
    pub(crate) fn new(file: Arc<dyn File>, header: &Header, records: u64) -> Before {
        let (bytes, header) = (header.encode(), without_end(header));
        let (renamed, layout, heap, lock) = (false, None, (0, 0), None);
        Before { file, header, bytes, records, renamed, layout, heap, lock }
    }

    /// Its chunked variables, whose heap is known.
    pub(crate) fn chunked(&self) -> Option<&Chunked> {
        self.layout.as_ref()?.get()
    }

    /// What programs see, in the file's order.
    fn schema(&self) -> &Schema {
        self.chunked().map_or(&self.header.schema, |chunked| &chunked.schema)
    }
}

/// What came of comparing the ranks' definitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Compared {
    Alike,
    /// They are, but the graphs of variables are not.
    ButForGraphs,
    /// They were not, and everyone has rank 0's now.
    Followed,
}

/// What came of merging.
enum Definition {
    /// The schema of all ranks in the file's order, each variable's own fill mode, and their graphs if any rank may have changed
    /// some.
    Whole(Schema, Vec<Option<FillMode>>, Option<GraphSet>),
    /// This rank's part.
    Part(Merged),
}

/// A definition that is in the file: its header, and each variable's own fill mode.
type Defined = (Committed, Header, Vec<Option<FillMode>>);

/// [`Define::enddef`] failed. The dataset is still in define mode, and can be corrected.
#[derive(Debug, thiserror::Error)]
#[error("{error}")]
pub struct EnddefError {
    /// The dataset as it was before the call.
    pub define: Box<Define>,
    /// What went wrong.
    #[source]
    pub error: Box<Error>,
}

impl From<EnddefError> for Error {
    fn from(failed: EnddefError) -> Error {
        *failed.error
    }
}

impl Dataset {
    /// Creates a dataset and enters define mode. The file appears (or, if there was one, is
    /// replaced) when define mode ends. Collective.
    pub fn create(path: impl AsRef<Path>, options: CreateOptions) -> Result<Define> {
        Define::create(path.as_ref(), options)
    }

    /// Goes back to define mode. Collective.
    pub fn redef(mut self) -> Result<Define> {
        self.require_writable("redefine")?;
        self.learn_all()?;
        if self.ground.volume.is_some() {
            let why = "the definitions of a dataset with sub-files are final: `esker copy` makes one file of it";
            return Err(Error::NotAlike { path: self.ground.base.path.clone(), why });
        }
        self.settle()?;
        self.layout.settle(&mut self.ground, Stage::Ended)?;
        self.layout.settle(&mut self.ground, Stage::Redefined)?;
        // What is being read may move.
        self.ground.io.drain();
        let graphs = self.graph_draft();
        let Dataset { numbering, layout, ground, .. } = self;
        Ok(Define::redefine(ground, layout, numbering, graphs))
    }
}

impl Define {
    pub(crate) fn create(path: &Path, mut options: CreateOptions) -> Result<Define> {
        let comm = options.comm.share()?;
        let hints = options.all_hints();
        let claimed = match (comm.rank(), hints.layout) {
            (0, StoredAs::Classic) if hints.chunk_files != ChunkFiles::Inside => {
                let inner = chunked::new_folder(&*options.store, path);
                inner.and_then(|path| claim(&*options.store, &path, options.clobber))
            }
            (0, StoredAs::Classic) => claim(&*options.store, path, options.clobber),
            (0, StoredAs::Log) => container::claim(&*options.store, path, options.clobber),
            _ => Ok(path.to_path_buf()),
        };
        let align = aligned(options.align, &hints);
        let CreateOptions { store, fill, fill_grown, short_file, .. } = options;
        let (writable, is_container) = (true, false);
        let own = claimed.map(|path| Common {
            path,
            hints,
            align,
            fill,
            fill_grown,
            short_file,
            writable,
            is_container,
            held: None,
        });
        let (mut base, _) = Base::new(store, comm, own)?;
        (base.raw, base.blobs) = (options.raw || base.hints.raw(), options.blobs);
        base.rooms = options.rooms;
        let classic = base.hints.layout == StoredAs::Classic;
        if !classic {
            base.has_no_burst_buffer();
        }
        let holds_name = base.is_root() && classic && !options.clobber;
        let placeholder = holds_name.then(|| base.path.clone());
        let mut define = Define {
            base,
            schema: Schema::new(options.version),
            file_order: None,
            fills: Vec::new(),
            before: None,
            burst: None,
            groups: None,
            draft: None,
            placeholder,
            removed: false,
            maps: Vec::new(),
            graphs: GraphDraft::default(),
        };
        // A directory that takes no files is reported before any work is done.
        let base = &define.base;
        if classic {
            let (draft, growing) = base.told_by_root(|| {
                let stripes = base.hints.stripes();
                let draft = Draft::begin_striped(&base.store, &base.path, stripes)?;
                let growing = draft.path().as_os_str().as_bytes().to_vec();
                Ok((draft, growing))
            })?;
            define.burst = Burst::start(base, Path::new(OsStr::from_bytes(&growing)))?;
            define.draft = draft;
        }
        Ok(define)
    }

    pub(crate) fn redefine(
        ground: Ground,
        layout: Box<dyn Layout>,
        numbering: Option<Numbering>,
        graphs: GraphDraft,
    ) -> Define {
        let (burst, layout) = Buffered::take_apart(layout);
        let Ground { base, file, header, records, renamed, lock, fills, .. } = ground;
        let mut before = Before { renamed, lock, ..Before::new(file, &header, records) };
        if let Some(chunked) = layout.get::<Chunked>() {
            before.heap = (chunked.heap.begin, chunked.heap.end.unwrap_or(0));
        }
        before.layout = Some(layout);
        // In this rank's order, so that its numbers stay what they are.
        let file_order = numbering.as_ref().map(|n| FileOrder::new(before.schema(), n));
        let (schema, fills) = match numbering {
            None => (before.schema().clone(), fills),
            Some(numbering) => {
                let own = numbering.vars.iter().map(|v| fills.get(v.0).copied().flatten());
                (numbering.schema, own.collect())
            }
        };
        let (before, maps) = (Some(before), Vec::new());
        let (draft, placeholder) = (None, None);
        let removed = false;
        let groups = None;
        Define {
            base,
            schema,
            file_order,
            fills,
            before,
            burst,
            groups,
            draft,
            placeholder,
            removed,
            maps,
            graphs,
        }
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.base.path
    }

    /// What this rank has defined so far.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// Defines a dimension. Lengths of 0 do not exist in classic files: 0 means unlimited
    /// there, and that is [`DimLen::Unlimited`] here.
    pub fn add_dim(&mut self, name: &str, len: DimLen) -> Result<DimId> {
        let dim = self.schema.add_dim(name, len).map_err(|e| self.base.schema_error(e))?;
        self.in_file_order(|file| file.schema.add_dim(name, len).map(drop))?;
        Ok(dim)
    }

    /// Defines a variable over dimensions, slowest first. The hints `esker_chunk` and `esker_filter` may
    /// choose how it is stored; what they cannot do for it is in [`Hints::refused`].
    pub fn add_var(&mut self, name: &str, ty: ExternalType, dims: &[DimId]) -> Result<VarId> {
        let var = self.add_plain_var(name, ty, dims)?;
        self.follow_chunk_hints(var);
        Ok(var)
    }

    /// The same for a variable that no hint is for.
    pub(crate) fn add_plain_var(
        &mut self,
        name: &str,
        ty: ExternalType,
        dims: &[DimId],
    ) -> Result<VarId> {
        let var = self.schema.add_var(name, ty, dims).map_err(|e| self.base.schema_error(e))?;
        self.fills.push(None);
        self.in_file_order(|file| {
            let dims: Vec<DimId> = dims.iter().map(|d| file.dim(*d)).collect();
            file.schema.add_var(name, ty, &dims).map(drop)
        })?;
        Ok(var)
    }

    /// Defines a variable and, by `describe`, what belongs to it (chunks, filters, attributes): all of
    /// it, or nothing if that fails.
    pub fn add_var_with(
        &mut self,
        name: &str,
        ty: ExternalType,
        dims: &[DimId],
        describe: impl FnOnce(&mut Define, VarId) -> Result<()>,
    ) -> Result<VarId> {
        let var = self.add_var(name, ty, dims)?;
        let described = describe(self, var);
        // New variables are the last ones, of the file too.
        if described.is_err() && self.schema.vars.len() == var.0 + 1 {
            self.schema.vars.remove(var.0);
            self.fills.truncate(var.0);
            if let Some(file) = &mut self.file_order
                && file.schema.vars.len() == var.0 + 1
            {
                file.schema.vars.remove(var.0);
            }
        }
        described.map(|()| var)
    }

    /// Makes a change that went well in the rank's order in the file's order too.
    fn in_file_order(
        &mut self,
        change: impl FnOnce(&mut FileOrder) -> Result<(), SchemaError>,
    ) -> Result<()> {
        let changed = self.file_order.as_mut().map_or(Ok(()), change);
        changed.map_err(|e| self.base.schema_error(e))
    }

    /// What this rank has defined, in the order in which all ranks have what is in the file.
    fn comparable(&self) -> (&Schema, Vec<Option<FillMode>>) {
        match &self.file_order {
            None => (&self.schema, self.fills.clone()),
            Some(file) => {
                let mut fills = vec![None; self.fills.len()];
                for (own, fill) in self.fills.iter().enumerate() {
                    if let Some(slot) = fills.get_mut(file.var(VarId(own)).0) {
                        *slot = *fill;
                    }
                }
                (&file.schema, fills)
            }
        }
    }

    /// Chooses what values of `var` that nobody writes are. For another fill value than the
    /// type's default, set the attribute `_FillValue` (of the variable's type, one value).
    pub fn set_fill(&mut self, var: VarId, fill: FillMode) -> Result<()> {
        let defined = self.schema.vars.len();
        match self.fills.get_mut(var.0) {
            Some(slot) => {
                *slot = Some(fill);
                Ok(())
            }
            None => Err(self.base.schema_error(SchemaError::NoSuchVar { id: var.0, defined })),
        }
    }

    /// Lets the variable's values go through filters before they are stored: names and parameters
    /// with blanks between them, as `shuffle zstd,3` (docs/codecs.md has all). A variable of a classic
    /// file is cut into chunks then ([`Define::set_chunks`] says how; otherwise a shape is chosen).
    pub fn set_filters(&mut self, var: VarId, filters: &str) -> Result<()> {
        if !self.is_container() {
            return self.set_chunk_filters(var, filters);
        }
        let defined = self.schema.vars.len();
        let Some(variable) = self.schema.variable(var) else {
            return Err(self.base.schema_error(SchemaError::NoSuchVar { id: var.0, defined }));
        };
        let refuse = |why: String| {
            let (path, name) = (&self.base.path, &variable.name);
            Err(Error::Filter(format!("{}: variable {name:?}: {why}", path.display())))
        };
        if self.before.as_ref().is_some_and(|b| b.header.schema.vars.get(&variable.name).is_some())
        {
            return refuse("filters are set when a variable is defined".to_string());
        }
        match Filtered::new(filters, variable) {
            Ok(filtered) => self.put_attr(var, FILTERS, filtered.attribute()),
            Err(why) => refuse(why),
        }
    }

    /// How the data section will be aligned, in place of what was said when the dataset was
    /// created or opened. Collective: the same on every rank.
    pub fn set_align(&mut self, align: Alignment) {
        self.base.align = align;
    }

    /// Whether it was begun as a transaction: [`Dataset::is_transaction`].
    pub fn is_transaction(&self) -> bool {
        self.base.held.is_some()
    }

    /// Whether it is a container of logs, or will be.
    pub fn is_log(&self) -> bool {
        self.is_container()
    }

    /// The records that there are, of a dataset that is being redefined.
    pub fn numrecs(&self) -> u64 {
        self.before.as_ref().map_or(0, |before| before.records)
    }

    /// The header that the file has, if it has one.
    pub fn header(&self) -> Option<&Header> {
        self.before.as_ref().map(|before| &before.header)
    }

    /// The hints in force.
    pub fn hints(&self) -> &Hints {
        &self.base.hints
    }

    /// Takes rank 0's definitions in place of this rank's, where the ranks' differ: PnetCDF's way.
    /// Tells whether they did. Collective.
    pub fn follow_root(&mut self) -> Result<bool> {
        Ok(self.follow()? == Compared::Followed)
    }

    fn follow(&mut self) -> Result<Compared> {
        let comm = &*self.base.comm;
        let own = hash(&self.schema, &self.fills, self.removed);
        if comm.size() == 1 {
            return Ok(Compared::Alike);
        }
        // Graphs are merged in any case, and compared here to spare a second comparison.
        let (everything, graphs) = (own, own ^ self.graphs.hash());
        let mut bounds = [everything, !everything, graphs, !graphs];
        comm.all_reduce(Reduction::U64(&mut bounds), ReduceOp::Min)?;
        let [definitions, graphs] = [0, 2].map(|i| bounds[i] == !bounds[i + 1]);
        match (definitions, graphs) {
            (true, true) => return Ok(Compared::Alike),
            (true, false) => return Ok(Compared::ButForGraphs),
            (false, _) => {}
        }
        let mode = |fill: &Option<FillMode>| match fill {
            None => 0,
            Some(FillMode::Fill) => 1,
            Some(FillMode::NoFill) => 2,
        };
        let fills: Vec<u8> = self.fills.iter().map(mode).collect();
        let parts = [&self.schema.to_bytes()[..], &fills, &[self.removed.into()]];
        let parts = broadcast_parts(comm, &parts)?;
        let [schema, fills, removed] =
            <[Vec<u8>; 3]>::try_from(parts).map_err(|_| Error::Garbled)?;
        let path = self.base.path.clone();
        let decoded = Schema::from_bytes(&schema);
        self.schema = decoded.map_err(|source| Error::Decode { path, source })?;
        let mode = |fill: &u8| match fill {
            1 => Some(FillMode::Fill),
            2 => Some(FillMode::NoFill),
            _ => None,
        };
        self.fills = fills.iter().map(mode).collect();
        self.removed = removed == [1];
        // Everyone has rank 0's numbers now.
        self.file_order = None;
        Ok(Compared::Followed)
    }

    /// Ends define mode: merges the definitions of all ranks, places the variables, moves data
    /// that is in the way, writes fill values, and commits the header. Collective.
    ///
    /// When the process dies in here the file has the old header or the new one, with the
    /// data that belong to it.
    pub fn enddef(self) -> Result<Dataset, EnddefError> {
        self.end(false)
    }

    /// The same with rank 0's definitions where the ranks' differ ([`Define::follow_root`]), and whether they did.
    /// Collective.
    pub fn enddef_following_root(mut self) -> Result<(Dataset, bool), EnddefError> {
        match self.follow() {
            Ok(compared) => {
                let dataset = self.end(compared == Compared::Alike)?;
                Ok((dataset, compared == Compared::Followed))
            }
            Err(error) => Err(EnddefError { define: Box::new(self), error: Box::new(error) }),
        }
    }

    /// `alike` if the ranks' definitions are known to be so.
    fn end(mut self, alike: bool) -> Result<Dataset, EnddefError> {
        match self.commit(alike) {
            Ok(((mut committed, header, fills), placed)) => {
                let heap = committed.heap.take();
                self.placeholder = None;
                committed.renamed |= self.before.as_ref().is_some_and(|b| b.renamed);
                let before = self.before.as_mut().and_then(|b| b.lock.take());
                committed.lock = committed.lock.take().or(before);
                let records = self.before.as_ref().map_or(0, |b| b.records);
                let base = self.base.clone();
                let parts = (committed, header, records);
                let mut dataset = opening::dataset(base, parts, fills);
                graphs::rename_own(&mut self.schema, &placed);
                dataset.numbering = Numbering::of(&self.schema, dataset.schema());
                if let (Some(chunked), Some(heap)) = (dataset.layout.get_mut::<Chunked>(), heap) {
                    chunked.heap = heap;
                }
                dataset.stand_behind(self.burst.take());
                if !dataset.ground.counts
                    && let Err(error) = dataset.put_contents(&placed.contents)
                {
                    // What was open stays open, and the definition can be corrected.
                    if let Some(before) = &mut self.before {
                        before.layout = Some(dataset.layout);
                    }
                    return Err(EnddefError { define: Box::new(self), error: Box::new(error) });
                }
                Ok(dataset)
            }
            Err(error) => Err(EnddefError { define: Box::new(self), error: Box::new(error) }),
        }
    }

    /// The definition of all ranks, committed, and what it did for graphs.
    fn commit(&mut self, alike: bool) -> Result<(Defined, Placed)> {
        self.base.require_own_process()?;
        if let Some(groups) = &mut self.groups {
            groups.rename();
        }
        let (mut schema, mut own_fills, graphs) = match self.merge(alike)? {
            Definition::Whole(schema, fills, graphs) => (schema, fills, graphs),
            Definition::Part(part) => return Ok((self.commit_part(part)?, Placed::default())),
        };
        let placed = match &graphs {
            None => Placed::default(),
            Some(set) => {
                let usable = |name: &str| !self.is_chunked_in_file(name);
                graphs::place(set, &mut schema, &mut own_fills, usable, &self.base.path)?
            }
        };
        Ok((self.commit_merged(schema, own_fills, &placed.contents)?, placed))
    }

    fn commit_merged(
        &mut self,
        schema: Schema,
        own_fills: Vec<Option<FillMode>>,
        contents: &[Content],
    ) -> Result<Defined> {
        let mode = |own: &Option<FillMode>| own.unwrap_or(self.base.fill) == FillMode::Fill;
        let fills: Vec<bool> = own_fills.iter().map(mode).collect();
        let align = &self.base.align;
        if self.is_container() {
            let layout = DataLayout::place(&schema, align);
            let layout = layout.map_err(|e| self.base.schema_error(e))?;
            let numrecs = NumRecs::Count(self.numrecs());
            let header = Header { schema, numrecs, layout };
            return Ok((self.commit_container(&header)?, header, own_fills));
        }
        let before = self.before.as_ref().map(|b| (&b.header, b.chunked(), b.records));
        let placing = match self.base.raw {
            true => None,
            false => {
                let fresh = chunked::fresh(&self.base, &schema)?;
                chunked::physical(&self.base, &schema, before, fresh)?
            }
        };
        let records = self.numrecs();
        let (mut schema, layout) = match &placing {
            Some(Placing { schema, layout, .. }) => (schema.clone(), layout.clone()),
            None => {
                let layout = match before {
                    None => DataLayout::place(&schema, align),
                    Some((header, _, records)) => {
                        DataLayout::extend(&schema, header, records, align)
                    }
                };
                (schema, layout.map_err(|e| self.base.schema_error(e))?)
            }
        };
        counting::begin(&mut schema, self.before.is_none(), records);
        let header = Header { schema, numrecs: NumRecs::Count(records), layout };
        let new = commit::New {
            header: &header,
            fills: &fills,
            maps: &self.maps,
            contents,
            placing: placing.as_ref(),
            groups: self.groups.as_ref(),
            part: None,
        };
        let mut committed = match &self.before {
            None => commit::create(&self.base, &new, self.draft.take())?,
            Some(before) => commit::update(&self.base, before, &new)?,
        };
        committed.heap = placing.map(|placing| placing.heap);
        Ok((committed, header, own_fills))
    }

    /// Commits a new file of whose header each rank has a part. Collective.
    fn commit_part(&mut self, part: Merged) -> Result<Defined> {
        let is_filled = |own: &Option<FillMode>| own.unwrap_or(self.base.fill) == FillMode::Fill;
        let fills = part.fills.iter().zip(&part.rest.is_first);
        let fills: Vec<bool> = fills.map(|(own, is_first)| *is_first && is_filled(own)).collect();
        let new = commit::New {
            header: &part.header,
            fills: &fills,
            maps: &[],
            contents: &[],
            placing: None,
            groups: None,
            part: Some(&part),
        };
        let committed = commit::create(&self.base, &new, self.draft.take())?;
        Ok((committed, part.header, part.fills))
    }

    /// Whether this rank's definitions can be merged by shares: those of a new classic file, with nothing in it that is
    /// not a value in its place.
    fn has_shares(&self, schema: &Schema) -> bool {
        let base = &self.base;
        let is_plain = self.before.is_none()
            && !self.is_container()
            && self.burst.is_none()
            && self.groups.is_none()
            && self.maps.is_empty()
            && !base.raw
            && base.rooms.is_empty()
            && base.hints.chunk_files == ChunkFiles::Inside;
        is_plain && !schema.has_sealed() && !schema.vars.iter().any(chunked::is_wanted)
    }

    /// Whether the file has chunked variables.
    pub(crate) fn has_chunks(&self) -> bool {
        self.before.as_ref().is_some_and(|b| b.chunked().is_some())
    }

    /// Whether the variable of this name is a chunked one of the file.
    pub(crate) fn is_chunked_in_file(&self, name: &str) -> bool {
        let Some(before) = &self.before else { return false };
        let Some(chunked) = before.chunked() else { return false };
        before.header.schema.var(name).is_some_and(|var| chunked.var(var).is_some())
    }

    pub(crate) fn is_container(&self) -> bool {
        match &self.before {
            None => self.base.hints.layout == StoredAs::Log,
            Some(before) => before.layout.as_ref().and_then(|l| l.get::<Container>()).is_some(),
        }
    }

    /// Commits the definition of a container, and begins to write in a new one. Collective.
    fn commit_container(&mut self, header: &Header) -> Result<Committed> {
        let base = &self.base;
        let before: Option<Box<dyn Any>> =
            self.before.as_mut().and_then(|b| b.layout.take()).map(|layout| layout as Box<dyn Any>);
        let mut container = match before.and_then(|before| before.downcast::<Container>().ok()) {
            Some(container) => container,
            None => Box::new(Container::create(base, header)?),
        };
        let defined = container
            .define(base, header, &mut Report::default())
            .and_then(|()| container.start(base));
        match defined {
            Ok(()) => {
                let file = container.view.clone();
                let container = Some(container);
                Ok(Committed {
                    file,
                    renamed: false,
                    container,
                    heap: None,
                    volume: None,
                    lock: None,
                    rest: None,
                })
            }
            Err(error) => {
                // What was open stays open, and the definition can be corrected.
                if let Some(before) = &mut self.before {
                    before.layout = Some(container);
                }
                Err(error)
            }
        }
    }

    /// What all ranks have together, in the file's order, or this rank's part of it. Collective.
    fn merge(&self, alike: bool) -> Result<Definition> {
        let comm = &*self.base.comm;
        let (own, own_fills) = self.comparable();
        if alike || comm.size() == 1 {
            return Ok(Definition::Whole(own.clone(), own_fills, self.graphs.changed()));
        }
        let mine = hash(own, &own_fills, self.removed);
        // One comparison is all where everyone defines the same.
        if comm.all_equal(mine ^ self.graphs.hash())? {
            return Ok(Definition::Whole(own.clone(), own_fills, self.graphs.changed()));
        }
        let graphs = self.merge_graphs()?;
        if comm.all_equal(mine)? {
            return Ok(Definition::Whole(own.clone(), own_fills, graphs));
        }
        if comm.any(self.removed)? {
            let why = "ranks may define different things, but rename, delete and change alike";
            return Err(Error::NotAlike { path: self.base.path.clone(), why });
        }
        if self.base.hints.definitions == Definitions::Shares
            && comm.all(graphs.is_none() && self.has_shares(own))?
            && comm.all_equal(own.version.byte().into())?
        {
            let base = &self.base;
            let is_filled = |own: Option<FillMode>| {
                base.fill_grown && own.unwrap_or(base.fill) == FillMode::Fill
            };
            let part = merging::merge(comm, &base.path, own, &own_fills, &base.align, is_filled)?;
            if let Some(part) = part {
                return Ok(Definition::Part(part));
            }
        }
        // Every draft begins with what is in the file, in its order, and so does their merger.
        let merged = tree::merge(comm, own, &own_fills);
        let (schema, fills) = merged.map_err(|e| e.into_error(&self.base.path))?;
        Ok(Definition::Whole(schema, fills, graphs))
    }

    /// Sets the message of the version that [`Define::enddef`] commits to a container: [`Dataset::set_message`].
    pub fn set_message(&mut self, message: &str) -> Result<()> {
        container::say(&self.base, self.is_container(), Some(message))
    }

    /// The same by all ranks together, so that a message that cannot be one is an error on all of them. Collective. `None` has nothing to say.
    pub fn set_message_all(&mut self, message: Option<&str>) -> Result<()> {
        let said = container::say(&self.base, self.is_container(), message);
        self.base.agree(said)
    }

    /// Leaves define mode without a change, and closes the dataset; one that was being created is gone. Of a container, what was written since its last version
    /// is given up, as [`Dataset::abort`] does.
    pub fn abort(self) -> Result<()> {
        let before = self.before.as_ref().and_then(|before| before.layout.as_ref());
        match before.and_then(|layout| layout.get::<Container>()) {
            Some(container) if self.base.is_root() && self.base.is_own_process() => {
                container.void(&self.base)?;
                container.give_up_number(&self.base)
            }
            _ => Ok(()),
        }
    }
}

impl Drop for Define {
    fn drop(&mut self) {
        if !self.base.is_own_process() {
            // It is the definition of the process that this one was forked from.
            return;
        }
        // Nothing of a definition that was not committed stays: the draft goes by itself. A failure to
        // remove an empty file is not worth an error.
        if let Some(path) = &self.placeholder {
            let _ = self.base.store.remove(path);
        }
        if let Some(burst) = &mut self.burst {
            burst.discard(&self.base);
        }
        // The folder of one that was given up goes too, if nothing is in it.
        if self.before.is_none() && self.base.hints.makes_folder() && self.base.is_root() {
            drop(self.draft.take());
            if let Some(folder) = self.base.path.parent() {
                let _ = self.base.store.remove_dir(folder);
            }
        }
    }
}

/// What ranks compare before they merge.
fn hash(schema: &Schema, fills: &[Option<FillMode>], removed: bool) -> u64 {
    let mut hasher = DefaultHasher::new();
    (schema.version.byte(), schema.to_bytes(), fills, removed).hash(&mut hasher);
    hasher.finish()
}

/// Makes sure that the file can be created, and takes its name if it must be new.
fn claim(store: &dyn Store, path: &Path, clobber: bool) -> Result<PathBuf> {
    if !clobber {
        // The name is taken at once, so that of several creators one succeeds.
        store.create(path, CreateMode::New)?;
        return Ok(store.resolve(path)?);
    }
    // A file that cannot be replaced is reported before any work is done, and so is one that somebody writes
    // who believes to be the only one.
    let landing = store.landing(path)?;
    match landing.occupant {
        Occupant::Directory => {
            let error = io::Error::new(io::ErrorKind::IsADirectory, "it is a directory");
            return Err(StoreError::new(path, "create", error).into());
        }
        Occupant::File => writer::require_unwritten(store, &landing.path)?,
        Occupant::Nothing | Occupant::Empty(_) => {}
    }
    Ok(landing.path)
}

/// The options' alignment with that of the hints, which are the user's last word.
pub(crate) fn aligned(align: Alignment, hints: &Hints) -> Alignment {
    Alignment {
        header: hints.var_align.or(hints.header_align).unwrap_or(align.header),
        records: hints.record_align.unwrap_or(align.records),
        ..align
    }
}
