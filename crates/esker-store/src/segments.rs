//! Objects that are never changed: what a container consists of.
//!
//! A *segment* is appended to by one writer; what was synced of it is never written again. An *object* is published whole under a
//! key that nobody has. Nothing here needs a positioned write, a rename over something, or a lock, so that a store of
//! objects can be behind it.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::io::{Error as IoError, ErrorKind};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::{Access, File, Result, Store, StoreError, random};

/// What became of a publication.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Published {
    /// The key is ours.
    Created,
    /// Somebody has it, perhaps ourselves: from a call whose answer was lost.
    Taken,
}

/// A place for segments and objects, by names like `refs/main/00000007`: words and slashes.
///
/// After an error a call may have been carried out all the same, even later. What is appended or published is seen by everybody at once; it survives a loss
/// of power if it was `durable`. A list may lack what is new, and have what is gone.
pub trait Segments: Send + Sync + Debug {
    /// Begins a segment, which must be new.
    fn create(&self, name: &str) -> Result<Box<dyn Segment>>;

    /// These bytes of a segment or an object, fewer at its end; `None` if there is none of this name.
    fn read(&self, name: &str, range: Range<u64>) -> Result<Option<Vec<u8>>>;

    /// How long it is; `None` if there is none of this name.
    fn len(&self, name: &str) -> Result<Option<u64>>;

    /// Publishes an object, whole, unless the key is taken: of several who want it, one gets it.
    fn publish(&self, key: &str, bytes: &[u8], durable: bool) -> Result<Published>;

    /// Waits until an object or a segment, all of it, is safe from a loss of power.
    fn sync(&self, name: &str) -> Result<()>;

    /// The names that begin with `folder` and a slash, without these, sorted.
    fn list(&self, folder: &str) -> Result<Vec<String>>;

    /// Removes a segment or an object; one that is not there is no error.
    fn remove(&self, name: &str) -> Result<()>;
}

/// A segment that is being written.
pub trait Segment: Send + Debug {
    /// Appends a part.
    fn append(&mut self, part: &[u8]) -> Result<()>;

    /// Waits until all parts are safe from a loss of power.
    fn sync(&mut self) -> Result<()>;
}

/// Segments in a directory of a store.
#[derive(Debug, Clone)]
pub struct FolderSegments {
    store: Arc<dyn Store>,
    root: PathBuf,
    /// The file whose permissions all others get.
    like: PathBuf,
}

impl FolderSegments {
    /// Those in `root`, which must be there, with the permissions of `like`.
    pub fn new(store: Arc<dyn Store>, root: &Path, like: &Path) -> FolderSegments {
        FolderSegments { store, root: root.to_path_buf(), like: like.to_path_buf() }
    }

    fn path(&self, name: &str) -> Result<PathBuf> {
        let plain =
            |part: &str| !part.is_empty() && part != "." && part != ".." && !part.contains('\\');
        match name.split('/').all(plain) {
            true => Ok(self.root.join(name)),
            false => Err(StoreError::new(
                &self.root,
                "looking for a name",
                ErrorKind::InvalidInput.into(),
            )),
        }
    }

    /// Creates a file, with the folders that it is in.
    fn new_file(&self, path: &Path) -> Result<Arc<dyn File>> {
        match self.store.create_like(path, &self.like) {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            made => return made,
        }
        let mut missing: Vec<&Path> =
            path.ancestors().skip(1).take_while(|p| *p != self.root).collect();
        missing.reverse();
        for folder in missing {
            self.store.create_dir(folder)?;
            // Whoever finds it later counts on it.
            self.store.sync_names(folder)?;
        }
        self.store.create_like(path, &self.like)
    }
}

impl Segments for FolderSegments {
    fn create(&self, name: &str) -> Result<Box<dyn Segment>> {
        let path = self.path(name)?;
        let file = self.new_file(&path)?;
        Ok(Box::new(FolderSegment { store: self.store.clone(), path, file, len: 0, named: false }))
    }

