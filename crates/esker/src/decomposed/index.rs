//! Which blocks of a map touch a hyperslab, and which stored elements those are.
//!
//! The blocks are [intervals](crate::intervals) of elements: a question costs a logarithm and its
//! answer.

use esker_format::runs::advance;

use super::grid::{Block, Grid};
use crate::intervals::{Interval, Intervals, later_wins};

/// The blocks of a map, or of a part of it, that can be asked.
#[derive(Debug)]
pub(crate) struct Index {
    blocks: Intervals<Block>,
}

impl Interval for Block {
    fn from(&self) -> u64 {
        self.first
    }

    fn to(&self) -> u64 {
        self.last + 1
    }
}

/// A hyperslab of the grid. Its elements are numbered from `base` on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Slab<'a> {
    pub(crate) start: &'a [u64],
    pub(crate) count: &'a [u64],
    pub(crate) stride: &'a [u64],
    pub(crate) base: u64,
}

/// Hyperslabs of one grid, by the numbers of their elements. Lists are long, so that the numbers
/// of all hyperslabs lie one after the other.
#[derive(Debug)]
pub(crate) struct SlabList {
    dims: usize,
    start: Vec<u64>,
    count: Vec<u64>,
    stride: Vec<u64>,
    bases: Vec<u64>,
}

impl SlabList {
    pub(crate) fn new(dims: usize) -> SlabList {
        let (start, count, stride, bases) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        SlabList { dims, start, count, stride, bases }
    }

    /// Adds a hyperslab behind the last.
    pub(crate) fn push(
        &mut self,
        start: &[u64],
        count: &[u64],
        stride: impl Iterator<Item = u64>,
        base: u64,
    ) {
        self.start.extend(start);
        self.count.extend(count);
        self.stride.extend(stride.take(self.dims));
        self.bases.push(base);
    }

    /// The hyperslabs that blocks are, each numbered from its base on.
    pub(crate) fn of_blocks<'b>(
        grid: &Grid,
        blocks: impl Iterator<Item = (&'b Block, u64)>,
    ) -> SlabList {
        let mut list = SlabList::new(grid.lens().len());
        for (block, base) in blocks {
            let (start, mut count) = (grid.coordinates(block.first), grid.coordinates(block.last));
            count.iter_mut().zip(&start).for_each(|(n, from)| *n = *n - from + 1);
            list.push(&start, &count, std::iter::repeat(1), base);
        }
        list
    }

    pub(crate) fn len(&self) -> usize {
        self.bases.len()
    }

    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = Slab<'_>> {
        (0..self.bases.len()).map(|i| {
            let at = i * self.dims..(i + 1) * self.dims;
            let (start, count) = (&self.start[at.clone()], &self.count[at.clone()]);
            Slab { start, count, stride: &self.stride[at], base: self.bases[i] }
        })
    }
}

/// Elements of a question and the stored elements that they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) element: u64,
    pub(crate) len: u64,
    pub(crate) position: u64,
}

impl Piece {
    fn end(&self) -> u64 {
        self.element + self.len
    }

    /// Takes in a piece that continues it.
    fn grow(&mut self, next: &Piece) -> bool {
        let continues = (self.end(), self.position + self.len) == (next.element, next.position);
        self.len += if continues { next.len } else { 0 };
        continues
    }

    /// The part of it from `from` to `to`, which are within it.
    pub(crate) fn part(&self, from: u64, to: u64) -> Piece {
        Piece { element: from, len: to - from, position: self.position + (from - self.element) }
    }
}

impl Interval for Piece {
    fn from(&self) -> u64 {
        self.element
    }

    fn to(&self) -> u64 {
        self.end()
    }
}

impl Slab<'_> {
    pub(crate) fn elements(&self) -> u64 {
        self.count.iter().product()
    }

    /// The coordinates of one of its elements.
    pub(crate) fn coordinates(&self, element: u64) -> Vec<u64> {
        let mut rest = element - self.base;
        let mut out = self.start.to_vec();
        for d in (0..out.len()).rev() {
            out[d] += rest % self.count[d] * self.stride[d];
            rest /= self.count[d];
        }
        out
    }

    fn row_len(&self) -> u64 {
        self.count.last().copied().unwrap_or(1)
    }

    /// The first and the last element in the grid.
    fn span(&self, grid: &Grid) -> (u64, u64) {
        let mut span = (0, 0);
        for (d, len) in grid.lens().iter().enumerate() {
            let last = self.start[d] + (self.count[d] - 1) * self.stride[d];
            span = (span.0 * len + self.start[d], span.1 * len + last);
        }
        span
    }
}

impl Index {
    pub(crate) fn new(blocks: Vec<Block>) -> Index {
        Index { blocks: Intervals::new(blocks) }
    }

