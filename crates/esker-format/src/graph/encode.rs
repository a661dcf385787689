//! A graph to bytes.

use std::collections::{HashMap, HashSet};

use super::error::GraphError;
use super::set::{Edge, Graph, GraphSet, Vertex};
use super::{HEAD, MAGIC, NC_ATTRIBUTE, NC_EDGE, NC_VERTEX, NO_NUMBER, SUM, VERSION};
use crate::schema::{Attribute, NamedList};

impl GraphSet {
    /// The bytes of the graph of this name: its vertices, the links between them and the edges of
    /// these. `number` gives the number of a variable; their length does not depend on it.
    pub fn encode(
        &self,
        graph: &str,
        number: impl Fn(&str) -> Option<usize>,
    ) -> Result<Vec<u8>, GraphError> {
        let graph = self.graph(graph)?;
        let vertices = self.vertices_of(graph);
        let names: HashSet<&str> = vertices.iter().map(|v| &*v.name).collect();
        let links = vertices.iter().flat_map(|v| v.links.iter());
        let used: HashSet<&str> =
            links.filter(|link| names.contains(&*link.to)).map(|link| &*link.edge).collect();
        let mut edges: Vec<_> = self.edges.iter().filter(|e| used.contains(&*e.name)).collect();
        if self.graphs.at(0).is_some_and(|first| first.name == graph.name) {
            // Those that join nothing yet are somewhere too.
            let links = self.vertices.iter().flat_map(|v| v.links.iter());
            let joining: HashSet<&str> = links.map(|link| &*link.edge).collect();
            edges.extend(self.edges.iter().filter(|e| !joining.contains(&*e.name)));
        }
        Ok(stored(&graph.attrs, &edges, &vertices, number))
    }

    /// The vertices of a graph, in its order.
    pub fn vertices_of(&self, graph: &Graph) -> Vec<&Vertex> {
        graph.vertices.iter().filter_map(|name| self.vertices.get(name)).collect()
    }
}

/// The bytes of a graph of these edges and vertices, with the links that are among them.
pub(super) fn stored(
    attrs: &NamedList<Attribute>,
    edges: &[&Edge],
    vertices: &[&Vertex],
    number: impl Fn(&str) -> Option<usize>,
) -> Vec<u8> {
    let inside: HashMap<&str, u64> = vertices.iter().map(|v| &*v.name).zip(0u64..).collect();
    let edge_numbers: HashMap<&str, u64> = edges.iter().map(|e| &*e.name).zip(0u64..).collect();
    let directed = (edges.iter().any(|e| e.directed), edges.iter().any(|e| !e.directed));
    let kind = match directed {
        (_, false) => 1,
        (false, true) => 2,
        (true, true) => 3,
    };
    let mut out = Out { bytes: Vec::with_capacity(HEAD) };
    out.bytes.extend(MAGIC);
    out.bytes.extend([kind, VERSION, 0]);
    out.count(0);
    out.attrs(attrs);
    out.list(NC_EDGE, edges.len());
    for edge in edges {
        out.name(&edge.name);
        out.bytes.extend(edge.weight.to_be_bytes());
        out.bytes.extend((if edge.directed { 1u32 } else { 2 }).to_be_bytes());
    }
    out.list(NC_VERTEX, vertices.len());
    for vertex in vertices {
        let begin = out.bytes.len();
        out.name(&vertex.name);
        out.count(vertex.vars.len() as u64);
        for var in &vertex.vars {
            out.count(number(var).map_or(NO_NUMBER, |n| n as u64));
            out.name(var);
        }
        let pairs = vertex
            .links
            .iter()
            .filter_map(|link| Some([*edge_numbers.get(&*link.edge)?, *inside.get(&*link.to)?]));
        let pairs: Vec<[u64; 2]> = pairs.collect();
        out.count(pairs.len() as u64);
        pairs.iter().flatten().for_each(|n| out.count(*n));
        out.attrs(&vertex.attrs);
        let size = out.bytes.len() + 16 - begin;
        out.count(size as u64);
        out.count(begin as u64);
    }
    let length = (out.bytes.len() + SUM) as u64;
    out.bytes[8..HEAD].copy_from_slice(&length.to_be_bytes());
    let sum = format!("{:08x}", crc32c::crc32c(&out.bytes));
    out.bytes.extend(sum.as_bytes());
    out.bytes
}

/// Bytes with CDF-5's productions.
struct Out {
    bytes: Vec<u8>,
}

impl Out {
    fn list(&mut self, tag: u32, len: usize) {
        let tag = if len == 0 { 0 } else { tag };
        self.bytes.extend(tag.to_be_bytes());
        self.count(len as u64);
    }

    fn count(&mut self, value: u64) {
        self.bytes.extend(value.to_be_bytes());
    }

    fn name(&mut self, name: &str) {
        self.count(name.len() as u64);
        self.bytes.extend(name.as_bytes());
        self.pad();
    }

    fn attrs(&mut self, attrs: &NamedList<Attribute>) {
        self.list(NC_ATTRIBUTE, attrs.len());
        for attr in attrs {
            self.name(&attr.name);
            self.bytes.extend(attr.values.ty().code().to_be_bytes());
            self.count(attr.values.len() as u64);
            attr.values.encode_into(&mut self.bytes);
            self.pad();
        }
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}
