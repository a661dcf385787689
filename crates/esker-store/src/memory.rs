//! Files in memory that can lose power.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::{Access, CreateMode, File, FileId, Locking, Result, Store, StoreError};

/// Files in memory, for tests: [`MemoryStore::lose_power`] takes every file back to what its
/// last sync promised and every name to what the last [`Store::sync_names`] did.
#[derive(Debug, Clone, Default)]
pub struct MemoryStore {
    names: Arc<Mutex<Names>>,
}

#[derive(Debug, Default)]
struct Names {
    now: BTreeMap<PathBuf, Arc<Contents>>,
    synced: BTreeMap<PathBuf, Arc<Contents>>,
    /// What has happened to names since they were synced, in order.
    changes: Vec<Change>,
    /// Directories that were made; they survive everything.
    directories: BTreeSet<PathBuf>,
}

/// One change of names, which a disk makes as a whole or not at all.
#[derive(Debug, Clone)]
struct Change {
    gone: Option<PathBuf>,
    there: Option<(PathBuf, Arc<Contents>)>,
}

impl Change {
    /// The name that it is about, the new one of two.
    fn name(&self) -> &Path {
        let there = self.there.as_ref().map(|(name, _)| name);
        there.or(self.gone.as_ref()).map_or(Path::new(""), |name| name)
    }
}

/// What a disk may have written though nobody had synced it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unsynced<'a> {
    /// The creation, renaming or removal that this name comes from.
    Name(&'a Path),
    /// A sector of the file of this name.
    Sector(&'a Path, u64),
}

impl Names {
    fn is_dir(&self, path: &Path) -> bool {
        let above = |name: &PathBuf| name != path && name.starts_with(path);
        self.directories.contains(path) || self.now.keys().any(above)
    }

    /// A directory takes the name of nothing, or of a directory that is empty.
    fn rename_dir(&mut self, from: &Path, to: &Path) -> Result<()> {
        if self.now.keys().any(|name| name.starts_with(to)) {
            return Err(fail(to, "rename", io::ErrorKind::DirectoryNotEmpty));
        }
        let moved = |name: &Path| name.strip_prefix(from).ok().map(|rest| to.join(rest));
        let inside: Vec<PathBuf> =
            self.now.keys().filter(|name| name.starts_with(from)).cloned().collect();
        for name in inside {
            if let (Some(new), Some(contents)) = (moved(&name), self.now.remove(&name)) {
                self.now.insert(new, contents);
            }
        }
        let directories = std::mem::take(&mut self.directories);
        let clean = |name: PathBuf| match moved(&name) {
            // `join` with nothing would end in a slash.
            Some(_) if name == from => to.to_path_buf(),
            Some(new) => new,
            None => name,
        };
        self.directories = directories.into_iter().map(clean).collect();
        Ok(())
    }

    /// Names are what they were when they were synced, and nobody holds a lock any more.
    fn lose(&mut self) {
        self.now = self.synced.clone();
        self.changes.clear();
        self.now.values().for_each(|contents| *lock(&contents.holder) = None);
    }
}

#[derive(Debug, Default)]
struct Contents {
    bytes: Mutex<Bytes>,
    /// The handle that has the lock.
    holder: Mutex<Option<u64>>,
}

#[derive(Debug, Default)]
struct Bytes {
    now: Vec<u8>,
    synced: Vec<u8>,
}

#[derive(Debug)]
struct MemoryFile {
    path: PathBuf,
    contents: Arc<Contents>,
    access: Access,
    /// The number of this handle.
    handle: u64,
}

impl MemoryFile {
    fn open(path: &Path, contents: Arc<Contents>, access: Access) -> Arc<dyn File> {
        static HANDLES: AtomicU64 = AtomicU64::new(0);
        let handle = HANDLES.fetch_add(1, Ordering::Relaxed);
        Arc::new(MemoryFile { path: path.to_path_buf(), contents, access, handle })
    }
}

impl Drop for MemoryFile {
    fn drop(&mut self) {
        lock(&self.contents.holder).take_if(|holder| *holder == self.handle);
    }
}

// A test that panics while it holds a lock has failed already; the bytes are still bytes.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn fail(path: &Path, action: &str, kind: io::ErrorKind) -> StoreError {
    StoreError::new(path, action, kind.into())
}

