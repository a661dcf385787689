//! What is below one directory, and nowhere else.
//!
//! A container or a folder of chunks may come from anybody, and a link inside it would lead a
//! reader, or worse a writer, to files of others. So every name below the directory is opened from
//! the directory's own descriptor, one component at a time, and no component may be a symbolic
//! link. What somebody puts in its place meanwhile is refused by the same call that would use it.

use std::ffi::OsString;
use std::fs;
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat};

use crate::local::{LocalFile, attributes};
use crate::{Access, CreateMode, File, FileId, Layer, LocalStore, Result, Store, StoreError};

/// Files of the local file system, those below one directory without links.
#[derive(Debug, Clone)]
pub(crate) struct EnclosedStore {
    root: PathBuf,
    directory: Arc<OwnedFd>,
}

const DIRECTORY: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// The directory that a name is in, and the name.
struct Within {
    directory: OwnedFd,
    name: OsString,
}

impl EnclosedStore {
    /// What is below `root`, which may itself be reached through links.
    pub(crate) fn new(root: &Path) -> Result<EnclosedStore> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        // The directory of a name without one is the current.
        let name = if root.as_os_str().is_empty() { Path::new(".") } else { root };
        let opened = rustix::fs::open(name, flags, Mode::empty());
        let directory = opened.map_err(|e| StoreError::new(root, "open", e.into()))?;
        Ok(EnclosedStore { root: root.to_path_buf(), directory: Arc::new(directory) })
    }

    /// The components of a name below the directory; `None` for the directory itself and for what
    /// is elsewhere.
    fn components(&self, path: &Path) -> io::Result<Option<Vec<OsString>>> {
        let Ok(rest) = path.strip_prefix(&self.root) else { return Ok(None) };
        let plain = |component: Component<'_>| match component {
            Component::Normal(name) => Ok(name.to_os_string()),
            _ => Err(io::Error::new(ErrorKind::InvalidInput, "the name leads out of its folder")),
        };
        let components: Vec<OsString> = rest.components().map(plain).collect::<io::Result<_>>()?;
        Ok((!components.is_empty()).then_some(components))
    }

    /// A directory that is below this one.
    fn walk(&self, components: &[OsString]) -> io::Result<OwnedFd> {
        let mut directory = self.directory.as_fd().try_clone_to_owned()?;
        for name in components {
            let next = rustix::fs::openat(&directory, name, DIRECTORY, Mode::empty());
            directory = next.map_err(|e| refused(&directory, name, e.into()))?;
        }
        Ok(directory)
    }

    /// The directory that a name is in; `None` for what is not below.
    fn within(&self, path: &Path) -> io::Result<Option<Within>> {
        let Some(mut components) = self.components(path)? else { return Ok(None) };
        let Some(name) = components.pop() else { return Ok(None) };
        Ok(Some(Within { directory: self.walk(&components)?, name }))
    }

    /// Acts on what is below, or lets the file system do it.
    fn at<T>(
        &self,
        path: &Path,
        action: &str,
        act: impl FnOnce(&Within) -> io::Result<T>,
        outside: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        let acted = match self.within(path) {
            Ok(Some(within)) => act(&within),
            Ok(None) => return outside(),
            Err(error) => Err(error),
        };
        acted.map_err(|e| StoreError::new(path, action, e))
    }
}

impl Within {
    /// What has the name, which may be a link.
    fn look(&self) -> io::Result<Option<Stat>> {
        match rustix::fs::statat(&self.directory, &self.name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(found) => Ok(Some(found)),
            Err(rustix::io::Errno::NOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn open(&self, flags: OFlags) -> io::Result<fs::File> {
        self.open_with(flags, Mode::from_raw_mode(0o666))
    }

    fn open_with(&self, flags: OFlags, mode: Mode) -> io::Result<fs::File> {
        // A pipe that somebody has put there would let an open wait for ever.
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let opened = rustix::fs::openat(&self.directory, &self.name, flags, mode);
        let file = opened.map_err(|e| refused(&self.directory, &self.name, e.into()))?;
        let file = fs::File::from(file);
        match file.metadata()?.file_type() {
            found if found.is_file() => Ok(file),
            found if found.is_dir() => {
                Err(io::Error::new(ErrorKind::IsADirectory, "it is a directory"))
            }
            _ => Err(io::Error::new(ErrorKind::InvalidData, "it is no file")),
        }
    }

    fn unlink(&self, flags: AtFlags) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(&self.directory, &self.name, flags)?)
    }
}

/// Why a name could not be used: a link is told as one.
fn refused(directory: &OwnedFd, name: &OsString, error: io::Error) -> io::Error {
    let found = rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW);
    let is_link = |mode| FileType::from_raw_mode(mode) == FileType::Symlink;
    match found.is_ok_and(|found| is_link(found.st_mode)) {
        true => io::Error::new(
            ErrorKind::InvalidData,
            "it is a symbolic link, and inside a dataset no links are followed",
        ),
        false => error,
    }
}

