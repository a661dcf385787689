//! What ranks often do together, from the trait's operations.

use std::fmt::{Debug, Display};

use thiserror::Error;

use crate::{CommError, Communicator, Message, ReduceOp, Reduction, Result, Source, Tag};

/// The tag of [`CommunicatorExt::merge_up`]; its own messages are all received before it ends.
const MERGE: Tag = Tag::MAX;

/// Why the ranks did not [agree](CommunicatorExt::agree).
#[derive(Debug, Error)]
pub enum Disagreement<E: Debug + Display> {
    /// At least one rank failed; every rank gets the same rank and message.
    #[error("rank {rank}: {message}")]
    Failed {
        /// The lowest rank that failed.
        rank: usize,
        /// Its error in words.
        message: String,
        /// This rank's own error, if it failed too.
        own: Option<E>,
    },
    /// The ranks could not be asked.
    #[error(transparent)]
    Comm(#[from] CommError),
}

impl<E: Debug + Display + From<CommError>> Disagreement<E> {
    /// As one error: this rank's own, if it failed too; otherwise what `other` makes of the rank that did and its words.
    pub fn into_error(self, other: impl FnOnce(usize, String) -> E) -> E {
        match self {
            Disagreement::Failed { own: Some(error), .. } => error,
            Disagreement::Failed { rank, message, own: None } => other(rank, message),
            Disagreement::Comm(error) => error.into(),
        }
    }
}

/// Operations that every [`Communicator`] has because they are made of the trait's own.
/// All are collective.
pub trait CommunicatorExt: Communicator {
    /// Shares an outcome: `Ok` on every rank, or the same failure, that of the lowest rank that
    /// failed, on every rank. Costs one reduction when nobody failed. Call it before acting.
    fn agree<T, E: Debug + Display>(
        &self,
        outcome: std::result::Result<T, E>,
    ) -> std::result::Result<T, Disagreement<E>> {
        self.agree_with(outcome, [0; 0]).map(|(value, [])| value)
    }

    /// The same, with the largest of each of the ranks' numbers, in the same reduction.
    fn agree_with<T, E: Debug + Display, const N: usize>(
        &self,
        outcome: std::result::Result<T, E>,
        mut numbers: [u64; N],
    ) -> std::result::Result<(T, [u64; N]), Disagreement<E>> {
        // The lowest rank as the largest complement, which no rank has that is 0.
        let mut failed = [if outcome.is_ok() { 0 } else { !(self.rank() as u64) }];
        if self.size() > 1 {
            let mut values = [&failed[..], &numbers[..]].concat();
            self.all_reduce(Reduction::U64(&mut values), ReduceOp::Max)?;
            failed.copy_from_slice(&values[..1]);
            numbers.copy_from_slice(&values[1..]);
        }
        match outcome {
            Ok(value) if failed == [0] => Ok((value, numbers)),
            outcome => {
                let lowest = !failed[0];
                let own = outcome.err();
                let words = own.as_ref().map(|e| e.to_string()).unwrap_or_default();
                let rank = lowest as usize;
                let message = self.broadcast(rank, Message::from(words))?;
                let message = String::from_utf8_lossy(&message).into_owned();
                Err(Disagreement::Failed { rank, message, own })
            }
        }
    }

    /// Whether every rank gave the same number, for instance a hash. One reduction.
    fn all_equal(&self, value: u64) -> Result<bool> {
        // The smallest complement is the complement of the largest value.
        let mut bounds = [value, !value];
        self.all_reduce(Reduction::U64(&mut bounds), ReduceOp::Min)?;
        Ok(bounds[0] == !bounds[1])
    }

    /// The smallest of the ranks' numbers.
    fn min_u64(&self, value: u64) -> Result<u64> {
        reduce_one(self, value, ReduceOp::Min)
    }

    /// The largest of the ranks' numbers.
    fn max_u64(&self, value: u64) -> Result<u64> {
        reduce_one(self, value, ReduceOp::Max)
    }

    /// The sum of the ranks' numbers.
    fn sum_u64(&self, value: u64) -> Result<u64> {
        reduce_one(self, value, ReduceOp::Sum)
    }

    /// Whether it is true on any rank.
    fn any(&self, value: bool) -> Result<bool> {
        Ok(self.max_u64(value.into())? == 1)
    }

    /// Whether it is true on every rank.
    fn all(&self, value: bool) -> Result<bool> {
        Ok(self.min_u64(value.into())? == 1)
    }

    /// Merges the ranks' messages pairwise up a binary tree; rank 0 gets the result, the others
    /// `None`. `merge` is given the message of lower ranks first and is called at most
    /// log2(size) times by a rank, so that no rank ever holds more than two messages.
    fn merge_up<F>(&self, mine: Message, mut merge: F) -> Result<Option<Message>>
    where
        F: FnMut(Message, Message) -> Message,
    {
        let (rank, size) = (self.rank(), self.size());
        let mut held = mine;
        let mut reach = 1;
        while reach < size {
            if rank & reach != 0 {
                self.isend(rank - reach, MERGE, held)?.wait()?;
                return Ok(None);
            }
            if rank + reach < size {
                let higher = self.irecv(Source::Rank(rank + reach), MERGE)?.wait()?;
                held = merge(held, higher.message);
            }
            reach *= 2;
        }
        Ok(Some(held))
    }
}

impl<C: Communicator + ?Sized> CommunicatorExt for C {}

fn reduce_one<C: Communicator + ?Sized>(comm: &C, value: u64, op: ReduceOp) -> Result<u64> {
    let mut values = [value];
    comm.all_reduce(Reduction::U64(&mut values), op)?;
    Ok(values[0])
}
