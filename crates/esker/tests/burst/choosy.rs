//! A store that refuses the writes that a test chooses.

use std::fmt;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use esker_store::{Access, CreateMode, File, Result, Store, StoreError};

/// Says how a write of so many bytes at an offset of a file fails, if it does.
pub(crate) type Choice = dyn Fn(&Path, u64, u64) -> Option<ErrorKind> + Send + Sync;

#[derive(Clone)]
pub(crate) struct ChoosyStore<S> {
    pub(crate) inner: S,
    pub(crate) refuses: Arc<Choice>,
}

impl<S: fmt::Debug> fmt::Debug for ChoosyStore<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChoosyStore").field("inner", &self.inner).finish_non_exhaustive()
    }
}

impl<S> ChoosyStore<S> {
    fn wrap(&self, path: &Path, inner: Arc<dyn File>) -> Arc<dyn File> {
        Arc::new(ChoosyFile { path: path.to_path_buf(), inner, refuses: self.refuses.clone() })
    }
}

impl<S: Store> Store for ChoosyStore<S> {
    fn open(&self, path: &Path, access: Access) -> Result<Arc<dyn File>> {
        Ok(self.wrap(path, self.inner.open(path, access)?))
    }

    fn create(&self, path: &Path, mode: CreateMode) -> Result<Arc<dyn File>> {
        Ok(self.wrap(path, self.inner.create(path, mode)?))
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        self.inner.rename(from, to)
    }

    fn publish(&self, from: &Path, to: &Path) -> Result<()> {
        self.inner.publish(from, to)
    }

    fn remove(&self, path: &Path) -> Result<()> {
        self.inner.remove(path)
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        self.inner.exists(path)
    }

    fn create_dir(&self, path: &Path) -> Result<()> {
        self.inner.create_dir(path)
    }

    fn is_dir(&self, path: &Path) -> Result<bool> {
        self.inner.is_dir(path)
    }

    fn names_in(&self, directory: &Path) -> Result<Vec<String>> {
        self.inner.names_in(directory)
    }

    fn remove_dir(&self, path: &Path) -> Result<()> {
        self.inner.remove_dir(path)
    }

    fn resolve(&self, path: &Path) -> Result<PathBuf> {
        self.inner.resolve(path)
    }

    fn copy_permissions(&self, from: &Path, to: &Path) -> Result<()> {
        self.inner.copy_permissions(from, to)
    }

    fn sync_names(&self, path: &Path) -> Result<()> {
        self.inner.sync_names(path)
    }
}

struct ChoosyFile {
    path: PathBuf,
    inner: Arc<dyn File>,
    refuses: Arc<Choice>,
}

impl fmt::Debug for ChoosyFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChoosyFile").field("path", &self.path).finish_non_exhaustive()
    }
}

impl File for ChoosyFile {
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        self.inner.read_at(offset, buf)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        match (self.refuses)(&self.path, offset, bytes.len() as u64) {
            None => self.inner.write_at(offset, bytes),
            Some(kind) => {
                // A device that fills up takes a part of it.
                self.inner.write_at(offset, &bytes[..bytes.len() / 2])?;
                Err(StoreError::new(&self.path, "write", kind.into()))
            }
        }
    }

    fn len(&self) -> Result<u64> {
        self.inner.len()
    }

    fn set_len(&self, len: u64) -> Result<()> {
        self.inner.set_len(len)
    }

    fn sync(&self) -> Result<()> {
        self.inner.sync()
    }
}
