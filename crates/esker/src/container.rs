//! A container: a directory of logs and numbered manifests.
//!
//! ```text
//! RUN.esk/esker.json          what this is
//! RUN.esk/versions/00000007   the manifest of version 7
//! RUN.esk/segments/7-1f.4.meta, 7-1f.4.data   logs of the session that began version 7
//! ```
//!
//! What a manifest promises is never rewritten. A session writes logs of its own, and commits by
//! creating the next manifest, which one of several writers can.

mod distributed;
mod sections;

use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::ErrorKind;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use esker_comm::{CommunicatorExt, Message};
use esker_format::log::{Head, LogPart, Manifest, Session};
use esker_format::{Header, Variable};
use esker_store::{Access, CreateMode, File, Lane, ReadPool, Store, named_path};

use crate::base::{Base, broadcast_parts};
use crate::error::{Error, Result};
use crate::hints::LogFiles;
use crate::log::{FILTERS, Index, Lengths, LogDamage, LogSource, LogWriter, Memo, View};
use crate::report::Report;
use distributed::Share;

/// The file that makes a directory a container.
pub(crate) const MARK: &str = "esker.json";

/// What it begins with.
const MARK_TEXT: &str = "{\"esker\": \"container\", \"format\": 1";

/// Bytes of a lane's block in shared metadata and data files.
const META_BLOCK: u64 = 256 << 10;
const DATA_BLOCK: u64 = 8 << 20;

/// No manifest is longer: that of a million logs has 32 MB.
const LONGEST: u64 = 1 << 30;

/// Log files that are open at once for reading.
const OPEN_FILES: usize = 256;

/// An open container.
#[derive(Debug)]
pub(crate) struct Container {
    /// The version that this one builds on; 0 before the first.
    version: u64,
    /// The sessions of that version.
    sessions: Vec<Session>,
    /// What this one writes.
    own: Option<Own>,
    /// Collective calls so far.
    pub(crate) epoch: u64,
    pub(crate) view: Arc<View>,
    pool: Arc<ReadPool>,
    seen: Arc<Mutex<Seen>>,
    /// Whether the index is distributed, which all ranks know alike, and this rank's part.
    pub(crate) distributed: bool,
    share: Option<Share>,
    /// Lists that were written before.
    memo: Mutex<Memo>,
    /// How often all ranks had everything in their files, and knew it.
    together: u64,
    /// Whether the version is safe from power loss.
    durable: bool,
    /// Whether the logs of earlier sessions are.
    settled: bool,
    /// The number of the next version: behind all that there are, damaged ones included.
    next: u64,
    /// The header of the version, to know whether a commit says anything new.
    committed: Vec<u8>,
    /// Files that the first commit removes: those of the dataset that it replaces.
    replaced: Vec<PathBuf>,
}

/// The session that is being written.
#[derive(Debug)]
struct Own {
    session: Session,
    /// Reading needs what was written to be in the files, and threads read at the same time.
    writer: Mutex<LogWriter>,
    committed: Lengths,
    /// How much of it all ranks may have seen.
    together: Lengths,
}

/// How a rank's log stands, in numbers of which the largest is what counts for all.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Standing {
    /// Whether it has grown since all ranks last read together.
    pub(crate) grown: u64,
    /// Whether some of it is not in its files.
    pub(crate) unwritten: u64,
    /// Bytes of metadata that it has.
    pub(crate) metadata: u64,
}

/// Which logs the view's index has.
#[derive(Debug, Default)]
struct Seen {
    committed: bool,
    /// How many logs of the version the index has, which are its first.
    added: usize,
    /// The numbers of the session's logs.
    logs: Option<Range<usize>>,
    /// How much of this rank's log was seen.
    lengths: Lengths,
    /// When the other ranks' logs were read.
    together: u64,
}

/// Whether there is a container of this name.
pub(crate) fn is_container(store: &dyn Store, path: &Path) -> Result<bool> {
    Ok(store.is_dir(path)? && store.exists(&path.join(MARK))?)
}

