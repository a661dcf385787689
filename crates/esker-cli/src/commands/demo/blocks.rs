//! Who has what: the grid in blocks, one for each rank.

use std::cmp::Reverse;
use std::ops::Range;

use super::sea::Area;

/// A direction in which a block may have a neighbour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    South,
    North,
    West,
    East,
}

impl Side {
    /// All four.
    pub(super) const ALL: [Side; 4] = [Side::South, Side::North, Side::West, Side::East];

    /// The side from which the neighbour sees us.
    pub(super) fn opposite(self) -> Side {
        match self {
            Side::South => Side::North,
            Side::North => Side::South,
            Side::West => Side::East,
            Side::East => Side::West,
        }
    }
}

/// The grid cut into `down` times `across` blocks, numbered row by row from the south-west.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Blocks {
    rows: usize,
    columns: usize,
    /// Blocks from south to north.
    pub(super) down: usize,
    /// Blocks from west to east.
    pub(super) across: usize,
}

impl Blocks {
    /// As many blocks as ranks, with as short borders as that number allows.
    pub(super) fn new(ranks: usize, rows: usize, columns: usize) -> Blocks {
        let ranks = ranks.max(1);
        let shapes = (1..=ranks).filter(|down| ranks.is_multiple_of(*down));
        let border = |down: &usize| down * columns + ranks / down * rows;
        // Of two with equal borders the one with longer rows, which are the runs in the file.
        let down = shapes.min_by_key(|down| (border(down), Reverse(*down))).unwrap_or(1);
        Blocks { rows, columns, down, across: ranks / down }
    }

    /// The cells of a rank; none if there are more ranks than cells in a direction.
    pub(super) fn area(&self, rank: usize) -> Area {
        Area {
            rows: part(self.rows, self.down, rank / self.across),
            columns: part(self.columns, self.across, rank % self.across),
        }
    }

    /// The rank on this side, if it has cells.
    pub(super) fn neighbour(&self, rank: usize, side: Side) -> Option<usize> {
        let (row, column) = (rank / self.across, rank % self.across);
        let (row, column) = match side {
            Side::South => (row.checked_sub(1)?, column),
            Side::North => (row + 1, column),
            Side::West => (row, column.checked_sub(1)?),
            Side::East => (row, column + 1),
        };
        let there = row < self.down && column < self.across;
        let neighbour = row * self.across + column;
        let has_cells = |rank| self.area(rank).cells() > 0;
        (there && has_cells(rank) && has_cells(neighbour)).then_some(neighbour)
    }
}

/// Part `index` of `parts` of `length`: the first are longer by one where it does not divide, so
/// that empty parts come last and lie between no others.
fn part(length: usize, parts: usize, index: usize) -> Range<usize> {
    let (each, more) = (length / parts, length % parts);
    let start = index * each + index.min(more);
    start..start + each + usize::from(index < more)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cell_has_one_owner() {
        for ranks in [1, 2, 3, 4, 7, 12, 16, 61] {
            let (rows, columns) = (5, 9);
            let blocks = Blocks::new(ranks, rows, columns);
            assert_eq!(blocks.down * blocks.across, ranks);
            let mut owners = vec![0; rows * columns];
            for area in (0..ranks).map(|rank| blocks.area(rank)) {
                for row in area.rows {
                    area.columns.clone().for_each(|column| owners[row * columns + column] += 1);
                }
            }
            assert_eq!(owners, vec![1; rows * columns], "{ranks} ranks");
        }
    }

    #[test]
    fn neighbours_know_each_other() {
        for ranks in [1, 4, 7, 16, 61] {
            let blocks = Blocks::new(ranks, 5, 9);
            for rank in 0..ranks {
                for side in Side::ALL {
                    if let Some(other) = blocks.neighbour(rank, side) {
                        assert_eq!(blocks.neighbour(other, side.opposite()), Some(rank));
                    }
                }
            }
        }
    }

    #[test]
    fn blocks_are_as_square_as_the_ranks_allow() {
        let blocks = |ranks| {
            let Blocks { down, across, .. } = Blocks::new(ranks, 256, 512);
            (down, across)
        };
        assert_eq!([1, 2, 4, 7, 8].map(blocks), [(1, 1), (1, 2), (2, 2), (1, 7), (2, 4)]);
    }
}
