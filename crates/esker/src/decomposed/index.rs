//! Which blocks of a map touch a hyperslab, and which stored elements those are.
//!
//! The blocks lie sorted by their first element, as a tree in which every subtree knows how far
//! it reaches: a question costs a logarithm and its answer.

use super::grid::{Block, Grid};

/// The blocks of a map, or of a part of it, that can be asked.
#[derive(Debug)]
pub(crate) struct Index {
    nodes: Vec<Node>,
}

#[derive(Debug, Clone, Copy)]
struct Node {
    block: Block,
    /// The highest last element of the subtree that this is the middle of.
    reach: u64,
}

/// A hyperslab of the grid. Its elements are numbered from `base` on.
#[derive(Debug, Clone)]
pub(crate) struct Slab {
    pub(crate) start: Vec<u64>,
    pub(crate) count: Vec<u64>,
    pub(crate) stride: Vec<u64>,
    pub(crate) base: u64,
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

    /// The part of it from `from` to `to`, which are within it.
    pub(crate) fn part(&self, from: u64, to: u64) -> Piece {
        Piece { element: from, len: to - from, position: self.position + (from - self.element) }
    }
}

impl Slab {
    /// The hyperslab that a block is.
    pub(crate) fn of_block(grid: &Grid, block: &Block, base: u64) -> Slab {
        let start = grid.coordinates(block.first);
        let last = grid.coordinates(block.last);
        let count = last.iter().zip(&start).map(|(b, a)| b - a + 1).collect();
        Slab { stride: vec![1; start.len()], start, count, base }
    }

    pub(crate) fn elements(&self) -> u64 {
        self.count.iter().product()
    }

    /// The coordinates of one of its elements.
    pub(crate) fn coordinates(&self, element: u64) -> Vec<u64> {
        let mut rest = element - self.base;
        let mut out = self.start.clone();
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
        let dims = 0..self.start.len();
        let last: Vec<u64> =
            dims.map(|d| self.start[d] + (self.count[d] - 1) * self.stride[d]).collect();
        (grid.number(&self.start), grid.number(&last))
    }
}

impl Index {
    pub(crate) fn new(mut blocks: Vec<Block>) -> Index {
        if !blocks.is_sorted_by_key(|b| b.first) {
            blocks.sort_unstable_by_key(|b| b.first);
        }
        let mut nodes: Vec<Node> =
            blocks.into_iter().map(|block| Node { block, reach: block.last }).collect();
        reach(&mut nodes);
        Index { nodes }
    }

    /// Bytes that an index of so many blocks takes.
    pub(crate) fn memory(blocks: u64) -> u64 {
        blocks.saturating_mul(size_of::<Node>() as u64)
    }

    /// Blocks that begin within `first..=last`: no fewer than a question of that range may meet,
    /// but for those that reach into it.
    fn within(&self, first: u64, last: u64) -> usize {
        let from = self.nodes.partition_point(|n| n.block.first < first);
        self.nodes.partition_point(|n| n.block.first <= last) - from
    }

    /// Adds what the blocks have of a hyperslab, which is not empty, to `pieces`.
    pub(crate) fn ask(&self, grid: &Grid, slab: &Slab, pieces: &mut Vec<Piece>) {
        let mut cut = Cut::new(grid, slab);
        let (first, last) = slab.span(grid);
        let rows = slab.elements() / slab.row_len();
        let depth = u64::from(usize::BITS - self.nodes.len().leading_zeros());
        if rows == 1 || rows.saturating_mul(2 * depth) > self.within(first, last) as u64 {
            self.visit(first, last, &mut |block| cut.block(block, pieces));
            return;
        }
        // A few rows of a large grid: what lies between them is not looked at.
        let width = slab.row_len();
        for row in 0..rows {
            let base = slab.base + row * width;
            let start = slab.coordinates(base);
            let mut count = vec![1; start.len()];
            count[start.len() - 1] = width;
            let part = Slab { start, count, stride: slab.stride.clone(), base };
            let (first, last) = part.span(grid);
            let mut cut = Cut::new(grid, &part);
            self.visit(first, last, &mut |block| cut.block(block, pieces));
        }
    }

    fn visit(&self, first: u64, last: u64, each: &mut impl FnMut(&Block)) {
        fn walk(nodes: &[Node], first: u64, last: u64, each: &mut impl FnMut(&Block)) {
            let Some(node) = nodes.get(nodes.len() / 2) else { return };
            if node.reach < first {
                return;
            }
            let (left, right) = nodes.split_at(nodes.len() / 2);
            walk(left, first, last, each);
            if node.block.first > last {
                return;
            }
            if node.block.last >= first {
                each(&node.block);
            }
            walk(&right[1..], first, last, each);
        }
        walk(&self.nodes, first, last, each);
    }
}

