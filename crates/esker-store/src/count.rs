//! A store that counts.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::{File, FileLayer, Layer, Result, Store};

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
}

impl<S: Store + Clone> Layer for CountingStore<S> {
    fn below(&self) -> &dyn Store {
        &self.inner
    }

    fn cover(&self, _: &Path, inner: Arc<dyn File>) -> Arc<dyn File> {
        Arc::new(CountingFile { inner, counts: self.counts.clone() })
    }
}

#[derive(Debug)]
struct CountingFile {
    inner: Arc<dyn File>,
    counts: Arc<Counts>,
}

impl FileLayer for CountingFile {
    fn below(&self) -> &dyn File {
        &*self.inner
    }

    fn read(&self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        let n = self.inner.read_at(offset, buf)?;
        self.counts.reads.fetch_add(1, Ordering::Relaxed);
        self.counts.bytes_read.fetch_add(n as u64, Ordering::Relaxed);
        Ok(n)
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.inner.write_at(offset, bytes)?;
        self.counts.writes.fetch_add(1, Ordering::Relaxed);
        self.counts.bytes_written.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        Ok(())
    }

    fn settle(&self) -> Result<()> {
        self.counts.syncs.fetch_add(1, Ordering::Relaxed);
        self.inner.sync()
    }
}