    /// Bytes that an index of so many blocks takes.
    pub(crate) fn memory(blocks: u64) -> u64 {
        Intervals::<Block>::memory(blocks)
    }

    /// Adds what the blocks have of hyperslabs, none of which is empty, to `pieces`.
    pub(crate) fn ask(&self, grid: &Grid, slabs: &SlabList, pieces: &mut Vec<Piece>) {
        let mut cut = Cut::new(grid);
        // Where the hyperslab before was found: lists mostly go up.
        let mut near = 0;
        for slab in slabs.iter() {
            self.ask_one(&mut cut, &mut near, slab, pieces);
        }
    }

    fn ask_one(
        &self,
        cut: &mut Cut<'_>,
        near: &mut usize,
        slab: Slab<'_>,
        pieces: &mut Vec<Piece>,
    ) {
        let (first, last) = slab.span(cut.grid);
        let width = slab.row_len();
        let rows = slab.elements() / width;
        if rows == 1 {
            let is_run = last - first + 1 == width;
            return self.blocks.overlapping(near, first, last + 1, &mut |block| match is_run {
                true => cut.run(block, slab, (first, last), pieces),
                false => cut.block(block, slab, pieces),
            });
        }
        let depth = u64::from(usize::BITS - self.blocks.len().leading_zeros());
        if rows.saturating_mul(2 * depth) > self.blocks.beginning_in(first, last + 1) as u64 {
            let mut each = |block: &Block| cut.block(block, slab, pieces);
            return self.blocks.overlapping(near, first, last + 1, &mut each);
        }
        // A few rows of a large grid: what lies between them is not looked at.
        let mut count = vec![1; slab.start.len()];
        count[slab.start.len() - 1] = width;
        for row in 0..rows {
            let base = slab.base + row * width;
            let start = slab.coordinates(base);
            let part = Slab { start: &start, count: &count, stride: slab.stride, base };
            self.ask_one(cut, near, part, pieces);
        }
    }
}

/// Cuts blocks with hyperslabs; its memory is used again from block to block.
struct Cut<'a> {
    grid: &'a Grid,
    /// The length of a row of the grid.
    width: u64,
    low: Vec<u64>,
    high: Vec<u64>,
    /// The first and the last index of the hyperslab in the block, in each dimension.
    from: Vec<u64>,
    to: Vec<u64>,
    /// How many those are, and where among them the walk is.
    lens: Vec<u64>,
    at: Vec<u64>,
}

