//! What a container has become, version by version: decisions that are made once, and sorted runs of
//! what is in a version. docs/format/history.md has the bytes.
//!
//! Nothing here is believed before it is checked: a decision or a block is whole or it is an error.

mod decision;
mod item;
mod name;
mod rest;
mod run;

pub use decision::{Commit, Decision, GivenUp, Level, Parent, Verdict};
pub use item::{Data, Item, Key, Place};
pub use name::{Branch, RunId, WriteId};
pub use run::{
    BLOCK, Block, Directory, LONGEST, RunWriter, decode_block, decode_items, encode_items,
};

/// Why bytes are nothing that a history can use.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HistoryError {
    /// It is cut, or its checksum does not match.
    #[error("it is not whole")]
    NotWhole,
    /// It was written by another Esker.
    #[error("its format is {0}, and this Esker knows {FORMAT}")]
    Format(u32),
    /// It is whole, but it is another's.
    #[error("it is that of {0}")]
    Another(String),
    /// Its checksum matches, but no writer writes such a thing.
    #[error("{0}, which no writer does")]
    Odd(String),
}

/// The format of decisions and runs.
const FORMAT: u32 = 1;

fn odd(what: impl Into<String>) -> HistoryError {
    HistoryError::Odd(what.into())
}
