//! Removing what no version needs that can be opened: runs, logs, and what commits that were killed have left.
//!
//! Safety needs no clock. What is removed is needed by no version, and can come to be needed by none: a session whose logs go is *fenced* first, by a
//! commit behind which it can commit nothing; and what it committed before that is looked at once more. So to believe wrongly that a writer is
//! gone costs what it has not committed, never a version.

use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use esker_format::history::Branch;
use esker_format::inside;
use esker_history::{Garbage, History};
use esker_store::{Access, Store};

use super::broken;
use super::needing::{Kind, Needs, Pieces, pieces};
use super::noting::Notes;
use super::versions::now;
use crate::error::Result;

/// How [`gc`] collects.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GcOptions {
    /// Only say what would be done.
    pub dry_run: bool,
    /// Sessions whose writers are given up, by what the names of their logs begin with: what they have not committed is void.
    pub abandoned: Vec<String>,
    /// Nobody is writing: all sessions that no version needs are given up.
    pub all_idle: bool,
}

/// Logs that no version needs, and whose writer may still commit them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftLogs {
    /// What the names of the session's logs begin with.
    pub session: String,
    /// Bytes in them.
    pub bytes: u64,
}

/// What [`gc`] did, or would do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Collection {
    /// Files that were removed, from the container on.
    pub files: Vec<PathBuf>,
    /// Bytes in them.
    pub bytes: u64,
    /// Sessions that can commit nothing any more.
    pub given_up: Vec<String>,
    /// Logs that no version needs, and that are there because somebody may still write them.
    pub left: Vec<LeftLogs>,
    /// The version that fences what was given up, if one was needed.
    pub number: Option<u64>,
    /// What its user has to know.
    pub notes: Vec<String>,
}

/// Removes from the container at `path` what no version needs that can be opened: runs of versions that have expired, logs that recoveries have
/// written anew, drafts of commits that were killed, and logs of sessions that are given up. Not collective: one process does it.
///
/// Logs that were never committed, or are no longer part of any version, may have a writer who commits to them yet; they stay, and are
/// told, unless the options give it up: then its next commit is an error on all of its ranks. Readers of versions that have not
/// expired, and all other writers, notice nothing. One that is killed leaves every version that can be opened, and the next one goes on.
///
/// ```
/// # use esker::*;
/// # fn main() -> Result<()> {
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("run.esk");
/// # let mut define = Dataset::create(&path, CreateOptions::new().layout(Layout::Log))?;
/// # let t = define.add_var("t", ExternalType::Int, &[])?;
/// # let mut dataset = define.enddef()?;
/// # dataset.put(t, &Selection::all(), &[1])?;
/// # dataset.close()?;
/// let collected = esker::gc(&esker_store::LocalStore, &path, &GcOptions::default())?;
/// assert_eq!((collected.files.len(), collected.left.len()), (0, 0));
/// # Ok(()) }
/// ```
pub fn gc(store: &dyn Store, path: &Path, options: &GcOptions) -> Result<Collection> {
    let notes =
        Notes::open(store, path, "whose versions do not expire, so that there is no garbage")?;
    let mut plan = Plan::of(&notes, options)?;
    let mut collection = Collection {
        given_up: plan.given_up(),
        left: plan.left(&notes)?,
        notes: std::mem::take(&mut plan.notes),
        ..Collection::default()
    };
    let fences = plan.fences();
    if !options.dry_run && !fences.is_empty() {
        let fence = |history: &History| {
            let mut made = 0;
            // `main` is the last of them.
            for branch in &history.all_branches()? {
                made = history.fence(branch, &fences, now())?;
            }
            Ok(made)
        };
        let number = notes.add(false, |history| fence(history).map_err(|e| notes.failed(e)))?;
        collection.number = Some(number);
        plan.look_again(&notes)?;
    }
    let (names, bytes) = plan.files(&notes)?;
    collection.files = names.into_iter().map(PathBuf::from).collect();
    collection.bytes = bytes;
    if !options.dry_run {
        plan.carry_out(&notes)?;
    }
    Ok(collection)
}

