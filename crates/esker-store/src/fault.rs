//! A store that fails when a test says so.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::{File, FileLayer, Layer, Result, Store, StoreError};

/// What happens at the chosen call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The call fails with this kind of error; later calls go through.
    Fail(io::ErrorKind),
    /// The call fails with this kind of error, but of a write the first half has arrived; later
    /// calls go through. (Other calls have no halves: as [`Fault::Fail`].)
    FailHalf(io::ErrorKind),
    /// The process dies before the call: it and every later call fail.
    Kill,
    /// The process dies inside the call: of a write only the first half arrives.
    Tear,
}

/// Wraps a store and lets a fault happen at the n-th call that changes something (write,
/// set_len, create, rename, remove, sync), counted from 0 over all files.
#[derive(Debug, Clone)]
pub struct FaultyStore<S> {
    inner: S,
    plan: Arc<Plan>,
}

#[derive(Debug)]
struct Plan {
    at: u64,
    fault: Fault,
    /// Half a write ends at a multiple of this in the file.
    unit: u64,
    calls: AtomicU64,
    dead: AtomicBool,
}

impl<S: Store> FaultyStore<S> {
    /// `fault` happens at changing call number `at` of `inner`.
    pub fn new(inner: S, at: u64, fault: Fault) -> Self {
        Self::with_sectors(inner, at, fault, 1)
    }

    /// The same, where half a write ends between two sectors of so many bytes, as on a real disk and
    /// in a kernel's page cache.
    pub fn with_sectors(inner: S, at: u64, fault: Fault, unit: u64) -> Self {
        let (calls, dead) = (AtomicU64::new(0), AtomicBool::new(false));
        FaultyStore { inner, plan: Arc::new(Plan { at, fault, unit: unit.max(1), calls, dead }) }
    }

    /// How many changing calls there were, to learn how many faults to try.
    pub fn calls(&self) -> u64 {
        self.plan.calls.load(Ordering::SeqCst)
    }
}

enum Verdict {
    Go,
    /// Half of it happens, and then this is what the caller hears.
    Half(io::Error),
}

impl Plan {
    fn ask(&self, path: &Path, action: &str, halves: bool) -> Result<Verdict> {
        let error = |kind: io::ErrorKind, what: &str| {
            StoreError::new(path, action, io::Error::new(kind, what))
        };
        if self.dead.load(Ordering::SeqCst) {
            return Err(error(io::ErrorKind::Other, "the process is dead (injected)"));
        }
        if self.calls.fetch_add(1, Ordering::SeqCst) != self.at {
            return Ok(Verdict::Go);
        }
        match self.fault {
            Fault::FailHalf(kind) if halves => {
                Ok(Verdict::Half(io::Error::new(kind, "injected, half-way")))
            }
            Fault::Fail(kind) | Fault::FailHalf(kind) => Err(error(kind, "injected")),
            Fault::Kill => {
                self.dead.store(true, Ordering::SeqCst);
                Err(error(io::ErrorKind::Other, "the process died (injected)"))
            }
            Fault::Tear => {
                self.dead.store(true, Ordering::SeqCst);
                Ok(Verdict::Half(io::Error::other("the process died (injected)")))
            }
        }
    }

    fn change<T>(&self, path: &Path, action: &str, call: impl FnOnce() -> Result<T>) -> Result<T> {
        match self.ask(path, action, false)? {
            Verdict::Go => call(),
            // Calls other than writes have no halves: they happen, and then it is over.
            Verdict::Half(died) => {
                call()?;
                Err(StoreError::new(path, action, died))
            }
        }
    }
}

impl<S: Store + Clone> Layer for FaultyStore<S> {
    fn below(&self) -> &dyn Store {
        &self.inner
    }

    fn cover(&self, path: &Path, inner: Arc<dyn File>) -> Arc<dyn File> {
        Arc::new(FaultyFile { path: path.to_path_buf(), inner, plan: self.plan.clone() })
    }

    fn change(
        &self,
        path: &Path,
        action: &str,
        call: &mut dyn FnMut() -> Result<()>,
    ) -> Result<()> {
        self.plan.change(path, action, call)
    }
}

#[derive(Debug)]
struct FaultyFile {
    path: PathBuf,
    inner: Arc<dyn File>,
    plan: Arc<Plan>,
}

impl FileLayer for FaultyFile {
    fn below(&self) -> &dyn File {
        &*self.inner
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        match self.plan.ask(&self.path, "write", true)? {
            Verdict::Go => self.inner.write_at(offset, bytes),
            Verdict::Half(error) => {
                let half = offset.saturating_add(bytes.len() as u64 / 2);
                let end = half - half % self.plan.unit;
                let half = end.saturating_sub(offset) as usize;
                self.inner.write_at(offset, &bytes[..half])?;
                Err(StoreError::new(&self.path, "write", error))
            }
        }
    }

    fn resize(&self, len: u64) -> Result<()> {
        self.plan.change(&self.path, "setting the length", || self.inner.set_len(len))
    }

    fn settle(&self) -> Result<()> {
        self.plan.change(&self.path, "sync", || self.inner.sync())
    }
}
