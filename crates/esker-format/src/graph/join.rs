//! The graphs of a file become one set again: vertices and edges that several have are one.

use std::sync::Arc;

use super::decode::{StoredGraph, VarRef};
use super::error::GraphError;
use super::set::{GraphSet, Link, Of, same_values};
use crate::schema::{Named, NamedList, Schema};

/// A variable that a vertex had and the file has no more: another tool has left it out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    /// The graph that says so.
    pub graph: Arc<str>,
    /// The vertex.
    pub vertex: Arc<str>,
    /// The variable's name then.
    pub var: Arc<str>,
    /// Its number then.
    pub number: Option<usize>,
}

/// Joins the graphs of a file, whose variables are those of `schema`. A variable is found by its
/// number if that has its name, else by its name; what is not found is missing, and the rest works.
pub fn join(
    graphs: &[(Arc<str>, StoredGraph)],
    schema: &Schema,
) -> Result<(GraphSet, Vec<Missing>), GraphError> {
    let mut set = GraphSet::default();
    let mut gone: Vec<Missing> = Vec::new();
    // The graph that brought each vertex and edge.
    let mut vertex_from: Vec<Arc<str>> = Vec::new();
    let mut edge_from: Vec<Arc<str>> = Vec::new();
    for (name, graph) in graphs {
        set.add_graph(name)?;
        for attr in &graph.attrs {
            set.put_attr(Of::Graph(name), &attr.name, attr.values.clone())?;
        }
        for edge in &graph.edges {
            match set.edges.position(&edge.name) {
                None => {
                    set.add_edge(&edge.name, edge.weight, edge.directed)?;
                    edge_from.push(name.clone());
                }
                Some(at) if set.edges.as_slice()[at] == *edge => {}
                Some(at) => {
                    return Err(GraphError::Differ {
                        object: format!("edge \"{}\"", edge.name),
                        first: edge_from[at].clone(),
                        first_says: set.edges.as_slice()[at].words(),
                        second: name.clone(),
                        second_says: edge.words(),
                    });
                }
            }
        }
        for vertex in &graph.vertices {
            let known = set.vertices.position(&vertex.name);
            if known.is_none() {
                set.add_vertex(&vertex.name)?;
                vertex_from.push(name.clone());
            }
            let differs = |set: &GraphSet| {
                let at = known?;
                let mine = &set.vertices.as_slice()[at];
                let vars = vertex.vars.iter().filter(|v| find(schema, v).is_some());
                let vars: Vec<&Arc<str>> = vars.map(|v| &v.name).collect();
                if !mine.vars.iter().eq(vars.iter().copied()) {
                    let says = |n: usize| format!("{n} variables");
                    return Some((at, says(mine.vars.len()), says(vars.len())));
                }
                let same = mine.attrs.len() == vertex.attrs.len()
                    && mine
                        .attrs
                        .iter()
                        .zip(&vertex.attrs)
                        .all(|(a, b)| a.name == b.name && same_values(&a.values, &b.values));
                let says = |n: usize| format!("{n} attributes, not the same ones");
                (!same).then(|| (at, says(mine.attrs.len()), says(vertex.attrs.len())))
            };
            if let Some((at, first_says, second_says)) = differs(&set) {
                let object = format!("vertex \"{}\"", vertex.name);
                let (first, second) = (vertex_from[at].clone(), name.clone());
                return Err(GraphError::Differ { object, first, first_says, second, second_says });
            }
            set.put_in(name, &vertex.name)?;
            for var in &vertex.vars {
                match find(schema, var) {
                    Some(found) => set.attach(&vertex.name, &found)?,
                    None => gone.push(Missing {
                        graph: name.clone(),
                        vertex: vertex.name.clone(),
                        var: var.name.clone(),
                        number: var.number,
                    }),
                }
            }
            if known.is_none() {
                for attr in &vertex.attrs {
                    set.put_attr(Of::Vertex(&vertex.name), &attr.name, attr.values.clone())?;
                }
            }
        }
        links(&mut set, graph);
    }
    set.settle();
    Ok((set, gone))
}

fn links(set: &mut GraphSet, graph: &StoredGraph) {
    for vertex in &graph.vertices {
        let Some(at) = set.vertices.position(&vertex.name) else { continue };
        for (edge, to) in &vertex.links {
            let (Some(edge), Some(to)) = (graph.edges.at(*edge), graph.vertices.get(*to)) else {
                continue;
            };
            let link = Link { edge: edge.name.clone(), to: to.name.clone() };
            let back = Link { edge: edge.name.clone(), to: vertex.name.clone() };
            let known = !edge.directed
                && set.vertices.get(&to.name).is_some_and(|to| to.links.contains(&back));
            if let Some(vertex) = set.vertices.at_mut(at).filter(|_| !known) {
                vertex.links.insert(link);
            }
        }
    }
}

/// The name of the variable that is meant, if the file has it.
fn find(schema: &Schema, var: &VarRef) -> Option<Arc<str>> {
    let named =
        |list: &NamedList<crate::Variable>, at: usize| list.at(at).map(|v| v.name().clone());
    let by_number = var.number.and_then(|number| named(&schema.vars, number));
    by_number
        .filter(|name| *name == var.name)
        .or_else(|| named(&schema.vars, schema.vars.position(&var.name)?))
}
