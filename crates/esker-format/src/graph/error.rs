//! What can be wrong with graphs, in sentences.

use std::sync::Arc;

use crate::error::SchemaError;

/// A graph that cannot be defined.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum GraphError {
    /// A name that breaks the rules, is taken, or does not exist.
    #[error(transparent)]
    Name(#[from] SchemaError),
    /// An edge's weight is not a number.
    #[error("edge \"{edge}\" cannot have the weight NaN, which is equal to nothing")]
    Weight {
        /// The edge.
        edge: Arc<str>,
    },
    /// A vertex that no graph has.
    #[error("vertex \"{vertex}\" is in no graph: put it into one, or delete it")]
    NoGraph {
        /// The vertex.
        vertex: Arc<str>,
    },
    /// Edges, but no graph that could hold them.
    #[error("edge \"{edge}\" is defined, but there is no graph to store it in")]
    Homeless {
        /// The edge.
        edge: Arc<str>,
    },
    /// Two neighbours that no graph has both of.
    #[error("edge \"{edge}\" joins vertices \"{from}\" and \"{to}\", but no graph has both")]
    Apart {
        /// The edge.
        edge: Arc<str>,
        /// Where it begins.
        from: Arc<str>,
        /// Where it ends.
        to: Arc<str>,
    },
    /// A vertex speaks of a variable that is not there.
    #[error("vertex \"{vertex}\" has variable \"{var}\", which is not defined")]
    NoVariable {
        /// The vertex.
        vertex: Arc<str>,
        /// The variable.
        var: Arc<str>,
    },
    /// Something that is not connected, attached or contained cannot be taken away.
    #[error("{what}")]
    NotThere {
        /// What is not there.
        what: String,
    },
    /// Two graphs of a file have a vertex or an edge of one name, but not the same one.
    #[error("{object}: graph \"{first}\" has {first_says}, graph \"{second}\" has {second_says}")]
    Differ {
        /// The vertex or edge.
        object: String,
        /// One graph,
        first: Arc<str>,
        /// what it says,
        first_says: String,
        /// another one,
        second: Arc<str>,
        /// and what that says.
        second_says: String,
    },
}

/// Bytes that are no graph.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("graph \"{graph}\", byte {offset}, {object}: {what}")]
pub struct GraphFault {
    /// The graph.
    pub graph: String,
    /// Where in its bytes the offending value begins.
    pub offset: u64,
    /// What was being read: `vertex 3 ("level_2")`.
    pub object: String,
    /// What is wrong, with the value.
    pub what: String,
}
