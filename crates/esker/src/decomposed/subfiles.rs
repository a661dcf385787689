//! Sub-files: the blobs of groups of ranks in files of their own, so that fewer ranks meet in a file.
//!
//! `run.nc` keeps the maps and all other variables. A decomposed variable is there as a scalar whose
//! attribute says what it stands for; its values are in `run.0.nc`, `run.1.nc`, …, each an ordinary
//! classic file with what one group of neighbouring ranks has. A dataset has the variables as if they
//! were whole: this turns the one schema into the other, and `spread` is the file between them.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use esker_comm::CommunicatorExt;
use esker_format::{
    Alignment, DataLayout, DimId, DimLen, Header, NumRecs, Owner, Schema, SchemaError, Values,
    VarId, Variable, inside,
};

use super::maps::named;
use super::naming::marks;
use super::{BLOCKS_OF, STORED, part};
use crate::base::{Base, broadcast_parts};
use crate::error::{DecompositionError, Error, Result};

// The attribute of a scalar that stands for a variable in sub-files has the names of its dimensions,
// with `/` between.
use esker_format::sealed::decomposed::STANDS_FOR;

/// Global attributes of the dataset: a name that its sub-files have too, and the first rank of each.
pub(super) const IDENTITY: &str = "subfiles_identity";
const FIRST_RANKS: &str = "subfiles_first_rank";
/// The attribute of a map: its first element in each sub-file.
const STARTS: &str = "subfile_start";
/// A global attribute of a sub-file: its number.
pub(super) const NUMBER: &str = "subfile";

/// How ranks share sub-files.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Groups {
    identity: String,
    /// The first rank of each group; they are neighbours.
    first_ranks: Vec<u64>,
    /// For each map, the first of the stored elements of each group.
    starts: BTreeMap<String, Vec<u64>>,
}

/// The sub-file of a number, of a dataset of this name.
pub(crate) fn subfile_path(path: &Path, number: usize) -> PathBuf {
    let mut name = path.file_stem().unwrap_or_default().to_os_string();
    name.push(format!(".{number}"));
    if let Some(extension) = path.extension() {
        name.push(".");
        name.push(extension);
    }
    path.with_file_name(name)
}

/// Fails for a sub-file under the name of something else: opened by itself it would show its stored form, which
/// means something only together with the dataset that it is of.
pub(crate) fn require_dataset(base: &Base, header: &Header) -> Result<()> {
    let Some((identity, number)) = marks(&header.schema).filter(|_| !base.raw) else {
        return Ok(());
    };
    let name = base.path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    if name.ends_with(&format!(".{number}")) {
        return Ok(());
    }
    Err(Error::Decomposition {
        path: base.path.clone(),
        what: "its sub-files".to_string(),
        source: DecompositionError::Damaged(format!(
            "it is sub-file {number} of the dataset {identity}, under another name, and no dataset of its own"
        )),
    })
}

impl Groups {
    /// The groups that the hints ask for, if they do. Collective.
    pub(crate) fn wanted(base: &Base) -> Result<Option<Groups>> {
        let (comm, wanted) = (&base.comm, base.hints.subfiles);
        let count = match wanted {
            0 => return Ok(None),
            n if n > 0 => n as u64,
            _ => comm.sum_u64((comm.split_by_node()?.rank() == 0).into())?,
        };
        let ranks = comm.size() as u64;
        let count = count.clamp(1, ranks);
        let identity = match base.is_root() {
            true => format!("{:016x}", crate::base::identity()),
            false => String::new(),
        };
        let parts = broadcast_parts(&**comm, &[identity.as_bytes()])?;
        let bytes = parts.into_iter().next().ok_or(Error::Garbled)?;
        let identity = String::from_utf8(bytes).map_err(|_| Error::Garbled)?;
        // Without losing anything to a product that is too large.
        let first = |k: u64| (u128::from(k) * u128::from(ranks) / u128::from(count)) as u64;
        let first_ranks = (0..count).map(first).collect();
        Ok(Some(Groups { identity, first_ranks, starts: BTreeMap::new() }))
    }

    /// Takes another name, so that what one attempt to create the dataset has left is not mistaken
    /// for what the next one makes. The same on every rank.
    pub(crate) fn rename(&mut self) {
        let number = u64::from_str_radix(&self.identity, 16).unwrap_or(0);
        self.identity = format!("{:016x}", number.wrapping_add(1));
    }

    /// Takes a map in, given where this rank's elements begin. Collective.
    pub(crate) fn add_map(&mut self, base: &Base, map: &str, start: u64) -> Result<()> {
        let all = base.comm.all_gather_u64(&[start])?;
        let starts = self.first_ranks.iter().map(|rank| all.get(*rank as usize).copied());
        let starts = starts.collect::<Option<Vec<u64>>>().ok_or(Error::Garbled)?;
        self.starts.insert(map.to_string(), starts);
        Ok(())
    }

