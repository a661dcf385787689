//! The file system.

pub(crate) mod attributes;
mod landing;

use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use rustix::fs::{Mode, OFlags};

use crate::enclosed::{EnclosedStore, names};
use crate::lock::outcome;
use crate::{
    Access, CreateMode, File, FileId, Landing, Locking, Result, Stamp, Store, StoreError, Stripes,
    named_path,
};
use attributes::{Lustre, PRIVATE, Striping};

/// Files of the local (or mounted) file system.
#[derive(Debug, Clone, Copy, Default)]
pub struct LocalStore;

#[derive(Debug)]
pub(crate) struct LocalFile {
    path: PathBuf,
    file: fs::File,
    /// What it is best written in, once that was asked for: every transfer does.
    block: OnceLock<u64>,
}

fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

impl LocalStore {
    /// A file that was made for its owner alone, with the permissions of `like`.
    fn given(path: &Path, made: io::Result<fs::File>, like: &Path) -> Result<Arc<dyn File>> {
        let file = made.map_err(|e| StoreError::new(path, "create", e))?;
        if let Err(error) = attributes::give(&file, like) {
            // It is ours, and empty.
            let _ = fs::remove_file(path);
            return Err(StoreError::new(
                path,
                "giving it the permissions of what it replaces",
                error,
            ));
        }
        LocalStore::wrap(path, Ok(file), "create")
    }

    fn create_striped_by(
        &self,
        system: &dyn Striping,
        path: &Path,
        like: Option<&Path>,
        stripes: Stripes,
    ) -> Result<Arc<dyn File>> {
        let like = match like {
            Some(like) if self.exists(like)? => Some(like),
            _ => None,
        };
        if !system.is_here(directory_of(path)) {
            return match like {
                Some(like) => self.create_like(path, like),
                None => self.create(path, CreateMode::New),
            };
        }
        let mode = if like.is_some() { PRIVATE } else { 0o666 };
        let made = attributes::create_with(path, mode, Some(&stripes.attribute()), system);
        match like {
            Some(like) => LocalStore::given(path, made, like),
            None => LocalStore::wrap(path, made, "create"),
        }
    }

    fn wrap(path: &Path, file: io::Result<fs::File>, action: &str) -> Result<Arc<dyn File>> {
        let file = file.map_err(|e| StoreError::new(path, action, e))?;
        // A directory opens for reading without complaint; say so now and not at the first read.
        if file.metadata().is_ok_and(|m| m.is_dir()) {
            let error = io::Error::new(io::ErrorKind::IsADirectory, "it is a directory");
            return Err(StoreError::new(path, action, error));
        }
        Ok(LocalFile::shared(path, file))
    }
}

impl Store for LocalStore {
    fn open(&self, path: &Path, access: Access) -> Result<Arc<dyn File>> {
        let write = access == Access::ReadWrite;
        let action = if write { "open for writing" } else { "open" };
        LocalStore::wrap(path, OpenOptions::new().read(true).write(write).open(path), action)
    }

    fn create(&self, path: &Path, mode: CreateMode) -> Result<Arc<dyn File>> {
        let mut options = OpenOptions::new();
        options.read(true).write(true);
        match mode {
            CreateMode::New => options.create_new(true),
            // ext4 takes truncation of a file that exists, even of an empty one, for the replacing
            // of its contents, and then writes all data out when it is closed (auto_da_alloc):
            // 64 MiB took 20 ms longer. So nothing is truncated that is empty.
            CreateMode::Truncate => options.create(true).truncate(false),
        };
        let file = options.open(path).and_then(|file| {
            if file.metadata()?.len() > 0 {
                file.set_len(0)?;
            }
            Ok(file)
        });
        LocalStore::wrap(path, file, "create")
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        fs::rename(from, to).map_err(|e| {
            StoreError::new(from, format!("rename to {}", named_path(to).display()), e)
        })
    }

    fn publish(&self, from: &Path, to: &Path) -> Result<()> {
        let action = || format!("rename to {}", named_path(to).display());
        let linked = match fs::hard_link(from, to) {
            // A file system without links: the name is taken first, then the file put there.
            Err(e)
                if matches!(
                    e.kind(),
                    io::ErrorKind::Unsupported | io::ErrorKind::PermissionDenied
                ) =>
            {
                OpenOptions::new()
                    .write(true)
                    .create_new(true)
                    .open(to)
                    .and_then(|_| fs::rename(from, to))
            }
            Err(e) => Err(e),
            Ok(()) => fs::remove_file(from),
        };
        linked.map_err(|e| StoreError::new(from, action(), e))
    }

    fn create_dir(&self, path: &Path) -> Result<()> {
        match fs::create_dir(path) {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
            made => made.map_err(|e| StoreError::new(path, "making the directory", e)),
        }
    }

    fn is_dir(&self, path: &Path) -> Result<bool> {
        match fs::metadata(path) {
            Ok(metadata) => Ok(metadata.is_dir()),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(e) => Err(StoreError::new(path, "look-up", e)),
        }
    }

