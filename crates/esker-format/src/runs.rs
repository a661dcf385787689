//! The bytes of one hyperslab in the file: runs of equal length at regular distances.
//!
//! A pattern is as small as the hyperslab it comes from. Its runs lie in the order of the
//! elements, which for a hyperslab is also the order of the file, and are taken out of it one
//! by one, from any offset on, when they are needed.
//!
//! [`advance`] walks over the indices of an array.

/// Runs of `run` bytes from `base` on, repeated `count` times in steps of `step` bytes for
/// each level, the last level fastest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    base: u64,
    run: u64,
    levels: Vec<(u64, u64)>,
}

/// A contiguous piece of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// Where it begins.
    pub offset: u64,
    /// How many bytes it has.
    pub len: u64,
}

impl Run {
    /// The first byte after it.
    pub fn end(&self) -> u64 {
        self.offset + self.len
    }
}

/// Goes to the next index of an array of these lengths, the last dimension fastest. Gives the dimension that went
/// on; all after it begin again. `None`, with everything at the beginning, after the last index.
#[inline]
pub fn advance(index: &mut [u64], lens: &[u64]) -> Option<usize> {
    for (d, (index, len)) in index.iter_mut().zip(lens).enumerate().rev() {
        *index += 1;
        if *index < *len {
            return Some(d);
        }
        *index = 0;
    }
    None
}

impl Pattern {
    /// The pattern of elements of `size` bytes over dimensions with a count and a distance in
    /// bytes, slowest first. Neighbouring dimensions that lie densely become one.
    pub fn new(base: u64, size: u64, dims: impl DoubleEndedIterator<Item = (u64, u64)>) -> Pattern {
        let mut run = size;
        let mut levels: Vec<(u64, u64)> = Vec::new();
        for (count, step) in dims.rev().filter(|(count, _)| *count != 1) {
            match levels.last_mut() {
                None if step == run => run *= count,
                Some((inner, inner_step)) if step == *inner * *inner_step => *inner *= count,
                _ => levels.push((count, step)),
            }
        }
        levels.reverse();
        Pattern { base, run, levels }
    }

    /// The pattern of these levels, slowest first.
    pub fn of_levels(base: u64, run: u64, levels: Vec<(u64, u64)>) -> Pattern {
        Pattern { base, run, levels }
    }

    /// All runs are so far away from where they were.
    pub fn shift(&mut self, by: i64) {
        self.base = self.base.wrapping_add_signed(by);
    }

    /// Count and step of each level, slowest first.
    pub fn levels(&self) -> &[(u64, u64)] {
        &self.levels
    }

    /// Its rows, from the first byte of the first run of the last level to the last byte of its last one, as
    /// a pattern of their own; and the count and step of that level.
    pub fn rows(&self) -> Option<(Pattern, (u64, u64))> {
        let (last, others) = self.levels.split_last()?;
        let run = (last.0 - 1) * last.1 + self.run;
        Some((Pattern { base: self.base, run, levels: others.to_vec() }, *last))
    }

    /// The run, if there is only one.
    pub fn single(&self) -> Option<Run> {
        self.levels.is_empty().then_some(Run { offset: self.base, len: self.run })
    }

    /// Where the first run begins.
    pub fn first(&self) -> u64 {
        self.base
    }

    /// The first byte after the last run.
    pub fn end(&self) -> u64 {
        let span: u64 = self.levels.iter().map(|(count, step)| (count - 1) * step).sum();
        self.base + span + self.run
    }

    /// Bytes of each run.
    pub fn run_len(&self) -> u64 {
        self.run
    }

    /// How many runs there are.
    pub fn run_count(&self) -> u64 {
        self.levels.iter().map(|(count, _)| count).product()
    }

    /// The number of the first run that ends after `offset`.
    fn number_after(&self, offset: u64) -> u64 {
        let mut rest = offset.saturating_sub(self.base);
        let mut number = 0;
        for (count, step) in &self.levels {
            let index = (rest / step).min(count - 1);
            rest -= index * step;
            number = number * count + index;
        }
        if rest >= self.run { number + 1 } else { number }
    }

    /// The runs that end after `offset`, each with its number.
    pub fn runs_after(&self, offset: u64) -> Runs<'_> {
        let number = self.number_after(offset);
        let mut index = Index::zeros(self.levels.len());
        let (mut rest, mut at) = (number, self.base);
        for (index, (count, step)) in index.get_mut().iter_mut().zip(&self.levels).rev() {
            *index = rest % count;
            rest /= count;
            at += *index * step;
        }
        Runs { pattern: self, index, offset: at, number, end: self.run_count() }
    }
}

