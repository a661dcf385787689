//! Decomposed variables: each rank's elements lie together, and a map that many variables share
//! says what they are (seeds/000 §6.4.1 and §7.4).
//!
//! A rank's part of such a variable, its *blob*, is one contiguous write for each index of the
//! dimensions before the map's, however the elements are scattered over the array. Reading goes
//! through the map, so that the variable is the array it stands for on any number of ranks.
//!
//! `layout` is the way in, and everything ends in `check`: a selection becomes places in the file, as for any other
//! variable, and the road of requests, plans and exchange knows nothing of maps.
//!
//! `define` makes a map (`coverage` counts what the ranks have together), `maps` finds them in a
//! header, `load` reads them and `rows` compares their checksums, `index` answers questions, `check` places selections. `subfiles`,
//! `spread` and `naming` are for variables in several files. docs/format/decomposed.md has the form on disk.

mod arrays;
mod check;
mod coverage;
mod define;
mod files;
mod grid;
mod index;
mod layout;
mod load;
mod maps;
mod naming;
mod rows;
mod spread;
mod subfiles;

pub(crate) use arrays::follow_renames;
pub use arrays::is_unmarked;
pub(crate) use define::{NewMap, write_maps};
pub(crate) use layout::MapRoom;
pub use maps::{Decomposition, DecompositionId};
pub(crate) use naming::{Replaced, discard_new, named_subfiles};
pub(crate) use spread::Spread;
pub(crate) use subfiles::{Groups, require_dataset};

// The names are those of the format: a header's seals know them.
use esker_format::sealed::decomposed::{
    ATTRIBUTE, BLOB_COUNT, BLOB_START, BLOCK_CHECKSUM, BLOCKS_OF, CHECKSUM, FIRST_BLOCK, LENGTHS,
    OFFSETS, SHAPE, STORED,
};

/// Attributes of `nreqs` beside its shape.
const DIMENSIONS: &str = "decomposed_dimensions";
const COVERED: &str = "covered";
const REPEATED: &str = "repeated";
/// A number that no other map has, which the checksums of this one know.
const MAP_IDENTITY: &str = "map_identity";

/// The name of a dimension or variable of a map.
fn part(map: &str, what: &str) -> String {
    format!("{map}.{what}")
}