/// Makes sure that a container of this name can be made.
pub(crate) fn claim(store: &dyn Store, path: &Path, clobber: bool) -> Result<PathBuf> {
    if is_container(store, path)? {
        if !clobber {
            return Err(broken(path, "it exists, and is not to be replaced"));
        }
        return Ok(store.resolve(path)?);
    }
    // A folder without contents may have been made for the purpose.
    let is_empty = store.is_dir(path)? && store.names_in(path)?.is_empty();
    if store.exists(path)? && !is_empty {
        let why = "something that is not a container has its name, and is not replaced by one";
        return Err(broken(path, why));
    }
    Ok(path.to_path_buf())
}

fn broken(path: &Path, why: impl Into<String>) -> Error {
    Error::Container { path: path.to_path_buf(), why: why.into() }
}

pub(crate) fn version_path(path: &Path, version: u64) -> PathBuf {
    path.join("versions").join(format!("{version:08}"))
}

/// The metadata log of a pair of files.
pub(crate) fn meta_path(path: &Path, session: &Session, file: u32) -> PathBuf {
    let name = match session.revision {
        0 => format!("{}.{file}.meta", session.stem),
        revision => format!("{}.{file}.{revision}.meta", session.stem),
    };
    path.join("segments").join(name)
}

/// The data log of a pair of files.
pub(crate) fn data_path(path: &Path, session: &Session, file: u32) -> PathBuf {
    path.join("segments").join(format!("{}.{file}.data", session.stem))
}

/// The numbers of the versions that there are, newest first.
pub(crate) fn versions(store: &dyn Store, path: &Path) -> Result<Vec<u64>> {
    let names = store.names_in(&path.join("versions"))?;
    let mut numbers: Vec<u64> = names.iter().filter_map(|name| name.parse().ok()).collect();
    numbers.sort_unstable_by(|a, b| b.cmp(a));
    Ok(numbers)
}

pub(crate) fn read_all(store: &dyn Store, path: &Path) -> Result<Vec<u8>> {
    let file = store.open(path, Access::Read)?;
    let mut bytes = vec![0; file.len()?.min(LONGEST) as usize];
    let n = file.read_at(0, &mut bytes)?;
    bytes.truncate(n);
    Ok(bytes)
}

/// The manifest of a version, or of the newest whole one.
pub(crate) fn read_manifest(
    store: &dyn Store,
    path: &Path,
    version: Option<u64>,
) -> Result<Manifest> {
    let mark = read_all(store, &path.join(MARK))?;
    if !mark.starts_with(MARK_TEXT.as_bytes()) {
        return Err(broken(
            path,
            format!("its {MARK} is not one that this version of Esker knows"),
        ));
    }
    let all = versions(store, path)?;
    let wanted = match version {
        Some(version) if !all.contains(&version) => {
            let newest = all.first().copied().unwrap_or(0);
            return Err(broken(
                path,
                format!("it has no version {version}; the newest is {newest}"),
            ));
        }
        Some(version) => vec![version],
        None => all,
    };
    for number in &wanted {
        let bytes = read_all(store, &version_path(path, *number))?;
        // The newest may be torn after a loss of power, when nobody had synced it.
        if let Some(manifest) = Manifest::decode(&bytes).filter(|m| m.version == *number) {
            return Ok(manifest);
        }
    }
    match wanted.as_slice() {
        [] => Err(broken(path, "it has no version yet")),
        [one] => Err(broken(path, format!("the manifest of version {one} is damaged"))),
        [newest, ..] => {
            Err(broken(path, format!("the manifests of all versions up to {newest} are damaged")))
        }
    }
}

