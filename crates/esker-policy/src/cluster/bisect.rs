//! Algorithm 1 of Wan et al.: split where the histogram has its steepest edge, until boxes fill what is around them.
//!
//! After Berger and Rigoutsos. What the paper leaves open: boxes that a split goes through are cut, or no split goes
//! through a box; where no histogram has an edge (a checkerboard) the split is in the middle.

use std::collections::VecDeque;

use super::cells::Cells;

/// The cuboids that the algorithm finds for boxes that do not overlap. `None` if it took more than `steps` (one for
/// each box of each split) or made more than `most` boxes, or where volumes are beyond 128 bits.
pub(super) fn bisect(cells: &Cells, cut: bool, steps: u64, most: usize) -> Option<Cells> {
    let mut left = steps;
    let mut found = Cells::new(cells.dims);
    let mut queue = VecDeque::from([cells.clone()]);
    let mut queued = cells.len();
    while let Some(parent) = queue.pop_front() {
        queued -= parent.len();
        left = left.checked_sub(parent.len() as u64)?;
        if parent.fill_their_bounds()? {
            found.corners.extend(parent.bounds().into_iter().flat_map(|(low, high)| [low, high]));
        } else if let Some((dim, plane)) = best_split(&parent, cut) {
            let [below, above] = parent.cut(dim, plane).map(|(cells, _)| cells);
            queued += below.len() + above.len();
            queue.extend([below, above]);
        } else {
            found.corners.extend_from_slice(&parent.corners);
        }
        if found.len() + queued > most {
            return None;
        }
    }
    Some(found)
}

/// A plane between boxes, and how good it is.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
struct Split {
    /// An edge before no edge.
    edge: bool,
    /// How steep the edge is; how near to the middle the plane is.
    slope: f64,
    dim: usize,
    plane: u32,
}

fn best_split(cells: &Cells, cut: bool) -> Option<(usize, u32)> {
    let splits = (0..cells.dims).filter_map(|dim| Histogram::of(cells, dim).split(dim, cut));
    let best = splits.reduce(|best, split| {
        if (split.edge, split.slope) > (best.edge, best.slope) { split } else { best }
    });
    best.map(|best| (best.dim, best.plane))
}

/// What is occupied of each slice between neighbouring coordinates.
struct Histogram {
    coordinates: Vec<u32>,
    shares: Vec<f64>,
    /// How many boxes each inner coordinate goes through.
    through: Vec<i64>,
}

impl Histogram {
    fn of(cells: &Cells, dim: usize) -> Histogram {
        let ends = cells.iter().flat_map(|cell| [cell[2 * dim], cell[2 * dim + 1]]);
        let mut coordinates: Vec<u32> = ends.collect();
        coordinates.sort_unstable();
        coordinates.dedup();
        let area = |ranges: &mut dyn Iterator<Item = (u32, u32)>| {
            let others = ranges.enumerate().filter(|(other, _)| *other != dim);
            others.fold(1.0, |area, (_, (low, high))| area * f64::from(high - low))
        };
        let full = area(&mut cells.bounds().into_iter());
        let mut changes = vec![0.0; coordinates.len()];
        let mut through = vec![0; coordinates.len() + 1];
        for cell in cells.iter() {
            let share = area(&mut cell.chunks_exact(2).map(|range| (range[0], range[1]))) / full;
            let number = |value: u32| coordinates.partition_point(|other| *other < value);
            let (low, high) = (number(cell[2 * dim]), number(cell[2 * dim + 1]));
            changes[low] += share;
            changes[high] -= share;
            through[low + 1] += 1;
            through[high] -= 1;
        }
        let mut sum = 0.0;
        changes.pop();
        let shares = changes.into_iter().map(|change| {
            sum += change;
            sum
        });
        let shares = shares.collect();
        let mut boxes = 0;
        for count in &mut through {
            boxes += *count;
            *count = boxes;
        }
        Histogram { coordinates, shares, through }
    }

    /// The best plane across this dimension: the steepest zero crossing of the Laplacian, or that nearest to the middle.
    fn split(&self, dim: usize, cut: bool) -> Option<Split> {
        let share = |at: isize| {
            let last = self.shares.len() as isize - 1;
            self.shares[at.clamp(0, last) as usize]
        };
        let laplacian = |at: isize| share(at - 1) - 2.0 * share(at) + share(at + 1);
        let slices = self.shares.len();
        let planes = (1..slices).filter(|plane| cut || self.through[*plane] == 0);
        let splits = planes.map(|plane| {
            let at = plane as isize;
            let edge = laplacian(at - 1) * laplacian(at) < 0.0;
            let slope = if edge {
                (share(at) - share(at - 1)).abs()
            } else {
                -(2.0 * plane as f64 / slices as f64 - 1.0).abs()
            };
            Split { edge, slope, dim, plane: self.coordinates[plane] }
        });
        splits.reduce(|best, split| {
            if (split.edge, split.slope) > (best.edge, best.slope) { split } else { best }
        })
    }
}
