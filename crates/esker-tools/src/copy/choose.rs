//! What is kept: variables, their dimensions, and the range of each.

use esker::{
    Dataset, DimId, DimLen, Dimension, Error, ExternalType, Schema, SchemaError, VarId, Variable,
};
use esker_format::graph::is_spare;
use esker_format::name::normalise;

use super::{CopyError, CopyOptions};
use crate::runs::{Along, Runs};

/// What goes into the output and where it comes from.
#[derive(Debug)]
pub(super) struct Plan {
    /// The output's schema.
    pub(super) schema: Schema,
    /// The output's variables in order, and where each comes from.
    pub(super) vars: Vec<Kept>,
    /// Records of the output.
    pub(super) records: u64,
    /// Which records of the input.
    pub(super) record_range: Along,
}

/// One variable that is kept.
#[derive(Debug)]
pub(super) struct Kept {
    /// Its number in the input.
    pub(super) from: VarId,
    /// The type it is read as.
    pub(super) ty: ExternalType,
    /// The bytes that are wanted, of one record if it has records in the input.
    pub(super) runs: Runs,
    /// Which indices of each dimension of the input.
    pub(super) along: Vec<Along>,
    /// Whether it has records in the input.
    pub(super) from_record: bool,
    /// How its fill value changes with its type.
    pub(super) refill: Option<super::convert::Refill>,
}

impl Kept {
    /// Elements in the output, of one record if it has records in the input.
    pub(super) fn elements(&self) -> u64 {
        self.runs.bytes() / self.ty.size()
    }
}

impl Plan {
    pub(super) fn new(source: &Dataset, options: &CopyOptions) -> Result<Plan, CopyError> {
        let from = source.schema();
        let keep = variables(source, options)?;
        let dims = dimensions(from, &keep, options);
        let ranges = ranges(source, options)?;
        let version = options.version.unwrap_or(from.version);
        let mut schema = Schema::new(version);
        schema.attrs = from.attrs.clone();
        let mut plan = Plan { schema, vars: Vec::new(), records: 0, record_range: Along::all(0) };
        let mut renumbered = vec![None; from.dims.len()];
        for (number, dim) in from.dims.iter().enumerate().filter(|(n, _)| dims[*n]) {
            let range = ranges[number];
            renumbered[number] = Some(DimId(plan.schema.dims.len()));
            plan.add_dim(source, dim, range, options)?;
        }
        for (number, var) in from.vars.iter().enumerate().filter(|(n, _)| keep[*n]) {
            plan.add_var(from, VarId(number), var, &renumbered, &ranges);
        }
        Ok(plan)
    }

    fn add_dim(
        &mut self,
        source: &Dataset,
        dim: &Dimension,
        range: Along,
        options: &CopyOptions,
    ) -> Result<(), CopyError> {
        let len = match (dim.len, options.fix_unlimited) {
            (DimLen::Unlimited, false) => {
                (self.records, self.record_range) = (range.count, range);
                DimLen::Unlimited
            }
            (DimLen::Unlimited, true) => {
                self.record_range = range;
                if range.count == 0 {
                    let path = source.path().to_path_buf();
                    return Err(CopyError::NoRecords { path, dim: dim.name.to_string() });
                }
                DimLen::Fixed(range.count)
            }
            (DimLen::Fixed(_), _) => DimLen::Fixed(range.count),
        };
        let version = self.schema.version;
        if let DimLen::Fixed(len) = len
            && len > version.max_count()
        {
            let (name, max) = (dim.name.clone(), version.max_count());
            let path = source.path().to_path_buf();
            let error = SchemaError::DimLength { name, len, version, max };
            return Err(Error::Schema { path, source: error }.into());
        }
        // The names are the input's, and unique there. They are taken as they are, even those
        // that could not be defined today.
        let _ = self.schema.dims.push(Dimension { name: dim.name.clone(), len });
        Ok(())
    }

    fn add_var(
        &mut self,
        from: &Schema,
        id: VarId,
        var: &Variable,
        renumbered: &[Option<DimId>],
        ranges: &[Along],
    ) {
        let from_record = from.is_record(var);
        let shape = from.shape(var, 0);
        let along: Vec<Along> = var.dims.iter().map(|d| ranges[d.0]).collect();
        let inner = usize::from(from_record);
        let runs = Runs::new(var.ty.size(), &shape[inner..], &along[inner..]);
        let dims = var.dims.iter().filter_map(|d| renumbered[d.0]).collect();
        let _ = self.schema.vars.push(Variable { dims, ..var.clone() });
        self.vars.push(Kept { from: id, ty: var.ty, runs, along, from_record, refill: None });
    }

