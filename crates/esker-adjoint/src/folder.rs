//! The disk tier: a folder with a segment for each checkpoint and rank, and a journal for each rank.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use esker_format::log::Head;
use esker_store::{Access, CreateMode, Draft, DraftName, File, Locked, Store, StoreError};
use esker_text::shown;

use crate::about::{About, WHAT};
use crate::error::{AdjointError, Result};
use crate::journal::{self, Event, Record, Survivors};
use crate::names::{MARK, Name, journal_path, segment_path};
use crate::segment::Kind;

/// No mark is longer: a state has a few arrays.
const LONGEST_MARK: u64 = 16 << 20;

/// Reads a whole file, into this buffer if it is long enough. One that is longer than `most` or than memory is an error, not a lack of
/// memory.
fn read_all(file: &dyn File, path: &Path, most: u64, mut bytes: Vec<u8>) -> Result<Vec<u8>> {
    let len = file.len()?;
    let failed = |error| AdjointError::from(StoreError::new(path, "read", error));
    if len > most {
        let why = format!("it has {len} bytes, more than the {most} that it can have");
        return Err(failed(io::Error::new(io::ErrorKind::InvalidData, why)));
    }
    let fits = usize::try_from(len).is_ok_and(|len| len <= bytes.capacity());
    if !fits {
        bytes = Vec::new();
    }
    let missing = len.saturating_sub(bytes.len() as u64);
    let reserved = usize::try_from(missing).ok().map(|more| bytes.try_reserve_exact(more));
    let (Some(Ok(())), Ok(len)) = (reserved, usize::try_from(len)) else {
        let why = format!("there is no memory for its {len} bytes");
        return Err(failed(io::Error::new(io::ErrorKind::OutOfMemory, why)));
    };
    bytes.resize(len, 0);
    let found = file.read_at(0, &mut bytes)?;
    bytes.truncate(found);
    Ok(bytes)
}

/// A rank's part of a folder.
#[derive(Debug)]
pub(crate) struct Folder {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) path: PathBuf,
    pub(crate) identity: u64,
    pub(crate) rank: u32,
    journal: Arc<dyn File>,
    at: u64,
    pub(crate) next: u64,
    /// Held for as long as the run lasts, where the store has locks: two who write would destroy each other's work.
    _lock: Option<Locked>,
}

/// The lock of a rank's journal, or a refusal.
fn lock(journal: &Arc<dyn File>, path: &Path) -> Result<Option<Locked>> {
    let taken = Locked::take(journal)?;
    taken.map_err(|_| refused(path, "another program has it open: the run has not ended"))
}

/// The journal's head, which says whose it is.
fn head(identity: u64, rank: u32, ranks: u32) -> Vec<u8> {
    Head { identity, rank, ranks, text: WHAT.into() }.encode()
}

/// A draft that somebody has left, or that grows: no run, and nothing to keep a run from beginning.
fn is_passing(name: &str) -> bool {
    DraftName::parse(name).is_some_and(|draft| draft.is_for(MARK.as_ref()))
}

fn refused(path: &Path, why: impl Into<String>) -> AdjointError {
    AdjointError::Folder { path: path.into(), why: why.into() }
}

impl Folder {
    /// Makes the folder, once, by rank 0. An older run's is refused, unless it is done; what others have put there stays.
    pub(crate) fn prepare(store: &Arc<dyn Store>, path: &Path, about: &About) -> Result<()> {
        if store.is_dir(path)? {
            let inside = store.enclosed(path)?;
            let names = inside.names_in(path)?;
            if names.iter().any(|name| name == MARK) {
                let (old, found) = Folder::survey(store, path)?;
                let done = found.values().filter(|rank| rank.end_reverse).count();
                if (done as u64) < u64::from(old.ranks) {
                    let why = format!(
                        "it holds a run of {} steps that is not done: resume it, or remove the folder",
                        old.steps
                    );
                    return Err(refused(path, why));
                }
            } else if let Some(name) = names.iter().find(|name| !is_passing(name)) {
                let why = format!("it is there and holds something else ({})", shown(name));
                return Err(refused(path, why));
            }
            // The mark goes first: without it, nothing here is a run.
            let ours = names.iter().filter(|name| *name != MARK && Name::parse(name).is_some());
            for name in names.iter().filter(|name| *name == MARK).chain(ours) {
                inside.remove(&path.join(name))?;
            }
        } else {
            store.create_dir(path)?;
        }
        // It grows as a draft, which somebody who is killed leaves, and the next run takes away.
        let mark = path.join(MARK);
        let draft = Draft::whole(&store.enclosed(path)?, &mark)?;
        if let Some(file) = draft.file() {
            file.write_at(0, &about.encode())?;
            file.sync()?;
        }
        draft.take_name()?;
        store.enclosed(path)?.sync_names(&mark)?;
        Ok(())
    }

    /// Begins a rank's journal.
    pub(crate) fn create(
        store: &Arc<dyn Store>,
        path: &Path,
        about: &About,
        rank: u32,
    ) -> Result<Folder> {
        let store = store.enclosed(path)?;
        let file = journal_path(path, rank);
        // Emptied when it is known to be nobody's.
        let journal = match store.exists(&file)? {
            true => store.open(&file, Access::ReadWrite)?,
            false => store.create(&file, CreateMode::New)?,
        };
        let lock = lock(&journal, &file)?;
        journal.set_len(0)?;
        let head = head(about.identity, rank, about.ranks);
        journal.write_at(0, &head)?;
        let (identity, at) = (about.identity, head.len() as u64);
        Ok(Folder { store, path: path.into(), identity, rank, journal, at, next: 0, _lock: lock })
    }

