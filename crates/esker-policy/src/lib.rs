//! Decisions about how blocks are stored, as pure functions: no I/O, no ranks, no clocks, no dependencies.
//!
//! - [`patches`] says which rank gets which patch: as many for each, and few bytes moved;
//! - [`files`] cuts encoded patches, in their order, into files of like size;
//! - [`sizes`] makes the sizes that many ranks would have from those that few had.
#![forbid(unsafe_code)]

pub mod files;
pub mod patches;
pub mod sizes;
