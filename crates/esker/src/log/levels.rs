//! Intervals in groups, which can be asked which of a group meet a range.
//!
//! They lie in few sorted lists, each at least twice as long as the next: so there is no allocation
//! for an interval or a group, and what is added later costs a logarithm.

use std::ops::Range;

/// Something with a beginning and an end, in a group of such.
pub(crate) trait Interval {
    /// What it belongs to.
    type Group: Ord + Copy + std::fmt::Debug;

    /// Its group.
    fn group(&self) -> Self::Group;
    /// The first place.
    fn from(&self) -> u64;
    /// The place after the last.
    fn to(&self) -> u64;
}

/// All intervals.
#[derive(Debug)]
pub(crate) struct Levels<T: Interval> {
    levels: Vec<Level<T>>,
    /// Added, and not to be found yet.
    fresh: Vec<T>,
}

/// Intervals sorted by group and by where they begin; the middle of each stretch of a group knows
/// how far the stretch reaches, so that a balanced tree need not be built.
#[derive(Debug)]
struct Level<T: Interval> {
    items: Vec<T>,
    reach: Vec<u64>,
    /// The groups and where each ends, which are searched instead of the items: they are short.
    groups: Vec<(T::Group, usize)>,
}

impl<T: Interval> Default for Levels<T> {
    fn default() -> Self {
        Levels { levels: Vec::new(), fresh: Vec::new() }
    }
}

impl<T: Interval> Levels<T> {
    /// Adds an interval, which is found after the next [`Levels::settle`].
    pub(crate) fn push(&mut self, item: T) {
        self.fresh.push(item);
    }

    /// There will be so many more.
    pub(crate) fn reserve(&mut self, more: usize) {
        self.fresh.reserve(more);
    }

    /// Takes out what was added and is not to be kept.
    pub(crate) fn retain_fresh(&mut self, keeps: impl FnMut(&T) -> bool) {
        self.fresh.retain(keeps);
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        *self = Levels::default();
    }

    /// Takes in what was added.
    pub(crate) fn settle(&mut self) {
        if self.fresh.is_empty() {
            return;
        }
        let mut items = std::mem::take(&mut self.fresh);
        while let Some(level) = self.levels.pop_if(|level| level.items.len() < 2 * items.len()) {
            let mut longer = level.items;
            longer.append(&mut items);
            items = longer;
        }
        let items = sorted(items);
        let mut reach = vec![0; items.len()];
        let same = |a: &T, b: &T| a.group() == b.group();
        let (mut groups, mut at) = (Vec::new(), 0);
        for group in items.chunk_by(same) {
            build(group, &mut reach[at..at + group.len()]);
            at += group.len();
            groups.extend(group.first().map(|item| (item.group(), at)));
        }
        self.levels.push(Level { items, reach, groups });
    }

    /// Calls `each` with every interval of a group that meets `from..to`.
    pub(crate) fn overlapping(
        &self,
        group: T::Group,
        from: u64,
        to: u64,
        mut each: impl FnMut(&T),
    ) {
        for level in &self.levels {
            let number = level.groups.partition_point(|(other, _)| *other < group);
            if level.groups.get(number).is_some_and(|(other, _)| *other == group) {
                level.overlapping(number, from, to, &mut each);
            }
        }
    }

    /// The same for all groups of a range, which need not be there.
    pub(crate) fn overlapping_in(
        &self,
        groups: Range<T::Group>,
        from: u64,
        to: u64,
        mut each: impl FnMut(&T),
    ) {
        for level in &self.levels {
            let first = level.groups.partition_point(|(group, _)| *group < groups.start);
            let those = level.groups.iter().enumerate().skip(first);
            for (number, _) in those.take_while(|(_, (group, _))| *group < groups.end) {
                level.overlapping(number, from, to, &mut each);
            }
        }
    }
}

