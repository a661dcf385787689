//! Bytes at rest.
//!
//! A [`Store`] holds files by name and a [`File`] is read and written at positions. Nothing
//! here knows of variables or ranks. [`LocalStore`] is the file system, [`MemoryStore`] keeps
//! everything in memory and forgets what was not synced when a test says that the power went,
//! and decorators add behaviour to any store: [`FaultyStore`] fails, tears or stops at a chosen
//! call, [`CountingStore`] counts calls and bytes, [`GatedStore`] lets calls wait. A decorator is a
//! [`Layer`] over a store and a [`FileLayer`] over its files, and says only what it changes.
//!
//! ```
//! use esker_store::{Access, CreateMode, MemoryStore, Store};
//! # fn main() -> esker_store::Result<()> {
//! let store = MemoryStore::default();
//! let file = store.create("run.nc".as_ref(), CreateMode::New)?;
//! file.write_at(4, b"data")?;
//! assert_eq!(file.len()?, 8);
//! let again = store.open("run.nc".as_ref(), Access::Read)?;
//! let mut bytes = [1; 8];
//! assert_eq!(again.read_at(0, &mut bytes)?, 8);
//! assert_eq!(&bytes, b"\0\0\0\0data");
//! # Ok(()) }
//! ```
//!
//! Every implementation passes the one test suite in `suite`.
#![forbid(unsafe_code)]

mod count;
mod draft;
mod enclosed;
mod error;
mod fault;
mod gate;
mod landing;
mod lane;
mod layer;
mod local;
mod lock;
mod memory;
mod pace;
mod pool;
mod segments;
mod stripes;
#[doc(hidden)]
pub mod suite;

use std::fmt::Debug;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

pub use count::{CountingStore, Counts};
pub use draft::{
    Draft, DraftForm, DraftName, Leftover, LiveDraft, draft_path, leftovers, named_path, random,
    remove_live_drafts, remove_tree,
};
pub use error::{Result, StoreError};
pub use fault::{Fault, FaultyStore};
pub use gate::GatedStore;
pub use landing::{Landing, Occupant};
pub use lane::Lane;
pub use layer::{FileLayer, Layer};
pub use local::LocalStore;
pub use lock::{Busy, FileId, Locked, Locking, Stamp};
pub use memory::{MemoryStore, Unsynced};
pub use pace::PacedStore;
pub use pool::ReadPool;
#[doc(hidden)]
pub use segments::suite as segments_suite;
pub use segments::{FolderSegments, MemorySegments, Published, Segment, Segments};
pub use stripes::Stripes;

/// A path for people: as they call it, where it is a draft's, and without what a terminal would obey.
pub fn shown_path(path: &Path) -> String {
    esker_text::shown_path(&named_path(path))
}

/// What a file is opened for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Reading.
    Read,
    /// Reading and writing.
    ReadWrite,
}

/// What to do when a file to be created exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CreateMode {
    /// Fail: the file must be new. Of several creators one succeeds.
    New,
    /// Empty it.
    Truncate,
}

