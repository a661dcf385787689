//! Graphs of variables, compared by what they say and not by their bytes: other numbers of variables, another order of definition and
//! the room that an earlier change has left are no differences.

use std::collections::BTreeMap;

use esker::graph::{GraphSet, is_graph};
use esker::{Attribute, Dataset, Schema, Variable};
use esker_format::graph::is_spare;

use super::report::{Aspect, Report};
use super::structure::show;

/// Whether a variable is a graph, or room that one has left.
pub(super) fn is_of_graphs(variable: &Variable) -> bool {
    is_graph(variable) || is_spare(variable)
}

/// For each dimension whether it is of such variables alone.
pub(super) fn their_dimensions(schema: &Schema) -> Vec<bool> {
    let mut used = vec![(false, false); schema.dims.len()];
    for var in &schema.vars {
        let is_theirs = is_of_graphs(var);
        for dim in &var.dims {
            if let Some((theirs, others)) = used.get_mut(dim.0) {
                *if is_theirs { theirs } else { others } = true;
            }
        }
    }
    used.into_iter().map(|(theirs, others)| theirs && !others).collect()
}

/// Compares the graphs of both, if they can be read; else their variables are compared as any others.
pub(super) fn compare(a: &Dataset, b: &Dataset, report: &mut Report) -> bool {
    if !a.has_graphs() && !b.has_graphs() {
        return true;
    }
    let (Ok(x), Ok(y)) = (a.graphs(), b.graphs()) else { return false };
    let (x, y) = (facts(&x.set), facts(&y.set));
    for (object, fact) in &x {
        match y.get(object) {
            Some(other) if other.exact == fact.exact => {}
            other => {
                let second = other.map(|other| other.shown.clone());
                report.only(Aspect::Graph, object, Some(fact.shown.clone()), second);
            }
        }
    }
    for (object, fact) in y.iter().filter(|(object, _)| !x.contains_key(*object)) {
        report.only(Aspect::Graph, object, None, Some(fact.shown.clone()));
    }
    true
}

/// What is said of an object.
struct Fact {
    shown: String,
    exact: Vec<u8>,
}

impl Fact {
    fn words(shown: String) -> Fact {
        Fact { exact: shown.clone().into_bytes(), shown }
    }
}

/// Everything that a set says, one sentence for each object.
fn facts(set: &GraphSet) -> BTreeMap<String, Fact> {
    let mut all = BTreeMap::new();
    let list = |names: Vec<&str>| {
        let mut names = names;
        names.sort_unstable();
        if names.is_empty() { "none".to_string() } else { names.join(", ") }
    };
    let mut attributes = |of: String, attrs: &[Attribute]| {
        for attr in attrs {
            let exact = [&[attr.values.ty().code() as u8], attr.values.native_bytes()].concat();
            let fact = Fact { shown: show(&attr.values, None), exact };
            all.insert(format!("{of}, attribute {}", attr.name), fact);
        }
    };
    for graph in set.graphs() {
        attributes(graph.name.to_string(), graph.attrs.as_slice());
    }
    for vertex in set.vertices() {
        attributes(format!("vertex {}", vertex.name), vertex.attrs.as_slice());
    }
    for graph in set.graphs() {
        let names = graph.vertices.iter().map(|name| &**name).collect();
        all.insert(graph.name.to_string(), Fact::words(format!("vertices {}", list(names))));
    }
    for edge in set.edges() {
        // The weight's own bits: words are rounded by nobody, but -0 is not 0.
        let exact = [&edge.weight.to_bits().to_ne_bytes()[..], &[u8::from(edge.directed)]].concat();
        all.insert(format!("edge {}", edge.name), Fact { shown: edge.words(), exact });
    }
    for vertex in set.vertices() {
        let vars = vertex.vars.iter().map(|name| &**name).collect();
        let words = format!("variables {}", list(vars));
        all.insert(format!("vertex {}", vertex.name), Fact::words(words));
        for link in &vertex.links {
            let directed = set.edge(&link.edge).is_ok_and(|edge| edge.directed);
            let (mut from, mut to) = (&*vertex.name, &*link.to);
            if !directed && to < from {
                std::mem::swap(&mut from, &mut to);
            }
            let line = if directed { "→" } else { "–" };
            let object = format!("link {from} {line} {to} by {}", link.edge);
            all.insert(object, Fact::words("it is there".to_string()));
        }
    }
    all
}
