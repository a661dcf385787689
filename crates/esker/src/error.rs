//! Errors of the library: one sentence each, with the file, the variable and the numbers.

mod decomposition;

use std::path::PathBuf;
use std::time::Duration;

use esker_comm::CommError;
use esker_format::{ConvertError, DecodeError, RangeReport, SchemaError};
use esker_store::{StoreError, shown_path};
use esker_text::sentence;

pub use decomposition::DecompositionError;

/// A result of this library.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The system refused.
    #[error(transparent)]
    Store(#[from] StoreError),

    /// What is to be read does not fit into memory.
    #[error(
        "{}: variable {var:?}: there is no memory for {bytes} bytes at once: read it in parts",
        path.display()
    )]
    NoMemory {
        /// The file.
        path: PathBuf,
        /// The variable.
        var: String,
        /// What was wanted.
        bytes: u128,
    },

    /// The file is not classic netCDF, or is damaged.
    #[error("{}: {source}", shown_path(path), source = sentence(source))]
    Decode {
        /// The file.
        path: PathBuf,
        /// Where and what.
        source: DecodeError,
    },

    /// A container that cannot be used as it is.
    #[error("{}: {why}", shown_path(path), why = sentence(why))]
    Container {
        /// The directory.
        path: PathBuf,
        /// Why.
        why: String,
    },

    /// What is committed, another writer has committed meanwhile.
    #[error(
        "{}: {}: version {version} of another writer has changed it since version {base}",
        shown_path(path),
        sentence(what)
    )]
    Conflict {
        /// The directory.
        path: PathBuf,
        /// What both have changed.
        what: String,
        /// The other's version.
        version: u64,
        /// The version that the commit was made for.
        base: u64,
    },

    /// A transaction that was given up.
    #[error("{}: the transaction is given up: {}", shown_path(path), sentence(why))]
    GivenUp {
        /// The directory.
        path: PathBuf,
        /// Why.
        why: String,
    },

    /// A transaction that a rank has aborted while this one was to commit it.
    #[error("{}: the transaction is given up: rank {rank} has aborted it", shown_path(path))]
    Aborted {
        /// The directory.
        path: PathBuf,
        /// The lowest of the ranks that have.
        rank: usize,
    },

    /// A transaction that cannot be committed before a number is decided; later it can.
    #[error("{}: {}", shown_path(path), sentence(why))]
    Undecided {
        /// The directory.
        path: PathBuf,
        /// Which number, and why.
        why: String,
    },

    /// A version that nobody has committed in time.
    #[error(
        "{}: no version behind {after} was committed within {} seconds",
        shown_path(path),
        waited.as_secs_f64()
    )]
    NoVersionYet {
        /// The directory.
        path: PathBuf,
        /// The version that it was to be behind.
        after: u64,
        /// How long it was waited for.
        waited: Duration,
    },

    /// Filters that values cannot pass.
    #[error("the filters failed: {}", sentence(.0))]
    Filter(String),

    /// A chunked variable that cannot be defined, written or read.
    #[error("{}: chunked variable \"{var}\": {why}", shown_path(path), var = sentence(var), why = sentence(why))]
    Chunked {
        /// The file.
        path: PathBuf,
        /// The variable.
        var: String,
        /// What, with the chunk and its place where it is about one.
        why: String,
    },

    /// Another program writes to a dataset that has one writer at a time, or has changed one that is open here.
    #[error("{}: {why}", path.display())]
    Writers {
        /// The file.
        path: PathBuf,
        /// What, and what to do.
        why: String,
    },

    /// Something is wrong with the logs before a classic file.
    #[error("{}: burst buffer: {why}", shown_path(path), why = sentence(why))]
    BurstBuffer {
        /// The classic file.
        path: PathBuf,
        /// What, and what to do.
        why: String,
    },

    /// A definition that cannot be made.
    #[error("{}: {source}", shown_path(path), source = sentence(source))]
    Schema {
        /// The file.
        path: PathBuf,
        /// What.
        source: SchemaError,
    },

    /// No variable of this name or number.
    #[error("{}: there is no variable {name}{hint}", shown_path(path), name = sentence(name), hint = sentence(hint))]
    NoSuchVariable {
        /// The file.
        path: PathBuf,
        /// The name in quotes, or the number.
        name: String,
        /// The nearest names, or how many there are.
        hint: String,
    },

    /// A selection that the variable does not have.
    #[error("{}: variable \"{var}\": {source}", shown_path(path), var = sentence(var), source = sentence(source))]
    Selection {
        /// The file.
        path: PathBuf,
        /// The variable.
        var: String,
        /// What is wrong with it.
        source: SelectionError,
    },

    /// What a decomposition map does not allow, or what is wrong with one.
    #[error("{}: {what}: {source}", shown_path(path), what = sentence(what), source = sentence(source))]
    Decomposition {
        /// The file.
        path: PathBuf,
        /// The map, and the variable where it is about one.
        what: String,
        /// What is wrong.
        source: DecompositionError,
    },

    /// The caller's memory does not fit the selection.
    #[error("{}: variable \"{var}\": {source}", shown_path(path), var = sentence(var), source = sentence(source))]
    Memory {
        /// The file.
        path: PathBuf,
        /// The variable.
        var: String,
        /// What does not fit.
        source: MemoryError,
    },

    /// Types that do not convert.
    #[error("{}: variable \"{var}\": {source}", shown_path(path), var = sentence(var), source = sentence(source))]
    Convert {
        /// The file.
        path: PathBuf,
        /// The variable.
        var: String,
        /// What.
        source: ConvertError,
    },

    /// Some values did not fit the other type (NC_ERANGE). Everything was transferred; the
    /// values that did not fit became fill values.
    #[error("{}: variable \"{var}\": {report}; the rest was transferred", shown_path(path), var = sentence(var), report = sentence(report))]
    Range {
        /// The file.
        path: PathBuf,
        /// The variable.
        var: String,
        /// How many and which was the first.
        report: RangeReport,
    },

    /// The file ends before the data that were asked for.
    #[error(
        "{}: variable \"{var}\": its data reach to byte {needed}, but the file ends at {file_len}: \
         it was cut short, or these values were never written",
        shown_path(path), var = sentence(var))]
    ShortFile {
        /// The file.
        path: PathBuf,
        /// The variable.
        var: String,
        /// Where the data asked for end.
        needed: u64,
        /// Where the file ends.
        file_len: u64,
    },

    /// A change of a dataset that was opened for reading.
    #[error("{}: cannot {what}: it is open for reading only", shown_path(path), what = sentence(what))]
    ReadOnly {
        /// The file.
        path: PathBuf,
        /// What was tried.
        what: &'static str,
    },

    /// Variables that share bytes, in a file opened for writing.
    #[error(
        "{}: cannot be written: variables \"{first}\" and \"{second}\" overlap at byte {offset}; \
         it can be read, and copied to a sound file",
        shown_path(path), first = sentence(first), second = sentence(second))]
    Overlap {
        /// The file.
        path: PathBuf,
        /// One variable.
        first: String,
        /// The other.
        second: String,
        /// The first byte both have.
        offset: u64,
    },

    /// A redefinition was interrupted and its journal does not fit the file.
    #[error(
        "{}: a redefinition was interrupted, and {} does not fit the file any more: {why}; \
         remove it when the file is as you want it",
        shown_path(path),
        shown_path(journal), why = sentence(why))]
    StaleJournal {
        /// The file.
        path: PathBuf,
        /// The journal beside it.
        journal: PathBuf,
        /// What does not fit.
        why: &'static str,
    },

    /// Another rank of a collective call failed, so this one did nothing either.
    #[error("rank {rank} failed: {message}", message = sentence(message))]
    OtherRank {
        /// The lowest rank that failed.
        rank: usize,
        /// Its error.
        message: String,
    },

    /// The ranks could not talk to each other.
    #[error(transparent)]
    Comm(#[from] CommError),

    /// Graphs of variables that cannot be stored, or contradict each other.
    #[error("{}: {source}", path.display())]
    Graph {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: esker_format::graph::GraphError,
    },

    /// A graph of variables that is damaged.
    #[error("{}: {source}", path.display())]
    StoredGraph {
        /// The file.
        path: PathBuf,
        /// Where and how.
        #[source]
        source: esker_format::graph::GraphFault,
    },

    /// Ranks defined the same object differently; the same words on every rank.
    #[error("{}: {what}", shown_path(path), what = sentence(what))]
    Definitions {
        /// The file.
        path: PathBuf,
        /// The object, the ranks and both definitions.
        what: String,
    },

    /// Ranks that had to do the same did not.
    #[error("{}: {why}", shown_path(path), why = sentence(why))]
    NotAlike {
        /// The file.
        path: PathBuf,
        /// What they have to do.
        why: &'static str,
    },

    /// A request with places in the file that are not this dataset's (any more).
    #[error(
        "{}: a request was queued before the dataset was redefined, or for another dataset",
        shown_path(path)
    )]
    Redefined {
        /// The file.
        path: PathBuf,
    },

    /// What the caller refused ([`Dataset::refuse_all`](crate::Dataset::refuse_all)).
    #[error("{}", sentence(.0))]
    Refused(String),

    /// The attached buffer of buffered puts.
    #[error("{}", sentence(.0))]
    Buffer(String),

    /// A conversion that should have been refused when the request was queued.
    #[error("{}", sentence(.0))]
    Unchecked(ConvertError),

    /// The values in the caller's memory are not those of the caller's checksum.
    #[error(
        "{}: variable \"{var}\", {selection}: the caller's crc32c is {expected:#010x}, but {what} {found:#010x}",
        shown_path(path), var = sentence(var))]
    Checksum {
        /// The file.
        path: PathBuf,
        /// The variable.
        var: String,
        /// The selection, in words.
        selection: String,
        /// What the caller said.
        expected: u32,
        /// What the memory has.
        found: u32,
        /// Whether it was to be written, or has been read.
        what: &'static str,
    },

    /// A message of another rank arrived damaged.
    #[error(
        "{}: a message of {bytes} bytes from rank {from} to rank {to} arrived damaged: {why}",
        shown_path(path), why = sentence(why))]
    Message {
        /// The file.
        path: PathBuf,
        /// Who sent it.
        from: usize,
        /// Who got it.
        to: usize,
        /// Its length.
        bytes: u64,
        /// What it was about, and what does not match.
        why: String,
    },

    /// A message of another rank that makes no sense.
    #[error("a message of another rank cannot be understood: do all ranks run the same Esker?")]
    Garbled,

    /// The number of records cannot be stored.
    #[error("{}: {records} records cannot be stored in {version}: {max} can", shown_path(path))]
    TooManyRecords {
        /// The file.
        path: PathBuf,
        /// Records wanted.
        records: u64,
        /// The file version.
        version: esker_format::Version,
        /// Records possible.
        max: u64,
    },
}

