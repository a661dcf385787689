//! Containers after something went wrong: what is in them, what is damaged, and a version of
//! what can be read.
//!
//! [`container_facts`] says what a container is made of. [`examine`] reads every frame and every
//! payload of a version and reports each damage with its place. [`recover_container`] looks behind what
//! was committed, too, and makes a new version of everything that is whole. Nothing that is there
//! is changed by it, so older versions stay what they were, and a recovery that is killed can be
//! made again.

mod all;
mod facts;
mod fault;
mod listed;
mod lost;
mod read;
mod rewrite;
mod sessions;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use esker_format::history::Branch;
use esker_format::log::{Aborted, Cut, Manifest, PromiseSlot, Section, Session};
use esker_format::{Header, NumRecs};
use esker_history::{Attempt, Item, Strict};
use esker_store::{ReadPool, Store};

use crate::container::{self, Edition, Format, Mark, Read, Shelf, Telling, Trust, publish};
use crate::error::{Error, Result};
use lost::{Look, lost_versions, promises_damaged};
use read::{LogRead, Reach, Reader};

pub use all::{AllExamined, examine_all};
pub use facts::{ContainerFacts, SessionFacts, container_facts, container_header};
pub use fault::{FaultKind, LogFault, TornTail};
pub use lost::LostVersion;

/// Log files that are open at once.
const OPEN_FILES: usize = 64;

/// Whether there is a container of this name.
pub fn is_container(store: &dyn Store, path: &Path) -> Result<bool> {
    container::is_container(store, path)
}

/// What [`examine`] found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Examination {
    /// The version that was looked at.
    pub version: u64,
    /// What a reader of this version is told: newer versions that cannot be read.
    pub notes: Vec<String>,
    /// Other versions of the dataset that cannot be read.
    pub lost_versions: Vec<LostVersion>,
    /// Whether its file of promises is damaged or not there, though it should be.
    pub promises_damaged: bool,
    /// Entries that were read.
    pub entries: u64,
    /// Bytes of payload that were read.
    pub payload: u64,
    /// Everything that is damaged or missing.
    pub faults: Vec<LogFault>,
}

/// Reads all logs of a version (the newest, if none is named) to their committed ends.
/// `progress` hears how many bytes of how many were read.
pub fn examine(
    store: &Arc<dyn Store>,
    path: &Path,
    version: Option<u64>,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Examination> {
    let path = &store.resolve(path)?;
    let store = &store.enclosed(path)?;
    let container::Found { edition, first, notes, .. } = container::find(store, path, version)?;
    let manifest = edition.manifest()?;
    let header = header_of(path, &manifest.header)?;
    // As a reader wants it.
    crate::sound::require(path, &header)?;
    let logs = manifest.sessions.iter().flat_map(|session| &session.logs);
    let lengths = logs.map(|part| part.meta_len.saturating_add(part.data_len));
    let total = lengths.fold(0, u64::saturating_add);
    let pool = ReadPool::new(store.clone(), OPEN_FILES);
    let mut reader = Reader::new(&pool, path, &header, total, progress);
    let mut examination = Examination {
        version: manifest.version,
        notes,
        lost_versions: lost_versions(&Shelf::open(store, path)?, first, Look::Glance)?,
        promises_damaged: promises_damaged(&**store, path, manifest.version)?,
        entries: 0,
        payload: 0,
        faults: Vec::new(),
    };
    for session in &manifest.sessions {
        for part in &session.logs {
            let read = reader.read(session, part, Reach::Committed)?;
            examination.entries += read.entries + read.bad.len() as u64;
            examination.payload += read.bytes;
            examination.faults.extend(read.faults);
        }
    }
    // What is damaged is told already, and may lie where something else is missed.
    if examination.faults.is_empty()
        && let Some(sections) = edition.all_sections()?
    {
        examination.faults = listed::unlisted(&pool, path, &manifest, sections)?;
    }
    Ok(examination)
}

fn header_of(path: &Path, bytes: &[u8]) -> Result<Header> {
    let decoded = Header::decode(bytes, u64::MAX);
    decoded.map_err(|source| Error::Decode { path: path.to_path_buf(), source })
}

/// How to recover.
#[derive(Debug, Clone, Copy, Default)]
pub struct ContainerRecoverOptions {
    /// Only say what would be done.
    pub dry_run: bool,
    /// Take in, too, what was never committed and has been passed over: sessions that ended
    /// before others committed later versions. What the later ones wrote stays on top.
    pub superseded: bool,
}

/// A log of which something was recovered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecoveredLog {
    /// What the names of its session's files begin with.
    pub session: String,
    /// Its rank.
    pub rank: u32,
    /// Writes that were never committed.
    pub entries: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// A session that was passed over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Superseded {
    /// What the names of its files begin with.
    pub session: String,
    /// Writes that were never committed.
    pub entries: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// What [`recover_container`] found and did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContainerRecovery {
    /// The newest version that was whole.
    pub found: u64,
    /// The version that was made of what is whole (or would be, in a dry run); none when the
    /// one that was found has all of it.
    pub made: Option<u64>,
    /// Records before and after.
    pub records: (u64, u64),
    /// Never committed, and in the new version.
    pub recovered: Vec<RecoveredLog>,
    /// Damaged or missing, one by one, and not in the new version.
    pub faults: Vec<LogFault>,
    /// What the last write of a log left, which is not whole.
    pub torn: Vec<TornTail>,
    /// Versions that are newer than the one that was found, and cannot be read.
    pub lost_versions: Vec<LostVersion>,
    /// Whether the file of promises was damaged or not there; it was written anew.
    pub promises: bool,
    /// Whether the container's mark was damaged; a new one was written.
    pub mark: bool,
    /// Sessions that were passed over.
    pub superseded: Vec<Superseded>,
}

