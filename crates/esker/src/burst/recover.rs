//! Finishing what a session that died has left in its logs.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use esker_store::{Access, Leftover, LocalStore, Store, leftovers};

use super::found::Found;
use super::names::directory_of;
use super::reader::Unusable;
use super::replay::{Damaged, Logs};
use crate::base::classic_of;
use crate::dataset::Dataset;
use crate::error::{Error, Result};
use crate::hints::Hints;
use crate::log::LogDamage;
use crate::options::{FillMode, OpenOptions};
use crate::writer;

/// How [`recover`] goes about it.
#[derive(Debug, Clone)]
pub struct RecoverOptions {
    dirs: Vec<PathBuf>,
    keep: bool,
    look_only: bool,
    fill: FillMode,
    store: Arc<dyn Store>,
}

impl Default for RecoverOptions {
    fn default() -> Self {
        let store = Arc::new(LocalStore);
        let (dirs, fill) = (Vec::new(), FillMode::Fill);
        RecoverOptions { dirs, keep: false, look_only: false, fill, store }
    }
}

impl RecoverOptions {
    /// Looks where the hint `nc_burst_buf_dirname` of the environment says, and beside the file.
    pub fn new() -> RecoverOptions {
        RecoverOptions::default()
    }

    /// Looks in this directory, in place of the one of the environment. May be given several times:
    /// burst buffers may be directories of each node.
    pub fn dir(mut self, dir: impl Into<PathBuf>) -> Self {
        self.dirs.push(dir.into());
        self
    }

    /// Whether the logs stay. By default they are removed when nothing of them is missing.
    pub fn keep(mut self, keep: bool) -> Self {
        self.keep = keep;
        self
    }

    /// Only tells what there is.
    pub fn look_only(mut self, look_only: bool) -> Self {
        self.look_only = look_only;
        self
    }

    /// What values of new records are that nobody wrote: what the session had.
    pub fn fill(mut self, fill: FillMode) -> Self {
        self.fill = fill;
        self
    }

    /// Where the files are: another store than the local file system.
    pub fn store(mut self, store: Arc<dyn Store>) -> Self {
        self.store = store;
        self
    }
}

/// What [`recover`] found and did.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Recovery {
    /// Logs of the file that were found.
    pub logs: u64,
    /// Ranks that the session had, if a session had not ended.
    pub ranks: u32,
    /// Ranks whose logs are not there.
    pub missing: Vec<u32>,
    /// Writes that were replayed.
    pub entries: u64,
    /// Records that the file has now.
    pub records: u64,
    /// What could not be replayed, with its place.
    pub damages: Vec<LogDamage>,
    /// Whether the logs were removed.
    pub removed: bool,
    /// Sub-files that were given their names, which a program that died had not done.
    pub named: Vec<PathBuf>,
    /// Sub-files that are missing or not whole, and why. Nothing is written to a dataset that has
    /// such: what they had is nowhere else, and zeros would hide it.
    pub subfiles: Vec<(PathBuf, String)>,
    /// Files beside it that have not taken its name: what processes that died have left, or others make
    /// just now. They are no part of it, and stay.
    pub leftovers: Vec<Leftover>,
}

impl Recovery {
    /// Whether everything is in the file.
    pub fn is_complete(&self) -> bool {
        self.missing.is_empty() && self.damages.is_empty() && self.subfiles.is_empty()
    }
}

/// Finds the logs of a classic file whose session died, and replays what is not in the file yet,
/// in the order in which it was written. What is damaged is told, and the rest is replayed. Sub-files
/// get the names that the session did not give them. May be done again, with the same result.
pub fn recover(path: impl AsRef<Path>, options: &RecoverOptions) -> Result<Recovery> {
    let store = &*options.store;
    // The logs of a folder are those of the classic file in it.
    let path = store.resolve(&classic_of(store, path.as_ref())?)?;
    let mut dirs = options.dirs.clone();
    if dirs.is_empty() {
        dirs.push(Hints::default().with_environment().burst_dirname.into());
    }
    dirs.push(directory_of(&path));
    let found = Found::look(store, &path, &dirs)?;
    if !options.look_only {
        found.require_dead(store, &path)?;
    }
    let (logs, leftovers) = (found.logs.len() as u64, leftovers(store, &path)?);
    let mut recovery = Recovery { logs, leftovers, ..Recovery::default() };
    let open = OpenOptions { burst: false, ..OpenOptions::new() }.store(options.store.clone());
    if !look_at_subfiles(&Dataset::open_with(&path, open.clone())?, options, &mut recovery)? {
        return Ok(recovery);
    }
    let open = open.writable(!options.look_only).fill(options.fill);
    let mut dataset = Dataset::open_with(&path, open)?;
    recovery.records = dataset.numrecs();
    let unfinished = found.unfinished();
    if let [_, _, ..] = unfinished[..] {
        let why = "logs of several sessions have data that are not in the file, and nothing says \
                   which session was the last: leave one session's logs in the directories";
        return Err(Error::BurstBuffer { path, why: why.to_string() });
    }
    for headless in &found.headless {
        let what = format!("{} has no head that can be read", headless.display());
        recovery.damages.push(LogDamage { rank: 0, what });
    }
    if let [identity] = unfinished[..] {
        recovery.ranks = found.of(identity).map(|log| log.head.ranks).max().unwrap_or(0);
        recovery.missing = found.missing(identity);
        let sources = found.of(identity).map(|log| log.source.clone()).collect();
        let mut logs = Logs::new(sources, found.applied(identity), &dataset.ground.base.hints);
        let existing = dataset.numrecs();
        let has_records = |var: u64| {
            let variable = usize::try_from(var).ok().and_then(|var| dataset.schema().vars.at(var));
            variable.is_some_and(|variable| dataset.schema().is_record(variable))
        };
        let records = existing.max(found.records(identity, has_records));
        dataset.ground.require_storable(records)?;
        if !options.look_only {
            dataset.replaying().replay(&mut logs, (existing, records), Damaged::IsLeftOut)?;
            dataset.sync()?;
        } else {
            logs.look(dataset.replaying().target())?;
        }
        recovery.entries = logs.entries;
        recovery.records = records;
        let told =
            |Unusable { rank, what }: &Unusable| LogDamage { rank: *rank, what: what.clone() };
        recovery.damages.extend(logs.unusable.iter().map(told));
    }
    dataset.close()?;
    if recovery.is_complete() && !options.keep && !options.look_only {
        for file in &found.files {
            store.remove(file)?;
        }
        recovery.removed = !found.files.is_empty();
    }
    Ok(recovery)
}

/// Gives sub-files their names that have not taken them, and tells what is wrong with the others.
/// Gives whether the dataset may be written.
fn look_at_subfiles(
    dataset: &Dataset,
    options: &RecoverOptions,
    recovery: &mut Recovery,
) -> Result<bool> {
    recovery.records = dataset.numrecs();
    recovery.subfiles = dataset.subfile_faults();
    let hidden = dataset.hidden_subfiles();
    // Who is writing the dataset gives them their names.
    let _lock = match hidden.is_empty() || options.look_only {
        true => None,
        false => {
            let main = options.store.open(&dataset.ground.base.path, Access::ReadWrite)?;
            writer::lock(&dataset.ground.base, &main)?
        }
    };
    for (named, grown) in hidden {
        if !options.look_only {
            options.store.rename(&grown, &named)?;
        }
        recovery.named.push(named);
    }
    Ok(recovery.subfiles.is_empty())
}
