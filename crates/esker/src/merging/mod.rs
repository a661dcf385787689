//! Definitions of many ranks become one header that no rank holds: merging by shares (docs/rooms/models.md).
//!
//! Names are hashed to ranks, each merges its share, and everyone gets back what its own objects have become. Numbers and
//! places are exclusive scans, and each rank encodes the objects that it is the first to have. The bytes are those that `tree`
//! and [`DataLayout::place`](esker_format::DataLayout::place) make.

mod objects;
mod route;

use std::path::Path;

use esker_comm::{Communicator, CommunicatorExt, ReduceOp, Reduction};
use esker_format::{
    Alignment, DataLayout, DimId, Header, HeaderPart, HeaderSums, NumRecs, Placement, Schema,
    Variable,
};

use crate::error::{Error, Result};
use crate::options::FillMode;
use crate::rest::Rest;
use objects::{Answer, Definition, Kind, Object, of_rank};
use route::Route;

/// What came of merging by shares.
#[derive(Debug)]
pub(crate) struct Merged {
    /// This rank's objects under its own numbers, with what others say of them, and where they are in the file.
    pub(crate) header: Header,
    /// Each of its variables' fill mode, where any rank has chosen one.
    pub(crate) fills: Vec<Option<FillMode>>,
    /// What this rank writes of the header, and where.
    pub(crate) parts: Vec<(u64, Vec<u8>)>,
    /// What makes the file one: on rank 0, written last.
    pub(crate) head: Vec<u8>,
    /// What all ranks have together.
    pub(crate) rest: Rest,
}

/// Merges the definitions of a new classic file by shares. `None` where that is not possible, and the tree has to: definitions whose
/// places are no sums, or that do not fit. Collective.
pub(crate) fn merge(
    comm: &dyn Communicator,
    path: &Path,
    schema: &Schema,
    fills: &[Option<FillMode>],
    align: &Alignment,
    is_grown_filled: impl Fn(Option<FillMode>) -> bool,
) -> Result<Option<Merged>> {
    let rank = comm.rank();
    let (objects, own) = of_rank(schema, fills, rank);
    let (route, owned) = Route::go(comm, objects)?;
    require_no_conflict(comm, path, &owned)?;
    let owned = owned.into_iter().map(|object| object.answer).collect();
    let answers = route.back(comm, owned)?;
    if answers.len() != own.len() {
        return Err(Error::Garbled);
    }
    let mut mine = Mine::new(schema, fills);
    for (answer, (kind, number)) in answers.into_iter().zip(&own) {
        mine.learn(answer, *kind, *number, rank as u64);
    }
    let is_filled = mine.first(2).any(|number| {
        let var = mine.schema.vars.at(number);
        var.is_some_and(|var| mine.schema.is_record(var)) && is_grown_filled(mine.fills[number])
    });
    let Some(placed) = place(comm, &mine, align, is_filled)? else { return Ok(None) };
    // Whoever has an object learns its number and its place from the first that has it.
    let told = own.iter().map(|(kind, number)| match kind {
        Kind::Dim => [placed.dims[*number], NOWHERE],
        Kind::Var => placed.vars[*number],
        Kind::Attr | Kind::Unlimited => [NOWHERE; 2],
    });
    let known =
        route.again(comm, told.collect(), |a: [u64; 2], b| [a[0].min(b[0]), a[1].min(b[1])])?;
    let mut dims = placed.dims.clone();
    let mut begins = vec![NOWHERE; mine.schema.vars.len()];
    for ([file_number, begin], (kind, number)) in known.into_iter().zip(&own) {
        match kind {
            Kind::Dim => dims[*number] = file_number,
            Kind::Var => begins[*number] = begin,
            Kind::Attr | Kind::Unlimited => {}
        }
    }
    Ok(Some(placed.merged(rank, mine, &dims, &begins)))
}