impl<T: Interval> Level<T> {
    /// Calls `each` with those of one group, by its number, that meet `from..to`.
    fn overlapping(&self, group: usize, from: u64, to: u64, each: &mut impl FnMut(&T)) {
        let end_of = |number: usize| self.groups.get(number).map_or(0, |(_, end)| *end);
        let group = group.checked_sub(1).map_or(0, end_of)..end_of(group);
        let (items, reach) = (&self.items[group.clone()], &self.reach[group]);
        // Most groups are the few entries of one record.
        if let [only] = items {
            if only.from() < to && only.to() > from {
                each(only);
            }
            return;
        }
        let mut open: Vec<Range<usize>> = Vec::new();
        open.push(0..items.len());
        while let Some(stretch) = open.pop() {
            let middle = stretch.start + stretch.len() / 2;
            if stretch.is_empty() || reach[middle] <= from {
                continue;
            }
            let item = &items[middle];
            if item.from() < to {
                if item.to() > from {
                    each(item);
                }
                open.push(middle + 1..stretch.end);
            }
            open.push(stretch.start..middle);
        }
    }
}

/// The intervals by group and beginning. They are long, so their keys are sorted first.
fn sorted<T: Interval>(mut items: Vec<T>) -> Vec<T> {
    let key = |item: &T| (item.group(), item.from());
    if items.is_sorted_by_key(key) {
        return items;
    }
    let mut order: Vec<((T::Group, u64), usize)> =
        items.iter().enumerate().map(|(number, item)| (key(item), number)).collect();
    order.sort_unstable();
    // Each goes once to where it belongs, in the circles that they make.
    for start in 0..items.len() {
        let mut to = start;
        loop {
            let from = std::mem::replace(&mut order[to].1, to);
            if from == start || from == to {
                break;
            }
            items.swap(to, from);
            to = from;
        }
    }
    items
}

/// Fills `reach` for a stretch; gives how far it reaches. The depth is a logarithm.
fn build<T: Interval>(items: &[T], reach: &mut [u64]) -> u64 {
    if items.is_empty() {
        return 0;
    }
    let middle = items.len() / 2;
    let (below, above) = reach.split_at_mut(middle);
    let furthest = build(&items[..middle], below)
        .max(build(&items[middle + 1..], &mut above[1..]))
        .max(items[middle].to());
    above[0] = furthest;
    furthest
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Group, beginning, end, number.
    impl Interval for (u64, u64, u64, usize) {
        type Group = u64;

        fn group(&self) -> u64 {
            self.0
        }

        fn from(&self) -> u64 {
            self.1
        }

        fn to(&self) -> u64 {
            self.2
        }
    }

    proptest! {
        #[test]
        fn every_interval_that_meets_is_found_once(
            parts in prop::collection::vec(
                prop::collection::vec((0u64..4, 0u64..100, 1u64..40), 0..40), 0..6),
            groups in (0u64..5, 0u64..5),
            from in 0u64..120,
            len in 0u64..60,
        ) {
            let mut levels = Levels::default();
            let mut all = Vec::new();
            for part in parts {
                for (group, start, n) in part {
                    let item = (group, start, start + n, all.len());
                    all.push(item);
                    levels.push(item);
                }
                levels.settle();
            }
            let groups = groups.0..groups.1;
            let meets = |i: &&(u64, u64, u64, usize)| {
                groups.contains(&i.0) && i.1 < from + len && i.2 > from
            };
            let expected: Vec<usize> = all.iter().filter(meets).map(|i| i.3).collect();
            let mut found = Vec::new();
            levels.overlapping_in(groups.clone(), from, from + len, |item| found.push(item.3));
            found.sort();
            prop_assert_eq!(&found, &expected);
            let mut found = Vec::new();
            for group in groups.clone() {
                levels.overlapping(group, from, from + len, |item| found.push(item.3));
            }
            found.sort();
            prop_assert_eq!(&found, &expected);
        }
    }

    #[test]
    fn a_question_looks_at_few_of_many() {
        let mut levels = Levels::default();
        levels.push((7, 0u64, 1_000_000u64, 0usize));
        for i in 0..100_000 {
            levels.push((7, 10 * i, 10 * i + 10, i as usize + 1));
        }
        levels.settle();
        let mut found = 0;
        levels.overlapping(7, 500_000, 500_010, |_| found += 1);
        assert_eq!(found, 2);
    }

    #[test]
    fn lists_are_few_however_often_something_is_added() {
        let mut levels = Levels::default();
        for i in 0..1000u64 {
            levels.push((i % 10, i, i + 1, i as usize));
            levels.settle();
        }
        assert!(levels.levels.len() <= 11, "{}", levels.levels.len());
    }
}
