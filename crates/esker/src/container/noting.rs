//! Notes: commits that change no value, but say something of versions: names, what has expired, which writers were given up.
//!
//! Whoever writes at the same time goes behind a note as if nobody had been there. A note waits for the disk, and so promises everything
//! that it consists of: that is made safe before it, and what others have committed meanwhile before its promise.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use esker_format::log::{Manifest, Session};
use esker_history::History;
use esker_store::{Access, Store};

use super::deciding::{require_countable, unsafe_logs};
use super::promises::prepare;
use super::versions::{
    Found, find, history, manifest_of, new_writer, of_history, promise_note, settle_names,
};
use super::{Format, Mark, Trust, broken, is_container};
use crate::error::{Error, Result};

/// The container at `path`, behind links, and the store closed around it.
pub(super) fn inside(store: &dyn Store, path: &Path) -> Result<(Arc<dyn Store>, PathBuf)> {
    if !is_container(store, path)? {
        return Err(broken(path, "it is no container, and has no versions"));
    }
    let path = store.resolve(path)?;
    Ok((store.enclosed(&path)?, path))
}

/// A container to which a note is to be added.
pub(super) struct Notes {
    pub(super) store: Arc<dyn Store>,
    /// Behind links.
    pub(super) path: PathBuf,
    pub(super) history: History,
    /// The newest version when it was opened.
    pub(super) found: Found,
}

impl Notes {
    /// The container at `path`; `lacks` is what one of format 1 has not.
    pub(super) fn open(store: &dyn Store, path: &Path, lacks: &str) -> Result<Notes> {
        let (store, path) = inside(store, path)?;
        if Mark::require(&*store, &path)?.format() == Format::One {
            let why =
                format!("it is of format 1, {lacks}; `esker copy` makes one of format 2 of it");
            return Err(broken(&path, why));
        }
        let found = find(&store, &path, None)?;
        let top = found.next.saturating_sub(1);
        require_countable(&path, found.version, top)?;
        let trust = Trust::new(&store, &path, false)?.up_to(top);
        let history = history(&store, &path, new_writer()).witnessed(Arc::new(trust));
        Ok(Notes { store, path, history, found })
    }

    /// Waits until what others need not have waited for is safe.
    fn sync(&self, sessions: &[Session]) -> Result<()> {
        for file in unsafe_logs(&self.path, sessions, self.found.safe) {
            self.store.open(&file, Access::ReadWrite)?.sync()?;
        }
        Ok(())
    }

    /// Makes a note, by what commits it and gives its number, and promises it. `names` says whether it gives names to versions.
    pub(super) fn add(
        &self,
        names: bool,
        commit: impl FnOnce(&History) -> Result<u64>,
    ) -> Result<u64> {
        let Notes { store, path, history, found } = self;
        if found.safe < found.version {
            self.sync(&found.edition.manifest()?.sessions)?;
        }
        prepare(&**store, path)?;
        settle_names(&**store, path)?;
        let made = commit(history)?;
        let manifest: Manifest = manifest_of(history, path, made)?;
        if made != found.next {
            // Others have committed meanwhile, and need not have waited for the disk.
            self.sync(&manifest.sessions)?;
        }
        promise_note(&**store, path, &manifest, (found.first, names))?;
        Ok(made)
    }

    /// An error of the history, as one of this container.
    pub(super) fn failed(&self, error: esker_history::Error) -> Error {
        of_history(&self.path, error)
    }
}
