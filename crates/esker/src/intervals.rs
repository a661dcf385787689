//! Intervals that can be asked which of them meet a range, and the sweep in which the later wins.
//!
//! Logs ask which entries have elements, maps which blocks; both lie sorted by where they begin.

use std::collections::BinaryHeap;
use std::ops::Range;

/// Something with a beginning and an end.
pub(crate) trait Interval {
    /// The first place.
    fn from(&self) -> u64;
    /// The place after the last.
    fn to(&self) -> u64;
}

/// An interval in a group of such, which are asked for together.
pub(crate) trait Grouped: Interval {
    /// What it belongs to.
    type Group: Ord + Copy + std::fmt::Debug;

    /// Its group.
    fn group(&self) -> Self::Group;
}

/// Intervals sorted by where they begin, and how far the subtrees of the balanced tree reach that
/// they are: the middle of each stretch is its root, so that no tree need be built.
#[derive(Debug)]
pub(crate) struct Intervals<T> {
    items: Vec<T>,
    reach: Vec<u64>,
    /// Whether each ends before the next one begins.
    apart: bool,
}

impl<T: Interval> Intervals<T> {
    /// The intervals, in any order.
    pub(crate) fn new(mut items: Vec<T>) -> Intervals<T> {
        if !items.is_sorted_by_key(T::from) {
            items.sort_unstable_by_key(T::from);
        }
        let apart = items.windows(2).all(|pair| pair[0].to() <= pair[1].from());
        let mut reach = vec![0; items.len()];
        build(&items, &mut reach);
        Intervals { items, reach, apart }
    }

    /// Bytes that so many intervals take.
    pub(crate) fn memory(count: u64) -> u64 {
        count.saturating_mul((size_of::<T>() + size_of::<u64>()) as u64)
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.items.len()
    }

    /// How many begin within `from..to`: no fewer than a question of that range may meet, but for
    /// those that reach into it.
    pub(crate) fn beginning_in(&self, from: u64, to: u64) -> usize {
        let first = self.items.partition_point(|item| item.from() < from);
        self.items.partition_point(|item| item.from() < to).saturating_sub(first)
    }

    /// Calls `each` with every interval that meets `from..to`, in order. Questions that go up share
    /// `near`, which begins as 0: where intervals lie apart, each is looked for from the last one on.
    pub(crate) fn overlapping(
        &self,
        near: &mut usize,
        from: u64,
        to: u64,
        each: &mut impl FnMut(&T),
    ) {
        if !self.apart {
            return walk(&self.items, &self.reach, from, to, each);
        }
        let ends_before = |item: &T| item.to() <= from;
        let is_beyond = *near > 0 && !self.items.get(*near - 1).is_some_and(ends_before);
        *near = gallop(&self.items, if is_beyond { 0 } else { *near }, ends_before);
        self.items[*near..].iter().take_while(|item| item.from() < to).for_each(each);
    }
}

