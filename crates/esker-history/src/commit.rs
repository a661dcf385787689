//! How a number is decided: of several who want it, one gets it, and the others go behind it.

use std::io::ErrorKind;
use std::ops::RangeInclusive;

use esker_format::history::{Branch, Decision, Item, Key, Verdict};
use esker_store::{Published, StoreError};

use crate::attempt::Attempt;
use crate::error::{Error, Result};
use crate::find::Known;
use crate::grow::News;
use crate::rebase::Rebase;
use crate::{History, keys, spaces};

/// How often a publication is tried whose answer was lost and that nobody has seen.
const TRIES: usize = 3;

/// What became of an attempt at one number.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The number is ours.
    Won,
    /// It is somebody else's.
    Lost,
}

impl History {
    /// Commits under the next number. What others have committed since the attempt's base is shown to `rebase` first, which may
    /// refuse. Gives the number.
    pub fn commit(&self, attempt: Attempt, rebase: &mut dyn Rebase) -> Result<u64> {
        let Attempt { branch, mut items, base, .. } = attempt.clone();
        let mut seen = base.max(self.first_of(&branch)?);
        loop {
            let newest = match attempt.whole {
                true => self.promote_or_give_up(&branch, seen)?,
                false => self.promote_behind(&branch, seen)?,
            };
            let since = self.all_decided(&branch, seen + 1..=newest)?;
            // It may be there from a call whose answer was lost, whatever would be said of it now.
            if let Some(own) = since.iter().find(|known| known.decision.write == attempt.write) {
                return Ok(own.decision.number);
            }
            let expired = match since.is_empty() {
                true => Vec::new(),
                false if attempt.whole => Vec::new(),
                false => self.version_at(&branch, newest).and_then(|last| last.expired())?,
            };
            for known in since.into_iter().filter(|_| !attempt.whole) {
                let number = known.decision.number;
                if expired.iter().any(|range| range.contains(&number)) {
                    return Err(Error::Expired { branch, number });
                }
                self.go_behind(&known, (&mut items, base), rebase)?;
            }
            self.require_needed(&attempt)?;
            seen = newest;
            let number = newest + 1;
            let parent = match newest {
                0 => None,
                _ if attempt.whole => None,
                newest => self.commit_at(&branch, newest)?,
            };
            let news = News::Items(items.clone());
            if self.decide(&attempt, number, parent, news)? == Outcome::Won {
                self.promote_behind(&branch, number)?;
                return Ok(number);
            }
        }
    }

    /// The number before the first that a branch can have of its own.
    pub(crate) fn first_of(&self, branch: &Branch) -> Result<u64> {
        Ok(self.start(branch)?.map_or(0, |(_, number)| number))
    }

    /// The decisions on numbers that were decided.
    fn all_decided(&self, branch: &Branch, numbers: RangeInclusive<u64>) -> Result<Vec<Known>> {
        let decided = |number| {
            let gone = || {
                let name = keys::decision(branch, number);
                Error::Gone { name, branch: branch.clone(), number }
            };
            self.known(branch, number)?.ok_or_else(gone)
        };
        numbers.map(decided).collect()
    }

    /// Puts ours behind a decision that was made since their base.
    fn go_behind(
        &self,
        known: &Known,
        (ours, base): (&mut Vec<Item>, u64),
        rebase: &mut dyn Rebase,
    ) -> Result<()> {
        let Decision { branch, number, .. } = &known.decision;
        if known.decision.commit().is_some_and(|commit| commit.parent.is_none()) && *number > 1 {
            return Err(Error::Replaced { branch: branch.clone(), number: *number });
        }
        let mut theirs = Vec::new();
        self.new_items(known, |item| theirs.push(item))?;
        if theirs.iter().any(|item| self.is_fenced_by(item)) {
            return Err(Error::Fenced { branch: branch.clone(), number: *number });
        }
        let refused = rebase.rebase(ours, &theirs, base, *number);
        refused.map_err(|conflict| Error::Conflict { conflict, base })
    }

