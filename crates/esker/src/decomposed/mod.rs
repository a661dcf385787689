//! Decomposed variables: each rank's elements lie together, and a map that many variables share
//! says what they are (seeds/000 §6.4.1 and §7.4).
//!
//! A rank's part of such a variable, its *blob*, is one contiguous write for each index of the
//! dimensions before the map's, however the elements are scattered over the array. Reading goes
//! through the map, so that the variable is the array it stands for on any number of ranks.
//!
//! Everything ends in `check_decomposed`: a selection becomes places in the file, as for any other
//! variable, and the road of requests, plans and exchange knows nothing of maps.
//!
//! `define` makes a map (`coverage` counts what the ranks have together), `maps` finds them in a
//! header, `load` reads them, `index` answers questions, `check` places selections. `subfiles`,
//! `spread` and `naming` are for variables in several files. ARCHITECTURE.md has the form on disk.

mod arrays;
mod check;
mod coverage;
mod define;
mod error;
mod grid;
mod index;
mod load;
mod maps;
mod naming;
mod spread;
mod subfiles;

pub(crate) use arrays::follow_renames;
pub(crate) use define::{NewMap, write_maps};
pub use error::DecompositionError;
pub(crate) use maps::Maps;
pub use maps::{Decomposition, DecompositionId};
pub(crate) use naming::{Replaced, discard_new, named_subfiles};
pub(crate) use spread::Spread;
pub(crate) use subfiles::Groups;

/// The attribute of a decomposed variable that names its map.
const ATTRIBUTE: &str = "decomposition";
/// The dimension that stands for the decomposed ones, after the map's name.
const STORED: &str = "nelems";
/// The variables of a map, after its name: one number for each rank,
const BLOCKS_OF: &str = "nreqs";
const FIRST_BLOCK: &str = "req_start";
const BLOB_START: &str = "blob_start";
const BLOB_COUNT: &str = "blob_count";
/// and one number for each block.
const OFFSETS: &str = "offsets";
const LENGTHS: &str = "lengths";
/// Attributes of `nreqs`.
const DIMENSIONS: &str = "decomposed_dimensions";
const SHAPE: &str = "decomposed_shape";
const COVERED: &str = "covered";
const REPEATED: &str = "repeated";

/// The name of a dimension or variable of a map.
fn part(map: &str, what: &str) -> String {
    format!("{map}.{what}")
}
