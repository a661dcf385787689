//! The numbers that a rank gave its objects, where they differ from the file's.

use esker_format::{DimId, Owner, Schema, VarId};

use crate::merge::Draft;

/// A rank's own view of a dataset whose ranks defined different things: what it defined
/// itself keeps its numbers, what others defined comes behind.
#[derive(Debug, Clone)]
pub(crate) struct Numbering {
    /// The schema in the rank's order.
    pub(crate) schema: Schema,
    /// The file's number of each variable, by the rank's.
    pub(crate) vars: Vec<VarId>,
}

impl Numbering {
    /// The numbering of a rank that defined `own`, in a file that has `merged`; `None` when its
    /// numbers are the file's.
    pub(crate) fn of(own: &Schema, merged: &Schema) -> Option<Numbering> {
        let vars_same = own.vars.iter().zip(&merged.vars).all(|(a, b)| a.name == b.name);
        let dims_same = own.dims.iter().zip(&merged.dims).all(|(a, b)| a.name == b.name);
        if vars_same && dims_same {
            return None;
        }
        // Names agree by now, so that this cannot fail.
        let schema =
            Draft::of(own.clone(), &[], 0).merge(&Draft::of(merged.clone(), &[], 0)).ok()?.schema;
        let vars = schema.vars.iter().filter_map(|v| merged.var(&v.name)).collect();
        Some(Numbering { schema, vars })
    }
}

/// While such a dataset is redefined: the same definitions in the file's order, so that the
/// ranks can be compared, also when names change and are no keys any more.
///
/// Both orders hold the same objects, and new ones come last in both: their numbers are equal.
#[derive(Debug)]
pub(crate) struct FileOrder {
    pub(crate) schema: Schema,
    /// The file's number of each object that it has, by the rank's.
    dims: Vec<DimId>,
    vars: Vec<VarId>,
}

impl FileOrder {
    /// For a rank that calls the file's objects by the numbers of `numbering`.
    pub(crate) fn new(file: &Schema, numbering: &Numbering) -> FileOrder {
        let dims = numbering.schema.dims.iter().filter_map(|d| file.dim(&d.name)).collect();
        FileOrder { schema: file.clone(), dims, vars: numbering.vars.clone() }
    }

    /// The file's number of a dimension.
    pub(crate) fn dim(&self, own: DimId) -> DimId {
        self.dims.get(own.0).copied().unwrap_or(own)
    }

    /// The file's number of a variable.
    pub(crate) fn var(&self, own: VarId) -> VarId {
        self.vars.get(own.0).copied().unwrap_or(own)
    }

    /// The owner of an attribute.
    pub(crate) fn owner(&self, own: Owner) -> Owner {
        match own {
            Owner::Global => Owner::Global,
            Owner::Var(var) => Owner::Var(self.var(var)),
        }
    }
}
