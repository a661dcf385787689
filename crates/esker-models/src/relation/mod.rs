//! Which elements of one dimension belong to which of another, and how much.
//!
//! A [`Relation`] is a sparse table in shares of rows: a rank has a contiguous range of them
//! ([`Shares`]), and no call gathers the whole. In a file it is stored in one of three ways: fixed width
//! with a fill value (UGRID's connectivity), ragged (offsets and indices), and either with weights, which
//! makes it a sparse matrix.
//!
//! Calls with a communicator are collective; ranks without rows take part in all of them.
//!
//! ```
//! use esker_models::relation::Relation;
//! // Two triangles that share the nodes 1 and 2.
//! esker::launch(2, |comm| {
//!     let rows: Vec<Vec<u64>> = vec![vec![0, 1, 2], vec![1, 3, 2]];
//!     let face_node = Relation::from_rows(&*comm, 4, &rows[comm.rank()..=comm.rank()]).unwrap();
//!     let node_face = face_node.invert(&*comm).unwrap();
//!     // Faces that share two nodes, which is an edge.
//!     let paths = face_node.compose(&*comm, &node_face).unwrap();
//!     let face_face = paths.at_least(2.0).without_itself();
//!     assert_eq!(face_face.row(0), [1 - comm.rank() as u64]);
//! });
//! ```

mod algebra;
pub(crate) mod exchange;
mod file;
mod metis;

use std::ops::Range;

use esker_comm::{Communicator, CommunicatorExt};

pub use file::{Ragged, Table};
pub use metis::{read_metis, write_metis};

use crate::error::{ModelError, Result, agree};
use crate::shares::Shares;

/// This rank's rows of a sparse table.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Relation {
    /// Rows of all ranks.
    pub rows: u64,
    /// Elements that a row can name: 0 to this, exclusive.
    pub columns: u64,
    /// The number of this rank's first row.
    pub first: u64,
    /// Where each of this rank's rows begins in `indices`, and where the last one ends.
    pub offsets: Vec<u64>,
    /// The elements of the rows, one after the other, from 0 on.
    pub indices: Vec<u64>,
    /// How much each belongs to its row, if that is said.
    pub weights: Option<Vec<f64>>,
}

impl Relation {
    /// A relation of the rows that each rank gives, in the order of ranks. Collective. Rows of ranks
    /// that have more than their share go to those who have less.
    pub fn from_rows<R: AsRef<[u64]>>(
        comm: &dyn Communicator,
        columns: u64,
        rows: &[R],
    ) -> Result<Relation> {
        let mut offsets = vec![0];
        let mut indices: Vec<u64> = Vec::new();
        for row in rows {
            indices.extend(row.as_ref());
            offsets.push(indices.len() as u64);
        }
        Relation::from_parts(comm, columns, offsets, indices, None)
    }

    /// A relation of rows in SciPy's CSR form: each rank gives its rows' offsets (from 0), indices and
    /// perhaps weights. Collective; rows are numbered in the order of ranks and shared anew.
    pub fn from_parts(
        comm: &dyn Communicator,
        columns: u64,
        offsets: Vec<u64>,
        indices: Vec<u64>,
        weights: Option<Vec<f64>>,
    ) -> Result<Relation> {
        let own = offsets.len().saturating_sub(1) as u64;
        let mut first = [own];
        comm.exclusive_scan(&mut first)?;
        let rows = comm.sum_u64(own)?;
        let given = Relation { rows, columns, first: first[0], offsets, indices, weights };
        let checked = given.check();
        agree(comm, checked)?;
        // Whether weights are there must be everyone's: an empty rank has either.
        let weighted = comm.any(given.weights.is_some())?;
        let lacking = weighted && given.weights.is_none() && !given.indices.is_empty();
        let refuse = || ModelError::Asked("some ranks give weights and some do not".to_string());
        agree(comm, if lacking { Err(refuse()) } else { Ok(()) })?;
        given.shared_anew(comm, weighted)
    }

    /// Fails unless offsets rise, and end where the indices do, and indices are elements.
    fn check(&self) -> Result<()> {
        let wrong = |what: String| Err(ModelError::Asked(what));
        if self.offsets.first().is_none_or(|first| *first != 0) {
            return wrong("the first offset of a relation is 0".to_string());
        }
        if let Some(at) = self.offsets.windows(2).position(|w| w[1] < w[0]) {
            let (row, [a, b]) = (self.first + at as u64, [self.offsets[at], self.offsets[at + 1]]);
            return wrong(format!("row {row}: it begins at {a} and ends at {b}"));
        }
        let (end, len) = (self.offsets.last().copied().unwrap_or(0), self.indices.len());
        if end != len as u64 || self.weights.as_ref().is_some_and(|w| w.len() != len) {
            return wrong(format!("the rows end at {end}, but there are {len} indices"));
        }
        if let Some(at) = self.indices.iter().position(|index| *index >= self.columns) {
            let row = self.offsets.partition_point(|offset| *offset <= at as u64) - 1;
            let (row, index, columns) = (self.first + row as u64, self.indices[at], self.columns);
            return wrong(format!("row {row}: element {index} of {columns}"));
        }
        Ok(())
    }

    /// This rank's rows.
    pub fn own_rows(&self) -> Range<u64> {
        self.first..self.first + self.offsets.len().saturating_sub(1) as u64
    }

    /// The elements of one of this rank's rows, counted from its first; none if it is not there.
    pub fn row(&self, at: usize) -> &[u64] {
        let range = self.range(at);
        &self.indices[range]
    }

    /// The weights of that row, if there are any.
    pub fn row_weights(&self, at: usize) -> Option<&[f64]> {
        let range = self.range(at);
        Some(&self.weights.as_ref()?[range])
    }

    /// The longest row of all ranks. Collective.
    pub fn width(&self, comm: &dyn Communicator) -> Result<u64> {
        let longest = self.offsets.windows(2).map(|w| w[1] - w[0]).max().unwrap_or(0);
        Ok(comm.max_u64(longest)?)
    }

    /// How the rows are shared.
    pub fn shares(&self, comm: &dyn Communicator) -> Shares {
        Shares::new(self.rows, comm.size())
    }

    fn range(&self, at: usize) -> Range<usize> {
        match self.offsets.get(at..at + 2) {
            Some([begin, end]) => *begin as usize..*end as usize,
            _ => 0..0,
        }
    }
}
