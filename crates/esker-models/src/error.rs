//! Errors of the models: sentences that name the file, the object and the number.

use std::path::PathBuf;

use esker_comm::{CommError, Communicator, CommunicatorExt};
use esker_store::shown_path;

/// The outcome of a call.
pub type Result<T, E = ModelError> = std::result::Result<T, E>;

/// What went wrong.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// The dataset below.
    #[error(transparent)]
    Dataset(#[from] esker::Error),
    /// A graph.
    #[error(transparent)]
    Graph(#[from] esker::graph::GraphError),
    /// The ranks could not talk.
    #[error(transparent)]
    Comm(#[from] CommError),
    /// A file that is no dataset could not be read or written.
    #[error("{}: {source}", shown_path(path))]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// What is stored makes no sense.
    #[error("{}: {object}: {what}", shown_path(path))]
    Stored {
        /// The file.
        path: PathBuf,
        /// The variable, the box, the line.
        object: String,
        /// What is wrong, with the number.
        what: String,
    },
    /// What was asked for cannot be.
    #[error("{0}")]
    Asked(String),
    /// Another rank failed.
    #[error("rank {rank} failed: {message}")]
    OtherRank {
        /// The lowest rank that failed.
        rank: usize,
        /// What it says.
        message: String,
    },
}

impl From<esker::EnddefError> for ModelError {
    fn from(error: esker::EnddefError) -> ModelError {
        ModelError::Dataset(error.into())
    }
}

impl ModelError {
    /// Something stored in `path` that makes no sense.
    pub(crate) fn stored(
        path: impl Into<PathBuf>,
        object: impl Into<String>,
        what: impl Into<String>,
    ) -> ModelError {
        ModelError::Stored { path: path.into(), object: object.into(), what: what.into() }
    }
}

/// Collective: the outcome of all ranks, which is a failure if any rank failed.
pub(crate) fn agree<T>(comm: &dyn Communicator, outcome: Result<T>) -> Result<T> {
    let other = |rank, message| ModelError::OtherRank { rank, message };
    comm.agree(outcome).map_err(|disagreement| disagreement.into_error(other))
}
