//! The graphs of all ranks become one set: names are keys, what is associated is the union.

use std::hash::{DefaultHasher, Hash, Hasher};

use esker_comm::{Communicator, CommunicatorExt, Message};
use esker_format::graph::{GraphSet, Of};
use esker_format::{Attribute, NamedList};

use crate::base::broadcast_parts;
use crate::error::Error;
use crate::merge::{MergeError, conflict, merge_attrs};
use crate::tree::TreeError;

/// What ranks compare before they merge.
pub(super) fn hash(set: &GraphSet) -> u64 {
    let mut hasher = DefaultHasher::new();
    (set.to_bytes(), set.was_changed(), set.renamed()).hash(&mut hasher);
    hasher.finish()
}

/// A set with the lowest rank that defined each thing that two can define differently.
struct Draft {
    set: GraphSet,
    edges: Vec<u64>,
    /// For each graph, then for each vertex, those of its attributes.
    graph_attrs: Vec<Vec<u64>>,
    vertex_attrs: Vec<Vec<u64>>,
}

type Travelling = std::result::Result<Draft, String>;

/// Merges all ranks' sets. Collective; the same on every rank.
pub(super) fn merge(
    comm: &dyn Communicator,
    set: &GraphSet,
) -> std::result::Result<GraphSet, TreeError> {
    let mine = Draft::of(set, comm.rank() as u64);
    let top = comm.merge_up(encode(&Ok(mine)), |lower, higher| {
        let merged = match (decode(&lower), decode(&higher)) {
            (Some(Ok(lower)), Some(Ok(higher))) => lower.merge(&higher).map_err(|e| e.to_string()),
            (Some(Err(what)), _) | (_, Some(Err(what))) => Err(what),
            (None, _) | (_, None) => Err(Error::Garbled.to_string()),
        };
        encode(&merged)
    })?;
    let parts = broadcast_parts(comm, &[&top.unwrap_or_default()]).map_err(|e| match e {
        Error::Comm(error) => TreeError::Comm(error),
        _ => TreeError::Garbled,
    })?;
    let merged = parts.first().and_then(|bytes| decode(bytes)).ok_or(TreeError::Garbled)?;
    Ok(merged.map_err(TreeError::Conflict)?.set)
}

impl Draft {
    fn of(set: &GraphSet, rank: u64) -> Draft {
        let of_attrs = |attrs: &NamedList<Attribute>| vec![rank; attrs.len()];
        let graph_attrs = set.graphs().iter().map(|g| of_attrs(&g.attrs)).collect();
        let vertex_attrs = set.vertices().iter().map(|v| of_attrs(&v.attrs)).collect();
        let edges = vec![rank; set.edges().len()];
        Draft { set: set.clone(), edges, graph_attrs, vertex_attrs }
    }

