//! What a kernel does: a schema, and the requests of each rank.
//!
//! A [`Plan`] is a pure description. Esker's worker and the peers' programs all carry out the
//! same one, so that what they are timed at is the same work.

use esker_format::runs::advance;

/// A file to be written and read, and who writes and reads what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// Dimensions; at most one is the record dimension.
    pub dims: Vec<Dim>,
    /// Variables.
    pub vars: Vec<Var>,
    /// Number of records in the end.
    pub records: u64,
    /// The filters of chunks, as `deflate,1` or `shuffle deflate,6`; none if empty.
    pub pipeline: String,
    /// Whether each step is a transaction: where there are versions, it makes the next one, and where the disk is
    /// waited for, that is done behind each step.
    pub transactions: bool,
    /// The collective steps, one after the other, the same on all ranks.
    pub steps: Vec<Calls>,
    /// The requests of each rank.
    pub ranks: Vec<RankPlan>,
}

/// A dimension.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dim {
    /// Its name.
    pub name: String,
    /// Its length; `None` for the record dimension.
    pub len: Option<u64>,
}

/// A variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Var {
    /// Its name.
    pub name: String,
    /// Its type, in the file and in memory.
    pub element: Element,
    /// Positions in [`Plan::dims`], slowest first.
    pub dims: Vec<usize>,
    /// What its values are like.
    pub data: Data,
    /// The shape of its chunks, for libraries that have chunks; empty if it has none.
    pub chunk: Vec<u64>,
}

/// What the values of a variable are like, which matters to those who compress them. All are
/// functions of an element's place ([`values`](crate::values)).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Data {
    /// Bits that differ everywhere, cheap to make.
    Distinct,
    /// A tile that is repeated along all dimensions, of which `percent` are random bits and the
    /// rest are zeros (seeds/000 §5.5.1).
    Tile {
        /// How many elements of a hundred are random.
        percent: u64,
        /// The tile's length along each dimension.
        edge: u64,
    },
    /// A smooth field with some noise, in single precision.
    Field,
    /// An attribute of events: counters, or measurements most of which are missing.
    Column,
    /// Of a matrix of the first variables and of parts: the crc32c of the bytes in memory that part j of variable i has, where a
    /// variable of one dimension is cut into even parts.
    Sums,
}

/// The types that kernels use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Element {
    /// 4-byte integer.
    I32,
    /// 4-byte floating point.
    F32,
    /// 8-byte floating point.
    F64,
    /// 8-byte integer.
    I64,
    /// 2-byte integer without a sign.
    U16,
}

impl Element {
    /// All.
    pub const ALL: [Element; 5] =
        [Element::I32, Element::F32, Element::F64, Element::I64, Element::U16];

    /// Bytes of one.
    pub fn size(self) -> u64 {
        match self {
            Element::U16 => 2,
            Element::I32 | Element::F32 => 4,
            Element::F64 | Element::I64 => 8,
        }
    }
}

/// How the requests of a step are called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Calls {
    /// Exactly one request on each rank, of the same variable, by a blocking collective call.
    Blocking,
    /// Any number on each rank, queued and then waited for together.
    Queued,
    /// Any number on each rank, each by a blocking call of its own that no other rank takes
    /// part in.
    Independent,
}

/// What one rank does.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RankPlan {
    /// Lists of hyperslabs; many requests share one.
    pub lists: Vec<Slabs>,
    /// The requests of each step.
    pub steps: Vec<Vec<Request>>,
}

/// A request: hyperslabs of a variable. Memory is dense, in the order of the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// Position in [`Plan::vars`].
    pub var: usize,
    /// Position in [`RankPlan::lists`].
    pub list: usize,
    /// The record, for lists without the record dimension of a variable that has it.
    pub record: Option<u64>,
}

/// A list of hyperslabs of a variable, or of one record of it, as flat arrays.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slabs {
    /// Dimensions; without the record dimension where a request names the record.
    pub rank: usize,
    /// How many there are.
    pub len: usize,
    /// `len` times `rank` numbers.
    pub starts: Vec<u64>,
    /// `len` times `rank` numbers.
    pub counts: Vec<u64>,
}

