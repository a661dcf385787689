//! Graphs of variables: which arrays belong together, and how (seeds/004, Figures 3 and 4).
//!
//! A [`GraphSet`] holds everything that is defined in one dataset: graphs, vertices and edges, by
//! name. A vertex has variables, attributes and links (an edge and a neighbour); it may be in several
//! graphs, and one edge may join many pairs. [`GraphSet::encode`] makes the bytes of one graph,
//! which a file keeps as a `char` variable, and [`decode`] reads them back; docs/format/graph.md has
//! the grammar.
//!
//! ```
//! use esker_format::graph::{GraphSet, decode};
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut set = GraphSet::default();
//! set.add_graph("amr")?;
//! set.add_edge("refines", 2.0, true)?;
//! for level in ["level_0", "level_1"] {
//!     set.add_vertex(level)?;
//!     set.put_in("amr", level)?;
//! }
//! set.connect("level_1", "refines", "level_0")?;
//! set.attach("level_0", "density")?;
//! let bytes = set.encode("amr", |name| (name == "density").then_some(7))?;
//! let read = decode("amr", &bytes)?;
//! assert_eq!(read.vertices[0].vars[0].number, Some(7));
//! # Ok(()) }
//! ```

mod decode;
mod encode;
mod error;
mod join;
mod ordered;
mod set;
mod travel;

pub use decode::{StoredGraph, StoredVertex, VarRef, decode};
pub use error::{GraphError, GraphFault};
pub use join::{Missing, join};
pub use ordered::Ordered;
pub use set::{Edge, Graph, GraphSet, Link, Of, Vertex};

/// What a graph's bytes begin with.
pub const MAGIC: &[u8; 5] = b"GRAPH";
/// The version of the grammar.
pub const VERSION: u8 = 1;
/// The attribute of a `char` variable that holds a graph, and its value.
pub const FORMAT: &str = "graph_format";
/// Its value for the bytes of a graph,
pub const LIVE: &str = "GRAPH 1";
/// and for room that a changed graph has left, to be used by the next change.
pub const SPARE: &str = "spare";

const NC_ATTRIBUTE: u32 = 0x0C;
const NC_EDGE: u32 = 0x0D;
const NC_VERTEX: u32 = 0x0E;
/// Bytes before the first list.
const HEAD: usize = 16;
/// Bytes of the checksum.
const SUM: usize = 8;
/// The number of a variable that has none.
const NO_NUMBER: u64 = i64::MAX as u64;

/// Whether a variable holds a graph.
pub fn is_graph(variable: &crate::Variable) -> bool {
    says(variable, LIVE)
}

/// Whether a variable is the room that a graph has left.
pub fn is_spare(variable: &crate::Variable) -> bool {
    says(variable, SPARE)
}

fn says(variable: &crate::Variable, what: &str) -> bool {
    let format = variable.attrs.get(FORMAT).and_then(|a| a.values.text());
    variable.ty == crate::ExternalType::Char && format.is_some_and(|text| text == what)
}
