//! A sweep: slab by slab along one dimension, the cross-section of each by a sweep along the next.
//!
//! In a slab between two neighbouring coordinates the union of all boxes has one cross-section. That is cut into
//! cuboids of one dimension less, and a cuboid that the next slab has, too, goes on through it. In two dimensions this draws a
//! cut from every concave corner in one direction.
//!
//! Where boxes have few coordinates in common there are many slabs, each with many boxes. A sweep that takes more
//! steps than allowed is given up, the boxes are cut in two, and each half is swept by itself.

use super::cells::Cells;
use super::coalesce::hash;

/// Why there is no result: more boxes than allowed would come of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TooMany;

/// What a sweep made.
#[derive(Debug)]
pub(super) struct Swept {
    /// Disjoint, with the union of the boxes.
    pub(super) cells: Cells,
    /// Which of the boxes overlap another one.
    pub(super) overlap: Vec<bool>,
    /// Whether it went through in one piece.
    pub(super) whole: bool,
    /// Steps that were taken.
    pub(super) steps: u64,
}

/// How far a sweep may go.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    /// Steps for each box, before boxes are cut in two.
    pub(super) steps_per_box: u64,
    /// Boxes that come of it.
    pub(super) most: usize,
}

/// Sweeps along the dimensions in this order, the slowest first.
pub(super) fn sweep(cells: &Cells, order: &[usize], bounds: Bounds) -> Result<Swept, TooMany> {
    let overlap = vec![false; cells.len()];
    let mut made = Swept { cells: Cells::new(cells.dims), overlap, whole: true, steps: 0 };
    let mut waiting = vec![permuted(cells, order)];
    let mut pending = cells.len();
    let levels = vec![Level::default(); order.len()];
    let mut sweeper = Sweeper { levels, left: 0, overlapping: Vec::new() };
    while let Some((part, origins)) = waiting.pop() {
        pending -= part.len();
        let allowed = bounds.steps_per_box.saturating_mul(part.len() as u64);
        let done = fits(&part, allowed / FIRST) && sweeper.run(&part, allowed);
        made.steps = made.steps.saturating_add(allowed - sweeper.left.min(allowed));
        if done {
            for index in &sweeper.overlapping {
                made.overlap[origins[*index as usize] as usize] = true;
            }
            unpermute(&sweeper.levels[0].result, order, &mut made.cells);
        } else if let Some(halves) = halves(&part) {
            made.whole = false;
            for (half, of) in halves.into_iter().rev() {
                pending += half.len();
                waiting.push((half, of.into_iter().map(|of| origins[of as usize]).collect()));
            }
        } else {
            // In a single cell each box comes once in each dimension, and so many steps are always allowed.
            return Err(TooMany);
        }
        if made.cells.len() + pending > bounds.most {
            return Err(TooMany);
        }
    }
    Ok(made)
}

/// The boxes with their dimensions in this order, by their low corner along the last one, and which each is.
fn permuted(cells: &Cells, order: &[usize]) -> (Cells, Vec<u32>) {
    let last = order.last().map_or(0, |dim| 2 * dim);
    let mut by_last: Vec<(u32, u32)> =
        cells.iter().zip(0..).map(|(cell, index)| (cell[last], index)).collect();
    by_last.sort_unstable();
    let mut permuted = Cells::new(cells.dims);
    permuted.corners.reserve(cells.corners.len());
    for (_, index) in &by_last {
        let cell = cells.get(*index as usize);
        permuted.corners.extend(order.iter().flat_map(|dim| [cell[2 * dim], cell[2 * dim + 1]]));
    }
    (permuted, by_last.into_iter().map(|(_, index)| index).collect())
}

fn unpermute(result: &[u32], order: &[usize], into: &mut Cells) {
    let stride = 2 * order.len();
    for record in result.chunks_exact(stride) {
        let at = into.corners.len();
        into.corners.resize(at + stride, 0);
        for (range, dim) in record.chunks_exact(2).zip(order) {
            into.corners[at + 2 * dim..][..2].copy_from_slice(range);
        }
    }
}

/// The first dimension may take this part of all steps: each slab's cross-section takes some, too.
const FIRST: u64 = 4;

/// Boxes of which the slabs are counted before they are swept.
const COUNTED: usize = 1 << 14;

/// Whether the slabs of the first dimension have at most so many boxes together. For many boxes that is said without
/// sorting them: a slab ends at the latest where any box of all begins or ends.
fn fits(part: &Cells, allowed: u64) -> bool {
    let most: u64 = part.iter().map(|cell| u64::from(cell[1] - cell[0])).sum();
    if most <= allowed || part.len() > COUNTED {
        return most <= allowed;
    }
    let mut events = Vec::new();
    events_of(part.iter(), 0, &mut events);
    let number = |value: u32| events.partition_point(|other| *other < value) as u64;
    part.iter().map(|cell| number(cell[1]) - number(cell[0])).sum::<u64>() <= allowed
}

fn events_of<'a>(cells: impl Iterator<Item = &'a [u32]>, dim: usize, events: &mut Vec<u32>) {
    events.clear();
    events.extend(cells.flat_map(|cell| [cell[2 * dim], cell[2 * dim + 1]]));
    events.sort_unstable();
    events.dedup();
}

/// Both sides of the middle of the longest side. Coordinates are numbered, so that about as many lie below as above.
fn halves(part: &Cells) -> Option<[(Cells, Vec<u32>); 2]> {
    let sides = part.bounds().into_iter().enumerate();
    let (length, low, dim) = sides.map(|(dim, (low, high))| (high - low, low, dim)).max()?;
    (length > 1).then(|| part.cut(dim, low + length / 2))
}

