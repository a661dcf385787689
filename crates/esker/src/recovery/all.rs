//! Everything that any version of a container has, read once.
//!
//! Versions share logs: a later one has more of them, mostly the same. So each log is read as far as any version has it, and
//! what is damaged in it is damaged in the versions that reach so far. What versions have apart (their decisions, their facts,
//! the runs of their index) is read for each.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use esker_format::log::{LogPart, Manifest, Session};
use esker_store::{ReadPool, Store};

use super::fault::LogFault;
use super::listed;
use super::lost::promises_damaged;
use super::read::{Reach, Reader};
use super::{OPEN_FILES, header_of};
use crate::container::{self, Edition, VersionState, meta_path};
use crate::error::{Error, Result};

/// What [`examine_all`] found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AllExamined {
    /// The versions that were read, oldest first.
    pub versions: Vec<u64>,
    /// Versions that cannot be opened, though they were committed and have not expired, and why.
    pub unreadable: Vec<(u64, String)>,
    /// What is damaged in logs, and the versions that have it.
    pub faults: Vec<(LogFault, Vec<u64>)>,
    /// Whether its file of promises is damaged or not there, though it should be.
    pub promises_damaged: bool,
    /// Entries that were read.
    pub entries: u64,
    /// Bytes of payload that were read.
    pub payload: u64,
}

/// A version that can be opened.
struct Opened {
    number: u64,
    edition: Edition,
    manifest: Arc<Manifest>,
}

/// A log, as far as the version has it that has the most of it.
struct Longest {
    /// Which version that is, by its place in the list.
    version: usize,
    session: Session,
    part: LogPart,
    /// How much of it each version has: metadata and payload.
    reaches: Vec<(u64, u64, u64)>,
}

/// Which log it is: the stem and revision of its session, its file and its lane.
type Name = (String, u64, u32, u32);

/// Reads everything that any version of the container has which can be opened; each payload once. `progress` hears how many bytes
/// of how many were read.
pub fn examine_all(
    store: &Arc<dyn Store>,
    path: &Path,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<AllExamined> {
    let path = &store.resolve(path)?;
    let store = &store.enclosed(path)?;
    let mut all = AllExamined {
        versions: Vec::new(),
        unreadable: Vec::new(),
        faults: Vec::new(),
        promises_damaged: false,
        entries: 0,
        payload: 0,
    };
    let opened = open_all(store, path, &mut all)?;
    let Some(newest) = opened.last() else { return Ok(all) };
    all.promises_damaged = promises_damaged(&**store, path, newest.number)?;
    all.versions = opened.iter().map(|version| version.number).collect();
    let logs = longest(&opened);
    let total = logs.values().map(|log| log.part.meta_len.saturating_add(log.part.data_len));
    let total = total.fold(0, u64::saturating_add);
    let pool = ReadPool::new(store.clone(), OPEN_FILES);
    let mut done = 0;
    for log in logs.values() {
        let header = header_of(path, &opened[log.version].manifest.header)?;
        let mut tell = |here: u64, _| progress((done + here).min(total), total);
        let mut reader = Reader::new(&pool, path, &header, total, &mut tell);
        let read = reader.read(&log.session, &log.part, Reach::Committed)?;
        done += log.part.meta_len.saturating_add(log.part.data_len);
        all.entries += read.entries + read.bad.len() as u64;
        all.payload += read.bytes;
        let meta = inside(path, meta_path(path, &log.session, log.part.file));
        for fault in read.faults {
            let versions = log.versions_with(fault.file == meta, fault.offset);
            all.faults.push((fault, versions));
        }
    }
    let damaged: Vec<u64> = all.faults.iter().flat_map(|(_, versions)| versions.clone()).collect();
    for Opened { number, edition, manifest } in &opened {
        // What is damaged is told already, and may lie where something else is missed.
        if damaged.contains(number) {
            continue;
        }
        if let Some(sections) = edition.all_sections()? {
            let faults = listed::unlisted(&pool, path, manifest, sections)?;
            all.faults.extend(faults.into_iter().map(|fault| (fault, vec![*number])));
        }
    }
    Ok(all)
}

/// The versions that can be opened, oldest first; of the others it is noted why not.
fn open_all(store: &Arc<dyn Store>, path: &Path, all: &mut AllExamined) -> Result<Vec<Opened>> {
    let mut opened = Vec::new();
    for facts in container::versions(&**store, path, None)?.into_iter().rev() {
        let number = facts.number;
        match facts.state {
            VersionState::Expired | VersionState::GivenUp => continue,
            VersionState::Damaged(why) => {
                all.unreadable.push((number, why));
                continue;
            }
            VersionState::Open => {}
        }
        match open(store, path, number) {
            Ok(version) => opened.push(version),
            Err(Error::Store(error)) => return Err(error.into()),
            Err(Error::Container { why, .. }) => all.unreadable.push((number, why)),
            Err(error) => all.unreadable.push((number, error.to_string())),
        }
    }
    Ok(opened)
}

fn open(store: &Arc<dyn Store>, path: &Path, number: u64) -> Result<Opened> {
    let container::Found { edition, .. } = container::find(store, path, Some(number))?;
    let manifest = edition.manifest()?;
    edition.all_sections()?;
    // As a reader wants it.
    crate::sound::require(path, &header_of(path, &manifest.header)?)?;
    Ok(Opened { number, edition, manifest })
}

/// Each log of any version, once.
fn longest(opened: &[Opened]) -> BTreeMap<Name, Longest> {
    let mut logs: BTreeMap<Name, Longest> = BTreeMap::new();
    for (version, Opened { number, manifest, .. }) in opened.iter().enumerate() {
        for session in &manifest.sessions {
            for part in &session.logs {
                let name = (session.stem.clone(), session.revision.into(), part.file, part.lane);
                let reach = (*number, part.meta_len, part.data_len);
                let new = || Longest {
                    version,
                    session: session.clone(),
                    part: part.clone(),
                    reaches: Vec::new(),
                };
                let log = logs.entry(name).or_insert_with(new);
                log.reaches.push(reach);
                if (part.meta_len, part.data_len) >= (log.part.meta_len, log.part.data_len) {
                    (log.version, log.session, log.part) = (version, session.clone(), part.clone());
                }
            }
        }
    }
    logs
}

impl Longest {
    /// The versions that reach to this place of the metadata, or of the payload. One where nothing is to be read has all of them.
    fn versions_with(&self, of_metadata: bool, offset: u64) -> Vec<u64> {
        let end = |(_, meta, data): &(u64, u64, u64)| if of_metadata { *meta } else { *data };
        let has = self.reaches.iter().filter(|reach| end(reach) > offset);
        let mut versions: Vec<u64> = has.map(|(number, ..)| *number).collect();
        if versions.is_empty() {
            versions = self.reaches.iter().map(|(number, ..)| *number).collect();
        }
        versions
    }
}

fn inside(container: &Path, path: PathBuf) -> PathBuf {
    path.strip_prefix(container).map(Path::to_path_buf).unwrap_or(path)
}
