//! Findings about a container: its manifests, every frame and every payload of its logs.

use std::path::Path;
use std::sync::Arc;

use esker::{Dataset, Error, FaultKind, LogFault, OpenOptions};
use esker_store::Store;

use super::Report;
use super::finding::{Finding, Severity, counted};
use crate::Progress;

/// Checks the container at `path`, as far as a version, by default its newest, has committed.
pub(super) fn check(
    store: &Arc<dyn Store>,
    path: &Path,
    version: Option<u64>,
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
    let examined = match esker::examine(store, &path, version, &mut tell) {
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
    for lost in &examined.lost_versions {
        // Readers of newer ones miss nothing, nor do those who ask for this one.
        let severity = match lost.version > examined.version && version.is_none() {
            true => Severity::Error,
            false => Severity::Warning,
        };
        let object = lost.name.clone();
        let sentence = match severity {
            Severity::Error => {
                format!("{}; version {} is what readers see", lost.what, examined.version)
            }
            _ => format!("{}, so that this version cannot be read", lost.what),
        };
        report.findings.push(Finding::new(severity, "manifest", object, sentence));
    }
    if examined.promises_damaged {
        let sentence = "it is damaged or not there: a version that is lost would not be missed; \
                        `esker recover` writes it anew";
        report.findings.push(Finding::new(Severity::Warning, "promises", "promises", sentence));
    }
    report.findings.extend(examined.faults.iter().map(finding));
    // What else a reader would mind.
    let open = OpenOptions::new().store(store.clone()).container_version(examined.version);
    if report.findings.is_empty()
        && let Err(error) = Dataset::open_with(&path, open)
    {
        let finding = Finding::new(Severity::Error, "manifest", "the container", error.to_string());
        report.findings.push(finding);
    }
    Ok(report)
}

/// Checks everything that any version of the container has which can be opened.
pub(super) fn check_all(
    store: &Arc<dyn Store>,
    path: &Path,
    progress: &mut dyn Progress,
) -> esker::Result<Report> {
    let path = store.resolve(path)?;
    let mut findings = Vec::new();
    let mut tell = |done, total| progress.progress(done, total);
    let all = match esker::examine_all(store, &path, &mut tell) {
        Ok(all) => all,
        // What the container itself says of its own damage.
        Err(Error::Container { why, .. }) => {
            findings.push(Finding::new(Severity::Error, "manifest", "the container", why));
            return Ok(Report { path, file_len: 0, version: None, numrecs: None, findings });
        }
        Err(error) => return Err(error),
    };
    for (version, why) in &all.unreadable {
        let object = format!("version {version}");
        let sentence = format!("it cannot be opened: {why}");
        findings.push(Finding::new(Severity::Error, "manifest", object, sentence));
    }
    if all.promises_damaged {
        let sentence = "it is damaged or not there: a version that is lost would not be missed; \
                        `esker recover` writes it anew";
        findings.push(Finding::new(Severity::Warning, "promises", "promises", sentence));
    }
    findings.extend(all.faults.iter().map(|(fault, versions)| {
        let mut finding = finding(fault);
        finding.object = format!("{}, {}", in_words(versions, &all.versions), finding.object);
        finding
    }));
    let mut report = Report { path, file_len: 0, version: None, numrecs: None, findings };
    for version in &all.versions {
        let open = OpenOptions::new().store(store.clone()).container_version(*version);
        // What else a reader would mind.
        let is_damaged = all.faults.iter().any(|(_, versions)| versions.contains(version));
        if !is_damaged && let Err(error) = Dataset::open_with(&report.path, open) {
            let (object, error) = (format!("version {version}"), error.to_string());
            report.findings.push(Finding::new(Severity::Error, "manifest", object, error));
        }
    }
    if let Some(newest) = all.versions.last().copied() {
        if let Some(facts) = esker::container_facts(&**store, &report.path, Some(newest))? {
            report.file_len = facts.data() + facts.metadata();
        }
        let header = esker::container_header(&**store, &report.path, Some(newest))?;
        (report.version, report.numrecs) = (Some(header.schema.version), Some(header.numrecs));
    }
    Ok(report)
}

/// Some of all versions, by their numbers.
fn in_words(some: &[u64], all: &[u64]) -> String {
    let (Some(first), Some(last)) = (some.first(), some.last()) else { return String::new() };
    let between = all.iter().filter(|number| (first..=last).contains(number)).count();
    match some.len() {
        1 => format!("version {first}"),
        count if count == between => format!("versions {first} to {last}"),
        _ => {
            let numbers: Vec<String> = some.iter().map(u64::to_string).collect();
            format!("versions {}", numbers.join(", "))
        }
    }
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
