//! Block-structured AMR: levels of boxes in one file instead of thousands.
//!
//! A [`Hierarchy`] says what there is: components, time, levels with their domains, ratios and [`Cells`] (boxes). In a dataset
//! a level is one variable of serialised boxes (`level_0`, components slowest, x fastest, as in a FAB), the offsets of the boxes in it, and their corners;
//! a graph `amr` joins the levels by edges that refine. docs/format/amr.md has the names.
//!
//! - [`Plotfile`] reads AMReX plotfiles, [`store`] writes one (or any [`BoxSource`]) into a dataset, [`write_plotfile`] writes a dataset back, bit for bit;
//! - [`Amr`] opens such a dataset; [`Amr::read`] gives a covering grid of any region at any level, the finest data there is
//!   and coarser injected, and touches only boxes that intersect it.

mod cells;
mod covering;
mod dataset;
mod hierarchy;
mod index;
mod plotfile;
mod text;
mod write;

pub use cells::Cells;
pub use dataset::{Amr, BoxSource, store};
pub use hierarchy::{Hierarchy, Level};
pub use index::BoxIndex;
pub use plotfile::Plotfile;
pub use write::write_plotfile;
