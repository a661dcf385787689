//! Decorators of stores and files: what one does not speak of goes to what it wraps.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::enclosed::Rebased;
use crate::{
    Access, CreateMode, File, FileId, Landing, Locking, Occupant, Result, Stamp, Store, StoreError,
    Stripes,
};

/// A store over another one.
///
/// Whoever implements it is a [`Store`] whose calls go to the one below, but for its files, which may
/// be covered by a [`FileLayer`], and for changes of names, which may be kept from happening.
pub trait Layer: Clone + Send + Sync + std::fmt::Debug + 'static {
    /// The store that is wrapped.
    fn below(&self) -> &dyn Store;

    /// A file that was opened or created under this name, as users of this store see it.
    fn cover(&self, path: &Path, file: Arc<dyn File>) -> Arc<dyn File> {
        let _ = path;
        file
    }

    /// Creates, renames or removes something, or makes names durable: by `call`, or not.
    fn change(
        &self,
        path: &Path,
        action: &str,
        call: &mut dyn FnMut() -> Result<()>,
    ) -> Result<()> {
        let _ = (path, action);
        call()
    }
}

impl<L: Layer> Store for L {
    fn open(&self, path: &Path, access: Access) -> Result<Arc<dyn File>> {
        Ok(self.cover(path, self.below().open(path, access)?))
    }

    fn create(&self, path: &Path, mode: CreateMode) -> Result<Arc<dyn File>> {
        let mut made = None;
        self.change(path, "create", &mut || {
            made = Some(self.below().create(path, mode)?);
            Ok(())
        })?;
        let nothing = || StoreError::new(path, "create", io::Error::other("it was kept back"));
        Ok(self.cover(path, made.ok_or_else(nothing)?))
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        self.change(from, "rename", &mut || self.below().rename(from, to))
    }

    fn publish(&self, from: &Path, to: &Path) -> Result<()> {
        self.change(from, "rename", &mut || self.below().publish(from, to))
    }

    fn remove(&self, path: &Path) -> Result<()> {
        self.change(path, "remove", &mut || self.below().remove(path))
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        self.below().exists(path)
    }

    fn create_dir(&self, path: &Path) -> Result<()> {
        self.change(path, "making the directory", &mut || self.below().create_dir(path))
    }

    fn is_dir(&self, path: &Path) -> Result<bool> {
        self.below().is_dir(path)
    }

    fn names_in(&self, directory: &Path) -> Result<Vec<String>> {
        self.below().names_in(directory)
    }

    fn remove_dir(&self, path: &Path) -> Result<()> {
        self.change(path, "remove", &mut || self.below().remove_dir(path))
    }

    fn resolve(&self, path: &Path) -> Result<PathBuf> {
        self.below().resolve(path)
    }

    fn landing(&self, path: &Path) -> Result<Landing> {
        let Landing { path, occupant } = self.below().landing(path)?;
        let occupant = match occupant {
            Occupant::Empty(file) => Occupant::Empty(self.cover(&path, file)),
            other => other,
        };
        Ok(Landing { path, occupant })
    }

    fn create_like(&self, path: &Path, like: &Path) -> Result<Arc<dyn File>> {
        let mut made = None;
        self.change(path, "create", &mut || {
            made = Some(self.below().create_like(path, like)?);
            Ok(())
        })?;
        let nothing = || StoreError::new(path, "create", io::Error::other("it was kept back"));
        Ok(self.cover(path, made.ok_or_else(nothing)?))
    }

    fn create_striped(
        &self,
        path: &Path,
        like: Option<&Path>,
        stripes: Stripes,
    ) -> Result<Arc<dyn File>> {
        let mut made = None;
        self.change(path, "create", &mut || {
            made = Some(self.below().create_striped(path, like, stripes)?);
            Ok(())
        })?;
        let nothing = || StoreError::new(path, "create", io::Error::other("it was kept back"));
        Ok(self.cover(path, made.ok_or_else(nothing)?))
    }

    fn create_new_dir(&self, path: &Path, like: Option<&Path>) -> Result<()> {
        self.change(path, "making the directory", &mut || self.below().create_new_dir(path, like))
    }

    fn open_trusted(&self, path: &Path, of: &Path) -> Result<Arc<dyn File>> {
        Ok(self.cover(path, self.below().open_trusted(path, of)?))
    }

    fn exchange(&self, one: &Path, other: &Path) -> Result<()> {
        self.change(one, "exchange", &mut || self.below().exchange(one, other))
    }

    fn age(&self, path: &Path) -> Result<Option<Duration>> {
        self.below().age(path)
    }

    fn sync_names(&self, path: &Path) -> Result<()> {
        self.change(path, "sync of the directory", &mut || self.below().sync_names(path))
    }

    fn enclosed(&self, root: &Path) -> Result<Arc<dyn Store>> {
        let below = self.below().enclosed(root)?;
        Ok(Arc::new(Rebased { layer: Arc::new(self.clone()), below }))
    }

    fn id_of(&self, path: &Path) -> Result<Option<FileId>> {
        self.below().id_of(path)
    }
}

/// A file over another one. Whoever implements it is a [`File`].
pub trait FileLayer: Send + Sync + std::fmt::Debug {
    /// The file that is wrapped.
    fn below(&self) -> &dyn File;

    /// [`File::read_at`].
    fn read(&self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        self.below().read_at(offset, buf)
    }

    /// [`File::write_at`].
    fn write(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.below().write_at(offset, bytes)
    }

    /// [`File::set_len`].
    fn resize(&self, len: u64) -> Result<()> {
        self.below().set_len(len)
    }

    /// [`File::sync`].
    fn settle(&self) -> Result<()> {
        self.below().sync()
    }

    /// [`File::try_lock`].
    fn lock(&self) -> Result<Locking> {
        self.below().try_lock()
    }
}

/// A file that is made up is read through `read` all the same, or the layer would not see it.
impl<L: FileLayer> File for L {
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        self.read(offset, buf)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.write(offset, bytes)
    }

    fn len(&self) -> Result<u64> {
        self.below().len()
    }

    fn set_len(&self, len: u64) -> Result<()> {
        self.resize(len)
    }

    fn sync(&self) -> Result<()> {
        self.settle()
    }

    fn block_size(&self) -> u64 {
        self.below().block_size()
    }

    fn try_lock(&self) -> Result<Locking> {
        self.lock()
    }

    fn unlock(&self) -> Result<()> {
        self.below().unlock()
    }

    fn id(&self) -> Result<Option<FileId>> {
        self.below().id()
    }

    fn stamp(&self) -> Result<Option<Stamp>> {
        self.below().stamp()
    }
}
