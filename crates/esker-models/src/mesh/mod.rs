//! Unstructured meshes in the UGRID 1.0 convention: found, read, written, made of other conventions, cut into
//! parts with halos.
//!
//! - [`topologies`] finds the meshes of a dataset in its header; [`Topology::relation`] reads a connectivity in shares;
//! - [`convert`] makes a UGRID file of an MPAS, ESMF, SCRIP, Exodus, ICON or FESOM file, known by its content;
//! - [`Part`] is what one rank has: its own elements, some layers of halo, local numbers, who has what, and
//!   fields read and written through it in one collective call.

mod convert;
mod field;
mod hilbert;
mod labels;
mod part;
mod topology;
mod write;

pub use convert::{Convention, Converted, convention_of, convert};
pub use field::FieldSlab;
pub use hilbert::{hilbert_key, hilbert_key_3};
pub use labels::{Cut, labels};
pub use part::{LocalTable, Part};
pub use topology::{Connectivity, Location, Shapes, Topology, topologies};