/// A number that nobody has said yet.
const NOWHERE: u64 = u64::MAX;

/// What two ranks contradict each other in is an error on every rank. Collective.
fn require_no_conflict(comm: &dyn Communicator, path: &Path, owned: &[Object]) -> Result<()> {
    let conflict = owned.iter().find_map(|object| match &object.answer.definition {
        Definition::Conflict(words) => Some(words.clone()),
        _ => None,
    });
    let outcome = conflict.map_or(Ok(()), Err);
    comm.agree(outcome).map_err(|disagreement| match disagreement {
        // Every rank has the words of the lowest owner that found one.
        esker_comm::Disagreement::Failed { message, .. } => {
            Error::Definitions { path: path.to_path_buf(), what: message }
        }
        esker_comm::Disagreement::Comm(error) => error.into(),
    })
}

/// This rank's objects, with what others say of them.
struct Mine {
    schema: Schema,
    fills: Vec<Option<FillMode>>,
    /// Which this rank is the first to have: dimensions, global attributes, variables.
    is_first: [Vec<bool>; 3],
}

impl Mine {
    fn new(schema: &Schema, fills: &[Option<FillMode>]) -> Mine {
        let lens = [schema.dims.len(), schema.attrs.len(), schema.vars.len()];
        let mut fills = fills.to_vec();
        fills.resize(lens[2], None);
        Mine { schema: schema.clone(), fills, is_first: lens.map(|len| vec![false; len]) }
    }

    fn learn(&mut self, answer: Answer, kind: Kind, number: usize, rank: u64) {
        let is_first = answer.first.rank == rank;
        let list = match kind {
            Kind::Dim => 0,
            Kind::Attr => 1,
            Kind::Var => 2,
            Kind::Unlimited => return,
        };
        self.is_first[list][number] = is_first;
        if let Definition::Var(of) = answer.definition {
            self.fills[number] = of.fill.map(|(mode, _)| mode);
            if let Some(var) = self.schema.vars.at_mut(number) {
                var.attrs = of.attr_list();
            }
        }
    }

    /// The objects of a list that this rank is the first to have, by their numbers.
    fn first(&self, list: usize) -> impl Iterator<Item = usize> + '_ {
        self.is_first[list].iter().enumerate().filter(|(_, is)| **is).map(|(number, _)| number)
    }
}

/// Where the objects are that this rank is the first to have.
struct Placed {
    /// The file's number of each dimension, and of each variable with where it begins.
    dims: Vec<u64>,
    vars: Vec<[u64; 2]>,
    sizes: Vec<(u64, u64)>,
    sums: HeaderSums,
    /// Where this rank's part of each list begins.
    at: [u64; 3],
    part: HeaderPart,
    layout: DataLayout,
    rest: Rest,
}

/// Sums over the ranks, in this order.
#[derive(Default, Clone, Copy)]
struct Sums {
    counts: [u64; 3],
    bytes: [u64; 3],
    fixed: u64,
    fixed_steps: u64,
    records: u64,
    record_vsize: u64,
    record_bytes: u64,
    /// Ranks with records that are filled.
    filled: u64,
    /// Ranks with something that is not placed by sums.
    unusual: u64,
}

impl Sums {
    const LEN: usize = 13;

    fn fields(&self) -> [u64; Sums::LEN] {
        let ([a, b, c], [d, e, f]) = (self.counts, self.bytes);
        let (fixed, steps) = (self.fixed, self.fixed_steps);
        let (records, vsize, bytes) = (self.records, self.record_vsize, self.record_bytes);
        [a, b, c, d, e, f, fixed, steps, records, vsize, bytes, self.filled, self.unusual]
    }

    fn of(fields: [u64; Sums::LEN]) -> Sums {
        let [a, b, c, d, e, f, fixed, fixed_steps, records, rest @ ..] = fields;
        let [record_vsize, record_bytes, filled, unusual] = rest;
        let (counts, bytes) = ([a, b, c], [d, e, f]);
        Sums {
            counts,
            bytes,
            fixed,
            fixed_steps,
            records,
            record_vsize,
            record_bytes,
            filled,
            unusual,
        }
    }
}

