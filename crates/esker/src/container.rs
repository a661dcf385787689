//! A container: a directory of logs, and a history of versions that says which of them belong to what.
//!
//! ```text
//! RUN.esk/esker.json           what this is
//! RUN.esk/promises             which versions were committed, and which of them were synced
//! RUN.esk/refs/main/00000007   the decision on version 7; runs/ has what many versions share
//! RUN.esk/segments/7-1f.4.meta, 7-1f.4.data   logs of the session that began with version 7
//! ```
//!
//! What was committed is never rewritten. A session writes logs of its own, and commits by deciding the next
//! number, which one of several writers can; the others go behind it, unless both have written the same.

mod aborting;
mod deciding;
mod distributed;
mod layout;
mod listing;
mod mark;
mod messages;
mod named;
mod names;
mod promises;
mod rebase;
mod sections;
mod tags;
mod versions;

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use esker_comm::{CommunicatorExt, Message};
use esker_format::history::{decode_items, encode_items};
use esker_format::log::{self as facts, Head, LogPart, Manifest, Session};
use esker_format::{Header, Variable, inside};
use esker_store::{Access, File, Lane, ReadPool, Store};

use crate::base::{Base, broadcast_parts, identity, joined, parts_of};
use crate::bounded::CacheUse;
use crate::error::{Error, Result};
use crate::hints::{Hints, LogFiles};
use crate::log::{FILTERS, Index, Lengths, LogDamage, LogSource, LogWriter, Memo, View};
use crate::report::Report;
use deciding::Deciding;
use distributed::Share;
use names::MARK;

pub(crate) use aborting::noted;
pub use listing::{VersionFacts, VersionState, versions};
pub(crate) use mark::{Format, Mark};
pub(crate) use messages::say;
pub use named::version_in_path;
pub(crate) use names::{data_path, meta_path, own_names};
pub(crate) use promises::{Promises, Trust};
pub(crate) use tags::tags_in;
pub use tags::{Tag, tag, tags, version_named};
pub(crate) use versions::{
    Found, Glance, Read, Shelf, Telling, find, history, new_writer, now, promise_again, publish,
    read_all,
};

/// Bytes of a lane's block in shared metadata and data files.
const META_BLOCK: u64 = 256 << 10;
const DATA_BLOCK: u64 = 8 << 20;

/// Log files that are open at once for reading.
const OPEN_FILES: usize = 256;

/// An open container.
#[derive(Debug)]
pub(crate) struct Container {
    /// The version that this one builds on; 0 before the first.
    version: u64,
    /// The sessions of that version.
    sessions: Vec<Session>,
    /// The places of their stretches among each other: what lies over which, and came with which version.
    places: Vec<(u64, u64)>,
    /// What this one writes.
    own: Option<Own>,
    /// Collective calls so far.
    pub(crate) epoch: u64,
    pub(crate) view: Arc<View>,
    /// The store, closed around the container's directory once there is one.
    store: Arc<dyn Store>,
    enclosed: bool,
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
    /// The newest version up to the one that this builds on that waited for the disk.
    safe: u64,
    /// The number of the next version: behind all that there are, damaged ones included.
    next: u64,
    /// The oldest version of the dataset.
    first: u64,
    /// Whether the names of all but the next version are safe from power loss.
    named: bool,
    /// What its user has to know.
    notes: Vec<String>,
    /// The header of the version, to know whether a commit says anything new.
    committed: Vec<u8>,
    /// Files that the first commit removes: those of the dataset that it replaces.
    replaced: Option<Vec<PathBuf>>,
    /// On rank 0, what is needed to commit.
    deciding: Option<Deciding>,
    /// The version that was committed behind those of other writers, until it is taken in.
    others: Option<Manifest>,
    /// Whether others have changed definitions since this was opened.
    redefined: bool,
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

impl Container {
    /// A container that is not there yet, or replaces one that is. Collective.
    pub(crate) fn create(base: &Base, header: &Header) -> Result<Container> {
        let found = base.by_root(|| {
            if !is_container(&*base.store, &base.path)? {
                return Ok((0, None));
            }
            let store = base.store.enclosed(&base.path)?;
            let top = Shelf::open(&store, &base.path)?.top()?;
            let mut old = Vec::new();
            for folder in ["versions", "segments", "runs"].map(|folder| base.path.join(folder)) {
                if store.is_dir(&folder)? {
                    let names = store.names_in(&folder)?;
                    old.extend(names.iter().map(|name| folder.join(name)));
                }
            }
            Ok((top, Some(old)))
        })?;
        let (version, replaced) = found.unwrap_or_default();
        let version = base.comm.max_u64(version)?;
        let mut container = Container::new(base, header, version, Vec::new());
        container.replaced = replaced;
        container.first = 0;
        Ok(container)
    }

