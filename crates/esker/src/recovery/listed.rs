//! Whether a version's sections name everything that is in its logs: what they do not name, no reader would find.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use esker_format::log::{Entry, LogPart, Manifest, Section, Session};
use esker_store::ReadPool;

use super::fault::{FaultKind, LogFault};
use super::read;
use crate::container::meta_path;
use crate::error::Result;

/// What is in logs that readers of the version would not find.
pub(super) fn unlisted(
    pool: &Arc<ReadPool>,
    path: &Path,
    manifest: &Manifest,
    sections: Vec<Section>,
) -> Result<Vec<LogFault>> {
    let mut by_log: BTreeMap<(u64, u32), BTreeMap<u64, Section>> = BTreeMap::new();
    for section in sections {
        let of_log = by_log.entry((section.identity, section.log)).or_default();
        // The first counts.
        of_log.entry(section.begin).or_insert(section);
    }
    let mut faults = Vec::new();
    for session in &manifest.sessions {
        for (log, part) in (0..).zip(&session.logs) {
            let sections = by_log.remove(&(session.identity, log)).unwrap_or_default();
            let sections: Vec<Section> = sections.into_values().collect();
            faults.extend(of_log(pool, path, session, part, &sections)?);
        }
    }
    Ok(faults)
}

fn of_log(
    pool: &Arc<ReadPool>,
    path: &Path,
    session: &Session,
    part: &LogPart,
    sections: &[Section],
) -> Result<Vec<LogFault>> {
    let mut log = read::open(pool, path, session, part);
    log.meta_len = Some(part.meta_len);
    log.skip_head()?;
    let file = meta_path(path, session, part.file);
    let file = file.strip_prefix(path).map(Path::to_path_buf).unwrap_or(file);
    let fault = |offset: u64, bytes: u64, what: String| LogFault {
        kind: FaultKind::Entry,
        rank: part.rank,
        file: file.clone(),
        offset,
        variable: None,
        records: None,
        bytes,
        committed: true,
        what,
    };
    let mut faults = Vec::new();
    let mut at = log.read;
    // Nothing was committed of it but its head.
    let ends = sections.iter().map(|section| (section.begin, section.end()));
    for (begin, end) in ends.chain([(part.meta_len.max(at), part.meta_len.max(at))]) {
        if begin > at {
            let what =
                format!("its version does not name bytes {at} to {begin} of the metadata log");
            faults.push(fault(at, begin - at, what));
        }
        at = at.max(end);
    }
    let mut reader = log.clone();
    reader.read_on(|frame| {
        let Ok(frame) = frame else { return Ok(()) };
        let reached = sections.partition_point(|section| section.end() < frame.end);
        let Some(section) = sections.get(reached) else { return Ok(()) };
        let outside = frame.entries.iter().find(|entry| !names(section, entry));
        faults.extend(outside.map(|entry| {
            let what = format!(
                "an entry of variable number {} and record {} is not in what its version names of the \
                 section at byte {}",
                entry.write.var, entry.write.records.first, section.begin
            );
            fault(section.begin, entry.len, what)
        }));
        Ok(())
    })?;
    Ok(faults)
}

fn names(section: &Section, entry: &Entry) -> bool {
    let records = &entry.write.records;
    section.vars.contains(&entry.write.var)
        && section.records.start <= records.first
        && records.end().is_some_and(|end| end <= section.records.end)
}
