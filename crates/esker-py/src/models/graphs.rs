//! Graphs of variables: read whole, changed by name.

use esker::Error;
use esker::graph::{GraphError, GraphSet, Of};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::attributes;
use crate::handle::Handle;

/// All graphs as `graphs` (name, attributes, vertices), `vertices` (name, attributes, variables, links of edge and
/// neighbour), `edges` (name, weight, directed) and `missing` (graph, vertex, variable); beside it the number of
/// definitions they are of.
#[pyfunction]
pub(crate) fn graph_set<'py>(
    py: Python<'py>,
    handle: &Bound<'py, Handle>,
) -> PyResult<(u64, Bound<'py, PyDict>)> {
    let shared = &handle.get().shared;
    let (generation, found) = handle.get().free(py, || shared.graphs())?;
    let attrs = |list: &[esker::Attribute]| -> PyResult<Bound<'py, PyDict>> {
        let made = PyDict::new(py);
        for attr in list {
            made.set_item(&*attr.name, attributes::to_python(py, &attr.values)?)?;
        }
        Ok(made)
    };
    let set = &found.set;
    let (graphs, vertices) = (PyList::empty(py), PyList::empty(py));
    for graph in set.graphs() {
        let names: Vec<&str> = graph.vertices.iter().map(|name| &**name).collect();
        graphs.append((&*graph.name, attrs(graph.attrs.as_slice())?, names))?;
    }
    for vertex in set.vertices() {
        let vars: Vec<&str> = vertex.vars.iter().map(|name| &**name).collect();
        let links: Vec<(&str, &str)> =
            vertex.links.iter().map(|link| (&*link.edge, &*link.to)).collect();
        vertices.append((&*vertex.name, attrs(vertex.attrs.as_slice())?, vars, links))?;
    }
    let edges = set.edges().iter().map(|e| (&*e.name, e.weight, e.directed)).collect::<Vec<_>>();
    let missing = found.missing.iter().map(|m| (&*m.graph, &*m.vertex, &*m.var));
    let answer = PyDict::new(py);
    answer.set_item("graphs", graphs)?;
    answer.set_item("vertices", vertices)?;
    answer.set_item("edges", edges)?;
    answer.set_item("missing", missing.collect::<Vec<_>>())?;
    Ok((generation, answer))
}

/// The number of definitions that were made, to see whether graphs that were read are still those of the dataset.
#[pyfunction]
pub(crate) fn graph_generation(handle: &Bound<'_, Handle>) -> u64 {
    handle.get().shared.generation()
}

/// Changes graphs in define mode; `names` are what the action takes, in the library's order.
#[pyfunction]
pub(crate) fn graph_act(
    py: Python<'_>,
    handle: &Bound<'_, Handle>,
    action: &str,
    names: Vec<String>,
) -> PyResult<()> {
    type Act = fn(&mut GraphSet, &[&str]) -> Result<(), GraphError>;
    let (count, act): (usize, Act) = match action {
        "add_graph" => (1, |set, n| set.add_graph(n[0])),
        "add_vertex" => (1, |set, n| match set.vertex(n[0]) {
            // One that another graph has already.
            Ok(_) => Ok(()),
            Err(_) => set.add_vertex(n[0]),
        }),
        "put_in" => (2, |set, n| set.put_in(n[0], n[1])),
        "take_out" => (2, |set, n| set.take_out(n[0], n[1])),
        "connect" => (3, |set, n| set.connect(n[0], n[1], n[2])),
        "disconnect" => (3, |set, n| set.disconnect(n[0], n[1], n[2])),
        "attach" => (2, |set, n| set.attach(n[0], n[1])),
        "detach" => (2, |set, n| set.detach(n[0], n[1])),
        "delete_graph" => (1, |set, n| set.delete_graph(n[0])),
        "delete_vertex" => (1, |set, n| set.delete_vertex(n[0])),
        "delete_edge" => (1, |set, n| set.delete_edge(n[0])),
        "rename_graph" => (2, |set, n| set.rename_graph(n[0], n[1])),
        "rename_vertex" => (2, |set, n| set.rename_vertex(n[0], n[1])),
        "rename_edge" => (2, |set, n| set.rename_edge(n[0], n[1])),
        _ => return Err(PyValueError::new_err(format!("graphs know no {action:?}"))),
    };
    if names.len() != count {
        return Err(PyValueError::new_err(format!("{action} takes {count} names")));
    }
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    change(py, handle, |set| act(set, &names))
}

/// Defines an edge.
#[pyfunction]
pub(crate) fn graph_add_edge(
    py: Python<'_>,
    handle: &Bound<'_, Handle>,
    name: &str,
    weight: f64,
    directed: bool,
) -> PyResult<()> {
    change(py, handle, |set| set.add_edge(name, weight, directed))
}

/// Sets an attribute of a graph or a vertex, or (without a value) deletes it.
#[pyfunction]
#[pyo3(signature = (handle, of_vertex, of, name, value))]
pub(crate) fn graph_attribute(
    py: Python<'_>,
    handle: &Bound<'_, Handle>,
    of_vertex: bool,
    of: &str,
    name: &str,
    value: Option<&Bound<'_, PyAny>>,
) -> PyResult<()> {
    let values = value.map(attributes::from_python).transpose()?;
    let of = if of_vertex { Of::Vertex(of) } else { Of::Graph(of) };
    change(py, handle, |set| match values {
        Some(values) => set.put_attr(of, name, values),
        None => set.del_attr(of, name).map(drop),
    })
}

fn change(
    py: Python<'_>,
    handle: &Bound<'_, Handle>,
    act: impl FnOnce(&mut GraphSet) -> Result<(), GraphError> + Send,
) -> PyResult<()> {
    let shared = &handle.get().shared;
    handle.get().free(py, || {
        shared.define(|define| {
            let path = define.path().to_path_buf();
            act(define.graphs_mut()?).map_err(|source| Error::Graph { path, source })
        })
    })
}