impl Slabs {
    /// One hyperslab.
    pub fn one(start: &[u64], count: &[u64]) -> Slabs {
        Slabs { rank: start.len(), len: 1, starts: start.to_vec(), counts: count.to_vec() }
    }

    /// The start and count of each.
    pub fn iter(&self) -> impl Iterator<Item = (&[u64], &[u64])> {
        (0..self.len).map(|i| {
            let at = i * self.rank..(i + 1) * self.rank;
            (&self.starts[at.clone()], &self.counts[at])
        })
    }

    /// Elements selected.
    pub fn elements(&self) -> u64 {
        self.iter().map(|(_, count)| count.iter().product::<u64>()).sum()
    }

    /// The same hyperslabs of one record: starts and counts with a first dimension more.
    pub fn of_record(&self, record: Option<u64>) -> Slabs {
        let Some(record) = record else { return self.clone() };
        let (mut starts, mut counts) = (Vec::new(), Vec::new());
        for (start, count) in self.iter() {
            starts.push(record);
            starts.extend_from_slice(start);
            counts.push(1);
            counts.extend_from_slice(count);
        }
        Slabs { rank: self.rank + 1, len: self.len, starts, counts }
    }

    /// Calls `run` with the first linear index and the length of each row of each hyperslab of
    /// an array of this shape, in the order of memory.
    pub fn for_each_run(&self, shape: &[u64], mut run: impl FnMut(u64, u64)) {
        let mut index = Vec::new();
        for (start, count) in self.iter() {
            if count.contains(&0) {
                continue;
            }
            let Some((last, outer)) = count.split_last() else {
                run(0, 1);
                continue;
            };
            index.clear();
            index.resize(outer.len(), 0);
            loop {
                let mut linear = 0;
                for d in 0..shape.len() {
                    let at = start[d] + index.get(d).copied().unwrap_or(0);
                    linear = linear * shape[d] + at;
                }
                run(linear, *last);
                if advance(&mut index, outer).is_none() {
                    break;
                }
            }
        }
    }
}

impl Plan {
    /// Whether a variable has the record dimension.
    pub fn is_record(&self, var: &Var) -> bool {
        var.dims.first().is_some_and(|d| self.dims[*d].len.is_none())
    }

    /// The shape of a variable, or of one record of it.
    pub fn inner_shape(&self, var: &Var) -> Vec<u64> {
        var.dims.iter().filter_map(|d| self.dims[*d].len).collect()
    }

    /// Elements of a variable, or of one record of it.
    pub fn inner_elements(&self, var: &Var) -> u64 {
        self.inner_shape(var).iter().product()
    }

    /// The shape that a list's hyperslabs are of: of one record, or of all if the list has the
    /// record dimension too.
    pub fn shape(&self, var: &Var, list: &Slabs) -> Vec<u64> {
        let inner = var.dims.iter().skip(var.dims.len() - list.rank);
        inner.map(|d| self.dims[*d].len.unwrap_or(self.records)).collect()
    }

    /// Bytes that all ranks write together.
    pub fn bytes(&self) -> u64 {
        (0..self.ranks.len()).map(|rank| self.rank_bytes(rank)).sum()
    }

    /// Bytes that a rank writes.
    pub fn rank_bytes(&self, rank: usize) -> u64 {
        let rank = &self.ranks[rank];
        let elements: Vec<u64> = rank.lists.iter().map(Slabs::elements).collect();
        let requests = rank.steps.iter().flatten();
        requests.map(|r| elements[r.list] * self.vars[r.var].element.size()).sum()
    }

    /// Rows of hyperslabs that all ranks write together: what a library has to place.
    pub fn runs(&self) -> u64 {
        let of_rank = |rank: &RankPlan| -> u64 {
            let rows = |list: &Slabs| -> u64 {
                list.iter().map(|(_, c)| c.iter().rev().skip(1).product::<u64>()).sum()
            };
            let rows: Vec<u64> = rank.lists.iter().map(rows).collect();
            rank.steps.iter().flatten().map(|r| rows[r.list]).sum()
        };
        self.ranks.iter().map(of_rank).sum()
    }
}
