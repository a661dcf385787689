//! Findings about the folder of an adjoint run: its mark, its journals, every segment.

use std::path::Path;
use std::sync::Arc;

use esker::Error;
use esker_adjoint::{AdjointError, Gravity};
use esker_store::{Store, shown_path};

use super::Report;
use super::finding::{Finding, Severity};
use crate::Progress;

fn failed(path: &Path) -> impl Fn(AdjointError) -> Error {
    move |error| match error {
        AdjointError::Store(error) => error.into(),
        error => Error::Container { path: path.to_path_buf(), why: error.to_string() },
    }
}

/// Whether this is the folder of an adjoint run.
pub(super) fn are_there(store: &Arc<dyn Store>, path: &Path) -> esker::Result<bool> {
    esker_adjoint::is_checkpoints(store, path).map_err(failed(path))
}

/// Checks the folder at `path`.
pub(super) fn check(
    store: &Arc<dyn Store>,
    path: &Path,
    progress: &mut dyn Progress,
) -> esker::Result<Report> {
    let mut tell = |done, total| progress.progress(done, total);
    let faults = esker_adjoint::check(store, path, &mut tell).map_err(failed(path))?;
    let findings = faults.into_iter().map(|fault| {
        let (severity, code) = match fault.gravity {
            Gravity::Leftover => (Severity::Warning, "checkpoint-left"),
            Gravity::Lost => (Severity::Error, "checkpoint"),
            Gravity::Fatal => (Severity::Error, "checkpoint-run"),
        };
        let name = fault.file.strip_prefix(path).unwrap_or(&fault.file);
        let finding =
            Finding::new(severity, code, shown_path(name).to_string(), fault.sentence.clone());
        match fault.step {
            Some(step) => finding.value(step),
            None => finding,
        }
    });
    let findings = findings.collect();
    let bytes = esker_adjoint::survey(store, path).map_or(0, |survey| survey.bytes);
    let path = store.resolve(path)?;
    Ok(Report { path, file_len: bytes, version: None, numrecs: None, findings })
}