/// Calls `each` with those of a sorted stretch that meet `from..to`, in order.
fn walk<T: Interval>(items: &[T], reach: &[u64], from: u64, to: u64, each: &mut impl FnMut(&T)) {
    let middle = items.len() / 2;
    if reach.get(middle).is_none_or(|reach| *reach <= from) {
        return;
    }
    let item = &items[middle];
    walk(&items[..middle], &reach[..middle], from, to, each);
    if item.from() >= to {
        return;
    }
    if item.to() > from {
        each(item);
    }
    walk(&items[middle + 1..], &reach[middle + 1..], from, to, each);
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

/// Intervals in groups, to which more may be added. They lie in few sorted lists, each at least
/// twice as long as the next: so there is no allocation for an interval or a group, and what is
/// added later costs a logarithm.
#[derive(Debug)]
pub(crate) struct Levels<T: Grouped> {
    levels: Vec<Level<T>>,
    /// Added, and not to be found yet.
    fresh: Vec<T>,
}

/// Intervals sorted by group and by where they begin, each group as [`Intervals`] are.
#[derive(Debug)]
struct Level<T: Grouped> {
    items: Vec<T>,
    reach: Vec<u64>,
    /// The groups and where each ends, which are searched instead of the items: they are short.
    groups: Vec<(T::Group, usize)>,
}

impl<T: Grouped> Default for Levels<T> {
    fn default() -> Self {
        Levels { levels: Vec::new(), fresh: Vec::new() }
    }
}

impl<T: Grouped> Levels<T> {
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

impl<T: Grouped> Level<T> {
    /// Calls `each` with those of one group, by its number, that meet `from..to`.
    fn overlapping(&self, group: usize, from: u64, to: u64, each: &mut impl FnMut(&T)) {
        let end_of = |number: usize| self.groups.get(number).map_or(0, |(_, end)| *end);
        let group = group.checked_sub(1).map_or(0, end_of)..end_of(group);
        walk(&self.items[group.clone()], &self.reach[group], from, to, each);
    }
}

/// The intervals by group and beginning. They are long, so their keys are sorted first.
fn sorted<T: Grouped>(mut items: Vec<T>) -> Vec<T> {
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

/// The first item at or after `start` for which `before` is false; it is true up to there. Costs
/// a logarithm of the distance.
pub(crate) fn gallop<T>(list: &[T], start: usize, before: impl Fn(&T) -> bool) -> usize {
    let mut low = start.min(list.len());
    let mut step = 1;
    while list.get(low + step - 1).is_some_and(&before) {
        low += step;
        step *= 2;
    }
    let high = (low + step - 1).min(list.len());
    low + list[low..high].partition_point(before)
}

/// Sorted intervals without overlaps: where several have a place, that of the highest `order` has it.
/// `part` cuts one, and `grow` makes one longer by what follows it, if it does.
pub(crate) fn later_wins<T: Interval, O: Ord>(
    sorted: &[T],
    order: impl Fn(&T) -> O,
    part: impl Fn(&T, u64, u64) -> T,
    grow: impl Fn(&mut T, &T) -> bool,
) -> Vec<T> {
    let mut out: Vec<T> = Vec::with_capacity(sorted.len());
    // Intervals that reach the current place, the latest on top.
    let mut open: BinaryHeap<(O, usize)> = BinaryHeap::new();
    let (mut at, mut next) = (0, 0);
    loop {
        while open.peek().is_some_and(|(_, number)| sorted[*number].to() <= at) {
            open.pop();
        }
        if open.is_empty() {
            match sorted.get(next) {
                None => return out,
                Some(item) => at = at.max(item.from()),
            }
        }
        while let Some(item) = sorted.get(next).filter(|item| item.from() <= at) {
            open.push((order(item), next));
            next += 1;
        }
        let Some((latest, number)) = open.peek() else { continue };
        let top = &sorted[*number];
        if top.to() <= at {
            continue;
        }
        // The top one holds until it ends or a later one begins.
        let begun = sorted[next..].iter().take_while(|item| item.from() < top.to());
        let later = begun.into_iter().find(|item| order(item) > *latest);
        let until = later.map_or(top.to(), T::from);
        let piece = part(top, at, until);
        // Parts of one that were cut for nothing grow together again.
        if !out.last_mut().is_some_and(|last| grow(last, &piece)) {
            out.push(piece);
        }
        at = until;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Group, beginning, end, number.
    impl Grouped for (u64, u64, u64, usize) {
        type Group = u64;

        fn group(&self) -> u64 {
            self.0
        }
    }

    impl Interval for (u64, u64, u64, usize) {
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

        #[test]
        fn questions_of_any_order_find_what_a_scan_finds(
            spans in prop::collection::vec((0u64..200, 1u64..30), 0..60),
            apart in any::<bool>(),
            asked in prop::collection::vec((0u64..240, 1u64..40), 1..20),
        ) {
            let mut spans = spans;
            if apart {
                spans.sort();
                let mut end = 0;
                spans.retain(|(from, len)| {
                    let keeps = *from >= end;
                    end = if keeps { from + len } else { end };
                    keeps
                });
            }
            let all: Vec<_> =
                spans.iter().enumerate().map(|(i, (from, len))| (0, *from, from + len, i)).collect();
            let intervals = Intervals::new(all.clone());
            let mut near = 0;
            for (from, len) in asked {
                let mut found = Vec::new();
                intervals.overlapping(&mut near, from, from + len, &mut |item| found.push(*item));
                prop_assert!(found.is_sorted_by_key(|item| item.1));
                let mut expected = all.clone();
                expected.retain(|item| item.1 < from + len && item.2 > from);
                found.sort_by_key(|item| item.3);
                prop_assert_eq!(found, expected);
                let begin = all.iter().filter(|item| (from..from + len).contains(&item.1)).count();
                prop_assert_eq!(intervals.beginning_in(from, from + len), begin);
            }
        }

        #[test]
        fn where_intervals_overlap_the_later_has_the_place(
            spans in prop::collection::vec((0u64..60, 1u64..20), 0..30),
        ) {
            let mut model = [None; 80];
            let mut all = Vec::new();
            for (number, (from, len)) in spans.iter().enumerate() {
                model[*from as usize..(from + len) as usize].fill(Some(number));
                all.push((0, *from, from + len, number));
            }
            all.sort_by_key(|item| item.1);
            let part = |item: &(u64, u64, u64, usize), from, to| (0, from, to, item.3);
            let grow = |last: &mut (u64, u64, u64, usize), next: &(u64, u64, u64, usize)| {
                let follows = (last.2, last.3) == (next.1, next.3);
                last.2 = if follows { next.2 } else { last.2 };
                follows
            };
            let mut found = [None; 80];
            for item in later_wins(&all, |item| item.3, part, grow) {
                for place in &mut found[item.1 as usize..item.2 as usize] {
                    prop_assert_eq!(*place, None);
                    *place = Some(item.3);
                }
            }
            prop_assert_eq!(found, model);
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
