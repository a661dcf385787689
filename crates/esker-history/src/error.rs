//! What can go wrong with versions.

use esker_format::history::{Branch, HistoryError};
use esker_store::StoreError;

/// A result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a commit cannot be put behind what others have committed meanwhile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// What both have changed.
    pub what: String,
    /// The version that the other made of it.
    pub number: u64,
}

/// What can go wrong with versions.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Something that was committed cannot be read.
    #[error("{name} is damaged: {source}")]
    Damaged {
        /// The object.
        name: String,
        /// What is wrong.
        source: HistoryError,
    },
    /// Something that a version consists of is not there.
    #[error("{name} is not there, though version {number} of branch {branch} needs it")]
    Gone {
        /// The object.
        name: String,
        /// The version that needs it.
        branch: Branch,
        /// Its number.
        number: u64,
    },
    /// There is no such version.
    #[error("branch {branch} has no version {number}; its newest is {newest}")]
    NoVersion {
        /// Where it was looked for.
        branch: Branch,
        /// What was asked for.
        number: u64,
        /// What there is.
        newest: u64,
    },
    /// The version may not be opened any more.
    #[error("version {number} of branch {branch} has expired")]
    Expired {
        /// Its branch.
        branch: Branch,
        /// Its number.
        number: u64,
    },
    /// There is no version at all.
    #[error("branch {0} has no version yet")]
    Empty(Branch),
    /// No branch or tag has this name.
    #[error("there is no branch, tag or version {0:?}")]
    NoName(String),
    /// Somebody else has changed the same.
    #[error("{}: version {} of another writer has changed it since version {base}", .conflict.what, .conflict.number)]
    Conflict {
        /// What and who.
        conflict: Conflict,
        /// The version that the commit was made for.
        base: u64,
    },
    /// The number was decided by somebody else.
    #[error("number {number} of branch {branch} was decided by another writer")]
    Decided {
        /// Its branch.
        branch: Branch,
        /// The number.
        number: u64,
    },
    /// What it needs was given up.
    #[error("it needs number {number} of branch {branch}, which was given up")]
    Needed {
        /// Its branch.
        branch: Branch,
        /// The number.
        number: u64,
    },
    /// What it needs is not decided.
    #[error("it needs number {number} of branch {branch}, on which nobody has decided yet")]
    Waiting {
        /// Its branch.
        branch: Branch,
        /// The number.
        number: u64,
    },
    /// Everything was replaced since the commit's base.
    #[error("version {number} of branch {branch} has replaced everything before it")]
    Replaced {
        /// Its branch.
        branch: Branch,
        /// The version that has.
        number: u64,
    },
    /// A collection of garbage has given up on this writer.
    #[error(
        "this writer was given up by a collection of garbage (version {number} of branch {branch}): what it has \
         not committed is void, and must be written again"
    )]
    Fenced {
        /// The branch that it was to commit to.
        branch: Branch,
        /// The version that says so.
        number: u64,
    },
    /// Nobody knows whether the commit was made.
    #[error("whether number {number} of branch {branch} was committed cannot be told: {source}")]
    InDoubt {
        /// Its branch.
        branch: Branch,
        /// The number.
        number: u64,
        /// Why it cannot be told.
        source: StoreError,
    },
    /// Something is not as it must be.
    #[error("{0}")]
    Wrong(String),
}

impl Error {
    pub(crate) fn damaged(name: &str, source: HistoryError) -> Error {
        Error::Damaged { name: name.to_string(), source }
    }
}