    fn names_in(&self, directory: &Path) -> Result<Vec<String>> {
        let failed = |e| StoreError::new(directory, "listing the directory", e);
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = rustix::fs::open(directory, flags, Mode::empty());
        opened.map_err(io::Error::from).and_then(names).map_err(failed)
    }

    fn remove_dir(&self, path: &Path) -> Result<()> {
        fs::remove_dir(path).map_err(|e| StoreError::new(path, "remove", e))
    }

    fn remove(&self, path: &Path) -> Result<()> {
        fs::remove_file(path).map_err(|e| StoreError::new(path, "remove", e))
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        path.try_exists().map_err(|e| StoreError::new(path, "look-up", e))
    }

    fn resolve(&self, path: &Path) -> Result<PathBuf> {
        fs::canonicalize(path).map_err(|e| StoreError::new(path, "look-up", e))
    }

    fn landing(&self, path: &Path) -> Result<Landing> {
        landing::landing(path).map_err(|e| StoreError::new(path, "create", e))
    }

    fn create_like(&self, path: &Path, like: &Path) -> Result<Arc<dyn File>> {
        if !self.exists(like)? {
            return self.create(path, CreateMode::New);
        }
        LocalStore::given(path, attributes::create_private(path, like), like)
    }

    fn create_striped(
        &self,
        path: &Path,
        like: Option<&Path>,
        stripes: Stripes,
    ) -> Result<Arc<dyn File>> {
        self.create_striped_by(&Lustre, path, like, stripes)
    }

    fn create_new_dir(&self, path: &Path, like: Option<&Path>) -> Result<()> {
        let failed = |e| StoreError::new(path, "making the directory", e);
        let Some(like) = like else { return fs::create_dir(path).map_err(failed) };
        fs::DirBuilder::new().mode(0o700).create(path).map_err(failed)?;
        fs::File::open(path).and_then(|made| attributes::give(&made, like)).map_err(|error| {
            let _ = fs::remove_dir(path);
            failed(error)
        })
    }

    fn open_trusted(&self, path: &Path, of: &Path) -> Result<Arc<dyn File>> {
        let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
        let opened = OpenOptions::new().read(true).custom_flags(flags.bits() as i32).open(path);
        let checked = opened.and_then(|file| {
            let (found, dataset) = (file.metadata()?, fs::metadata(of)?);
            if !found.is_file() {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "it is no regular file"));
            }
            let own = rustix::process::geteuid().as_raw();
            if ![own, dataset.uid(), 0].contains(&found.uid()) {
                let why = format!(
                    "it belongs to user {}, who neither is you nor owns the dataset (user {}): look at \
                     it, and remove it if nobody knows it",
                    found.uid(),
                    dataset.uid()
                );
                return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
            }
            Ok(file)
        });
        LocalStore::wrap(path, checked, "open")
    }

    #[cfg(target_os = "linux")]
    fn exchange(&self, one: &Path, other: &Path) -> Result<()> {
        use rustix::fs::{CWD, RenameFlags, renameat_with};
        use rustix::io::Errno;
        renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE).map_err(|errno| {
            let error = match errno {
                Errno::INVAL | Errno::NOSYS | Errno::NOTSUP => io::ErrorKind::Unsupported.into(),
                other => other.into(),
            };
            StoreError::new(other, "exchange", error)
        })
    }

    fn age(&self, path: &Path) -> Result<Option<Duration>> {
        let modified = fs::symlink_metadata(path).and_then(|metadata| metadata.modified());
        let modified = modified.map_err(|e| StoreError::new(path, "look-up", e))?;
        // A clock that was set back has no age to tell.
        Ok(modified.elapsed().ok())
    }

    fn sync_names(&self, path: &Path) -> Result<()> {
        let directory = directory_of(path);
        fs::File::open(directory)
            .and_then(|d| d.sync_all())
            .map_err(|e| StoreError::new(directory, "sync of the directory", e))
    }

    fn enclosed(&self, root: &Path) -> Result<Arc<dyn Store>> {
        Ok(Arc::new(EnclosedStore::new(root)?))
    }

    fn id_of(&self, path: &Path) -> Result<Option<FileId>> {
        match fs::metadata(path) {
            Ok(metadata) => Ok(Some(id(&metadata))),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(StoreError::new(path, "look-up", e)),
        }
    }
}

fn id(metadata: &fs::Metadata) -> FileId {
    FileId { device: metadata.dev(), number: metadata.ino() }
}

impl LocalFile {
    /// A file that is open, whatever it was opened by.
    pub(crate) fn shared(path: &Path, file: fs::File) -> Arc<dyn File> {
        Arc::new(LocalFile { path: path.to_path_buf(), file, block: OnceLock::new() })
    }

    fn failed(&self, what: &str, offset: u64, len: usize, error: io::Error) -> StoreError {
        StoreError::new(&self.path, format!("{what} of {len} bytes at offset {offset}"), error)
    }
}

