//! Why a copy was not made.

use std::path::PathBuf;

use esker::{Error, ExternalType, Version};
use esker_store::shown_path;
use esker_text::sentence;

use crate::progress::Progress;

/// Why a copy was not made. The output is as it was before.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CopyError {
    /// The input cannot be read, the output not be written, or not be defined.
    #[error(transparent)]
    Dataset(Box<Error>),

    /// The caller wanted no more of it ([`Progress::is_cancelled`](crate::Progress::is_cancelled)).
    #[error("cancelled")]
    Cancelled,

    /// No variable of this name.
    #[error("{}: there is no variable {name:?}{hint}", shown_path(path), hint = sentence(hint))]
    NoSuchVariable {
        /// The input.
        path: PathBuf,
        /// The name.
        name: String,
        /// The nearest names.
        hint: String,
    },

    /// No dimension of this name.
    #[error("{}: there is no dimension {name:?}{hint}", shown_path(path), hint = sentence(hint))]
    NoSuchDimension {
        /// The input.
        path: PathBuf,
        /// The name.
        name: String,
        /// The nearest names.
        hint: String,
    },

    /// A variable that is to be chunked or filtered, and is not in the output.
    #[error("there is no variable {name:?} to be chunked or filtered{hint}", hint = sentence(hint))]
    NoOutputVariable {
        /// The name.
        name: String,
        /// The nearest names.
        hint: String,
    },

    /// A dimension that is to be cut, and is not in the output.
    #[error("there is no dimension {name:?} to be cut into chunks{hint}", hint = sentence(hint))]
    NoOutputDimension {
        /// The name.
        name: String,
        /// The nearest names.
        hint: String,
    },

    /// Filters that do not exist.
    #[error("{why}", why = sentence(why))]
    Filters {
        /// What is wrong.
        why: String,
    },

    /// Filters that a variable's values cannot pass.
    #[error("variable {name:?}: {why}{remedy}", why = sentence(why))]
    Unsuitable {
        /// The variable.
        name: String,
        /// What is wrong.
        why: String,
        /// What else could be done.
        remedy: &'static str,
    },

    /// A scalar that is to be chunked.
    #[error("variable {name:?} is a scalar, which has no chunks")]
    ScalarChunks {
        /// The variable.
        name: String,
    },

    /// Chunk lengths for a container.

    /// A dimension with two ranges.
    #[error("dimension {name:?} is given two ranges")]
    TwoRanges {
        /// The dimension.
        name: String,
    },

    /// A range that the dimension does not have, or that is empty.
    #[error("{}: range {range} of dimension \"{dim}\", which has length {len}, {why}", shown_path(path), range = sentence(range), dim = sentence(dim), why = sentence(why))]
    Range {
        /// The input.
        path: PathBuf,
        /// The dimension.
        dim: String,
        /// Its length.
        len: u64,
        /// The range as it was given.
        range: String,
        /// What is wrong with it.
        why: &'static str,
    },

    /// Input and output are one file.
    #[error("{}: the input cannot be the output as well", shown_path(path))]
    SameFile {
        /// The file.
        path: PathBuf,
    },

    /// The output exists and is not to be replaced.
    #[error("{}: exists already; ask for overwriting to replace it", shown_path(path))]
    Exists {
        /// The file.
        path: PathBuf,
    },

    /// A file would replace a container, or a container a file.
    #[error(
        "{}: a {} is not put in the place of a {}: remove it first",
        shown_path(path),
        if *is_container { "classic file" } else { "container" },
        if *is_container { "container" } else { "classic file" })]
    OtherKind {
        /// The output.
        path: PathBuf,
        /// Whether it is a container.
        is_container: bool,
    },

    /// An unlimited dimension that has no records cannot be fixed.
    #[error(
        "{}: dimension \"{dim}\" cannot be fixed: it has no records, and a classic file has no \
         fixed dimension of length 0",
        shown_path(path), dim = sentence(dim))]
    NoRecords {
        /// The input.
        path: PathBuf,
        /// The dimension.
        dim: String,
    },

    /// A type that the output's version lacks.
    #[error(
        "{}: {object} is of type {ty}, which {version} does not have; choose CDF-5, or ask for \
         types to be converted",
        shown_path(path), object = sentence(object))]
    Type {
        /// The input.
        path: PathBuf,
        /// What has the type: `variable "x"`, `attribute "a" of variable "x"`.
        object: String,
        /// The type.
        ty: ExternalType,
        /// The version.
        version: Version,
    },

    /// A value that no type of the output's version holds exactly.
    #[error(
        "{}: {object} has the {ty} value {value}, which no type of {version} holds exactly; \
         choose CDF-5",
        shown_path(path), object = sentence(object))]
    Value {
        /// The input.
        path: PathBuf,
        /// What has the value.
        object: String,
        /// Its type.
        ty: ExternalType,
        /// The value.
        value: i128,
        /// The version.
        version: Version,
    },
}

impl From<Error> for CopyError {
    fn from(error: Error) -> CopyError {
        CopyError::Dataset(Box::new(error))
    }
}

/// Tells how far a copy is, and whether it goes on.
pub(super) fn tell(progress: &mut dyn Progress, done: u64, total: u64) -> Result<(), CopyError> {
    progress.progress(done, total);
    if progress.is_cancelled() { Err(CopyError::Cancelled) } else { Ok(()) }
}
