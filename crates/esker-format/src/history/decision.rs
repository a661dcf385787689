//! A decision: what a number of a branch has become. It is made once.

use std::ops::RangeInclusive;

use super::item::Item;
use super::name::{Branch, RunId, WriteId};
use super::rest::{Rest, put_text};
use super::run::{decode_items, encode_items};
use super::{FORMAT, HistoryError, odd};
use crate::varint;

/// The version that a commit builds on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parent {
    /// Its branch: another than the commit's where that one is its branch's first.
    pub branch: Branch,
    /// Its number.
    pub number: u64,
    /// The checksum of its decision's bytes.
    pub sum: u32,
}

/// A run that a version consists of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Level {
    /// Its name.
    pub id: RunId,
    /// How long it is.
    pub bytes: u64,
    /// How many items it has.
    pub items: u64,
    /// The numbers that it has items of.
    pub numbers: RangeInclusive<u64>,
    /// The number that it was made for, which is part of its file's name.
    pub made: u64,
}

/// A version.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Commit {
    /// The version before it; none for the first.
    pub parent: Option<Parent>,
    /// The runs that it consists of, oldest first.
    pub levels: Vec<Level>,
    /// Numbers before it whose items are in no level but in their decisions, ascending.
    pub tail: Vec<u64>,
    /// Levels of its parent that neither it nor any later version has.
    pub retired: Vec<RunId>,
    /// What is new, unless that is the last level.
    pub items: Vec<Item>,
}

/// Why a number has no version of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GivenUp {
    /// Somebody who took part gave it up.
    Aborted,
    /// Nobody was to use it.
    Skipped,
}

/// What was decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// A version.
    Commit(Commit),
    /// None.
    GivenUp(GivenUp),
}

/// The decision on a number of a branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// The attempt that made it.
    pub write: WriteId,
    /// The branch.
    pub branch: Branch,
    /// The number, from 1.
    pub number: u64,
    /// Whether it and everything before it was safe from a loss of power when it was made.
    pub durable: bool,
    /// When, in seconds since 1970: for people.
    pub time: i64,
    /// Why: for people.
    pub message: String,
    /// What was decided.
    pub verdict: Verdict,
}

const MAGIC: &[u8; 4] = b"ESKD";

impl Decision {
    /// The version, if it is one.
    pub fn commit(&self) -> Option<&Commit> {
        match &self.verdict {
            Verdict::Commit(commit) => Some(commit),
            Verdict::GivenUp(_) => None,
        }
    }

    /// Its bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend(FORMAT.to_le_bytes());
        bytes.push(match self.verdict {
            Verdict::Commit(_) => 1,
            Verdict::GivenUp(GivenUp::Aborted) => 2,
            Verdict::GivenUp(GivenUp::Skipped) => 3,
        });
        bytes.extend(self.write.0.to_le_bytes());
        varint::put(&mut bytes, self.number);
        put_text(&mut bytes, self.branch.as_str().as_bytes());
        bytes.push(self.durable.into());
        bytes.extend(self.time.to_le_bytes());
        put_text(&mut bytes, self.message.as_bytes());
        if let Verdict::Commit(commit) = &self.verdict {
            commit.put(&mut bytes, self.number);
        }
        bytes.extend(crc32c::crc32c(&bytes).to_le_bytes());
        bytes
    }

    /// The decision on this number of this branch, in `bytes`.
    pub fn decode(bytes: &[u8], branch: &Branch, number: u64) -> Result<Decision, HistoryError> {
        let (body, sum) = bytes.split_last_chunk::<4>().ok_or(HistoryError::NotWhole)?;
        if u32::from_le_bytes(*sum) != crc32c::crc32c(body) {
            return Err(HistoryError::NotWhole);
        }
        let mut rest = Rest(body.strip_prefix(MAGIC).ok_or(HistoryError::NotWhole)?);
        let wrong = || odd("its lists do not fit it");
        match rest.array().map(u32::from_le_bytes).ok_or_else(wrong)? {
            FORMAT => {}
            other => return Err(HistoryError::Format(other)),
        }
        let decision =
            Decision::read(&mut rest)?.filter(|_| rest.0.is_empty()).ok_or_else(wrong)?;
        if decision.branch != *branch || decision.number != number {
            let Decision { branch, number, .. } = &decision;
            return Err(HistoryError::Another(format!("number {number} of branch {branch}")));
        }
        Ok(decision)
    }

    fn read(rest: &mut Rest<'_>) -> Result<Option<Decision>, HistoryError> {
        let begin = |rest: &mut Rest<'_>| {
            let (kind, write) = (rest.byte()?, u128::from_le_bytes(rest.array()?));
            let number = rest.number()?;
            let branch = name(rest)?;
            let durable = match rest.byte()? {
                0 => false,
                1 => true,
                _ => return None,
            };
            let time = i64::from_le_bytes(rest.array()?);
            let message = String::from_utf8(rest.text()?.to_vec()).ok()?;
            Some((kind, WriteId(write), branch, number, durable, time, message))
        };
        let Some((kind, write, branch, number, durable, time, message)) = begin(rest) else {
            return Ok(None);
        };
        let verdict = match kind {
            1 => match Commit::take(rest, number)? {
                Some(commit) => Verdict::Commit(commit),
                None => return Ok(None),
            },
            2 => Verdict::GivenUp(GivenUp::Aborted),
            3 => Verdict::GivenUp(GivenUp::Skipped),
            _ => return Ok(None),
        };
        Ok(Some(Decision { write, branch, number, durable, time, message, verdict }))
    }
}

fn name(rest: &mut Rest<'_>) -> Option<Branch> {
    Branch::new(std::str::from_utf8(rest.text()?).ok()?)
}