/// Sets how far each subtree reaches; the middle is its root.
fn reach(nodes: &mut [Node]) -> u64 {
    let middle = nodes.len() / 2;
    let (left, right) = nodes.split_at_mut(middle);
    let Some((node, right)) = right.split_first_mut() else { return 0 };
    node.reach = node.block.last.max(reach(left)).max(reach(right));
    node.reach
}

/// Cuts blocks with a hyperslab; its memory is used again from block to block.
struct Cut<'a> {
    grid: &'a Grid,
    slab: &'a Slab,
    low: Vec<u64>,
    high: Vec<u64>,
    /// The first and the last index of the hyperslab in the block, in each dimension.
    from: Vec<u64>,
    to: Vec<u64>,
    at: Vec<u64>,
}

impl<'a> Cut<'a> {
    fn new(grid: &'a Grid, slab: &'a Slab) -> Cut<'a> {
        let zeros = || vec![0; slab.start.len()];
        let (low, high, from, to, at) = (zeros(), zeros(), zeros(), zeros(), zeros());
        Cut { grid, slab, low, high, from, to, at }
    }

    fn block(&mut self, block: &Block, pieces: &mut Vec<Piece>) {
        self.grid.write_coordinates(block.first, &mut self.low);
        self.grid.write_coordinates(block.last, &mut self.high);
        let slab = self.slab;
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
        self.at.copy_from_slice(&self.from);
        loop {
            self.row(block, row, pieces);
            let mut d = row;
            loop {
                if d == 0 {
                    return;
                }
                d -= 1;
                if self.at[d] < self.to[d] {
                    self.at[d] += 1;
                    break;
                }
                self.at[d] = self.from[d];
            }
        }
    }

    /// The elements of one row that both have.
    fn row(&self, block: &Block, row: usize, pieces: &mut Vec<Piece>) {
        let slab = self.slab;
        let (mut element, mut position) = (0, 0);
        for d in 0..=row {
            element = element * slab.count[d] + self.at[d];
            let place = slab.start[d] + self.at[d] * slab.stride[d];
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
    match pieces.last_mut() {
        Some(last) if last.end() == piece.element && last.position + last.len == piece.position => {
            last.len += piece.len;
        }
        _ => pieces.push(piece),
    }
}

/// Sorts the pieces of a question by its elements. Where several have an element, the one that is
/// stored last has it.
pub(crate) fn settle(pieces: &mut Vec<Piece>) {
    if !pieces.is_sorted_by_key(|p| p.element) {
        pieces.sort_unstable_by_key(|p| (p.element, p.position));
    }
    if pieces.windows(2).any(|w| w[0].end() > w[1].element) {
        *pieces = last_stored(pieces);
    }
}

fn last_stored(sorted: &[Piece]) -> Vec<Piece> {
    let mut out = Vec::with_capacity(sorted.len());
    // Pieces that have begun, the one that is stored last on top.
    let mut open = std::collections::BinaryHeap::new();
    let (mut next, mut at) = (0, 0);
    loop {
        while open.peek().is_some_and(|(_, i): &(u64, usize)| sorted[*i].end() <= at) {
            open.pop();
        }
        if open.is_empty() {
            match sorted.get(next) {
                Some(piece) => at = at.max(piece.element),
                None => return out,
            }
        }
        while let Some(piece) = sorted.get(next).filter(|p| p.element <= at) {
            // Blobs and blocks do not share places, so that where a piece begins tells which of
            // two is stored later.
            open.push((piece.position, next));
            next += 1;
        }
        let Some(top) = open.peek().map(|(_, i)| sorted[*i]).filter(|p| p.end() > at) else {
            continue;
        };
        let until = sorted.get(next).map_or(top.end(), |p| p.element.min(top.end()));
        push(&mut out, top.part(at, until));
        at = until;
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

    fn slab() -> impl Strategy<Value = Slab> {
        let dim = |len: u64| {
            (0..len, 1u64..4).prop_flat_map(move |(start, stride)| {
                (Just(start), 1..=(len - 1 - start) / stride + 1, Just(stride))
            })
        };
        (dim(6), dim(7), dim(5)).prop_map(|(a, b, c)| Slab {
            start: vec![a.0, b.0, c.0],
            count: vec![a.1, b.1, c.1],
            stride: vec![a.2, b.2, c.2],
            base: 100,
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
