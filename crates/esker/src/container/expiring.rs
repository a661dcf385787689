//! Expiry: versions that may not be opened any more, so that what only they need can go.

use std::ops::RangeInclusive;
use std::path::Path;

use esker_format::history::Branch;
use esker_history::Keep;
use esker_store::Store;

use super::noting::Notes;
use super::versions::now;
use crate::error::Result;

/// What [`expire`] did, or would do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Expired {
    /// The versions that have expired just now, in ranges.
    pub versions: Vec<RangeInclusive<u64>>,
    /// The version that says so; `None` in a dry run, or if there was nothing to expire.
    pub number: Option<u64>,
}

/// Lets versions of the container at `path` expire that `keep` does not want: they cannot be opened any more, and [`gc`](crate::gc) removes what only they
/// need. The newest version, those with tags and those that branches began with are always kept. Not collective: one process does it, and
/// with `dry_run` only says what it would do.
///
/// It is a version of its own, with the values of the one before it. A writer that had opened the container before versions were committed that have
/// expired since cannot tell any more what they changed: its next commit is an error.
///
/// ```
/// # use esker::*;
/// # fn main() -> Result<()> {
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("run.esk");
/// let mut def = Dataset::create(&path, CreateOptions::new().layout(Layout::Log))?;
/// let v = def.add_var("v", ExternalType::Int, &[])?;
/// let mut ds = def.enddef()?;
/// for step in 0..5 {
///     ds.put(v, &Selection::all(), &[step])?;
///     ds.sync()?;
/// }
/// ds.close()?;
/// let keep = Keep { last: 2, ..Keep::default() };
/// let expired = esker::expire(&esker_store::LocalStore, &path, keep, false)?;
/// assert_eq!(expired.versions, [1..=4]);
/// assert!(Dataset::open(dir.path().join("run.esk@4")).is_err());
/// assert!(Dataset::open(dir.path().join("run.esk@5")).is_ok());
/// # Ok(()) }
/// ```
pub fn expire(store: &dyn Store, path: &Path, keep: Keep, dry_run: bool) -> Result<Expired> {
    let notes = Notes::open(store, path, "whose versions do not expire")?;
    let (main, history) = (Branch::main(), &notes.history);
    let failed = |error| notes.failed(error);
    // What is committed from here on is newer than all that expires.
    let base = history.newest(&main).map_err(failed)?;
    let versions = history.to_expire(&main, keep).map_err(failed)?;
    let number = match versions.is_empty() || dry_run {
        true => None,
        false => Some(notes.add(false, |history| {
            let made = history.let_expire((&main, base), &versions, "expire", now());
            made.map_err(failed)
        })?),
    };
    Ok(Expired { versions, number })
}
