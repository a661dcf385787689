//! The one trait of this crate.

use std::fmt::Debug;
use std::sync::Arc;

use crate::{
    CommError, Message, NoNodeMemory, NodeMemory, Receiving, Result, Sending, Source, Stages, Tag,
};

/// A group of ranks that can talk to each other.
///
/// # Contract
///
/// - *Collective* operations (all but `rank`, `size`, `isend`, `irecv` and `irecv_sized`) are
///   called by every rank of the communicator, in the same order. Two threads of one rank must
///   not be in a collective of the same communicator at the same time;
///   [`duplicate`](Self::duplicate) gives each its own.
/// - Operations of one communicator never see messages of another, also not of a duplicate.
/// - Messages from one rank to another with the same tag arrive in the order sent.
/// - A receive takes its message when it is tested or waited for: of two receives that match
///   the same messages, the one waited for first gets the first. Do not have an `irecv` and an
///   `irecv_sized` for the same source and tag under way at once.
/// - A wrong argument is an error on the rank that gave it, before anything is sent; where the
///   others may not know, agree first (`CommunicatorExt::agree`).
/// - After an error other than a wrong argument the communicator can only be dropped.
pub trait Communicator: Send + Sync + Debug {
    /// This rank's number, from 0.
    fn rank(&self) -> usize;

    /// How many ranks there are.
    fn size(&self) -> usize;

    /// Returns when every rank has called it.
    fn barrier(&self) -> Result<()>;

    /// Gives every rank the message of `root`; the others' own is ignored.
    fn broadcast(&self, root: usize, message: Message) -> Result<Message>;

    /// Gives `root` everyone's message, by rank; the others get `None`. Lengths may differ.
    fn gather(&self, root: usize, message: Message) -> Result<Option<Vec<Message>>>;

    /// Gives every rank everyone's message, by rank. Lengths may differ.
    fn all_gather(&self, message: Message) -> Result<Vec<Message>>;

    /// Gives every rank everyone's numbers, by rank. Every rank gives equally many; cheaper
    /// than [`all_gather`](Self::all_gather) because no lengths travel.
    fn all_gather_u64(&self, values: &[u64]) -> Result<Vec<u64>>;

    /// Sends message `i` to rank `i` and returns what each rank sent here, by rank. Empty
    /// messages cost nothing, but use [`sparse_exchange`](Self::sparse_exchange) where most are.
    fn all_to_all(&self, messages: Vec<Message>) -> Result<Vec<Message>>;

    /// Sends number `i` to rank `i` and returns what each rank sent here, by rank.
    fn all_to_all_u64(&self, values: &[u64]) -> Result<Vec<u64>>;

    /// Combines the ranks' slices element by element; every rank gets the result in place.
    /// Every rank gives the same length, type and operation. Integer sums wrap; the order in
    /// which floating-point sums are taken is the implementation's.
    fn all_reduce(&self, values: Reduction<'_>, op: ReduceOp) -> Result<()>;

    /// Replaces each element by the sum of the same element on all lower ranks (0 on rank 0).
    fn exclusive_scan(&self, values: &mut [u64]) -> Result<()>;

    /// Starts to send. The call does not wait for the receiver.
    fn isend(&self, to: usize, tag: Tag, message: Message) -> Result<Sending>;

    /// Starts to receive a message of any length.
    fn irecv(&self, from: Source, tag: Tag) -> Result<Receiving>;

    /// Starts to receive a message whose length is known, which lets MPI put it straight into
    /// its final buffer. Another length is an error.
    fn irecv_sized(&self, from: usize, tag: Tag, length: usize) -> Result<Receiving>;

    /// Sends each message to its destination and returns the messages sent here with their
    /// sources, sorted by source and, for one source, in the order sent. No rank needs to know
    /// who will send to it, and ranks with nothing to send pass an empty list.
    fn sparse_exchange(&self, messages: Vec<(usize, Message)>) -> Result<Vec<(usize, Message)>>;

    /// Makes one communicator per colour of the ranks that named it, ordered by key and then by
    /// rank. A rank without a colour gets `None`. Colours are at most 2^31 - 1.
    fn split(&self, colour: Option<u32>, key: i32) -> Result<Option<Arc<dyn Communicator>>>;

    /// Makes one communicator per node (ranks that share memory), ordered by rank.
    fn split_by_node(&self) -> Result<Arc<dyn Communicator>>;

    /// Memory that all ranks of this communicator share, which must be on one node; or why they cannot have it, the same on
    /// every rank, and no harm done. It lives as long as its handles. Collective.
    fn node_memory(&self, stages: &Stages)
    -> Result<std::result::Result<NodeMemory, NoNodeMemory>>;

    /// Whether its sparse exchanges gather what goes to another node, so that they are the better way for many short
    /// messages whose receivers know of them.
    fn gathers_by_node(&self) -> bool {
        false
    }

    /// Whether threads of a rank may use communicators of their own at the same time, each as if
    /// it were alone. Not where one of them would keep the others out while it waits.
    fn may_use_threads(&self) -> bool {
        true
    }

    /// Whether this process may make another communicator: MPI libraries have few. Ranks that do not
    /// know of each other should ask all before they [`duplicate`](Self::duplicate).
    fn may_duplicate(&self) -> bool {
        true
    }

    /// Makes a communicator of the same ranks whose messages do not mix with this one's.
    fn duplicate(&self) -> Result<Arc<dyn Communicator>>;

    /// A communicator of the same ranks for something that is used in the order of the program:
    /// a duplicate, or, where there are so many already that the library could run out of them, one
    /// that several share. What shares one is used by one thread at a time. Collective.
    fn share(&self) -> Result<Arc<dyn Communicator>> {
        self.duplicate()
    }
}

/// How [`Communicator::all_reduce`] combines two elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReduceOp {
    /// The smaller.
    Min,
    /// The larger.
    Max,
    /// The sum.
    Sum,
    /// Every bit set in either; integers only.
    BitOr,
}

/// The slice that [`Communicator::all_reduce`] combines.
#[derive(Debug)]
pub enum Reduction<'a> {
    /// Unsigned integers.
    U64(&'a mut [u64]),
    /// Signed integers.
    I64(&'a mut [i64]),
    /// Floating-point numbers.
    F64(&'a mut [f64]),
}

impl Reduction<'_> {
    /// Refuses what no implementation can do.
    pub(crate) fn check(&self, op: ReduceOp) -> Result<()> {
        match (self, op) {
            (Reduction::F64(_), ReduceOp::BitOr) => Err(CommError::BadArgument {
                operation: "all_reduce",
                reason: "the bits of floating-point numbers cannot be combined by BitOr".into(),
            }),
            _ => Ok(()),
        }
    }
}
