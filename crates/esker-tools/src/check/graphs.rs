//! Findings about graphs of variables: bytes that are none, and variables that are gone.

use std::path::Path;
use std::sync::Arc;

use esker::{Dataset, Error, OpenOptions};
use esker_format::Header;
use esker_format::graph::is_graph;
use esker_store::Store;

use super::finding::{Finding, Severity};

pub(super) fn check(
    store: &Arc<dyn Store>,
    path: &Path,
    header: &Header,
    findings: &mut Vec<Finding>,
) -> esker::Result<()> {
    if !header.schema.vars.iter().any(is_graph) {
        return Ok(());
    }
    let dataset = Dataset::open_with(path, OpenOptions::new().store(store.clone()).blobs(true))?;
    match dataset.graphs() {
        Ok(graphs) => {
            for missing in graphs.missing {
                let object = format!("graph {:?}, vertex {:?}", missing.graph, missing.vertex);
                let sentence = format!("it has variable {:?}, which is not there", missing.var);
                findings.push(Finding::new(Severity::Warning, "graph-variable", object, sentence));
            }
        }
        Err(Error::StoredGraph { source, .. }) => {
            let place = header.schema.var(&source.graph).and_then(|var| header.place(var));
            let object = format!("graph {:?}, {}", source.graph, source.object);
            let finding = Finding::new(Severity::Error, "graph", object, source.what);
            // A chunked one has no place of its own.
            let at = place.map(|place| place.begin + source.offset.min(place.bytes));
            findings.push(match at {
                Some(at) => finding.at(at),
                None => finding,
            });
        }
        Err(Error::Graph { source, .. }) => {
            let sentence = source.to_string();
            findings.push(Finding::new(Severity::Error, "graph", "the graphs", sentence));
        }
        // What keeps values from being read has findings of its own.
        Err(Error::ShortFile { .. } | Error::Chunked { .. } | Error::Filter(_)) => {}
        Err(error) => return Err(error),
    }
    Ok(())
}