    fn read(&self, name: &str, range: Range<u64>) -> Result<Option<Vec<u8>>> {
        let file = match self.store.open(&self.path(name)?, Access::Read) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            opened => opened?,
        };
        let end = range.end.min(file.len()?);
        let mut bytes = vec![0; end.saturating_sub(range.start) as usize];
        let n = file.read_at(range.start, &mut bytes)?;
        bytes.truncate(n);
        Ok(Some(bytes))
    }

    fn len(&self, name: &str) -> Result<Option<u64>> {
        match self.store.open(&self.path(name)?, Access::Read) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            opened => opened?.len().map(Some),
        }
    }

    fn publish(&self, key: &str, bytes: &[u8], durable: bool) -> Result<Published> {
        let path = self.path(key)?;
        let draft = path.with_file_name(format!("draft-{:016x}", random()));
        let file = self.new_file(&draft)?;
        let written = file.write_at(0, bytes).and_then(|()| match durable {
            true => file.sync(),
            false => Ok(()),
        });
        // Closed before it has its name: on file systems that promise no more, others see what was written then.
        drop(file);
        match written.and_then(|()| self.store.publish(&draft, &path)) {
            Ok(()) => {}
            Err(error) => {
                let _ = self.store.remove(&draft);
                return match error.kind() {
                    ErrorKind::AlreadyExists => Ok(Published::Taken),
                    _ => Err(error),
                };
            }
        }
        if durable {
            self.store.sync_names(&path)?;
        }
        Ok(Published::Created)
    }

    fn sync(&self, name: &str) -> Result<()> {
        let path = self.path(name)?;
        self.store.open(&path, Access::ReadWrite)?.sync()?;
        self.store.sync_names(&path)
    }

    fn list(&self, folder: &str) -> Result<Vec<String>> {
        let path = self.path(folder)?;
        match self.store.is_dir(&path)? {
            true => self.store.names_in(&path),
            false => Ok(Vec::new()),
        }
    }

    fn remove(&self, name: &str) -> Result<()> {
        match self.store.remove(&self.path(name)?) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            other => other,
        }
    }
}

#[derive(Debug)]
struct FolderSegment {
    store: Arc<dyn Store>,
    path: PathBuf,
    file: Arc<dyn File>,
    len: u64,
    /// Whether its name is safe.
    named: bool,
}

impl Segment for FolderSegment {
    fn append(&mut self, part: &[u8]) -> Result<()> {
        self.file.write_at(self.len, part)?;
        self.len += part.len() as u64;
        Ok(())
    }

    fn sync(&mut self) -> Result<()> {
        self.file.sync()?;
        if !self.named {
            self.store.sync_names(&self.path)?;
            self.named = true;
        }
        Ok(())
    }
}

/// Segments in memory.
#[derive(Debug, Clone, Default)]
pub struct MemorySegments {
    all: Arc<Mutex<BTreeMap<String, Vec<u8>>>>,
}

impl MemorySegments {
    fn all(&self) -> MutexGuard<'_, BTreeMap<String, Vec<u8>>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Segments for MemorySegments {
    fn create(&self, name: &str) -> Result<Box<dyn Segment>> {
        let mut all = self.all();
        if all.contains_key(name) {
            let error = IoError::from(ErrorKind::AlreadyExists);
            return Err(StoreError::new(name, "create", error));
        }
        all.insert(name.to_string(), Vec::new());
        Ok(Box::new(MemorySegment { segments: self.clone(), name: name.to_string() }))
    }

    fn read(&self, name: &str, range: Range<u64>) -> Result<Option<Vec<u8>>> {
        Ok(self.all().get(name).map(|bytes| {
            let end = (bytes.len() as u64).min(range.end) as usize;
            bytes.get(range.start as usize..end).unwrap_or_default().to_vec()
        }))
    }

    fn len(&self, name: &str) -> Result<Option<u64>> {
        Ok(self.all().get(name).map(|bytes| bytes.len() as u64))
    }

    fn publish(&self, key: &str, bytes: &[u8], _durable: bool) -> Result<Published> {
        let mut all = self.all();
        if all.contains_key(key) {
            return Ok(Published::Taken);
        }
        all.insert(key.to_string(), bytes.to_vec());
        Ok(Published::Created)
    }

    fn sync(&self, name: &str) -> Result<()> {
        match self.all().contains_key(name) {
            true => Ok(()),
            false => Err(StoreError::new(name, "sync", ErrorKind::NotFound.into())),
        }
    }

