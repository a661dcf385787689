//! Chunked variables: how a classic file describes them.
//!
//! The file has a scalar, the *anchor*, with attributes that say what it stands for; programs see
//! a variable with dimensions. [`to_file`] and [`from_file`] turn the one into the other,
//! [`Grid`] says which chunk an element is in, and [`Block`] and [`Entry`] are what the tables are
//! made of. ARCHITECTURE.md has the format.

mod anchor;
mod end;
mod grid;
mod head;
mod table;

pub use anchor::{
    Anchor, begun_field, begun_of, from_file, heap_of, lengths, put_begun, put_heap, put_records,
    to_file,
};
pub use end::{add_end, end_begin, end_field, end_of, without_end};
pub use grid::{Grid, automatic_shape};
pub use head::FileHead;
pub use table::{Block, DamagedEntry, Entry};

/// The numbers of the dimensions; makes a scalar an anchor.
pub const DIMS: &str = "__chunk_dims";
/// The length of a chunk in each dimension.
pub const SHAPE: &str = "__chunk_shape";
/// The filters: numbers in a file, text for programs.
pub const FILTERS: &str = "__filters";
/// Where the first table block is, from the beginning of the heap.
pub const REFS: &str = "__chunk_refs";
/// Records that were written.
pub const RECORDS: &str = "__chunk_ext_ndims";
/// Where the heap begins: an attribute of the dataset.
pub const HEAP: &str = "__chunk_heap";
/// What the files of a sub-filed dataset are called: an attribute of the dataset.
pub const FILES: &str = "__chunk_files";

/// Records that a call has begun to write, more than there are after a kill: an attribute of the dataset.
pub const BEGUN: &str = "__chunk_begun";
/// The variable where the chunks of a file end.
pub const END: &str = "__chunk_end";

/// Everything in a heap begins at multiples of this.
pub const ALIGN: u64 = 64;

/// Bytes of a chunk, at most.
pub const LARGEST: u64 = 1 << 30;
