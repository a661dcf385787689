//! Which numbers were decided, and how.

use esker_format::history::{Branch, Decision, GivenUp, HistoryError, Verdict, WriteId};

use crate::error::{Error, Result};
use crate::{History, keys};

/// No decision is longer.
const LONGEST: u64 = 1 << 26;

/// A decision, and the checksum by which its child knows it.
#[derive(Debug, Clone)]
pub(crate) struct Known {
    pub(crate) decision: Decision,
    pub(crate) sum: u32,
}

impl Known {
    /// Whether it stands for one that is gone.
    pub(crate) fn is_lost(&self) -> bool {
        self.decision.write == WriteId(0)
    }
}

impl History {
    /// The decision on a number, if there is one. One that is lost, and was promised to nobody, is as if it had been given up.
    pub(crate) fn known(&self, branch: &Branch, number: u64) -> Result<Option<Known>> {
        let name = keys::decision(branch, number);
        let known = self.known_as(&name, branch, number);
        let is_there = match &known {
            Ok(Some(known)) if !self.witness.is_another(branch, number, known.sum)? => {
                return Ok(Some(known.clone()));
            }
            Ok(None) if number > self.witness.highest(branch)? => return Ok(None),
            Ok(known) => known.is_some(),
            Err(Error::Damaged { .. }) => true,
            Err(_) => return known,
        };
        if self.witness.may_be_lost(branch, number, is_there)? {
            return Ok(Some(lost(branch, number)));
        }
        match known {
            Ok(None) => Err(Error::Gone { name, branch: branch.clone(), number }),
            Ok(Some(_)) => {
                let another = "another decision than the one that was made".to_string();
                Err(Error::damaged(&name, HistoryError::Another(another)))
            }
            damaged => damaged,
        }
    }

    pub(crate) fn known_as(
        &self,
        name: &str,
        branch: &Branch,
        number: u64,
    ) -> Result<Option<Known>> {
        let Some(bytes) = self.segments.read(name, 0..LONGEST)? else { return Ok(None) };
        let decision = Decision::decode(&bytes, branch, number);
        let decision = decision.map_err(|error| Error::damaged(name, error))?;
        Ok(Some(Known { decision, sum: crc32c::crc32c(&bytes) }))
    }

    /// The decision on a number of a branch, if there is one, and the checksum of its bytes.
    pub fn decided(&self, branch: &Branch, number: u64) -> Result<Option<(Decision, u32)>> {
        Ok(self.known(branch, number)?.map(|known| (known.decision, known.sum)))
    }

    /// The decision on a number of a branch, if there is one.
    pub fn decision(&self, branch: &Branch, number: u64) -> Result<Option<Decision>> {
        Ok(self.known(branch, number)?.map(|known| known.decision))
    }

    /// The highest number of a branch that was decided; that of the version it began with, if none was.
    pub fn newest(&self, branch: &Branch) -> Result<u64> {
        let start = self.start(branch)?.map_or(0, |(_, number)| number);
        self.newest_behind(branch, start)
    }

    /// The same, where somebody knows of numbers up to `number`.
    pub fn newest_from(&self, branch: &Branch, number: u64) -> Result<u64> {
        let start = self.start(branch)?.map_or(0, |(_, number)| number);
        self.newest_behind(branch, number.max(start))
    }

    /// The same, where `number` is known to be decided, or that of the version it began with. Numbers have no gaps.
    pub(crate) fn newest_behind(&self, branch: &Branch, number: u64) -> Result<u64> {
        let is_decided = |number: u64| -> Result<bool> {
            Ok(self.segments.len(&keys::decision(branch, number))?.is_some())
        };
        let (mut decided, mut step) = (number.max(self.witness.highest(branch)?), 1);
        while is_decided(decided.saturating_add(step))? {
            decided = decided.saturating_add(step);
            step = step.saturating_mul(2);
        }
        // Decided, and not yet: between them it is found by halving.
        let mut open = decided.saturating_add(step);
        while open - decided > 1 {
            let middle = decided + (open - decided) / 2;
            match is_decided(middle)? {
                true => decided = middle,
                false => open = middle,
            }
        }
        Ok(decided)
    }

    /// The last commit up to a number, over numbers that were given up and, at a branch's beginning, into the branch that it came from.
    pub(crate) fn commit_at(&self, branch: &Branch, number: u64) -> Result<Option<Known>> {
        let start = self.start(branch)?;
        let first = start.as_ref().map_or(0, |(_, number)| *number);
        for number in (first + 1..=number).rev() {
            let missing = || {
                let name = keys::decision(branch, number);
                Error::Gone { name, branch: branch.clone(), number }
            };
            let known = self.known(branch, number)?.ok_or_else(missing)?;
            if known.decision.commit().is_some() {
                return Ok(Some(known));
            }
        }
        match start {
            Some((from, number)) => self.commit_at(&from, number),
            None => Ok(None),
        }
    }
}

/// What stands for a decision that is gone and that nobody was promised.
fn lost(branch: &Branch, number: u64) -> Known {
    let decision = Decision {
        write: WriteId(0),
        branch: branch.clone(),
        number,
        durable: false,
        time: 0,
        message: "lost".to_string(),
        verdict: Verdict::GivenUp(GivenUp::Aborted),
    };
    Known { decision, sum: 0 }
}
