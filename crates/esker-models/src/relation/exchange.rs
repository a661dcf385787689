//! Rows on their way between ranks: words of 64 bits.

use std::collections::HashMap;

use esker_comm::{Communicator, CommunicatorExt, Message};

use super::Relation;
use crate::error::{ModelError, Result, agree};
use crate::shares::Shares;

impl Relation {
    /// The rows of these numbers, of any rank, in this order, whatever their number; a row may be asked for more
    /// than once. The result is this rank's alone: its rows are numbered from 0. Collective.
    pub fn fetch(&self, comm: &dyn Communicator, wanted: &[u64]) -> Result<Relation> {
        let outside = wanted.iter().find(|row| **row >= self.rows);
        let refuse = |row: &u64| ModelError::Asked(format!("row {row} of {}", self.rows));
        agree(comm, outside.map_or(Ok(()), |row| Err(refuse(row))))?;
        let weighted = comm.any(self.weights.is_some())?;
        let shares = self.shares(comm);
        let mut each: Vec<u64> = wanted.to_vec();
        each.sort_unstable();
        each.dedup();
        let asked = exchange(comm, by_owner(&shares, &each, |row, words| words.push(row)))?;
        let answers = asked.iter().map(|(from, rows)| {
            let mut words = Vec::new();
            for row in rows {
                self.pack((row - self.first) as usize, *row, weighted, &mut words);
            }
            (*from, words)
        });
        let answers = exchange(comm, answers.collect())?;
        // Owners are in the order of their rows, and so are their answers.
        let mut places: HashMap<u64, (usize, usize)> = HashMap::new();
        let mut all = Relation { weights: weighted.then(Vec::new), ..Relation::default() };
        for (_, words) in &answers {
            unpack(words, weighted, |row, indices, weights| {
                let begin = all.indices.len();
                all.indices.extend(indices);
                if let Some(all) = &mut all.weights {
                    all.extend(weights.iter().map(|bits| f64::from_bits(*bits)));
                }
                places.insert(row, (begin, all.indices.len()));
            })?;
        }
        let mut found = Relation {
            rows: wanted.len() as u64,
            columns: self.columns,
            first: 0,
            offsets: vec![0],
            indices: Vec::new(),
            weights: weighted.then(Vec::new),
        };
        for row in wanted {
            let (begin, end) = places.get(row).copied().unwrap_or((0, 0));
            found.indices.extend(&all.indices[begin..end]);
            if let (Some(found), Some(all)) = (&mut found.weights, &all.weights) {
                found.extend(&all[begin..end]);
            }
            found.offsets.push(found.indices.len() as u64);
        }
        Ok(found)
    }

    /// The same rows in equal shares. Collective.
    pub(super) fn shared_anew(self, comm: &dyn Communicator, weighted: bool) -> Result<Relation> {
        let shares = self.shares(comm);
        let mine = shares.of(comm.rank());
        let same = self.own_rows() == mine || (self.own_rows().is_empty() && mine.is_empty());
        if comm.all(same)? {
            let weights = self.weights.or(weighted.then(Vec::new));
            return Ok(Relation { first: mine.start, weights, ..self });
        }
        let rows: Vec<u64> = self.own_rows().collect();
        let first = self.first;
        let messages = by_owner(&shares, &rows, |row, words| {
            self.pack((row - first) as usize, row, weighted, words);
        });
        let mut shared = Relation {
            first: mine.start,
            offsets: vec![0],
            indices: Vec::new(),
            weights: weighted.then(Vec::new),
            ..self
        };
        for (_, words) in exchange(comm, messages)? {
            unpack(&words, weighted, |_, indices, weights| {
                shared.indices.extend(indices);
                if let Some(all) = &mut shared.weights {
                    all.extend(weights.iter().map(|bits| f64::from_bits(*bits)));
                }
                shared.offsets.push(shared.indices.len() as u64);
            })?;
        }
        Ok(shared)
    }

    /// A row as words: its number, its length, its elements, its weights.
    fn pack(&self, at: usize, row: u64, weighted: bool, words: &mut Vec<u64>) {
        let indices = self.row(at);
        words.extend([row, indices.len() as u64]);
        words.extend(indices);
        if weighted {
            let weights = self.row_weights(at).unwrap_or_default();
            words.extend(weights.iter().map(|weight| weight.to_bits()));
        }
    }
}

/// Calls `each` with the number, elements and weights of every row in a message.
fn unpack(words: &[u64], weighted: bool, mut each: impl FnMut(u64, &[u64], &[u64])) -> Result<()> {
    let garbled = || ModelError::Dataset(esker::Error::Garbled);
    let mut rest = words;
    while let [row, len, after @ ..] = rest {
        let len = usize::try_from(*len).map_err(|_| garbled())?;
        let (indices, after) = after.split_at_checked(len).ok_or_else(garbled)?;
        let (weights, after) =
            after.split_at_checked(if weighted { len } else { 0 }).ok_or_else(garbled)?;
        each(*row, indices, weights);
        rest = after;
    }
    if rest.is_empty() { Ok(()) } else { Err(garbled()) }
}

/// A message for each owner of sorted rows.
pub(crate) fn by_owner(
    shares: &Shares,
    sorted: &[u64],
    mut pack: impl FnMut(u64, &mut Vec<u64>),
) -> Vec<(usize, Vec<u64>)> {
    let mut messages: Vec<(usize, Vec<u64>)> = Vec::new();
    for row in sorted {
        let owner = shares.owner(*row);
        if messages.last().is_none_or(|(last, _)| *last != owner) {
            messages.push((owner, Vec::new()));
        }
        if let Some((_, words)) = messages.last_mut() {
            pack(*row, words);
        }
    }
    messages
}

/// Sends words to ranks, and gives those that came with their ranks, in the order of ranks. Collective.
pub(crate) fn exchange(
    comm: &dyn Communicator,
    messages: Vec<(usize, Vec<u64>)>,
) -> Result<Vec<(usize, Vec<u64>)>> {
    let messages = messages.into_iter().map(|(to, words)| (to, Message::from_u64s(&words)));
    let came = comm.sparse_exchange(messages.collect())?;
    Ok(came.into_iter().map(|(from, message)| (from, message.to_u64s())).collect())
}
