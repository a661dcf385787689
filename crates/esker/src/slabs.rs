//! Elements of an array as hyperslabs: what numbers elements in C order, as a log does, becomes starts and counts again.

use crate::selection::Slab;

/// Elements at equal distances, slowest first: counts and steps in elements of the whole array.
pub(crate) type Levels = [(u64, u64)];

/// An array whose elements are numbered in C order.
pub(crate) struct Array {
    lens: Vec<u64>,
    /// Elements from one index of each dimension to the next.
    pub(crate) steps: Vec<u64>,
}

impl Array {
    /// With these lengths; `None` if it has no elements, or too many to be counted.
    pub(crate) fn new(lens: Vec<u64>) -> Option<Array> {
        let mut steps = vec![1u64; lens.len()];
        for d in (1..lens.len()).rev() {
            steps[d - 1] = steps[d].checked_mul(lens[d])?;
        }
        let all = steps.first()?.checked_mul(*lens.first()?)?;
        (all > 0).then_some(Array { lens, steps })
    }

    /// Calls `each` with hyperslabs that have these elements, in the same order.
    pub(crate) fn slabs(&self, first: u64, levels: &Levels, each: &mut impl FnMut(&Slab<'_>)) {
        if let Some((start, count, stride)) = self.slab(first, levels) {
            return each(&Slab { start: &start, count: &count, stride: &stride });
        }
        let Some(((count, step), inner)) = levels.split_first() else { return };
        let (count, step) = (*count, *step);
        let with = |outer: &Levels| [outer, inner].concat();
        let (mut fits, mut rows) = (count, None);
        if let Some((d, stride)) = self.dimension(step) {
            let index = first / self.steps[d] % self.lens[d];
            let whole = self.lens[d] / stride;
            if d > 0 && count > whole && self.is_of_rows(d, stride, index) {
                // Complete rows, then what follows them.
                fits = count - count % whole;
                rows = Some([(count / whole, self.steps[d - 1]), (whole, step)]);
            } else {
                fits = (self.lens[d] - index).div_ceil(stride).min(count);
            }
        }
        match rows {
            _ if fits < count => {
                self.slabs(first, &with(&[(fits, step)]), each);
                self.slabs(first + fits * step, &with(&[(count - fits, step)]), each);
            }
            Some(rows) => self.slabs(first, &with(&rows), each),
            None => (0..count).for_each(|i| self.slabs(first + i * step, inner, each)),
        }
    }

    /// The dimension whose indices a level counts: that of the longest step that is no longer.
    fn dimension(&self, step: u64) -> Option<(usize, u64)> {
        let d = self.steps.iter().position(|s| *s <= step)?;
        step.is_multiple_of(self.steps[d]).then(|| (d, step / self.steps[d]))
    }

    /// Whether steps of `stride` from `index` on meet the same indices in every row.
    fn is_of_rows(&self, d: usize, stride: u64, index: u64) -> bool {
        self.lens[d].is_multiple_of(stride) && index < stride
    }

    /// The one hyperslab that has these elements in this order, if there is one.
    fn slab(&self, first: u64, levels: &Levels) -> Option<(Vec<u64>, Vec<u64>, Vec<u64>)> {
        let rank = self.lens.len();
        let at = |d: usize| first / self.steps[d] % self.lens[d];
        let start: Vec<u64> = (0..rank).map(at).collect();
        let (mut count, mut stride) = (vec![1; rank], vec![1; rank]);
        // The next level belongs to a faster dimension than those before.
        let mut free = 0;
        for (n, step) in levels.iter().filter(|(n, _)| *n != 1) {
            let (d, by) = self.dimension(*step)?;
            let (mut n, mut d, mut by) = (*n, d, by);
            let fastest = d;
            loop {
                if d < free {
                    return None;
                }
                let to_end = (self.lens[d] - start[d]).div_ceil(by);
                if n <= to_end {
                    (count[d], stride[d]) = (n, by);
                    break;
                }
                let whole = self.lens[d] / by;
                if !self.is_of_rows(d, by, start[d]) || !n.is_multiple_of(whole) || d == 0 {
                    return None;
                }
                (count[d], stride[d]) = (whole, by);
                (n, d, by) = (n / whole, d - 1, 1);
            }
            free = fastest + 1;
        }
        Some((start, count, stride))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The elements of levels, in order.
    fn elements(first: u64, levels: &Levels) -> Vec<u64> {
        levels.iter().fold(vec![first], |all, (count, step)| {
            all.iter().flat_map(|e| (0..*count).map(move |i| e + i * step)).collect()
        })
    }

    fn of_slab(lens: &[u64], slab: &Slab<'_>) -> Vec<u64> {
        let mut all = vec![0];
        for (d, len) in lens.iter().enumerate() {
            let index = |i: u64| slab.start[d] + i * slab.stride_of(d);
            assert!(index(slab.count[d] - 1) < *len, "outside of dimension {d}");
            all = all
                .iter()
                .flat_map(|e| (0..slab.count[d]).map(move |i| e * len + index(i)))
                .collect();
        }
        all
    }

    proptest! {
        #[test]
        fn hyperslabs_have_the_elements_of_an_entry_in_order(
            lens in prop::collection::vec(1u64..7, 1..5),
            first in 0u64..40,
            levels in prop::collection::vec((1u64..9, 1u64..40), 0..4),
        ) {
            let total: u64 = lens.iter().product();
            let span: u64 = levels.iter().map(|(n, step)| (n - 1) * step).sum();
            prop_assume!(first + span < total);
            let mut found = Vec::new();
            let mut slabs = 0;
            Array::new(lens.clone()).unwrap().slabs(first, &levels, &mut |slab| {
                slabs += 1;
                found.extend(of_slab(&lens, slab));
            });
            prop_assert_eq!(found, elements(first, &levels));
            if let [(count, 1)] = levels[..] {
                prop_assert!(slabs <= 2 * lens.len(), "{count} elements in {slabs} hyperslabs");
            }
        }
    }
}