impl Container {
    /// A container that is not there yet, or replaces one that is. Collective.
    pub(crate) fn create(base: &Base, header: &Header) -> Result<Container> {
        let found = base.by_root(|| {
            let store = &*base.store;
            if !is_container(store, &base.path)? {
                return Ok((0, Vec::new()));
            }
            let all = versions(store, &base.path)?;
            let mut old: Vec<PathBuf> =
                all.iter().map(|version| version_path(&base.path, *version)).collect();
            let segments = base.path.join("segments");
            let names = store.names_in(&segments)?;
            old.extend(names.iter().map(|name| segments.join(name)));
            Ok((all.first().copied().unwrap_or(0), old))
        })?;
        let (version, replaced) = found.unwrap_or_default();
        let version = base.comm.max_u64(version)?;
        let mut container = Container::new(base, header, version, Vec::new());
        container.replaced = replaced;
        Ok(container)
    }

    /// Opens a version, by default the newest. Collective.
    pub(crate) fn open(base: &Base, version: Option<u64>) -> Result<(Container, Header)> {
        let root = base.by_root(|| {
            // Before the manifest is read: what somebody commits in between is not ours.
            let newest = versions(&*base.store, &base.path)?.first().copied().unwrap_or(0);
            let manifest = read_manifest(&*base.store, &base.path, version)?;
            // One that is torn keeps its number; a version that was asked for goes no further.
            let last = if version.is_some() { 0 } else { newest };
            Ok((last.max(manifest.version) + 1, manifest))
        })?;
        let mut next = 0;
        let manifest = match root {
            Some((number, manifest)) => {
                next = number;
                if base.comm.size() > 1 {
                    broadcast_parts(&*base.comm, &[&manifest.encode()])?;
                }
                manifest
            }
            None => {
                let parts = broadcast_parts(&*base.comm, &[])?;
                let bytes = parts.first().ok_or(Error::Garbled)?;
                Manifest::decode(bytes).ok_or(Error::Garbled)?
            }
        };
        let decoded = Header::decode(&manifest.header, u64::MAX);
        let header = decoded.map_err(|source| Error::Decode { path: base.path.clone(), source })?;
        // The view counts on variables that do not overlap.
        crate::sound::require(&base.path, &header)?;
        let mut container = Container::new(base, &header, manifest.version, manifest.sessions);
        container.committed = manifest.header;
        container.next = base.comm.max_u64(next)?;
        Ok((container, header))
    }

    fn new(base: &Base, header: &Header, version: u64, sessions: Vec<Session>) -> Container {
        let index = Index::new(base.hints.index_memory as usize);
        let view = Arc::new(View::new(base.path.clone(), None, index, header.clone()));
        let pool = ReadPool::new(base.store.clone(), OPEN_FILES);
        Container {
            version,
            sessions,
            own: None,
            epoch: 0,
            view,
            pool,
            seen: Arc::default(),
            distributed: false,
            share: None,
            memo: Mutex::default(),
            together: 0,
            durable: false,
            settled: false,
            next: version + 1,
            committed: Vec::new(),
            replaced: Vec::new(),
        }
    }

    /// The same for another reader, with one index for both. Not while it is written, because then
    /// there is what only the writer knows.
    pub(crate) fn for_reading(&self) -> Option<Container> {
        if self.own.is_some() {
            return None;
        }
        Some(Container {
            version: self.version,
            sessions: self.sessions.clone(),
            own: None,
            epoch: self.epoch,
            view: self.view.clone(),
            pool: self.pool.clone(),
            seen: self.seen.clone(),
            distributed: false,
            share: None,
            memo: Mutex::default(),
            together: self.together,
            durable: self.durable,
            settled: self.settled,
            next: self.next,
            committed: Vec::new(),
            replaced: Vec::new(),
        })
    }

    /// The version that this one builds on.
    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    /// Commits a definition. Collective.
    pub(crate) fn define(
        &mut self,
        base: &Base,
        header: &Header,
        report: &mut Report,
    ) -> Result<()> {
        base.by_root(|| {
            let store = &*base.store;
            store.create_dir(&base.path)?;
            store.create_dir(&base.path.join("versions"))?;
            store.create_dir(&base.path.join("segments"))?;
            if !is_marked(store, &base.path)? {
                write_mark(store, &base.path)?;
            }
            Ok(())
        })?;
        self.require_filters(base, header)?;
        self.commit(base, header, false, report)?;
        self.view.change().set_header(header.clone());
        Ok(())
    }

