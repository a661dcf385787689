//! Walking and drawing graphs of variables.
//!
//! [`Walk`] answers what is beside what; [`picture`] makes text of a graph: Graphviz, JSON, SVG.

pub mod picture;
mod walk;

pub use walk::Walk;
