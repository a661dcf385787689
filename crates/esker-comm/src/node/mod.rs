//! Memory that the ranks of a node share, and turns in which they use it (docs/rooms/node.md).
//!
//! A [`NodeMemory`] has *stages*: each is owned by a rank and has room for some bytes, once or twice. Ranks use a stage in
//! turns. In a turn every rank [lays](NodeMemory::lay) bytes into it, or says which it wants; when all have
//! [finished](Laying::finish), the owner [takes](NodeMemory::take) the whole; it may [show](Whole::show) it, and then every
//! rank [looks](NodeMemory::look) at it. No byte has two writers: who [claims](Laying::claim) it first has it.
//!
//! ```
//! use esker_comm::{Communicator, Stages, launch};
//!
//! let sums = launch(3, |comm| {
//!     let stages = Stages { owners: vec![1], bytes: 3, buffers: 1 };
//!     let memory = comm.node_memory(&stages).unwrap().unwrap();
//!     memory.open(0, 0).unwrap(); // rank 1 opens the stage for turn 0; the others have nothing to open
//!     let mut mine = memory.lay(0, 0, 3).unwrap();
//!     mine.claim(comm.rank(), 1, 1, |_, byte| byte.fill(comm.rank() as u8 + 1));
//!     mine.finish().unwrap();
//!     if comm.rank() == 1 {
//!         memory.take(0, 0, 3).unwrap().show();
//!     }
//!     let shown = memory.look(0, 0, 3).unwrap();
//!     shown.bytes().iter().sum::<u8>()
//! });
//! assert_eq!(sums, [6, 6, 6]);
//! ```

mod claims;
mod map;
mod processes;
mod turns;
mod wait;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use map::Map;
use wait::Counter;

pub(crate) use processes::share;
pub use turns::{Laying, Shown, Whole};

use crate::{CommError, Result};

/// What a [`NodeMemory`] is to have; the same on every rank.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stages {
    /// The owner of each stage, as a rank of the communicator.
    pub owners: Vec<usize>,
    /// Bytes of a stage.
    pub bytes: usize,
    /// How often a stage has that many, 1 or 2: with 2, ranks may begin a turn before the owner has ended the last.
    pub buffers: usize,
}

/// Why ranks have no memory that they share, in words; the same on all of them. They have messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoNodeMemory(pub String);

impl std::error::Error for NoNodeMemory {}

impl fmt::Display for NoNodeMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Bytes that have one writer at a time: a bit each, in words of so many.
const WORD: usize = 64;

/// Bytes that are claimed with one operation where a rank has all of them.
const BLOCK: usize = 512;

const PAGE: usize = 4096;

impl Stages {
    /// Bytes of memory that they take for so many ranks, with what belongs to them; `None` if that is no number of bytes.
    pub fn memory(&self, ranks: usize) -> Option<usize> {
        let places = Places::of(self.bytes, ranks)?;
        let all = self.owners.len().checked_mul(self.buffers)?.checked_mul(places.len)?;
        all.checked_add(PAGE)
    }

    fn check(&self, ranks: usize) -> Result<usize> {
        let operation = "node_memory";
        if let Some(rank) = self.owners.iter().find(|rank| **rank >= ranks) {
            return Err(CommError::NoSuchRank { operation, rank: *rank, size: ranks });
        }
        let memory = self.memory(ranks).filter(|memory| isize::try_from(*memory).is_ok());
        let few = (1..=2).contains(&self.buffers) && !self.owners.is_empty() && self.bytes > 0;
        memory.filter(|_| few).ok_or_else(|| {
            let reason =
                format!("{self:?} are no stages: they need owners, bytes and 1 or 2 buffers");
            CommError::BadArgument { operation, reason }
        })
    }
}

/// Where the parts of a buffer are, from its beginning: four counters, what each rank has finished, a state for each block,
/// a bit for each byte, the bytes.
#[derive(Debug, Clone, Copy)]
struct Places {
    finished: usize,
    blocks: usize,
    bits: usize,
    bytes: usize,
    len: usize,
}

impl Places {
    fn of(bytes: usize, ranks: usize) -> Option<Places> {
        let all = bytes.checked_next_multiple_of(PAGE)?;
        let finished = 4 * size_of::<Counter>();
        let blocks = ranks.checked_mul(size_of::<Finished>())?.checked_add(finished)?;
        let bits = blocks.checked_add(all / BLOCK)?.checked_next_multiple_of(WORD)?;
        let begin = bits.checked_add(all / 8)?.checked_next_multiple_of(PAGE)?;
        Some(Places { finished, blocks, bits, bytes: begin, len: begin.checked_add(all)? })
    }
}

