//! Starting thread-ranks.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread;

use thiserror::Error;

use super::comm::ThreadComm;
use super::group::{Group, Member, World};
use crate::{CommError, Communicator};

/// Runs `program` on `ranks` threads of this process, each with its own communicator, and
/// returns what each returned, by rank.
///
/// # Panics
///
/// If a rank panics, the others' operations fail with [`CommError::RankPanicked`], and when all
/// have ended this panics with the rank's number and message.
/// [`ThreadWorld::launch`] returns an error instead.
pub fn launch<R, F>(ranks: usize, program: F) -> Vec<R>
where
    R: Send,
    F: Fn(Arc<dyn Communicator>) -> R + Sync,
{
    match ThreadWorld::new(ranks).launch(program) {
        Ok(results) => results,
        Err(error) => panic!("{error}"),
    }
}

/// Why a launch did not return every rank's result.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum LaunchError {
    /// A rank panicked; if several did, the first.
    #[error("rank {rank} panicked: {message}")]
    Panicked {
        /// The rank.
        rank: usize,
        /// What it said.
        message: String,
    },
    /// The system could not start a thread.
    #[error("the thread of rank {rank} could not be started: {reason}")]
    NotStarted {
        /// The rank.
        rank: usize,
        /// What the system said.
        reason: String,
    },
}

/// A world of thread-ranks to be launched.
///
/// ```
/// use esker_comm::ThreadWorld;
/// // Six ranks that believe they are on three nodes: for trying what nodes change.
/// let sizes = ThreadWorld::new(6)
///     .ranks_per_node(2)
///     .launch(|comm| comm.split_by_node().map(|node| node.size()))?;
/// assert_eq!(sizes, vec![Ok(2); 6]);
/// # Ok::<(), esker_comm::LaunchError>(())
/// ```
#[derive(Debug, Clone)]
pub struct ThreadWorld {
    ranks: usize,
    ranks_per_node: usize,
    stack_size: Option<usize>,
}

impl ThreadWorld {
    /// A world of so many ranks on one node.
    pub fn new(ranks: usize) -> Self {
        ThreadWorld { ranks, ranks_per_node: ranks.max(1), stack_size: None }
    }

    /// Lets [`split_by_node`](Communicator::split_by_node) see nodes of so many consecutive
    /// ranks, to try out what a cluster would do.
    pub fn ranks_per_node(mut self, ranks: usize) -> Self {
        self.ranks_per_node = ranks.max(1);
        self
    }

    /// The stack of each rank's thread in bytes, where Rust's default is too small or, for very
    /// many ranks, too large.
    pub fn stack_size(mut self, bytes: usize) -> Self {
        self.stack_size = Some(bytes);
        self
    }

    /// Runs `program` on every rank and returns what each returned, by rank.
    pub fn launch<R, F>(&self, program: F) -> Result<Vec<R>, LaunchError>
    where
        R: Send,
        F: Fn(Arc<dyn Communicator>) -> R + Sync,
    {
        let world = World::new();
        let member = |rank| Member { world_rank: rank, node: rank / self.ranks_per_node };
        let group = Group::new(&world, (0..self.ranks).map(member).collect());
        let outcomes = thread::scope(|scope| {
            let mut threads = Vec::with_capacity(self.ranks);
            for rank in 0..self.ranks {
                let comm: Arc<dyn Communicator> =
                    Arc::new(ThreadComm::new(Arc::clone(&group), rank));
                let (program, world) = (&program, &world);
                let body = move || {
                    // Nothing of the rank is looked at after its panic but the panic itself.
                    let outcome = catch_unwind(AssertUnwindSafe(|| program(comm)));
                    if outcome.is_err() {
                        // Also if a clone of the communicator outlives the panic elsewhere.
                        world.poison(rank);
                    }
                    outcome
                };
                let mut builder = thread::Builder::new().name(format!("rank {rank}"));
                if let Some(bytes) = self.stack_size {
                    builder = builder.stack_size(bytes);
                }
                match builder.spawn_scoped(scope, body) {
                    Ok(thread) => threads.push(thread),
                    Err(error) => {
                        world.poison(rank);
                        let reason = error.to_string();
                        return Err(LaunchError::NotStarted { rank, reason });
                    }
                }
            }
            Ok(threads
                .into_iter()
                .map(|t| t.join().and_then(|outcome| outcome))
                .collect::<Vec<_>>())
        })?;
        let first = match world.check() {
            Err(CommError::RankPanicked { rank }) => Some(rank),
            _ => None,
        };
        let mut results = Vec::with_capacity(self.ranks);
        let mut panicked = None;
        for (rank, outcome) in outcomes.into_iter().enumerate() {
            match outcome {
                Ok(result) => results.push(result),
                Err(payload) => {
                    if panicked.is_none() || first == Some(rank) {
                        panicked = Some((rank, words(payload.as_ref())));
                    }
                }
            }
        }
        match panicked {
            None => Ok(results),
            Some((rank, message)) => Err(LaunchError::Panicked { rank, message }),
        }
    }
}

fn words(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(|text| text.to_string());
    text.or_else(|| payload.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "(a panic without a message)".into())
}
