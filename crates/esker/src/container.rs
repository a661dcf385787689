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
mod blocks;
mod changes;
mod chunks;
mod collecting;
mod deciding;
mod distributed;
mod edition;
mod expiring;
mod layout;
mod listing;
mod mark;
mod messages;
mod named;
mod names;
mod needing;
mod noting;
mod numbered;
mod promises;
mod rebase;
mod sections;
mod seeing;
mod tags;
mod versions;
mod waiting;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use esker_comm::{CommunicatorExt, Message};
use esker_format::log::{Head, LogPart, Session};
use esker_format::{Header, NumRecs, Variable, inside};
use esker_store::{Access, File, Lane, ReadPool, Store};

use crate::base::{Base, broadcast_parts, identity, joined, parts_of};
use crate::bounded::CacheUse;
use crate::error::{Error, Result};
use crate::held::Committed;
use crate::hints::{Hints, LogFiles};
use crate::log::{FILTERS, Index, Lengths, LogDamage, LogWriter, Memo, View};
use crate::report::Report;
use chunks::Gridded;
use deciding::Deciding;
use distributed::Share;
use names::MARK;
use numbered::Decided;
use seeing::Seen;

pub(crate) use aborting::noted;
pub use blocks::Block;
pub use changes::Changes;
pub use collecting::{Collection, GcOptions, LeftLogs, gc};
pub(crate) use edition::Edition;
pub use expiring::{Expired, expire};
pub use listing::{VersionFacts, VersionState, versions};
pub(crate) use mark::{Format, Mark};
pub(crate) use messages::say;
pub use named::version_in_path;
pub(crate) use names::{data_path, meta_path, own_names};
pub use numbered::{NumberState, number_state, skip};
pub(crate) use promises::{Promises, Trust};
pub(crate) use tags::tags_in;
pub use tags::{Tag, tag, tags, version_named};
pub(crate) use versions::{
    Found, Glance, Read, Shelf, Telling, find, history, is_of_history, new_writer, now,
    promise_again, publish, read_all,
};
pub(crate) use waiting::next_version;

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
    /// What was committed and is read: that version, or the one that it was opened with, if only this one has committed since.
    edition: Option<Arc<Edition>>,
    /// Bytes of payload and metadata in the logs of the version that it was opened with.
    bytes: (u64, u64),
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
    /// The variables that are cut into chunks, if any are.
    gridded: Option<Arc<Gridded>>,
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
    /// Whether the last commit went behind those of other writers, which are not taken in yet; and how many records there are then.
    others: Option<u64>,
    /// Whether others have changed definitions since this was opened.
    redefined: bool,
    /// What became of the transaction that it is.
    outcome: Option<Committed>,
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
    /// Whether others have committed between its commits.
    met: bool,
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
        let mut container = Container::new(base, header, version, None);
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
            let Found { version, next, first, safe, bytes: (data, metadata), .. } = found;
            let is_old = found.edition.format() == Format::One;
            let numbers = [version, next, first, safe, data, metadata, is_old.into()];
            let (notes, numbers) = (found.notes.join("\n"), Message::from_u64s(&numbers));
            let tell = joined(&[&found.header[..], &numbers[..], notes.as_bytes()]);
            Ok((found, tell))
        })?;
        let [bytes, numbers, notes] =
            <[Vec<u8>; 3]>::try_from(parts_of(&told)?).map_err(|_| Error::Garbled)?;
        let numbers = <[u64; 7]>::try_from(Message::from(numbers).to_u64s());
        let [version, next, first, safe, data, metadata, is_old] =
            numbers.map_err(|_| Error::Garbled)?;
        let notes = String::from_utf8(notes).map_err(|_| Error::Garbled)?;
        let decoded = Header::decode(&bytes, u64::MAX);
        let header = decoded.map_err(|source| Error::Decode { path: base.path.clone(), source })?;
        // The view counts on variables that do not overlap.
        crate::sound::require(&base.path, &header)?;
        let edition = match root {
            Some(found) => found.edition,
            None => {
                let format = if is_old > 0 { Format::One } else { Format::Two };
                Edition::new(&store, &base.path, version, format)
            }
        };
        let mut container = Container::new(base, &header, version, Some(Arc::new(edition)));
        container.committed = bytes;
        [container.next, container.first, container.safe] = [next, first, safe];
        container.bytes = (data, metadata);
        container.notes = notes.lines().map(str::to_string).collect();
        container.enclose(store);
        Ok((container, header))
    }

    /// From here on nothing is opened but what is in the container's own directory.
    fn enclose(&mut self, store: Arc<dyn Store>) {
        self.pool = ReadPool::new(store.clone(), OPEN_FILES);
        self.store = store;
        self.enclosed = true;
    }

    fn new(base: &Base, header: &Header, version: u64, edition: Option<Arc<Edition>>) -> Container {
        let index = Index::new(base.hints.index_memory as usize);
        let view = View::new(base.path.clone(), None, index, header.clone());
        let view = Arc::new(view.comparing(base.hints.checksums.of_stored()));
        let pool = ReadPool::new(base.store.clone(), OPEN_FILES);
        Container {
            version,
            edition,
            bytes: (0, 0),
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
            gridded: Gridded::of(&header.schema),
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
            outcome: None,
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
            edition: self.edition.clone(),
            bytes: self.bytes,
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
            gridded: self.gridded.clone(),
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
            outcome: None,
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
        if base.held.is_none() {
            self.commit(base, header, false, report)?;
            self.take_in_others(base)?;
        }
        self.view.change().set_header(header.clone());
        self.gridded = Gridded::of(&header.schema);
        Ok(())
    }

    /// Fails if values that were written through filters could not be read any more. Collective.
    fn require_filters(&self, base: &Base, header: &Header) -> Result<()> {
        let before = match base.held {
            // What this transaction has defined itself, it may have written.
            Some(_) => self.view.state().header().clone(),
            None => match Header::decode(&self.committed, u64::MAX) {
                Ok(before) => before,
                Err(_) => return Ok(()),
            },
        };
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
        let known = |header: &Header| match header.numrecs {
            NumRecs::Count(records) => records,
            NumRecs::Streaming => 0,
        };
        let records = known(&before).max(known(header));
        let wanted = || changed.iter().map(|(number, _)| (*number, 0..records.max(1))).collect();
        let allowed = self.see(base, records, Some(&wanted)).and_then(|()| {
            let state = self.view.state();
            for (number, variable) in &changed {
                if state.index.has_entries(*number)? {
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
        // A session and who commits it have one number, by which both can be given up.
        let writer = self.deciding.as_ref().map(Deciding::writer);
        let named = base.by_root(|| Ok((self.next, writer.unwrap_or_else(identity))))?;
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
        let made: Result<()> = match lane {
            0 => paths.iter().try_for_each(|path| {
                // Who may read the mark may read all.
                self.store.create_like(path, &base.path.join(MARK))?;
                Ok(())
            }),
            _ => Ok(()),
        };
        base.agree(made.and_then(|()| self.note_begun(base, &session)))?;
        let started = self.open_logs(base, &session, &paths);
        let writer = base.agree(started)?;
        let committed = writer.lengths();
        let together = Lengths::default();
        self.own =
            Some(Own { session, writer: Mutex::new(writer), committed, together, met: false });
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
        let writer = LogWriter::new(meta, data, head.len() as u64, base.hints.cache / 2);
        Ok(writer.with_checksums(base.hints.checksums.of_stored()).in_sections())
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
        let durable = base.held.as_ref().map_or(durable, |held| held.durable);
        let chosen = base.held.as_ref().is_some_and(|held| held.number.is_some());
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
        let is_new = wrote || bytes != self.committed || (durable && !self.durable);
        // Others may wait for a number.
        if !base.comm.any(is_new || chosen)? {
            self.is_committed(base, None);
            return Ok(());
        }
        let sections = match &mut self.own {
            Some(own) => {
                let writer = own.writer.get_mut().unwrap_or_else(PoisonError::into_inner);
                writer.finish_sections()
            }
            None => &[],
        };
        let (mine, count) = (deciding::grown(lengths, sections), sections.len());
        let gathered = base.comm.gather(0, mine)?;
        let (_, told) = base.told_by_root(|| {
            let Decided { number, redefined, prepared } =
                self.decide(base, &bytes, gathered.unwrap_or_default(), durable)?;
            let (met, records) = (self.others.is_some(), self.others.unwrap_or(0));
            let numbers = [number, redefined.into(), met.into(), records, prepared.unwrap_or(0)];
            Ok(((), Message::from_u64s(&numbers).to_vec()))
        })?;
        let numbers = <[u64; 5]>::try_from(Message::from(told).to_u64s());
        let [version, redefined, met, records, prepared] = numbers.map_err(|_| Error::Garbled)?;
        if prepared > 0 {
            self.is_committed(base, Some(prepared));
            return Ok(());
        }
        self.redefined |= redefined > 0;
        self.others = (met > 0).then_some(records);
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
            let writer = own.writer.get_mut().unwrap_or_else(PoisonError::into_inner);
            writer.committed(count);
        }
        self.is_committed(base, None);
        Ok(())
    }

    /// Brings what was written into the files, safe from a loss of power, without a version. Collective.
    pub(crate) fn write_out(&mut self, base: &Base, report: &mut Report) -> Result<()> {
        let written = match self.writer() {
            Some(writer) => writer.sync(report),
            None => Ok(()),
        };
        self.epoch += 1;
        base.agree(written)?;
        self.together += 1;
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