/// A cuboid of a cross-section that may go on.
#[derive(Debug, Clone, Copy)]
struct Open {
    hash: u64,
    /// Which record of the cross-section.
    at: u32,
    /// The slab in which it began.
    start: u32,
}

/// What one dimension of the sweep works with, kept between slabs.
#[derive(Debug, Default, Clone)]
struct Level {
    events: Vec<u32>,
    /// Low corner and number of each box.
    starting: Vec<(u32, u32)>,
    current: Vec<u32>,
    merged: Vec<u32>,
    open: Vec<Open>,
    next: Vec<Open>,
    /// The cross-section that `open` is of.
    records: Vec<u32>,
    result: Vec<u32>,
}

struct Sweeper {
    levels: Vec<Level>,
    /// Steps that are left.
    left: u64,
    /// Boxes that overlap another one, some of them more than once.
    overlapping: Vec<u32>,
}

impl Sweeper {
    /// Whether it went through; the result is that of level 0.
    fn run(&mut self, cells: &Cells, allowed: u64) -> bool {
        self.left = allowed;
        self.overlapping.clear();
        let all: Vec<u32> = (0..cells.len() as u32).collect();
        self.descend(cells, 0, &all).is_some()
    }

    /// Cuts the union of these boxes, along the dimensions from this one on. Boxes are in order of the last dimension.
    fn descend(&mut self, cells: &Cells, dim: usize, active: &[u32]) -> Option<()> {
        self.left = self.left.checked_sub(active.len() as u64)?;
        if dim + 1 == cells.dims {
            self.intervals(cells, dim, active);
            return Some(());
        }
        let mut level = std::mem::take(&mut self.levels[dim]);
        let done = self.slabs(cells, dim, active, &mut level);
        self.levels[dim] = level;
        done
    }

    /// The last dimension: intervals that touch or overlap become one.
    fn intervals(&mut self, cells: &Cells, dim: usize, active: &[u32]) {
        let result = &mut self.levels[dim].result;
        result.clear();
        // The box that reaches farthest so far: every box that overlaps one before it overlaps this one.
        let mut farthest = 0;
        for index in active {
            let range = &cells.get(*index as usize)[2 * dim..][..2];
            match result.last_mut() {
                Some(end) if *end >= range[0] => {
                    if *end > range[0] {
                        self.overlapping.extend([farthest, *index]);
                    }
                    if *end >= range[1] {
                        continue;
                    }
                    *end = range[1];
                }
                _ => result.extend_from_slice(range),
            }
            farthest = *index;
        }
    }

    fn slabs(
        &mut self,
        cells: &Cells,
        dim: usize,
        active: &[u32],
        level: &mut Level,
    ) -> Option<()> {
        let range = |index: u32| {
            let cell = cells.get(index as usize);
            (cell[2 * dim], cell[2 * dim + 1])
        };
        events_of(active.iter().map(|index| cells.get(*index as usize)), dim, &mut level.events);
        level.starting.clear();
        level.starting.extend(active.iter().map(|index| (range(*index).0, *index)));
        level.starting.sort_unstable();
        level.current.clear();
        level.open.clear();
        level.result.clear();
        let mut begun = 0;
        for at in 0..level.events.len() {
            let slab = level.events[at];
            level.current.retain(|index| range(*index).1 > slab);
            let new = level.starting[begun..].partition_point(|(low, _)| *low == slab);
            merge(&level.current, &level.starting[begun..begun + new], &mut level.merged);
            std::mem::swap(&mut level.current, &mut level.merged);
            begun += new;
            self.descend(cells, dim + 1, &level.current)?;
            level.go_on(slab, &mut self.levels[dim + 1].result, 2 * (cells.dims - dim - 1));
        }
        Some(())
    }
}

/// Two lists of numbers in order as one.
fn merge(some: &[u32], others: &[(u32, u32)], into: &mut Vec<u32>) {
    into.clear();
    let mut some = some.iter().copied().peekable();
    for (_, other) in others {
        while let Some(index) = some.next_if(|index| index < other) {
            into.push(index);
        }
        into.push(*other);
    }
    into.extend(some);
}

impl Level {
    /// A slab begins with this cross-section: what it does not have ends here, what it has goes on or begins. The
    /// slab behind the last one has nothing.
    fn go_on(&mut self, slab: u32, section: &mut Vec<u32>, stride: usize) {
        self.next.clear();
        self.next.extend(section.chunks_exact(stride).zip(0..).map(|(record, at)| Open {
            hash: hash(record.iter()),
            at,
            start: slab,
        }));
        self.next.sort_unstable_by_key(|open| (open.hash, open.at));
        let mut next = self.next.iter_mut().peekable();
        for open in &self.open {
            let record = &self.records[open.at as usize * stride..][..stride];
            while next.next_if(|new| new.hash < open.hash).is_some() {}
            let same = |new: &&mut Open| {
                new.hash == open.hash && section[new.at as usize * stride..][..stride] == *record
            };
            match next.next_if(same) {
                Some(new) => new.start = open.start,
                None => {
                    self.result.extend([open.start, slab]);
                    self.result.extend_from_slice(record);
                }
            }
        }
        std::mem::swap(&mut self.open, &mut self.next);
        std::mem::swap(&mut self.records, section);
    }
}
