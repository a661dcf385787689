//! Boxes in cells: each coordinate is the number of its value among all that occur in its dimension.
//!
//! Where boxes touch and overlap depends on the order of coordinates only. So 32 bits are enough for each, whatever the
//! array's size, and a dimension in which all boxes are alike can be left out.

use crate::boxes::Boxes;

/// Boxes in cells: low and high in each dimension, box behind box.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Cells {
    pub(super) dims: usize,
    pub(super) corners: Vec<u32>,
}

impl Cells {
    pub(super) fn new(dims: usize) -> Cells {
        Cells { dims, corners: Vec::new() }
    }

    pub(super) fn len(&self) -> usize {
        self.corners.len() / (2 * self.dims)
    }

    pub(super) fn get(&self, index: usize) -> &[u32] {
        &self.corners[index * 2 * self.dims..][..2 * self.dims]
    }

    pub(super) fn iter(&self) -> std::slice::ChunksExact<'_, u32> {
        self.corners.chunks_exact(2 * self.dims)
    }

    pub(super) fn push(&mut self, cell: &[u32]) {
        self.corners.extend_from_slice(cell);
    }

    /// The lowest and highest corner of all.
    pub(super) fn bounds(&self) -> Vec<(u32, u32)> {
        let mut bounds = vec![(u32::MAX, 0); self.dims];
        for cell in self.iter() {
            for (bound, range) in bounds.iter_mut().zip(cell.chunks_exact(2)) {
                *bound = (bound.0.min(range[0]), bound.1.max(range[1]));
            }
        }
        bounds
    }

    /// How many cells these boxes have together, each counted as often as it occurs; `None` beyond 128 bits.
    pub(super) fn volume(&self) -> Option<u128> {
        self.iter().try_fold(0u128, |sum, cell| {
            let mut ranges = cell.chunks_exact(2);
            let volume = ranges.try_fold(1u128, |v, r| v.checked_mul(u128::from(r[1] - r[0])))?;
            sum.checked_add(volume)
        })
    }

    /// Whether boxes that do not overlap fill the cuboid around them.
    pub(super) fn fill_their_bounds(&self) -> Option<bool> {
        let around = self.bounds().into_iter();
        let around = around.map(|(low, high)| u128::from(high - low));
        let around = around.into_iter().try_fold(1u128, u128::checked_mul)?;
        Some(self.volume()? == around)
    }

    /// Cuts all boxes at a plane: what is below it and what is above, and of which box each is.
    pub(super) fn cut(&self, dim: usize, plane: u32) -> [(Cells, Vec<u32>); 2] {
        let mut below = (Cells::new(self.dims), Vec::new());
        let mut above = below.clone();
        for (cell, index) in self.iter().zip(0..) {
            let (low, high) = (cell[2 * dim], cell[2 * dim + 1]);
            let side = |(cells, origins): &mut (Cells, Vec<u32>), low: u32, high: u32| {
                let at = cells.corners.len() + 2 * dim;
                cells.push(cell);
                cells.corners[at..at + 2].copy_from_slice(&[low, high]);
                origins.push(index);
            };
            if low < plane {
                side(&mut below, low, high.min(plane));
            }
            if high > plane {
                side(&mut above, low.max(plane), high);
            }
        }
        [below, above]
    }
}

/// What the cells' numbers stand for.
#[derive(Debug)]
pub(super) struct Grid {
    /// Of each dimension its coordinates in order; one range of all boxes where that is left out.
    axes: Vec<Axis>,
}

#[derive(Debug)]
enum Axis {
    Common(u64, u64),
    Coordinates(Vec<u64>),
}

impl Grid {
    /// The grid of these boxes and the boxes in it; `None` if it would have more coordinates than 32 bits can number.
    pub(super) fn of(boxes: &Boxes) -> Option<(Grid, Cells)> {
        if boxes.len() > (u32::MAX / 2) as usize {
            return None;
        }
        let common: Vec<Option<(u64, u64)>> =
            (0..boxes.dims()).map(|dim| common(boxes, dim)).collect();
        let kept = common.iter().filter(|common| common.is_none()).count();
        let mut cells = Cells::new(kept);
        cells.corners.resize(boxes.len() * 2 * kept, 0);
        let mut at = 0;
        let axes = common.into_iter().enumerate().map(|(dim, common)| match common {
            Some((start, end)) => Axis::Common(start, end),
            None => {
                at += 1;
                Axis::Coordinates(number(boxes, dim, &mut cells, at - 1))
            }
        });
        Some((Grid { axes: axes.collect() }, cells))
    }

    /// The boxes that cells stand for.
    pub(super) fn boxes(&self, cells: &Cells) -> Boxes {
        let mut boxes = Boxes::new(self.axes.len());
        for cell in cells.iter() {
            let mut ranges = cell.chunks_exact(2);
            boxes.push_corners(self.axes.iter().flat_map(|axis| match axis {
                Axis::Common(start, end) => [*start, *end],
                Axis::Coordinates(all) => {
                    let range = ranges.next().unwrap_or(&[0, 0]);
                    [all[range[0] as usize], all[range[1] as usize]]
                }
            }));
        }
        boxes
    }
}

/// The range that all boxes have in a dimension, if they have the same.
fn common(boxes: &Boxes, dim: usize) -> Option<(u64, u64)> {
    let mut ranges = boxes.corners_of(dim);
    let first = ranges.next().unwrap_or((0, 0));
    ranges.all(|range| range == first).then_some(first)
}

/// The coordinates of a dimension in order. Their numbers go into the cells' dimension `at`.
fn number(boxes: &Boxes, dim: usize, cells: &mut Cells, at: usize) -> Vec<u64> {
    let stride = 2 * cells.dims;
    let place = |end: u32| (end / 2) as usize * stride + 2 * at + (end % 2) as usize;
    let ends = boxes.corners_of(dim).flat_map(|(start, end)| [start, end]);
    let mut ends: Vec<(u64, u32)> = ends.zip(0..).collect();
    ends.sort_unstable();
    let mut coordinates = Vec::new();
    for (value, end) in ends {
        if coordinates.last() != Some(&value) {
            coordinates.push(value);
        }
        cells.corners[place(end)] = coordinates.len() as u32 - 1;
    }
    coordinates
}
