//! Define mode: dimensions, attributes and variables come into being.

use std::ffi::OsString;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use esker_comm::{Communicator, CommunicatorExt, Message};
use esker_format::{
    Alignment, DataLayout, DimId, DimLen, ExternalType, Header, NumRecs, Owner, Schema,
    SchemaError, Values, VarId,
};
use esker_store::{Access, CreateMode, File, Store};

use crate::base::{Base, agree, broadcast_parts};
use crate::commit::{self, Committed};
use crate::dataset::Dataset;
use crate::error::{Error, Result};
use crate::hints::Hints;
use crate::merge::{MergeError, existing_first};
use crate::numbering::Numbering;
use crate::options::{CreateOptions, FillMode};
use crate::tree;

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
    base: Base,
    schema: Schema,
    /// Each variable's own fill mode, where it has one.
    fills: Vec<Option<FillMode>>,
    before: Option<Before>,
    /// Files that hold the place of a new dataset until it is committed.
    placeholders: Vec<PathBuf>,
    /// Whether something was renamed or deleted, which cannot be merged.
    removed: bool,
    epoch: u64,
}

/// What a redefinition starts from.
#[derive(Debug)]
pub(crate) struct Before {
    pub(crate) file: Arc<dyn File>,
    pub(crate) header: Header,
    pub(crate) records: u64,
    /// Whether the file's name is not safe from power loss yet.
    pub(crate) renamed: bool,
}

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

impl Define {
    pub(crate) fn create(path: &Path, options: CreateOptions) -> Result<Define> {
        let comm = options.comm.duplicate()?;
        let claimed = match comm.rank() {
            0 => claim(&*options.store, path, options.clobber),
            _ => Ok(path.to_path_buf()),
        };
        let path = agree(&*comm, claimed)?;
        let hints = options.hints.with_environment();
        let align = aligned(options.align, &hints);
        let (path, hints, align) = same_everywhere(&*comm, path, hints, align)?;
        let (store, fill) = (options.store, options.fill);
        let base = Base { store, comm, hints, path, writable: true, align, fill };
        let mut placeholders = Vec::new();
        if base.is_root() {
            placeholders.push(base.new_path());
            if !options.clobber {
                placeholders.push(base.path.clone());
            }
        }
        let define = Define {
            base,
            schema: Schema::new(options.version),
            fills: Vec::new(),
            before: None,
            placeholders,
            removed: false,
            epoch: 0,
        };
        // A directory that takes no files is reported before any work is done.
        let base = &define.base;
        base.by_root(|| Ok(base.store.create(&base.new_path(), CreateMode::Truncate)?))?;
        Ok(define)
    }

    pub(crate) fn redefine(
        base: Base,
        before: Before,
        numbering: Option<Numbering>,
        fills: Vec<Option<FillMode>>,
        epoch: u64,
    ) -> Define {
        // In this rank's order, so that its numbers stay what they are.
        let (schema, fills) = match numbering {
            None => (before.header.schema.clone(), fills),
            Some(numbering) => {
                let own = numbering.vars.iter().map(|v| fills.get(v.0).copied().flatten());
                (numbering.schema, own.collect())
            }
        };
        let (before, placeholders) = (Some(before), Vec::new());
        Define { base, schema, fills, before, placeholders, removed: false, epoch }
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
        self.schema.add_dim(name, len).map_err(|e| self.base.schema_error(e))
    }

    /// Defines a variable over dimensions, slowest first.
    pub fn add_var(&mut self, name: &str, ty: ExternalType, dims: &[DimId]) -> Result<VarId> {
        let var = self.schema.add_var(name, ty, dims).map_err(|e| self.base.schema_error(e))?;
        self.fills.push(None);
        Ok(var)
    }

