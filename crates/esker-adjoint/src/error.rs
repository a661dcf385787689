//! What can go wrong with an adjoint run.

use std::path::PathBuf;

use esker_codec::CodecError;
use esker_comm::CommError;
use esker_store::{StoreError, shown_path};
use esker_text::shown;

use crate::schedule::{Place, ScheduleError};

/// A result of this crate.
pub type Result<T> = std::result::Result<T, AdjointError>;

/// An adjoint run that cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum AdjointError {
    /// The schedule cannot be.
    #[error(transparent)]
    Schedule(#[from] ScheduleError),
    /// The model failed.
    #[error("the model failed in {call}: {message}")]
    Model {
        /// What was called.
        call: String,
        /// What it said.
        message: String,
    },
    /// A file could not be written or read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Ranks could not talk.
    #[error(transparent)]
    Comm(#[from] CommError),
    /// Another rank failed.
    #[error("another rank failed at the {at}; its own error says why")]
    OtherRank {
        /// What this rank was doing.
        at: String,
    },
    /// An array cannot be encoded.
    #[error("the array '{array}' at step {step}: {source}")]
    Codec {
        /// The array.
        array: String,
        /// The step.
        step: u64,
        /// What the filter said.
        source: CodecError,
    },
    /// A checkpoint that is not what was stored.
    #[error("the checkpoint of step {step} in {place} is damaged{}: {why}", array.as_ref().map(|a| format!(", array '{}'", shown(a))).unwrap_or_default())]
    Damaged {
        /// The step.
        step: u64,
        /// Where it is.
        place: Place,
        /// The array, if only one is.
        array: Option<String>,
        /// What was found.
        why: String,
    },
    /// A state that does not fit what is to be restored.
    #[error(
        "the array '{}' was stored at step {step} as {stored}, but the model has {found}",
        shown(array)
    )]
    Layout {
        /// The array.
        array: String,
        /// The step.
        step: u64,
        /// What was stored.
        stored: String,
        /// What the model has.
        found: String,
    },
    /// An array that is not a number everywhere.
    #[error("the array '{array}' has a value that is not finite at step {step}, element {element}")]
    NotFinite {
        /// The array.
        array: String,
        /// The step.
        step: u64,
        /// The element, in C order.
        element: usize,
    },
    /// A state that was computed again is another one.
    #[error(
        "computed again, the array '{array}' at step {step} differs from what it was by {drift:.3e} of its size, more than {limit:.3e}: {why}"
    )]
    Drift {
        /// The array.
        array: String,
        /// The step.
        step: u64,
        /// The largest difference of the samples, relative to the largest sample.
        drift: f64,
        /// What is allowed.
        limit: f64,
        /// What that means.
        why: &'static str,
    },
    /// The schedule asks for something that is not there.
    #[error("the schedule asks for step {step} in {place}, where it is not kept")]
    NotKept {
        /// The step.
        step: u64,
        /// The place.
        place: Place,
    },
    /// A schedule of slots that wants more bytes than the budgets have.
    #[error(
        "the checkpoint of step {step} has {bytes} bytes; memory has {memory} bytes left and the disk {disk}. Use fewer checkpoints, or Budget"
    )]
    OverBudget {
        /// The step.
        step: u64,
        /// Its bytes.
        bytes: u64,
        /// What is left of memory.
        memory: u64,
        /// What is left of the disk.
        disk: u64,
    },
    /// The model ended elsewhere than promised.
    #[error("{promised} steps were promised, but the model says at step {found} that {what}")]
    OtherEnd {
        /// What was promised.
        promised: u64,
        /// Where it is.
        found: u64,
        /// What it says.
        what: &'static str,
    },
    /// A run without a known end whose model does not say where it ends.
    #[error(
        "the schedule does not know the number of steps, and the model does not say where it ends"
    )]
    NoEnd,
    /// A folder that is not one of checkpoints, or another run's.
    #[error("{}: {why}", shown_path(path))]
    Folder {
        /// The folder.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
}
