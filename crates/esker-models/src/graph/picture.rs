//! A graph as text: Graphviz, JSON, SVG.

use std::collections::HashMap;
use std::fmt::Write;

use esker::graph::{Edge, GraphError, GraphSet};
use esker::{Attribute, Values};
use serde_json::{Map, Value, json};

use super::Walk;

/// The graph in Graphviz's language.
pub fn dot(set: &GraphSet, graph: &str) -> Result<String, GraphError> {
    let drawn = Drawn::new(set, graph)?;
    let mut out = format!("digraph {} {{\n", quoted(graph));
    for (name, vars) in &drawn.vertices {
        let mut label = (*name).to_string();
        vars.iter().for_each(|var| label.extend(["\n", var]));
        let _ = writeln!(out, "  {} [shape=box, label={}];", quoted(name), quoted(&label));
    }
    for (from, edge, to) in &drawn.links {
        let label = quoted(&format!("{} ({})", edge.name, edge.weight));
        let direction = if edge.directed { "" } else { ", dir=none" };
        let (from, to) = (quoted(drawn.vertices[*from].0), quoted(drawn.vertices[*to].0));
        let _ = writeln!(out, "  {from} -> {to} [label={label}{direction}];");
    }
    out.push_str("}\n");
    Ok(out)
}

/// The graph as JSON: `name`, `attributes`, `edges` (name, weight, directed) and `vertices` (name, attributes,
/// variables, links of edge and neighbour).
pub fn json(set: &GraphSet, graph: &str) -> Result<Value, GraphError> {
    let walk = Walk::new(set, graph)?;
    let drawn = Drawn::new(set, graph)?;
    let mut seen = std::collections::HashSet::new();
    let edges = drawn.links.iter().map(|(_, edge, _)| *edge).filter(|e| seen.insert(&e.name));
    let edges: Vec<Value> = edges
        .map(|e| json!({ "name": &*e.name, "weight": number(e.weight), "directed": e.directed }))
        .collect();
    let mut vertices = Vec::new();
    for (at, (name, vars)) in drawn.vertices.iter().enumerate() {
        let links = drawn.links.iter().filter(|(from, _, _)| *from == at);
        let links: Vec<Value> = links
            .map(|(_, edge, to)| json!({ "edge": &*edge.name, "to": drawn.vertices[*to].0 }))
            .collect();
        let attributes = attributes(set.vertex(name)?.attrs.as_slice());
        vertices.push(json!({
            "name": name, "attributes": attributes, "variables": vars, "links": links,
        }));
    }
    let attributes = attributes(walk.graph().attrs.as_slice());
    Ok(json!({ "name": graph, "attributes": attributes, "edges": edges, "vertices": vertices }))
}

/// The graph as a picture: vertices in columns by their distance from the roots.
pub fn svg(set: &GraphSet, graph: &str) -> Result<String, GraphError> {
    const WIDE: usize = 220;
    const HIGH: usize = 90;
    const LINE: usize = 16;
    let drawn = Drawn::new(set, graph)?;
    let columns = columns(set, graph)?;
    let mut heights: HashMap<usize, usize> = HashMap::new();
    let mut places = Vec::new();
    for (at, (_, vars)) in drawn.vertices.iter().enumerate() {
        let column = columns[at];
        let y = heights.entry(column).or_insert(20);
        let height = LINE * (vars.len().min(SHOWN + 1) + 1) + 10;
        places.push((20 + column * WIDE, *y, height));
        *y += height.max(HIGH - 30) + 30;
    }
    let width = 20 + WIDE * (columns.iter().max().map_or(0, |c| c + 1));
    let height = heights.values().max().copied().unwrap_or(20);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n<defs><marker id=\"to\" viewBox=\"0 0 8 8\" \
         refX=\"8\" refY=\"4\" markerWidth=\"8\" markerHeight=\"8\" orient=\"auto\">\
         <path d=\"M0 0L8 4L0 8z\"/></marker></defs>\n"
    );
    for (from, edge, to) in &drawn.links {
        let middle = |at: usize| (places[at].0 + 80, places[at].1 + places[at].2 / 2);
        let ((x1, y1), (x2, y2)) = (middle(*from), middle(*to));
        let end = if edge.directed { " marker-end=\"url(#to)\"" } else { "" };
        let (x, y) = ((x1 + x2) / 2, (y1 + y2) / 2);
        let label = escaped(&format!("{} ({})", edge.name, edge.weight));
        let _ = writeln!(
            out,
            "<line x1=\"{x1}\" y1=\"{y1}\" x2=\"{x2}\" y2=\"{y2}\" stroke=\"#888\"{end}/>\
             <text x=\"{x}\" y=\"{y}\" fill=\"#666\">{label}</text>"
        );
    }
    for ((name, vars), (x, y, height)) in drawn.vertices.iter().zip(&places) {
        let _ = write!(
            out,
            "<rect x=\"{x}\" y=\"{y}\" width=\"160\" height=\"{height}\" rx=\"4\" fill=\"#eef4fb\" \
             stroke=\"#345\"/><text x=\"{}\" y=\"{}\" font-weight=\"bold\">{}</text>",
            x + 6,
            y + LINE,
            escaped(name)
        );
        let more = format!("and {} more", vars.len().saturating_sub(SHOWN));
        let lines = vars.iter().copied().take(SHOWN);
        let lines = lines.chain((vars.len() > SHOWN).then_some(&*more));
        for (line, var) in lines.enumerate() {
            let (x, y) = (x + 6, y + LINE * (line + 2));
            let _ = write!(out, "<text x=\"{x}\" y=\"{y}\">{}</text>", escaped(var));
        }
        out.push('\n');
    }
    out.push_str("</svg>\n");
    Ok(out)
}

