//! Removing what no version needs.
//!
//! Two kinds of runs go. One that was made for a number which was decided without it is never used: a number is decided once. One
//! that a version had, and that all versions which have it have expired, is not needed. A run for a number that is not decided yet may
//! still be used; if its writer is given up, a *fence* is committed first, behind which that writer's commits are void, and
//! only then it goes. So a wrong guess who is dead costs a transaction, never what was committed.

use std::collections::BTreeSet;

use esker_format::history::{Branch, Commit, Item, RunId};

use crate::attempt::Attempt;
use crate::error::{Error, Result};
use crate::expire::Openable;
use crate::rebase::{OnConflict, Strict};
use crate::{History, keys, spaces};

/// What a collection did, or would do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Collected {
    /// Runs that were removed.
    pub runs: Vec<String>,
    /// Writers that were given up.
    pub fenced: Vec<u64>,
}

/// Runs that nobody needs.
#[derive(Debug, Clone, Default)]
pub struct Garbage {
    /// Those that can go, by their names in the store.
    runs: Vec<String>,
    /// Those of writers that are given up: they can go behind a fence.
    waiting: Vec<(String, u64, RunId)>,
}

impl Garbage {
    /// The writers that must be fenced before it is removed.
    pub fn writers(&self) -> BTreeSet<u64> {
        self.waiting.iter().map(|(_, _, id)| id.writer).collect()
    }

    /// The names of all runs in it, sorted.
    pub fn names(&self) -> Vec<String> {
        let waiting = self.waiting.iter().map(|(name, ..)| name);
        let mut names: Vec<String> = self.runs.iter().chain(waiting).cloned().collect();
        names.sort_unstable();
        names
    }
}

/// Which writers are given up.
pub trait Referring {
    /// Whether a writer whose work is not committed is believed to be dead.
    fn is_dead(&mut self, writer: u64) -> bool;
}

impl<F: FnMut(u64) -> bool> Referring for F {
    fn is_dead(&mut self, writer: u64) -> bool {
        self(writer)
    }
}

impl History {
    /// Removes runs that no version needs, of writers that are given up also those that one still may have needed. With `dry` it
    /// only says what it would do.
    pub fn collect(&self, dead: &mut dyn Referring, dry: bool, time: i64) -> Result<Collected> {
        let garbage = self.garbage(dead)?;
        let writers = garbage.writers();
        let runs = match dry {
            true => garbage.names(),
            false => {
                if !writers.is_empty() {
                    for branch in &self.all_branches()? {
                        self.fence(branch, &writers, time)?;
                    }
                }
                self.remove(garbage)?
            }
        };
        Ok(Collected { runs, fenced: writers.into_iter().collect() })
    }

    /// The runs that no version needs, or that only writers which are given up may need.
    pub fn garbage(&self, dead: &mut dyn Referring) -> Result<Garbage> {
        // Before the branches are asked for: one that begins after this has no run here.
        let listed = self.segments.list(keys::RUNS)?;
        let branches = self.opened()?;
        let mut garbage = Garbage::default();
        for name in listed {
            let Some((number, id)) = keys::parse_run(&name) else { continue };
            let name = format!("{}/{name}", keys::RUNS);
            match self.use_of(&branches, number, id)? {
                Use::Needed => {}
                Use::Never => garbage.runs.push(name),
                Use::Perhaps if id.writer != self.writer && dead.is_dead(id.writer) => {
                    garbage.waiting.push((name, number, id));
                }
                Use::Perhaps => {}
            }
        }
        Ok(garbage)
    }

    /// Removes garbage; its writers were fenced on all branches since it was looked for. Gives the names of what was removed, sorted.
    pub fn remove(&self, garbage: Garbage) -> Result<Vec<String>> {
        let Garbage { mut runs, waiting } = garbage;
        if !waiting.is_empty() {
            // What was committed before the fence is used.
            let branches = self.opened()?;
            for (name, number, id) in waiting {
                if self.use_of(&branches, number, id)? != Use::Needed {
                    runs.push(name);
                }
            }
        }
        runs.sort_unstable();
        for name in &runs {
            self.segments.remove(name)?;
        }
        Ok(runs)
    }

    /// `main` and all others.
    pub fn all_branches(&self) -> Result<Vec<Branch>> {
        let mut branches: Vec<Branch> =
            self.branches()?.into_iter().map(|(name, ..)| name).collect();
        branches.push(Branch::main());
        Ok(branches)
    }

