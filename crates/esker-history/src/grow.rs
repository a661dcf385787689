//! What the next version consists of: a logarithm of runs, whatever came before.
//!
//! Short news stay in their decision. Eight decisions with news become a run, eight runs of about one length become a longer one:
//! each item is written again a logarithm of times, and a version has at most seven runs of each length.

use esker_format::history::{Branch, Commit, Item, Level, Parent, encode_items};

use crate::History;
use crate::error::Result;
use crate::find::Known;
use crate::merge::{Merged, Source};
use crate::runs::{self, Run};

/// News of so many bytes stay in the decision.
const INLINE: usize = 4 << 10;

/// As many of one length become one of the next.
const FAN: usize = 8;

/// What is new.
#[derive(Debug, Clone)]
pub(crate) enum News {
    Items(Vec<Item>),
    /// They are in a run already, with their number, but for some facts.
    Run(Level, Vec<Item>),
}

/// The next version, and the runs that were made for it alone.
#[derive(Debug)]
pub(crate) struct Grown {
    pub(crate) commit: Commit,
    pub(crate) made: Vec<Level>,
}

/// A run's length, in steps of eight.
fn tier(bytes: u64) -> u32 {
    (bytes / INLINE as u64).max(1).ilog2() / 3
}

impl History {
    /// What version `number` of a branch consists of, which has this parent and these news.
    pub(crate) fn grow(
        &self,
        parent: Option<&Known>,
        (branch, number): (&Branch, u64),
        news: News,
        durable: bool,
    ) -> Result<Grown> {
        let before = parent.and_then(|known| known.decision.commit());
        let mut tail = before.map(|before| before.tail.clone()).unwrap_or_default();
        if let (Some(known), Some(true)) = (parent, before.map(|before| !before.items.is_empty())) {
            tail.push(known.decision.number);
        }
        let levels = before.map(|before| before.levels.clone()).unwrap_or_default();
        let crosses =
            parent.is_some_and(|known| known.decision.branch != *branch) && !tail.is_empty();
        let mut commit = Commit {
            parent: parent.map(|known| Parent {
                branch: known.decision.branch.clone(),
                number: known.decision.number,
                sum: known.sum,
            }),
            levels: levels.clone(),
            ..Commit::default()
        };
        let mut made = Vec::new();
        let news = match news {
            News::Items(items) => {
                let items = numbered(items, number);
                let len = encode_items(&items).len();
                if len <= INLINE && tail.len() < FAN && !crosses {
                    (commit.items, commit.tail) = (items, tail);
                    return Ok(Grown { commit, made });
                }
                Some((items, len as u64))
            }
            News::Run(level, facts) => {
                commit.levels.push(level);
                commit.items = numbered(facts, number);
                None
            }
        };
        // The tail's items are older than a run of news that is there already, so that they come before it.
        let mut sources: Vec<Source<'_>> = match parent {
            Some(known) => self.tail_of(known)?.into_iter().map(Source::of_items).collect(),
            None => Vec::new(),
        };
        let own = match news {
            Some((items, len)) => {
                sources.push(Source::of_items(items));
                // What is shorter goes with it: no longer run lies over a shorter one.
                let mut first = commit.levels.len();
                while first > 0 && tier(commit.levels[first - 1].bytes) < tier(len) {
                    first -= 1;
                }
                let absorbed = commit.levels.split_off(first);
                let mut all = self.sources(&absorbed, (branch, number))?;
                all.append(&mut sources);
                Some(self.write_level(Merged::new(all, first == 0), number, durable, &mut made)?)
            }
            None if sources.iter().all(Source::is_empty) => None,
            None => {
                let own = commit.levels.pop();
                let lowest = commit.levels.is_empty();
                let items = Merged::new(sources, lowest);
                commit.levels.push(self.write_level(items, number, durable, &mut made)?);
                own
            }
        };
        commit.levels.extend(own);
        self.merge_levels(&mut commit.levels, (branch, number), durable, &mut made)?;
        let stays = |level: &Level| commit.levels.iter().any(|other| other.id == level.id);
        made.retain(|level| {
            let stays = stays(level);
            if !stays {
                // Made and merged at once.
                let _ = self.segments.remove(&crate::keys::run(level));
            }
            stays
        });
        commit.retired =
            levels.iter().filter(|level| !stays(level)).map(|level| level.id).collect();
        Ok(Grown { commit, made })
    }

    /// Merges runs of one length as often as there are eight.
    fn merge_levels(
        &self,
        levels: &mut Vec<Level>,
        of: (&Branch, u64),
        durable: bool,
        made: &mut Vec<Level>,
    ) -> Result<()> {
        let mut at = 0;
        while at <= levels.iter().map(|level| tier(level.bytes)).max().unwrap_or(0) {
            let behind = levels.iter().rev().take_while(|level| tier(level.bytes) <= at).count();
            let first = levels.len() - behind;
            let alike = levels[first..].iter().filter(|level| tier(level.bytes) == at).count();
            if alike >= FAN {
                let merged = levels.split_off(first);
                let items = Merged::new(self.sources(&merged, of)?, first == 0);
                levels.push(self.write_level(items, of.1, durable, made)?);
            }
            at += 1;
        }
        Ok(())
    }

    fn sources(&self, levels: &[Level], of: (&Branch, u64)) -> Result<Vec<Source<'_>>> {
        let open = |level: &Level| {
            let run = Run::open(&*self.segments, level, of)?;
            Ok(Source::of_run(&*self.segments, run))
        };
        levels.iter().map(open).collect()
    }

    fn write_level(
        &self,
        items: Merged<'_>,
        number: u64,
        durable: bool,
        made: &mut Vec<Level>,
    ) -> Result<Level> {
        let level = runs::write(&*self.segments, (self.writer, number), durable, items)?;
        made.push(level.clone());
        Ok(level)
    }

    /// Puts news into a run, for a number whose turn has not come.
    pub(crate) fn news(&self, items: Vec<Item>, number: u64, durable: bool) -> Result<News> {
        let items = numbered(items, number);
        if encode_items(&items).len() <= INLINE {
            return Ok(News::Items(items));
        }
        let sorted = Merged::new(vec![Source::of_items(items)], false);
        let level = runs::write(&*self.segments, (self.writer, number), durable, sorted)?;
        Ok(News::Run(level, Vec::new()))
    }

    /// Removes runs of a version that was not committed.
    pub(crate) fn unmake(&self, made: &[Level]) {
        for level in made {
            // What cannot be removed is garbage, in the way of nothing.
            let _ = self.segments.remove(&crate::keys::run(level));
        }
    }
}

/// Items that come with this number, sorted.
pub(crate) fn numbered(mut items: Vec<Item>, number: u64) -> Vec<Item> {
    for item in &mut items {
        // What was made to lie under others still does.
        item.over = if item.over == 0 { number } else { item.over.min(number) };
        item.number = number;
    }
    items.sort_by(Item::order);
    items
}