impl ContainerRecovery {
    /// Whether everything was in order.
    pub fn is_clean(&self) -> bool {
        self.made.is_none() && self.faults.is_empty() && !self.mark && !self.promises
    }

    /// Whether something is gone that a version had: a sync's promise, or what was closed.
    pub fn is_loss(&self) -> bool {
        let lacks = self.lost_versions.iter().any(|lost| lost.lacks.is_some());
        lacks || self.faults.iter().any(|fault| fault.committed)
    }
}

/// Makes a version of everything in a container that is whole: what was committed and is not
/// damaged, and behind it what was written and never committed.
///
/// Not while somebody writes to the container: the writer's next commit would fail.
pub fn recover_container(
    store: &Arc<dyn Store>,
    path: &Path,
    options: ContainerRecoverOptions,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<ContainerRecovery> {
    let path = &store.resolve(path)?;
    let store = &store.enclosed(path)?;
    let mark = Mark::find(&**store, path)?.is_none();
    if mark && !options.dry_run {
        Mark::write(&**store, path)?;
    }
    let shelf = Shelf::open(store, path)?;
    if shelf.format == Format::One {
        let why = "it is of format 1, which is read and not written any more; `esker copy` makes one of format 2 \
                   of what was committed";
        return Err(Error::Container { path: path.to_path_buf(), why: why.to_string() });
    }
    let Newest { manifest, number: newest, first } = newest_whole(&shelf, path)?;
    let mut lost = lost_versions(&shelf, manifest.version.saturating_add(1), Look::Whole)?;
    let changed = shelf.last_change(manifest.version);
    let promises = promises_damaged(&**store, path, manifest.version)?;
    let mut header = header_of(path, &manifest.header)?;
    let pool = ReadPool::new(store.clone(), OPEN_FILES);
    let mut recovery = ContainerRecovery {
        found: manifest.version,
        made: None,
        records: (records_of(&header), records_of(&header)),
        recovered: Vec::new(),
        faults: Vec::new(),
        torn: Vec::new(),
        lost_versions: Vec::new(),
        promises,
        mark,
        superseded: Vec::new(),
    };
    let listed = manifest.sessions.len();
    let mut candidates: Vec<Candidate> = manifest
        .sessions
        .iter()
        .cloned()
        .map(|session| Candidate { session, listed: true })
        .collect();
    // What was given up is void, and may be gone in part.
    let fenced = shelf.fenced(manifest.version, lost.iter().flat_map(|lost| &lost.gives));
    let is_fenced = |stem: &str| fenced.contains(&sessions::identity(stem));
    let mut unlisted = sessions::unlisted(&**store, path, &manifest.sessions)?;
    unlisted.retain(|session| !is_fenced(&session.stem));
    candidates.extend(unlisted.into_iter().map(|session| Candidate { session, listed: false }));
    let total = total(&pool, path, &candidates);
    let mut reader = Reader::new(&pool, path, &header, total, progress);
    let mut found = Vec::new();
    for (number, Candidate { session, listed: committed }) in candidates.iter().enumerate() {
        // The tail of a session is passed over when another one was committed after it.
        let current = match committed {
            true => number + 1 == listed,
            false => sessions::began(&session.stem) > changed,
        };
        let adopt = current || options.superseded;
        let mut logs = Vec::new();
        let aborted = container::noted(&**store, path, session)?;
        for (log, part) in session.logs.iter().enumerate() {
            let until = |aborted: &Aborted| Reach::Until(aborted.committed(log));
            let reach = match is_fenced(&session.stem) {
                true => Reach::Committed,
                false => aborted.as_ref().map_or(Reach::Everything, until),
            };
            logs.push(reader.read(session, part, reach)?);
        }
        found.push(Looked::at(session.clone(), *committed, (adopt, current), logs, &mut recovery));
    }
    found.retain(|looked| looked.listed || (looked.adopt && looked.has_entries()));
    let records = found.iter().filter_map(Looked::records).max().unwrap_or(0);
    recovery.records.1 = recovery.records.0.max(records);
    let changes = found.iter().any(Looked::changes);
    if !changes && lost.is_empty() {
        if promises && !options.dry_run {
            sync_logs(&**store, path, &manifest.sessions)?;
            container::promise_again(store, path, &manifest, first)?;
        }
        return Ok(recovery);
    }
    let version = newest.max(manifest.version).saturating_add(1);
    recovery.made = Some(version);
    if changes {
        header.numrecs = NumRecs::Count(recovery.records.1);
    }
    let header = header.encode();
    let is_whole = recovery.faults.is_empty() && recovery.torn.is_empty();
    let bytes = found
        .iter()
        .map(Looked::log_bytes)
        .fold((0u64, 0u64), |a, b| (a.0.saturating_add(b.0), a.1.saturating_add(b.1)));
    for lost in &mut lost {
        lost.lacks = lost.lacking(&header, bytes, is_whole);
    }
    if lost.iter().any(|lost| lost.lacks.is_some()) {
        // What was behind the version that was found, a later one had promised.
        recovery.faults.iter_mut().for_each(|fault| fault.committed = true);
    }
    let names: Vec<Item> = lost.iter().rev().flat_map(|lost| lost.gives.clone()).collect();
    recovery.lost_versions = lost;
    if options.dry_run {
        return Ok(recovery);
    }
    let mut sessions = Vec::new();
    for looked in found {
        sessions.push(looked.settle(store, &pool, path)?);
    }
    renumber(&mut sessions, version);
    let manifest = Manifest { version, header, sessions };
    sync_logs(&**store, path, &manifest.sessions)?;
    commit_whole(store, path, &manifest, (recovery.found, first), names)?;
    Ok(recovery)
}

/// Gives all stretches places in the version that is made, in the order that they have.
fn renumber(sessions: &mut [Session], version: u64) {
    let cuts = sessions.iter().flat_map(|session| &session.logs).flat_map(|part| &part.cuts);
    let all: BTreeSet<(u64, u64)> = cuts.map(|cut| (cut.over, cut.number)).collect();
    let all: BTreeMap<(u64, u64), u64> = all.into_iter().zip(1..).collect();
    for part in sessions.iter_mut().flat_map(|session| &mut session.logs) {
        for cut in &mut part.cuts {
            let number = all.get(&(cut.over, cut.number)).copied().unwrap_or(0);
            (cut.over, cut.number) = (version, number);
        }
    }
}

/// Commits a version that needs nothing of those before it, but has the names that the one that was `found` has, and `names` that
/// were given since.
fn commit_whole(
    store: &Arc<dyn Store>,
    path: &Path,
    manifest: &Manifest,
    (found, first): (u64, u64),
    names: Vec<Item>,
) -> Result<()> {
    let top = manifest.version.saturating_sub(1);
    let trust = Trust::new(store, path, true)?.up_to(top);
    let history = container::history(store, path, container::new_writer());
    let history = history.witnessed(Arc::new(trust));
    let mut items = manifest.facts();
    items.extend(manifest.whole_logs().iter().map(Section::item));
    if let Ok(Some(version)) = history.commit_of(&Branch::main(), found) {
        let facts = version.all_facts().unwrap_or_default();
        items.extend(facts.into_iter().filter(container::is_of_history));
    }
    items.extend(names);
    let attempt = Attempt::new(Branch::main(), top).items(items).whole().durable(true);
    let attempt = attempt.message("recovered").time(container::now());
    let (header, bytes) = (&manifest.header[..], manifest.log_bytes());
    let telling = Telling { header, bytes, grown: bytes, first, durable: true, known: false };
    publish(store, path, &history, (attempt, &mut Strict::default()), telling)?;
    Ok(())
}

/// A session that a new version may have.
struct Candidate {
    session: Session,
    listed: bool,
}

fn records_of(header: &Header) -> u64 {
    match header.numrecs {
        NumRecs::Count(records) => records,
        NumRecs::Streaming => 0,
    }
}

/// The newest version that is whole.
struct Newest {
    manifest: Manifest,
    /// The highest number that there is or was.
    number: u64,
    /// The oldest version of the dataset.
    first: u64,
}

/// The newest manifest that is whole, whatever the mark says.
fn newest_whole(shelf: &Shelf, path: &Path) -> Result<Newest> {
    let promises = &shelf.promises;
    let all = shelf.listed()?;
    let number = all.first().copied().unwrap_or(0).max(promises.highest());
    for version in &all {
        let slot = promises.of(*version)?;
        if let Read::Whole(edition, _) = shelf.read(*version, &slot)? {
            // Something that it shares with others may be damaged.
            let Ok(manifest) = everything(&edition)? else { continue };
            let first = match slot {
                PromiseSlot::Promise(promise) => promise.first,
                _ => all.last().copied().unwrap_or(*version),
            };
            return Ok(Newest { manifest, number, first });
        }
    }
    let why = match all.is_empty() {
        true => "it has no version, so nobody knows what was defined: nothing can be recovered",
        false => "the manifests of all versions are damaged: nothing can be recovered",
    };
    Err(Error::Container { path: path.to_path_buf(), why: why.to_string() })
}

/// Everything that a version consists of, the sections of its logs with it; or why that cannot be read.
pub(super) fn everything(edition: &Edition) -> Result<std::result::Result<Manifest, String>> {
    let whole = edition.manifest().and_then(|manifest| {
        edition.all_sections()?;
        Ok(manifest.as_ref().clone())
    });
    match whole {
        Ok(manifest) => Ok(Ok(manifest)),
        Err(error @ Error::Store(_)) => Err(error),
        Err(Error::Container { why, .. }) => Ok(Err(why)),
        Err(error) => Ok(Err(error.to_string())),
    }
}

/// Bytes of the logs, about.
fn total(pool: &Arc<ReadPool>, path: &Path, candidates: &[Candidate]) -> u64 {
    let mut total = 0;
    for Candidate { session, .. } in candidates {
        for part in session.logs.iter().filter(|part| part.lane == 0) {
            let paths = [
                container::meta_path(path, session, part.file),
                container::data_path(path, session, part.file),
            ];
            total += paths.iter().filter_map(|path| pool.file(path).len().ok()).sum::<u64>();
        }
    }
    total
}

fn sync_logs(store: &dyn Store, path: &Path, sessions: &[Session]) -> Result<()> {
    for session in sessions {
        for part in session.logs.iter().filter(|part| part.lane == 0 || part.lanes <= 1) {
            let paths: [PathBuf; 2] = [
                container::meta_path(path, session, part.file),
                container::data_path(path, session, part.file),
            ];
            for path in paths {
                store.open(&path, esker_store::Access::ReadWrite)?.sync()?;
            }
        }
    }
    Ok(())
}

/// A session and what its logs hold.
struct Looked {
    session: Session,
    listed: bool,
    adopt: bool,
    /// Whether nobody has committed since it wrote what was never committed.
    is_current: bool,
    logs: Vec<LogRead>,
}

impl Looked {
    fn at(
        session: Session,
        listed: bool,
        (adopt, is_current): (bool, bool),
        mut logs: Vec<LogRead>,
        recovery: &mut ContainerRecovery,
    ) -> Looked {
        let (mut entries, mut bytes) = (0, 0);
        for (part, log) in session.logs.iter().zip(&mut logs) {
            entries += log.tail_entries;
            bytes += log.tail_bytes;
            if adopt {
                if log.tail_entries > 0 {
                    recovery.recovered.push(RecoveredLog {
                        session: session.stem.clone(),
                        rank: part.rank,
                        entries: log.tail_entries,
                        bytes: log.tail_bytes,
                    });
                }
                recovery.torn.extend(log.torn.clone());
            } else {
                log.forget_tail();
            }
            recovery.faults.append(&mut log.faults);
        }
        if !adopt && entries > 0 {
            let session = session.stem.clone();
            recovery.superseded.push(Superseded { session, entries, bytes });
        }
        Looked { session, listed, adopt, is_current, logs }
    }

    /// Bytes of payload and of metadata that are in its logs.
    fn log_bytes(&self) -> (u64, u64) {
        let logs = self.session.logs.iter().zip(&self.logs);
        logs.fold((0, 0), |(data, metadata), (part, log)| {
            let (more, meta) = (part.data_len.max(log.data_end), part.meta_len.max(log.meta_end));
            (data.saturating_add(more), metadata.saturating_add(meta))
        })
    }

    fn has_entries(&self) -> bool {
        self.logs.iter().any(|log| log.entries > 0)
    }

    /// The record after the last that a write of its touches.
    fn records(&self) -> Option<u64> {
        self.logs.iter().map(|log| log.records).max()
    }

    fn changes(&self) -> bool {
        // A tail that is damaged and gains nothing is left alone.
        self.logs.iter().any(|log| log.committed_damaged || log.tail_entries > 0)
    }

    /// The session as the new manifest has it.
    fn settle(self, store: &Arc<dyn Store>, pool: &Arc<ReadPool>, path: &Path) -> Result<Session> {
        let mut session = self.session;
        let began = sessions::began(&session.stem);
        // What is new lies over everything, or, if it was passed over, where it would have been.
        let place = match (self.is_current, self.listed) {
            (true, _) => Some((u64::MAX, began)),
            (false, true) => None,
            (false, false) => Some((began, 0)),
        };
        for (part, log) in session.logs.iter_mut().zip(&self.logs) {
            part.rank = log.rank.unwrap_or(part.rank);
            let end = part.meta_len.max(log.meta_end);
            let last = part.cuts.last().map(|cut| (cut.over, cut.number));
            match (place.or(last), part.cuts.last_mut()) {
                (place, Some(cut)) if place == last => cut.end = end,
                (Some((over, number)), cut) if cut.as_ref().is_none_or(|cut| cut.end < end) => {
                    part.cuts.push(Cut { end, number, over });
                }
                _ => {}
            }
            part.meta_len = end;
            part.data_len = part.data_len.max(log.data_end);
        }
        // What was left out needs other metadata logs.
        match self.logs.iter().any(|log| log.damaged) {
            true => rewrite::without_damage(store, pool, path, session, &self.logs),
            false => Ok(session),
        }
    }
}