impl MemoryStore {
    /// Everything that was not synced is gone.
    pub fn lose_power(&self) {
        self.lose_power_but(|_| false);
    }

    /// Everything that was not synced is gone, but for the contents of the files that `lucky`
    /// picks: they had reached the disk, though nobody had promised it.
    pub fn lose_power_but(&self, lucky: impl Fn(&Path) -> bool) {
        let mut names = lock(&self.names);
        names.lose();
        for (_, contents) in names.now.iter().filter(|(name, _)| !lucky(name)) {
            let mut bytes = lock(&contents.bytes);
            bytes.now = bytes.synced.clone();
        }
    }

    /// What was not synced is gone but for some sectors, whichever the disk has written: `keeps` is asked for each
    /// that differs, with the name of its file and its number.
    pub fn lose_power_but_sectors(&self, sector: u64, mut keeps: impl FnMut(&Path, u64) -> bool) {
        let size = usize::try_from(sector).unwrap_or(usize::MAX).max(1);
        let mut names = lock(&self.names);
        names.lose();
        for (name, contents) in &names.now {
            let mut bytes = lock(&contents.bytes);
            let mut left = bytes.synced.clone();
            for (number, now) in bytes.now.chunks(size).enumerate() {
                let (start, end) = (number * size, number * size + now.len());
                let same = left.get(start..end) == Some(now);
                if same || !keeps(name, number as u64) {
                    continue;
                }
                left.resize(left.len().max(end), 0);
                left[start..end].copy_from_slice(now);
            }
            bytes.synced.clone_from(&left);
            bytes.now = left;
        }
    }

    /// What was not synced is gone but for what the disk has written, in whichever order: `keeps` is
    /// asked for each change of names since they were synced, and then for each sector that differs.
    pub fn lose_power_in_any_order(
        &self,
        sector: u64,
        mut keeps: impl FnMut(Unsynced<'_>) -> bool,
    ) {
        {
            let mut names = lock(&self.names);
            let mut left = names.synced.clone();
            for change in std::mem::take(&mut names.changes) {
                if !keeps(Unsynced::Name(change.name())) {
                    continue;
                }
                if let Some(gone) = &change.gone {
                    left.remove(gone);
                }
                left.extend(change.there);
            }
            names.synced = left;
        }
        self.lose_power_but_sectors(sector, |path, number| keeps(Unsynced::Sector(path, number)));
    }

    /// A copy that shares nothing with this one, to let the same power be lost in several ways.
    pub fn fork(&self) -> MemoryStore {
        let names = lock(&self.names);
        let mut copies: BTreeMap<*const Contents, Arc<Contents>> = BTreeMap::new();
        let mut copy = |contents: &Arc<Contents>| {
            let new = copies.entry(Arc::as_ptr(contents)).or_insert_with(|| {
                let bytes = lock(&contents.bytes);
                let bytes = Bytes { now: bytes.now.clone(), synced: bytes.synced.clone() };
                Arc::new(Contents { bytes: Mutex::new(bytes), holder: Mutex::default() })
            });
            new.clone()
        };
        let mut map = |all: &BTreeMap<PathBuf, Arc<Contents>>| {
            all.iter().map(|(name, contents)| (name.clone(), copy(contents))).collect()
        };
        let (now, synced) = (map(&names.now), map(&names.synced));
        let changes = names.changes.iter().map(|change| Change {
            gone: change.gone.clone(),
            there: change.there.as_ref().map(|(name, contents)| (name.clone(), copy(contents))),
        });
        let changes = changes.collect();
        let directories = names.directories.clone();
        let names = Names { now, synced, changes, directories };
        MemoryStore { names: Arc::new(Mutex::new(names)) }
    }

    /// The names of all files.
    pub fn list(&self) -> Vec<PathBuf> {
        lock(&self.names).now.keys().cloned().collect()
    }

    /// A file's bytes, if it exists.
    pub fn bytes(&self, path: &Path) -> Option<Vec<u8>> {
        let names = lock(&self.names);
        names.now.get(path).map(|contents| lock(&contents.bytes).now.clone())
    }
}

impl Store for MemoryStore {
    fn open(&self, path: &Path, access: Access) -> Result<Arc<dyn File>> {
        let names = lock(&self.names);
        let contents = names.now.get(path).cloned();
        let contents = contents.ok_or_else(|| fail(path, "open", io::ErrorKind::NotFound))?;
        Ok(MemoryFile::open(path, contents, access))
    }