    /// Opens a rank's journal to go on; what its torn tail said is overwritten.
    pub(crate) fn open(
        outside: &Arc<dyn Store>,
        path: &Path,
        about: &About,
        rank: u32,
    ) -> Result<(Folder, Survivors)> {
        let (file, store) = (journal_path(path, rank), outside.enclosed(path)?);
        if !store.exists(&file)? {
            // It was killed before it began.
            return Ok((Folder::create(outside, path, about, rank)?, Survivors::default()));
        }
        let journal = store.open(&file, Access::ReadWrite)?;
        let lock = lock(&journal, &file)?;
        let found = survivors(&*journal, &file, about, rank)?;
        let Some(found) = found else {
            drop(lock);
            return Ok((Folder::create(outside, path, about, rank)?, Survivors::default()));
        };
        journal.set_len(found.length)?;
        let (identity, at, next) = (about.identity, found.length, found.next);
        Ok((
            Folder { store, path: path.into(), identity, rank, journal, at, next, _lock: lock },
            found,
        ))
    }

    /// What a folder is, and what the journals that are there say.
    pub(crate) fn survey(
        store: &Arc<dyn Store>,
        path: &Path,
    ) -> Result<(About, BTreeMap<u32, Survivors>)> {
        let about = Folder::about(store, path)?;
        let inside = store.enclosed(path)?;
        let mut found = BTreeMap::new();
        for name in inside.names_in(path)? {
            let Some(Name::Journal { rank }) = Name::parse(&name) else { continue };
            if rank < about.ranks {
                let file = path.join(&name);
                let journal = inside.open(&file, Access::Read)?;
                let said = survivors(&*journal, &file, &about, rank)?;
                found.insert(rank, said.unwrap_or_default());
            }
        }
        Ok((about, found))
    }

    /// What a folder is.
    pub(crate) fn about(store: &Arc<dyn Store>, path: &Path) -> Result<About> {
        let mark = path.join(MARK);
        if !store.is_dir(path)? || !store.exists(&mark)? {
            return Err(refused(path, format!("it is no folder of {WHAT}: there is no {MARK}")));
        }
        let file = store.enclosed(path)?.open(&mark, Access::Read)?;
        let bytes = read_all(&*file, &mark, LONGEST_MARK, Vec::new())?;
        About::decode(&bytes).map_err(|why| refused(path, why))
    }

    pub(crate) fn log(&mut self, event: Event) -> Result<()> {
        let bytes = event.encode();
        self.journal.write_at(self.at, &bytes)?;
        self.at += bytes.len() as u64;
        Ok(())
    }

    /// A number for a new segment.
    pub(crate) fn number(&mut self) -> u64 {
        self.next += 1;
        self.next - 1
    }

    /// Gives a segment up: first the journal, then the file.
    pub(crate) fn drop_segment(&mut self, number: u64) -> Result<()> {
        self.log(Event::Dropped { number })?;
        let path = segment_path(&self.path, self.rank, number);
        match self.store.exists(&path)? {
            true => Ok(self.store.remove(&path)?),
            false => Ok(()),
        }
    }

    /// Removes segments of this rank that the journal does not know: they were being written when the run ended.
    pub(crate) fn sweep(&self, known: &[Record]) -> Result<()> {
        for name in self.store.names_in(&self.path)? {
            let Some(Name::Segment { number, rank }) = Name::parse(&name) else { continue };
            if rank == self.rank && known.iter().all(|record| record.number != number) {
                self.store.remove(&self.path.join(&name))?;
            }
        }
        Ok(())
    }

    pub(crate) fn sync(&self) -> Result<()> {
        Ok(self.journal.sync()?)
    }
}

fn survivors(file: &dyn File, path: &Path, about: &About, rank: u32) -> Result<Option<Survivors>> {
    let bytes = read_all(file, path, u64::MAX, Vec::new())?;
    let Some((head, len)) = Head::decode(&bytes) else {
        // A head that was never whole has nothing behind it.
        return if bytes.len() < 64 {
            Ok(None)
        } else {
            Err(refused(path, "the head of the journal is damaged"))
        };
    };
    if (head.identity, head.rank, head.ranks) != (about.identity, rank, about.ranks) {
        return Err(refused(path, "the journal is of another run"));
    }
    Ok(Some(journal::read(&bytes[len..], len as u64)))
}

/// Writes a segment: whole or an error.
pub(crate) fn write_segment(
    store: &dyn Store,
    path: &Path,
    bytes: &[u8],
    sync: bool,
) -> Result<()> {
    let file = store.create(path, CreateMode::New)?;
    let written = file.write_at(0, bytes).and_then(|()| if sync { file.sync() } else { Ok(()) });
    if written.is_err() {
        // What a full disk took of it is in the way of others.
        let _ = store.remove(path);
    }
    Ok(written?)
}

/// Reads a segment of which the journal says how long it is, into this buffer if it is long enough.
pub(crate) fn read_segment(
    store: &dyn Store,
    path: &Path,
    bytes: u64,
    buffer: Vec<u8>,
) -> Result<Vec<u8>> {
    let file = store.open(path, Access::Read)?;
    let found = file.len()?;
    if found != bytes {
        let why = format!("it has {found} bytes of {bytes}");
        let error = io::Error::new(io::ErrorKind::InvalidData, why);
        return Err(StoreError::new(path, "read", error).into());
    }
    read_all(&*file, path, bytes, buffer)
}

/// Records of a kind.
pub(crate) fn of_kind(found: &Survivors, kind: Kind) -> Vec<Record> {
    found.kept.iter().filter(|record| record.kind == kind).copied().collect()
}
