//! One version: what was so and where the values are.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use esker_format::history::{Branch, Decision, Item, Key};
use esker_store::Segments;

use crate::error::{Error, Result};
use crate::expire::joined;
use crate::find::Known;
use crate::runs::Run;
use crate::{History, keys, spaces};

/// One version, for ever: what others commit changes nothing in it.
#[derive(Debug, Clone)]
pub struct Version {
    segments: Arc<dyn Segments>,
    /// What was asked for.
    branch: Branch,
    number: u64,
    /// The commit that it is, at or before that number.
    known: Known,
    runs: Vec<Run>,
    /// The items of decisions whose items are in no run, older first.
    tail: Vec<Vec<Item>>,
}

impl History {
    /// The newest version of a branch.
    pub fn last(&self, branch: &Branch) -> Result<Version> {
        self.version_at(branch, self.newest(branch)?)
    }

    /// A version by its number.
    pub fn exact(&self, branch: &Branch, number: u64) -> Result<Version> {
        let newest = self.newest(branch)?;
        let start = self.start(branch)?.map_or(0, |(_, number)| number);
        if number == 0 || number > newest {
            return Err(Error::NoVersion { branch: branch.clone(), number, newest });
        }
        if number < start {
            let from = self.start(branch)?.map_or_else(Branch::main, |(from, _)| from);
            return self.exact(&from, number);
        }
        if self.last(branch)?.has_expired(number)? {
            return Err(Error::Expired { branch: branch.clone(), number });
        }
        self.version_at(branch, number)
    }

    /// The version that was committed with this number, whether it has expired or not; `None` if the number was given up.
    pub fn commit_of(&self, branch: &Branch, number: u64) -> Result<Option<Version>> {
        let missing = || Error::NoVersion { branch: branch.clone(), number, newest: number };
        let known = self.known(branch, number)?.ok_or_else(missing)?;
        match known.decision.commit() {
            Some(_) => self.version_of(branch, number, known).map(Some),
            None => Ok(None),
        }
    }

    pub(crate) fn version_at(&self, branch: &Branch, number: u64) -> Result<Version> {
        let known = self.commit_at(branch, number)?.ok_or_else(|| Error::Empty(branch.clone()))?;
        self.version_of(branch, number, known)
    }

    pub(crate) fn version_of(&self, branch: &Branch, number: u64, known: Known) -> Result<Version> {
        let of = (&known.decision.branch, known.decision.number);
        let levels = known.decision.commit().map(|commit| &commit.levels[..]).unwrap_or_default();
        let open = |level| Run::open(&*self.segments, level, of);
        let runs = levels.iter().map(open).collect::<Result<Vec<_>>>()?;
        let tail = self.tail_of(&known)?;
        Ok(Version {
            segments: self.segments.clone(),
            branch: branch.clone(),
            number,
            known,
            runs,
            tail,
        })
    }
}

impl History {
    /// The items of a commit's tail and its own, which are in no run, older first.
    pub(crate) fn tail_of(&self, known: &Known) -> Result<Vec<Vec<Item>>> {
        let Decision { branch, number, .. } = &known.decision;
        let Some(commit) = known.decision.commit() else { return Ok(Vec::new()) };
        let mut tail = Vec::with_capacity(commit.tail.len() + 1);
        for before in &commit.tail {
            let gone = || {
                let name = keys::decision(branch, *before);
                Error::Gone { name, branch: branch.clone(), number: *number }
            };
            let before = self.known(branch, *before)?.ok_or_else(gone)?;
            tail.push(
                before.decision.commit().map(|commit| commit.items.clone()).unwrap_or_default(),
            );
        }
        tail.push(commit.items.clone());
        Ok(tail)
    }

    /// Calls `each` with every item that came with a commit.
    pub(crate) fn new_items(&self, known: &Known, mut each: impl FnMut(Item)) -> Result<()> {
        let Decision { branch, number, .. } = &known.decision;
        let Some(commit) = known.decision.commit() else { return Ok(()) };
        for level in commit.levels.iter().filter(|level| level.made == *number) {
            let run = Run::open(&*self.segments, level, (branch, *number))?;
            for block in run.blocks() {
                let items = run.block(&*self.segments, block)?;
                items.into_iter().filter(|item| item.number == *number).for_each(&mut each);
            }
        }
        commit.items.iter().cloned().for_each(each);
        Ok(())
    }
}

impl History {
    /// The facts that came with a number of a branch, removed ones with them; none if the number was given up. Of runs only the blocks with facts are read.
    pub fn new_facts(&self, branch: &Branch, number: u64) -> Result<Vec<Item>> {
        let missing = || Error::NoVersion { branch: branch.clone(), number, newest: number };
        let known = self.known(branch, number)?.ok_or_else(missing)?;
        let Some(commit) = known.decision.commit() else { return Ok(Vec::new()) };
        let is_fact = |item: &Item| matches!(item.key, Key::Fact { .. });
        let mut facts: Vec<Item> = commit.items.iter().filter(|i| is_fact(i)).cloned().collect();
        for level in commit.levels.iter().filter(|level| level.made == number) {
            let run = Run::open(&*self.segments, level, (branch, number))?;
            for block in run.fact_blocks() {
                let items = run.block(&*self.segments, block)?;
                facts.extend(items.into_iter().filter(|item| item.number == number));
            }
        }
        Ok(facts)
    }
}