    /// All branches, and which of their versions can be opened; `None` where there are none.
    fn opened(&self) -> Result<Vec<(Branch, Option<Openable>)>> {
        let open = |branch: Branch| match self.openable(&branch) {
            Err(Error::Empty(_)) => Ok((branch, None)),
            open => open.map(|open| (branch, Some(open))),
        };
        self.all_branches()?.into_iter().map(open).collect()
    }

    /// Whether a run that was made for a number is needed.
    fn use_of(
        &self,
        branches: &[(Branch, Option<Openable>)],
        number: u64,
        id: RunId,
    ) -> Result<Use> {
        let mut perhaps = false;
        for (branch, open) in branches {
            let has = |commit: &Commit| has(commit, id);
            let prepared = self.known_as(&keys::prepared(branch, number), branch, number)?;
            let known = match self.known(branch, number) {
                // Later versions may have it.
                Err(Error::Damaged { .. } | Error::Gone { .. }) => return Ok(Use::Needed),
                known => known?,
            };
            match (known, open) {
                (Some(known), _) if known.is_lost() => return Ok(Use::Needed),
                (Some(known), Some(open)) if known.decision.commit().is_some_and(has) => {
                    return self.need_of((branch, open), number, id);
                }
                (Some(_), _) => {}
                (None, _) if prepared.is_some_and(|one| one.decision.commit().is_some_and(has)) => {
                    return Ok(Use::Needed);
                }
                // It was decided, and is gone: later versions may have the run.
                (None, Some(open)) if open.numbers().contains(&number) => return Ok(Use::Needed),
                (None, _) => perhaps |= number > self.first_of(branch)?,
            }
        }
        Ok(if perhaps { Use::Perhaps } else { Use::Never })
    }

    /// Whether a version that can be opened has a run that was made for a number. The versions that have it follow each other, from the one that it
    /// was made for; one of another branch has it only if that began with one of these.
    fn need_of(&self, (branch, open): (&Branch, &Openable), made: u64, id: RunId) -> Result<Use> {
        if open.has(made) {
            return Ok(Use::Needed);
        }
        let (mut having, mut lacking) = (made, open.numbers().end().saturating_add(1));
        while lacking - having > 1 {
            let middle = having + (lacking - having) / 2;
            let known = match self.commit_at(branch, middle) {
                // What cannot be told is needed.
                Err(Error::Damaged { .. } | Error::Gone { .. }) => return Ok(Use::Needed),
                known => known?,
            };
            match known.is_some_and(|known| known.decision.commit().is_some_and(|c| has(c, id))) {
                true => having = middle,
                false => lacking = middle,
            }
        }
        Ok(if open.has_none(made..=having) { Use::Never } else { Use::Needed })
    }

    /// From here on, commits of these writers to a branch are void. Gives the number of the version that says so.
    pub fn fence(&self, branch: &Branch, writers: &BTreeSet<u64>, time: i64) -> Result<u64> {
        let item =
            |writer: &u64| Item::fact(spaces::FENCED, &writer.to_be_bytes(), Some(Vec::new()));
        let items = writers.iter().map(item).collect();
        let attempt = Attempt::new(branch.clone(), self.newest(branch)?).items(items);
        let attempt = attempt.message("fence").time(time).durable(true);
        let mut rebase = Strict { on_conflict: OnConflict::Ours, ..Strict::default() };
        self.commit(attempt, &mut rebase)
    }
}

impl History {
    /// Fails if this writer was given up: what it has not committed is void.
    pub(crate) fn require_not_fenced(&self, branch: &Branch) -> Result<()> {
        let last = match self.last(branch) {
            Err(Error::Empty(_)) => return Ok(()),
            last => last?,
        };
        match last.fact(spaces::FENCED, &self.writer.to_be_bytes())? {
            Some(_) => Err(Error::Fenced { branch: branch.clone(), number: last.number() }),
            None => Ok(()),
        }
    }
}

fn has(commit: &Commit, id: RunId) -> bool {
    commit.levels.iter().any(|level| level.id == id)
}

/// Whether a run is a level of a version that can be opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Use {
    /// It is, or nobody can tell.
    Needed,
    /// It is not, and never will be.
    Never,
    /// Its number is not decided yet.
    Perhaps,
}
