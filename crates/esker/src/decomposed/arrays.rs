//! A dataset as programs see it that know nothing of decomposed variables: over the dimensions of the
//! arrays that they stand for.

use esker_format::chunked::{FILTERS, SHAPE as SHAPE_OF_CHUNKS};
use esker_format::{DimId, DimLen, Schema, Values, Variable};

use super::maps::named;
use super::{ATTRIBUTE, BLOCKS_OF, DIMENSIONS, SHAPE, part};
use crate::dataset::Dataset;
use crate::define::Define;
use crate::error::{DecompositionError, Error, Result};

/// The dimensions of a map, by the schema's own numbers; why not, if it is not known which they are.
fn dims_of(schema: &Schema, map: &str) -> Result<Vec<DimId>, String> {
    let about = schema.vars.get(&part(map, BLOCKS_OF));
    let attr = |name: &str| about.and_then(|v| v.attrs.get(name)).map(|a| &a.values);
    let names = attr(DIMENSIONS).and_then(Values::text).unwrap_or_default();
    let shape = attr(SHAPE).and_then(|v| v.convert_to::<i64>().ok()).unwrap_or_default();
    let names: Vec<&str> = names.trim_end_matches('\0').split('/').collect();
    if names.len() != shape.len() {
        return Err(format!("it has {} dimensions and {} names of them", shape.len(), names.len()));
    }
    let dim = |(name, len): (&&str, &i64)| {
        let dim = schema.dim(name).ok_or_else(|| format!("there is no dimension {name:?}"))?;
        match schema.dims.at(dim.0).map(|d| d.len) {
            Some(DimLen::Fixed(found)) if i64::try_from(found) == Ok(*len) => Ok(dim),
            _ => Err(format!("its dimension {name:?} does not have the length {len}")),
        }
    };
    names.iter().zip(&shape).map(dim).collect()
}

/// Whether a variable's attributes say nothing of how it is stored. Where all say nothing, [`Dataset::plain_schema`] is `None`.
pub fn is_unmarked(variable: &Variable) -> bool {
    [SHAPE_OF_CHUNKS, FILTERS, ATTRIBUTE].iter().all(|name| variable.attrs.get(name).is_none())
}

/// The schema with the dimensions of arrays, and without the attributes that say how values are stored; `None` if
/// that is no other. An error names the variable, and why it cannot be shown.
fn plain(schema: &Schema) -> Result<Option<Schema>, (String, String)> {
    let mut shown: Option<Schema> = None;
    for (number, variable) in schema.vars.iter().enumerate() {
        if is_unmarked(variable) {
            continue;
        }
        let own: Vec<usize> =
            [SHAPE_OF_CHUNKS, FILTERS].iter().filter_map(|n| variable.attrs.position(n)).collect();
        let map = named(schema, variable);
        if map.is_none() && own.is_empty() {
            continue;
        }
        let mut dims = variable.dims.clone();
        if let Some(map) = map {
            let failed = |why| (format!("variable \"{}\" (map {map})", variable.name), why);
            dims.pop();
            dims.extend(dims_of(schema, &map).map_err(failed)?);
        }
        let whole = shown.get_or_insert_with(|| schema.clone());
        if let Some(place) = whole.vars.at_mut(number) {
            place.dims = dims;
            // The last first, so that the numbers of the others hold.
            let mut own = own;
            own.sort_unstable();
            own.iter().rev().for_each(|position| drop(place.attrs.remove(*position)));
        }
    }
    Ok(shown)
}

impl Dataset {
    /// The schema as programs see it that know nothing of maps, chunks and filters: decomposed variables have the
    /// dimensions of the arrays that they stand for, as [`Dataset::shape`] counts them, and attributes that
    /// say how values are stored are left out. `None` where [`Dataset::schema`] is just that.
    pub fn plain_schema(&self) -> Result<Option<Schema>> {
        if self.ground.base.raw || self.ground.base.blobs {
            return Ok(None);
        }
        plain(self.schema()).map_err(|(what, why)| cannot(self.path(), what, why))
    }
}

impl Define {
    /// As [`Dataset::plain_schema`], of what is defined so far.
    pub fn plain_schema(&self) -> Result<Option<Schema>> {
        if self.base.raw || self.base.blobs {
            return Ok(None);
        }
        plain(self.schema()).map_err(|(what, why)| cannot(self.path(), what, why))
    }
}

fn cannot(path: &std::path::Path, what: String, why: String) -> Error {
    let source = DecompositionError::Damaged(why);
    Error::Decomposition { path: path.to_path_buf(), what, source }
}

/// Maps name their dimensions: where one got another name, `schema`'s maps say so too.
pub(crate) fn follow_renames(before: &Schema, schema: &mut Schema) {
    let pairs = before.dims.iter().zip(&schema.dims);
    let renamed: Vec<(String, String)> = pairs
        .filter(|(old, new)| old.name != new.name)
        .map(|(old, new)| (old.name.to_string(), new.name.to_string()))
        .collect();
    if renamed.is_empty() {
        return;
    }
    let changed = |variable: &Variable| {
        let map = variable.name.strip_suffix(BLOCKS_OF)?.strip_suffix('.')?;
        schema.dims.get(&part(map, super::STORED))?;
        let names = variable.attrs.get(DIMENSIONS)?.values.text()?;
        let names = names.trim_end_matches('\0').to_string();
        let new: Vec<&str> = names
            .split('/')
            .map(|name| renamed.iter().find(|(old, _)| old == name).map_or(name, |(_, new)| new))
            .collect();
        let new = new.join("/");
        (new != names).then_some(new)
    };
    let vars = schema.vars.iter().enumerate();
    let changes: Vec<(usize, String)> =
        vars.filter_map(|(number, variable)| Some((number, changed(variable)?))).collect();
    for (number, names) in changes {
        let owner = esker_format::Owner::Var(esker_format::VarId(number));
        let _ = schema.put_attr(owner, DIMENSIONS, Values::from(names.as_str()));
    }
}