/// Variables of a vertex that a picture names.
const SHOWN: usize = 8;

/// A graph's vertices with their variables, and each link once.
struct Drawn<'g> {
    vertices: Vec<(&'g str, Vec<&'g str>)>,
    links: Vec<(usize, &'g Edge, usize)>,
}

impl<'g> Drawn<'g> {
    fn new(set: &'g GraphSet, graph: &str) -> Result<Drawn<'g>, GraphError> {
        let of_graph = set.vertices_of(set.graph(graph)?);
        let places: HashMap<&str, usize> =
            of_graph.iter().enumerate().map(|(at, v)| (&*v.name, at)).collect();
        let mut links = Vec::new();
        for (from, vertex) in of_graph.iter().enumerate() {
            for link in &vertex.links {
                if let Some(to) = places.get(&*link.to) {
                    links.push((from, set.edge(&link.edge)?, *to));
                }
            }
        }
        let vars = |v: &&'g esker::graph::Vertex| v.vars.iter().map(|var| &**var).collect();
        let vertices = of_graph.iter().map(|v| (&*v.name, vars(v))).collect();
        Ok(Drawn { vertices, links })
    }
}

/// For each vertex the steps from the nearest root; 0 where none leads.
fn columns(set: &GraphSet, graph: &str) -> Result<Vec<usize>, GraphError> {
    let walk = Walk::new(set, graph)?;
    let vertices = walk.vertices();
    let mut steps: HashMap<&str, usize> = HashMap::new();
    for root in walk.roots() {
        for (vertex, far) in walk.breadth_first(root)? {
            let known = steps.entry(vertex).or_insert(far);
            *known = far.min(*known);
        }
    }
    Ok(vertices.iter().map(|v| steps.get(v).copied().unwrap_or(0)).collect())
}

/// Attributes as a JSON object; those of one value are that value.
fn attributes(attrs: &[Attribute]) -> Map<String, Value> {
    let value = |values: &Values| match values.text() {
        Some(text) => Value::from(text.into_owned()),
        None => {
            let mut list: Vec<Value> =
                (0..values.len()).filter_map(|at| values.get_f64(at)).map(number).collect();
            if list.len() == 1 { list.remove(0) } else { Value::from(list) }
        }
    };
    attrs.iter().map(|attr| (attr.name.to_string(), value(&attr.values))).collect()
}

/// A number, or its name where JSON has none for it; whole ones without a point.
fn number(value: f64) -> Value {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if value.fract() == 0.0 && value.abs() < EXACT {
        return Value::from(value as i64);
    }
    serde_json::Number::from_f64(value).map_or(Value::from(value.to_string()), Value::Number)
}

fn quoted(text: &str) -> String {
    let text = text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    format!("\"{text}\"")
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