/// What goes.
struct Plan {
    runs: Garbage,
    /// Drafts, by their names in the container.
    drafts: Vec<String>,
    /// Files of sessions that are needed, but not these files.
    replaced: Vec<String>,
    /// All files of sessions: they go behind a fence.
    sessions: BTreeMap<(String, u64), Pieces>,
    /// Those whose writers may still commit.
    left: BTreeMap<(String, u64), Pieces>,
    /// Writers that are fenced already.
    fenced: BTreeSet<u64>,
    notes: Vec<String>,
}

impl Plan {
    fn of(notes: &Notes, options: &GcOptions) -> Result<Plan> {
        let (store, path, history) = (&*notes.store, &notes.path, &notes.history);
        let failed = |error| notes.failed(error);
        // Before versions are asked what they need: what comes later is not in the list.
        let all = pieces(store, path)?;
        let abandoned = abandoned(path, &all, options)?;
        let needs = Needs::find(history, &all).map_err(failed)?;
        let fenced =
            history.last(&Branch::main()).and_then(|last| last.fenced()).map_err(failed)?;
        let mut dead = |writer: u64| options.all_idle || abandoned.contains(&writer);
        let mut plan = Plan {
            runs: history.garbage(&mut dead).map_err(failed)?,
            drafts: drafts(notes)?,
            replaced: Vec::new(),
            sessions: BTreeMap::new(),
            left: BTreeMap::new(),
            fenced,
            notes: needs.unknown.iter().cloned().collect(),
        };
        if !notes.found.notes.is_empty() {
            // A recovery may find in logs what a version had that is lost.
            plan.notes.extend(notes.found.notes.iter().cloned());
            plan.notes
                .push("no logs are removed; `esker recover` takes in what they have".to_string());
        }
        if !plan.notes.is_empty() {
            return Ok(plan);
        }
        for (session, pieces) in all {
            let identity = session.1;
            match needs.of(identity) {
                Some(revisions) => {
                    if abandoned.contains(&identity) {
                        plan.notes.push(format!(
                            "versions that can be opened need session {}: its logs stay",
                            session.0
                        ));
                    }
                    plan.replace(pieces, revisions, options.all_idle);
                }
                // That it was noted as aborted does not tell that nobody has it open.
                None if plan.fenced.contains(&identity) || dead(identity) => {
                    plan.sessions.insert(session, pieces);
                }
                None => {
                    plan.left.insert(session, pieces);
                }
            }
        }
        Ok(plan)
    }

    /// Metadata logs of a session that recoveries have written anew: those before the ones that are needed. Those behind them may be what a recovery is writing.
    fn replace(&mut self, pieces: Pieces, needed: &BTreeSet<u32>, all_idle: bool) {
        let newest = needed.last().copied().unwrap_or(0);
        let goes = |kind: &Kind| match kind {
            Kind::Meta(revision) => !needed.contains(revision) && (*revision < newest || all_idle),
            Kind::Data | Kind::Note => false,
        };
        let files = pieces.files.into_iter().filter(|(kind, _)| goes(kind));
        self.replaced.extend(files.map(|(_, name)| format!("segments/{name}")));
    }

    /// The writers that must be fenced first.
    fn fences(&self) -> BTreeSet<u64> {
        let mut writers = self.runs.writers();
        writers.extend(self.sessions.keys().map(|(_, identity)| *identity));
        writers.retain(|writer| !self.fenced.contains(writer));
        writers
    }

    fn given_up(&self) -> Vec<String> {
        let fences = self.fences();
        let given_up = self.sessions.keys().filter(|(_, identity)| fences.contains(identity));
        given_up.map(|(stem, _)| stem.clone()).collect()
    }