    /// Fails if values that were written through filters could not be read any more. Collective.
    fn require_filters(&self, base: &Base, header: &Header) -> Result<()> {
        let Ok(before) = Header::decode(&self.committed, u64::MAX) else { return Ok(()) };
        let filters = |variable: &Variable| variable.attrs.get(FILTERS).map(|a| a.values.clone());
        let changed = before.schema.vars.iter().zip(header.schema.vars.iter()).enumerate();
        let changed: Vec<(u64, &Variable)> = changed
            .filter(|(_, (old, new))| {
                let old = filters(old);
                old.is_some() && old != filters(new)
            })
            .map(|(number, (_, new))| (number as u64, new))
            .collect();
        if changed.is_empty() {
            return Ok(());
        }
        let allowed = self.see(base, before.records(u64::MAX)).and_then(|()| {
            let state = self.view.state();
            for (number, variable) in changed {
                if state.index.has_entries(number)? {
                    let why = format!(
                        "variable \"{}\": values were written through its filters, and without the \
                         attribute {FILTERS} as it was they could not be read",
                        variable.name
                    );
                    return Err(broken(&base.path, why));
                }
            }
            Ok(())
        });
        base.agree(allowed)
    }

    /// Begins to write: makes this session's files. Collective.
    pub(crate) fn start(&mut self, base: &Base) -> Result<()> {
        if self.own.is_some() {
            return Ok(());
        }
        let comm = &base.comm;
        let named = base.by_root(|| Ok((self.next, identity())))?;
        let parts = match named {
            Some((version, identity)) => {
                let bytes = Message::from_u64s(&[version, identity]);
                broadcast_parts(&**comm, &[&bytes[..]])?
            }
            None => broadcast_parts(&**comm, &[])?,
        };
        let numbers = Message::from(parts.into_iter().next().ok_or(Error::Garbled)?).to_u64s();
        let [version, identity] = <[u64; 2]>::try_from(numbers).map_err(|_| Error::Garbled)?;
        let stem = format!("{version}-{identity:016x}");
        // The file of this rank, and its lane of it.
        let (file, lane, lanes) = match base.hints.log_files {
            LogFiles::Process => (comm.rank() as u32, 0, 1),
            LogFiles::Node => {
                let node = comm.split_by_node()?;
                // A node's number is the rank of its first.
                let first = node.min_u64(comm.rank() as u64)?;
                (first as u32, node.rank() as u32, node.size() as u32)
            }
        };
        let mine = [file, lane, lanes].map(u64::from);
        let all = comm.all_gather_u64(&mine)?;
        let (all, _) = all.as_chunks::<3>();
        let part = |(rank, [file, lane, lanes]): (u32, &[u64; 3])| {
            let [file, lane, lanes] = [*file, *lane, *lanes].map(|n| n as u32);
            LogPart { rank, file, lane, lanes, meta_len: 0, data_len: 0 }
        };
        let session = Session {
            stem,
            identity,
            revision: 0,
            meta_block: META_BLOCK,
            data_block: DATA_BLOCK,
            logs: (0..).zip(all).map(part).collect(),
        };
        let paths = [meta_path(&base.path, &session, file), data_path(&base.path, &session, file)];
        let made = match lane {
            0 => paths.iter().try_for_each(|path| {
                // Who may read the mark may read all.
                base.store.create_like(path, &base.path.join(MARK))?;
                Ok(())
            }),
            _ => Ok(()),
        };
        base.agree(made)?;
        let started = self.open_logs(base, &session, &paths);
        let writer = base.agree(started)?;
        let committed = writer.lengths();
        let together = Lengths::default();
        self.own = Some(Own { session, writer: Mutex::new(writer), committed, together });
        Ok(())
    }