    /// The name that the dataset and its sub-files have, and no others.
    pub(super) fn identity(&self) -> &str {
        &self.identity
    }

    pub(crate) fn count(&self) -> usize {
        self.first_ranks.len()
    }

    /// The ranks of each group, given how many there are.
    pub(crate) fn ranks(&self, all: u64) -> Vec<Range<u64>> {
        let ends = self.first_ranks.iter().skip(1).copied().chain([all]);
        self.first_ranks.iter().zip(ends).map(|(first, end)| *first..end).collect()
    }

    /// The stored elements of each group, of a map that has so many.
    pub(super) fn elements(&self, map: &str, stored: u64) -> Vec<Range<u64>> {
        let starts = self.starts.get(map).map_or(&[][..], |starts| starts);
        let ends = starts.iter().skip(1).copied().chain([stored]);
        starts.iter().zip(ends).map(|(start, end)| *start..end).collect()
    }

    /// The variables that are in sub-files, in order, each with its map and how many elements that
    /// stores.
    pub(super) fn variables(&self, schema: &Schema) -> Vec<(VarId, String, u64)> {
        let of = |(number, variable): (usize, &Variable)| {
            let map = named(schema, variable).filter(|map| self.starts.contains_key(map))?;
            match schema.dims.at(variable.dims.last()?.0)?.len {
                DimLen::Fixed(stored) => Some((VarId(number), map, stored)),
                DimLen::Unlimited => None,
            }
        };
        schema.vars.iter().enumerate().filter_map(of).collect()
    }

    /// The schema of the file that has everything else.
    pub(crate) fn on_disk(&self, schema: &Schema) -> Result<Schema, SchemaError> {
        let mut disk = schema.clone();
        for (id, _, _) in self.variables(schema) {
            let Some(variable) = disk.vars.at_mut(id.0) else { continue };
            let dims = std::mem::take(&mut variable.dims);
            let name = |dim: &DimId| schema.dims.at(dim.0).map(|d| d.name.to_string());
            let names: Vec<String> = dims.iter().filter_map(name).collect();
            disk.put_attr(Owner::Var(id), STANDS_FOR, Values::from(names.join("/")))?;
        }
        for (map, starts) in &self.starts {
            if let Some(about) = disk.var(&part(map, BLOCKS_OF)) {
                disk.put_attr(Owner::Var(about), STARTS, numbers(starts))?;
            }
        }
        disk.put_attr(Owner::Global, IDENTITY, Values::from(self.identity.clone()))?;
        disk.put_attr(Owner::Global, FIRST_RANKS, numbers(&self.first_ranks))?;
        Ok(disk)
    }

    /// The schema that a file's one stands for, and its groups; `None` if nothing is in sub-files.
    pub(crate) fn expanded(disk: &Schema) -> Result<Option<(Schema, Groups)>, String> {
        let stands_for = |v: &Variable| match v.dims.is_empty() {
            true => Some(v.attrs.get(STANDS_FOR)?.values.text()?.into_owned()),
            false => None,
        };
        if !disk.vars.iter().any(|v| stands_for(v).is_some()) {
            return Ok(None);
        }
        let mut schema = disk.clone();
        let mut take = |owner: Owner, name: &str| schema.del_attr(owner, name).ok();
        let identity = take(Owner::Global, IDENTITY);
        let identity = identity.as_ref().and_then(|v| v.text());
        let identity = identity.ok_or_else(|| format!("its attribute {IDENTITY} is missing"))?;
        let identity = identity.trim_end_matches('\0').to_string();
        if inside::identity(&identity).is_none() {
            return Err(format!("its attribute {IDENTITY} is {identity:?}, which no writer makes"));
        }
        let first_ranks = take(Owner::Global, FIRST_RANKS).and_then(|v| list(&v));
        let first_ranks = first_ranks.filter(|list| !list.is_empty() && ascends(list));
        let first_ranks =
            first_ranks.ok_or_else(|| format!("its attribute {FIRST_RANKS} makes no sense"))?;
        let mut starts = BTreeMap::new();
        for (number, variable) in disk.vars.iter().enumerate() {
            let Some(map) = variable.name.strip_suffix(&part("", BLOCKS_OF)) else { continue };
            let Some(values) = take(Owner::Var(VarId(number)), STARTS) else { continue };
            let stored = disk.dims.get(&part(map, STORED)).map(|dim| dim.len);
            let fits = |list: &Vec<u64>| match stored {
                Some(DimLen::Fixed(stored)) => list.last().is_some_and(|last| *last <= stored),
                _ => false,
            };
            let list = list(&values).filter(|list| ascends(list) && fits(list));
            let list = list.filter(|list| list.len() == first_ranks.len());
            let list = list.ok_or_else(|| format!("the attribute {STARTS} of {map} is wrong"))?;
            starts.insert(map.to_string(), list);
        }
        let groups = Groups { identity, first_ranks, starts };
        for (number, variable) in disk.vars.iter().enumerate() {
            let Some(names) = stands_for(variable) else { continue };
            let names = names.trim_end_matches('\0');
            let dims: Option<Vec<DimId>> = names.split('/').map(|name| disk.dim(name)).collect();
            let only_first = |dims: &Vec<DimId>| {
                let record = disk.record_dim();
                dims.iter().skip(1).all(|dim| Some(*dim) != record)
            };
            let wrong = || {
                let name = &variable.name;
                format!("\"{name}\" stands for a variable with the dimensions \"{names}\"")
            };
            let dims = dims.filter(only_first).ok_or_else(wrong)?;
            let _ = schema.del_attr(Owner::Var(VarId(number)), STANDS_FOR);
            if let Some(variable) = schema.vars.at_mut(number) {
                variable.dims = dims;
            }
            let found = schema.variable(VarId(number)).and_then(|v| named(&schema, v));
            if !found.is_some_and(|map| groups.starts.contains_key(&map)) {
                return Err(wrong());
            }
        }
        Ok(Some((schema, groups)))
    }

