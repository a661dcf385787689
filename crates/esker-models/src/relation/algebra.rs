//! Inverted, composed, thinned: each rank has its share of the result.

use esker_comm::{Communicator, CommunicatorExt};

use super::Relation;
use super::exchange::exchange;
use crate::error::{ModelError, Result, agree};
use crate::shares::Shares;

impl Relation {
    /// The relation the other way round: for each element the rows that name it, in rising order (the
    /// transpose of a sparse matrix). Collective.
    pub fn invert(&self, comm: &dyn Communicator) -> Result<Relation> {
        let weighted = comm.any(self.weights.is_some())?;
        let shares = Shares::new(self.columns, comm.size());
        let mut messages: Vec<Vec<u64>> = vec![Vec::new(); comm.size()];
        for (at, row) in self.own_rows().enumerate() {
            for (place, column) in self.row(at).iter().enumerate() {
                let words = &mut messages[shares.owner(*column)];
                words.extend([*column, row]);
                if weighted {
                    let weight = self.row_weights(at).and_then(|w| w.get(place)).copied();
                    words.push(weight.unwrap_or(0.0).to_bits());
                }
            }
        }
        let messages = messages.into_iter().enumerate().filter(|(_, words)| !words.is_empty());
        let came = exchange(comm, messages.collect())?;
        let mine = shares.of(comm.rank());
        let entries = || {
            let each = came.iter().flat_map(|(_, w)| w.chunks_exact(if weighted { 3 } else { 2 }));
            each.map(|entry| ((entry[0] - mine.start) as usize, entry))
        };
        // Counted, then placed: ranks come in their order, and so do their rows.
        let mut offsets = vec![0u64; (mine.end - mine.start) as usize + 1];
        entries().for_each(|(at, _)| offsets[at + 1] += 1);
        (1..offsets.len()).for_each(|at| offsets[at] += offsets[at - 1]);
        let mut next = offsets.clone();
        let total = offsets.last().copied().unwrap_or(0) as usize;
        let mut indices = vec![0; total];
        let mut weights = weighted.then(|| vec![0.0; total]);
        for (at, entry) in entries() {
            let place = next[at] as usize;
            next[at] += 1;
            indices[place] = entry[1];
            if let (Some(weights), Some(bits)) = (&mut weights, entry.get(2)) {
                weights[place] = f64::from_bits(*bits);
            }
        }
        let (rows, columns, first) = (self.columns, self.rows, mine.start);
        Ok(Relation { rows, columns, first, offsets, indices, weights })
    }

    /// This relation followed by another one: which of the other's elements each row reaches, in rising order, with
    /// the sum over all ways of the products of weights (the product of two sparse matrices). A relation
    /// without weights counts as 1 everywhere, so that two such give the number of ways. Collective.
    pub fn compose(&self, comm: &dyn Communicator, other: &Relation) -> Result<Relation> {
        let fit = match self.columns == other.rows {
            true => Ok(()),
            false => Err(ModelError::Asked(format!(
                "a relation to {} elements cannot be followed by one with {} rows",
                self.columns, other.rows
            ))),
        };
        agree(comm, fit)?;
        let mut between = self.indices.clone();
        between.sort_unstable();
        between.dedup();
        let far = other.fetch(comm, &between)?;
        let mut offsets = vec![0];
        let (mut indices, mut weights) = (Vec::new(), Vec::new());
        let mut reached: Vec<(u64, f64)> = Vec::new();
        for at in 0..self.offsets.len().saturating_sub(1) {
            reached.clear();
            for (place, step) in self.row(at).iter().enumerate() {
                let first = self.row_weights(at).map_or(1.0, |w| w[place]);
                let Ok(row) = between.binary_search(step) else { continue };
                for (place, to) in far.row(row).iter().enumerate() {
                    let second = far.row_weights(row).map_or(1.0, |w| w[place]);
                    reached.push((*to, first * second));
                }
            }
            // Stable, so that sums are taken in the order of the ways.
            reached.sort_by_key(|(to, _)| *to);
            let begin = indices.len();
            for (to, weight) in &reached {
                match weights.last_mut() {
                    Some(sum) if indices.len() > begin && indices.last() == Some(to) => {
                        *sum += weight
                    }
                    _ => {
                        indices.push(*to);
                        weights.push(*weight);
                    }
                }
            }
            offsets.push(indices.len() as u64);
        }
        let (rows, columns, first) = (self.rows, other.columns, self.first);
        Ok(Relation { rows, columns, first, offsets, indices, weights: Some(weights) })
    }

    /// Only what weighs at least so much, without the weights.
    pub fn at_least(&self, least: f64) -> Relation {
        let mut kept = self.thinned(|at, place, _| {
            self.row_weights(at).is_none_or(|weights| weights[place] >= least)
        });
        kept.weights = None;
        kept
    }

    /// Without rows' relations to themselves: for relations of a dimension with itself.
    pub fn without_itself(&self) -> Relation {
        self.thinned(|at, _, column| column != self.first + at as u64)
    }

    fn thinned(&self, keep: impl Fn(usize, usize, u64) -> bool) -> Relation {
        let (mut offsets, mut indices) = (vec![0], Vec::new());
        let mut weights = self.weights.as_ref().map(|_| Vec::new());
        for at in 0..self.offsets.len().saturating_sub(1) {
            for (place, column) in self.row(at).iter().enumerate() {
                if keep(at, place, *column) {
                    indices.push(*column);
                    if let (Some(kept), Some(all)) = (&mut weights, self.row_weights(at)) {
                        kept.push(all[place]);
                    }
                }
            }
            offsets.push(indices.len() as u64);
        }
        let (rows, columns, first) = (self.rows, self.columns, self.first);
        Relation { rows, columns, first, offsets, indices, weights }
    }
}
