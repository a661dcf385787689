//! The dimensions in which a variable's elements are seen, and boxes of them.
//!
//! A log numbers elements linearly within a record. A grid gives each element a place: its record, and an index in each
//! dimension of a record. Every element has one place, whatever the grid, so that a grid which does not fit what was written only
//! makes its boxes larger than they need be.

use std::ops::Range;

use esker_format::log::Records;
use esker_format::runs::Pattern;
use esker_format::{Header, VarId};

/// Dimensions of a grid at most, that of records included: what is slower than the others is one.
pub(crate) const DIMS: usize = 8;

/// Records, and the dimensions of one of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Grid {
    /// How many elements lie from one index to the next, of each dimension of a record, the slowest first. Each divides the one
    /// before; the last is 1. The slowest dimension has no end.
    steps: [u64; DIMS - 1],
    inner: usize,
}

/// A box of records and of the dimensions of a grid: from where on, and how many of each. Those that a grid does not have are one long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Slab {
    pub(crate) start: [u64; DIMS],
    pub(crate) count: [u64; DIMS],
}

impl Default for Grid {
    /// All elements of a record in one dimension.
    fn default() -> Grid {
        Grid::LINEAR
    }
}

impl Grid {
    /// All elements of a record in one dimension.
    pub(crate) const LINEAR: Grid = Grid { steps: [1; DIMS - 1], inner: 1 };

    /// That of records of this shape.
    pub(crate) fn of_shape(shape: &[u64]) -> Grid {
        let from = shape.iter().position(|len| *len != 1).unwrap_or(shape.len());
        let mut inner = vec![1u64];
        let mut step = 1u64;
        for len in shape.iter().skip(from + 1).rev().filter(|len| **len != 1) {
            step = match step.checked_mul(*len) {
                Some(longer) if longer > 0 && longer <= i64::MAX as u64 => longer,
                _ => break,
            };
            inner.push(step);
        }
        inner.truncate(DIMS - 1);
        inner.reverse();
        let mut steps = [1; DIMS - 1];
        steps[..inner.len()].copy_from_slice(&inner);
        Grid { steps, inner: inner.len() }
    }

    /// That of a variable.
    pub(crate) fn of(header: &Header, var: VarId) -> Grid {
        let Some(variable) = header.schema.variable(var) else { return Grid::default() };
        let mut shape = header.schema.shape(variable, 0);
        shape.drain(..usize::from(header.schema.is_record(variable)));
        Grid::of_shape(&shape)
    }

    fn inner(&self) -> &[u64] {
        &self.steps[..self.inner]
    }

    /// How many dimensions it has, with that of records.
    pub(crate) fn dims(&self) -> usize {
        1 + self.inner
    }

    /// How many elements lie from one index to the next of each dimension; records have no distance.
    pub(crate) fn steps(&self) -> [u64; DIMS] {
        let mut steps = [0; DIMS];
        steps[1..self.dims()].copy_from_slice(self.inner());
        steps
    }

    /// How long a dimension is; the slowest has no end.
    fn len(&self, dim: usize) -> u64 {
        match dim.checked_sub(2).and_then(|slower| self.inner().get(slower)) {
            Some(step) => step / self.steps[dim - 1],
            None => u64::MAX,
        }
    }

    /// The place of an element.
    fn place(&self, record: u64, mut element: u64) -> [u64; DIMS] {
        let mut place = [0; DIMS];
        place[0] = record;
        for (place, step) in place[1..].iter_mut().zip(self.inner()) {
            *place = element / step;
            element %= step;
        }
        place
    }

    /// The smallest box that has these elements of these records, which are some.
    pub(crate) fn around(&self, records: Range<u64>, elements: Range<u64>) -> Slab {
        let first = self.place(records.start, elements.start);
        let last = self.place(records.end.max(1) - 1, elements.end.max(1) - 1);
        let mut slab = Slab { start: first, count: [1; DIMS] };
        let mut same = true;
        slab.count[0] = last[0].saturating_sub(first[0]).saturating_add(1);
        for dim in 1..self.dims() {
            match same {
                true => slab.count[dim] = last[dim].saturating_sub(first[dim]).saturating_add(1),
                false => (slab.start[dim], slab.count[dim]) = (0, self.len(dim)),
            }
            same &= first[dim] == last[dim];
        }
        slab
    }

