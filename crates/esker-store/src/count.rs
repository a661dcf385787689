//! A store that counts.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::{Access, CreateMode, File, Result, Store};

/// How often each call was made and how many bytes went through.
#[derive(Debug, Default)]
pub struct Counts {
    /// Calls of `read_at`.
    pub reads: AtomicU64,
    /// Bytes they gave.
    pub bytes_read: AtomicU64,
    /// Calls of `write_at`.
    pub writes: AtomicU64,
    /// Bytes they took.
    pub bytes_written: AtomicU64,
    /// Calls of `sync`.
    pub syncs: AtomicU64,
}

/// Wraps a store and counts the calls on its files.
#[derive(Debug, Clone)]
pub struct CountingStore<S> {
    inner: S,
    counts: Arc<Counts>,
}

impl<S: Store> CountingStore<S> {
    /// Counts calls on `inner`.
    pub fn new(inner: S) -> Self {
        CountingStore { inner, counts: Arc::default() }
    }

    /// The counts so far.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    fn wrap(&self, inner: Arc<dyn File>) -> Arc<dyn File> {
        Arc::new(CountingFile { inner, counts: self.counts.clone() })
    }
}

impl<S: Store> Store for CountingStore<S> {
    fn open(&self, path: &Path, access: Access) -> Result<Arc<dyn File>> {
        self.inner.open(path, access).map(|f| self.wrap(f))
    }

    fn create(&self, path: &Path, mode: CreateMode) -> Result<Arc<dyn File>> {
        self.inner.create(path, mode).map(|f| self.wrap(f))
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        self.inner.rename(from, to)
    }

    fn publish(&self, from: &Path, to: &Path) -> Result<()> {
        self.inner.publish(from, to)
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

    fn remove(&self, path: &Path) -> Result<()> {
        self.inner.remove(path)
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        self.inner.exists(path)
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

#[derive(Debug)]
struct CountingFile {
    inner: Arc<dyn File>,
    counts: Arc<Counts>,
}

impl File for CountingFile {
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        let n = self.inner.read_at(offset, buf)?;
        self.counts.reads.fetch_add(1, Ordering::Relaxed);
        self.counts.bytes_read.fetch_add(n as u64, Ordering::Relaxed);
        Ok(n)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.inner.write_at(offset, bytes)?;
        self.counts.writes.fetch_add(1, Ordering::Relaxed);
        self.counts.bytes_written.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        Ok(())
    }

    fn len(&self) -> Result<u64> {
        self.inner.len()
    }

    fn set_len(&self, len: u64) -> Result<()> {
        self.inner.set_len(len)
    }

    fn sync(&self) -> Result<()> {
        self.counts.syncs.fetch_add(1, Ordering::Relaxed);
        self.inner.sync()
    }

    fn block_size(&self) -> u64 {
        self.inner.block_size()
    }
}