/// The turns of a buffer, and 1, that a rank has laid into and looked at last. What it has finished nobody misses it for.
#[repr(C)]
#[derive(Debug)]
struct Finished {
    laid: AtomicU32,
    looked: AtomicU32,
}

/// At the beginning of the memory.
#[repr(C)]
struct Head {
    /// What rank 0 told the others that they will find.
    number: [u8; 8],
    /// Not 0 when a rank has left a turn unfinished: its number and 1.
    broken: AtomicU32,
}

/// Asked for the n-th time, the error of a rank that is gone, if it is one of those that are waited for.
pub(crate) type Gone = dyn Fn(u32, &dyn Fn(usize) -> bool) -> Result<()> + Send + Sync;

/// Whether those that a rank waits for are still there.
pub(crate) struct Watch {
    map: Arc<Map>,
    gone: Box<Gone>,
}

impl Watch {
    fn check(&self, times: u32, awaited: &dyn Fn(usize) -> bool) -> Result<()> {
        match head(&self.map).broken.load(Ordering::Acquire) {
            0 => (self.gone)(times, awaited),
            rank => Err(left(rank as usize - 1)),
        }
    }
}

/// The error of a wait for a rank that is gone.
pub(crate) fn left(rank: usize) -> CommError {
    CommError::RankLeft { operation: "node memory", rank }
}

#[allow(unsafe_code)]
fn head(map: &Map) -> &Head {
    // SAFETY: a page at the beginning of every map is this; it is aligned, zero is a value of it, and all that changes
    // behind the reference, once ranks use it, is atomic.
    unsafe { &*map.start().cast::<Head>() }
}

/// Memory that ranks share, as one of them sees it.
///
/// It is this rank's alone: others have handles of their own.
#[derive(Clone)]
pub struct NodeMemory(Arc<Inner>);

struct Inner {
    map: Arc<Map>,
    watch: Watch,
    rank: usize,
    ranks: u32,
    stages: Stages,
    places: Places,
    /// Of each buffer of each stage, what this rank did last: so nobody does it twice in a turn.
    mine: Vec<Mine>,
}

/// The turn, and 1, in which this rank did something with a buffer last.
#[derive(Debug, Default)]
struct Mine {
    opened: AtomicU32,
    laid: AtomicU32,
    taken: AtomicU32,
    looked: AtomicU32,
    /// Whether the owner has a `Whole` now, and whether what it took last was shown.
    holds: AtomicU32,
    shown: AtomicU32,
}

impl fmt::Debug for NodeMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NodeMemory({:?})", self.0.stages)
    }
}

impl NodeMemory {
    fn new(
        map: Arc<Map>,
        stages: &Stages,
        rank: usize,
        ranks: usize,
        watch: Watch,
    ) -> Option<Self> {
        let places = Places::of(stages.bytes, ranks)?;
        let mine = (0..stages.owners.len() * stages.buffers).map(|_| Mine::default()).collect();
        let stages = stages.clone();
        let ranks = u32::try_from(ranks).ok()?;
        Some(NodeMemory(Arc::new(Inner { map, watch, rank, ranks, stages, places, mine })))
    }

    /// Memory for the ranks of one process, each of which gets a handle by [`Shared::join`].
    pub(crate) fn of_this_process(
        stages: &Stages,
        ranks: usize,
    ) -> Result<std::result::Result<Shared, NoNodeMemory>> {
        let len = stages.check(ranks)?;
        let map = Map::of_this_process(len);
        let refused = |error| NoNodeMemory(format!("{len} bytes cannot be mapped: {error}"));
        Ok(map.map(|map| Shared(Arc::new(map))).map_err(refused))
    }

    /// What there is of it.
    pub fn stages(&self) -> &Stages {
        &self.0.stages
    }

    /// Whether a rank has left a turn unfinished, or [left](NodeMemory::leave), so that nobody can use it any more. The same
    /// on all ranks as soon as they have met after that.
    pub fn is_broken(&self) -> bool {
        head(&self.0.map).broken.load(Ordering::Acquire) != 0
    }

    /// Bytes of memory that it takes, for all ranks together.
    pub fn memory(&self) -> usize {
        self.0.map.len()
    }
}

/// Memory of one process that is not any rank's yet.
#[derive(Debug, Clone)]
pub(crate) struct Shared(Arc<Map>);

impl Shared {
    /// A rank's handle. `gone` tells which of the others are.
    pub(crate) fn join(
        self,
        stages: &Stages,
        rank: usize,
        ranks: usize,
        gone: Box<Gone>,
    ) -> std::result::Result<NodeMemory, NoNodeMemory> {
        let watch = Watch { map: self.0.clone(), gone };
        let made = NodeMemory::new(self.0, stages, rank, ranks, watch);
        made.ok_or_else(|| NoNodeMemory("too many ranks".into()))
    }
}