    fn open_logs(&self, base: &Base, session: &Session, paths: &[PathBuf; 2]) -> Result<LogWriter> {
        let part = &session.logs[base.comm.rank()];
        let (lane, lanes) = (part.lane.into(), part.lanes.into());
        let open = |path: &PathBuf, block| -> Result<Arc<dyn File>> {
            Ok(Lane::open(base.store.open(path, Access::ReadWrite)?, lane, lanes, block))
        };
        let meta = open(&paths[0], META_BLOCK)?;
        let data = open(&paths[1], DATA_BLOCK)?;
        let (rank, ranks) = (part.rank, base.comm.size() as u32);
        // What a manifest says of the log, for when it is never committed.
        let text = format!("lane {lane} of {lanes} in blocks of {META_BLOCK} and {DATA_BLOCK}");
        let head = Head { identity: session.identity, rank, ranks, text }.encode();
        meta.write_at(0, &head)?;
        Ok(LogWriter::new(meta, data, head.len() as u64))
    }

    /// Appends to this rank's log. Only after [`Container::start`].
    pub(crate) fn writer(&mut self) -> Option<&mut LogWriter> {
        let own = self.own.as_mut()?;
        Some(own.writer.get_mut().unwrap_or_else(PoisonError::into_inner))
    }

    /// What is known of lists.
    pub(crate) fn memo(&self) -> MutexGuard<'_, Memo> {
        self.memo.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes visible to this rank's reads what it has written, and what all had when they were
    /// last together.
    pub(crate) fn see(&self, base: &Base, records: u64) -> Result<()> {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        self.see_committed(base, &mut seen)?;
        if let Some(own) = &self.own {
            let lengths = own.flushed()?;
            if seen.logs.is_none() {
                let mut state = self.view.change();
                let first = state.index.logs.len();
                for i in 0..own.session.logs.len() {
                    state.index.add(self.source(base, &own.session, i, true));
                }
                seen.logs = Some(first..first + own.session.logs.len());
            }
            let logs = seen.logs.clone().unwrap_or(0..0);
            if seen.together != self.together {
                self.view.change().index.catch_up(logs)?;
            } else if seen.lengths != lengths {
                let mine = logs.start + base.comm.rank();
                self.view.change().index.catch_up(mine..mine + 1)?;
            }
            (seen.together, seen.lengths) = (self.together, lengths);
        }
        damaged(base, &self.view.state().index)?;
        self.view.have_records(records);
        Ok(())
    }

    /// Writes out what this rank has appended.
    pub(crate) fn flush_own(&self) -> Result<()> {
        self.own.as_ref().map_or(Ok(()), |own| own.flushed().map(drop))
    }

    /// How this rank's log stands.
    pub(crate) fn standing(&self) -> Standing {
        let Some(own) = &self.own else { return Standing::default() };
        let writer = own.writer.lock().unwrap_or_else(PoisonError::into_inner);
        Standing {
            grown: (writer.lengths() != own.together).into(),
            unwritten: writer.has_unwritten().into(),
            metadata: writer.lengths().meta,
        }
    }

    /// Before a read of all: everyone's log is in its files from here on, and how it stands is
    /// the largest of all ranks' numbers. Collective.
    pub(crate) fn stand_together(&mut self, base: &Base, logs: Standing) -> Result<()> {
        let Standing { mut grown, unwritten, metadata } = logs;
        if unwritten > 0 {
            // A rank that reads nothing itself has not written it out.
            base.agree(self.flush_own())?;
            grown = 1;
        }
        self.together += u64::from(grown > 0);
        if let Some(own) = &mut self.own {
            let writer = own.writer.get_mut().unwrap_or_else(PoisonError::into_inner);
            own.together = writer.lengths();
        }
        self.distributed = self.is_distributed(base, metadata);
        Ok(())
    }

