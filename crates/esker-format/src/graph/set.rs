//! Everything that is defined: graphs, vertices, edges, by name.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::error::GraphError;
use super::ordered::Ordered;
use crate::error::SchemaError;
use crate::name;
use crate::schema::{Attribute, Named, NamedList};
use crate::values::Values;

/// How two vertices are related. One edge may join many pairs.
#[derive(Debug, Clone)]
pub struct Edge {
    /// Its name.
    pub name: Arc<str>,
    /// Its weight, any number but NaN.
    pub weight: f64,
    /// Whether it leads from one vertex to the other, or is between them.
    pub directed: bool,
}

impl Edge {
    /// The definition in words.
    pub fn words(&self) -> String {
        let kind = if self.directed { "directed" } else { "undirected" };
        format!("{kind}, weight {}", self.weight)
    }
}

impl PartialEq for Edge {
    fn eq(&self, other: &Edge) -> bool {
        let bits = |edge: &Edge| (edge.weight.to_bits(), edge.directed);
        self.name == other.name && bits(self) == bits(other)
    }
}

/// An edge to a neighbour.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Link {
    /// The edge.
    pub edge: Arc<str>,
    /// The vertex at its other end.
    pub to: Arc<str>,
}

/// A container of variables with neighbours.
#[derive(Debug, Clone, PartialEq)]
pub struct Vertex {
    /// Its name.
    pub name: Arc<str>,
    /// Its variables, by name.
    pub vars: Ordered<Arc<str>>,
    /// Its edges and neighbours.
    pub links: Ordered<Link>,
    /// Its attributes.
    pub attrs: NamedList<Attribute>,
}

/// Vertices that belong together.
#[derive(Debug, Clone, PartialEq)]
pub struct Graph {
    /// Its name, which is that of the variable that it is stored as.
    pub name: Arc<str>,
    /// Its vertices, by name.
    pub vertices: Ordered<Arc<str>>,
    /// Its attributes.
    pub attrs: NamedList<Attribute>,
}

impl Named for Edge {
    fn name(&self) -> &Arc<str> {
        &self.name
    }
}
impl Named for Vertex {
    fn name(&self) -> &Arc<str> {
        &self.name
    }
}
impl Named for Graph {
    fn name(&self) -> &Arc<str> {
        &self.name
    }
}