impl<'a> Cut<'a> {
    fn new(grid: &'a Grid) -> Cut<'a> {
        let zeros = || vec![0; grid.lens().len()];
        let width = grid.lens().last().copied().unwrap_or(1);
        let (low, high, from, to) = (zeros(), zeros(), zeros(), zeros());
        Cut { grid, width, low, high, from, to, lens: zeros(), at: zeros() }
    }

    /// The elements that a block has of a hyperslab that is one run, `first..=last`.
    fn run(
        &mut self,
        block: &Block,
        slab: Slab<'_>,
        (first, last): (u64, u64),
        pieces: &mut Vec<Piece>,
    ) {
        let is_run = block.first % self.width + (block.last - block.first) < self.width;
        if !is_run {
            return self.block(block, slab, pieces);
        }
        let (from, to) = (first.max(block.first), last.min(block.last));
        if from <= to {
            let (element, position) = (slab.base + (from - first), from - block.first);
            push(
                pieces,
                Piece { element, len: to - from + 1, position: block.position + position },
            );
        }
    }

    fn block(&mut self, block: &Block, slab: Slab<'_>, pieces: &mut Vec<Piece>) {
        self.grid.write_coordinates(block.first, &mut self.low);
        self.grid.write_coordinates(block.last, &mut self.high);
        for d in 0..self.low.len() {
            let (start, stride) = (slab.start[d], slab.stride[d]);
            let Some(reach) = self.high[d].checked_sub(start) else { return };
            self.from[d] = self.low[d].saturating_sub(start).div_ceil(stride);
            self.to[d] = (reach / stride).min(slab.count[d] - 1);
            if self.from[d] > self.to[d] {
                return;
            }
        }
        let row = self.low.len() - 1;
        for d in 0..=row {
            (self.at[d], self.lens[d]) = (0, self.to[d] - self.from[d] + 1);
        }
        loop {
            self.row(block, slab, row, pieces);
            if advance(&mut self.at[..row], &self.lens[..row]).is_none() {
                return;
            }
        }
    }

    /// The elements of one row that both have.
    fn row(&self, block: &Block, slab: Slab<'_>, row: usize, pieces: &mut Vec<Piece>) {
        let (mut element, mut position) = (0, 0);
        for d in 0..=row {
            let at = self.from[d] + self.at[d];
            element = element * slab.count[d] + at;
            let place = slab.start[d] + at * slab.stride[d];
            position = position * (self.high[d] - self.low[d] + 1) + (place - self.low[d]);
        }
        let (element, position) = (slab.base + element, block.position + position);
        let len = self.to[row] - self.from[row] + 1;
        if slab.stride[row] == 1 {
            return push(pieces, Piece { element, len, position });
        }
        for i in 0..len {
            let position = position + i * slab.stride[row];
            push(pieces, Piece { element: element + i, len: 1, position });
        }
    }
}

/// Adds a piece; one that continues the last makes it longer.
fn push(pieces: &mut Vec<Piece>, piece: Piece) {
    if !pieces.last_mut().is_some_and(|last| last.grow(&piece)) {
        pieces.push(piece);
    }
}

/// Sorts the pieces of a question by its elements. Where several have an element, the one that is
/// stored last has it.
pub(crate) fn settle(pieces: &mut Vec<Piece>) {
    if !pieces.is_sorted_by_key(|p| p.element) {
        pieces.sort_unstable_by_key(|p| (p.element, p.position));
    }
    if pieces.windows(2).any(|w| w[0].end() > w[1].element) {
        // Blobs and blocks do not share places, so that where a piece begins tells which of two is
        // stored later.
        *pieces = later_wins(pieces, |p| p.position, Piece::part, Piece::grow);
    }
}

/// The elements of `from..to` that no piece has. The pieces are [settled](settle).
pub(crate) fn gaps(pieces: &[Piece], from: u64, to: u64, mut each: impl FnMut(u64, u64)) {
    let mut at = from;
    for piece in pieces {
        if piece.element > at {
            each(at, piece.element - at);
        }
        at = piece.end();
    }
    if at < to {
        each(at, to - at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Blocks of a grid of 6 x 7 x 5, stored one after the other.
    fn blocks() -> impl Strategy<Value = Vec<Block>> {
        let corner = || (0u64..6, 0u64..7, 0u64..5);
        prop::collection::vec((corner(), corner()), 0..14).prop_map(|list| {
            let grid = grid();
            let mut position = 0;
            list.into_iter()
                .map(|(a, b)| {
                    let first = grid.number(&[a.0.min(b.0), a.1.min(b.1), a.2.min(b.2)]);
                    let last = grid.number(&[a.0.max(b.0), a.1.max(b.1), a.2.max(b.2)]);
                    let block = Block { first, last, position };
                    position += grid.elements(first, last).unwrap();
                    block
                })
                .collect()
        })
    }

    fn grid() -> Grid {
        Grid::new(vec![6, 7, 5]).unwrap()
    }

    fn slab() -> impl Strategy<Value = SlabList> {
        let dim = |len: u64| {
            (0..len, 1u64..4).prop_flat_map(move |(start, stride)| {
                (Just(start), 1..=(len - 1 - start) / stride + 1, Just(stride))
            })
        };
        (dim(6), dim(7), dim(5)).prop_map(|(a, b, c)| {
            let mut list = SlabList::new(3);
            list.push(&[a.0, b.0, c.0], &[a.1, b.1, c.1], [a.2, b.2, c.2].into_iter(), 100);
            list
        })
    }

    proptest! {
        #[test]
        fn every_element_is_found_where_it_was_stored_last(blocks in blocks(), slab in slab()) {
            let grid = grid();
            let mut model = vec![None; grid.total() as usize];
            for block in &blocks {
                let mut position = block.position;
                grid.runs(block, |start, len| {
                    for i in start..start + len {
                        model[i as usize] = Some(position);
                        position += 1;
                    }
                });
            }
            let mut pieces = Vec::new();
            Index::new(blocks).ask(&grid, &slab, &mut pieces);
            settle(&mut pieces);
            let slab = slab.iter().next().unwrap();
            let mut found = vec![None; slab.elements() as usize];
            for piece in &pieces {
                for i in 0..piece.len {
                    let slot = &mut found[(piece.element + i - slab.base) as usize];
                    prop_assert_eq!(*slot, None);
                    *slot = Some(piece.position + i);
                }
            }
            for (i, found) in found.iter().enumerate() {
                let place = grid.number(&slab.coordinates(slab.base + i as u64));
                prop_assert_eq!(*found, model[place as usize]);
            }
            let mut holes = 0;
            gaps(&pieces, slab.base, slab.base + slab.elements(), |_, len| holes += len);
            prop_assert_eq!(holes as usize, found.iter().filter(|f| f.is_none()).count());
        }
    }
}
