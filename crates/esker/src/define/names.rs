//! Attributes and names in define mode.

use esker_format::{Owner, SchemaError, Values, VarId};

use super::Define;
use crate::decomposed::follow_renames;
use crate::error::Result;

impl Define {
    /// Sets an attribute of the dataset ([`Owner::Global`]) or of a variable.
    pub fn put_attr(
        &mut self,
        owner: impl Into<Owner>,
        name: &str,
        values: impl Into<Values>,
    ) -> Result<()> {
        let (owner, values) = (owner.into(), values.into());
        self.require_free_attr(owner, name)?;
        // A changed value of what the file has is a removal to those who merge by name.
        let old = self.before.as_ref().and_then(|b| match owner {
            Owner::Global => b.schema().attr(owner, name),
            Owner::Var(var) => {
                let var = self.schema.variable(var)?;
                b.schema().vars.get(&var.name)?.attrs.get(name).map(|a| &a.values)
            }
        });
        self.removed |= old.is_some_and(|old| *old != values);
        let put = self.schema.put_attr(owner, name, values.clone());
        put.map_err(|e| self.base.schema_error(e))?;
        self.in_file_order(|file| {
            let owner = file.owner(owner);
            file.schema.put_attr(owner, name, values).map(drop)
        })
    }

    /// Removes an attribute and gives its values back.
    pub fn del_attr(&mut self, owner: impl Into<Owner>, name: &str) -> Result<Values> {
        let owner = owner.into();
        self.require_free_attr(owner, name)?;
        let deleted = self.schema.del_attr(owner, name);
        self.removed |= deleted.is_ok();
        let deleted = deleted.map_err(|e| self.base.schema_error(e))?;
        self.in_file_order(|file| {
            let owner = file.owner(owner);
            file.schema.del_attr(owner, name).map(drop)
        })?;
        Ok(deleted)
    }

    /// Removes an attribute of a variable that is not in the file yet, which no other rank need know of.
    pub(crate) fn drop_attr(&mut self, var: VarId, name: &str) -> Result<()> {
        let owner = Owner::Var(var);
        self.schema.del_attr(owner, name).map_err(|e| self.base.schema_error(e))?;
        self.in_file_order(|file| {
            let owner = file.owner(owner);
            file.schema.del_attr(owner, name).map(drop)
        })
    }

    /// Renames an attribute.
    pub fn rename_attr(&mut self, owner: impl Into<Owner>, old: &str, new: &str) -> Result<()> {
        let owner = owner.into();
        self.require_free_attr(owner, old)?;
        self.require_free_attr(owner, new)?;
        let renamed = self.schema.rename_attr(owner, old, new);
        self.renamed(renamed)?;
        self.in_file_order(|file| {
            let owner = file.owner(owner);
            file.schema.rename_attr(owner, old, new)
        })
    }

    /// Renames a dimension.
    pub fn rename_dim(&mut self, old: &str, new: &str) -> Result<()> {
        let before = self.schema.clone();
        let renamed = self.schema.rename_dim(old, new);
        self.renamed(renamed)?;
        follow_renames(&before, &mut self.schema);
        self.in_file_order(|file| {
            let before = file.schema.clone();
            file.schema.rename_dim(old, new)?;
            follow_renames(&before, &mut file.schema);
            Ok(())
        })
    }

    /// Renames a variable.
    pub fn rename_var(&mut self, old: &str, new: &str) -> Result<()> {
        let renamed = self.schema.rename_var(old, new);
        self.renamed(renamed)?;
        self.graphs_follow(old, new);
        self.in_file_order(|file| file.schema.rename_var(old, new))
    }

    fn renamed(&mut self, outcome: Result<(), SchemaError>) -> Result<()> {
        self.removed |= outcome.is_ok() && self.before.is_some();
        outcome.map_err(|e| self.base.schema_error(e))
    }
}
