//! Definitions of many ranks become one: names are keys. Pure.

use std::sync::Arc;

use esker_format::{Attribute, DimId, DimLen, NamedList, Owner, Schema, SchemaError, Variable};

/// What ranks do not agree on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MergeError {
    /// One object, two definitions.
    #[error("{object}: rank {first_rank} defines it as {first}, rank {second_rank} as {second}")]
    Conflict {
        /// The object.
        object: String,
        /// A rank that defined it.
        first_rank: usize,
        /// How.
        first: String,
        /// Another one.
        second_rank: usize,
        /// How.
        second: String,
    },
    /// The definitions cannot stand in one dataset.
    #[error("rank {rank}: {source}")]
    Schema {
        /// The rank that brought the last of them.
        rank: usize,
        /// Why.
        source: SchemaError,
    },
}

/// A schema with, for each object, the lowest rank that defined it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Draft {
    pub(crate) schema: Schema,
    pub(crate) ranks: Ranks,
}

/// The lowest rank that defined each object, in the order of the schema's lists.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Ranks {
    pub(crate) dims: Vec<u64>,
    pub(crate) attrs: Vec<u64>,
    pub(crate) vars: Vec<u64>,
}

impl Draft {
    /// The draft of one rank.
    pub(crate) fn of(schema: Schema, rank: usize) -> Draft {
        let rank = rank as u64;
        let ranks = Ranks {
            dims: vec![rank; schema.dims.len()],
            attrs: vec![rank; schema.attrs.len()],
            vars: vec![rank; schema.vars.len()],
        };
        Draft { schema, ranks }
    }

    /// This draft with the objects of `other` that it does not have behind its own.
    pub(crate) fn merge(mut self, other: &Draft) -> Result<Draft, MergeError> {
        for (dim, rank) in other.schema.dims.iter().zip(&other.ranks.dims) {
            match self.schema.dims.position(&dim.name) {
                Some(at) => {
                    let mine = &self.schema.dims.as_slice()[at];
                    if mine.len != dim.len {
                        let object = format!("dimension \"{}\"", dim.name);
                        let texts = (length(mine.len), length(dim.len));
                        return Err(conflict(object, self.ranks.dims[at], *rank, texts));
                    }
                }
                None => {
                    let added = self.schema.add_dim(&dim.name, dim.len);
                    added.map_err(|source| MergeError::Schema { rank: *rank as usize, source })?;
                    self.ranks.dims.push(*rank);
                }
            }
        }
        let (own, theirs) = (&self.schema.attrs, &other.schema.attrs);
        let (attrs, ranks) = merge_attrs(own, &self.ranks.attrs, theirs, &other.ranks.attrs, None)?;
        (self.schema.attrs, self.ranks.attrs) = (attrs, ranks);
        for (var, rank) in other.schema.vars.iter().zip(&other.ranks.vars) {
            self.merge_var(&other.schema, var, *rank)?;
        }
        Ok(self)
    }

    fn merge_var(&mut self, other: &Schema, var: &Variable, rank: u64) -> Result<(), MergeError> {
        let Some(at) = self.schema.vars.position(&var.name) else {
            // Every dimension of `other` is here by now, under its name.
            let names = var.dims.iter().filter_map(|d| other.dims.at(d.0));
            let dims: Vec<DimId> = names.filter_map(|d| self.schema.dim(&d.name)).collect();
            let failed = |source| MergeError::Schema { rank: rank as usize, source };
            let id = self.schema.add_var(&var.name, var.ty, &dims).map_err(failed)?;
            for attr in &var.attrs {
                let put = self.schema.put_attr(Owner::Var(id), &attr.name, attr.values.clone());
                put.map_err(failed)?;
            }
            self.ranks.vars.push(rank);
            return Ok(());
        };
        let mine = &self.schema.vars.as_slice()[at];
        let texts = (declaration(&self.schema, mine), declaration(other, var));
        let my_rank = self.ranks.vars[at];
        if texts.0 != texts.1 {
            let object = format!("variable \"{}\"", var.name);
            return Err(conflict(object, my_rank, rank, texts));
        }
        let my_ranks = vec![my_rank; mine.attrs.len()];
        let their_ranks = vec![rank; var.attrs.len()];
        let (attrs, _) =
            merge_attrs(&mine.attrs, &my_ranks, &var.attrs, &their_ranks, Some(&var.name))?;
        if let Some(mine) = self.schema.vars.at_mut(at) {
            mine.attrs = attrs;
        }
        Ok(())
    }
}

