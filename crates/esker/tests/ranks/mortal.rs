//! A file system whose user dies at a chosen write: a kill from outside comes when it comes, and
//! hardly ever in the moments in which a dataset is neither old nor new.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use esker_store::{Access, CreateMode, File, LocalStore, Result, Store};

/// Writes that are left; nobody dies before they are counted.
#[derive(Debug, Clone)]
pub(crate) struct Mortal(Arc<AtomicI64>);

#[derive(Debug)]
struct MortalFile(Arc<dyn File>, Mortal);

impl Mortal {
    pub(crate) fn new() -> Mortal {
        Mortal(Arc::new(AtomicI64::new(i64::MAX)))
    }

    /// The process is killed instead of the write after so many others.
    pub(crate) fn dies_after(&self, writes: u64) {
        self.0.store(writes as i64, Ordering::SeqCst);
    }

    fn count(&self) {
        if self.0.fetch_sub(1, Ordering::SeqCst) <= 0 {
            let own = std::process::id().to_string();
            let _ = Command::new("kill").args(["-KILL", &own]).status();
            loop {
                std::thread::park();
            }
        }
    }

    fn file(&self, file: Arc<dyn File>) -> Arc<dyn File> {
        Arc::new(MortalFile(file, self.clone()))
    }
}

impl Store for Mortal {
    fn open(&self, path: &Path, access: Access) -> Result<Arc<dyn File>> {
        Ok(self.file(LocalStore.open(path, access)?))
    }

    fn create(&self, path: &Path, mode: CreateMode) -> Result<Arc<dyn File>> {
        Ok(self.file(LocalStore.create(path, mode)?))
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        LocalStore.rename(from, to)
    }

    fn publish(&self, from: &Path, to: &Path) -> Result<()> {
        LocalStore.publish(from, to)
    }

    fn remove(&self, path: &Path) -> Result<()> {
        LocalStore.remove(path)
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        LocalStore.exists(path)
    }

    fn create_dir(&self, path: &Path) -> Result<()> {
        LocalStore.create_dir(path)
    }

    fn is_dir(&self, path: &Path) -> Result<bool> {
        LocalStore.is_dir(path)
    }

    fn names_in(&self, directory: &Path) -> Result<Vec<String>> {
        LocalStore.names_in(directory)
    }

    fn remove_dir(&self, path: &Path) -> Result<()> {
        LocalStore.remove_dir(path)
    }

    fn resolve(&self, path: &Path) -> Result<PathBuf> {
        LocalStore.resolve(path)
    }

    fn copy_permissions(&self, from: &Path, to: &Path) -> Result<()> {
        LocalStore.copy_permissions(from, to)
    }

    fn sync_names(&self, path: &Path) -> Result<()> {
        LocalStore.sync_names(path)
    }

    fn enclosed(&self, _: &Path) -> Result<Arc<dyn Store>> {
        Ok(Arc::new(self.clone()))
    }
}

impl File for MortalFile {
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        self.0.read_at(offset, buf)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.1.count();
        self.0.write_at(offset, bytes)
    }

    fn len(&self) -> Result<u64> {
        self.0.len()
    }

    fn set_len(&self, len: u64) -> Result<()> {
        self.1.count();
        self.0.set_len(len)
    }

    fn sync(&self) -> Result<()> {
        self.0.sync()
    }
}
