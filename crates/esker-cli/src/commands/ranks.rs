//! What a command does when a launcher has started it on several ranks.

use esker_comm::mpi;

/// Set to anything, every process of a launcher runs its command.
const EVERY_RANK: &str = "ESKER_EVERY_RANK";

/// Whether this process is one of a launcher's that should leave a command that is not parallel
/// to rank 0.
pub(super) fn left_to_rank_0() -> bool {
    let rank = mpi::launched().and_then(|launched| launched.rank);
    rank.is_some_and(|rank| rank > 0) && std::env::var_os(EVERY_RANK).is_none_or(|v| v.is_empty())
}
