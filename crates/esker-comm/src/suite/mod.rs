//! The one test that every [`Communicator`] passes.
//!
//! [`run`] is called by every rank of a communicator. Data is random but known to all: what a
//! rank sends is a function of the seed, the sender and the receiver, so that the receiver can
//! tell what must arrive.

mod collectives;
mod groups;
mod node;
mod point_to_point;
mod sparse;

use std::error::Error;
use std::sync::Arc;

use crate::{Communicator, Message};

/// How much of each thing is tried.
#[derive(Debug, Clone, Copy)]
pub struct Effort {
    /// How often each check runs, each time with other data.
    pub repeats: usize,
    /// The bytes of a large message.
    pub large: usize,
}

impl Effort {
    /// The usual amount: several mebibytes in a large message.
    pub const FULL: Effort = Effort { repeats: 4, large: 5 << 20 };
    /// For many ranks on few cores.
    pub const LIGHT: Effort = Effort { repeats: 1, large: 1 << 20 };
}

/// Why a check failed, in words.
pub type Failure = Box<dyn Error + Send + Sync>;

type Check = fn(&mut Trial<'_>) -> Result<(), Failure>;

const CHECKS: &[(&str, Check)] = &[
    ("a barrier waits for everyone", collectives::barrier_waits_for_everyone),
    ("a broadcast gives everyone the root's message", collectives::broadcast),
    ("a gather gives the root everyone's message", collectives::gather),
    ("an all-gather gives everyone everything", collectives::all_gather),
    ("numbers are gathered by rank", collectives::all_gather_u64),
    ("an all-to-all delivers each message to its rank", collectives::all_to_all),
    ("reductions agree with a loop over the ranks", collectives::all_reduce),
    ("an exclusive scan sums the lower ranks", collectives::exclusive_scan),
    ("ranks agree on the lowest that failed", collectives::agreement),
    ("a tree merges in the order of ranks", collectives::merge_up),
    ("wrong arguments are errors and do no harm", collectives::wrong_arguments),
    ("messages go round a ring", point_to_point::ring),
    ("many messages may be outstanding", point_to_point::many_outstanding),
    ("tags choose among messages", point_to_point::tags_choose),
    ("any source gives every message once", point_to_point::any_source),
    ("large messages arrive whole", point_to_point::large_messages),
    ("a test never blocks and gives the message once", point_to_point::testing),
    ("whichever message comes first is taken", point_to_point::wait_any),
    ("requests may be dropped", point_to_point::dropped_requests),
    ("another length than announced is an error", point_to_point::wrong_length),
    ("sparse: nobody sends", sparse::nobody),
    ("sparse: a ring", sparse::ring),
    ("sparse: all to one", sparse::all_to_one),
    ("sparse: random, several to one rank, in order", sparse::random),
    ("sparse: large messages", sparse::large),
    ("sparse: one after another never mix", sparse::back_to_back),
    ("a split groups by colour and orders by key", groups::split),
    ("splits can be split", groups::nested_splits),
    ("a node's ranks share a communicator", groups::by_node),
    ("a duplicate does not interfere", groups::duplicate_does_not_interfere),
    ("node memory: what ranks lay is whole at its owner", node::what_is_laid),
    ("node memory: an element of several ranks is one's", node::overlaps),
    ("node memory: runs of a pattern go between and upon those of others", node::runs_of_a_pattern),
    ("node memory: what is wanted is shown to all", node::what_is_wanted),
    ("node memory: misuse is an error and does no harm", node::misuse),
    ("two threads of a rank use a communicator each", groups::threads_with_duplicates),
];

/// Runs every check on this rank; the number of checks, or the first that failed. Collective.
pub fn run(comm: &Arc<dyn Communicator>, seed: u64, effort: Effort) -> Result<usize, Failure> {
    for (number, (name, check)) in CHECKS.iter().enumerate() {
        for repeat in 0..effort.repeats {
            let seed = mix(seed ^ mix((number * 1000 + repeat) as u64));
            let mut trial = Trial::new(comm.as_ref(), seed, effort);
            let rank = comm.rank();
            // The barrier keeps a fast rank's next check away from receives from any source.
            let outcome = check(&mut trial).and_then(|()| Ok(comm.barrier()?));
            outcome.map_err(|e| format!("rank {rank}: {name} (repeat {repeat}): {e}"))?;
        }
    }
    Ok(CHECKS.len())
}

/// One run of one check.
struct Trial<'a> {
    comm: &'a dyn Communicator,
    rank: usize,
    size: usize,
    effort: Effort,
    seed: u64,
    /// Draws the same on every rank.
    shared: Dice,
    /// Draws differently on each rank.
    own: Dice,
}

impl<'a> Trial<'a> {
    fn new(comm: &'a dyn Communicator, seed: u64, effort: Effort) -> Self {
        let (rank, size) = (comm.rank(), comm.size());
        let own = Dice(mix(seed ^ (rank as u64 + 1)));
        Trial { comm, rank, size, effort, seed, shared: Dice(seed), own }
    }

    /// The `number`th message of `from` to `to`: its length below `limit`, often 0, and its
    /// bytes are random but the same wherever they are asked for.
    fn message(&self, from: usize, to: usize, number: usize, limit: usize) -> Message {
        let mut dice = Dice(mix(self.seed ^ mix(((from << 40) ^ (to << 20) ^ number) as u64)));
        let length = if dice.below(4) == 0 { 0 } else { dice.below(limit.max(1)) };
        self.sized(from, to, number, length)
    }

    /// As [`message`](Self::message), of a given length.
    fn sized(&self, from: usize, to: usize, number: usize, length: usize) -> Message {
        let start = self.seed ^ mix(((from << 40) ^ (to << 20) ^ number) as u64);
        let mut dice = Dice(start);
        let mut bytes = Vec::with_capacity(length + 8);
        while bytes.len() < length {
            bytes.extend_from_slice(&dice.roll().to_le_bytes());
        }
        bytes.truncate(length);
        Message::from(bytes)
    }
}

/// A small generator of random numbers (splitmix64's steps).
struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.roll() % limit as u64) as usize
    }
}

fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Returns an error with the values if two things differ.
macro_rules! same {
    ($found:expr, $expected:expr, $($what:tt)+) => {{
        let (found, expected) = (&$found, &$expected);
        if found != expected {
            let what = format!($($what)+);
            let (mut found, mut expected) = (format!("{found:?}"), format!("{expected:?}"));
            found.truncate(300);
            expected.truncate(300);
            return Err(format!("{what}: found {found}, expected {expected}").into());
        }
    }};
}
use same;