    /// A box that has all elements of a hyperslab, which begins at `first` and has `levels` of count and step, the slowest first and the
    /// run as the last. And whether it has no others, in the same order.
    pub(crate) fn hull(
        &self,
        records: Records,
        first: u64,
        levels: impl DoubleEndedIterator<Item = (u64, u64)> + Clone,
    ) -> (Slab, bool) {
        let end = records.end().unwrap_or(u64::MAX);
        let dense = records.step == 1 || records.count == 1;
        if let Some((mut slab, whole)) = self.within_dims(first, levels.clone()) {
            (slab.start[0], slab.count[0]) = (records.first, end - records.first);
            return (slab, whole && dense);
        }
        let span = levels.fold(1u64, |span, (count, step)| {
            span.saturating_add(count.saturating_sub(1).saturating_mul(step))
        });
        (self.around(records.first..end, first..first.saturating_add(span)), false)
    }

    /// The same for one record, if each level goes along dimensions of its own.
    fn within_dims(
        &self,
        first: u64,
        levels: impl DoubleEndedIterator<Item = (u64, u64)>,
    ) -> Option<(Slab, bool)> {
        let mut slab = Slab { start: self.place(0, first), count: [1; DIMS] };
        // Dimensions from this one on have been gone along.
        let mut used = self.dims();
        let mut whole = true;
        for (mut count, step) in levels.rev().filter(|(count, _)| *count != 1) {
            // The slowest dimension of which this is a multiple of the step.
            let along = |known: &u64| *known <= step && step.is_multiple_of(*known);
            let mut dim = 1 + self.inner().iter().position(along)?;
            let stride = step / self.steps[dim - 1];
            loop {
                let len = self.len(dim);
                if dim >= used || count == 0 {
                    return None;
                }
                used = dim;
                let reach = (count - 1).checked_mul(stride)?.checked_add(1)?;
                if reach <= len - slab.start[dim] {
                    slab.count[dim] = reach;
                    whole &= stride == 1;
                    break;
                }
                // On into the next slower dimension, if this one is gone through.
                if stride != 1 || slab.start[dim] != 0 || count % len != 0 {
                    return None;
                }
                (slab.count[dim], count) = (len, count / len);
                dim -= 1;
            }
        }
        Some((slab, whole))
    }

    /// The same of a hyperslab in one record or in some.
    pub(crate) fn hull_of(&self, records: Records, pattern: &Pattern) -> (Slab, bool) {
        let run = (pattern.run_len(), 1);
        self.hull(records, pattern.first(), pattern.levels().iter().copied().chain([run]))
    }

    /// The elements of a record that a box has.
    pub(crate) fn pattern(&self, slab: &Slab) -> Pattern {
        let first = self.first(slab);
        let dims = slab.count[1..].iter().copied().zip(self.inner().iter().copied());
        let dims: Vec<(u64, u64)> = dims.collect();
        Pattern::new(first, 1, dims.into_iter())
    }

    /// The lowest element of a record that a box has.
    pub(crate) fn first(&self, slab: &Slab) -> u64 {
        slab.start[1..].iter().zip(self.inner()).map(|(start, step)| start * step).sum()
    }
}

/// A box in the grid in which it is seen.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BoxSeen {
    pub(crate) grid: Grid,
    pub(crate) slab: Slab,
    /// Whether all of it is meant.
    pub(crate) whole: bool,
}

impl BoxSeen {
    pub(crate) fn records(&self) -> Range<u64> {
        self.slab.records()
    }

    /// Its first index and how many there are in each dimension of records of this shape, and whether it is all of that.
    pub(crate) fn in_shape(&self, shape: &[u64]) -> (Vec<u64>, Vec<u64>, bool) {
        let first = self.grid.first(&self.slab);
        let span = self.slab.count[1..].iter().zip(self.grid.inner());
        let span = span.fold(0u64, |span, (count, step)| {
            span.saturating_add(count.saturating_sub(1).saturating_mul(*step))
        });
        let index = |mut element: u64| {
            let mut index: Vec<u64> = Vec::with_capacity(shape.len());
            for len in shape.iter().skip(1).rev() {
                index.push(element % len.max(&1));
                element /= len.max(&1);
            }
            // The slowest dimension has no end.
            index.extend((!shape.is_empty()).then_some(element));
            index.reverse();
            index
        };
        let (start, last) = (index(first), index(first.saturating_add(span)));
        let mut count: Vec<u64> =
            start.iter().zip(&last).map(|(start, last)| last.saturating_sub(*start) + 1).collect();
        let elements = self.slab.volume() / self.slab.count[0].max(1);
        if start.iter().zip(&last).all(|(start, last)| start <= last)
            && count.iter().fold(1, |all: u64, n| all.saturating_mul(*n)) == elements
        {
            return (start, count, self.whole);
        }
        // What is around a box of a grid in which slow dimensions are one, or of another shape.
        let (mut start, mut same) = (start, true);
        for dim in 0..shape.len() {
            if !same {
                (start[dim], count[dim]) = (0, shape[dim]);
            }
            same &= start[dim] == last[dim];
        }
        (start, count, false)
    }
}

