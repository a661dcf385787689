//! E3SM's output: hundreds of variables over unstructured grids, cut by recorded maps.
//!
//! A decomposition map is a recording of which elements each of 16 ranks of the model had.
//! With fewer ranks, each takes a contiguous range of those; its runs are sorted, and adjacent
//! ones are merged within a row of the last dimension.

use std::path::Path;

use esker::{Dataset, Owner, Selection};
use thiserror::Error;

use super::{fixed, part, var};
use crate::plan::{Calls, Dim, Element, Plan, RankPlan, Request, Slabs, Var};

/// Which part of the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Case {
    /// The atmosphere, first history file.
    F,
    /// The ocean.
    G,
}

impl Case {
    /// The file of its map.
    pub fn file_name(self) -> &'static str {
        match self {
            Case::F => "pnetcdf_e3sm_map_f_case_16p.nc",
            Case::G => "pnetcdf_e3sm_map_g_case_16p.nc",
        }
    }

    /// What it writes.
    pub(super) fn output(self) -> &'static Output {
        match self {
            Case::F => &ATMOSPHERE,
            Case::G => &OCEAN,
        }
    }
}

/// What a part of the model writes.
pub(super) struct Output {
    /// The type of the variables that are cut among ranks.
    pub(super) element: Element,
    /// Variables of each map that have no records, and that have them.
    pub(super) variables: &'static [(usize, usize)],
    /// The small variables that rank 0 writes: how many, type, length (0 for a scalar), and
    /// whether they have records.
    pub(super) small: &'static [(usize, Element, u64, bool)],
    /// Records, where no other number is asked for.
    pub(super) usual_records: u64,
}

/// One record makes 34 MB.
const ATMOSPHERE: Output = Output {
    element: Element::F64,
    // Cell areas by the first map, latitudes and longitudes by the second.
    variables: &[(1, 0), (2, 321), (0, 63)],
    small: &[
        // Vertical coordinates at levels and at interfaces, reference values.
        (3, Element::F64, 72, false),
        (3, Element::F64, 73, false),
        (1, Element::F64, 0, false),
        (5, Element::I32, 0, false),
        // Times and dates, time bounds, gases.
        (1, Element::F64, 0, true),
        (1, Element::F64, 2, true),
        (2, Element::I32, 8, true),
        (6, Element::F64, 0, true),
        (5, Element::I32, 0, true),
    ],
    usual_records: 1,
};

/// Eight records make 72 MB.
const OCEAN: Output = Output {
    element: Element::F64,
    variables: &[(0, 6), (0, 2), (0, 25), (0, 2), (0, 2), (0, 4)],
    small: &[
        (3, Element::F64, 100, false),
        (1, Element::I32, 64, true),
        (7, Element::F64, 0, true),
    ],
    usual_records: 8,
};

/// The decomposition maps of a case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecompositionMap {
    pub(super) maps: Vec<Map>,
}

/// One map: a shape, and the runs of each recorded rank as (first linear index, length).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Map {
    pub(super) shape: Vec<u64>,
    pub(super) ranks: Vec<Vec<(u64, u64)>>,
}