impl Version {
    /// The writers that were given up: what they had not committed is void.
    pub fn fenced(&self) -> Result<BTreeSet<u64>> {
        let writers = self.facts(spaces::FENCED)?;
        let number = |name: &Vec<u8>| Some(u64::from_be_bytes(name[..].try_into().ok()?));
        Ok(writers.keys().filter_map(number).collect())
    }

    /// Its branch.
    pub fn branch(&self) -> &Branch {
        &self.branch
    }

    /// Its number: that of the newest decision, whatever it was.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The commit that it is: its number, its message, its time.
    pub fn decision(&self) -> &Decision {
        &self.known.decision
    }

    /// What is so, if anything.
    pub fn fact(&self, space: u8, name: &[u8]) -> Result<Option<Vec<u8>>> {
        let is_it = |item: &Item| matches!(&item.key, Key::Fact { space: s, name: n } if (*s, &n[..]) == (space, name));
        for items in self.tail.iter().rev() {
            if let Some(item) = items.iter().rev().find(|item| is_it(item)) {
                return Ok(item.value.clone());
            }
        }
        for run in self.runs.iter().rev() {
            for block in run.directory.blocks_of_fact(space, name).rev() {
                let items = run.block(&*self.segments, block)?;
                if let Some(item) = items.into_iter().rev().find(is_it) {
                    return Ok(item.value);
                }
            }
        }
        Ok(None)
    }

    /// Everything that is so of one kind, by name.
    pub fn facts(&self, space: u8) -> Result<BTreeMap<Vec<u8>, Vec<u8>>> {
        let mut all = BTreeMap::new();
        let mut take = |items: Vec<Item>| {
            for Item { key, value, .. } in items {
                match (key, value) {
                    (Key::Fact { space: of, name }, Some(value)) if of == space => {
                        all.insert(name, value);
                    }
                    (Key::Fact { space: of, name }, None) if of == space => {
                        all.remove(&name);
                    }
                    _ => {}
                }
            }
        };
        for run in &self.runs {
            for block in run.directory.blocks_of_space(space) {
                take(run.block(&*self.segments, block)?);
            }
        }
        self.tail.iter().cloned().for_each(take);
        Ok(all)
    }

    /// Everything that is so, of all kinds, each fact with the version that it came with.
    pub fn all_facts(&self) -> Result<Vec<Item>> {
        let mut all = BTreeMap::new();
        let mut take = |items: Vec<Item>| {
            for item in items {
                if let Key::Fact { space, name } = &item.key {
                    all.insert((*space, name.clone()), item);
                }
            }
        };
        for run in &self.runs {
            for block in run.fact_blocks() {
                take(run.block(&*self.segments, block)?);
            }
        }
        self.tail.iter().cloned().for_each(take);
        Ok(all.into_values().filter(|item| item.value.is_some()).collect())
    }

    /// Calls `each` with every item of data that may touch these elements of these records, those that lie
    /// under others first.
    pub fn data(
        &self,
        object: u64,
        records: Range<u64>,
        elements: Range<u64>,
        mut each: impl FnMut(&Item),
    ) -> Result<()> {
        let mut found: Vec<Item> = Vec::new();
        let mut take = |items: Vec<Item>| {
            found.extend(
                items.into_iter().filter(|item| touches(item, object, &records, &elements)),
            );
        };
        for run in &self.runs {
            for block in run.directory.blocks_of_data(object, &records, &elements) {
                take(run.block(&*self.segments, block)?);
            }
        }
        self.tail.iter().cloned().for_each(take);
        // Stable: what came with one number stays as it was written.
        found.sort_by_key(|item| (item.over, item.number));
        found.iter().for_each(&mut each);
        Ok(())
    }

    /// Whether an earlier version of its branch may not be opened any more.
    pub fn has_expired(&self, number: u64) -> Result<bool> {
        Ok(self.expired()?.iter().any(|range| range.contains(&number)))
    }

    /// The versions of its branch that may not be opened any more, as sorted ranges that do not meet.
    pub fn expired(&self) -> Result<Vec<std::ops::RangeInclusive<u64>>> {
        let ranges = self.facts(spaces::EXPIRED)?;
        let number = |bytes: &[u8]| Some(u64::from_be_bytes(bytes.try_into().ok()?));
        let range = |(first, last): (&Vec<u8>, &Vec<u8>)| Some(number(first)?..=number(last)?);
        Ok(joined(ranges.iter().filter_map(range)))
    }
}

/// Whether an item is data that may touch these elements of these records.
fn touches(item: &Item, object: u64, records: &Range<u64>, elements: &Range<u64>) -> bool {
    let Key::Data(data) = &item.key else { return false };
    let end = data.records.end().unwrap_or(u64::MAX);
    data.object == object
        && data.first < elements.end
        && data.end > elements.start
        && data.records.first < records.end
        && end > records.start
}