    fn left(&self, notes: &Notes) -> Result<Vec<LeftLogs>> {
        let bytes = |pieces: &Pieces| -> Result<u64> {
            let names = pieces.files.iter().map(|(_, name)| format!("segments/{name}"));
            names.map(|name| len(notes, &name)).sum()
        };
        let left = self.left.iter().map(|((session, _), pieces)| {
            Ok(LeftLogs { session: session.clone(), bytes: bytes(pieces)? })
        });
        left.collect()
    }

    /// What was committed before the fence is needed.
    fn look_again(&mut self, notes: &Notes) -> Result<()> {
        let needs = Needs::find(&notes.history, &self.sessions).map_err(|e| notes.failed(e))?;
        let is_known = needs.unknown.is_none();
        self.sessions.retain(|(_, identity), _| is_known && needs.of(*identity).is_none());
        Ok(())
    }

    /// The files of sessions, notes last.
    fn logs(&self) -> (Vec<String>, Vec<String>) {
        let all = self.sessions.values().flat_map(|pieces| &pieces.files);
        let (notes, logs): (Vec<_>, Vec<_>) = all.partition(|(kind, _)| *kind == Kind::Note);
        let names = |files: Vec<&(Kind, String)>| {
            files.iter().map(|(_, name)| format!("segments/{name}")).collect()
        };
        (names(logs), names(notes))
    }

    /// Everything that goes, and how many bytes that are.
    fn files(&self, notes: &Notes) -> Result<(Vec<String>, u64)> {
        let (logs, aborted) = self.logs();
        let mut names = self.runs.names();
        for some in [&self.drafts, &self.replaced, &logs, &aborted] {
            names.extend(some.iter().cloned());
        }
        let mut bytes = 0u64;
        for name in &names {
            bytes = bytes.saturating_add(len(notes, name)?);
        }
        Ok((names, bytes))
    }

    fn carry_out(self, notes: &Notes) -> Result<()> {
        let (logs, aborted) = self.logs();
        notes.history.remove(self.runs).map_err(|error| notes.failed(error))?;
        for name in self.drafts.iter().chain(&self.replaced).chain(&logs) {
            remove(notes, name)?;
        }
        if !aborted.is_empty() {
            // A note is needed as long as one of the logs may be there.
            notes.store.sync_names(&notes.path.join("segments").join("x"))?;
        }
        aborted.iter().try_for_each(|name| remove(notes, name))
    }
}

/// The identities of the sessions that are given up by name.
fn abandoned(
    path: &Path,
    all: &BTreeMap<(String, u64), Pieces>,
    options: &GcOptions,
) -> Result<BTreeSet<u64>> {
    let identity = |name: &String| {
        let known = all.keys().find(|(stem, _)| stem == name).map(|(_, identity)| *identity);
        let why = || {
            let name = esker_text::shown(name);
            format!(
                "there are no logs of a session {name}; `esker gc --dry-run` tells of which there are"
            )
        };
        known.ok_or_else(|| broken(path, why()))
    };
    options.abandoned.iter().map(identity).collect()
}

/// Decisions that have not got their names: of commits that were killed, or that are being made and are made again.
fn drafts(notes: &Notes) -> Result<Vec<String>> {
    let mut drafts = Vec::new();
    for branch in notes.history.all_branches().map_err(|error| notes.failed(error))? {
        for folder in [format!("refs/{branch}"), format!("prepared/{branch}")] {
            let inner = notes.path.join(&folder);
            if notes.store.is_dir(&inner)? {
                let names = notes.store.names_in(&inner)?.into_iter();
                let names = names.filter(|name| inside::draft(name).is_some());
                drafts.extend(names.map(|name| format!("{folder}/{name}")));
            }
        }
    }
    Ok(drafts)
}

/// How long a file is; 0 if it is gone.
fn len(notes: &Notes, name: &str) -> Result<u64> {
    match notes.store.open(&notes.path.join(name), Access::Read) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(0),
        opened => Ok(opened?.len()?),
    }
}

fn remove(notes: &Notes, name: &str) -> Result<()> {
    match notes.store.remove(&notes.path.join(name)) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        removed => Ok(removed?),
    }
}