    /// Puts the logs of the version into the index, the first time that somebody reads.
    fn see_committed(&self, base: &Base, seen: &mut Seen) -> Result<()> {
        if seen.committed {
            return Ok(());
        }
        let mut state = self.view.change();
        if seen.added == 0 {
            for session in &self.sessions {
                for i in 0..session.logs.len() {
                    state.index.add(self.source(base, session, i, false));
                    seen.added += 1;
                }
            }
        }
        // Whoever reads after a failure tries again.
        state.index.catch_up(0..seen.added)?;
        seen.committed = true;
        Ok(())
    }

    /// The log of a session's part, as far as it is committed or as it grows.
    fn source(&self, base: &Base, session: &Session, i: usize, growing: bool) -> LogSource {
        let part = &session.logs[i];
        let open = |path: &Path, block| {
            Lane::open(self.pool.file(path), part.lane.into(), part.lanes.into(), block)
        };
        let number = self.sessions.iter().position(|s| s.identity == session.identity);
        LogSource {
            meta: open(&meta_path(&base.path, session, part.file), session.meta_block),
            data: open(&data_path(&base.path, session, part.file), session.data_block),
            session: number.unwrap_or(self.sessions.len()) as u32,
            rank: part.rank,
            identity: Some(session.identity),
            meta_len: (!growing).then_some(part.meta_len),
            data_len: (!growing).then_some(part.data_len),
            read: 0,
        }
    }

    /// Commits what was written and defined as the next version, unless there is nothing new.
    /// `durable` waits for the disk. Collective.
    pub(crate) fn commit(
        &mut self,
        base: &Base,
        header: &Header,
        durable: bool,
        report: &mut Report,
    ) -> Result<()> {
        let clock = Instant::now();
        let mut lengths = Lengths::default();
        let mut written = Ok(());
        if let Some(own) = &mut self.own {
            let writer = own.writer.get_mut().unwrap_or_else(PoisonError::into_inner);
            written = if durable { writer.sync(report) } else { writer.flush(report) };
            lengths = writer.lengths();
        }
        if written.is_ok() && durable && !self.settled {
            written = self.settle(base);
        }
        self.epoch += 1;
        base.agree(written)?;
        self.settled |= durable;
        self.together += 1;
        report.phases.sync += clock.elapsed();
        let bytes = header.encode();
        let wrote = self.own.as_ref().is_some_and(|own| own.committed != lengths);
        if !base.comm.any(wrote || bytes != self.committed || (durable && !self.durable))? {
            return Ok(());
        }
        let mine = Message::from_u64s(&[lengths.meta, lengths.data]);
        let gathered = base.comm.gather(0, mine)?;
        let version = self.next;
        base.by_root(|| {
            let mut sessions = self.sessions.clone();
            if let Some(own) = &self.own {
                let mut session = own.session.clone();
                for (part, lengths) in session.logs.iter_mut().zip(gathered.unwrap_or_default()) {
                    let lengths = <[u64; 2]>::try_from(lengths.to_u64s());
                    [part.meta_len, part.data_len] = lengths.map_err(|_| Error::Garbled)?;
                }
                sessions.push(session);
            }
            let manifest = Manifest { version, header: bytes.clone(), sessions };
            publish(&*base.store, &base.path, &manifest, durable)?;
            for old in &self.replaced {
                // What was replaced is garbage now, in the way of nothing.
                let _ = base.store.remove(old);
            }
            Ok(())
        })?;
        self.replaced.clear();
        (self.version, self.next) = (version, version + 1);
        self.committed = bytes;
        self.durable = durable;
        if let Some(own) = &mut self.own {
            own.committed = lengths;
        }
        Ok(())
    }
}