/// What is wrong with the memory for a selection.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MemoryError {
    /// Another number of elements.
    #[error("the selection has {selected} elements, the buffer {given}")]
    Length {
        /// Elements selected.
        selected: u64,
        /// Elements given.
        given: u64,
    },
    /// The layout contradicts itself.
    #[error("the memory's shape has {shape} dimensions, but there are {strides} strides")]
    Rank {
        /// Dimensions of the shape.
        shape: usize,
        /// Strides given.
        strides: usize,
    },
    /// The layout leaves the buffer.
    #[error(
        "the memory's strides reach from element {lowest} to {highest}, but the buffer has {len}"
    )]
    Outside {
        /// The lowest place.
        lowest: i128,
        /// The highest place.
        highest: i128,
        /// Elements of the buffer.
        len: usize,
    },
}

/// What is wrong with a selection.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SelectionError {
    /// Another number of dimensions than the variable has.
    #[error("the selection has {given} dimensions, the variable {expected}")]
    Rank {
        /// Dimensions of the variable.
        expected: usize,
        /// Dimensions of the selection.
        given: usize,
    },
    /// Beyond the end of a dimension.
    #[error(
        "dimension \"{dim}\" has length {len}: start {start}, count {count}, stride {stride} \
         goes beyond it", dim = sentence(dim))]
    OutOfBounds {
        /// The dimension.
        dim: String,
        /// Its length.
        len: u64,
        /// The start asked for.
        start: u64,
        /// The count asked for.
        count: u64,
        /// The stride asked for.
        stride: u64,
    },
    /// A stride of 0.
    #[error("the stride of dimension \"{dim}\" is 0", dim = sentence(dim))]
    ZeroStride {
        /// The dimension.
        dim: String,
    },
    /// More elements than can be counted.
    #[error("the selection has more elements than fit 63 bits")]
    TooLarge,
    /// The data for a whole record variable are not whole records.
    #[error("{given} elements are not a whole number of records of {record} elements")]
    NotWholeRecords {
        /// Elements given.
        given: u64,
        /// Elements of one record.
        record: u64,
    },
    /// Appending to a variable that has no records.
    #[error("it has no record dimension, so nothing can be appended")]
    NotRecord,
}