    /// Sets an attribute of the dataset ([`Owner::Global`]) or of a variable.
    pub fn put_attr(
        &mut self,
        owner: impl Into<Owner>,
        name: &str,
        values: impl Into<Values>,
    ) -> Result<()> {
        let (owner, values) = (owner.into(), values.into());
        // A changed value of what the file has is a removal to those who merge by name.
        let old = self.before.as_ref().and_then(|b| match owner {
            Owner::Global => b.header.schema.attr(owner, name),
            Owner::Var(var) => {
                let var = self.schema.variable(var)?;
                b.header.schema.vars.get(&var.name)?.attrs.get(name).map(|a| &a.values)
            }
        });
        self.removed |= old.is_some_and(|old| *old != values);
        let put = self.schema.put_attr(owner, name, values);
        put.map_err(|e| self.base.schema_error(e))
    }

    /// Removes an attribute and gives its values back.
    pub fn del_attr(&mut self, owner: impl Into<Owner>, name: &str) -> Result<Values> {
        let deleted = self.schema.del_attr(owner.into(), name);
        self.removed |= deleted.is_ok();
        deleted.map_err(|e| self.base.schema_error(e))
    }

    /// Renames an attribute.
    pub fn rename_attr(&mut self, owner: impl Into<Owner>, old: &str, new: &str) -> Result<()> {
        let renamed = self.schema.rename_attr(owner.into(), old, new);
        self.renamed(renamed)
    }

    /// Renames a dimension.
    pub fn rename_dim(&mut self, old: &str, new: &str) -> Result<()> {
        let renamed = self.schema.rename_dim(old, new);
        self.renamed(renamed)
    }

    /// Renames a variable.
    pub fn rename_var(&mut self, old: &str, new: &str) -> Result<()> {
        let renamed = self.schema.rename_var(old, new);
        self.renamed(renamed)
    }