    /// Opens a version, by default the newest. Collective.
    pub(crate) fn open(base: &Base, version: Option<u64>) -> Result<(Container, Header)> {
        let store = base.agree(base.store.enclosed(&base.path).map_err(Error::from))?;
        let writable = base.writable;
        let (root, told) = base.told_by_root(|| {
            let found = find(&store, &base.path, version)?;
            if writable && Mark::require(&*store, &base.path)?.format() == Format::One {
                let why = "it is of format 1, which is read and not written any more; `esker copy` makes one of \
                           format 2 of it";
                return Err(broken(&base.path, why));
            }
            let numbers = [found.manifest.version, found.next, found.first, found.safe];
            let (notes, numbers) = (found.notes.join("\n"), Message::from_u64s(&numbers));
            let items = encode_items(&found.manifest.facts());
            let tell = joined(&[&items[..], &numbers[..], notes.as_bytes()]);
            Ok((found, tell))
        })?;
        let (manifest, [next, first, safe], notes) = match root {
            Some(Found { manifest, next, first, safe, notes }) => {
                (manifest, [next, first, safe], notes)
            }
            None => {
                let [items, numbers, notes] =
                    <[Vec<u8>; 3]>::try_from(parts_of(&told)?).map_err(|_| Error::Garbled)?;
                let items = decode_items(&items).map_err(|_| Error::Garbled)?;
                let numbers = <[u64; 4]>::try_from(Message::from(numbers).to_u64s());
                let [version, rest @ ..] = numbers.map_err(|_| Error::Garbled)?;
                let manifest = Manifest::from_facts(version, &items).map_err(|_| Error::Garbled)?;
                let notes = String::from_utf8(notes).map_err(|_| Error::Garbled)?;
                (manifest, rest, notes.lines().map(str::to_string).collect())
            }
        };
        let decoded = Header::decode(&manifest.header, u64::MAX);
        let header = decoded.map_err(|source| Error::Decode { path: base.path.clone(), source })?;
        // The view counts on variables that do not overlap.
        crate::sound::require(&base.path, &header)?;
        let mut container = Container::new(base, &header, manifest.version, manifest.sessions);
        container.committed = manifest.header;
        [container.next, container.first, container.safe] = [next, first, safe];
        container.notes = notes;
        container.enclose(store);
        Ok((container, header))
    }

    /// From here on nothing is opened but what is in the container's own directory.
    fn enclose(&mut self, store: Arc<dyn Store>) {
        self.pool = ReadPool::new(store.clone(), OPEN_FILES);
        self.store = store;
        self.enclosed = true;
    }

    fn new(base: &Base, header: &Header, version: u64, sessions: Vec<Session>) -> Container {
        let index = Index::new(base.hints.index_memory as usize);
        let view = Arc::new(View::new(base.path.clone(), None, index, header.clone()));
        let pool = ReadPool::new(base.store.clone(), OPEN_FILES);
        let places = places(&sessions);
        Container {
            version,
            sessions,
            places,
            own: None,
            epoch: 0,
            view,
            store: base.store.clone(),
            enclosed: false,
            pool,
            seen: Arc::default(),
            distributed: false,
            share: None,
            memo: Mutex::default(),
            together: 0,
            durable: false,
            settled: false,
            safe: 0,
            next: version.saturating_add(1),
            first: version,
            named: false,
            notes: Vec::new(),
            committed: Vec::new(),
            replaced: None,
            deciding: None,
            others: None,
            redefined: false,
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
            places: self.places.clone(),
            own: None,
            epoch: self.epoch,
            view: self.view.clone(),
            store: self.store.clone(),
            enclosed: self.enclosed,
            pool: self.pool.clone(),
            seen: self.seen.clone(),
            distributed: false,
            share: None,
            memo: Mutex::default(),
            together: self.together,
            durable: self.durable,
            settled: self.settled,
            safe: self.safe,
            next: self.next,
            first: self.first,
            named: self.named,
            notes: Vec::new(),
            committed: Vec::new(),
            replaced: None,
            deciding: None,
            others: None,
            redefined: false,
        })
    }

    /// The version that this one builds on.
    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    /// What its user has to know: newer versions that cannot be read.
    pub(crate) fn notes(&self) -> &[String] {
        &self.notes
    }

    /// What else its user has to know.
    pub(crate) fn note(&mut self, notes: &[String]) {
        let new: Vec<&String> = notes.iter().filter(|note| !self.notes.contains(note)).collect();
        self.notes.extend(new.into_iter().cloned().collect::<Vec<_>>());
    }

