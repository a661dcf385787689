//! Versions of a container, made by writers that do not know each other, without a server.
//!
//! A [`History`] has branches of numbered versions. A number is decided once, by whoever publishes its decision first; what a version
//! consists of is reached through immutable runs, of which it has a logarithm of all that were ever written. Nothing here knows
//! what values are: an [`Item`] says which elements it is about and has a value that its layout understands.
//!
//! ```
//! use std::sync::Arc;
//! use esker_history::{Attempt, Branch, History, Item, Key, Strict};
//! # fn main() -> esker_history::Result<()> {
//! let history = History::new(Arc::new(esker_store::MemorySegments::default()), 1);
//! let fact = Item::fact(16, b"title", Some(b"first".to_vec()));
//! let attempt = Attempt::new(Branch::main(), 0).items(vec![fact]).message("begin");
//! assert_eq!(history.commit(attempt, &mut Strict::default())?, 1);
//! let version = history.last(&Branch::main())?;
//! assert_eq!(version.fact(16, b"title")?, Some(b"first".to_vec()));
//! # Ok(()) }
//! ```
//!
//! docs/rooms/history.md walks through it, docs/format/history.md has the bytes. Read on in `commit.rs`.
#![forbid(unsafe_code)]

mod attempt;
mod collect;
mod commit;
mod error;
mod expire;
mod find;
mod grow;
mod keys;
mod merge;
mod prepared;
mod rebase;
mod refs;
mod runs;
mod version;
mod witness;

pub use attempt::Attempt;
pub use collect::{Collected, Garbage, Referring};
pub use error::{Conflict, Error, Result};
pub use esker_format::history::{
    Branch, Commit, Data, Decision, GivenUp, Item, Key, Level, RunId, Verdict, WriteId,
};
pub use expire::{Keep, Openable};
pub use keys::is_run;
pub use prepared::Turn;
pub use rebase::{OnConflict, Rebase, Strict};
pub use refs::{Name, tag_in};
pub use version::Version;
pub use witness::{Nobody, Witness};

use std::sync::Arc;

use esker_store::Segments;

/// Facts of the history itself.
pub mod spaces {
    /// Tags, on `main`.
    pub const TAGS: u8 = 1;
    /// Branches, on `main`.
    pub const BRANCHES: u8 = 2;
    /// Versions that may not be opened any more, on their branch.
    pub const EXPIRED: u8 = 3;
    /// Writers whose commits are void, on every branch.
    pub const FENCED: u8 = 4;
    /// Numbers without which a prepared commit is void, too; only where it is prepared.
    pub const NEEDED: u8 = 7;
    /// The first that is a dataset's own.
    pub const FIRST_FREE: u8 = 16;
}

/// The versions of one container, as one writer or reader sees them.
#[derive(Debug, Clone)]
pub struct History {
    segments: Arc<dyn Segments>,
    /// Who writes: random, and part of the names of everything that this one makes.
    writer: u64,
    /// Who else knows of decisions.
    witness: Arc<dyn Witness>,
    /// The kind of facts that are numbers which only grow.
    growing: Option<u8>,
}

impl History {
    /// The history in `segments`, for the writer of this number.
    pub fn new(segments: Arc<dyn Segments>, writer: u64) -> History {
        History { segments, writer, witness: Arc::new(Nobody), growing: None }
    }

    /// With a kind of facts that are numbers (varints) which only grow: where two have one, the larger is so.
    pub fn growing(mut self, space: u8) -> History {
        self.growing = Some(space);
        self
    }

    /// With somebody else who knows of decisions.
    pub fn witnessed(mut self, witness: Arc<dyn Witness>) -> History {
        self.witness = witness;
        self
    }

    /// The writer's number.
    pub fn writer(&self) -> u64 {
        self.writer
    }

    /// Where it is kept.
    pub fn segments(&self) -> &dyn Segments {
        &*self.segments
    }
}
