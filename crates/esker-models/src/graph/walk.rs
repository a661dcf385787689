//! What is beside what.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use esker::graph::{Graph, GraphError, GraphSet, Vertex};

/// One graph, with what leads to each vertex beside what leads from it.
#[derive(Debug)]
pub struct Walk<'g> {
    set: &'g GraphSet,
    graph: &'g Graph,
    vertices: Vec<&'g Vertex>,
    places: HashMap<&'g str, usize>,
    /// For each vertex: edge, neighbour, in the order of definition; undirected ones from both ends.
    out: Vec<Vec<(&'g Arc<str>, usize)>>,
    /// For each vertex: whether a directed edge of another one leads to it.
    entered: Vec<bool>,
}

impl<'g> Walk<'g> {
    /// The graph of this name.
    pub fn new(set: &'g GraphSet, graph: &str) -> Result<Walk<'g>, GraphError> {
        let graph = set.graph(graph)?;
        let vertices = set.vertices_of(graph);
        let places: HashMap<&str, usize> =
            vertices.iter().enumerate().map(|(at, vertex)| (&*vertex.name, at)).collect();
        let mut out = vec![Vec::new(); vertices.len()];
        let mut entered = vec![false; vertices.len()];
        for (from, vertex) in vertices.iter().enumerate() {
            for link in &vertex.links {
                // Neighbours that only another graph has are not of this one.
                let Some(to) = places.get(&*link.to).copied() else { continue };
                out[from].push((&link.edge, to));
                match set.edge(&link.edge)?.directed {
                    true => entered[to] |= to != from,
                    false if to != from => out[to].push((&link.edge, from)),
                    false => {}
                }
            }
        }
        Ok(Walk { set, graph, vertices, places, out, entered })
    }

    /// The graph.
    pub fn graph(&self) -> &'g Graph {
        self.graph
    }

    /// The names of its vertices, in the order of definition.
    pub fn vertices(&self) -> Vec<&'g str> {
        self.vertices.iter().map(|vertex| &*vertex.name).collect()
    }

    /// The vertices that an edge leads to from this one, or, if it has no direction, that it is
    /// between; by all edges if none is named. Each once, in the order of definition.
    pub fn neighbours(&self, vertex: &str, edge: Option<&str>) -> Result<Vec<&'g str>, GraphError> {
        if let Some(edge) = edge {
            self.set.edge(edge)?;
        }
        let mut seen = HashSet::new();
        let links = self.out[self.place(vertex)?].iter();
        let along = links.filter(|(name, _)| edge.is_none_or(|edge| ***name == *edge));
        let found = along.map(|(_, to)| *to).filter(|to| seen.insert(*to));
        Ok(found.map(|to| &*self.vertices[to].name).collect())
    }

    /// The edges of a vertex with the neighbours they lead to, in the order of definition.
    pub fn links(&self, vertex: &str) -> Result<Vec<(&'g str, &'g str)>, GraphError> {
        let links = self.out[self.place(vertex)?].iter();
        Ok(links.map(|(edge, to)| (&***edge, &*self.vertices[*to].name)).collect())
    }

    /// The variables of a vertex.
    pub fn variables(&self, vertex: &str) -> Result<Vec<&'g str>, GraphError> {
        Ok(self.vertices[self.place(vertex)?].vars.iter().map(|var| &**var).collect())
    }

    /// The vertices that no directed edge leads to.
    pub fn roots(&self) -> Vec<&'g str> {
        let roots = self.vertices.iter().zip(&self.entered).filter(|(_, entered)| !**entered);
        roots.map(|(vertex, _)| &*vertex.name).collect()
    }

    /// What can be reached from a vertex, nearest first, each with the number of steps. Cycles end.
    pub fn breadth_first(&self, from: &str) -> Result<Vec<(&'g str, usize)>, GraphError> {
        let first = self.place(from)?;
        let mut seen = vec![false; self.vertices.len()];
        seen[first] = true;
        let mut waiting = VecDeque::from([(first, 0)]);
        let mut reached = Vec::new();
        while let Some((at, steps)) = waiting.pop_front() {
            reached.push((&*self.vertices[at].name, steps));
            for (_, to) in &self.out[at] {
                if !std::mem::replace(&mut seen[*to], true) {
                    waiting.push_back((*to, steps + 1));
                }
            }
        }
        Ok(reached)
    }

    fn place(&self, vertex: &str) -> Result<usize, GraphError> {
        let missing = || GraphError::NotThere {
            what: format!("graph \"{}\" has no vertex \"{vertex}\"", self.graph.name),
        };
        self.places.get(vertex).copied().ok_or_else(missing)
    }
}
