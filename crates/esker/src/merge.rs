//! Definitions of many ranks become one: names are keys. Pure.

use esker_format::{
    Attribute, DimId, DimLen, Dimension, ExternalType, NamedList, Owner, Schema, SchemaError,
    Values, Variable,
};

use crate::options::FillMode;

/// What ranks do not agree on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum MergeError {
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
    /// A graph of another rank that makes no sense.
    #[error("{0}")]
    Graph(String),
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
    /// Each variable's own fill mode, where a rank has chosen one, and that rank.
    pub(crate) fills: Vec<Option<(FillMode, u64)>>,
    pub(crate) ranks: Ranks,
}

/// The lowest rank that defined each object, in the order of the schema's lists.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Ranks {
    /// The lowest rank of all.
    pub(crate) lowest: u64,
    pub(crate) dims: Vec<u64>,
    pub(crate) attrs: Vec<u64>,
    pub(crate) vars: Vec<u64>,
    /// For each variable those of its attributes.
    pub(crate) var_attrs: Vec<Vec<u64>>,
}

impl Draft {
    /// The draft of one rank.
    pub(crate) fn of(schema: Schema, fills: &[Option<FillMode>], rank: usize) -> Draft {
        let rank = rank as u64;
        let ranks = Ranks {
            lowest: rank,
            dims: vec![rank; schema.dims.len()],
            attrs: vec![rank; schema.attrs.len()],
            vars: vec![rank; schema.vars.len()],
            var_attrs: schema.vars.iter().map(|v| vec![rank; v.attrs.len()]).collect(),
        };
        let fill = |at: usize| fills.get(at).copied().flatten().map(|mode| (mode, rank));
        let fills = (0..schema.vars.len()).map(fill).collect();
        Draft { schema, fills, ranks }
    }

    /// Each variable's own fill mode, where it has one.
    pub(crate) fn fill_modes(&self) -> Vec<Option<FillMode>> {
        self.fills.iter().map(|fill| fill.map(|(mode, _)| mode)).collect()
    }

    /// This draft with the objects of `other` that it does not have behind its own.
    pub(crate) fn merge(mut self, other: &Draft) -> Result<Draft, MergeError> {
        let versions = (self.schema.version, other.schema.version);
        if versions.0 != versions.1 {
            let texts = (versions.0.to_string(), versions.1.to_string());
            let object = "the file version".to_string();
            return Err(conflict(object, self.ranks.lowest, other.ranks.lowest, texts));
        }
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
                    self.require_one_unlimited(dim, *rank)?;
                    let added = self.schema.add_dim(&dim.name, dim.len);
                    added.map_err(|source| MergeError::Schema { rank: *rank as usize, source })?;
                    self.ranks.dims.push(*rank);
                }
            }
        }
        let (own, theirs) = (&self.schema.attrs, &other.schema.attrs);
        let (attrs, ranks) = merge_attrs(own, &self.ranks.attrs, theirs, &other.ranks.attrs, None)?;
        (self.schema.attrs, self.ranks.attrs) = (attrs, ranks);
        for number in 0..other.schema.vars.len() {
            self.merge_var(other, number)?;
        }
        Ok(self)
    }

    /// A file has one unlimited dimension, so two of them are one object with two definitions.
    fn require_one_unlimited(&self, dim: &Dimension, rank: u64) -> Result<(), MergeError> {
        let first = self.schema.record_dim().filter(|_| dim.len == DimLen::Unlimited);
        let Some((first, first_rank)) =
            first.and_then(|d| Some((self.schema.dims.at(d.0)?, *self.ranks.dims.get(d.0)?)))
        else {
            return Ok(());
        };
        let object = "the unlimited dimension, of which a classic file has one".to_string();
        let texts = (format!("\"{}\"", first.name), format!("\"{}\"", dim.name));
        Err(conflict(object, first_rank, rank, texts))
    }

    /// Merges variable `number` of `draft`.
    fn merge_var(&mut self, draft: &Draft, number: usize) -> Result<(), MergeError> {
        let other = &draft.schema;
        let var = &other.vars.as_slice()[number];
        let rank = draft.ranks.vars[number];
        let (fill, attr_ranks) = (draft.fills[number], &draft.ranks.var_attrs[number]);
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
            self.ranks.var_attrs.push(attr_ranks.clone());
            self.fills.push(fill);
            return Ok(());
        };
        let mine = &self.schema.vars.as_slice()[at];
        let texts = (declaration(&self.schema, mine), declaration(other, var));
        let my_rank = self.ranks.vars[at];
        if texts.0 != texts.1 {
            let object = format!("variable \"{}\"", var.name);
            return Err(conflict(object, my_rank, rank, texts));
        }
        let my_ranks = &self.ranks.var_attrs[at];
        let owner = format!("variable \"{}\"", var.name);
        let (attrs, ranks) =
            merge_attrs(&mine.attrs, my_ranks, &var.attrs, attr_ranks, Some(&owner))?;
        self.fills[at] = require_equal_fills(self.fills[at], fill, &var.name)?;
        self.ranks.var_attrs[at] = ranks;
        if let Some(mine) = self.schema.vars.at_mut(at) {
            mine.attrs = attrs;
        }
        Ok(())
    }
}

