//! Who knows of decisions from another place: so that one that is gone is missed, and one that nobody was promised is not in the way.

use std::fmt::Debug;

use esker_format::history::Branch;

use crate::History;
use crate::error::Result;

/// Somebody who knows of decisions from another place.
///
/// A store that keeps what it has published needs none. On a file system a decision that did not wait for the disk can be torn by a loss of power, or go with it.
pub trait Witness: Send + Sync + Debug {
    /// The highest number that is known to have been decided, or 0.
    fn highest(&self, branch: &Branch) -> Result<u64>;

    /// Whether a decision that cannot be read, or is not there, may have gone without a promise being broken. `is_there` says that there is something under its name.
    fn may_be_lost(&self, branch: &Branch, number: u64, is_there: bool) -> Result<bool>;

    /// Whether what is there is known to be something else than what was decided.
    fn is_another(&self, branch: &Branch, number: u64, sum: u32) -> Result<bool>;

    /// Is told that the decision on a number, which somebody had prepared, has been promoted. It may be told so more than once, of a number that was
    /// promoted by another one, too.
    fn promoted(&self, _: &History, _: &Branch, _: u64) -> Result<()> {
        Ok(())
    }
}

/// Nobody knows more than the decisions themselves: all of them are needed.
#[derive(Debug, Clone, Copy, Default)]
pub struct Nobody;

impl Witness for Nobody {
    fn highest(&self, _: &Branch) -> Result<u64> {
        Ok(0)
    }

    fn may_be_lost(&self, _: &Branch, _: u64, _: bool) -> Result<bool> {
        Ok(false)
    }

    fn is_another(&self, _: &Branch, _: u64, _: u32) -> Result<bool> {
        Ok(false)
    }
}
