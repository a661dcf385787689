//! Which versions are kept.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use esker_format::history::{Branch, Item, Key};

use crate::attempt::Attempt;
use crate::error::{Error, Result};
use crate::rebase::{OnConflict, Strict};
use crate::version::Version;
use crate::{History, spaces};

/// Versions are looked at one by one; of more than these, somebody has made up the number.
const MOST: u64 = 1 << 24;

/// Which versions are kept: those that any of these wants. The newest one, those with tags and those that branches began with are kept always.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Keep {
    /// So many of the newest that have changed something, at least one. A version that only gives names, or only says what has expired, is
    /// kept with the one before it, whose values it has.
    pub last: u64,
    /// Those not older than this, in seconds since 1970.
    pub since: Option<i64>,
    /// Every so-many-th.
    pub every: Option<u64>,
}

/// Which versions of a branch can be opened: those that have not expired, and those that have but are named.
#[derive(Debug, Clone)]
pub struct Openable {
    first: u64,
    newest: u64,
    /// Sorted, without gaps of nothing between two.
    expired: Vec<RangeInclusive<u64>>,
    named: BTreeSet<u64>,
}

impl Openable {
    /// Which versions of `main` can be opened, as one of them says.
    pub fn in_version(last: &Version) -> Result<Openable> {
        let names = last.tags()?.into_iter().chain(last.branches()?);
        let named = names.filter(|(_, of, _)| of == last.branch()).map(|(_, _, number)| number);
        let (newest, expired, named) = (last.number(), last.expired()?, named.collect());
        Ok(Openable { first: 1, newest, expired, named })
    }

    /// The numbers of the branch's own versions.
    pub fn numbers(&self) -> RangeInclusive<u64> {
        self.first..=self.newest
    }

    /// Whether a version can be opened, as far as expiry is concerned.
    pub fn has(&self, number: u64) -> bool {
        !contains(&self.expired, number) || self.named.contains(&number)
    }

    /// Whether none of these versions can be opened.
    pub fn has_none(&self, numbers: RangeInclusive<u64>) -> bool {
        let (first, last) = (*numbers.start(), *numbers.end());
        let at = self.expired.partition_point(|range| *range.end() < first);
        let inside = self.expired.get(at);
        inside.is_some_and(|range| *range.start() <= first && last <= *range.end())
            && self.named.range(numbers).next().is_none()
    }

    /// Those that can be opened, the newest first.
    pub fn all(&self) -> impl Iterator<Item = u64> {
        self.numbers().rev().filter(|number| self.has(*number))
    }
}

/// Whether sorted ranges that do not meet have a number.
fn contains(ranges: &[RangeInclusive<u64>], number: u64) -> bool {
    let at = ranges.partition_point(|range| *range.end() < number);
    ranges.get(at).is_some_and(|range| range.contains(&number))
}

/// Ranges, sorted by their beginnings, as ones that do not meet.
pub(crate) fn joined(
    ranges: impl IntoIterator<Item = RangeInclusive<u64>>,
) -> Vec<RangeInclusive<u64>> {
    let mut all: Vec<RangeInclusive<u64>> = Vec::new();
    for range in ranges.into_iter().filter(|range| !range.is_empty()) {
        match all.last_mut() {
            Some(last) if *range.start() <= last.end().saturating_add(1) => {
                *last = *last.start()..=(*last.end()).max(*range.end());
            }
            _ => all.push(range),
        }
    }
    all
}

impl History {
    /// Which versions of a branch can be opened.
    pub fn openable(&self, branch: &Branch) -> Result<Openable> {
        let last = self.last(branch)?;
        if last.number() > MOST {
            let why = format!(
                "branch {branch} has a version {}, to which nobody can count",
                last.number()
            );
            return Err(Error::Wrong(why));
        }
        if *branch == Branch::main() {
            return Openable::in_version(&last);
        }
        let named = self.tags()?.into_iter().chain(self.branches()?);
        Ok(Openable {
            first: self.first_of(branch)? + 1,
            newest: last.number(),
            expired: last.expired()?,
            named: named.filter(|(_, of, _)| of == branch).map(|(_, _, number)| number).collect(),
        })
    }

