//! Decisions about how blocks are stored, as pure functions: no I/O, no ranks, no clocks, no dependencies.
//!
//! Codes with moving blocks leave each rank dozens of small boxes of an array. Appending them is fast, reading them back is
//! not. What can be done about that is decided here, and done elsewhere:
//!
//! - [`cluster`](fn@cluster::cluster) merges [`Boxes`](boxes::Boxes) into few disjoint cuboids, and says which parts of which boxes fill each;
//! - [`bricks`] cuts a cuboid's payload into bricks, so that a plane of it touches a part of it only, and
//!   knows where each element lies;
//! - [`reading`] predicts what a read of a layout takes, and [`advice`] ranks layouts by it;
//! - [`dealt`] deals blocks to ranks as such codes do, for simulations and benchmarks;
//! - [`staging`] is the model of Wan et al. (Improving I/O Performance for Exascale Applications through Online Data
//!   Layout Reorganization, section 5.2): when reorganizing on the fly is cheaper than afterwards;
//! - [`patches`] says which rank gets which patch: as many for each, and few bytes moved;
//! - [`files`] cuts encoded patches, in their order, into files of like size;
//! - [`sizes`] makes the sizes that many ranks would have from those that few had.
//!
//! The two words: a *box* is what a rank wrote, a *cuboid* what boxes were merged into. Both are hyperslabs without stride.
//!
//! ```
//! use esker_policy::boxes::Boxes;
//! use esker_policy::cluster::{Limits, cluster};
//!
//! let mut boxes = Boxes::new(2);
//! for (start, count) in [([0, 0], [4, 4]), ([4, 4], [4, 4]), ([0, 4], [4, 4]), ([4, 0], [2, 4])] {
//!     boxes.push(&start, &count).unwrap();
//! }
//! let merged = cluster(&boxes, &Limits::default()).unwrap();
//! assert_eq!(merged.len(), 2);
//! let all: Vec<_> = merged.cuboids().map(|cuboid| (cuboid.start(), cuboid.count())).collect();
//! assert_eq!(all, [(vec![0, 0], vec![6, 8]), (vec![6, 4], vec![2, 4])]);
//! assert_eq!(merged.sources(1).collect::<Vec<_>>(), [1]);
//! ```
//!
//! How cuboids are found is described in docs/rooms/merging-blocks.md, what it is good for in docs/layouts.md.
#![forbid(unsafe_code)]

pub mod advice;
pub mod boxes;
pub mod bricks;
pub mod cluster;
pub mod dealt;
pub mod files;
pub mod patches;
pub mod reading;
pub mod sizes;
pub mod staging;
