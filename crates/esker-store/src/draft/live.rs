//! The drafts of this process that have not taken their names: what a program that is told to end
//! has to remove.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What becomes of a draft that nobody will finish.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// It is a file: it goes.
    File,
    /// It is a folder: it goes with what is in it.
    Folder,
    /// It is an empty file that was found: it is emptied again.
    Found,
}

static LIVE: Mutex<BTreeMap<PathBuf, Kind>> = Mutex::new(BTreeMap::new());

fn live() -> MutexGuard<'static, BTreeMap<PathBuf, Kind>> {
    LIVE.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(super) fn enter(path: &Path, kind: Kind) {
    // A program that changes its directory would not find it again.
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
    live().insert(path, kind);
}

pub(super) fn leave(path: &Path) {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
    live().remove(&path);
}

pub(super) fn is_live(path: &Path) -> bool {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
    live().contains_key(&path)
}

/// Stands for a file that grows under another name and that somebody else removes or names: as long as it
/// lives, a program that ends at a signal removes the file.
#[derive(Debug)]
pub struct LiveDraft(PathBuf);

impl LiveDraft {
    /// The file of this name.
    pub fn new(path: &Path) -> LiveDraft {
        enter(path, Kind::File);
        LiveDraft(path.to_path_buf())
    }

    /// The folder of this name, with what is in it.
    pub fn folder(path: &Path) -> LiveDraft {
        enter(path, Kind::Folder);
        LiveDraft(path.to_path_buf())
    }
}

impl Drop for LiveDraft {
    fn drop(&mut self) {
        leave(&self.0);
    }
}

/// Removes the files and folders in the local file system that this process has begun and that have
/// not taken their names, for a program that ends at a signal. Gives how many there were. Nothing may be
/// written afterwards: the caller ends.
pub fn remove_live_drafts() -> usize {
    // Kept locked, so that nothing that is removed takes its name and nothing begins: the process is ending.
    let mut live = live();
    for (path, kind) in live.iter() {
        // What cannot be removed is told by `esker check`.
        let _ = match kind {
            Kind::File => fs::remove_file(path),
            Kind::Folder => fs::remove_dir_all(path),
            Kind::Found => fs::File::options().write(true).open(path).and_then(|f| f.set_len(0)),
        };
    }
    let count = live.len();
    live.clear();
    count
}
