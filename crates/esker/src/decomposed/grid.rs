//! The dimensions that a map decomposes, and blocks of them.
//!
//! Elements are numbered with the last dimension fastest. A block is known by the numbers of its
//! first and its last element: they are its corners, in however many dimensions.

use esker_format::runs::advance;

/// The lengths of decomposed dimensions, slowest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Grid {
    lens: Vec<u64>,
    total: u64,
}

/// A block of a grid and the place of its first element among the stored ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Block {
    pub(crate) first: u64,
    pub(crate) last: u64,
    pub(crate) position: u64,
}

impl Grid {
    /// The grid, if it has elements and they can be counted.
    pub(crate) fn new(lens: Vec<u64>) -> Option<Grid> {
        let total = lens.iter().try_fold(1u64, |n, len| n.checked_mul(*len))?;
        let sound = !lens.is_empty() && total > 0 && total <= i64::MAX as u64;
        sound.then_some(Grid { lens, total })
    }

    pub(crate) fn lens(&self) -> &[u64] {
        &self.lens
    }

    /// Elements of all of it.
    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    /// The number of the element at these coordinates.
    pub(crate) fn number(&self, coordinates: &[u64]) -> u64 {
        coordinates.iter().zip(&self.lens).fold(0, |n, (at, len)| n * len + at)
    }

    /// The coordinates of an element.
    pub(crate) fn coordinates(&self, number: u64) -> Vec<u64> {
        let mut out = vec![0; self.lens.len()];
        self.write_coordinates(number, &mut out);
        out
    }

    pub(crate) fn write_coordinates(&self, mut number: u64, out: &mut [u64]) {
        for (at, len) in out.iter_mut().zip(&self.lens).rev() {
            *at = number % len;
            number /= len;
        }
    }

    /// How many elements a block with these corners has; `None` if it is not one.
    pub(crate) fn elements(&self, first: u64, last: u64) -> Option<u64> {
        if first > last || last >= self.total {
            return None;
        }
        let (mut low, mut high) = (first, last);
        let mut elements = 1;
        for len in self.lens.iter().rev() {
            let (a, b) = (low % len, high % len);
            elements *= b.checked_sub(a)? + 1;
            (low, high) = (low / len, high / len);
        }
        Some(elements)
    }

    /// Calls `each` with the first element and the length of every contiguous run of a block.
    pub(crate) fn runs(&self, block: &Block, mut each: impl FnMut(u64, u64)) {
        let width = self.lens[self.lens.len() - 1];
        if block.first / width == block.last / width {
            return each(block.first, block.last - block.first + 1);
        }
        let (low, high) = (self.coordinates(block.first), self.coordinates(block.last));
        let row = self.lens.len() - 1;
        let lens: Vec<u64> = (0..row).map(|d| high[d] - low[d] + 1).collect();
        let (mut index, mut at) = (vec![0; row], low.clone());
        loop {
            each(self.number(&at), high[row] - low[row] + 1);
            if advance(&mut index, &lens).is_none() {
                return;
            }
            (0..row).for_each(|d| at[d] = low[d] + index[d]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_its_corners() {
        let grid = Grid::new(vec![4, 5, 6]).unwrap();
        let (first, last) = (grid.number(&[1, 2, 3]), grid.number(&[2, 4, 5]));
        assert_eq!(grid.elements(first, last), Some(2 * 3 * 3));
        assert_eq!(grid.coordinates(first), [1, 2, 3]);
        let mut runs = Vec::new();
        grid.runs(&Block { first, last, position: 0 }, |start, len| runs.push((start, len)));
        assert_eq!(runs, [(45, 3), (51, 3), (57, 3), (75, 3), (81, 3), (87, 3)]);
        // The last element is to the left of the first: no block.
        assert_eq!(grid.elements(grid.number(&[0, 0, 3]), grid.number(&[0, 1, 2])), None);
        assert_eq!(grid.elements(0, 120), None);
    }

    #[test]
    fn grids_without_elements_or_with_too_many_are_none() {
        assert_eq!(Grid::new(vec![]), None);
        assert_eq!(Grid::new(vec![3, 0]), None);
        assert_eq!(Grid::new(vec![1 << 32, 1 << 32]), None);
    }
}