/// Numbers and places by scans. `None` on every rank where anything is not a sum or does not fit. Collective.
fn place(
    comm: &dyn Communicator,
    mine: &Mine,
    align: &Alignment,
    is_filled: bool,
) -> Result<Option<Placed>> {
    let schema = &mine.schema;
    let version = schema.version;
    // What wraps around when ranks add theirs.
    let most = i64::MAX as u64 / comm.size() as u64;
    let (unusual, filled) = (u64::from(!align.is_additive()), u64::from(is_filled));
    let mut own = Sums { unusual, filled, ..Sums::default() };
    let mut part = HeaderPart::new(version);
    mine.first(0).filter_map(|n| schema.dims.at(n)).for_each(|dim| part.dim(dim));
    mine.first(1).filter_map(|n| schema.attrs.at(n)).for_each(|attr| part.attr(attr));
    let mut sizes = vec![(0, 0); schema.vars.len()];
    let mut length = HeaderPart::new(version);
    for (number, var) in schema.vars.iter().enumerate() {
        let found =
            schema.sizes_of(var).and_then(|sizes| Some((sizes, align.fixed_step(sizes.1)?)));
        let Some((found, step)) = found else {
            own.unusual = 1;
            continue;
        };
        sizes[number] = found;
        if !mine.is_first[2][number] {
            continue;
        }
        // Its length depends on no number.
        length.bytes[2].clear();
        length.var(var, &Placement { begin: 0, bytes: 0, vsize: 0 });
        own.bytes[2] = own.bytes[2].saturating_add(length.bytes[2].len() as u64);
        match schema.is_record(var) {
            false => {
                own.fixed += 1;
                own.fixed_steps = own.fixed_steps.saturating_add(step);
            }
            true => {
                own.records += 1;
                own.record_vsize = own.record_vsize.saturating_add(found.1);
                own.record_bytes = own.record_bytes.saturating_add(found.0);
            }
        }
    }
    own.counts = [part.counts[0], part.counts[1], length.counts[2]];
    own.bytes[0] = part.bytes[0].len() as u64;
    own.bytes[1] = part.bytes[1].len() as u64;
    if own.fields().iter().any(|sum| *sum > most) {
        own.unusual = 1;
        own.fixed_steps = own.fixed_steps.min(most);
        own.record_vsize = own.record_vsize.min(most);
        own.record_bytes = own.record_bytes.min(most);
    }
    let (mut before, mut all) = (own.fields(), own.fields());
    comm.exclusive_scan(&mut before)?;
    comm.all_reduce(Reduction::U64(&mut all), ReduceOp::Sum)?;
    let (before, all) = (Sums::of(before), Sums::of(all));
    if all.unusual > 0 {
        return Ok(None);
    }
    let sums = HeaderSums { version, counts: all.counts, bytes: all.bytes };
    let header_len = sums.header_len();
    let has_fixed = all.fixed > 0;
    let begin = align.fixed_begin(header_len, has_fixed);
    let mut placing = Placing { most: version.max_offset(), end: header_len, fits: true };
    let mut vars = vec![[NOWHERE; 2]; schema.vars.len()];
    let mut at = begin.and_then(|b| b.checked_add(before.fixed_steps));
    for (number, own) in (before.counts[2]..).zip(mine.first(2)) {
        let var = schema.vars.at(own).ok_or(Error::Garbled)?;
        vars[own][0] = number;
        if !schema.is_record(var) {
            vars[own][1] = placing.place(at, sizes[own].1);
            let step = align.fixed_step(sizes[own].1);
            at = at.and_then(|at| at.checked_add(step?));
        }
    }
    // Where the last fixed-size variable ends, or the first could begin.
    let mut ends = [placing.end, u64::from(!placing.fits)];
    comm.all_reduce(Reduction::U64(&mut ends), ReduceOp::Max)?;
    let behind = ends[0].max(begin.unwrap_or(u64::MAX));
    let section = align.records_begin(behind, has_fixed);
    let mut placing = Placing { fits: ends[1] == 0, ..placing };
    let mut at = section.and_then(|s| s.checked_add(before.record_vsize));
    for own in mine.first(2) {
        let var = schema.vars.at(own).ok_or(Error::Garbled)?;
        if schema.is_record(var) {
            vars[own][1] = placing.place(at, sizes[own].1);
            at = at.and_then(|at| at.checked_add(sizes[own].1));
        }
    }
    if !comm.all(placing.fits)? {
        return Ok(None);
    }
    let record_size = if all.records == 1 { all.record_bytes } else { all.record_vsize };
    let record_begin = section.filter(|_| all.records > 0);
    let layout = DataLayout { header_len, places: Vec::new(), record_begin, record_size };
    let rest = Rest {
        counts: all.counts,
        fixed: all.fixed,
        data_begin: if has_fixed { begin } else { record_begin }.unwrap_or(header_len),
        fixed_end: ends[0],
        record_len: all.record_vsize.min(record_size.max(1)),
        fills_records: all.filled > 0,
        is_first: mine.is_first[2].clone(),
    };
    let mut dims = vec![NOWHERE; schema.dims.len()];
    for (number, own) in (before.counts[0]..).zip(mine.first(0)) {
        dims[own] = number;
    }
    let begins = sums.begins();
    let at = [0, 1, 2].map(|list| begins[list] + before.bytes[list]);
    Ok(Some(Placed { dims, vars, sizes, sums, at, part, layout, rest }))
}