impl Slab {
    /// How many elements it has.
    pub(crate) fn volume(&self) -> u64 {
        self.count.iter().fold(1, |all, count| all.saturating_mul(*count))
    }

    /// Its records.
    pub(crate) fn records(&self) -> Range<u64> {
        self.start[0]..self.start[0].saturating_add(self.count[0])
    }

    /// The index behind the last, of each dimension.
    pub(crate) fn end(&self) -> [u64; DIMS] {
        std::array::from_fn(|dim| self.start[dim].saturating_add(self.count[dim]))
    }

    /// What both have.
    pub(crate) fn and(&self, other: &Slab) -> Option<Slab> {
        let (end, others) = (self.end(), other.end());
        let mut both = *self;
        for dim in 0..DIMS {
            both.start[dim] = self.start[dim].max(other.start[dim]);
            both.count[dim] =
                end[dim].min(others[dim]).checked_sub(both.start[dim]).filter(|n| *n > 0)?;
        }
        Some(both)
    }

    /// One record of it.
    pub(crate) fn in_record(&self, record: u64) -> Slab {
        let mut one = *self;
        (one.start[0], one.count[0]) = (record, 1);
        one
    }

    /// How many elements lie from one index to the next of each dimension, where it lies densely.
    pub(crate) fn steps(&self) -> [u64; DIMS] {
        let mut steps = [1u64; DIMS];
        for dim in (1..DIMS).rev() {
            steps[dim - 1] = steps[dim].saturating_mul(self.count[dim]);
        }
        steps
    }

    /// How many runs of elements it has at most.
    pub(crate) fn rows(&self, dims: usize) -> u64 {
        self.count[..dims - 1].iter().fold(1, |all, count| all.saturating_mul(*count))
    }

    /// The first and the second half, one behind the other where it lies densely. `None` for one element.
    pub(crate) fn halves(&self) -> Option<(Slab, Slab)> {
        let dim = self.count.iter().position(|count| *count > 1)?;
        let (mut one, mut other) = (*self, *self);
        one.count[dim] = self.count[dim] / 2;
        other.start[dim] += one.count[dim];
        other.count[dim] -= one.count[dim];
        Some((one, other))
    }

