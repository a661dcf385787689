//! Define mode: dimensions, attributes and variables come into being.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use esker_format::{
    DataLayout, DimId, DimLen, ExternalType, Header, NumRecs, Owner, Schema, SchemaError, Values,
    VarId,
};
use esker_store::{Access, CreateMode, File};

use crate::base::Base;
use crate::commit::{self, Committed};
use crate::dataset::Dataset;
use crate::error::{Error, Result};
use crate::options::{CreateOptions, FillMode};

/// A dataset in define mode. [`Define::enddef`] makes it a [`Dataset`] that holds data.
///
/// Nothing is written before: a new file appears, and a changed header replaces the old one,
/// in one step at `enddef`. Dropping a `Define` leaves everything as it was.
#[derive(Debug)]
pub struct Define {
    base: Base,
    schema: Schema,
    /// Each variable's own fill mode, where it has one.
    fills: Vec<Option<FillMode>>,
    before: Option<Before>,
    /// Files that hold the place of a new dataset until it is committed.
    placeholders: Vec<PathBuf>,
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
        let store = options.store;
        let mut takes_name = false;
        if store.exists(path)? {
            if !options.clobber {
                // The store's own words for it, which are the system's.
                store.create(path, CreateMode::New)?;
            }
            // Only now: a file that cannot be written is reported before any work is done.
            store.open(path, Access::ReadWrite)?;
        } else if !options.clobber {
            // The name is taken at once, so that of several creators one succeeds.
            store.create(path, CreateMode::New)?;
            takes_name = true;
        }
        let path = if store.exists(path)? { store.resolve(path)? } else { path.to_path_buf() };
        let (align, fill) = (options.align, options.fill);
        let base = Base { store, path, writable: true, align, fill };
        let schema = Schema::new(options.version);
        let mut placeholders = vec![base.new_path()];
        if takes_name {
            placeholders.push(base.path.clone());
        }
        let define = Define { base, schema, fills: Vec::new(), before: None, placeholders };
        // Likewise a directory that takes no files.
        define.base.store.create(&define.base.new_path(), CreateMode::Truncate)?;
        Ok(define)
    }

    pub(crate) fn redefine(base: Base, before: Before, fills: Vec<Option<FillMode>>) -> Define {
        let schema = before.header.schema.clone();
        Define { base, schema, fills, before: Some(before), placeholders: Vec::new() }
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.base.path
    }

    /// What is defined so far.
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
        let put = self.schema.put_attr(owner.into(), name, values.into());
        put.map_err(|e| self.base.schema_error(e))
    }

    /// Removes an attribute and gives its values back.
    pub fn del_attr(&mut self, owner: impl Into<Owner>, name: &str) -> Result<Values> {
        self.schema.del_attr(owner.into(), name).map_err(|e| self.base.schema_error(e))
    }

    /// Renames an attribute.
    pub fn rename_attr(&mut self, owner: impl Into<Owner>, old: &str, new: &str) -> Result<()> {
        self.schema.rename_attr(owner.into(), old, new).map_err(|e| self.base.schema_error(e))
    }

    /// Renames a dimension.
    pub fn rename_dim(&mut self, old: &str, new: &str) -> Result<()> {
        self.schema.rename_dim(old, new).map_err(|e| self.base.schema_error(e))
    }

    /// Renames a variable.
    pub fn rename_var(&mut self, old: &str, new: &str) -> Result<()> {
        self.schema.rename_var(old, new).map_err(|e| self.base.schema_error(e))
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

    /// Ends define mode: places the variables, moves data that is in the way, writes fill
    /// values, and commits the header.
    ///
    /// When the process dies in here the file has the old header or the new one, with the
    /// data that belong to it.
    pub fn enddef(mut self) -> Result<Dataset, EnddefError> {
        match self.commit() {
            Ok((mut committed, header)) => {
                self.placeholders.clear();
                let records = self.before.as_ref().map_or(0, |b| b.records);
                committed.renamed |= self.before.as_ref().is_some_and(|b| b.renamed);
                Ok(Dataset::new(self.base.clone(), committed, header, records, self.fills.clone()))
            }
            Err(error) => Err(EnddefError { define: Box::new(self), error: Box::new(error) }),
        }
    }

    fn commit(&self) -> Result<(Committed, Header)> {
        let fills: Vec<bool> =
            self.fills.iter().map(|own| own.unwrap_or(self.base.fill) == FillMode::Fill).collect();
        match &self.before {
            None => {
                let layout = DataLayout::place(&self.schema, &self.base.align)
                    .map_err(|e| self.base.schema_error(e))?;
                let schema = self.schema.clone();
                let header = Header { schema, numrecs: NumRecs::Count(0), layout };
                Ok((commit::create(&self.base, &header, &fills)?, header))
            }
            Some(before) => {
                let (schema, align) = (&self.schema, &self.base.align);
                let layout = DataLayout::extend(schema, &before.header, before.records, align)
                    .map_err(|e| self.base.schema_error(e))?;
                let numrecs = NumRecs::Count(before.records);
                let header = Header { schema: self.schema.clone(), numrecs, layout };
                Ok((commit::update(&self.base, before, &header, &fills)?, header))
            }
        }
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