    fn create(&self, path: &Path, mode: CreateMode) -> Result<Arc<dyn File>> {
        let mut names = lock(&self.names);
        let contents = match names.now.get(path) {
            Some(_) if mode == CreateMode::New => {
                return Err(fail(path, "create", io::ErrorKind::AlreadyExists));
            }
            Some(contents) => {
                lock(&contents.bytes).now.clear();
                contents.clone()
            }
            None => {
                let contents = Arc::new(Contents::default());
                names.now.insert(path.to_path_buf(), contents.clone());
                let there = Some((path.to_path_buf(), contents.clone()));
                names.changes.push(Change { gone: None, there });
                contents
            }
        };
        Ok(MemoryFile::open(path, contents, Access::ReadWrite))
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        let mut names = lock(&self.names);
        if names.is_dir(from) {
            return names.rename_dir(from, to);
        }
        let contents = names.now.remove(from);
        let contents = contents.ok_or_else(|| fail(from, "rename", io::ErrorKind::NotFound))?;
        names.now.insert(to.to_path_buf(), contents.clone());
        let gone = Some(from.to_path_buf());
        names.changes.push(Change { gone, there: Some((to.to_path_buf(), contents)) });
        Ok(())
    }

    fn publish(&self, from: &Path, to: &Path) -> Result<()> {
        let mut names = lock(&self.names);
        if names.now.contains_key(to) {
            return Err(fail(to, "rename", io::ErrorKind::AlreadyExists));
        }
        let contents = names.now.remove(from);
        let contents = contents.ok_or_else(|| fail(from, "rename", io::ErrorKind::NotFound))?;
        names.now.insert(to.to_path_buf(), contents.clone());
        let gone = Some(from.to_path_buf());
        names.changes.push(Change { gone, there: Some((to.to_path_buf(), contents)) });
        Ok(())
    }

    fn create_dir(&self, path: &Path) -> Result<()> {
        lock(&self.names).directories.insert(path.to_path_buf());
        Ok(())
    }

    fn is_dir(&self, path: &Path) -> Result<bool> {
        Ok(lock(&self.names).is_dir(path))
    }

    fn names_in(&self, directory: &Path) -> Result<Vec<String>> {
        let names = lock(&self.names);
        let directory = if directory == Path::new(".") { Path::new("") } else { directory };
        let here = names.now.keys().chain(&names.directories);
        let here = here.filter(|name| name.parent() == Some(directory));
        let text = here.filter_map(|name| Some(name.file_name()?.to_str()?.to_string()));
        Ok(text.collect::<BTreeSet<_>>().into_iter().collect())
    }

    fn remove_dir(&self, path: &Path) -> Result<()> {
        let mut names = lock(&self.names);
        if names.now.keys().any(|name| name.starts_with(path)) {
            return Err(fail(path, "remove", io::ErrorKind::DirectoryNotEmpty));
        }
        match names.directories.remove(path) {
            true => Ok(()),
            false => Err(fail(path, "remove", io::ErrorKind::NotFound)),
        }
    }

