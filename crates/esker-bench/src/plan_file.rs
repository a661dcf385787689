//! The file by which a plan reaches the processes that carry it out.
//!
//! A sequence of little-endian 64-bit numbers, so that a C program of a few lines reads it
//! (`peers/plan.h` does):
//!
//! ```text
//! plan  = magic, ranks, dims, vars, records, steps, transactions (0 or 1), pipeline (a name),
//!         dim*, var*, calls (0 blocking, 1 queued, 2 independent) of each step,
//!         first number of each rank's part, rank*
//! dim   = length (0 for the record dimension), name
//! var   = element (netCDF's type code), dimensions, position of each,
//!         data (0 distinct, 1 tile, 2 field, 3 column, 4 sums), percent, edge (of tiles, or 0),
//!         dimensions of chunks (0 for no chunks), length of each, name
//! name  = bytes, the bytes padded with zeros to a multiple of 8
//! rank  = lists, list*, (requests, request*) of each step
//! list  = dimensions, hyperslabs, starts, counts
//! request = variable, list, record (2^64 - 1 for none)
//! ```

use thiserror::Error;

use crate::plan::{Calls, Data, Dim, Element, Plan, RankPlan, Request, Slabs, Var};

const MAGIC: u64 = u64::from_le_bytes(*b"ESKPLAN3");
const NO_RECORD: u64 = u64::MAX;

/// Why a plan file cannot be followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("this is not a whole plan file: number {at} is missing or impossible")]
pub struct PlanFileError {
    at: usize,
}

/// The bytes of a plan.
pub fn encode(plan: &Plan) -> Vec<u8> {
    let mut out = vec![
        MAGIC,
        plan.ranks.len() as u64,
        plan.dims.len() as u64,
        plan.vars.len() as u64,
        plan.records,
        plan.steps.len() as u64,
        plan.transactions.into(),
    ];
    put_name(&mut out, &plan.pipeline);
    for dim in &plan.dims {
        out.push(dim.len.unwrap_or(0));
        put_name(&mut out, &dim.name);
    }
    for var in &plan.vars {
        out.push(type_code(var.element));
        out.push(var.dims.len() as u64);
        out.extend(var.dims.iter().map(|d| *d as u64));
        out.extend(match var.data {
            Data::Distinct => [0, 0, 0],
            Data::Tile { percent, edge } => [1, percent, edge],
            Data::Field => [2, 0, 0],
            Data::Column => [3, 0, 0],
            Data::Sums => [4, 0, 0],
        });
        out.push(var.chunk.len() as u64);
        out.extend_from_slice(&var.chunk);
        put_name(&mut out, &var.name);
    }
    out.extend(plan.steps.iter().map(|calls| match calls {
        Calls::Blocking => 0,
        Calls::Queued => 1,
        Calls::Independent => 2,
    }));
    let table = out.len();
    out.resize(table + plan.ranks.len(), 0);
    for (i, rank) in plan.ranks.iter().enumerate() {
        out[table + i] = out.len() as u64;
        put_rank(&mut out, rank);
    }
    out.iter().flat_map(|n| n.to_le_bytes()).collect()
}

fn put_name(out: &mut Vec<u64>, name: &str) {
    out.push(name.len() as u64);
    for piece in name.as_bytes().chunks(8) {
        let mut eight = [0; 8];
        eight[..piece.len()].copy_from_slice(piece);
        out.push(u64::from_le_bytes(eight));
    }
}

fn put_rank(out: &mut Vec<u64>, rank: &RankPlan) {
    out.push(rank.lists.len() as u64);
    for list in &rank.lists {
        out.extend([list.rank as u64, list.len as u64]);
        out.extend_from_slice(&list.starts);
        out.extend_from_slice(&list.counts);
    }
    for step in &rank.steps {
        out.push(step.len() as u64);
        for request in step {
            let record = request.record.unwrap_or(NO_RECORD);
            out.extend([request.var as u64, request.list as u64, record]);
        }
    }
}

