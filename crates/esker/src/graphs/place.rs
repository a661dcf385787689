//! Which variables hold the graphs.

use std::sync::Arc;

use esker_format::graph::{FORMAT, GraphError, GraphSet, LIVE, SPARE, is_graph, is_spare};
use esker_format::{DimLen, ExternalType, Owner, Schema, SchemaError, Values};

use super::free_name;
use crate::error::{Error, Result};
use crate::options::FillMode;

/// Bytes of a variable that reach the file together with the header.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Content {
    /// The variable, by the name that it has in that header.
    pub(crate) name: Arc<str>,
    /// All of it.
    pub(crate) bytes: Vec<u8>,
}

/// What a new definition does for its graphs.
#[derive(Debug, Default)]
pub(crate) struct Placed {
    pub(crate) contents: Vec<Content>,
    /// Variables of the file that got other names, in this order.
    pub(crate) renamed: Vec<(Arc<str>, Arc<str>)>,
}

/// Gives every graph of `set` a variable of `schema` that the file does not read as a graph now.
/// `usable` tells whether the bytes of a variable of the file can be written.
pub(crate) fn place(
    set: &GraphSet,
    schema: &mut Schema,
    fills: &mut Vec<Option<FillMode>>,
    usable: impl Fn(&str) -> bool,
    path: &std::path::Path,
) -> Result<Placed> {
    let is_data =
        |name: &str| schema.vars.get(name).is_some_and(|var| !is_graph(var) && !is_spare(var));
    let wrong = |source: GraphError| Error::Graph { path: path.to_path_buf(), source };
    let refuse = |source: SchemaError| Error::Schema { path: path.to_path_buf(), source };
    set.check(is_data).map_err(wrong)?;
    let mut placed = Placed::default();
    let room = |schema: &Schema, name: &str| {
        let var = schema.vars.get(name)?;
        let fixed = !schema.is_record(var);
        fixed.then(|| schema.shape(var, 0).iter().product::<u64>())
    };
    // Room that earlier changes have left; what this one leaves is still read by the old header.
    let mut spares: Vec<Arc<str>> = schema
        .vars
        .iter()
        .filter(|var| is_spare(var) && usable(&var.name))
        .map(|var| var.name.clone())
        .collect();
    for (old, new) in set.renamed() {
        if schema.vars.get(old).is_some_and(is_graph) {
            rename(schema, &mut placed, old, new).map_err(refuse)?;
        }
    }
    let live: Vec<Arc<str>> =
        schema.vars.iter().filter(|var| is_graph(var)).map(|var| var.name.clone()).collect();
    for name in &live {
        let spare = free_name(&format!("{name}.spare"), |name| schema.vars.get(name).is_some());
        rename(schema, &mut placed, name, &spare).map_err(refuse)?;
        mark(schema, &spare, SPARE).map_err(refuse)?;
    }
    // Their length does not depend on the numbers of variables, which are known at the end.
    for graph in set.graphs() {
        let len = set.encode(&graph.name, |_| None).map_err(wrong)?.len() as u64;
        let fits = spares.iter().position(|s| room(schema, s).is_some_and(|room| room >= len));
        match fits {
            Some(at) => {
                let spare = spares.remove(at);
                rename(schema, &mut placed, &spare, &graph.name).map_err(refuse)?;
            }
            None => {
                let dim = format!("{}.bytes", graph.name);
                let dim = free_name(&dim, |name| schema.dims.get(name).is_some());
                // A graph that was changed once will be changed again.
                let more = if live.contains(&graph.name) { len / 4 } else { 0 };
                let len = DimLen::Fixed((len + more).next_multiple_of(4));
                let dim = schema.add_dim(&dim, len).map_err(refuse)?;
                schema.add_var(&graph.name, ExternalType::Char, &[dim]).map_err(refuse)?;
                fills.push(Some(FillMode::NoFill));
            }
        }
        mark(schema, &graph.name, LIVE).map_err(refuse)?;
    }
    for graph in set.graphs() {
        let number = |name: &str| schema.var(name).map(|var| var.0);
        let mut bytes = set.encode(&graph.name, number).map_err(wrong)?;
        let room = room(schema, &graph.name).unwrap_or(0);
        bytes.resize(room as usize, 0);
        placed.contents.push(Content { name: graph.name.clone(), bytes });
    }
    Ok(placed)
}

/// Lets a rank's own definitions follow, so that it knows what its numbers mean.
pub(crate) fn rename_own(schema: &mut Schema, placed: &Placed) {
    for (old, new) in &placed.renamed {
        // What it does not have is another rank's.
        let _ = schema.rename_var(old, new);
    }
}

fn rename(
    schema: &mut Schema,
    placed: &mut Placed,
    old: &Arc<str>,
    new: &Arc<str>,
) -> Result<(), SchemaError> {
    schema.rename_var(old, new)?;
    placed.renamed.push((old.clone(), new.clone()));
    Ok(())
}

fn mark(schema: &mut Schema, name: &str, as_what: &str) -> Result<(), SchemaError> {
    match schema.var(name) {
        Some(var) => schema.put_attr(Owner::Var(var), FORMAT, Values::from(as_what)),
        None => Ok(()),
    }
}
