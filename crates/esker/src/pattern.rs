//! The bytes of one hyperslab in the file: runs of equal length at regular distances.
//!
//! A pattern is as small as the hyperslab it comes from. It is flattened to runs one by one,
//! and only when they are needed.

/// Runs of `run` bytes from `base` on, repeated `count` times in steps of `step` bytes for
/// each level, the last level fastest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pattern {
    base: u64,
    run: u64,
    levels: Vec<(u64, u64)>,
}

/// A contiguous piece of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) offset: u64,
    pub(crate) len: u64,
}

impl Run {
    pub(crate) fn end(&self) -> u64 {
        self.offset + self.len
    }
}

impl Pattern {
    /// The pattern of elements of `size` bytes over dimensions with a count and a distance in
    /// bytes, slowest first. Neighbouring dimensions that lie densely become one.
    pub(crate) fn new(
        base: u64,
        size: u64,
        dims: impl DoubleEndedIterator<Item = (u64, u64)>,
    ) -> Pattern {
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

    /// Bytes of each run.
    #[cfg(test)]
    pub(crate) fn run_len(&self) -> u64 {
        self.run
    }

    /// The first byte after the last run.
    pub(crate) fn end(&self) -> u64 {
        let span: u64 = self.levels.iter().map(|(count, step)| (count - 1) * step).sum();
        self.base + span + self.run
    }

    /// The runs in the order of the elements.
    pub(crate) fn runs(&self) -> Runs<'_> {
        let left = self.levels.iter().map(|(count, _)| count).product();
        Runs { pattern: self, index: vec![0; self.levels.len()], offset: self.base, left }
    }
}

/// Iterator over a pattern's runs.
pub(crate) struct Runs<'a> {
    pattern: &'a Pattern,
    index: Vec<u64>,
    offset: u64,
    left: u64,
}

impl Iterator for Runs<'_> {
    type Item = Run;

    fn next(&mut self) -> Option<Run> {
        if self.left == 0 {
            return None;
        }
        self.left -= 1;
        let run = Run { offset: self.offset, len: self.pattern.run };
        for (index, (count, step)) in self.index.iter_mut().zip(&self.pattern.levels).rev() {
            *index += 1;
            if *index < *count {
                self.offset += step;
                break;
            }
            self.offset -= (*count - 1) * step;
            *index = 0;
        }
        Some(run)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offsets(pattern: &Pattern) -> Vec<u64> {
        pattern.runs().map(|r| r.offset).collect()
    }

    #[test]
    fn dense_dimensions_become_one_run() {
        // 3 x 4 of 8 bytes, all of it.
        let pattern = Pattern::new(100, 8, [(3, 32), (4, 8)].into_iter());
        assert_eq!(pattern.run_len(), 96);
        assert_eq!(offsets(&pattern), [100]);
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
        assert_eq!(pattern.runs().count(), 12);
    }

    #[test]
    fn runs_come_in_the_order_of_the_elements() {
        let pattern = Pattern::new(0, 1, [(2, 100), (2, 10), (2, 3)].into_iter());
        assert_eq!(offsets(&pattern), [0, 3, 10, 13, 100, 103, 110, 113]);
    }

    #[test]
    fn a_scalar_is_one_element() {
        let pattern = Pattern::new(7, 4, std::iter::empty());
        assert_eq!(offsets(&pattern), [7]);
    }
}
