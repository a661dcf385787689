//! Removing what no version needs.
//!
//! Two kinds of runs go. One that was made for a number which was decided without it is never used: a number is decided once. One
//! that a version had, and that all versions which have it have expired, is not needed. A run for a number that is not decided yet may
//! still be used; if its writer is given up, a *fence* is committed first, behind which that writer's commits are void, and
//! only then it goes. So a wrong guess who is dead costs a transaction, never what was committed.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use esker_format::history::{Branch, Commit, Item, Level, RunId};

use crate::attempt::Attempt;
use crate::error::{Error, Result};
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
        // Before the branches are asked for: one that begins after this has no run here.
        let listed = self.segments.list(keys::RUNS)?;
        let mut branches: Vec<Branch> =
            self.branches()?.into_iter().map(|(name, ..)| name).collect();
        branches.push(Branch::main());
        let mut gone: BTreeSet<String> = BTreeSet::new();
        for branch in &branches {
            gone.extend(self.unneeded(branch)?);
        }
        let (mut waiting, mut fenced) = (Vec::new(), BTreeSet::new());
        for name in listed {
            let Some((number, id)) = keys::parse_run(&name) else { continue };
            match self.use_of(&branches, number, id)? {
                Use::Used => {}
                Use::Never => {
                    gone.insert(format!("{}/{name}", keys::RUNS));
                }
                Use::Perhaps => {
                    if id.writer != self.writer && dead.is_dead(id.writer) {
                        fenced.insert(id.writer);
                        waiting.push((name, number, id));
                    }
                }
            }
        }
        if !dry && !fenced.is_empty() {
            for branch in &branches {
                self.fence(branch, &fenced, time)?;
            }
            // What was committed before the fence is used.
            let mut left = Vec::new();
            for (name, number, id) in waiting {
                if self.use_of(&branches, number, id)? != Use::Used {
                    left.push((name, number, id));
                }
            }
            waiting = left;
        }
        gone.extend(waiting.iter().map(|(name, ..)| format!("{}/{name}", keys::RUNS)));
        if !dry {
            for name in &gone {
                self.segments.remove(name)?;
            }
        }
        Ok(Collected { runs: gone.into_iter().collect(), fenced: fenced.into_iter().collect() })
    }

    /// Runs of expired versions that no other version has.
    fn unneeded(&self, branch: &Branch) -> Result<Vec<String>> {
        let last = match self.last(branch) {
            Err(Error::Empty(_)) => return Ok(Vec::new()),
            last => last?,
        };
        let expired = last.expired()?;
        let named = self.tags()?.into_iter().chain(self.branches()?);
        let kept: BTreeSet<u64> =
            named.filter(|(_, of, _)| of == branch).map(|(_, _, number)| number).collect();
        let first = self.first_of(branch)? + 1;
        let has_expired = |number: u64| {
            !kept.contains(&number) && expired.iter().any(|range| range.contains(&number))
        };
        let mut unneeded = Vec::new();
        for range in expired.iter().filter(|range| *range.start() >= first) {
            // A run that a version of the range is the last to have was retired by the one behind it.
            for number in *range.start() + 1..=*range.end() + 1 {
                let Some(known) = self.known(branch, number)? else { continue };
                let Some(commit) = known.decision.commit() else { continue };
                for level in self.retired(branch, commit)? {
                    let made = level.made;
                    let lifetime: RangeInclusive<u64> = made..=number - 1;
                    // One from before the branch began belongs to the branch that it came from.
                    if made >= first && lifetime.clone().all(has_expired) {
                        unneeded.push(keys::run(&level));
                    }
                }
            }
        }
        Ok(unneeded)
    }

    /// The levels that a commit has retired.
    fn retired(&self, branch: &Branch, commit: &Commit) -> Result<Vec<Level>> {
        let Some(parent) = commit.parent.as_ref().filter(|_| !commit.retired.is_empty()) else {
            return Ok(Vec::new());
        };
        if parent.branch != *branch {
            return Ok(Vec::new());
        }
        let Some(known) = self.known(branch, parent.number)? else { return Ok(Vec::new()) };
        let levels =
            known.decision.commit().map(|commit| commit.levels.clone()).unwrap_or_default();
        let is_retired = |id: &RunId| commit.retired.contains(id);
        Ok(levels.into_iter().filter(|level| is_retired(&level.id)).collect())
    }

    /// Whether a run that was made for a number is used.
    fn use_of(&self, branches: &[Branch], number: u64, id: RunId) -> Result<Use> {
        let mut perhaps = false;
        for branch in branches {
            let has = |commit: &Commit| commit.levels.iter().any(|level| level.id == id);
            let prepared = self.known_as(&keys::prepared(branch, number), branch, number)?;
            match self.known(branch, number)? {
                Some(known) if known.decision.commit().is_some_and(has) => return Ok(Use::Used),
                Some(_) => {}
                None if prepared.is_some_and(|known| known.decision.commit().is_some_and(has)) => {
                    return Ok(Use::Used);
                }
                None => perhaps |= number > self.first_of(branch)?,
            }
        }
        Ok(if perhaps { Use::Perhaps } else { Use::Never })
    }

    /// From here on, commits of these writers are void.
    fn fence(&self, branch: &Branch, writers: &BTreeSet<u64>, time: i64) -> Result<()> {
        let item =
            |writer: &u64| Item::fact(spaces::FENCED, &writer.to_be_bytes(), Some(Vec::new()));
        let items = writers.iter().map(item).collect();
        let attempt = Attempt::new(branch.clone(), self.newest(branch)?).items(items);
        let attempt = attempt.message("fence").time(time).durable(true);
        let mut rebase = Strict { on_conflict: OnConflict::Ours, ..Strict::default() };
        self.commit(attempt, &mut rebase).map(drop)
    }
}

/// Whether a run is a level of a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Use {
    /// It is.
    Used,
    /// It never will be.
    Never,
    /// Its number is not decided yet.
    Perhaps,
}
