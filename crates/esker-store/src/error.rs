//! What can go wrong with bytes at rest.

use std::io;
use std::path::PathBuf;

use esker_text::{sentence, shown};

use crate::{named_path, shown_path};

/// A result of this crate.
pub type Result<T> = std::result::Result<T, StoreError>;

/// A call of a store that failed, with the file and the place.
#[derive(Debug, thiserror::Error)]
#[error("{}: {} failed: {}", shown_path(path), shown(action), sentence(source))]
pub struct StoreError {
    /// The file, as the user calls it: a draft's name is nobody's concern.
    pub path: PathBuf,
    /// What was tried: `open`, `write of 4096 bytes at offset 512`.
    pub action: String,
    /// What the system said.
    #[source]
    pub source: io::Error,
}

impl StoreError {
    /// An error of `action` on `path`.
    pub fn new(path: impl Into<PathBuf>, action: impl Into<String>, source: io::Error) -> Self {
        StoreError { path: named_path(&path.into()), action: action.into(), source }
    }

    /// The kind that the system gave.
    pub fn kind(&self) -> io::ErrorKind {
        self.source.kind()
    }
}
