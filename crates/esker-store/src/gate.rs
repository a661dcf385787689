//! A store that waits when a test says so.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use crate::{File, FileLayer, Layer, Result, Store, named_path};

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
    /// Files whose paths, or those that they will have, end in this wait.
    closed: Option<PathBuf>,
    waiting: usize,
}

impl Gate {
    fn pass(&self, path: &Path) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let path = named_path(path);
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
}

impl<S: Store + Clone> Layer for GatedStore<S> {
    fn below(&self) -> &dyn Store {
        &self.inner
    }

    fn cover(&self, path: &Path, inner: Arc<dyn File>) -> Arc<dyn File> {
        Arc::new(GatedFile { path: path.to_path_buf(), inner, gate: self.gate.clone() })
    }
}

#[derive(Debug)]
struct GatedFile {
    path: PathBuf,
    inner: Arc<dyn File>,
    gate: Arc<Gate>,
}

impl FileLayer for GatedFile {
    fn below(&self) -> &dyn File {
        &*self.inner
    }

    fn read(&self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        self.gate.pass(&self.path);
        self.inner.read_at(offset, buf)
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.gate.pass(&self.path);
        self.inner.write_at(offset, bytes)
    }

    fn settle(&self) -> Result<()> {
        self.gate.pass(&self.path);
        self.inner.sync()
    }
}