    /// This draft with what `other` has beyond it.
    fn merge(mut self, other: &Draft) -> Result<Draft, MergeError> {
        let set = &mut self.set;
        for (edge, rank) in other.set.edges().iter().zip(&other.edges) {
            match set.edges().position(&edge.name) {
                None => {
                    set.add_edge(&edge.name, edge.weight, edge.directed).map_err(garbled)?;
                    self.edges.push(*rank);
                }
                Some(at) if set.edges().as_slice()[at] == *edge => {}
                Some(at) => {
                    let object = format!("edge \"{}\"", edge.name);
                    let texts = (set.edges().as_slice()[at].words(), edge.words());
                    return Err(conflict(object, self.edges[at], *rank, texts));
                }
            }
        }
        for (number, vertex) in other.set.vertices().iter().enumerate() {
            let at = set.vertices().position(&vertex.name);
            let at = match at {
                Some(at) => at,
                None => {
                    set.add_vertex(&vertex.name).map_err(garbled)?;
                    self.vertex_attrs.push(Vec::new());
                    set.vertices().len() - 1
                }
            };
            for var in &vertex.vars {
                set.attach(&vertex.name, var).map_err(garbled)?;
            }
            let object = format!("vertex \"{}\"", vertex.name);
            let mine = &set.vertices().as_slice()[at].attrs;
            let (theirs, ranks) = (&vertex.attrs, &other.vertex_attrs[number]);
            let (attrs, ranks) =
                merge_attrs(mine, &self.vertex_attrs[at], theirs, ranks, Some(&object))?;
            self.vertex_attrs[at] = ranks;
            for attr in attrs.iter() {
                let of = Of::Vertex(&vertex.name);
                set.put_attr(of, &attr.name, attr.values.clone()).map_err(garbled)?;
            }
        }
        for vertex in other.set.vertices() {
            for link in &vertex.links {
                set.connect(&vertex.name, &link.edge, &link.to).map_err(garbled)?;
            }
        }
        for (number, graph) in other.set.graphs().iter().enumerate() {
            let at = match set.graphs().position(&graph.name) {
                Some(at) => at,
                None => {
                    set.add_graph(&graph.name).map_err(garbled)?;
                    self.graph_attrs.push(Vec::new());
                    set.graphs().len() - 1
                }
            };
            for vertex in &graph.vertices {
                set.put_in(&graph.name, vertex).map_err(garbled)?;
            }
            let object = format!("graph \"{}\"", graph.name);
            let mine = &set.graphs().as_slice()[at].attrs;
            let (theirs, ranks) = (&graph.attrs, &other.graph_attrs[number]);
            let (attrs, ranks) =
                merge_attrs(mine, &self.graph_attrs[at], theirs, ranks, Some(&object))?;
            self.graph_attrs[at] = ranks;
            for attr in attrs.iter() {
                let of = Of::Graph(&graph.name);
                set.put_attr(of, &attr.name, attr.values.clone()).map_err(garbled)?;
            }
        }
        Ok(self)
    }
}

/// Every name of a draft was checked when it was defined, so that this does not happen.
fn garbled(error: esker_format::graph::GraphError) -> MergeError {
    MergeError::Graph(error.to_string())
}

fn encode(travelling: &Travelling) -> Message {
    let mut bytes = Vec::new();
    let mut part = |part: &[u8]| {
        bytes.extend((part.len() as u64).to_le_bytes());
        bytes.extend(part);
    };
    match travelling {
        Err(what) => part(what.as_bytes()),
        Ok(draft) => {
            part(&draft.set.to_bytes());
            part(&Message::from_u64s(&draft.edges));
            part(&Message::from_u64s(&draft.graph_attrs.concat()));
            part(&Message::from_u64s(&draft.vertex_attrs.concat()));
        }
    }
    Message::from(bytes)
}

fn decode(bytes: &[u8]) -> Option<Travelling> {
    let mut rest = bytes;
    let mut parts: Vec<&[u8]> = Vec::new();
    while let Some((len, after)) = rest.split_first_chunk::<8>() {
        let (part, after) = after.split_at_checked(u64::from_le_bytes(*len) as usize)?;
        parts.push(part);
        rest = after;
    }
    let numbers = |part: &[u8]| Message::from(part).to_u64s();
    match parts.as_slice() {
        [what] => Some(Err(String::from_utf8_lossy(what).into_owned())),
        [set, edges, graphs, vertices] => {
            let set = GraphSet::from_bytes(set)?;
            let graph_attrs = cut(&numbers(graphs), set.graphs().iter().map(|g| g.attrs.len()))?;
            let of_vertices = set.vertices().iter().map(|v| v.attrs.len());
            let vertex_attrs = cut(&numbers(vertices), of_vertices)?;
            let edges = numbers(edges);
            (edges.len() == set.edges().len()).then_some(Ok(Draft {
                set,
                edges,
                graph_attrs,
                vertex_attrs,
            }))
        }
        _ => None,
    }
}

/// A list cut into lists of these lengths.
fn cut(mut all: &[u64], lengths: impl Iterator<Item = usize>) -> Option<Vec<Vec<u64>>> {
    let mut lists = Vec::new();
    for len in lengths {
        let (now, later) = all.split_at_checked(len)?;
        lists.push(now.to_vec());
        all = later;
    }
    all.is_empty().then_some(lists)
}
