//! Findings about the sub-files of decomposed variables.

use std::path::Path;

use esker::{Dataset, Error, Header, OpenOptions};
use esker_store::Access;

use super::finding::{Finding, Severity};
use super::{CheckOptions, read_everything};
use crate::Progress;

/// Checks the sub-files that a header speaks of, if it does.
pub(super) fn check(
    options: &CheckOptions,
    path: &Path,
    header: &Header,
    findings: &mut Vec<Finding>,
    progress: &mut dyn Progress,
) -> esker::Result<()> {
    if !Dataset::has_subfiles(header) {
        return Ok(());
    }
    let dataset = match Dataset::open_with(path, OpenOptions::new().store(options.store.clone())) {
        Ok(dataset) => dataset,
        Err(Error::Decomposition { source, .. }) => {
            let (object, sentence) = ("the sub-files", source.to_string());
            findings.push(Finding::new(Severity::Error, "subfile", object, sentence));
            return Ok(());
        }
        // What else is wrong with the header was found already.
        Err(_) => return Ok(()),
    };
    // Records may be in the sub-files alone.
    findings.retain(|finding| finding.code != "numrecs-unused");
    let faults = dataset.subfile_faults();
    for (sub, why) in &faults {
        let name = sub.file_name().unwrap_or_default().to_string_lossy();
        let object = format!("sub-file {name}");
        findings.push(Finding::new(Severity::Error, "subfile", object, why.clone()));
    }
    for (named, grown) in dataset.hidden_subfiles() {
        let object = format!("the file {}", grown.display());
        let sentence = format!(
            "it is the sub-file {}, but the program that made it died before it had this name; \
             `esker recover` gives it, and so does any program that writes to the dataset",
            named.file_name().unwrap_or_default().to_string_lossy()
        );
        findings.push(Finding::new(Severity::Warning, "subfile-name", object, sentence));
    }
    for path in dataset.stale_subfiles() {
        let object = format!("the file {}", path.display());
        let sentence = "it is a sub-file of another dataset that had this name, and no part of this \
                        one";
        findings.push(Finding::new(Severity::Warning, "leftover", object, sentence));
    }
    if options.read_data {
        for (sub, _) in dataset.subfiles() {
            if faults.iter().all(|(faulty, _)| *faulty != sub) && options.store.exists(&sub)? {
                let file = options.store.open(&sub, Access::Read)?;
                read_everything(&*file, file.len()?, progress)?;
            }
        }
    }
    Ok(())
}