/// The plan that the bytes hold.
pub fn decode(bytes: &[u8]) -> Result<Plan, PlanFileError> {
    let numbers = bytes.chunks_exact(8).map(|n| u64::from_le_bytes(n.try_into().unwrap_or([0; 8])));
    let numbers: Vec<u64> = numbers.collect();
    let mut from = Numbers { numbers: &numbers, at: 0 };
    if from.next()? != MAGIC {
        return Err(PlanFileError { at: 0 });
    }
    let [ranks, dims, vars] = [from.count()?, from.count()?, from.count()?];
    let records = from.next()?;
    let steps = from.count()?;
    let transactions = from.below(2)? == 1;
    let pipeline = from.name()?;
    let dims = from.list(dims, |from| {
        let len = from.next()?;
        Ok(Dim { len: (len > 0).then_some(len), name: from.name()? })
    })?;
    let vars = from.list(vars, |from| {
        let element = from.element()?;
        let rank = from.count()?;
        let positions = from.list(rank, |from| from.below(dims.len()))?;
        let data = match [from.next()?, from.next()?, from.next()?] {
            [0, ..] => Data::Distinct,
            [1, percent, edge] if edge > 0 => Data::Tile { percent, edge },
            [2, ..] => Data::Field,
            [3, ..] => Data::Column,
            [4, ..] => Data::Sums,
            _ => return Err(from.impossible()),
        };
        let chunked = from.count()?;
        let chunk = from.take(chunked)?.to_vec();
        if !(chunk.is_empty() || chunk.len() == rank) || chunk.contains(&0) {
            return Err(from.impossible());
        }
        Ok(Var { element, dims: positions, data, chunk, name: from.name()? })
    })?;
    let steps = from.list(steps, |from| match from.next()? {
        0 => Ok(Calls::Blocking),
        1 => Ok(Calls::Queued),
        2 => Ok(Calls::Independent),
        _ => Err(from.impossible()),
    })?;
    from.take(ranks)?;
    let ranks = from.list(ranks, |from| from.rank(vars.len(), steps.len()))?;
    Ok(Plan { dims, vars, records, pipeline, transactions, steps, ranks })
}

struct Numbers<'a> {
    numbers: &'a [u64],
    at: usize,
}

impl Numbers<'_> {
    fn impossible(&self) -> PlanFileError {
        PlanFileError { at: self.at }
    }

    fn next(&mut self) -> Result<u64, PlanFileError> {
        let number = self.numbers.get(self.at).copied().ok_or(self.impossible())?;
        self.at += 1;
        Ok(number)
    }

    /// A number of things of which each takes at least one number.
    fn count(&mut self) -> Result<usize, PlanFileError> {
        let count = self.next()?;
        if count > self.numbers.len() as u64 {
            return Err(self.impossible());
        }
        Ok(count as usize)
    }

    fn below(&mut self, limit: usize) -> Result<usize, PlanFileError> {
        match self.next()? {
            n if n < limit as u64 => Ok(n as usize),
            _ => Err(self.impossible()),
        }
    }

    fn take(&mut self, count: usize) -> Result<&[u64], PlanFileError> {
        let end = self.at.checked_add(count).ok_or(self.impossible())?;
        let taken = self.numbers.get(self.at..end).ok_or(self.impossible())?;
        self.at = end;
        Ok(taken)
    }

    fn list<T>(
        &mut self,
        count: usize,
        mut item: impl FnMut(&mut Self) -> Result<T, PlanFileError>,
    ) -> Result<Vec<T>, PlanFileError> {
        (0..count).map(|_| item(self)).collect()
    }

    fn name(&mut self) -> Result<String, PlanFileError> {
        let len = self.next()?;
        let words = self.take(len.div_ceil(8) as usize)?;
        let mut bytes: Vec<u8> = words.iter().flat_map(|n| n.to_le_bytes()).collect();
        bytes.truncate(len as usize);
        String::from_utf8(bytes).map_err(|_| self.impossible())
    }

    fn element(&mut self) -> Result<Element, PlanFileError> {
        let code = self.next()?;
        Element::ALL.into_iter().find(|e| type_code(*e) == code).ok_or(self.impossible())
    }

    fn rank(&mut self, vars: usize, steps: usize) -> Result<RankPlan, PlanFileError> {
        let lists = self.count()?;
        let lists = self.list(lists, |from| {
            let [rank, len] = [from.count()?, from.count()?];
            let numbers = rank.checked_mul(len).ok_or(from.impossible())?;
            let starts = from.take(numbers)?.to_vec();
            let counts = from.take(numbers)?.to_vec();
            Ok(Slabs { rank, len, starts, counts })
        })?;
        let steps = self.list(steps, |from| {
            let requests = from.count()?;
            from.list(requests, |from| {
                let (var, list) = (from.below(vars)?, from.below(lists.len())?);
                let record = from.next()?;
                Ok(Request { var, list, record: (record != NO_RECORD).then_some(record) })
            })
        })?;
        Ok(RankPlan { lists, steps })
    }
}

/// netCDF's code of the type.
fn type_code(element: Element) -> u64 {
    match element {
        Element::I32 => 4,
        Element::F32 => 5,
        Element::F64 => 6,
        Element::U16 => 8,
        Element::I64 => 10,
    }
}
