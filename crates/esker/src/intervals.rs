//! Intervals that can be asked which of them meet a range, and the sweep in which the later wins.
//!
//! Maps ask which blocks have elements; they lie sorted by where they begin.

use std::collections::BinaryHeap;

/// Something with a beginning and an end.
pub(crate) trait Interval {
    /// The first place.
    fn from(&self) -> u64;
    /// The place after the last.
    fn to(&self) -> u64;
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

    /// Anything, beginning, end, number.
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
}