    fn list(&self, folder: &str) -> Result<Vec<String>> {
        let below = format!("{folder}/");
        let names = self
            .all()
            .keys()
            .filter_map(|name| name.strip_prefix(&below))
            .map(str::to_string)
            .collect();
        Ok(names)
    }

    fn remove(&self, name: &str) -> Result<()> {
        self.all().remove(name);
        Ok(())
    }
}

#[derive(Debug)]
struct MemorySegment {
    segments: MemorySegments,
    name: String,
}

impl Segment for MemorySegment {
    fn append(&mut self, part: &[u8]) -> Result<()> {
        match self.segments.all().get_mut(&self.name) {
            Some(bytes) => bytes.extend(part),
            None => return Err(StoreError::new(&*self.name, "append", ErrorKind::NotFound.into())),
        }
        Ok(())
    }

    fn sync(&mut self) -> Result<()> {
        Ok(())
    }
}

/// What every implementation of [`Segments`] must do; a failure is a panic, as in any test.
#[doc(hidden)]
pub fn suite(segments: &dyn Segments) {
    assert_eq!(segments.len("a/b").expect("no failure"), None);
    assert_eq!(segments.read("a/b", 0..9).expect("no failure"), None);
    assert_eq!(segments.list("a").expect("no failure"), Vec::<String>::new());
    let mut segment = segments.create("a/b").expect("create");
    segment.append(b"one").expect("append");
    segment.append(b"two").expect("append");
    segment.sync().expect("sync");
    assert_eq!(segments.read("a/b", 1..5).expect("read"), Some(b"netw".to_vec()));
    assert_eq!(segments.read("a/b", 4..50).expect("read"), Some(b"wo".to_vec()));
    assert_eq!(segments.read("a/b", 40..50).expect("read"), Some(Vec::new()));
    assert_eq!(segments.len("a/b").expect("len"), Some(6));
    segments.create("a/b").expect_err("it is there");
    segment.append(b"!").expect("append");
    assert_eq!(segments.len("a/b").expect("len"), Some(7));
    assert_eq!(segments.publish("k/x/1", b"mine", true).expect("publish"), Published::Created);
    assert_eq!(segments.publish("k/x/1", b"theirs", true).expect("publish"), Published::Taken);
    assert_eq!(segments.publish("k/x/2", b"", false).expect("publish"), Published::Created);
    assert_eq!(segments.read("k/x/1", 0..9).expect("read"), Some(b"mine".to_vec()));
    assert_eq!(segments.list("k/x").expect("list"), ["1", "2"]);
    segments.sync("k/x/2").expect("sync");
    segments.sync("k/x/9").expect_err("it is not there");
    segments.remove("k/x/1").expect("remove");
    segments.remove("k/x/1").expect("what is gone may go again");
    assert_eq!(segments.list("k/x").expect("list"), ["2"]);
    let won: usize = std::thread::scope(|scope| {
        let race =
            |i: u8| scope.spawn(move || segments.publish("k/x/3", &[i], false).expect("publish"));
        let threads: Vec<_> = (0..8).map(race).collect();
        threads
            .into_iter()
            .filter_map(|t| t.join().ok())
            .filter(|p| *p == Published::Created)
            .count()
    });
    assert_eq!(won, 1);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CreateMode, LocalStore, MemoryStore};

    fn in_a_folder(store: Arc<dyn Store>, root: &Path) -> FolderSegments {
        store.create_dir(root).unwrap();
        let like = root.join("mark");
        store.create(&like, CreateMode::New).unwrap();
        FolderSegments::new(store.enclosed(root).unwrap(), root, &like)
    }

    #[test]
    fn all_segments_do_the_same() {
        suite(&MemorySegments::default());
        let folder = tempfile::tempdir().unwrap();
        for (store, root) in [
            (Arc::new(LocalStore) as Arc<dyn Store>, folder.path().join("c")),
            (Arc::new(MemoryStore::default()), PathBuf::from("c")),
        ] {
            let segments = in_a_folder(store, &root);
            suite(&segments);
            for name in ["../x", "/etc/passwd", "a//b", ".", ""] {
                segments.publish(name, b"", false).expect_err("it leaves the folder");
                segments.read(name, 0..1).expect_err("it leaves the folder");
            }
        }
    }
}