/// Places variables one after the other.
struct Placing {
    most: u64,
    end: u64,
    fits: bool,
}

impl Placing {
    /// The place itself, if it is one.
    fn place(&mut self, at: Option<u64>, vsize: u64) -> u64 {
        let at = at.filter(|at| *at <= self.most);
        let end = at.and_then(|at| at.checked_add(vsize)).filter(|end| *end <= i64::MAX as u64);
        match (at, end) {
            (Some(at), Some(end)) => {
                self.end = self.end.max(end);
                at
            }
            _ => {
                self.fits = false;
                NOWHERE
            }
        }
    }
}

impl Placed {
    /// This rank's part of the header, with the file's numbers of all its dimensions and the begins of all its variables.
    fn merged(self, rank: usize, mine: Mine, dims: &[u64], begins: &[u64]) -> Merged {
        let Placed { sums, at, mut part, mut layout, rest, sizes, .. } = self;
        let places = sizes.iter().zip(begins);
        let places = places.map(|((bytes, vsize), begin)| Placement {
            begin: *begin,
            bytes: *bytes,
            vsize: *vsize,
        });
        layout.places = places.collect();
        for own in mine.first(2) {
            let (Some(var), Some(place)) = (mine.schema.vars.at(own), layout.places.get(own))
            else {
                continue;
            };
            let numbers = var.dims.iter().filter_map(|dim| dims.get(dim.0));
            let numbers = numbers.map(|number| DimId(*number as usize)).collect();
            part.var(&Variable { dims: numbers, ..var.clone() }, place);
        }
        let numrecs = NumRecs::Count(0);
        let mut parts: Vec<(u64, Vec<u8>)> = at.into_iter().zip(part.bytes).collect();
        let [(_, head), others @ ..] = sums.heads(numrecs);
        if rank == 0 {
            parts.extend(others);
        }
        parts.retain(|(_, bytes)| !bytes.is_empty());
        let Mine { schema, fills, .. } = mine;
        let header = Header { schema, numrecs, layout };
        Merged { header, fills, parts, head, rest }
    }
}