    /// The header of a sub-file, which has no records yet.
    pub(crate) fn header_of(&self, schema: &Schema, number: usize) -> Result<Header, SchemaError> {
        let mut own = Schema::new(schema.version);
        let first = self.first_ranks.get(number).copied().unwrap_or(0);
        own.put_attr(Owner::Global, IDENTITY, Values::from(self.identity.clone()))?;
        own.put_attr(Owner::Global, NUMBER, numbers(&[number as u64]))?;
        own.put_attr(Owner::Global, "first_rank", numbers(&[first]))?;
        for (id, map, stored) in self.variables(schema) {
            let count = self.elements(&map, stored).get(number).map_or(0, |r| r.end - r.start);
            let Some(variable) = schema.variable(id).filter(|_| count > 0) else { continue };
            let mut dims = Vec::with_capacity(variable.dims.len());
            for (d, dim) in variable.dims.iter().enumerate() {
                let Some(dim) = schema.dims.at(dim.0) else { continue };
                let is_map = d + 1 == variable.dims.len();
                let len = if is_map { DimLen::Fixed(count) } else { dim.len };
                dims.push(match own.dim(&dim.name) {
                    Some(known) => known,
                    None => own.add_dim(&dim.name, len)?,
                });
            }
            let var = own.add_var(&variable.name, variable.ty, &dims)?;
            for attr in variable.attrs.iter() {
                own.put_attr(Owner::Var(var), &attr.name, attr.values.clone())?;
            }
        }
        let layout = DataLayout::place(&own, &Alignment::default())?;
        Ok(Header { schema: own, numrecs: NumRecs::Count(0), layout })
    }

    /// Why a file is not the sub-file of this number, if it is not.
    pub(super) fn mistaken(&self, schema: &Schema, number: usize) -> Option<String> {
        let text = schema.attr(Owner::Global, IDENTITY).and_then(|v| v.text());
        let text = text.as_deref().map(|text| text.trim_end_matches('\0'));
        match text {
            Some(text) if text == self.identity => {}
            Some(text) => {
                return Some(format!(
                    "it is a sub-file of another dataset ({text}, not {})",
                    self.identity
                ));
            }
            None => return Some("it is no sub-file".to_string()),
        }
        let found = schema.attr(Owner::Global, NUMBER).and_then(list);
        match found.as_deref() {
            Some([found]) if *found == number as u64 => None,
            found => Some(format!("it is sub-file {found:?}, not {number}")),
        }
    }
}

fn ascends(list: &[u64]) -> bool {
    list.first() == Some(&0) && list.windows(2).all(|pair| pair[0] <= pair[1])
}

fn numbers(list: &[u64]) -> Values {
    match list.iter().all(|n| *n <= i32::MAX as u64) {
        true => Values::Int(list.iter().map(|n| *n as i32).collect()),
        false => Values::Int64(list.iter().map(|n| *n as i64).collect()),
    }
}

pub(super) fn list(values: &Values) -> Option<Vec<u64>> {
    let values = values.convert_to::<i64>().ok()?;
    values.iter().map(|n| u64::try_from(*n).ok()).collect()
}
