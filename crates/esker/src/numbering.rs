//! The numbers that a rank gave its objects, where they differ from the file's.

use esker_format::{Schema, VarId};

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
        let schema = Draft::of(own.clone(), 0).merge(&Draft::of(merged.clone(), 0)).ok()?.schema;
        let vars = schema.vars.iter().filter_map(|v| merged.var(&v.name)).collect();
        Some(Numbering { schema, vars })
    }
}
