//! Merging boxes into cuboids: disjoint, together exactly what the boxes cover, and few.
//!
//! Candidates are made in several ways, and the one with fewest cuboids is taken: whole boxes that touch with equal
//! faces, in every order of dimensions; the paper's Algorithm 1 (`bisect`); a `sweep` in every order of dimensions; in two
//! dimensions the smallest partition (`chords`) there is. How long that may take is counted in steps, not measured, so
//! that all ranks get the same cuboids of the same boxes.

mod bisect;
mod cells;
mod chords;
mod coalesce;
mod fill;
mod orders;
mod sweep;

use std::fmt;

use crate::boxes::{BoxRef, Boxes};
use bisect::bisect;
use cells::{Cells, Grid};
use coalesce::coalesce;
use orders::orders;
use sweep::{Bounds, Swept, TooMany, sweep};

/// What merging may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Whether a box may be cut, so that its parts go into different cuboids. Boxes that overlap are cut in any case.
    pub cut: bool,
    /// For each box, as many cuboids and parts of boxes may there be at most. Boxes of which more would come are an error:
    /// thousands of strips that cross each other are millions of cuboids.
    pub parts_per_box: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { cut: true, parts_per_box: 16 }
    }
}

/// Why boxes were not merged. They can always be stored as they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClusterError {
    /// More cuboids, or parts of boxes, than [`Limits`] allow.
    Parts {
        /// How many boxes.
        boxes: usize,
        /// How many parts they may have.
        most: usize,
    },
    /// More boxes than can be merged at once.
    Boxes {
        /// How many boxes.
        boxes: usize,
    },
}

impl fmt::Display for ClusterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ClusterError::Parts { boxes, most } => {
                write!(
                    f,
                    "{boxes} boxes overlap so much that merging them makes more than {most} parts"
                )
            }
            ClusterError::Boxes { boxes } => {
                write!(f, "{boxes} boxes are more than can be merged at once ({})", u32::MAX / 2)
            }
        }
    }
}

impl std::error::Error for ClusterError {}

/// Cuboids, and what fills each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Clusters {
    cuboids: Boxes,
    /// Where the sources of each cuboid begin in `sources`, and where the last ones end.
    begins: Vec<usize>,
    sources: Vec<u32>,
}

impl Clusters {
    /// How many cuboids.
    pub fn len(&self) -> usize {
        self.cuboids.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.cuboids.is_empty()
    }

    /// The cuboids, in the order of their corners.
    pub fn cuboids(&self) -> impl ExactSizeIterator<Item = BoxRef<'_>> {
        self.cuboids.iter()
    }

    /// The boxes that fill a cuboid, in their order: what is laid later wins. Of each it takes the
    /// [intersection](BoxRef::intersection) with the cuboid.
    ///
    /// # Panics
    /// Panics if there is no cuboid with this number.
    pub fn sources(&self, cuboid: usize) -> impl ExactSizeIterator<Item = usize> + '_ {
        self.sources[self.begins[cuboid]..self.begins[cuboid + 1]]
            .iter()
            .map(|index| *index as usize)
    }

    /// How many parts of boxes fill all cuboids.
    pub fn parts(&self) -> usize {
        self.sources.len()
    }
}

/// Merges boxes into disjoint cuboids that cover what the boxes cover.
pub fn cluster(boxes: &Boxes, limits: &Limits) -> Result<Clusters, ClusterError> {
    let (grid, cells) = Grid::of(boxes).ok_or(ClusterError::Boxes { boxes: boxes.len() })?;
    let most = limits.parts_per_box.max(1).saturating_mul(boxes.len());
    if cells.dims == 0 || boxes.len() < 2 {
        // All boxes are one place, or there is one.
        let mut cuboids = Boxes::new(boxes.dims());
        boxes
            .iter()
            .take(1)
            .for_each(|one| cuboids.push_corners(one.ranges().flat_map(|(a, b)| [a, b])));
        let begins = if boxes.is_empty() { vec![0] } else { vec![0, boxes.len()] };
        return Ok(Clusters { cuboids, begins, sources: (0..boxes.len() as u32).collect() });
    }
    let too_many = |_| ClusterError::Parts { boxes: boxes.len(), most };
    let search = Search::new(&cells, limits.cut, most);
    let candidates = search.candidates().map_err(too_many)?;
    let mut parts = Err(TooMany);
    for mut cuboids in candidates {
        let mut sorted: Vec<&[u32]> = cuboids.iter().collect();
        sorted.sort_unstable();
        cuboids.corners = sorted.concat();
        parts = fill::pairs(&cuboids, &cells, most).map(|pairs| (cuboids, pairs));
        if parts.is_ok() {
            break;
        }
    }
    let (cuboids, pairs) = parts.map_err(too_many)?;
    let mut begins = vec![0; cuboids.len() + 1];
    pairs.iter().for_each(|(cuboid, _)| begins[*cuboid as usize + 1] += 1);
    for at in 1..begins.len() {
        begins[at] += begins[at - 1];
    }
    let sources = pairs.into_iter().map(|(_, source)| source).collect();
    Ok(Clusters { cuboids: grid.boxes(&cuboids), begins, sources })
}

/// Boxes of all orders together: a million boxes are swept in one order, a hundred thousand in five.
const BOXES_OF_ORDERS: usize = 1 << 19;

