//! A store that waits when a test says so.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use crate::{Access, CreateMode, File, Result, Store};

/// Wraps a store whose files' reads, writes and syncs wait as long as a gate is closed. So a test
/// can tell what goes on while a device is slow, without being slow itself.
#[derive(Debug, Clone)]
pub struct GatedStore<S> {
    inner: S,
    gate: Arc<Gate>,
}

#[derive(Debug, Default)]
struct Gate {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Files whose paths end in this wait.
    closed: Option<PathBuf>,
    waiting: usize,
}

impl Gate {
    fn pass(&self, path: &Path) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let is_closed = |state: &State| state.closed.as_ref().is_some_and(|c| path.ends_with(c));
        state.waiting += 1;
        self.changed.notify_all();
        while is_closed(&state) {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.waiting -= 1;
    }
}

impl<S: Store> GatedStore<S> {
    /// A gate before `inner`, open.
    pub fn new(inner: S) -> Self {
        GatedStore { inner, gate: Arc::default() }
    }

    /// Lets calls on files whose paths end in `path` wait; an empty one is the end of all.
    pub fn close(&self, path: impl Into<PathBuf>) {
        let mut state = self.gate.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.closed = Some(path.into());
    }

    /// Lets all calls go on.
    pub fn open_gate(&self) {
        let mut state = self.gate.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.closed = None;
        self.gate.changed.notify_all();
    }

    /// Returns as soon as so many calls wait.
    pub fn until_waiting(&self, calls: usize) {
        let mut state = self.gate.state.lock().unwrap_or_else(PoisonError::into_inner);
        while state.waiting < calls {
            state = self.gate.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn wrap(&self, path: &Path, inner: Arc<dyn File>) -> Arc<dyn File> {
        Arc::new(GatedFile { path: path.to_path_buf(), inner, gate: self.gate.clone() })
    }
}

impl<S: Store> Store for GatedStore<S> {
    fn open(&self, path: &Path, access: Access) -> Result<Arc<dyn File>> {
        self.inner.open(path, access).map(|f| self.wrap(path, f))
    }

    fn create(&self, path: &Path, mode: CreateMode) -> Result<Arc<dyn File>> {
        self.inner.create(path, mode).map(|f| self.wrap(path, f))
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
struct GatedFile {
    path: PathBuf,
    inner: Arc<dyn File>,
    gate: Arc<Gate>,
}

impl File for GatedFile {
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        self.gate.pass(&self.path);
        self.inner.read_at(offset, buf)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.gate.pass(&self.path);
        self.inner.write_at(offset, bytes)
    }

    fn len(&self) -> Result<u64> {
        self.inner.len()
    }

    fn set_len(&self, len: u64) -> Result<()> {
        self.inner.set_len(len)
    }

    fn sync(&self) -> Result<()> {
        self.gate.pass(&self.path);
        self.inner.sync()
    }

    fn block_size(&self) -> u64 {
        self.inner.block_size()
    }
}