pub(crate) fn merge_attrs(
    mine: &NamedList<Attribute>,
    my_ranks: &[u64],
    theirs: &NamedList<Attribute>,
    their_ranks: &[u64],
    owner: Option<&str>,
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
                    let object = match owner {
                        None => format!("global attribute \"{}\"", attr.name),
                        Some(owner) => format!("attribute \"{}\" of {owner}", attr.name),
                    };
                    let texts = (attr_value(&own.values), attr_value(&attr.values));
                    return Err(conflict(object, ranks[at], *rank, texts));
                }
            }
        }
    }
    Ok((merged, ranks))
}

pub(crate) fn conflict(
    object: String,
    first: u64,
    second: u64,
    texts: (String, String),
) -> MergeError {
    MergeError::Conflict {
        object,
        first_rank: first as usize,
        first: texts.0,
        second_rank: second as usize,
        second: texts.1,
    }
}

/// The fill mode of a variable, of which two ranks may have chosen one.
pub(crate) fn require_equal_fills(
    mine: Option<(FillMode, u64)>,
    theirs: Option<(FillMode, u64)>,
    var: &str,
) -> Result<Option<(FillMode, u64)>, MergeError> {
    match (mine, theirs) {
        (Some((first, first_rank)), Some((second, second_rank))) if first != second => {
            let object = format!("the fill mode of variable \"{var}\"");
            let texts = (format!("{first:?}"), format!("{second:?}"));
            Err(conflict(object, first_rank, second_rank, texts))
        }
        (Some(mine), Some(theirs)) => Ok(Some((mine.0, mine.1.min(theirs.1)))),
        (mine, theirs) => Ok(mine.or(theirs)),
    }
}

pub(crate) fn length(len: DimLen) -> String {
    match len {
        DimLen::Fixed(len) => format!("length {len}"),
        DimLen::Unlimited => "unlimited".to_string(),
    }
}

fn declaration(schema: &Schema, var: &Variable) -> String {
    let name = |d: &DimId| schema.dims.at(d.0).map_or("?", |d| &*d.name);
    declared(var.ty, var.dims.iter().map(name))
}

/// A variable's type and the names of its dimensions, for people.
pub(crate) fn declared<'n>(ty: ExternalType, dims: impl Iterator<Item = &'n str>) -> String {
    let dims: Vec<&str> = dims.collect();
    format!("{ty} ({})", dims.join(", "))
}

/// An attribute's values, for people.
pub(crate) fn attr_value(values: &Values) -> String {
    const SHOWN: usize = 40;
    let text = match values.text() {
        Some(text) => format!("{text:?}"),
        None => {
            let some = (0..values.len().min(4)).filter_map(|i| values.get(i));
            let list: Vec<String> = some.map(|v| v.to_string()).collect();
            let more = if values.len() > 4 { ", …" } else { "" };
            format!("{} {}{more}", values.ty(), list.join(", "))
        }
    };
    match text.char_indices().nth(SHOWN) {
        Some((cut, _)) => format!("{}…", &text[..cut]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use esker_format::Version;

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
        let merged = Draft::of(a, &[], 0).merge(&Draft::of(b, &[], 5)).unwrap();
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
        let error = Draft::of(a.clone(), &[], 1).merge(&Draft::of(b, &[], 6)).unwrap_err();
        assert_eq!(
            error.to_string(),
            "dimension \"x\": rank 1 defines it as length 3, rank 6 as length 4"
        );
        let b = schema(&[("x", 3)], &[("u", ExternalType::Float, &[0])]);
        let error = Draft::of(a.clone(), &[], 0).merge(&Draft::of(b, &[], 2)).unwrap_err();
        assert_eq!(
            error.to_string(),
            "variable \"u\": rank 0 defines it as int (x), rank 2 as float (x)"
        );
        let (mut b, mut c) = (a.clone(), a);
        b.put_attr(Owner::Global, "title", Values::from("one")).unwrap();
        c.put_attr(Owner::Global, "title", Values::from("two")).unwrap();
        let error = Draft::of(b, &[], 0).merge(&Draft::of(c, &[], 3)).unwrap_err();
        assert_eq!(
            error.to_string(),
            "global attribute \"title\": rank 0 defines it as \"one\", rank 3 as \"two\""
        );
    }
}
