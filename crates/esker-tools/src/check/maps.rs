//! Findings about the maps of decomposed variables.

use std::path::Path;

use esker::{Dataset, Decomposition, Error, Header, OpenOptions};

use super::CheckOptions;
use super::finding::{Finding, Severity};

/// Reads all maps that decomposed variables have, and compares them with their checksums.
pub(super) fn check(
    options: &CheckOptions,
    path: &Path,
    header: &Header,
    findings: &mut Vec<Finding>,
) {
    let named = |v: &esker::Variable| v.attrs.get(Decomposition::ATTRIBUTE).is_some();
    if !header.schema.vars.iter().any(named) {
        return;
    }
    let mut add = |object: String, sentence: String| {
        findings.push(Finding::new(Severity::Error, "map", object, sentence));
    };
    match Dataset::open_with(path, OpenOptions::new().store(options.store.clone())) {
        Ok(dataset) => {
            let faults = dataset.decomposition_faults();
            faults.into_iter().for_each(|(map, why)| add(format!("map {map}"), why));
        }
        Err(Error::Decomposition { source, .. }) if !Dataset::has_subfiles(header) => {
            add("the maps".to_string(), source.to_string());
        }
        // What else is wrong was found already.
        Err(_) => {}
    }
}
