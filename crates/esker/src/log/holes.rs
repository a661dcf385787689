//! Which of the wanted elements no entry has.

use super::lay::Want;
use crate::gathered::{Covered, mark};

/// Elements of a window, one bit for each that was laid.
#[derive(Debug, Default)]
pub(super) struct Holes {
    laid: Vec<u64>,
    /// How many elements are before each want, and in all.
    before: Vec<u64>,
}

impl Holes {
    /// Makes everything that is wanted a hole.
    pub(super) fn reset(&mut self, wants: &[Want]) {
        self.before.clear();
        let mut elements = 0;
        for want in wants {
            self.before.push(elements);
            elements += want.to - want.from;
        }
        self.before.push(elements);
        self.laid.clear();
        self.laid.resize((elements as usize).div_ceil(64), 0);
    }

    /// There are `len` elements from the `start`th on of this want.
    pub(super) fn lay(&mut self, want: usize, start: u64, len: u64) {
        let from = (self.before[want] + start) as usize;
        mark(&mut self.laid, from, from + len as usize);
    }

    /// Calls `each` with the stretches that are holes, as wants.
    pub(super) fn each(&self, wants: &[Want], width: u64, mut each: impl FnMut(Want)) {
        let end = self.before.last().copied().unwrap_or(0);
        let (mut from, mut number) = (0, 0);
        let laid = Covered { known: &self.laid, at: 0, end: end as usize };
        for (to, next) in laid.chain([(end as usize, end as usize)]) {
            let to = to as u64;
            while from < to {
                while self.before.get(number + 1).is_some_and(|before| *before <= from) {
                    number += 1;
                }
                let (Some(want), before) = (wants.get(number), self.before[number]) else { return };
                let stop = to.min(self.before[number + 1]);
                let hole = from - before;
                each(Want {
                    from: want.from + hole,
                    to: want.from + (stop - before),
                    at: want.at + hole * width,
                });
                from = stop;
            }
            from = next as u64;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_was_not_laid_is_a_hole(
            lens in prop::collection::vec(1u64..90, 1..6),
            laid in prop::collection::vec((any::<prop::sample::Index>(), 0u64..90, 1u64..90), 0..9),
        ) {
            let (mut from, mut at) = (3, 7);
            let mut wants = Vec::new();
            for len in lens {
                wants.push(Want { from, to: from + len, at });
                (from, at) = (from + len + 2, at + 4 * len + 1);
            }
            let places = |want: &Want| {
                let Want { from, to, at } = *want;
                (from..to).map(move |i| (i, at + 4 * (i - from)))
            };
            let mut expected: Vec<(u64, u64)> = wants.iter().flat_map(places).collect();
            let mut holes = Holes::default();
            holes.reset(&wants);
            for (number, start, len) in laid {
                let number = number.index(wants.len());
                let want = &wants[number];
                let start = start.min(want.to - want.from - 1);
                let len = len.min(want.to - want.from - start);
                holes.lay(number, start, len);
                let laid = want.from + start..want.from + start + len;
                expected.retain(|(element, _)| !laid.contains(element));
            }
            let mut found = Vec::new();
            holes.each(&wants, 4, |want| found.extend(places(&want)));
            prop_assert_eq!(found, expected);
        }
    }
}