/// Boxes up to which Algorithm 1 is tried; it looks at each of them at every split.
const BISECTED: usize = 1 << 13;

/// Looks for the best way to cut the same boxes.
struct Search<'a> {
    boxes: &'a Cells,
    cut: bool,
    orders: Vec<Vec<usize>>,
    bounds: Bounds,
    /// Steps of all sweeps together, after which no further order is tried.
    steps: u64,
}

impl<'a> Search<'a> {
    fn new(boxes: &'a Cells, cut: bool, most: usize) -> Search<'a> {
        let each = |all: u64, least: u64, highest: u64| {
            (all / boxes.len() as u64).clamp(least, highest).max(2 * boxes.dims as u64 + 2)
        };
        let steps_per_box = each(1 << 25, 32, 1 << 14);
        Search {
            boxes,
            cut,
            orders: orders(boxes.dims)
                .into_iter()
                .take((BOXES_OF_ORDERS / boxes.len()).max(1))
                .collect(),
            bounds: Bounds { steps_per_box, most },
            steps: each(1 << 27, 128, 1 << 16).saturating_mul(boxes.len() as u64),
        }
    }

    /// What may be taken, the best first: the fewest cuboids, and whole boxes should cutting make too many parts.
    fn candidates(&self) -> Result<Vec<Cells>, TooMany> {
        let mut touching = self.boxes.clone();
        coalesce(&mut touching, &self.orders[0]);
        if touching.len() == 1 {
            return Ok(vec![touching]);
        }
        let first = sweep(&touching, &self.orders[0], self.bounds)?;
        let mut candidates = Vec::new();
        if first.overlap.contains(&true) && !self.cut {
            candidates.push(self.cut_overlapping()?);
        } else if first.overlap.contains(&true) {
            candidates.extend(self.cut_all(&touching, first, None));
        } else {
            let whole = self.whole(touching.clone());
            if self.cut {
                candidates.extend(self.cut_all(&touching, first, Some(&whole)));
            }
            candidates.push(whole);
        }
        candidates.sort_by_key(Cells::len);
        Ok(candidates)
    }

    /// The fewest cuboids of whole boxes, which do not overlap.
    fn whole(&self, first: Cells) -> Cells {
        let others = self.orders[1..].iter().map(|order| {
            let mut cells = self.boxes.clone();
            coalesce(&mut cells, order);
            cells
        });
        others.fold(first, fewer)
    }

    /// Boxes may be cut: what the sweeps and the other ways make of them. `whole` is there if they do not overlap.
    fn cut_all(&self, boxes: &Cells, first: Swept, whole: Option<&Cells>) -> Vec<Cells> {
        let mut steps = self.steps.saturating_sub(first.steps);
        let mut sweeps = vec![first];
        for order in &self.orders[1..] {
            // One cuboid is found by every sweep, and no two are fewer.
            if steps == 0 || sweeps.iter().any(|swept| swept.cells.len() <= 2) {
                break;
            }
            if let Ok(swept) = sweep(boxes, order, self.bounds) {
                steps = steps.saturating_sub(swept.steps);
                sweeps.push(swept);
            }
        }
        let mut candidates = Vec::new();
        match &sweeps[..] {
            [one, other] if boxes.dims == 2 && one.whole && other.whole => {
                candidates.extend(chords::fewest(&one.cells, &other.cells, self.bounds.most));
            }
            _ if sweeps.iter().any(|swept| swept.cells.len() <= 2) => {}
            _ => {
                let disjoint = whole.unwrap_or(&sweeps[0].cells);
                let steps = self.bounds.steps_per_box.saturating_mul(disjoint.len() as u64);
                if disjoint.len() <= BISECTED {
                    candidates.extend(bisect(disjoint, true, steps, self.bounds.most));
                }
            }
        }
        // Nothing of a sweep in one piece can be merged.
        let swept = sweeps.into_iter().map(|swept| (swept.cells, swept.whole));
        let all = candidates.into_iter().map(|cells| (cells, false)).chain(swept);
        let best = all.map(|(mut cells, whole)| {
            if !whole {
                coalesce(&mut cells, &self.orders[0]);
            }
            cells
        });
        best.reduce(fewer).into_iter().collect()
    }

    /// Only boxes that overlap others are cut.
    fn cut_overlapping(&self) -> Result<Cells, TooMany> {
        let overlap = sweep(self.boxes, &self.orders[0], self.bounds)?.overlap;
        let (mut cut, mut kept) = (Cells::new(self.boxes.dims), Cells::new(self.boxes.dims));
        for (cell, overlap) in self.boxes.iter().zip(overlap) {
            if overlap { cut.push(cell) } else { kept.push(cell) }
        }
        let mut best = Err(TooMany);
        let mut steps = self.steps;
        for order in &self.orders {
            let Ok(swept) = sweep(&cut, order, self.bounds) else { continue };
            let mut cells = swept.cells;
            cells.corners.extend_from_slice(&kept.corners);
            coalesce(&mut cells, order);
            best = best.map(|best| fewer(best, cells.clone())).or(Ok(cells));
            steps = steps.saturating_sub(swept.steps);
            if steps == 0 {
                break;
            }
        }
        best
    }
}

fn fewer(best: Cells, other: Cells) -> Cells {
    if other.len() < best.len() { other } else { best }
}