    /// Makes safe what was committed before a number without waiting for the disk: a durable version promises all
    /// that it consists of, and that no number before it is missing.
    pub(crate) fn settle_before(&self, branch: &Branch, number: u64) -> Result<()> {
        let start = self.start(branch)?;
        let first = start.as_ref().map_or(0, |(_, number)| *number);
        for before in (first + 1..number).rev() {
            // One that is prepared may be behind numbers that are not decided.
            let Some(known) = self.known(branch, before)? else { continue };
            if known.decision.durable {
                return Ok(());
            }
            if known.is_lost() {
                continue;
            }
            let levels =
                known.decision.commit().map(|commit| &commit.levels[..]).unwrap_or_default();
            for level in levels.iter().filter(|level| level.made == before) {
                match self.segments.sync(&keys::run(level)) {
                    // It was merged into another, and collected.
                    Err(error) if error.kind() == ErrorKind::NotFound => {}
                    synced => synced?,
                }
            }
            self.segments.sync(&keys::decision(branch, before))?;
        }
        match start {
            Some((from, number)) => self.settle_before(&from, number + 1),
            None => Ok(()),
        }
    }

    fn is_fenced_by(&self, item: &Item) -> bool {
        let writer = self.writer.to_be_bytes();
        matches!(&item.key, Key::Fact { space: spaces::FENCED, name } if **name == writer)
    }

    /// Tries to decide a number, as a commit of news behind `parent`.
    pub(crate) fn decide(
        &self,
        attempt: &Attempt,
        number: u64,
        parent: Option<Known>,
        news: News,
    ) -> Result<Outcome> {
        let Attempt { branch, durable, .. } = attempt;
        let grown = self.grow(parent.as_ref(), (branch, number), news, *durable)?;
        let verdict = Verdict::Commit(grown.commit);
        let decided = self.publish(attempt, &keys::decision(branch, number), number, verdict);
        if let Ok(Outcome::Lost) = decided {
            self.unmake(&grown.made);
        }
        decided
    }

    /// Publishes a decision under a key. After a failure whose outcome nobody knows, what is there tells.
    pub(crate) fn publish(
        &self,
        attempt: &Attempt,
        key: &str,
        number: u64,
        verdict: Verdict,
    ) -> Result<Outcome> {
        if attempt.durable && !attempt.whole {
            self.settle_before(&attempt.branch, number)?;
        }
        self.publish_settled(attempt, key, number, verdict)
    }

    /// The same where what was committed before it is safe, if it must be.
    pub(crate) fn publish_settled(
        &self,
        attempt: &Attempt,
        key: &str,
        number: u64,
        verdict: Verdict,
    ) -> Result<Outcome> {
        let Attempt { write, branch, time, message, durable, .. } = attempt.clone();
        let of = branch.clone();
        let decision = Decision { write, branch: of, number, durable, time, message, verdict };
        let bytes = decision.encode();
        let in_doubt =
            |source: StoreError| Error::InDoubt { branch: branch.clone(), number, source };
        let mut failure = None;
        for _ in 0..TRIES {
            match self.segments.publish(key, &bytes, durable) {
                Ok(Published::Created) => return Ok(Outcome::Won),
                Ok(Published::Taken) => {}
                Err(error) => failure = Some(error),
            }
            match self.known_as(key, &branch, number) {
                Ok(Some(known)) if known.decision.write == write => {
                    // It is there; whether it is safe nobody has said.
                    if durable {
                        self.segments.sync(key).map_err(in_doubt)?;
                    }
                    return Ok(Outcome::Won);
                }
                Ok(Some(_)) => return Ok(Outcome::Lost),
                Ok(None) => {}
                Err(Error::Store(error)) => return Err(in_doubt(failure.unwrap_or(error))),
                Err(error) => return Err(error),
            }
        }
        let unknown = || StoreError::new(key, "publish", ErrorKind::Other.into());
        Err(in_doubt(failure.unwrap_or_else(unknown)))
    }
}