/// The names in a directory, sorted; those that are not text are left out.
pub(crate) fn names(directory: OwnedFd) -> io::Result<Vec<String>> {
    // The standard library's iterator panics when its directory cannot be closed.
    let mut names = Vec::new();
    for entry in Dir::new(directory)? {
        names.extend(entry?.file_name().to_str().ok().map(str::to_string));
    }
    names.retain(|name| name != "." && name != "..");
    names.sort();
    Ok(names)
}

impl Store for EnclosedStore {
    fn open(&self, path: &Path, access: Access) -> Result<Arc<dyn File>> {
        let (flags, action) = match access {
            Access::Read => (OFlags::RDONLY, "open"),
            Access::ReadWrite => (OFlags::RDWR, "open for writing"),
        };
        let open = |within: &Within| Ok(LocalFile::shared(path, within.open(flags)?));
        self.at(path, action, open, || LocalStore.open(path, access))
    }

    fn create(&self, path: &Path, mode: CreateMode) -> Result<Arc<dyn File>> {
        let flags = match mode {
            CreateMode::New => OFlags::EXCL,
            CreateMode::Truncate => OFlags::empty(),
        };
        let create = |within: &Within| {
            let file = within.open(flags | OFlags::CREATE | OFlags::RDWR)?;
            // As in the file system: nothing is truncated that is empty.
            if file.metadata()?.len() > 0 {
                file.set_len(0)?;
            }
            Ok(LocalFile::shared(path, file))
        };
        self.at(path, "create", create, || LocalStore.create(path, mode))
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        let action = format!("rename to {}", to.display());
        let failed = |e: io::Error| StoreError::new(from, &action, e);
        match (self.within(from).map_err(failed)?, self.within(to).map_err(failed)?) {
            (Some(a), Some(b)) => {
                let renamed = rustix::fs::renameat(&a.directory, &a.name, &b.directory, &b.name);
                renamed.map_err(|e| failed(e.into()))
            }
            (None, None) => LocalStore.rename(from, to),
            _ => Err(failed(io::Error::new(ErrorKind::InvalidInput, "it would leave its folder"))),
        }
    }

    fn publish(&self, from: &Path, to: &Path) -> Result<()> {
        let action = format!("rename to {}", to.display());
        let failed = |e: io::Error| StoreError::new(from, &action, e);
        let (a, b) = match (self.within(from).map_err(failed)?, self.within(to).map_err(failed)?) {
            (Some(a), Some(b)) => (a, b),
            (None, None) => return LocalStore.publish(from, to),
            _ => {
                let why = "it would leave its folder";
                return Err(failed(io::Error::new(ErrorKind::InvalidInput, why)));
            }
        };
        let none = AtFlags::empty();
        let linked = rustix::fs::linkat(&a.directory, &a.name, &b.directory, &b.name, none);
        let published = match linked.map_err(io::Error::from) {
            Ok(()) => a.unlink(none),
            // A file system without links: the name is taken first, then the file put there.
            Err(e) if matches!(e.kind(), ErrorKind::Unsupported | ErrorKind::PermissionDenied) => {
                b.open(OFlags::CREATE | OFlags::EXCL | OFlags::RDWR).and_then(|_| {
                    let renamed =
                        rustix::fs::renameat(&a.directory, &a.name, &b.directory, &b.name);
                    Ok(renamed?)
                })
            }
            Err(e) => Err(e),
        };
        published.map_err(failed)
    }

    fn remove(&self, path: &Path) -> Result<()> {
        let remove = |within: &Within| within.unlink(AtFlags::empty());
        self.at(path, "remove", remove, || LocalStore.remove(path))
    }