    /// The versions of a branch that would expire, and have not.
    pub fn to_expire(&self, branch: &Branch, keep: Keep) -> Result<Vec<RangeInclusive<u64>>> {
        let open = self.openable(branch)?;
        let lowest = self.lowest_of_last(branch, &open, keep.last)?;
        let mut numbers = Vec::new();
        for number in open.first..lowest.max(open.first) {
            let every = keep.every.is_some_and(|every| every > 0 && number.is_multiple_of(every));
            if every || open.named.contains(&number) || contains(&open.expired, number) {
                continue;
            }
            if keep.since.is_none_or(|since| self.time_of(branch, number) < since) {
                numbers.push(number..=number);
            }
        }
        Ok(joined(numbers))
    }

    /// The number from which on the newest versions are that have changed something, so many.
    fn lowest_of_last(&self, branch: &Branch, open: &Openable, last: u64) -> Result<u64> {
        let mut left = last.max(1);
        for number in open.all() {
            left -= u64::from(!self.is_note(branch, number)?);
            if left == 0 {
                return Ok(number);
            }
        }
        Ok(open.first)
    }

    /// When a version was committed. One of which that cannot be told is as good as new.
    fn time_of(&self, branch: &Branch, number: u64) -> i64 {
        let decision = self.decision(branch, number);
        decision.ok().flatten().map_or(i64::MAX, |decision| decision.time)
    }

    /// Whether a number has changed nothing but names, expiry and fences, or was given up: its version is that of the one before it.
    fn is_note(&self, branch: &Branch, number: u64) -> Result<bool> {
        let known = match self.known(branch, number) {
            Err(Error::Damaged { .. } | Error::Gone { .. }) => return Ok(false),
            known => known?,
        };
        let Some(known) = known else { return Ok(true) };
        let Some(commit) = known.decision.commit() else { return Ok(true) };
        let of_history = |item: &Item| matches!(&item.key, Key::Fact { space, .. } if *space < spaces::FIRST_FREE);
        if !commit.levels.iter().any(|level| level.made == number) {
            return Ok(commit.items.iter().all(of_history));
        }
        match self.new_facts(branch, number) {
            Err(Error::Damaged { .. } | Error::Gone { .. }) => Ok(false),
            facts => facts.map(|facts| !facts.is_empty() && facts.iter().all(of_history)),
        }
    }

    /// Lets versions of a branch expire that `keep` does not want: they may not be opened any more, and a collection removes what only
    /// they need. Gives which.
    pub fn expire(
        &self,
        branch: &Branch,
        keep: Keep,
        message: &str,
        time: i64,
    ) -> Result<Vec<RangeInclusive<u64>>> {
        let base = self.newest(branch)?;
        let expired = self.to_expire(branch, keep)?;
        if !expired.is_empty() {
            self.let_expire((branch, base), &expired, message, time)?;
        }
        Ok(expired)
    }

    /// Lets these versions of a branch expire, as was found for its version `base`. Gives the number of the version that says so.
    pub fn let_expire(
        &self,
        (branch, base): (&Branch, u64),
        expired: &[RangeInclusive<u64>],
        message: &str,
        time: i64,
    ) -> Result<u64> {
        let item = |range: &RangeInclusive<u64>| {
            let last = range.end().to_be_bytes().to_vec();
            Item::fact(spaces::EXPIRED, &range.start().to_be_bytes(), Some(last))
        };
        let items = expired.iter().map(item).collect();
        let attempt = Attempt::new(branch.clone(), base).items(items);
        let attempt = attempt.message(message).time(time).durable(true);
        // What two let expire has expired.
        let mut rebase = Strict { on_conflict: OnConflict::Ours, ..Strict::default() };
        self.commit(attempt, &mut rebase)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_that_meet_are_one_and_know_their_numbers() {
        let ranges = joined([1..=3, 2..=2, 4..=4, 7..=9, 9..=12, 20..=20]);
        assert_eq!(ranges, [1..=4, 7..=12, 20..=20]);
        let inside: Vec<u64> = (0..22).filter(|number| contains(&ranges, *number)).collect();
        assert_eq!(inside, [1, 2, 3, 4, 7, 8, 9, 10, 11, 12, 20]);
        let open = Openable { first: 1, newest: 21, expired: ranges, named: [8].into() };
        assert_eq!(open.all().collect::<Vec<u64>>(), [21, 19, 18, 17, 16, 15, 14, 13, 8, 6, 5]);
        for (first, last, none) in [(1, 4, true), (3, 5, false), (7, 9, false), (9, 12, true)] {
            assert_eq!(open.has_none(first..=last), none, "{first} to {last}");
        }
    }
}