/// A number for each level. Patterns are asked often, and hardly one has more levels than fit here.
struct Index {
    few: [u64; Index::FEW],
    many: Vec<u64>,
    levels: usize,
}

impl Index {
    const FEW: usize = 6;

    fn zeros(levels: usize) -> Index {
        let many = if levels > Index::FEW { vec![0; levels] } else { Vec::new() };
        Index { few: [0; Index::FEW], many, levels }
    }

    fn get_mut(&mut self) -> &mut [u64] {
        match self.levels > Index::FEW {
            true => &mut self.many,
            false => &mut self.few[..self.levels],
        }
    }
}

/// Iterator over a pattern's runs and their numbers.
pub struct Runs<'a> {
    pattern: &'a Pattern,
    index: Index,
    offset: u64,
    number: u64,
    end: u64,
}

impl Iterator for Runs<'_> {
    type Item = (u64, Run);

    fn next(&mut self) -> Option<(u64, Run)> {
        if self.number >= self.end {
            return None;
        }
        let found = (self.number, Run { offset: self.offset, len: self.pattern.run });
        self.number += 1;
        for (index, (count, step)) in
            self.index.get_mut().iter_mut().zip(&self.pattern.levels).rev()
        {
            *index += 1;
            if *index < *count {
                self.offset += step;
                break;
            }
            self.offset -= (*count - 1) * step;
            *index = 0;
        }
        Some(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn offsets(pattern: &Pattern) -> Vec<u64> {
        pattern.runs_after(0).map(|(_, r)| r.offset).collect()
    }

    #[test]
    fn dense_dimensions_become_one_run() {
        // 3 x 4 of 8 bytes, all of it.
        let pattern = Pattern::new(100, 8, [(3, 32), (4, 8)].into_iter());
        assert_eq!(pattern.single(), Some(Run { offset: 100, len: 96 }));
        assert_eq!(pattern.end(), 196);
    }

    #[test]
    fn a_column_is_one_short_run_a_row() {
        let pattern = Pattern::new(8, 8, [(3, 32), (1, 8)].into_iter());
        assert_eq!(offsets(&pattern), [8, 40, 72]);
        assert_eq!(pattern.end(), 80);
    }

    #[test]
    fn regular_levels_are_merged() {
        // Every second element of full rows is one regular sequence.
        let pattern = Pattern::new(0, 4, [(3, 32), (4, 8)].into_iter());
        assert_eq!(pattern.levels, [(12, 8)]);
    }

    #[test]
    fn runs_come_in_the_order_of_the_elements() {
        let pattern = Pattern::new(0, 1, [(2, 100), (2, 10), (2, 3)].into_iter());
        assert_eq!(offsets(&pattern), [0, 3, 10, 13, 100, 103, 110, 113]);
    }

    #[test]
    fn every_index_is_met_once_and_in_order() {
        let lens = [2, 1, 3];
        let (mut index, mut met) = (vec![0; 3], Vec::new());
        loop {
            met.push((index[0] * lens[1] + index[1]) * lens[2] + index[2]);
            if advance(&mut index, &lens).is_none() {
                break;
            }
        }
        assert_eq!(met, [0, 1, 2, 3, 4, 5]);
        assert_eq!((index, advance(&mut [], &[])), (vec![0; 3], None));
    }

    #[test]
    fn a_scalar_is_one_element() {
        let pattern = Pattern::new(7, 4, std::iter::empty());
        assert_eq!(offsets(&pattern), [7]);
    }

    proptest! {
        #[test]
        fn starting_in_the_middle_finds_the_rest(
            base in 0u64..50,
            dims in proptest::collection::vec((1u64..5, 1u64..3), 0..4),
            from in 0u64..4000,
        ) {
            // A hyperslab with strides over an array with some more room in every dimension.
            let mut step = 4;
            let mut levels: Vec<(u64, u64)> = Vec::new();
            for (count, stride) in dims.iter().rev() {
                levels.push((*count, step * stride));
                step *= count * stride + 1;
            }
            levels.reverse();
            let pattern = Pattern::new(base, 4, levels.into_iter());
            let all: Vec<_> = pattern.runs_after(0).collect();
            prop_assert_eq!(all.len() as u64, pattern.run_count());
            prop_assert_eq!(all.last().unwrap().1.end(), pattern.end());
            prop_assert!(all.windows(2).all(|w| w[0].1.end() <= w[1].1.offset));
            let expected: Vec<_> = all.into_iter().filter(|(_, r)| r.end() > from).collect();
            prop_assert_eq!(pattern.runs_after(from).collect::<Vec<_>>(), expected);
        }
    }
}