fn merge_attrs(
    mine: &NamedList<Attribute>,
    my_ranks: &[u64],
    theirs: &NamedList<Attribute>,
    their_ranks: &[u64],
    var: Option<&Arc<str>>,
) -> Result<(NamedList<Attribute>, Vec<u64>), MergeError> {
    let mut merged = mine.clone();
    let mut ranks = my_ranks.to_vec();
    for (attr, rank) in theirs.iter().zip(their_ranks) {
        match merged.position(&attr.name) {
            None => {
                let _ = merged.push(attr.clone());
                ranks.push(*rank);
            }
            Some(at) => {
                let own = &merged.as_slice()[at];
                // Bits, so that NaN is equal to itself.
                let same = own.values.ty() == attr.values.ty()
                    && own.values.native_bytes() == attr.values.native_bytes();
                if !same {
                    let object = match var {
                        None => format!("global attribute \"{}\"", attr.name),
                        Some(var) => format!("attribute \"{}\" of variable \"{var}\"", attr.name),
                    };
                    let texts = (value(own), value(attr));
                    return Err(conflict(object, ranks[at], *rank, texts));
                }
            }
        }
    }
    Ok((merged, ranks))
}

fn conflict(object: String, first: u64, second: u64, texts: (String, String)) -> MergeError {
    MergeError::Conflict {
        object,
        first_rank: first as usize,
        first: texts.0,
        second_rank: second as usize,
        second: texts.1,
    }
}

fn length(len: DimLen) -> String {
    match len {
        DimLen::Fixed(len) => format!("length {len}"),
        DimLen::Unlimited => "unlimited".to_string(),
    }
}

fn declaration(schema: &Schema, var: &Variable) -> String {
    let name = |d: &DimId| schema.dims.at(d.0).map_or("?", |d| &*d.name);
    let dims: Vec<&str> = var.dims.iter().map(name).collect();
    format!("{} ({})", var.ty, dims.join(", "))
}

fn value(attr: &Attribute) -> String {
    const SHOWN: usize = 40;
    let text = match attr.values.text() {
        Some(text) => format!("{text:?}"),
        None => {
            let some = (0..attr.values.len().min(4)).filter_map(|i| attr.values.get(i));
            let list: Vec<String> = some.map(|v| v.to_string()).collect();
            let more = if attr.values.len() > 4 { ", …" } else { "" };
            format!("{} {}{more}", attr.values.ty(), list.join(", "))
        }
    };
    match text.char_indices().nth(SHOWN) {
        Some((cut, _)) => format!("{}…", &text[..cut]),
        None => text,
    }
}

/// The schema with the objects of `existing` first, in its order: a file's objects keep their
/// numbers, and what is new comes behind them.
pub(crate) fn existing_first(existing: &Schema, merged: Schema) -> Result<Schema, MergeError> {
    let same_vars = existing.vars.iter().zip(&merged.vars).all(|(a, b)| a.name == b.name);
    let same_dims = existing.dims.iter().zip(&merged.dims).all(|(a, b)| a.name == b.name);
    if same_vars && same_dims {
        return Ok(merged);
    }
    let refused = |source| MergeError::Schema { rank: 0, source };
    let mut first = Schema::new(merged.version);
    first.attrs = merged.attrs.clone();
    for dim in existing.dims.iter().filter_map(|d| merged.dims.get(&d.name)) {
        first.add_dim(&dim.name, dim.len).map_err(refused)?;
    }
    let ordered = Draft::of(first, 0);
    // Their dimensions may be new ones, so all of these come before the variables.
    let mut dims_only = Schema::new(merged.version);
    dims_only.dims = merged.dims.clone();
    let mut ordered = ordered.merge(&Draft::of(dims_only, 0))?;
    for var in existing.vars.iter().filter_map(|v| merged.vars.get(&v.name)) {
        ordered.merge_var(&merged, var, 0)?;
    }
    ordered.merge(&Draft::of(merged, 0)).map(|draft| draft.schema)
}