    /// Variables whose type is another than before.
    pub(super) fn converted(&self, from: &Schema) -> Vec<(String, ExternalType, ExternalType)> {
        let pairs = self.vars.iter().zip(&self.schema.vars);
        pairs
            .filter_map(|(kept, var)| {
                let before = from.variable(kept.from)?.ty;
                (before != var.ty).then(|| (var.name.to_string(), before, var.ty))
            })
            .collect()
    }
}

/// Which variables are kept.
fn variables(source: &Dataset, options: &CopyOptions) -> Result<Vec<bool>, CopyError> {
    let schema = source.schema();
    let find = |name: &String| {
        schema.var(name).ok_or_else(|| {
            let hint = esker::nearest::hint(name, schema.vars.iter().map(|v| &*v.name));
            let path = source.path().to_path_buf();
            CopyError::NoSuchVariable { path, name: name.clone(), hint }
        })
    };
    // Room that a changed graph has left is nothing that anybody wants, unless it is named.
    let is_wanted = |var: &Variable| options.variables.is_empty() && !is_spare(var);
    let mut keep: Vec<bool> = schema.vars.iter().map(is_wanted).collect();
    for name in &options.variables {
        keep[find(name)?.0] = true;
    }
    let excluded: Vec<VarId> = options.exclude.iter().map(find).collect::<Result<_, _>>()?;
    excluded.iter().for_each(|id| keep[id.0] = false);
    // A coordinate variable may have further dimensions (text has), with coordinates of their
    // own; each round adds at least one variable.
    let coordinates: Vec<(DimId, VarId)> = coordinates(schema).collect();
    loop {
        let used = used_dims(schema, &keep);
        let mut added = false;
        for (dim, var) in &coordinates {
            if used[dim.0] && !keep[var.0] && !excluded.contains(var) {
                keep[var.0] = true;
                added = true;
            }
        }
        if !added {
            return Ok(keep);
        }
    }
}

/// Each dimension that has a variable of its own name that runs along it.
fn coordinates(schema: &Schema) -> impl Iterator<Item = (DimId, VarId)> {
    schema.dims.iter().enumerate().filter_map(|(number, dim)| {
        let var = schema.vars.position(&dim.name)?;
        let runs_along = schema.vars.at(var)?.dims.first() == Some(&DimId(number));
        runs_along.then_some((DimId(number), VarId(var)))
    })
}

fn used_dims(schema: &Schema, keep: &[bool]) -> Vec<bool> {
    let mut used = vec![false; schema.dims.len()];
    let kept = schema.vars.iter().zip(keep).filter(|(_, keep)| **keep);
    kept.flat_map(|(var, _)| &var.dims).for_each(|dim| used[dim.0] = true);
    used
}

/// Which dimensions are kept: those of the variables and, unless variables were chosen, those
/// that never had any.
fn dimensions(schema: &Schema, keep: &[bool], options: &CopyOptions) -> Vec<bool> {
    let used = used_dims(schema, keep);
    if !options.variables.is_empty() {
        return used;
    }
    let before = used_dims(schema, &vec![true; schema.vars.len()]);
    used.iter().zip(before).map(|(used, before)| *used || !before).collect()
}

/// The range of every dimension of the input.
fn ranges(source: &Dataset, options: &CopyOptions) -> Result<Vec<Along>, CopyError> {
    let schema = source.schema();
    let path = || source.path().to_path_buf();
    let len = |dim: &Dimension| match dim.len {
        DimLen::Fixed(len) => len,
        DimLen::Unlimited => source.numrecs(),
    };
    let mut ranges: Vec<Along> = schema.dims.iter().map(|d| Along::all(len(d))).collect();
    for (place, range) in options.ranges.iter().enumerate() {
        let name = &range.name;
        let Some(dim) = schema.dim(name) else {
            let hint = esker::nearest::hint(name, schema.dims.iter().map(|d| &*d.name));
            return Err(CopyError::NoSuchDimension { path: path(), name: name.clone(), hint });
        };
        let earlier = &options.ranges[..place];
        if earlier.iter().any(|other| normalise(&other.name) == normalise(name)) {
            return Err(CopyError::TwoRanges { name: name.clone() });
        }
        let dimension = &schema.dims.as_slice()[dim.0];
        let resolved = range.resolve(len(dimension)).and_then(|along| match dimension.len {
            DimLen::Fixed(_) if along.count == 0 => Err("is empty"),
            _ => Ok(along),
        });
        ranges[dim.0] = resolved.map_err(|why| CopyError::Range {
            path: path(),
            dim: dimension.name.to_string(),
            len: len(dimension),
            range: range.to_string(),
            why,
        })?;
    }
    Ok(ranges)
}