/// Whose attributes are meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Of<'n> {
    /// The graph of this name.
    Graph(&'n str),
    /// The vertex of this name.
    Vertex(&'n str),
}

/// The graphs, vertices and edges of a dataset.
#[derive(Debug, Clone, Default)]
pub struct GraphSet {
    /// The graphs.
    pub(super) graphs: NamedList<Graph>,
    /// The vertices of all graphs.
    pub(super) vertices: NamedList<Vertex>,
    /// The edges of all graphs.
    pub(super) edges: NamedList<Edge>,
    /// Whether something was taken away or changed, which cannot be merged.
    removed: bool,
    /// Graphs that have other names now: the old and the new ones, in the order of renaming.
    renamed: Vec<(Arc<str>, Arc<str>)>,
}

impl PartialEq for GraphSet {
    fn eq(&self, other: &GraphSet) -> bool {
        self.graphs == other.graphs && self.vertices == other.vertices && self.edges == other.edges
    }
}

type Outcome<T = ()> = Result<T, GraphError>;

fn missing(kind: &'static str, name: &str) -> GraphError {
    SchemaError::NotFound { kind, name: name.to_string() }.into()
}

fn add<T: Named>(list: &mut NamedList<T>, kind: &'static str, item: T) -> Outcome {
    let taken = |item: T| SchemaError::Exists { kind, name: item.name().clone() };
    Ok(list.push(item).map(drop).map_err(taken)?)
}

fn place<T: Named>(list: &NamedList<T>, kind: &'static str, name: &str) -> Outcome<usize> {
    list.position(&name::normalise(name)).ok_or_else(|| missing(kind, name))
}

/// The checked new name of an object, and its place.
fn new_name<T: Named>(
    list: &NamedList<T>,
    kind: &'static str,
    old: &str,
    new: &str,
) -> Outcome<(usize, Arc<str>)> {
    let at = place(list, kind, old)?;
    let name = name::check(new, kind)?;
    match list.position(&name) {
        Some(other) if other != at => Err(SchemaError::Exists { kind, name }.into()),
        _ => Ok((at, name)),
    }
}

impl GraphSet {
    /// The graphs, in the order of definition.
    pub fn graphs(&self) -> &NamedList<Graph> {
        &self.graphs
    }

    /// The vertices of all graphs, in the order of definition.
    pub fn vertices(&self) -> &NamedList<Vertex> {
        &self.vertices
    }

    /// The edges of all graphs, in the order of definition.
    pub fn edges(&self) -> &NamedList<Edge> {
        &self.edges
    }

    /// Whether there is nothing.
    pub fn is_empty(&self) -> bool {
        self.graphs.is_empty() && self.vertices.is_empty() && self.edges.is_empty()
    }

    /// Whether something was deleted, dissociated, renamed or given another value since
    /// [`GraphSet::settle`]: ranks do that alike or not at all.
    pub fn was_changed(&self) -> bool {
        self.removed
    }

    /// The graphs that were renamed: old and new names in turn.
    pub fn renamed(&self) -> &[(Arc<str>, Arc<str>)] {
        &self.renamed
    }

    /// Forgets what was changed: this is what everyone has.
    pub fn settle(&mut self) {
        (self.removed, self.renamed) = (false, Vec::new());
    }

    /// Defines a graph.
    pub fn add_graph(&mut self, name: &str) -> Outcome {
        let name = name::check(name, "graph")?;
        let (vertices, attrs) = (Ordered::default(), NamedList::default());
        add(&mut self.graphs, "graph", Graph { name, vertices, attrs })
    }

    /// Defines a vertex, which must be put into a graph before definitions end.
    pub fn add_vertex(&mut self, name: &str) -> Outcome {
        let name = name::check(name, "vertex")?;
        let (vars, links, attrs) = (Ordered::default(), Ordered::default(), NamedList::default());
        add(&mut self.vertices, "vertex", Vertex { name, vars, links, attrs })
    }

    /// Defines an edge, which joins nothing yet.
    pub fn add_edge(&mut self, name: &str, weight: f64, directed: bool) -> Outcome {
        let name = name::check(name, "edge")?;
        if weight.is_nan() {
            return Err(GraphError::Weight { edge: name });
        }
        add(&mut self.edges, "edge", Edge { name, weight, directed })
    }

    /// Puts a vertex into a graph.
    pub fn put_in(&mut self, graph: &str, vertex: &str) -> Outcome {
        let name = self.vertex(vertex)?.name.clone();
        self.graph_mut(graph)?.vertices.insert(name);
        Ok(())
    }

    /// Joins a vertex to a neighbour by an edge. Joining them once more changes nothing.
    pub fn connect(&mut self, vertex: &str, edge: &str, to: &str) -> Outcome {
        let link = self.link(edge, to)?;
        let back = Link { edge: link.edge.clone(), to: self.vertex(vertex)?.name.clone() };
        // An edge that is between two is the same from both sides.
        let known = !self.edge(edge)?.directed && self.vertex(to)?.links.contains(&back);
        if !known {
            self.vertex_mut(vertex)?.links.insert(link);
        }
        Ok(())
    }

    /// Gives a vertex a variable, by name.
    pub fn attach(&mut self, vertex: &str, var: &str) -> Outcome {
        let var = name::check(var, "variable")?;
        self.vertex_mut(vertex)?.vars.insert(var);
        Ok(())
    }

    /// Sets an attribute, in place of one of the same name.
    pub fn put_attr(&mut self, of: Of<'_>, name: &str, values: impl Into<Values>) -> Outcome {
        let (name, values) = (name::check(name, "attribute")?, values.into());
        let attrs = self.attrs_mut(of)?;
        let attr = Attribute { name, values };
        match attrs.position(&attr.name) {
            Some(at) if same_values(&attrs.as_slice()[at].values, &attr.values) => {}
            Some(at) => {
                attrs.replace(at, attr);
                self.removed = true;
            }
            None => drop(attrs.push(attr)),
        }
        Ok(())
    }

    /// Removes an attribute and gives its values back.
    pub fn del_attr(&mut self, of: Of<'_>, name: &str) -> Outcome<Values> {
        let attrs = self.attrs_mut(of)?;
        let at = attrs.position(&name::normalise(name));
        let values = attrs.remove(at.ok_or_else(|| missing("attribute", name))?).values;
        self.removed = true;
        Ok(values)
    }

    /// Deletes a graph. Its vertices stay, and must be in another one or go too.
    pub fn delete_graph(&mut self, graph: &str) -> Outcome {
        let at = place(&self.graphs, "graph", graph)?;
        self.graphs.remove(at);
        self.removed = true;
        Ok(())
    }

    /// Deletes a vertex, out of all graphs and with all its links, also those of others to it.
    pub fn delete_vertex(&mut self, vertex: &str) -> Outcome {
        let at = place(&self.vertices, "vertex", vertex)?;
        let name = self.vertices.remove(at).name;
        for at in 0..self.graphs.len() {
            if let Some(graph) = self.graphs.at_mut(at) {
                graph.vertices.retain(|v| *v != name);
            }
        }
        self.each_vertex(|vertex| vertex.links.retain(|link| link.to != name));
        self.removed = true;
        Ok(())
    }

    /// Deletes an edge, and all links by it.
    pub fn delete_edge(&mut self, edge: &str) -> Outcome {
        let at = place(&self.edges, "edge", edge)?;
        let name = self.edges.remove(at).name;
        self.each_vertex(|vertex| vertex.links.retain(|link| link.edge != name));
        self.removed = true;
        Ok(())
    }

    /// Takes a vertex out of a graph.
    pub fn take_out(&mut self, graph: &str, vertex: &str) -> Outcome {
        let name = self.vertex(vertex)?.name.clone();
        match self.graph_mut(graph)?.vertices.retain(|v| *v != name) {
            true => self.removed = true,
            false => {
                let what = format!("vertex \"{vertex}\" is not in graph \"{graph}\"");
                return Err(GraphError::NotThere { what });
            }
        }
        Ok(())
    }

    /// Takes the link between two vertices by an edge away.
    pub fn disconnect(&mut self, vertex: &str, edge: &str, to: &str) -> Outcome {
        let link = self.link(edge, to)?;
        let back = Link { edge: link.edge.clone(), to: self.vertex(vertex)?.name.clone() };
        let mut gone = self.vertex_mut(vertex)?.links.retain(|l| *l != link);
        if !gone && !self.edge(edge)?.directed {
            gone = self.vertex_mut(to)?.links.retain(|l| *l != back);
        }
        if !gone {
            let what = format!("edge \"{edge}\" does not join \"{vertex}\" to \"{to}\"");
            return Err(GraphError::NotThere { what });
        }
        self.removed = true;
        Ok(())
    }

    /// Takes a variable from a vertex.
    pub fn detach(&mut self, vertex: &str, var: &str) -> Outcome {
        let name = name::normalise(var);
        match self.vertex_mut(vertex)?.vars.retain(|v| **v != *name) {
            true => self.removed = true,
            false => {
                let what = format!("vertex \"{vertex}\" does not have variable \"{var}\"");
                return Err(GraphError::NotThere { what });
            }
        }
        Ok(())
    }

    /// Renames a graph.
    pub fn rename_graph(&mut self, old: &str, new: &str) -> Outcome {
        let (at, name) = new_name(&self.graphs, "graph", old, new)?;
        let graph = Graph { name: name.clone(), ..self.graphs.as_slice()[at].clone() };
        let old = self.graphs.as_slice()[at].name.clone();
        self.graphs.replace(at, graph);
        self.renamed.push((old, name));
        self.removed = true;
        Ok(())
    }

    /// Renames a vertex.
    pub fn rename_vertex(&mut self, old: &str, new: &str) -> Outcome {
        let (at, name) = new_name(&self.vertices, "vertex", old, new)?;
        let vertex = self.vertices.as_slice()[at].clone();
        let old = vertex.name.clone();
        self.vertices.replace(at, Vertex { name: name.clone(), ..vertex });
        for at in 0..self.graphs.len() {
            if let Some(graph) = self.graphs.at_mut(at) {
                graph.vertices.change(|v| (*v == old).then(|| name.clone()));
            }
        }
        self.each_vertex(|vertex| {
            vertex.links.change(|link| {
                (link.to == old).then(|| Link { edge: link.edge.clone(), to: name.clone() })
            })
        });
        self.removed = true;
        Ok(())
    }

    /// Renames an edge.
    pub fn rename_edge(&mut self, old: &str, new: &str) -> Outcome {
        let (at, name) = new_name(&self.edges, "edge", old, new)?;
        let edge = self.edges.as_slice()[at].clone();
        let old = edge.name.clone();
        self.edges.replace(at, Edge { name: name.clone(), ..edge });
        self.each_vertex(|vertex| {
            vertex.links.change(|link| {
                (link.edge == old).then(|| Link { edge: name.clone(), to: link.to.clone() })
            })
        });
        self.removed = true;
        Ok(())
    }

    /// Follows a variable that was renamed. Tells whether a vertex had it.
    pub fn rename_var(&mut self, old: &str, new: &str) -> bool {
        let (old, new) = (name::normalise(old), Arc::<str>::from(&*name::normalise(new)));
        let renamed =
            self.each_vertex(|vertex| vertex.vars.change(|v| (**v == *old).then(|| new.clone())));
        self.removed |= renamed;
        renamed
    }

    /// The graph of this name.
    pub fn graph(&self, name: &str) -> Outcome<&Graph> {
        Ok(&self.graphs.as_slice()[place(&self.graphs, "graph", name)?])
    }

    /// The vertex of this name.
    pub fn vertex(&self, name: &str) -> Outcome<&Vertex> {
        Ok(&self.vertices.as_slice()[place(&self.vertices, "vertex", name)?])
    }

    /// The edge of this name.
    pub fn edge(&self, name: &str) -> Outcome<&Edge> {
        Ok(&self.edges.as_slice()[place(&self.edges, "edge", name)?])
    }

    /// The attributes of a graph or a vertex.
    pub fn attrs(&self, of: Of<'_>) -> Outcome<&NamedList<Attribute>> {
        match of {
            Of::Graph(name) => Ok(&self.graph(name)?.attrs),
            Of::Vertex(name) => Ok(&self.vertex(name)?.attrs),
        }
    }

    /// Whether this can be stored beside variables that `has` knows: every vertex is in a graph,
    /// every pair of neighbours is in one together, every variable exists.
    pub fn check(&self, has: impl Fn(&str) -> bool) -> Outcome {
        if let (true, Some(edge)) = (self.graphs.is_empty(), self.edges.at(0)) {
            return Err(GraphError::Homeless { edge: edge.name.clone() });
        }
        // Where each vertex is, by the numbers of the graphs.
        let mut homes: HashMap<&str, Vec<usize>> = HashMap::new();
        for (number, graph) in self.graphs.iter().enumerate() {
            for vertex in &graph.vertices {
                homes.entry(vertex).or_default().push(number);
            }
        }
        for vertex in &self.vertices {
            let Some(mine) = homes.get(&*vertex.name) else {
                return Err(GraphError::NoGraph { vertex: vertex.name.clone() });
            };
            if let Some(var) = vertex.vars.iter().find(|var| !has(var)) {
                let (vertex, var) = (vertex.name.clone(), var.clone());
                return Err(GraphError::NoVariable { vertex, var });
            }
            let here: HashSet<usize> = mine.iter().copied().collect();
            for link in &vertex.links {
                let theirs = homes.get(&*link.to).map_or(&[][..], Vec::as_slice);
                if !theirs.iter().any(|graph| here.contains(graph)) {
                    let (edge, from) = (link.edge.clone(), vertex.name.clone());
                    return Err(GraphError::Apart { edge, from, to: link.to.clone() });
                }
            }
        }
        Ok(())
    }

    fn link(&self, edge: &str, to: &str) -> Outcome<Link> {
        Ok(Link { edge: self.edge(edge)?.name.clone(), to: self.vertex(to)?.name.clone() })
    }

    fn graph_mut(&mut self, name: &str) -> Outcome<&mut Graph> {
        let at = place(&self.graphs, "graph", name)?;
        self.graphs.at_mut(at).ok_or_else(|| missing("graph", name))
    }

    fn vertex_mut(&mut self, name: &str) -> Outcome<&mut Vertex> {
        let at = place(&self.vertices, "vertex", name)?;
        self.vertices.at_mut(at).ok_or_else(|| missing("vertex", name))
    }

    fn attrs_mut(&mut self, of: Of<'_>) -> Outcome<&mut NamedList<Attribute>> {
        match of {
            Of::Graph(name) => Ok(&mut self.graph_mut(name)?.attrs),
            Of::Vertex(name) => Ok(&mut self.vertex_mut(name)?.attrs),
        }
    }

    /// Changes every vertex; tells whether `change` says so of one.
    fn each_vertex(&mut self, change: impl Fn(&mut Vertex) -> bool) -> bool {
        let mut any = false;
        for at in 0..self.vertices.len() {
            any |= self.vertices.at_mut(at).is_some_and(&change);
        }
        any
    }
}

/// Whether two lists have the same bits, so that NaN is equal to itself.
pub(super) fn same_values(a: &Values, b: &Values) -> bool {
    a.ty() == b.ty() && a.native_bytes() == b.native_bytes()
}