/// A place that holds files by name.
///
/// *Atomic*: `rename` replaces its target in one step, for every observer; `create` with
/// [`CreateMode::New`] has one winner. *Durable*: a rename, create or removal survives power
/// loss once [`Store::sync_names`] of its directory returned `Ok`; contents once
/// [`File::sync`] did.
pub trait Store: Send + Sync + Debug + 'static {
    /// Opens an existing file.
    fn open(&self, path: &Path, access: Access) -> Result<Arc<dyn File>>;

    /// Creates a file and opens it for reading and writing.
    fn create(&self, path: &Path, mode: CreateMode) -> Result<Arc<dyn File>>;

    /// Gives the file another name, in place of a file that has it. A file that is open stays
    /// what it is.
    fn rename(&self, from: &Path, to: &Path) -> Result<()>;

    /// Gives the file another name unless a file has it: of several that want one name, one
    /// gets it, whole, and the others get [`std::io::ErrorKind::AlreadyExists`].
    fn publish(&self, from: &Path, to: &Path) -> Result<()>;

    /// Removes a file.
    fn remove(&self, path: &Path) -> Result<()>;

    /// Whether there is a file of this name.
    fn exists(&self, path: &Path) -> Result<bool>;

    /// Makes a directory, unless it is there.
    fn create_dir(&self, path: &Path) -> Result<()>;

    /// Whether there is a directory of this name.
    fn is_dir(&self, path: &Path) -> Result<bool>;

    /// The names of what is in a directory, sorted. Names that are not text are left out.
    fn names_in(&self, directory: &Path) -> Result<Vec<String>>;

    /// Removes an empty directory.
    fn remove_dir(&self, path: &Path) -> Result<()>;

    /// The name behind symbolic links, so that a rename replaces the file and not the link.
    fn resolve(&self, path: &Path) -> Result<std::path::PathBuf>;

    /// What has the name `path`, for whoever is going to put a file or folder in its place. What cannot
    /// be replaced (a device, a file that may not be written) is an error.
    fn landing(&self, path: &Path) -> Result<Landing> {
        let occupant = match (self.is_dir(path)?, self.exists(path)?) {
            (true, _) => Occupant::Directory,
            (_, true) => Occupant::File,
            _ => Occupant::Nothing,
        };
        Ok(Landing { path: path.to_path_buf(), occupant })
    }

    /// Creates a file that must be new, with the permissions, owner and attributes of `like` where the
    /// store has such: from before anybody else can open it. If there is no `like`, as any new file.
    fn create_like(&self, path: &Path, like: &Path) -> Result<Arc<dyn File>> {
        let _ = like;
        self.create(path, CreateMode::New)
    }

    /// The same (or, without `like`, as any new file) with these stripes, where the store has such and grants them:
    /// otherwise without a word, because stripes are about speed.
    fn create_striped(
        &self,
        path: &Path,
        like: Option<&Path>,
        stripes: Stripes,
    ) -> Result<Arc<dyn File>> {
        let _ = stripes;
        match like {
            Some(like) => self.create_like(path, like),
            None => self.create(path, CreateMode::New),
        }
    }

    /// Makes a directory that must be new, with the permissions, owner and attributes of `like`.
    fn create_new_dir(&self, path: &Path, like: Option<&Path>) -> Result<()> {
        let _ = like;
        if self.is_dir(path)? {
            let error = std::io::ErrorKind::AlreadyExists.into();
            return Err(StoreError::new(path, "making the directory", error));
        }
        self.create_dir(path)
    }

    /// Opens a file for reading that is believed because of who wrote it: no link, and owned by the
    /// caller, by the owner of the file `of`, or by the system's administrator.
    fn open_trusted(&self, path: &Path, of: &Path) -> Result<Arc<dyn File>> {
        let _ = of;
        self.open(path, Access::Read)
    }

    /// Lets two names change places, in one step. Where the store cannot, it is
    /// [`std::io::ErrorKind::Unsupported`].
    fn exchange(&self, one: &Path, other: &Path) -> Result<()> {
        let _ = other;
        Err(StoreError::new(one, "exchange", std::io::ErrorKind::Unsupported.into()))
    }

    /// How long ago a file was written to, where the store knows.
    fn age(&self, path: &Path) -> Result<Option<Duration>> {
        let _ = path;
        Ok(None)
    }

    /// Makes the creations, renames and removals in the directory of `path` durable.
    fn sync_names(&self, path: &Path) -> Result<()>;

    /// The same store, but below the directory `root` no symbolic link is followed: what is there may
    /// come from anybody. `root` itself may be reached through links. What is elsewhere is as it was.
    fn enclosed(&self, root: &Path) -> Result<Arc<dyn Store>>;

    /// Which file has this name now; `None` if there is none, or the store cannot tell.
    fn id_of(&self, path: &Path) -> Result<Option<FileId>> {
        let _ = path;
        Ok(None)
    }
}

/// A stretch of a file, and where it goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileRun {
    /// Where it begins.
    pub offset: u64,
    /// How many bytes it has.
    pub len: usize,
    /// Its place in the reader's memory.
    pub at: usize,
}

/// In which order the bytes of elements are given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ElementOrder {
    /// As they are in the file.
    File,
    /// As this machine has them: elements of so many bytes, which are big-endian in the file.
    Machine(usize),
}

/// A file that is put together when it is read: what lies between two stretches costs as much as
/// what is wanted, and elements come from where they may have another order of bytes.
pub trait MadeUp {
    /// Reads stretches of whole elements, sorted by offset, each to its place in `buf`. Gives the
    /// number of bytes, short only at the end of the file.
    fn read_runs(&self, runs: &[FileRun], order: ElementOrder, buf: &mut [u8]) -> Result<usize>;
}

/// An open file: a growing array of bytes.
///
/// Positioned calls may run at the same time from many threads. Bytes never written before
/// the end read as zeros. What a call wrote is seen by every later read of the file, through
/// any handle; it survives power loss once a later [`File::sync`] returned `Ok`.
pub trait File: Send + Sync + Debug {
    /// Reads into `buf` from `offset`; gives the number of bytes, which is short only at the
    /// end of the file.
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<usize>;

    /// The file as one that is made up, if it is.
    fn made_up(&self) -> Option<&dyn MadeUp> {
        None
    }

    /// Writes all of `bytes` at `offset`. After an error any part of them may be written.
    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<()>;

    /// The length in bytes.
    fn len(&self) -> Result<u64>;

    /// Whether it has no bytes.
    fn is_empty(&self) -> Result<bool> {
        Ok(self.len()? == 0)
    }

    /// Cuts or extends (with zeros, without writing them where the store can).
    fn set_len(&self, len: u64) -> Result<()>;

    /// Waits until contents and length are safe from power loss.
    fn sync(&self) -> Result<()>;

    /// The size and alignment of writes that the store takes best: a page of a local disk, a
    /// stripe or block of a parallel file system.
    fn block_size(&self) -> u64 {
        4096
    }

    /// Asks for the file's lock, without waiting, for this handle: others that ask, in this process or
    /// another, get [`Locking::Busy`] until it is given back or the handle is gone. [`Locked`] does both.
    fn try_lock(&self) -> Result<Locking> {
        Ok(Locking::Unsupported)
    }

    /// Gives the lock back.
    fn unlock(&self) -> Result<()> {
        Ok(())
    }

    /// Which file this is; `None` if the store cannot tell.
    fn id(&self) -> Result<Option<FileId>> {
        Ok(None)
    }

    /// When it was changed last, by anybody; `None` if the store cannot tell.
    fn stamp(&self) -> Result<Option<Stamp>> {
        Ok(None)
    }
}