    /// Calls `each` with boxes of at most `most` elements, which have all of it, in the order of its elements.
    pub(crate) fn pieces<E>(
        &self,
        most: u64,
        each: &mut impl FnMut(&Slab) -> Result<(), E>,
    ) -> Result<(), E> {
        let most = most.max(1);
        if self.volume() <= most {
            return each(self);
        }
        let Some(dim) = self.count.iter().position(|count| *count > 1) else { return each(self) };
        let mut inner = *self;
        inner.count[dim] = 1;
        let at_once = (most / inner.volume()).max(1);
        let end = self.start[dim] + self.count[dim];
        while inner.start[dim] < end {
            inner.count[dim] = at_once.min(end - inner.start[dim]);
            inner.pieces(most, each)?;
            inner.start[dim] += inner.count[dim];
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn elements(first: u64, levels: &[(u64, u64)]) -> Vec<u64> {
        levels.iter().fold(vec![first], |starts, (count, step)| {
            starts.iter().flat_map(|s| (0..*count).map(move |i| s + i * step)).collect()
        })
    }

    fn places(grid: &Grid, slab: &Slab) -> Vec<u64> {
        elements(
            grid.first(slab),
            &slab.count[1..].iter().copied().zip(grid.inner().iter().copied()).collect::<Vec<_>>(),
        )
    }

    fn dense(count: &[u64]) -> Slab {
        let mut slab = Slab { start: [0; DIMS], count: [1; DIMS] };
        slab.count[..count.len()].copy_from_slice(count);
        slab
    }

    proptest! {
        #[test]
        fn a_hyperslab_of_the_shape_is_a_box_and_anything_else_is_in_one(
            dims in prop::collection::vec((1u64..5, any::<prop::sample::Index>(), any::<prop::sample::Index>(), 1u64..3), 1..6),
            seen in prop::option::of(prop::collection::vec(1u64..5, 1..6)),
        ) {
            let shape: Vec<u64> = dims.iter().map(|(len, ..)| *len).collect();
            let grid = Grid::of_shape(seen.as_ref().unwrap_or(&shape));
            let (mut first, mut step, mut strided) = (0, 1, false);
            let mut levels = Vec::new();
            for (len, start, count, stride) in dims.iter().rev() {
                let start = start.index(*len as usize) as u64;
                let count = 1 + count.index((len - start).div_ceil(*stride) as usize) as u64;
                first += start * step;
                levels.push((count, step * stride));
                strided |= *stride > 1 && count > 1;
                step *= len;
            }
            levels.reverse();
            let pattern = Pattern::new(first, 1, levels.iter().copied());
            let (slab, whole) = grid.hull_of(Records { first: 3, count: 2, step: 1 }, &pattern);
            prop_assert_eq!(slab.records(), 3..5);
            let (all, mut found) = (elements(first, &levels), places(&grid, &slab));
            prop_assert!(!whole || all == found);
            prop_assert!(seen.is_some() || whole != strided);
            found.sort();
            prop_assert!(all.iter().all(|element| found.binary_search(element).is_ok()));
            if whole {
                prop_assert_eq!(grid.hull_of(Records::one(3), &grid.pattern(&slab)).0, slab.in_record(3));
            }
        }

        #[test]
        fn what_is_around_elements_has_them_all(
            shape in prop::collection::vec(1u64..6, 1..12),
            first in 0u64..300,
            count in 1u64..100,
        ) {
            let grid = Grid::of_shape(&shape);
            let slab = grid.around(5..6, first..first + count);
            let end = Slab::end(&slab);
            for element in first..first + count {
                let place = grid.place(5, element);
                prop_assert!((0..DIMS).all(|d| slab.start[d] <= place[d] && place[d] < end[d]));
            }
        }

        #[test]
        fn pieces_and_halves_are_all_of_it_in_order(
            // A grid has no dimensions of one index.
            count in prop::collection::vec(2u64..5, 1..6),
            most in 1u64..40,
        ) {
            let slab = dense(&[vec![1], count.clone()].concat());
            let grid = Grid::of_shape(&count);
            let mut found = Vec::new();
            let each = &mut |piece: &Slab| {
                assert!(piece.volume() <= most);
                found.extend(places(&grid, piece));
                Ok::<(), ()>(())
            };
            slab.pieces(most, each).unwrap();
            prop_assert_eq!(&found, &places(&grid, &slab));
            if let Some((one, other)) = slab.halves() {
                let both = [places(&grid, &one), places(&grid, &other)].concat();
                prop_assert_eq!(both, found);
            }
        }
    }

    #[test]
    fn a_box_is_told_in_the_dimensions_of_its_variable() {
        let shape = [1, 4, 1, 5, 6];
        let grid = Grid::of_shape(&shape);
        let records = Records { first: 2, count: 3, step: 1 };
        // [0, 1..4, 0, 2..4, 3..6]
        let first = 30 + 2 * 6 + 3;
        let (slab, whole) = grid.hull(records, first, [(3, 30), (2, 6), (3, 1)].into_iter());
        let seen = BoxSeen { grid, slab, whole };
        assert_eq!(seen.in_shape(&shape), (vec![0, 1, 0, 2, 3], vec![1, 3, 1, 2, 3], true));
        assert_eq!(seen.records(), 2..5);
        // Of more dimensions than are kept apart, a box is around several of them.
        let shape = [3; 10];
        let grid = Grid::of_shape(&shape);
        let (slab, whole) = grid.hull(Records::one(0), 0, [(3, 3), (2, 1)].into_iter());
        let seen = BoxSeen { grid, slab, whole };
        let count = [vec![1; 8], vec![3, 2]].concat();
        assert_eq!(seen.in_shape(&shape), (vec![0; 10], count, true));
        let scalar = BoxSeen { grid: Grid::of_shape(&[]), ..seen };
        assert_eq!(scalar.in_shape(&[]).0, Vec::<u64>::new());
    }

    #[test]
    fn numbers_that_no_array_has_do_no_harm() {
        let grid = Grid::of_shape(&[u64::MAX, 1 << 40, 1 << 40, 7]);
        let records = Records { first: 0, count: u64::MAX, step: u64::MAX };
        for levels in [
            vec![(u64::MAX, u64::MAX), (u64::MAX, 3)],
            vec![(5, 0), (2, 1)],
            vec![(0, 7), (u64::MAX, 1)],
        ] {
            let (slab, _) = grid.hull(records, u64::MAX - 1, levels.into_iter());
            assert!(slab.volume() > 0);
            let _ = (slab.end(), slab.steps(), slab.and(&slab));
        }
    }
}