    fn renamed(&mut self, outcome: Result<(), SchemaError>) -> Result<()> {
        self.removed |= outcome.is_ok() && self.before.is_some();
        outcome.map_err(|e| self.base.schema_error(e))
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

    /// Ends define mode: merges the definitions of all ranks, places the variables, moves data
    /// that is in the way, writes fill values, and commits the header. Collective.
    ///
    /// When the process dies in here the file has the old header or the new one, with the
    /// data that belong to it.
    pub fn enddef(mut self) -> Result<Dataset, EnddefError> {
        match self.commit() {
            Ok((mut committed, header, fills)) => {
                self.placeholders.clear();
                committed.renamed |= self.before.as_ref().is_some_and(|b| b.renamed);
                let records = self.before.as_ref().map_or(0, |b| b.records);
                let numbering = Numbering::of(&self.schema, &header.schema);
                let base = self.base.clone();
                let parts = (committed, header, records);
                Ok(Dataset::new(base, parts, fills, numbering, self.epoch + 1))
            }
            Err(error) => Err(EnddefError { define: Box::new(self), error: Box::new(error) }),
        }
    }

    fn commit(&self) -> Result<(Committed, Header, Vec<Option<FillMode>>)> {
        let (schema, own_fills) = self.merge()?;
        let mode = |own: &Option<FillMode>| own.unwrap_or(self.base.fill) == FillMode::Fill;
        let fills: Vec<bool> = own_fills.iter().map(mode).collect();
        let align = &self.base.align;
        let (layout, records) = match &self.before {
            None => (DataLayout::place(&schema, align), 0),
            Some(b) => (DataLayout::extend(&schema, &b.header, b.records, align), b.records),
        };
        let layout = layout.map_err(|e| self.base.schema_error(e))?;
        let header = Header { schema, numrecs: NumRecs::Count(records), layout };
        let committed = match &self.before {
            None => commit::create(&self.base, &header, &fills)?,
            Some(before) => commit::update(&self.base, before, &header, &fills)?,
        };
        Ok((committed, header, own_fills))
    }

    /// The schema that all ranks have together, in the file's order. Collective.
    fn merge(&self) -> Result<(Schema, Vec<Option<FillMode>>)> {
        let comm = &*self.base.comm;
        let ordered = |schema: Schema| match &self.before {
            None => Ok(schema),
            // After renames names are no keys. But then all ranks have the same schema, which
            // began as the file's.
            Some(_) if self.removed => Ok(schema),
            Some(before) => {
                existing_first(&before.header.schema, schema).map_err(|e| self.conflict(e))
            }
        };
        let fills = |schema: &Schema| {
            let own = |name: &str| {
                let at = self.schema.vars.position(name)?;
                self.fills.get(at).copied().flatten()
            };
            schema.vars.iter().map(|v| own(&v.name)).collect::<Vec<_>>()
        };
        let alike = comm.size() == 1 || comm.all_equal(self.hash())?;
        if alike {
            let schema = ordered(self.schema.clone())?;
            let fills = fills(&schema);
            return Ok((schema, fills));
        }
        if comm.any(self.removed)? {
            let why = "ranks may define different things, but rename, delete and change alike";
            return Err(Error::NotAlike { path: self.base.path.clone(), why });
        }
        let (schema, fills) = tree::merge(comm, &self.schema, &self.fills)
            .map_err(|e| e.into_error(&self.base.path))?;
        let ordered = ordered(schema.clone())?;
        let fill_of = |name: &str| schema.vars.position(name).and_then(|at| fills[at]);
        let fills = ordered.vars.iter().map(|v| fill_of(&v.name)).collect();
        Ok((ordered, fills))
    }

    fn conflict(&self, source: MergeError) -> Error {
        Error::Conflict { path: self.base.path.clone(), source }
    }

    fn hash(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.schema.to_bytes().hash(&mut hasher);
        self.fills.iter().map(|f| f.map(|f| f == FillMode::Fill)).for_each(|f| f.hash(&mut hasher));
        self.removed.hash(&mut hasher);
        hasher.finish()
    }

    /// Leaves define mode without a change; a dataset that was being created is gone.
    pub fn abort(self) {}
}

impl Drop for Define {
    fn drop(&mut self) {
        // Nothing of a definition that was not committed stays. A failure to remove an empty
        // file beside the dataset is not worth an error: the next creation reuses it.
        for path in &self.placeholders {
            let _ = self.base.store.remove(path);
        }
    }
}

/// Makes sure that the file can be created, and takes its name if it must be new.
fn claim(store: &dyn Store, path: &Path, clobber: bool) -> Result<PathBuf> {
    if !clobber {
        // The name is taken at once, so that of several creators one succeeds.
        store.create(path, CreateMode::New)?;
    } else if store.exists(path)? {
        // A file that cannot be written is reported before any work is done.
        store.open(path, Access::ReadWrite)?;
    } else {
        return Ok(path.to_path_buf());
    }
    Ok(store.resolve(path)?)
}

/// The options' alignment with that of the hints, which are the user's last word.
pub(crate) fn aligned(align: Alignment, hints: &Hints) -> Alignment {
    Alignment {
        header: hints.header_align.unwrap_or(align.header),
        variable: hints.var_align.unwrap_or(align.variable),
        records: hints.record_align.unwrap_or(align.records),
        ..align
    }
}

/// Rank 0's path, hints and alignment for everyone: windows and places are computed on every
/// rank, and must come out the same.
pub(crate) fn same_everywhere(
    comm: &dyn Communicator,
    path: PathBuf,
    hints: Hints,
    align: Alignment,
) -> Result<(PathBuf, Hints, Alignment)> {
    if comm.size() == 1 {
        return Ok((path, hints, align));
    }
    let numbers =
        [align.header, align.variable, align.records, align.header_room, align.record_room];
    let numbers = Message::from_u64s(&numbers);
    let pairs = hints.given();
    let parts = [path.as_os_str().as_bytes(), pairs.as_bytes(), &numbers[..]];
    let parts = broadcast_parts(comm, &parts)?;
    let [path, pairs, numbers] = <[Vec<u8>; 3]>::try_from(parts).map_err(|_| Error::Garbled)?;
    let mut same = Hints::default();
    same.set_pnetcdf(&String::from_utf8_lossy(&pairs));
    let hints = if comm.rank() == 0 { hints } else { same };
    let numbers = Message::from(numbers).to_u64s();
    let [header, variable, records, header_room, record_room] =
        <[u64; 5]>::try_from(numbers).map_err(|_| Error::Garbled)?;
    let align = Alignment { header, variable, records, header_room, record_room };
    Ok((PathBuf::from(OsString::from_vec(path)), hints, align))
}
