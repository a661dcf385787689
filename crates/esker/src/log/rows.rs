//! The rows that a box has in two arrays: from where and to where they are copied.

use super::copying::copy;
use super::grid::{DIMS, Slab};

/// How often rows come again along a dimension, and how far it is from one to the next in each array.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Level {
    pub(super) count: u64,
    pub(super) from: u64,
    pub(super) to: u64,
}

/// Runs of elements that lie one behind the other in both arrays. Numbers are elements.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rows {
    levels: [Level; DIMS],
    used: usize,
    /// Elements of each.
    pub(super) len: u64,
    /// Where the first begins.
    pub(super) from: u64,
    pub(super) to: u64,
}

/// An array that a box is in: its first index and how far it is from one to the next, of each dimension.
pub(super) type Array = ([u64; DIMS], [u64; DIMS]);

impl Rows {
    /// Those of `part` in two arrays, in as few levels as there can be.
    pub(super) fn new(part: &Slab, from: &Array, to: &Array) -> Rows {
        let mut rows = Rows { levels: [Level::default(); DIMS], used: 0, len: 1, from: 0, to: 0 };
        for dim in (0..DIMS).rev() {
            let (start, count) = (part.start[dim], part.count[dim]);
            let place = |array: &Array| (start - array.0[dim]) * array.1[dim];
            rows.from += place(from);
            rows.to += place(to);
            let (from, to) = (from.1[dim], to.1[dim]);
            if count == 1 {
                continue;
            }
            let continues =
                |last: &Level| (last.from * last.count, last.to * last.count) == (from, to);
            match rows.levels[..rows.used].last_mut() {
                None if (from, to) == (rows.len, rows.len) => rows.len *= count,
                Some(last) if continues(last) => last.count *= count,
                _ => {
                    rows.levels[rows.used] = Level { count, from, to };
                    rows.used += 1;
                }
            }
        }
        rows
    }

    /// The levels, the fastest first.
    fn levels(&self) -> &[Level] {
        &self.levels[..self.used]
    }

    /// From the first element in the first array to that behind the last.
    pub(super) fn span(&self) -> u64 {
        self.len + self.levels().iter().map(|level| (level.count - 1) * level.from).sum::<u64>()
    }

    /// The slowest level, and the rows of its first index.
    pub(super) fn inner(&self) -> Option<(Level, Rows)> {
        let used = self.used.checked_sub(1)?;
        Some((self.levels[used], Rows { used, ..*self }))
    }

    /// So many of the slowest level, from that index on.
    pub(super) fn stretch(&self, first: u64, count: u64) -> Rows {
        let mut some = *self;
        if let Some(level) = some.levels[..some.used].last_mut() {
            (some.from, some.to) = (some.from + first * level.from, some.to + first * level.to);
            level.count = count;
        }
        some.used -= usize::from(count == 1 && some.used > 0);
        some
    }

    /// About how many elements of the first array are read for them, in blocks of `block`, if no more than one lies between two that
    /// are read together.
    pub(super) fn loaded(&self, block: u64) -> u64 {
        match self.inner() {
            Some((level, inner)) if level.from.saturating_sub(inner.span()) > block => {
                level.count.saturating_mul(inner.loaded(block))
            }
            _ => self.span().next_multiple_of(block),
        }
    }

    /// Calls `each` with the first element of each row in both arrays.
    pub(super) fn each(&self, each: &mut impl FnMut(u64, u64)) {
        walk(self.levels(), self.from, self.to, each);
    }

    /// Copies elements of `width` bytes: `from` begins at element `first` of the first array, `to` with the second. Their bytes are
    /// turned round if they are `reversed`.
    pub(super) fn copy(
        &self,
        width: u64,
        reversed: bool,
        (from, first): (&[u8], u64),
        to: &mut [u8],
    ) {
        match (self.len, width) {
            (1, 1) => self.copy_single::<1>(reversed, from, first, to),
            (1, 2) => self.copy_single::<2>(reversed, from, first, to),
            (1, 4) => self.copy_single::<4>(reversed, from, first, to),
            (1, 8) => self.copy_single::<8>(reversed, from, first, to),
            _ => self.each(&mut |at, target| {
                let bytes = (self.len * width) as usize;
                let (at, target) = (((at - first) * width) as usize, (target * width) as usize);
                let (source, target) = (&from[at..at + bytes], &mut to[target..target + bytes]);
                match reversed {
                    true => esker_format::values::copy_reversed(source, target, width as usize),
                    false => copy(source, target),
                }
            }),
        }
    }

    /// Rows of one element.
    fn copy_single<const W: usize>(&self, reversed: bool, from: &[u8], first: u64, to: &mut [u8]) {
        let (from, _) = from.as_chunks::<W>();
        let (to, _) = to.as_chunks_mut::<W>();
        match reversed {
            true => self.each(&mut |at, target| {
                let mut element = from[(at - first) as usize];
                element.reverse();
                to[target as usize] = element;
            }),
            false => self.each(&mut |at, target| to[target as usize] = from[(at - first) as usize]),
        }
    }
}

fn walk(levels: &[Level], from: u64, to: u64, each: &mut impl FnMut(u64, u64)) {
    match levels {
        [] => each(from, to),
        [last] => {
            for i in 0..last.count {
                each(from + i * last.from, to + i * last.to);
            }
        }
        [inner @ .., last] => {
            for i in 0..last.count {
                walk(inner, from + i * last.from, to + i * last.to, each);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_box_is_copied_from_array_to_array(
            dims in prop::collection::vec((1u64..5, 1u64..5, 1u64..5, 1u64..5), 1..5),
            reversed: bool,
            width in prop::sample::select(vec![1u64, 2, 4, 8]),
        ) {
            // What both have of two arrays that lie over each other at random.
            let mut arrays = [Slab { start: [0; DIMS], count: [1; DIMS] }; 2];
            for (dim, (a, n, b, m)) in dims.into_iter().enumerate() {
                (arrays[0].start[dim], arrays[0].count[dim]) = (a, n + 4);
                (arrays[1].start[dim], arrays[1].count[dim]) = (b, m + 4);
            }
            let [from, to] = arrays;
            let part = from.and(&to).unwrap();
            let rows = Rows::new(&part, &(from.start, from.steps()), &(to.start, to.steps()));
            let source: Vec<u8> = (0..from.volume() * width).map(|i| i as u8).collect();
            let mut found = vec![255; (to.volume() * width) as usize];
            let mut expected = found.clone();
            // As if the source began at its first element that is wanted.
            let skip = (rows.from * width) as usize;
            prop_assert!(rows.from + rows.span() <= from.volume());
            rows.copy(width, reversed, (&source[skip..], rows.from), &mut found);
            let index = |slab: &Slab, place: &[u64; DIMS]| {
                (0..DIMS).map(|d| (place[d] - slab.start[d]) * slab.steps()[d]).sum::<u64>() as usize
            };
            let mut place = [0; DIMS];
            loop {
                let at: [u64; DIMS] = std::array::from_fn(|d| part.start[d] + place[d]);
                let w = width as usize;
                let mut element = source[index(&from, &at) * w..][..w].to_vec();
                if reversed {
                    element.reverse();
                }
                expected[index(&to, &at) * w..][..w].copy_from_slice(&element);
                if esker_format::runs::advance(&mut place, &part.count).is_none() {
                    break;
                }
            }
            prop_assert_eq!(found, expected);
        }
    }
}
