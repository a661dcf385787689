//! Several sorted lists of items become one: of a fact the last item stays, data stay all.

use std::collections::VecDeque;

use esker_format::history::{Item, Key};
use esker_store::Segments;

use crate::error::Result;
use crate::runs::Run;

/// Sorted items, of which few are in memory.
#[derive(Debug)]
pub(crate) enum Source<'s> {
    /// All of them.
    Items(VecDeque<Item>),
    /// A block of a run at a time.
    Run { segments: &'s dyn Segments, run: Run, next: usize, items: VecDeque<Item> },
}

impl<'s> Source<'s> {
    pub(crate) fn of_items(mut items: Vec<Item>) -> Source<'s> {
        items.sort_by(Item::order);
        Source::Items(items.into())
    }

    pub(crate) fn of_run(segments: &'s dyn Segments, run: Run) -> Source<'s> {
        Source::Run { segments, run, next: 0, items: VecDeque::new() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        match self {
            Source::Items(items) => items.is_empty(),
            Source::Run { run, .. } => run.directory.items == 0,
        }
    }

    fn load(&mut self) -> Result<()> {
        if let Source::Run { segments, run, next, items } = self {
            while items.is_empty() && *next < run.blocks().end {
                *items = run.block(*segments, *next)?.into();
                *next += 1;
            }
        }
        Ok(())
    }

    fn front(&self) -> Option<&Item> {
        match self {
            Source::Items(items) | Source::Run { items, .. } => items.front(),
        }
    }

    fn take(&mut self) -> Option<Item> {
        match self {
            Source::Items(items) | Source::Run { items, .. } => items.pop_front(),
        }
    }
}

/// The items of several sources, older sources first, in order.
#[derive(Debug)]
pub(crate) struct Merged<'s> {
    sources: Vec<Source<'s>>,
    /// Whether nothing lies under these, so that what is no longer so need not be told.
    is_lowest: bool,
    held: Option<Item>,
}

impl<'s> Merged<'s> {
    pub(crate) fn new(sources: Vec<Source<'s>>, is_lowest: bool) -> Merged<'s> {
        Merged { sources, is_lowest, held: None }
    }

    /// The first of all items that are left; of equal ones that of the oldest source.
    fn first(&mut self) -> Result<Option<Item>> {
        for source in &mut self.sources {
            source.load()?;
        }
        let with_front =
            self.sources.iter().enumerate().filter_map(|(i, source)| Some((i, source.front()?)));
        let first = with_front.min_by(|(_, a), (_, b)| a.order(b)).map(|(i, _)| i);
        Ok(first.and_then(|i| self.sources[i].take()))
    }

    fn step(&mut self) -> Result<Option<Item>> {
        loop {
            let next = self.first()?;
            let same_fact = match (&self.held, &next) {
                (Some(held), Some(next)) => {
                    matches!(held.key, Key::Fact { .. }) && held.key == next.key
                }
                _ => false,
            };
            let before = std::mem::replace(&mut self.held, next);
            match before {
                Some(_) if same_fact => {}
                Some(item) if item.value.is_none() && self.is_lowest => {}
                Some(item) => return Ok(Some(item)),
                None if self.held.is_none() => return Ok(None),
                None => {}
            }
        }
    }
}

impl Iterator for Merged<'_> {
    type Item = Result<Item>;

    fn next(&mut self) -> Option<Result<Item>> {
        self.step().transpose()
    }
}