impl Container {
    /// Waits until what earlier sessions wrote is safe: a close does not wait for the disk, but
    /// a durable version promises all of its logs. Each rank has a share of the files.
    fn settle(&self, base: &Base) -> Result<()> {
        let mut paths = Vec::new();
        for session in &self.sessions {
            let mut files: Vec<u32> = session.logs.iter().map(|part| part.file).collect();
            files.sort_unstable();
            files.dedup();
            for file in files {
                paths.push(meta_path(&base.path, session, file));
                paths.push(data_path(&base.path, session, file));
            }
        }
        for path in paths.iter().skip(base.comm.rank()).step_by(base.comm.size()) {
            base.store.open(path, Access::ReadWrite)?.sync()?;
        }
        Ok(())
    }
}

impl Own {
    /// How much there is in the files, after everything appended was written out.
    fn flushed(&self) -> Result<Lengths> {
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        writer.flush(&mut Report::default())?;
        Ok(writer.lengths())
    }
}

/// Fails if a log was damaged.
fn damaged(base: &Base, index: &Index) -> Result<()> {
    let Some(LogDamage { rank, what }) = index.damages.first() else { return Ok(()) };
    let why = format!(
        "the log of rank {rank} is damaged, and values may be missing: {what}; \
         `esker recover` makes a version of what can be read"
    );
    Err(broken(&base.path, why))
}

/// Whether the file that makes a directory a container is whole.
pub(crate) fn is_marked(store: &dyn Store, path: &Path) -> Result<bool> {
    let mark = path.join(MARK);
    Ok(store.exists(&mark)? && read_all(store, &mark)?.starts_with(MARK_TEXT.as_bytes()))
}

/// Makes the directory a container. A mark that is there is whole, whoever dies.
pub(crate) fn write_mark(store: &dyn Store, path: &Path) -> Result<()> {
    let text = format!("{MARK_TEXT}, \"identity\": \"{:016x}\"}}\n", identity());
    let draft = path.join(format!("{MARK}-{:016x}", identity()));
    // One that grows to replace another is read by whom that was.
    let replaced = named_path(path).join(MARK);
    let file = match store.exists(&replaced)? {
        true => store.create_like(&draft, &replaced)?,
        false => store.create(&draft, CreateMode::New)?,
    };
    // It is synced with the first version that is: before that nothing is promised.
    let written = file.write_at(0, text.as_bytes());
    let renamed = written.and_then(|()| store.rename(&draft, &path.join(MARK)));
    Ok(renamed.inspect_err(|_| {
        let _ = store.remove(&draft);
    })?)
}

/// Creates the manifest's version, if nobody else has.
pub(crate) fn publish(
    store: &dyn Store,
    container: &Path,
    manifest: &Manifest,
    durable: bool,
) -> Result<()> {
    let path = version_path(container, manifest.version);
    if durable {
        // A version that is durable counts on a mark that is.
        store.open(&container.join(MARK), Access::ReadWrite)?.sync()?;
    }
    let draft = container.join("versions").join(format!("draft-{:016x}", identity()));
    let bytes = manifest.encode();
    let file = store.create_like(&draft, &container.join(MARK))?;
    let written = file.write_at(0, &bytes).and_then(|()| match durable {
        true => file.sync(),
        false => Ok(()),
    });
    let published = written.and_then(|()| store.publish(&draft, &path));
    if let Err(error) = published {
        let _ = store.remove(&draft);
        if error.kind() != ErrorKind::AlreadyExists {
            return Err(error.into());
        }
        // It may be ours, from a commit that failed after this.
        if read_all(store, &path)? != bytes {
            let why = format!(
                "version {} was committed by another writer meanwhile; open it again",
                manifest.version
            );
            return Err(broken(container, why));
        }
        if durable {
            store.open(&path, Access::ReadWrite)?.sync()?;
        }
    }
    if durable {
        let segments = container.join("segments").join("x");
        for name in [&path, &segments, &container.join(MARK), container] {
            store.sync_names(name)?;
        }
    }
    Ok(())
}

/// A number that no other session has.
pub(crate) fn identity() -> u64 {
    // The standard library seeds its maps from the system's random numbers.
    RandomState::new().build_hasher().finish()
}
