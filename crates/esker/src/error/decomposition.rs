//! What a map does not allow, and what can be wrong with one.

use esker_text::sentence;

/// What is wrong with a decomposition map, or with the use of one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DecompositionError {
    /// Written, or read by blob, on another number of ranks than the map has.
    #[error(
        "the map has blobs of {map} ranks, and these are {ranks}: any number can read it as an array, but only {map} can write"
    )]
    Ranks {
        /// Ranks of the map.
        map: u64,
        /// Ranks that have the dataset open.
        ranks: u64,
    },
    /// A write of something that is not this rank's.
    #[error(
        "element {index:?} is not in the part of rank {rank}, which has {elements} elements in {blocks} blocks"
    )]
    Outside {
        /// The first such element, in the decomposed dimensions.
        index: Vec<u64>,
        /// The rank that would write it.
        rank: u64,
        /// Elements of its part.
        elements: u64,
        /// Blocks of its part.
        blocks: u64,
    },
    /// The number of a block that this rank does not have.
    #[error("there is no block {block}: rank {rank} has {blocks}")]
    NoSuchBlock {
        /// The number.
        block: u64,
        /// The rank.
        rank: u64,
        /// How many blocks it has.
        blocks: u64,
    },
    /// A blob of a variable that has none.
    #[error("it is not decomposed: it has no blobs, and takes hyperslabs")]
    NotDecomposed,
    /// A part of a map that has an element twice.
    #[error("the part of rank {rank} has element {index:?} more than once")]
    Twice {
        /// The rank.
        rank: u64,
        /// The element, in the decomposed dimensions.
        index: Vec<u64>,
    },
    /// A map without elements.
    #[error("no rank has an element of it")]
    Empty,
    /// A dimension that cannot be decomposed.
    #[error("dimension \"{}\" is unlimited: it can only come before the decomposed ones", sentence(.0))]
    Unlimited(String),
    /// A map in a container.
    #[error(
        "a container has no decomposed variables: its log takes scattered elements as they come"
    )]
    Container,
    /// No dimensions, or more elements than can be counted.
    #[error("the decomposed dimensions {0:?} have no elements, or more than can be counted")]
    NoGrid(Vec<u64>),
    /// A part that is not given by hyperslabs.
    #[error("a rank's part is given by hyperslabs, not by a blob")]
    NotBlocks,
    /// More than the file's version can count.
    #[error("{what} is {count}, and this version of files can have {max} at most: use CDF-5", what = sentence(what))]
    TooLarge {
        /// What is counted.
        what: &'static str,
        /// How many there are.
        count: u64,
        /// How many there may be.
        max: u64,
    },
    /// Ranks that decompose different dimensions.
    #[error("the ranks decompose different dimensions")]
    NotAlike,
    /// No map of this number.
    #[error("there is no such map")]
    NoSuchMap,
    /// So little of an array is stored that it is not read into new memory.
    #[error(
        "{gaps} of {elements} elements are in nobody's part: read them into memory of your own, or fewer at a time"
    )]
    Sparse {
        /// Elements that nobody has.
        gaps: u64,
        /// Elements asked for.
        elements: u64,
    },
    /// A map in a file that cannot be followed.
    #[error("the map is damaged: {}", sentence(.0))]
    Damaged(String),
}
