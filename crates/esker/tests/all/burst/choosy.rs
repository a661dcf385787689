//! A store that refuses the writes that a test chooses.

use std::fmt;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use esker_store::{File, FileLayer, Layer, Result, Store, StoreError};

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

impl<S: Store + Clone> Layer for ChoosyStore<S> {
    fn below(&self) -> &dyn Store {
        &self.inner
    }

    fn cover(&self, path: &Path, inner: Arc<dyn File>) -> Arc<dyn File> {
        Arc::new(ChoosyFile { path: path.to_path_buf(), inner, refuses: self.refuses.clone() })
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

impl FileLayer for ChoosyFile {
    fn below(&self) -> &dyn File {
        &*self.inner
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        match (self.refuses)(&self.path, offset, bytes.len() as u64) {
            None => self.inner.write_at(offset, bytes),
            Some(kind) => {
                // A device that fills up takes a part of it.
                self.inner.write_at(offset, &bytes[..bytes.len() / 2])?;
                Err(StoreError::new(&self.path, "write", kind.into()))
            }
        }
    }
}
