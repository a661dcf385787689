//! Findings about a container: its manifests, every frame and every payload of its logs.

use std::path::Path;
use std::sync::Arc;

use esker::{Error, FaultKind, LogFault};
use esker_store::Store;

use super::Report;
use super::finding::{Finding, Severity, counted};
use crate::Progress;

/// Checks the container at `path`, as far as its newest version has committed.
pub(super) fn check(
    store: &Arc<dyn Store>,
    path: &Path,
    progress: &mut dyn Progress,
) -> esker::Result<Report> {
    let path = store.resolve(path)?;
    let mut report = Report {
        path: path.clone(),
        file_len: 0,
        version: None,
        numrecs: None,
        findings: Vec::new(),
    };
    let mut tell = |done, total| progress.progress(done, total);
    let examined = match esker::examine(store, &path, None, &mut tell) {
        Ok(examined) => examined,
        // What the container itself says of its own damage.
        Err(Error::Container { why, .. }) => {
            report.findings.push(Finding::new(Severity::Error, "manifest", "the container", why));
            return Ok(report);
        }
        Err(Error::Decode { source, .. }) => {
            let object = "the header in the manifest";
            let finding = Finding::new(Severity::Error, "manifest", object, source.to_string());
            report.findings.push(finding);
            return Ok(report);
        }
        Err(error) => return Err(error),
    };
    if let Some(facts) = esker::container_facts(&**store, &path, Some(examined.version))? {
        report.file_len = facts.data() + facts.metadata();
    }
    let header = esker::container_header(&**store, &path, Some(examined.version))?;
    (report.version, report.numrecs) = (Some(header.schema.version), Some(header.numrecs));
    for version in &examined.damaged_versions {
        // Readers go to an older one, so an old one does no harm.
        let severity = match *version > examined.version {
            true => Severity::Error,
            false => Severity::Warning,
        };
        let object = format!("versions/{version:08}");
        let sentence = match severity {
            Severity::Error => format!(
                "the manifest is damaged; version {} is the newest that can be read",
                examined.version
            ),
            _ => "the manifest is damaged, so this version cannot be read".to_string(),
        };
        report.findings.push(Finding::new(severity, "manifest", object, sentence));
    }
    report.findings.extend(examined.faults.iter().map(finding));
    Ok(report)
}

fn finding(fault: &LogFault) -> Finding {
    let code = match fault.kind {
        FaultKind::Missing => "log-missing",
        FaultKind::Frame => "log-frame",
        FaultKind::Entry => "log-entry",
        FaultKind::Payload => "log-payload",
    };
    let mut object = format!("rank {}, {}", fault.rank, fault.file.display());
    if let Some(variable) = &fault.variable {
        object.push_str(&format!(", variable {variable:?}"));
    }
    let mut sentence = fault.what.clone();
    if let Some((first, last)) = fault.records {
        let records = counted(last - first + 1, "record");
        sentence.push_str(&format!(" ({records} from {first} on)"));
    }
    Finding::new(Severity::Error, code, object, sentence).at(fault.offset).value(fault.bytes)
}
