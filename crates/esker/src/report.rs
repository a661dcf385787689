//! What the calls of a dataset did, for people who want to know where the time goes.

use std::fmt;
use std::time::Duration;

/// How a call moved its data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Strategy {
    /// Nothing was moved.
    #[default]
    Nothing,
    /// Each rank read or wrote its own runs.
    Direct,
    /// Pieces went through the owners of windows.
    Exchanged,
    /// Each rank appended to its own log.
    Appended,
}

/// How pieces of an exchange over windows went from rank to rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Road {
    /// There was none, or one rank.
    #[default]
    Nothing,
    /// By messages: the hint `esker_node_memory` says so, or this rank's node has no other ranks, or none that own windows.
    Messages,
    /// By messages, because the windows of all aggregators need more memory than the hint allows.
    HintTooSmall,
    /// By messages, because the system has refused memory that ranks share.
    Refused,
    /// Straight into windows in memory that the ranks of the node share; by messages to other nodes.
    NodeMemory,
}

impl fmt::Display for Road {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Road::Nothing => "nothing",
            Road::Messages => "messages",
            Road::HintTooSmall => "messages: esker_node_memory is too small",
            Road::Refused => "messages: there is no memory to share",
            Road::NodeMemory => "node memory",
        })
    }
}

/// What this rank did since the dataset was opened (or [`crate::Dataset::reset_report`]).
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Report {
    /// How the last write moved its data.
    pub write_strategy: Strategy,
    /// How the last read moved its data.
    pub read_strategy: Strategy,
    /// Calls that moved data: a wait counts once.
    pub calls: u64,
    /// Requests in them.
    pub requests: u64,
    /// Contiguous runs in the file that the requests had.
    pub runs: u64,
    /// Rounds of exchange.
    pub rounds: u64,
    /// Ranks that owned windows in the last exchange.
    pub aggregators: u64,
    /// Messages with pieces that this rank sent to others.
    pub messages: u64,
    /// Bytes in them.
    pub message_bytes: u64,
    /// How pieces went from rank to rank in the last exchange over windows.
    pub road: Road,
    /// Bytes of pieces that went straight into windows of other ranks, or out of them.
    pub node_bytes: u64,
    /// Bytes of values that the caller gave or got, in the file's form.
    pub bytes: u64,
    /// Bytes copied in memory to move them (packed, laid into a window, unpacked).
    pub copied: u64,
    /// Write calls to the system.
    pub writes: u64,
    /// Bytes they wrote.
    pub bytes_written: u64,
    /// Read calls to the system.
    pub reads: u64,
    /// Bytes they read.
    pub bytes_read: u64,
    /// Bytes that say what the payloads in a log are, of those written.
    pub log_metadata: u64,
    /// The largest memory that the engine held at once, in bytes.
    pub peak_memory: u64,
    /// The largest memory that the index of a log took at once, as it is accounted, in bytes.
    pub index_memory: u64,
    /// Time of each phase.
    pub phases: Phases,
}

/// Time spent in each phase.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Phases {
    /// Checking selections and planning.
    pub plan: Duration,
    /// Agreeing with the other ranks.
    pub agree: Duration,
    /// Converting and packing, laying into windows, unpacking.
    pub convert: Duration,
    /// Waiting for messages.
    pub exchange: Duration,
    /// Writing to the store (in the background while the next round is exchanged).
    pub write: Duration,
    /// Reading from the store.
    pub read: Duration,
    /// Waiting for the disk.
    pub sync: Duration,
}

impl Phases {
    /// Each phase with its name, in the order of the road.
    pub fn named(&self) -> [(&'static str, Duration); 7] {
        [
            ("plan", self.plan),
            ("agree", self.agree),
            ("convert", self.convert),
            ("exchange", self.exchange),
            ("write", self.write),
            ("read", self.read),
            ("sync", self.sync),
        ]
    }
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Strategy::Nothing => "nothing",
            Strategy::Direct => "direct",
            Strategy::Exchanged => "exchanged",
            Strategy::Appended => "appended",
        })
    }
}

/// Calls to the store, counted where they are made.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Tally {
    pub(crate) writes: u64,
    pub(crate) bytes_written: u64,
    pub(crate) reads: u64,
    pub(crate) bytes_read: u64,
}

impl Tally {
    pub(crate) fn wrote(&mut self, calls: u64, bytes: u64) {
        self.writes += calls;
        self.bytes_written += bytes;
    }

    pub(crate) fn read(&mut self, calls: u64, bytes: u64) {
        self.reads += calls;
        self.bytes_read += bytes;
    }
}

impl Report {
    /// Adds what a thread did on the dataset's behalf.
    pub(crate) fn merge(&mut self, other: &Report) {
        self.write_strategy = other.write_strategy;
        self.rounds += other.rounds;
        self.aggregators = other.aggregators;
        self.messages += other.messages;
        self.message_bytes += other.message_bytes;
        self.road = other.road;
        self.node_bytes += other.node_bytes;
        self.copied += other.copied;
        self.writes += other.writes;
        self.bytes_written += other.bytes_written;
        self.reads += other.reads;
        self.bytes_read += other.bytes_read;
        self.peak_memory = self.peak_memory.max(other.peak_memory);
    }

    pub(crate) fn add(&mut self, tally: Tally) {
        self.writes += tally.writes;
        self.bytes_written += tally.bytes_written;
        self.reads += tally.reads;
        self.bytes_read += tally.bytes_read;
    }
}