    /// Commits a definition. Collective.
    pub(crate) fn define(
        &mut self,
        base: &Base,
        header: &Header,
        report: &mut Report,
    ) -> Result<()> {
        base.by_root(|| {
            base.store.create_dir(&base.path)?;
            let store = &*base.store.enclosed(&base.path)?;
            store.create_dir(&base.path.join("segments"))?;
            if Mark::find(store, &base.path)?.is_none() {
                Mark::write(store, &base.path)?;
            }
            Ok(())
        })?;
        if !self.enclosed {
            let store = base.agree(base.store.enclosed(&base.path).map_err(Error::from))?;
            self.enclose(store);
        }
        self.require_filters(base, header)?;
        self.commit(base, header, false, report)?;
        self.take_in_others(base)?;
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
        let stem = inside::session_stem(version, identity);
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
            LogPart::new(rank, file, lane, lanes)
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
                self.store.create_like(path, &base.path.join(MARK))?;
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
            Ok(Lane::open(self.store.open(path, Access::ReadWrite)?, lane, lanes, block))
        };
        let meta = open(&paths[0], META_BLOCK)?;
        let data = open(&paths[1], DATA_BLOCK)?;
        let (rank, ranks) = (part.rank, base.comm.size() as u32);
        // What a manifest says of the log, for when it is never committed.
        let text = format!("lane {lane} of {lanes} in blocks of {META_BLOCK} and {DATA_BLOCK}");
        let head = Head { identity: session.identity, rank, ranks, text }.encode();
        meta.write_at(0, &head)?;
        Ok(LogWriter::new(meta, data, head.len() as u64, base.hints.cache / 2))
    }

    /// Appends to this rank's log. Only after [`Container::start`].
    pub(crate) fn writer(&mut self) -> Option<&mut LogWriter> {
        let own = self.own.as_mut()?;
        Some(own.writer.get_mut().unwrap_or_else(PoisonError::into_inner))
    }

    /// What its caches hold.
    pub(crate) fn caches_now(&self, hints: &Hints) -> Vec<CacheUse> {
        let (what, budget) = ("lists of blocks in a log", hints.cache);
        let mut all = vec![CacheUse { what, bytes: self.memo().memory(), budget }];
        if let Some(own) = &self.own {
            let bytes = own.writer.lock().unwrap_or_else(PoisonError::into_inner).cached();
            all.push(CacheUse { what: "footprints written", bytes, budget: budget / 2 });
        }
        all.extend(self.view.cached());
        all
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
        let place = |(over, number)| self.places.binary_search(&(over, number));
        let cut = |cut: &facts::Cut| (cut.end, place((cut.over, cut.number)).unwrap_or(0) as u32);
        let orders = match growing {
            // What is being written lies over everything.
            true => {
                part.cuts.iter().map(cut).chain([(u64::MAX, self.places.len() as u32)]).collect()
            }
            false => part.cuts.iter().map(cut).collect(),
        };
        LogSource {
            meta: open(&meta_path(&base.path, session, part.file), session.meta_block),
            data: open(&data_path(&base.path, session, part.file), session.data_block),
            orders,
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
        let (_, told) = base.told_by_root(|| {
            let (number, redefined) =
                self.decide(base, &bytes, gathered.unwrap_or_default(), durable)?;
            let others = self.others.as_ref().map(|others| encode_items(&others.facts()));
            let numbers = Message::from_u64s(&[number, redefined.into()]);
            let tell: Vec<&[u8]> = std::iter::once(&numbers[..]).chain(others.as_deref()).collect();
            Ok(((), joined(&tell)))
        })?;
        let told = parts_of(&told)?;
        let (numbers, others) = told.split_first().ok_or(Error::Garbled)?;
        let numbers = <[u64; 2]>::try_from(Message::from(numbers.clone()).to_u64s());
        let [version, redefined] = numbers.map_err(|_| Error::Garbled)?;
        self.redefined |= redefined > 0;
        if let (None, Some(items)) = (&self.others, others.first()) {
            let items = decode_items(items).map_err(|_| Error::Garbled)?;
            self.others = Some(Manifest::from_facts(version, &items).map_err(|_| Error::Garbled)?);
        }
        base.message.set(None);
        self.replaced = None;
        self.named |= durable;
        (self.version, self.next) = (version, version.saturating_add(1));
        if self.first == 0 {
            self.first = version;
        }
        self.committed = bytes;
        self.durable = durable;
        if let Some(own) = &mut self.own {
            own.committed = lengths;
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

/// The places of all stretches, in order.
fn places<'s>(sessions: impl IntoIterator<Item = &'s Session>) -> Vec<(u64, u64)> {
    let logs = sessions.into_iter().flat_map(|session| &session.logs);
    let cuts = logs.flat_map(|part| &part.cuts);
    let all: BTreeSet<(u64, u64)> = cuts.map(|cut| (cut.over, cut.number)).collect();
    all.into_iter().collect()
}