#[cfg(test)]
mod tests {
    use super::*;
    use esker_format::{ExternalType, Values, Version};

    fn schema(dims: &[(&str, u64)], vars: &[(&str, ExternalType, &[usize])]) -> Schema {
        let mut schema = Schema::new(Version::Cdf5);
        for (name, len) in dims {
            let len = if *len == 0 { DimLen::Unlimited } else { DimLen::Fixed(*len) };
            schema.add_dim(name, len).unwrap();
        }
        for (name, ty, dims) in vars {
            let dims: Vec<DimId> = dims.iter().map(|d| DimId(*d)).collect();
            schema.add_var(name, *ty, &dims).unwrap();
        }
        schema
    }

    #[test]
    fn equal_definitions_are_one_and_new_ones_follow() {
        let a = schema(&[("x", 3), ("t", 0)], &[("u", ExternalType::Int, &[1, 0])]);
        let b = schema(
            &[("y", 2), ("x", 3)],
            &[("v", ExternalType::Float, &[0, 1]), ("w", ExternalType::Byte, &[])],
        );
        let merged = Draft::of(a, 0).merge(&Draft::of(b, 5)).unwrap();
        let names: Vec<_> = merged.schema.dims.iter().map(|d| d.name.to_string()).collect();
        assert_eq!(names, ["x", "t", "y"]);
        assert_eq!(merged.ranks.dims, [0, 0, 5]);
        let v = merged.schema.vars.get("v").unwrap();
        assert_eq!(v.dims, [DimId(2), DimId(0)]);
    }

    #[test]
    fn conflicts_name_the_object_the_ranks_and_both_definitions() {
        let a = schema(&[("x", 3)], &[("u", ExternalType::Int, &[0])]);
        let b = schema(&[("x", 4)], &[]);
        let error = Draft::of(a.clone(), 1).merge(&Draft::of(b, 6)).unwrap_err();
        assert_eq!(
            error.to_string(),
            "dimension \"x\": rank 1 defines it as length 3, rank 6 as length 4"
        );
        let b = schema(&[("x", 3)], &[("u", ExternalType::Float, &[0])]);
        let error = Draft::of(a.clone(), 0).merge(&Draft::of(b, 2)).unwrap_err();
        assert_eq!(
            error.to_string(),
            "variable \"u\": rank 0 defines it as int (x), rank 2 as float (x)"
        );
        let (mut b, mut c) = (a.clone(), a);
        b.put_attr(Owner::Global, "title", Values::from("one")).unwrap();
        c.put_attr(Owner::Global, "title", Values::from("two")).unwrap();
        let error = Draft::of(b, 0).merge(&Draft::of(c, 3)).unwrap_err();
        assert_eq!(
            error.to_string(),
            "global attribute \"title\": rank 0 defines it as \"one\", rank 3 as \"two\""
        );
    }

    #[test]
    fn what_exists_keeps_its_number() {
        let existing = schema(&[("x", 3), ("y", 4)], &[("a", ExternalType::Int, &[0])]);
        let merged = schema(
            &[("z", 9), ("y", 4), ("x", 3)],
            &[("b", ExternalType::Int, &[0]), ("a", ExternalType::Int, &[2])],
        );
        let ordered = existing_first(&existing, merged).unwrap();
        let names: Vec<_> = ordered.vars.iter().map(|v| v.name.to_string()).collect();
        assert_eq!(names, ["a", "b"]);
        let dims: Vec<_> = ordered.dims.iter().map(|d| d.name.to_string()).collect();
        assert_eq!(dims, ["x", "y", "z"]);
        assert_eq!(ordered.vars.get("b").unwrap().dims, [DimId(2)]);
    }
}
