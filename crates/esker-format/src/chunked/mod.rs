//! Chunked variables: how a classic file describes them.
//!
//! The file has a scalar, the *anchor*, with attributes that say what it stands for; programs see
//! a variable with dimensions. [`to_file`] and [`from_file`] turn the one into the other,
//! [`Grid`] says which chunk an element is in, and [`TableHead`], [`Block`] and [`Entry`] are what the
//! tables are made of. docs/format/chunked.md has the format.

mod anchor;
mod end;
mod grid;
mod head;
mod made_for;
mod seal;
mod table;
mod writer;

pub use anchor::{
    Anchor, begun_field, begun_of, from_file, heap_of, identity_of, lengths, put_begun, put_heap,
    put_identity, put_records, to_file,
};
pub(crate) use anchor::{address, field, to_address};
pub use end::{add_end, end_begin, end_field, end_of, without_end};
pub use grid::{Grid, automatic_shape};
pub use head::FileHead;
pub use made_for::{Axis, HeadFault, MadeFor, TableHead};
pub use seal::Seal;
pub use table::{Block, DamagedEntry, Entry};
pub use writer::{WRITER_LEN, put_writer, writer_field, writer_of};

/// The numbers of the dimensions; makes a scalar an anchor.
pub const DIMS: &str = "__chunk_dims";
/// The length of a chunk in each dimension.
pub const SHAPE: &str = "__chunk_shape";
/// The filters: numbers in a file, text for programs.
pub const FILTERS: &str = "__filters";
/// Where the head of the table is, from the beginning of the heap.
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

/// A random number of the dataset, which checksums of its tables know: an attribute of the dataset.
pub const IDENTITY: &str = "__chunk_id";
/// Who wrote last: an attribute of the dataset.
pub const WRITER: &str = "__chunk_writer";
/// Says that `_FillValue` of an anchor is there for other programs, and not one that somebody has defined.
pub const FILL: &str = "__chunk_fill";
/// What people read who look at an anchor with other programs.
pub const NOTE: &str = "__chunk_note";

/// Everything in a heap begins at multiples of this.
pub const ALIGN: u64 = 64;

/// Bytes of a chunk, at most.
pub const LARGEST: u64 = 1 << 30;