/// Why a map cannot be used.
#[derive(Debug, Error)]
pub enum MapError {
    /// The file cannot be read.
    #[error(transparent)]
    File(#[from] esker::Error),
    /// It is another file, or there is none.
    #[error("{file} is not what the kernel needs: {what}")]
    Unlike {
        /// The file.
        file: String,
        /// What is missing or impossible.
        what: String,
    },
}

impl DecompositionMap {
    /// Reads the maps of a case from the folder that holds them.
    pub fn read(case: Case, folder: &Path) -> Result<DecompositionMap, MapError> {
        let path = folder.join(case.file_name());
        let file = Dataset::open(&path)?;
        let numbers = |name: &str| -> Result<Vec<u64>, MapError> {
            Ok(file.get::<u64>(file.var(name)?, &Selection::all())?)
        };
        let unlike = |what: String| MapError::Unlike { file: path.display().to_string(), what };
        let mut maps = Vec::new();
        for k in 1..=case.output().variables.len() {
            let attr = format!("D{k}.dims");
            let shape = file.schema().attr(Owner::Global, &attr);
            let shape = shape.and_then(|v| v.convert_to::<u64>().ok());
            let shape = shape.ok_or_else(|| unlike(format!("there is no attribute {attr}")))?;
            let offsets = numbers(&format!("D{k}.offsets"))?;
            let lengths = numbers(&format!("D{k}.lengths"))?;
            let total: u64 = shape.iter().product();
            let mut runs = offsets.into_iter().zip(lengths);
            let mut ranks = Vec::new();
            for n in numbers(&format!("D{k}.nreqs"))? {
                let of_rank: Vec<(u64, u64)> = runs.by_ref().take(n as usize).collect();
                if let Some((first, len)) = of_rank.iter().find(|(f, l)| f + l > total) {
                    let what = format!("a run of {len} from {first} is beyond D{k}'s {total}");
                    return Err(unlike(what));
                }
                ranks.push(of_rank);
            }
            maps.push(Map { shape, ranks });
        }
        Ok(DecompositionMap { maps })
    }
}

impl Map {
    /// The hyperslabs of one of `ranks` ranks.
    fn slabs(&self, rank: usize, ranks: usize) -> Slabs {
        let (first, count) = part(self.ranks.len() as u64, ranks as u64, rank as u64);
        let recorded = self.ranks.iter().skip(first as usize).take(count as usize);
        let mut runs: Vec<(u64, u64)> = recorded.flatten().copied().collect();
        runs.sort_unstable();
        let row = self.shape.last().copied().unwrap_or(1);
        let mut merged: Vec<(u64, u64)> = Vec::new();
        for (mut start, mut len) in runs {
            // A hyperslab has one row at most.
            while len > 0 {
                let piece = len.min(row - start % row);
                match merged.last_mut() {
                    Some((s, l)) if *s + *l == start && start % row != 0 => *l += piece,
                    _ => merged.push((start, piece)),
                }
                (start, len) = (start + piece, len - piece);
            }
        }
        let rank = self.shape.len();
        let (mut starts, mut counts) = (Vec::new(), Vec::new());
        for (start, len) in &merged {
            let mut index = vec![0; rank];
            let mut left = *start;
            for d in (0..rank).rev() {
                index[d] = left % self.shape[d];
                left /= self.shape[d];
            }
            starts.extend(index);
            counts.extend((1..rank).map(|_| 1).chain([*len]));
        }
        Slabs { rank, len: merged.len(), starts, counts }
    }
}

pub(super) fn plan(
    output: &Output,
    map: &DecompositionMap,
    ranks: usize,
    records: Option<u64>,
) -> Plan {
    let records = records.unwrap_or(output.usual_records).max(1);
    let mut schema = SchemaOf { dims: vec![Dim { name: "time".into(), len: None }], vars: vec![] };
    // Each variable with its list, in the order in which they are posted: what rank 0 has
    // alone comes last in the model too.
    let mut cut = Vec::new();
    for (k, (once, each)) in output.variables.iter().enumerate() {
        let dims = schema.shape(k, &map.maps[k].shape);
        for i in 0..once + each {
            let name = format!("D{}_{i:03}", k + 1);
            cut.push((schema.add(&name, output.element, &dims, i >= *once), k, i >= *once));
        }
    }
    let mut small_shapes: Vec<u64> = Vec::new();
    let mut small = Vec::new();
    for (count, element, len, has_records) in output.small {
        let list = small_shapes.iter().position(|l| l == len).unwrap_or_else(|| {
            small_shapes.push(*len);
            small_shapes.len() - 1
        });
        let dims = schema.small(*len);
        for _ in 0..*count {
            let name = format!("small_{:02}", small.len());
            let var = schema.add(&name, *element, &dims, *has_records);
            small.push((var, map.maps.len() + list, *has_records));
        }
    }
    let rank_plan = |rank: usize| {
        let mut lists: Vec<Slabs> = map.maps.iter().map(|m| m.slabs(rank, ranks)).collect();
        let mut posted = cut.clone();
        if rank == 0 {
            posted.extend_from_slice(&small);
            lists.extend(small_shapes.iter().map(|len| match len {
                0 => Slabs { rank: 0, len: 1, starts: vec![], counts: vec![] },
                len => Slabs::one(&[0], &[*len]),
            }));
        }
        posted.retain(|(_, list, _)| lists[*list].len > 0);
        let step = |record: u64| -> Vec<Request> {
            let once = posted.iter().filter(|(_, _, has)| record == 0 && !has);
            let once = once.map(|(var, list, _)| Request { var: *var, list: *list, record: None });
            let each = posted.iter().filter(|(_, _, has)| *has);
            let each =
                each.map(|(var, list, _)| Request { var: *var, list: *list, record: Some(record) });
            once.chain(each).collect()
        };
        let steps = (0..records).map(step).collect();
        RankPlan { lists, steps }
    };
    let plans = (0..ranks).map(rank_plan).collect();
    let steps = vec![Calls::Queued; records as usize];
    Plan {
        dims: schema.dims,
        vars: schema.vars,
        records,
        pipeline: String::new(),
        transactions: false,
        steps,
        ranks: plans,
    }
}

/// Dimensions and variables as they are added.
struct SchemaOf {
    dims: Vec<Dim>,
    vars: Vec<Var>,
}

impl SchemaOf {
    fn dim(&mut self, name: String, len: u64) -> usize {
        self.dims.iter().position(|dim| dim.name == name).unwrap_or_else(|| {
            self.dims.push(fixed(&name, len));
            self.dims.len() - 1
        })
    }

    fn shape(&mut self, map: usize, shape: &[u64]) -> Vec<usize> {
        let dims = shape.iter().enumerate();
        dims.map(|(d, len)| self.dim(format!("D{}_{d}", map + 1), *len)).collect()
    }

    fn small(&mut self, len: u64) -> Vec<usize> {
        if len == 0 { vec![] } else { vec![self.dim(format!("small_{len}"), len)] }
    }

    fn add(&mut self, name: &str, element: Element, dims: &[usize], records: bool) -> usize {
        let time: &[usize] = if records { &[0] } else { &[] };
        self.vars.push(var(name, element, &[time, dims].concat()));
        self.vars.len() - 1
    }
}
