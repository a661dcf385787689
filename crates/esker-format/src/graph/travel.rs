//! A whole set as bytes, to send it to another rank: also what no graph has yet.

use std::sync::Arc;

use super::decode::{StoredGraph, decode};
use super::encode::stored;
use super::set::{GraphSet, Link, Of};
use crate::schema::NamedList;

impl GraphSet {
    /// Everything that is defined as bytes: the stored form of all vertices and edges, then that of
    /// each graph's attributes, its name and the numbers of its vertices.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let mut part = |bytes: &[u8]| {
            out.extend((bytes.len() as u64).to_le_bytes());
            out.extend(bytes);
        };
        let (edges, vertices): (Vec<_>, Vec<_>) =
            (self.edges.iter().collect(), self.vertices.iter().collect());
        part(&stored(&NamedList::default(), &edges, &vertices, |_| None));
        for graph in &self.graphs {
            part(graph.name.as_bytes());
            part(&stored(&graph.attrs, &[], &[], |_| None));
            let numbers = graph.vertices.iter().filter_map(|v| self.vertices.position(v));
            let numbers: Vec<u8> = numbers.flat_map(|n| (n as u64).to_le_bytes()).collect();
            part(&numbers);
        }
        out
    }

    /// The set that [`GraphSet::to_bytes`] made bytes of, if they are such bytes.
    pub fn from_bytes(bytes: &[u8]) -> Option<GraphSet> {
        let mut rest = bytes;
        let mut part = || {
            let (len, after) = rest.split_first_chunk::<8>()?;
            let len = usize::try_from(u64::from_le_bytes(*len)).ok()?;
            let (part, after) = after.split_at_checked(len)?;
            rest = after;
            Some(part)
        };
        let all = decode("", part()?).ok()?;
        let mut set = GraphSet::default();
        set.take_all(&all)?;
        while let Some(name) = part() {
            let name = std::str::from_utf8(name).ok()?;
            let attrs = decode(name, part()?).ok()?.attrs;
            set.add_graph(name).ok()?;
            for attr in &attrs {
                set.put_attr(Of::Graph(name), &attr.name, attr.values.clone()).ok()?;
            }
            let (numbers, _) = part()?.as_chunks::<8>();
            for number in numbers {
                let vertex =
                    all.vertices.get(usize::try_from(u64::from_le_bytes(*number)).ok()?)?;
                set.put_in(name, &vertex.name).ok()?;
            }
        }
        Some(set)
    }

    fn take_all(&mut self, all: &StoredGraph) -> Option<()> {
        for edge in &all.edges {
            self.edges.push(edge.clone()).ok()?;
        }
        for vertex in &all.vertices {
            self.add_vertex(&vertex.name).ok()?;
            let attrs = vertex.attrs.clone();
            let links = vertex.links.iter().map(|(edge, to)| {
                let (edge, to) = (all.edges.at(*edge)?, all.vertices.get(*to)?);
                Some(Link { edge: edge.name.clone(), to: to.name.clone() })
            });
            let links: Vec<Link> = links.collect::<Option<_>>()?;
            let vars: Vec<Arc<str>> = vertex.vars.iter().map(|v| v.name.clone()).collect();
            let new = self.vertices.at_mut(self.vertices.len() - 1)?;
            new.attrs = attrs;
            for link in links {
                new.links.insert(link);
            }
            for var in vars {
                new.vars.insert(var);
            }
        }
        Some(())
    }
}