    /// A link has its name, wherever it leads.
    fn exists(&self, path: &Path) -> Result<bool> {
        let exists = |within: &Within| Ok(within.look()?.is_some());
        match self.at(path, "look-up", exists, || LocalStore.exists(path)) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            found => found,
        }
    }

    fn create_dir(&self, path: &Path) -> Result<()> {
        let create = |within: &Within| {
            let mode = Mode::from_raw_mode(0o777);
            match rustix::fs::mkdirat(&within.directory, &within.name, mode) {
                Err(rustix::io::Errno::EXIST) => {
                    let opened = rustix::fs::openat(
                        &within.directory,
                        &within.name,
                        DIRECTORY,
                        Mode::empty(),
                    );
                    let there = opened.map(drop);
                    there.map_err(|e| refused(&within.directory, &within.name, e.into()))
                }
                made => Ok(made?),
            }
        };
        self.at(path, "making the directory", create, || LocalStore.create_dir(path))
    }

    fn is_dir(&self, path: &Path) -> Result<bool> {
        let is_dir = |within: &Within| {
            let found = within.look()?;
            Ok(found.is_some_and(|found| FileType::from_raw_mode(found.st_mode).is_dir()))
        };
        match self.at(path, "look-up", is_dir, || LocalStore.is_dir(path)) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            found => found,
        }
    }

    fn names_in(&self, directory: &Path) -> Result<Vec<String>> {
        let listed = match self.components(directory) {
            Ok(components) if components.is_some() || directory == self.root => {
                // A descriptor of its own, or two who list would share the place where they are.
                let components = components.unwrap_or_default();
                let again =
                    |top: OwnedFd| Ok(rustix::fs::openat(&top, ".", DIRECTORY, Mode::empty())?);
                self.walk(&components).and_then(again).and_then(names)
            }
            Ok(_) => return LocalStore.names_in(directory),
            Err(error) => Err(error),
        };
        listed.map_err(|e| StoreError::new(directory, "listing the directory", e))
    }

    fn remove_dir(&self, path: &Path) -> Result<()> {
        let remove = |within: &Within| within.unlink(AtFlags::REMOVEDIR);
        self.at(path, "remove", remove, || LocalStore.remove_dir(path))
    }

    /// What is below has no links.
    fn resolve(&self, path: &Path) -> Result<PathBuf> {
        let itself = |_: &Within| Ok(path.to_path_buf());
        self.at(path, "look-up", itself, || LocalStore.resolve(path))
    }

    fn create_like(&self, path: &Path, like: &Path) -> Result<Arc<dyn File>> {
        if !self.exists(like)? {
            return self.create(path, CreateMode::New);
        }
        let create = |within: &Within| {
            let flags = OFlags::CREATE | OFlags::EXCL | OFlags::RDWR;
            let file = within.open_with(flags, Mode::from_raw_mode(0o600))?;
            if let Err(error) = attributes::give(&file, like) {
                // It is ours, and empty.
                let _ = within.unlink(AtFlags::empty());
                return Err(error);
            }
            Ok(LocalFile::shared(path, file))
        };
        self.at(path, "create", create, || LocalStore.create_like(path, like))
    }

    fn age(&self, path: &Path) -> Result<Option<Duration>> {
        LocalStore.age(path)
    }

    fn sync_names(&self, path: &Path) -> Result<()> {
        let sync = |within: &Within| Ok(rustix::fs::fsync(&within.directory)?);
        self.at(path, "sync of the directory", sync, || LocalStore.sync_names(path))
    }

    fn id_of(&self, path: &Path) -> Result<Option<FileId>> {
        let id = |found: Stat| FileId { device: found.st_dev, number: found.st_ino };
        let look = |within: &Within| Ok(within.look()?.map(id));
        self.at(path, "look-up", look, || LocalStore.id_of(path))
    }

    fn enclosed(&self, root: &Path) -> Result<Arc<dyn Store>> {
        let failed = |e| StoreError::new(root, "open", e);
        match self.components(root).map_err(failed)? {
            Some(components) => {
                let directory = Arc::new(self.walk(&components).map_err(failed)?);
                Ok(Arc::new(EnclosedStore { root: root.to_path_buf(), directory }))
            }
            None => Ok(Arc::new(EnclosedStore::new(root)?)),
        }
    }
}

/// What a decorator adds, whatever it is over.
pub(crate) trait Addition: Send + Sync + std::fmt::Debug {
    fn cover(&self, path: &Path, file: Arc<dyn File>) -> Arc<dyn File>;
    fn change(&self, path: &Path, action: &str, call: &mut dyn FnMut() -> Result<()>)
    -> Result<()>;
}

impl<L: Layer> Addition for L {
    fn cover(&self, path: &Path, file: Arc<dyn File>) -> Arc<dyn File> {
        Layer::cover(self, path, file)
    }

    fn change(
        &self,
        path: &Path,
        action: &str,
        call: &mut dyn FnMut() -> Result<()>,
    ) -> Result<()> {
        Layer::change(self, path, action, call)
    }
}

/// A decorator over another store than the one that it was made for.
#[derive(Debug, Clone)]
pub(crate) struct Rebased {
    pub(crate) layer: Arc<dyn Addition>,
    pub(crate) below: Arc<dyn Store>,
}

impl Layer for Rebased {
    fn below(&self) -> &dyn Store {
        &*self.below
    }

    fn cover(&self, path: &Path, file: Arc<dyn File>) -> Arc<dyn File> {
        self.layer.cover(path, file)
    }

    fn change(
        &self,
        path: &Path,
        action: &str,
        call: &mut dyn FnMut() -> Result<()>,
    ) -> Result<()> {
        self.layer.change(path, action, call)
    }
}