impl Commit {
    fn put(&self, bytes: &mut Vec<u8>, number: u64) {
        varint::put(bytes, self.parent.as_ref().map_or(0, |parent| parent.number));
        if let Some(parent) = &self.parent {
            put_text(bytes, parent.branch.as_str().as_bytes());
            bytes.extend(parent.sum.to_le_bytes());
        }
        varint::put(bytes, self.levels.len() as u64);
        for level in &self.levels {
            bytes.extend(level.id.to_bytes());
            let (first, last) = (*level.numbers.start(), *level.numbers.end());
            [level.bytes, level.items, first, last, level.made]
                .iter()
                .for_each(|n| varint::put(bytes, *n));
        }
        varint::put(bytes, self.tail.len() as u64);
        let mut from = number;
        for back in self.tail.iter().rev() {
            varint::put(bytes, from - back);
            from = *back;
        }
        varint::put(bytes, self.retired.len() as u64);
        self.retired.iter().for_each(|id| bytes.extend(id.to_bytes()));
        put_text(bytes, &encode_items(&self.items));
    }

    fn take(rest: &mut Rest<'_>, number: u64) -> Result<Option<Commit>, HistoryError> {
        let Some((commit, items)) = Commit::lists(rest, number) else { return Ok(None) };
        Ok(Some(Commit { items: decode_items(items)?, ..commit }))
    }

    /// Everything but the items, and these as they are.
    fn lists<'b>(rest: &mut Rest<'b>, number: u64) -> Option<(Commit, &'b [u8])> {
        let parent = match rest.number()? {
            0 => None,
            before if before < number => {
                let (branch, sum) = (name(rest)?, u32::from_le_bytes(rest.array()?));
                Some(Parent { branch, number: before, sum })
            }
            _ => return None,
        };
        let count = rest.count(20)?;
        let mut levels = Vec::with_capacity(count);
        for _ in 0..count {
            let id = RunId::from_bytes(rest.array()?);
            let (bytes, items) = (rest.number()?, rest.number()?);
            let numbers = rest.number()?..=rest.number()?;
            levels.push(Level { id, bytes, items, numbers, made: rest.number()? });
        }
        let count = rest.count(1)?;
        let mut tail = Vec::with_capacity(count);
        let mut from = number;
        for _ in 0..count {
            from = from.checked_sub(rest.number()?.max(1)).filter(|number| *number > 0)?;
            tail.push(from);
        }
        tail.reverse();
        let count = rest.count(16)?;
        let retired = (0..count).map(|_| Some(RunId::from_bytes(rest.array()?)));
        let retired = retired.collect::<Option<Vec<_>>>()?;
        let items = rest.text()?;
        Some((Commit { parent, levels, tail, retired, items: Vec::new() }, items))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Data, Key};
    use super::*;
    use crate::log::Records;
    use proptest::prelude::*;

    fn a_commit() -> Decision {
        let run = |number| RunId { writer: 1, number };
        let level = |id, first, last| Level {
            id: run(id),
            bytes: 700,
            items: 9,
            numbers: first..=last,
            made: last,
        };
        let data = Data { object: 5, records: Records::one(3), first: 10, end: 20 };
        let commit = Commit {
            parent: Some(Parent { branch: Branch::main(), number: 8, sum: 99 }),
            levels: vec![level(1, 1, 4), level(2, 5, 6)],
            tail: vec![7, 8],
            retired: vec![run(3)],
            items: vec![
                Item {
                    key: Key::Fact { space: 1, name: b"t".to_vec() },
                    number: 9,
                    over: 9,
                    value: None,
                },
                Item { key: Key::Data(data), number: 9, over: 9, value: Some(vec![1, 2, 3]) },
            ],
        };
        Decision {
            write: WriteId(42),
            branch: Branch::main(),
            number: 9,
            durable: true,
            time: -5,
            message: "größer".to_string(),
            verdict: Verdict::Commit(commit),
        }
    }

    #[test]
    fn a_decision_comes_back_whole_or_not_at_all() {
        let commit = a_commit();
        let aborted = Decision { verdict: Verdict::GivenUp(GivenUp::Aborted), ..commit.clone() };
        let skipped = Decision { verdict: Verdict::GivenUp(GivenUp::Skipped), ..commit.clone() };
        for decision in [commit, aborted, skipped] {
            let bytes = decision.encode();
            let main = Branch::main();
            assert_eq!(Decision::decode(&bytes, &main, 9), Ok(decision));
            for cut in 0..bytes.len() {
                let error = Decision::decode(&bytes[..cut], &main, 9);
                assert_eq!(error, Err(HistoryError::NotWhole));
            }
            for bit in 0..bytes.len() * 8 {
                let mut damaged = bytes.clone();
                damaged[bit / 8] ^= 1 << (bit % 8);
                let error = Decision::decode(&damaged, &main, 9);
                assert_eq!(error, Err(HistoryError::NotWhole), "bit {bit}");
            }
            let error = Decision::decode(&bytes, &main, 8).unwrap_err().to_string();
            assert!(error.contains("number 9 of branch main"), "{error}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_are_too_strange(at: prop::sample::Index, byte: u8, cut: prop::sample::Index) {
            let mut bytes = a_commit().encode();
            bytes.truncate(bytes.len() - 4);
            let at = at.index(bytes.len());
            bytes[at] = byte;
            bytes.truncate(cut.index(bytes.len()) + 1);
            bytes.extend(crc32c::crc32c(&bytes).to_le_bytes());
            let _ = Decision::decode(&bytes, &Branch::main(), 9);
        }
    }
}