    fn remove(&self, path: &Path) -> Result<()> {
        let mut names = lock(&self.names);
        let removed = names.now.remove(path);
        if removed.is_some() {
            names.changes.push(Change { gone: Some(path.to_path_buf()), there: None });
        }
        removed.map(drop).ok_or_else(|| fail(path, "remove", io::ErrorKind::NotFound))
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        Ok(lock(&self.names).now.contains_key(path))
    }

    fn resolve(&self, path: &Path) -> Result<PathBuf> {
        Ok(path.to_path_buf())
    }

    fn sync_names(&self, path: &Path) -> Result<()> {
        let mut names = lock(&self.names);
        let directory = path.parent();
        let Names { now, synced, changes, .. } = &mut *names;
        changes.retain(|change| change.name().parent() != directory);
        synced.retain(|name, _| name.parent() != directory);
        let here = now.iter().filter(|(name, _)| name.parent() == directory);
        synced.extend(here.map(|(name, contents)| (name.clone(), contents.clone())));
        Ok(())
    }

    /// There are no links.
    fn enclosed(&self, _: &Path) -> Result<Arc<dyn Store>> {
        Ok(Arc::new(self.clone()))
    }

    fn id_of(&self, path: &Path) -> Result<Option<FileId>> {
        Ok(lock(&self.names).now.get(path).map(id))
    }
}

/// Contents that are held stay where they are in memory.
fn id(contents: &Arc<Contents>) -> FileId {
    FileId { device: 0, number: Arc::as_ptr(contents) as u64 }
}

impl MemoryFile {
    fn writable(&self, action: &str) -> Result<MutexGuard<'_, Bytes>> {
        match self.access {
            Access::ReadWrite => Ok(lock(&self.contents.bytes)),
            Access::Read => Err(fail(&self.path, action, io::ErrorKind::PermissionDenied)),
        }
    }
}

impl File for MemoryFile {
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        let bytes = lock(&self.contents.bytes);
        let start = usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.now.len());
        let found = &bytes.now[start..];
        let n = found.len().min(buf.len());
        buf[..n].copy_from_slice(&found[..n]);
        Ok(n)
    }

    fn write_at(&self, offset: u64, new: &[u8]) -> Result<()> {
        let mut bytes = self.writable("write")?;
        let too_large = || fail(&self.path, "write", io::ErrorKind::FileTooLarge);
        let start = usize::try_from(offset).map_err(|_| too_large())?;
        let end = start.checked_add(new.len()).ok_or_else(too_large)?;
        if bytes.now.len() < end && !new.is_empty() {
            bytes.now.resize(end, 0);
        }
        if !new.is_empty() {
            bytes.now[start..end].copy_from_slice(new);
        }
        Ok(())
    }

    fn len(&self) -> Result<u64> {
        Ok(lock(&self.contents.bytes).now.len() as u64)
    }

    fn set_len(&self, len: u64) -> Result<()> {
        let mut bytes = self.writable("setting the length")?;
        let too_large = |_| fail(&self.path, "setting the length", io::ErrorKind::FileTooLarge);
        bytes.now.resize(usize::try_from(len).map_err(too_large)?, 0);
        Ok(())
    }

    fn sync(&self) -> Result<()> {
        let mut bytes = lock(&self.contents.bytes);
        bytes.synced = bytes.now.clone();
        Ok(())
    }

    fn try_lock(&self) -> Result<Locking> {
        let mut holder = lock(&self.contents.holder);
        match *holder.get_or_insert(self.handle) == self.handle {
            true => Ok(Locking::Taken),
            false => Ok(Locking::Busy),
        }
    }

    fn unlock(&self) -> Result<()> {
        lock(&self.contents.holder).take_if(|holder| *holder == self.handle);
        Ok(())
    }

    fn id(&self) -> Result<Option<FileId>> {
        Ok(Some(id(&self.contents)))
    }
}
