//! What can go wrong between ranks.

use thiserror::Error;

/// The result of an operation between ranks.
pub type Result<T, E = CommError> = std::result::Result<T, E>;

/// Why an operation between ranks failed, on this rank.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CommError {
    /// A rank number outside the communicator.
    #[error("{operation}: there is no rank {rank} in a communicator of {size}")]
    NoSuchRank {
        /// The operation that was asked for.
        operation: &'static str,
        /// The rank that was named.
        rank: usize,
        /// How many ranks there are.
        size: usize,
    },
    /// An argument that no communicator can honour.
    #[error("{operation}: {reason}")]
    BadArgument {
        /// The operation that was asked for.
        operation: &'static str,
        /// What is wrong with the argument.
        reason: String,
    },
    /// A rank of the same world panicked, so nothing that needs it can complete.
    #[error("rank {rank} panicked, so the operation cannot complete")]
    RankPanicked {
        /// The rank, numbered in the world that was launched.
        rank: usize,
    },
    /// A rank dropped its end of the communicator while another still waited for it.
    #[error("{operation}: rank {rank} has left the communicator without taking part")]
    RankLeft {
        /// The operation that waited.
        operation: &'static str,
        /// The rank that left, numbered in this communicator.
        rank: usize,
    },
    /// The ranks of one communicator called different collective operations.
    #[error(
        "rank {rank} called {theirs} while another rank called {ours}: collective operations must be called in the same order by every rank"
    )]
    OutOfStep {
        /// The collective that was already under way.
        ours: &'static str,
        /// The rank that called something else.
        rank: usize,
        /// What it called.
        theirs: &'static str,
    },
    /// A receive that nothing can ever satisfy (one rank waiting for itself).
    #[error("receive: no message with tag {tag} was sent, and there is no other rank to send it")]
    NothingToReceive {
        /// The tag that was waited for.
        tag: u16,
    },
    /// A request was asked for its result a second time.
    #[error("receive: this request has already delivered its message")]
    AlreadyReceived,
    /// A message had another length than the receiver said it would.
    #[error(
        "receive: rank {source_rank} sent {found} bytes with tag {tag} where {expected} were expected"
    )]
    UnexpectedLength {
        /// Who sent it.
        source_rank: usize,
        /// Its tag.
        tag: u16,
        /// The length that the receiver named.
        expected: usize,
        /// The length that arrived.
        found: usize,
    },
    /// MPI returned an error code.
    #[error("{call} failed with code {code}: {message}")]
    Mpi {
        /// The MPI function.
        call: &'static str,
        /// Its return code.
        code: i32,
        /// MPI's own words for it.
        message: String,
    },
    /// MPI was needed and could not be used.
    #[error("MPI cannot be used: {reason}")]
    MpiUnavailable {
        /// What was tried and what came of it.
        reason: String,
    },
}
