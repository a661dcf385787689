//! Files that this process has made so lately that a loss of power has nothing to take from them.
//!
//! A redefinition always survives the death of its processes: what they wrote is in the system's memory. To survive
//! a loss of power it waits for the disk several times. What it protects by that are values from before: those
//! that were synced, and those that an earlier program closed long enough ago to be on the disk. A file
//! that this process made a moment ago and never synced has neither: without the redefinition, a loss of power
//! would take it as well. So its redefinitions do not wait.
//!
//! A file that took the place of another is young too, but until its *name* is safe a loss of power brings back
//! the other one, which must be whole then. So its first redefinition waits once, for the name.
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

/// What is known of a file that this process made.
#[derive(Debug, Clone, Copy)]
struct Age {
    since: Instant,
    /// Whether a loss of power might bring back what had its name before, and would be missed.
    displaces: bool,
}

impl Age {
    fn is_young(&self) -> bool {
        self.since.elapsed() < YOUNG
    }
}

/// How old an open file is, if this process made it lately and has promised nothing of it.
#[derive(Debug, Default)]
pub(crate) struct Young(Mutex<Option<Age>>);

impl Young {
    fn age(&self) -> MutexGuard<'_, Option<Age>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The file was made; `displaces` if something had its name that would be missed.
    pub(crate) fn begin(&self, displaces: bool) {
        *self.age() = Some(Age { since: Instant::now(), displaces });
    }

    /// Something of the file is promised from now on.
    pub(crate) fn end(&self) {
        *self.age() = None;
    }

    /// What a change of the file at `path` must survive. Where that depends on the file's name, the name is made
    /// safe first.
    pub(crate) fn survives(&self, store: &dyn Store, path: &Path) -> Survives {
        let mut age = self.age();
        let Some(age) = age.as_mut().filter(|age| age.is_young()) else {
            return Survives::PowerLoss;
        };
        if age.displaces && store.sync_names(path).is_err() {
            return Survives::PowerLoss;
        }
        age.displaces = false;
        Survives::Death
    }

    /// The file is opened again: it is as young as it was, if nobody has changed it since this process closed it.
    pub(crate) fn resume(&self, file: &dyn File) {
        *self.age() = remembered(file);
    }

    /// The file is closed, and no rank writes to it any more.
    pub(crate) fn leave(&self, file: &dyn File) {
        let Some(age) = *self.age() else { return };
        if let (Ok(Some(id)), Ok(Some(stamp))) = (file.id(), file.stamp()) {
            let mut closed = closed();
            closed.retain(|left| left.id != id && left.age.is_young());
            if closed.len() >= MOST {
                closed.remove(0);
            }
            closed.push(Left { id, stamp, age });
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
                && remembered(&*file).is_none_or(|age| !age.is_young() || age.displaces)
        }),
    }
}

/// A young file as this process left it.
struct Left {
    id: FileId,
    stamp: Stamp,
    age: Age,
}

static CLOSED: Mutex<Vec<Left>> = Mutex::new(Vec::new());

fn closed() -> MutexGuard<'static, Vec<Left>> {
    CLOSED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How old a file is that this process closed, and nobody has changed.
fn remembered(file: &dyn File) -> Option<Age> {
    let (id, stamp) = (file.id().ok()??, file.stamp().ok()??);
    closed().iter().find(|left| left.id == id && left.stamp == stamp).map(|left| left.age)
}
