//! Intervals that can be asked which of them meet a range.

use std::ops::Range;

/// Something with a beginning and an end.
pub(crate) trait Interval {
    /// The first place.
    fn from(&self) -> u64;
    /// The place after the last.
    fn to(&self) -> u64;
}

/// Intervals sorted by where they begin; the middle of each stretch knows how far the stretch
/// reaches, so that a balanced tree need not be built.
#[derive(Debug)]
pub(crate) struct Tree<T> {
    items: Vec<T>,
    reach: Vec<u64>,
}

impl<T> Default for Tree<T> {
    fn default() -> Self {
        Tree { items: Vec::new(), reach: Vec::new() }
    }
}

impl<T: Interval> Tree<T> {
    /// Adds an interval, which is found after the next [`Tree::settle`]; gives whether it is the
    /// first that waits for that.
    pub(crate) fn push(&mut self, item: T) -> bool {
        let settled = self.reach.len() == self.items.len();
        self.items.push(item);
        settled
    }

    /// Takes in what was added.
    pub(crate) fn settle(&mut self) {
        if self.reach.len() == self.items.len() {
            return;
        }
        if !self.items.is_sorted_by_key(T::from) {
            self.items.sort_by_key(T::from);
        }
        self.reach.clear();
        self.reach.resize(self.items.len(), 0);
        build(&self.items, &mut self.reach);
    }

    /// Calls `each` with every interval that meets `from..to`.
    pub(crate) fn overlapping(&self, from: u64, to: u64, mut each: impl FnMut(&T)) {
        let mut open: Vec<Range<usize>> = Vec::new();
        open.push(0..self.reach.len());
        while let Some(stretch) = open.pop() {
            let middle = stretch.start + stretch.len() / 2;
            if stretch.is_empty() || self.reach[middle] <= from {
                continue;
            }
            let item = &self.items[middle];
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

    impl Interval for (u64, u64, usize) {
        fn from(&self) -> u64 {
            self.0
        }

        fn to(&self) -> u64 {
            self.1
        }
    }

    proptest! {
        #[test]
        fn every_interval_that_meets_is_found_once(
            first in prop::collection::vec((0u64..100, 1u64..40), 0..60),
            second in prop::collection::vec((0u64..100, 1u64..40), 0..60),
            from in 0u64..120,
            len in 0u64..60,
        ) {
            let mut tree = Tree::default();
            let mut all = Vec::new();
            for part in [first, second] {
                for (start, n) in part {
                    let item = (start, start + n, all.len());
                    all.push(item);
                    tree.push(item);
                }
                tree.settle();
            }
            let mut found = Vec::new();
            tree.overlapping(from, from + len, |item| found.push(item.2));
            found.sort();
            let meets = |i: &&(u64, u64, usize)| i.0 < from + len && i.1 > from;
            let expected: Vec<usize> = all.iter().filter(meets).map(|i| i.2).collect();
            prop_assert_eq!(found, expected);
        }
    }

    #[test]
    fn a_question_looks_at_few_of_many() {
        let mut tree = Tree::default();
        tree.push((0u64, 1_000_000u64, 0usize));
        for i in 0..100_000 {
            tree.push((10 * i, 10 * i + 10, i as usize + 1));
        }
        tree.settle();
        let mut found = 0;
        tree.overlapping(500_000, 500_010, |_| found += 1);
        assert_eq!(found, 2);
    }
}