impl File for LocalFile {
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        let mut done = 0;
        while done < buf.len() {
            match self.file.read_at(&mut buf[done..], offset + done as u64) {
                Ok(0) => break,
                Ok(n) => done += n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(self.failed("read", offset, buf.len(), e)),
            }
        }
        Ok(done)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.file
            .write_all_at(bytes, offset)
            .map_err(|e| self.failed("write", offset, bytes.len(), e))
    }

    fn len(&self) -> Result<u64> {
        let metadata = self.file.metadata();
        metadata.map(|m| m.len()).map_err(|e| StoreError::new(&self.path, "look-up of length", e))
    }

    fn set_len(&self, len: u64) -> Result<()> {
        self.file
            .set_len(len)
            .map_err(|e| StoreError::new(&self.path, format!("setting the length to {len}"), e))
    }

    fn sync(&self) -> Result<()> {
        self.file.sync_all().map_err(|e| StoreError::new(&self.path, "sync", e))
    }

    fn block_size(&self) -> u64 {
        *self.block.get_or_init(|| {
            // GPFS tells its block here, NFS its transfer size.
            let block = || self.file.metadata().map_or(4096, |m| m.blksize());
            attributes::stripe_of(&self.file).unwrap_or_else(block).clamp(512, 64 << 20)
        })
    }

    fn try_lock(&self) -> Result<Locking> {
        loop {
            match outcome(self.file.try_lock()) {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                asked => return asked.map_err(|e| StoreError::new(&self.path, "lock", e)),
            }
        }
    }

    fn unlock(&self) -> Result<()> {
        self.file.unlock().map_err(|e| StoreError::new(&self.path, "unlock", e))
    }

    fn id(&self) -> Result<Option<FileId>> {
        let metadata = self.file.metadata();
        let metadata = metadata.map_err(|e| StoreError::new(&self.path, "look-up", e))?;
        Ok(Some(id(&metadata)))
    }

    fn stamp(&self) -> Result<Option<Stamp>> {
        let metadata = self.file.metadata();
        let m = metadata.map_err(|e| StoreError::new(&self.path, "look-up", e))?;
        Ok(Some(Stamp { seconds: m.ctime(), nanoseconds: m.ctime_nsec(), len: m.len() }))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    /// A parallel file system that remembers what it was told.
    #[derive(Default)]
    struct Fake {
        refuses: bool,
        told: Mutex<Vec<(PathBuf, Vec<u8>)>>,
    }

    impl Striping for Fake {
        fn is_here(&self, _: &Path) -> bool {
            true
        }

        fn set(&self, path: &Path, attribute: &[u8]) -> io::Result<()> {
            // As Lustre: only of a file that has no contents.
            assert_eq!(fs::metadata(path)?.len(), 0);
            self.told.lock().unwrap().push((path.to_path_buf(), attribute.to_vec()));
            if self.refuses {
                Err(io::Error::from(io::ErrorKind::PermissionDenied))
            } else {
                Ok(())
            }
        }
    }

    #[test]
    fn a_new_file_gets_its_stripes_before_anything_else_and_lives_without_them() {
        let dir = tempfile::tempdir().unwrap();
        let stripes = Stripes { count: 8, size: 1 << 20 };
        let old = dir.path().join("old");
        fs::write(&old, "old").unwrap();
        fs::set_permissions(&old, std::os::unix::fs::PermissionsExt::from_mode(0o640)).unwrap();
        for refuses in [false, true] {
            for like in [None, Some(&*old)] {
                let fake = Fake { refuses, ..Fake::default() };
                let path = dir.path().join(format!("new{refuses}{}", like.is_some()));
                let file = LocalStore.create_striped_by(&fake, &path, like, stripes).unwrap();
                file.write_at(0, b"contents").unwrap();
                assert_eq!(fs::read(&path).unwrap(), b"contents");
                let told = fake.told.lock().unwrap();
                assert_eq!(*told, [(path.clone(), stripes.attribute())]);
                if like.is_some() {
                    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, 0o640);
                }
                // It must be new.
                let again = LocalStore.create_striped_by(&fake, &path, like, stripes);
                assert_eq!(again.unwrap_err().kind(), io::ErrorKind::AlreadyExists);
            }
        }
    }

    #[test]
    fn where_there_are_no_stripes_a_file_is_as_any_other() {
        let dir = tempfile::tempdir().unwrap();
        let (plain, striped) = (dir.path().join("plain"), dir.path().join("striped"));
        let stripes = Stripes { count: 8, size: 1 << 20 };
        let one = LocalStore.create(&plain, CreateMode::New).unwrap();
        let other = LocalStore.create_striped(&striped, None, stripes).unwrap();
        assert_eq!(one.block_size(), other.block_size());
        let mode = |path| fs::metadata(path).unwrap().mode();
        assert_eq!(mode(&plain), mode(&striped));
    }
}
