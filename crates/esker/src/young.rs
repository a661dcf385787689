//! Files that this process has made so lately that a loss of power has nothing to take from them.
//!
//! A redefinition always survives the death of its processes: what they wrote is in the system's memory. To survive
//! a loss of power it waits for the disk several times. What it protects by that are values from before: those
//! that were synced, and those that an earlier program closed long enough ago to be on the disk. A file
//! that this process made a moment ago and never synced has neither: without the redefinition, a loss of power
//! would take it as well. So its redefinitions do not wait.
//!
//! Rank 0 knows how old the file is, and decides for all.

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use esker_store::{Access, File, FileId, Stamp, Store};

/// After this long, systems have begun to write out what nobody has synced (Linux: 30 s).
const YOUNG: Duration = Duration::from_secs(30);

/// Files that are remembered at once; of more, those that were closed first are taken for old.
const MOST: usize = 1024;

/// What a change of a file must survive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Survives {
    /// The death of the process.
    Death,
    /// That, and a loss of power.
    PowerLoss,
}

/// Since when an open file is there, if this process made it lately and has promised nothing of it.
#[derive(Debug, Default)]
pub(crate) struct Young(Mutex<Option<Instant>>);

impl Young {
    fn since(&self) -> MutexGuard<'_, Option<Instant>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The file was made, and whoever had its name before had nothing to lose.
    pub(crate) fn begin(&self) {
        *self.since() = Some(Instant::now());
    }

    /// Something of the file is promised from now on.
    pub(crate) fn end(&self) {
        *self.since() = None;
    }

    /// What a change of the file must survive.
    pub(crate) fn survives(&self) -> Survives {
        match *self.since() {
            Some(since) if since.elapsed() < YOUNG => Survives::Death,
            _ => Survives::PowerLoss,
        }
    }

    /// The file is opened again: it is as young as it was, if nobody has changed it since this process closed it.
    pub(crate) fn resume(&self, file: &dyn File) {
        *self.since() = remembered(file);
    }

    /// The file is closed, and no rank writes to it any more.
    pub(crate) fn leave(&self, file: &dyn File) {
        let Some(since) = *self.since() else { return };
        if let (Ok(Some(id)), Ok(Some(stamp))) = (file.id(), file.stamp()) {
            let mut closed = closed();
            closed.retain(|left| left.id != id && left.since.elapsed() < YOUNG);
            if closed.len() >= MOST {
                closed.remove(0);
            }
            closed.push(Left { id, stamp, since });
        }
    }
}

/// Whether what has this name would be missed after a loss of power.
pub(crate) fn would_be_missed(store: &dyn Store, path: &Path) -> bool {
    match store.exists(path) {
        Ok(false) => false,
        // What cannot be looked at may be anything.
        _ => store.open(path, Access::Read).map_or(true, |file| {
            !file.is_empty().unwrap_or(false)
                && remembered(&*file).is_none_or(|since| since.elapsed() >= YOUNG)
        }),
    }
}

/// A young file as this process left it.
struct Left {
    id: FileId,
    stamp: Stamp,
    since: Instant,
}

static CLOSED: Mutex<Vec<Left>> = Mutex::new(Vec::new());

fn closed() -> MutexGuard<'static, Vec<Left>> {
    CLOSED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Since when a file is there that this process closed, and nobody has changed.
fn remembered(file: &dyn File) -> Option<Instant> {
    let (id, stamp) = (file.id().ok()??, file.stamp().ok()??);
    closed().iter().find(|left| left.id == id && left.stamp == stamp).map(|left| left.since)
}
