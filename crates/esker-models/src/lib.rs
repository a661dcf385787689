//! What arrays mean together: graphs of variables, relations between elements, meshes, AMR hierarchies.
//!
//! - [`graph`]: walks over the graphs of a dataset ([`esker::Define::graphs_mut`] defines them, [`esker::Dataset::graphs`]
//!   reads them) and draws them;
//! - [`relation`]: which elements of one dimension belong to which of another, as sparse tables in shares
//!   of rows: read, inverted, composed, and never whole on a rank;
//! - [`mesh`]: UGRID meshes, read, written, made of other conventions, and cut into parts with halos;
//! - [`amr`]: levels of boxes in one file, AMReX plotfiles in and out, covering grids.
//!
//! ```
//! use esker::{CreateOptions, Dataset, DimLen, ExternalType};
//! use esker_models::graph::Walk;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let dir = tempfile::tempdir()?;
//! # let path = dir.path().join("plot.nc");
//! let mut def = Dataset::create(&path, CreateOptions::new())?;
//! let x = def.add_dim("x", DimLen::Fixed(4))?;
//! def.add_var("density", ExternalType::Float, &[x])?;
//! let graphs = def.graphs_mut()?;
//! graphs.add_graph("amr")?;
//! graphs.add_edge("refines", 2.0, true)?;
//! for level in ["coarse", "fine"] {
//!     graphs.add_vertex(level)?;
//!     graphs.put_in("amr", level)?;
//! }
//! graphs.connect("fine", "refines", "coarse")?;
//! graphs.attach("coarse", "density")?;
//! let dataset = def.enddef()?;
//! let graphs = dataset.graphs()?;
//! let walk = Walk::new(&graphs.set, "amr")?;
//! assert_eq!(walk.roots(), ["fine"]);
//! assert_eq!(walk.neighbours("fine", Some("refines"))?, ["coarse"]);
//! # Ok(()) }
//! ```
#![forbid(unsafe_code)]

pub mod amr;
mod error;
pub mod graph;
pub mod mesh;
pub mod relation;
mod shares;

pub use error::{ModelError, Result};
pub use shares::Shares;
