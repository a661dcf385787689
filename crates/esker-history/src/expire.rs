//! Which versions are kept.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use esker_format::history::{Branch, Item};

use crate::attempt::Attempt;
use crate::error::Result;
use crate::rebase::{OnConflict, Strict};
use crate::{History, spaces};

/// Which versions are kept: those that any of these wants. The newest one, those with tags and those that branches began with are kept always.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Keep {
    /// So many of the newest.
    pub last: u64,
    /// Those not older than this, in seconds since 1970.
    pub since: Option<i64>,
    /// Every so-many-th.
    pub every: Option<u64>,
}

impl Keep {
    fn wants(&self, number: u64, newest: u64, time: impl FnOnce() -> Result<i64>) -> Result<bool> {
        let every = self.every.is_some_and(|every| every > 0 && number.is_multiple_of(every));
        if newest - number < self.last.max(1) || every {
            return Ok(true);
        }
        match self.since {
            Some(since) => Ok(time()? >= since),
            None => Ok(false),
        }
    }
}

/// Sorted numbers as ranges.
fn ranges(numbers: impl IntoIterator<Item = u64>) -> Vec<RangeInclusive<u64>> {
    let mut all: Vec<RangeInclusive<u64>> = Vec::new();
    for number in numbers {
        match all.last_mut() {
            Some(last) if *last.end() + 1 == number => *last = *last.start()..=number,
            _ => all.push(number..=number),
        }
    }
    all
}

impl History {
    /// The versions of a branch that would expire, and have not.
    pub fn to_expire(&self, branch: &Branch, keep: Keep) -> Result<Vec<RangeInclusive<u64>>> {
        let last = self.last(branch)?;
        let (first, newest) = (self.first_of(branch)? + 1, last.number());
        let named = self.tags()?.into_iter().chain(self.branches()?);
        let named: BTreeSet<u64> =
            named.filter(|(_, of, _)| of == branch).map(|(_, _, number)| number).collect();
        let gone = last.expired()?;
        let mut numbers = Vec::new();
        for number in first..=newest {
            if named.contains(&number) || gone.iter().any(|range| range.contains(&number)) {
                continue;
            }
            let time = || Ok(self.decision(branch, number)?.map_or(0, |decision| decision.time));
            if !keep.wants(number, newest, time)? {
                numbers.push(number);
            }
        }
        Ok(ranges(numbers))
    }

    /// Lets versions of a branch expire: they may not be opened any more, and a collection removes what only they need.
    /// Gives which.
    pub fn expire(
        &self,
        branch: &Branch,
        keep: Keep,
        message: &str,
        time: i64,
    ) -> Result<Vec<RangeInclusive<u64>>> {
        let base = self.newest(branch)?;
        let expired = self.to_expire(branch, keep)?;
        if expired.is_empty() {
            return Ok(expired);
        }
        let item = |range: &RangeInclusive<u64>| {
            let last = range.end().to_be_bytes().to_vec();
            Item::fact(spaces::EXPIRED, &range.start().to_be_bytes(), Some(last))
        };
        let items = expired.iter().map(item).collect();
        let attempt = Attempt::new(branch.clone(), base).items(items);
        let attempt = attempt.message(message).time(time).durable(true);
        // What two let expire has expired.
        let mut rebase = Strict { on_conflict: OnConflict::Ours, ..Strict::default() };
        self.commit(attempt, &mut rebase)?;
        Ok(expired)
    }
}
