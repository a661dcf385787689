//! Cutting an array into pieces of bounded size, in the order of the file.
//!
//! A variable may be larger than memory. What reads all of it reads it in blocks, each a
//! hyperslab of at most so many values, which together cover the array once.
//!
//! ```
//! let cut: Vec<_> = esker_tools::blocks::blocks(&[2, 5], 4).collect();
//! assert_eq!(cut.len(), 4);
//! assert_eq!((&cut[0].start[..], &cut[0].count[..]), (&[0, 0][..], &[1, 4][..]));
//! assert_eq!((&cut[1].start[..], &cut[1].count[..]), (&[0, 4][..], &[1, 1][..]));
//! ```

/// A hyperslab: where it begins and how long it is along each dimension.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// The first index along each dimension.
    pub start: Vec<u64>,
    /// How many along each dimension.
    pub count: Vec<u64>,
}

impl Block {
    /// How many values it holds.
    pub fn len(&self) -> u64 {
        self.count.iter().fold(1, |n, c| n.saturating_mul(*c))
    }

    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The blocks of an array of this shape, each of at most `most` values (at least one).
///
/// The order is that of the values; a scalar is one block, an empty array none.
pub fn blocks(shape: &[u64], most: u64) -> Blocks {
    let mut left = most.max(1);
    let mut step = vec![1; shape.len()];
    // Whole rows of the fastest dimensions, then a run along one dimension, then ones.
    for (step, len) in step.iter_mut().zip(shape).rev() {
        *step = left.min(*len).max(1);
        left = if *step == *len { left / *step } else { 1 };
    }
    Blocks::of(shape, step)
}

/// Pieces of an array, all as long as a step but those at its edges. See [`blocks`].
#[derive(Debug, Clone)]
pub struct Blocks {
    next: Option<Vec<u64>>,
    step: Vec<u64>,
    shape: Vec<u64>,
}

impl Blocks {
    /// The pieces of an array of this shape that begin at multiples of `step`, in the order of their
    /// first elements.
    pub(crate) fn of(shape: &[u64], step: Vec<u64>) -> Blocks {
        let next = (!shape.contains(&0)).then(|| vec![0; shape.len()]);
        Blocks { next, step, shape: shape.to_vec() }
    }
}

impl Iterator for Blocks {
    type Item = Block;

    fn next(&mut self) -> Option<Block> {
        let start = self.next.take()?;
        let sizes = start.iter().zip(&self.step).zip(&self.shape);
        let count = sizes.map(|((start, step), len)| (*step).min(len - start)).collect();
        let mut after = start.clone();
        for ((index, step), len) in after.iter_mut().zip(&self.step).zip(&self.shape).rev() {
            *index = index.saturating_add(*step);
            if *index < *len {
                self.next = Some(after);
                break;
            }
            *index = 0;
        }
        Some(Block { start, count })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The flat indices that a block covers.
    fn covered(shape: &[u64], block: &Block) -> Vec<u64> {
        let mut flat = vec![0];
        for ((len, start), count) in shape.iter().zip(&block.start).zip(&block.count) {
            let along = |at: u64| (0..*count).map(move |i| at * len + start + i);
            flat = flat.into_iter().flat_map(along).collect();
        }
        flat
    }

    #[test]
    fn blocks_cover_an_array_once_in_order_and_stay_small() {
        let shapes: [&[u64]; 8] =
            [&[], &[1], &[7], &[3, 4], &[4, 1, 3], &[2, 3, 4], &[5, 1, 1], &[1, 1, 6]];
        for shape in shapes {
            for most in 1..30 {
                let mut all = Vec::new();
                for block in blocks(shape, most) {
                    assert!(block.len() <= most && !block.is_empty(), "{shape:?} {most} {block:?}");
                    all.extend(covered(shape, &block));
                }
                let expected: Vec<u64> = (0..shape.iter().product()).collect();
                assert_eq!(all, expected, "{shape:?} in {most}");
            }
        }
    }

    #[test]
    fn an_empty_array_has_no_blocks() {
        assert_eq!(blocks(&[0], 10).count(), 0);
        assert_eq!(blocks(&[3, 0, 2], 10).count(), 0);
    }

    #[test]
    fn huge_arrays_cost_nothing_until_read() {
        let mut cut = blocks(&[u64::MAX, u64::MAX], u64::MAX);
        assert_eq!(cut.next().unwrap().count, [1, u64::MAX]);
        assert_eq!(cut.next().unwrap().start, [1, 0]);
    }
}
