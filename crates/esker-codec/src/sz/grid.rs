//! The order in which points are coded, and what each is predicted from.
//!
//! Levels go from coarse to fine. On a level with step s all points are known whose coordinates
//! are multiples of 2s; it adds those whose coordinates are multiples of s, in groups by the set
//! of dimensions in which the multiple is odd: sets of one dimension first, then of two, and so
//! on. The neighbours of a point at distance s in such a dimension belong to an earlier group, so
//! it can be interpolated along any of them, or along several at once.

use crate::fold::Folded;
use crate::real::Number;

/// A neighbour: how far away in memory, and with what weight.
pub(super) type Tap = (isize, f64);

/// How a group of points is predicted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Rule {
    /// Whether four neighbours are used in a dimension, or two.
    pub(super) cubic: bool,
    /// The share of each dimension, in sixteenths; of dimensions outside of the group, nothing.
    pub(super) shares: [u8; 4],
}

impl Rule {
    /// All dimensions of `group` alike.
    pub(super) fn even(group: usize, cubic: bool) -> Rule {
        let mut shares = [0; 4];
        (0..4).filter(|dim| group >> dim & 1 == 1).for_each(|dim| shares[dim] = 16);
        Rule { cubic, shares }
    }
}

/// The grid: lengths and strides, slowest first.
#[derive(Debug, Clone, Copy)]
pub(super) struct Grid {
    pub(super) len: Folded,
    pub(super) stride: [usize; 4],
}

/// The number of groups on a level, with the empty one.
pub(super) const GROUPS: usize = 16;

/// Groups, one odd dimension first. Bit d stands for dimension d.
pub(super) const ORDER: [usize; 15] = [8, 4, 2, 1, 12, 10, 9, 6, 5, 3, 14, 13, 11, 7, 15];

impl Grid {
    pub(super) fn new(len: Folded) -> Grid {
        let mut stride = [1; 4];
        for dim in (0..3).rev() {
            stride[dim] = stride[dim + 1] * len[dim + 1];
        }
        Grid { len, stride }
    }

    /// The number of levels; level l has step 2^(l-1).
    pub(super) fn levels(&self) -> usize {
        let longest = self.len.iter().copied().max().unwrap_or(1);
        longest.next_power_of_two().trailing_zeros() as usize
    }

    /// Whether the group has points on the level with this step.
    pub(super) fn has(&self, group: usize, step: usize) -> bool {
        (0..4).all(|dim| group >> dim & 1 == 0 || step < self.len[dim])
    }

    /// Interpolation along `dim` at coordinate `at`: up to four neighbours, and whether the point
    /// lies between known ones.
    pub(super) fn along(
        &self,
        dim: usize,
        at: usize,
        step: usize,
        cubic: bool,
    ) -> ([Tap; 4], usize, bool) {
        let unit = (self.stride[dim] * step) as isize;
        let right = at + step < self.len[dim];
        let far_left = at >= 3 * step;
        let far_right = at + 3 * step < self.len[dim];
        let none = (0, 0.0);
        if !right {
            return if far_left {
                ([(-3 * unit, -0.5), (-unit, 1.5), none, none], 2, false)
            } else {
                ([(-unit, 1.0), none, none, none], 1, false)
            };
        }
        match (cubic && far_left, cubic && far_right) {
            (true, true) => (
                [(-3 * unit, -0.0625), (-unit, 0.5625), (unit, 0.5625), (3 * unit, -0.0625)],
                4,
                true,
            ),
            (true, false) => ([(-3 * unit, -0.125), (-unit, 0.75), (unit, 0.375), none], 3, true),
            (false, true) => ([(-unit, 0.375), (unit, 0.75), (3 * unit, -0.125), none], 3, true),
            (false, false) => ([(-unit, 0.5), (unit, 0.5), none, none], 2, true),
        }
    }

    /// The neighbours of a point by a rule. Where a dimension ends, it is left out if another one
    /// has neighbours on both sides.
    pub(super) fn taps(&self, rule: &Rule, at: &[usize; 4], step: usize, taps: &mut Vec<Tap>) {
        taps.clear();
        let used = || (0..4).filter(|&dim| rule.shares[dim] > 0);
        let inside = |dim: usize| at[dim] + step < self.len[dim];
        let some_inside = used().any(inside);
        let counts = |dim: &usize| !some_inside || inside(*dim);
        let total: u32 = used().filter(counts).map(|dim| u32::from(rule.shares[dim])).sum();
        for dim in used().filter(counts) {
            let share = f64::from(rule.shares[dim]) / f64::from(total);
            let (list, count, _) = self.along(dim, at[dim], step, rule.cubic);
            taps.extend(list[..count].iter().map(|&(offset, weight)| (offset, weight * share)));
        }
    }
}

/// What is done at each point: it is predicted, and its value and the size of its code (for the
/// contexts of later points) are wanted.
pub(super) trait Visit<T> {
    fn level(&mut self, level: usize);
    /// From here on indices count from this element.
    fn begin(&mut self, _element: usize) {}
    fn point(&mut self, index: usize, predicted: f64, context: usize) -> (T, u8);
    /// Whether to stop early: the stored codes are damaged.
    fn failed(&self) -> bool {
        false
    }
}

/// Contexts of a point on a level: by the sizes of codes around it.
pub(super) const CONTEXTS: usize = 16;
/// Levels have contexts of their own: the finest, the one above, and all others.
pub(super) const BANDS: usize = 3;

#[inline(always)]
fn context(sizes: u32) -> usize {
    if sizes < 4 {
        return sizes as usize;
    }
    let exponent = sizes.ilog2();
    (4 + (exponent as usize - 2) * 2 + (sizes >> (exponent - 1) & 1) as usize).min(CONTEXTS - 1)
}

/// Goes through all points. Levels have rules and contexts of their own up to `bands`, the last of which serves all
/// above: `rules[level.min(bands) - 1][group]` predicts a group.
pub(super) fn walk<T: Number>(
    grid: &Grid,
    rules: &[[Rule; GROUPS]; BANDS],
    bands: usize,
    values: &mut [T],
    sizes: &mut [u8],
    visit: &mut impl Visit<T>,
) {
    let levels = grid.levels();
    visit.level(levels.max(1));
    if let Some(first) = values.first_mut() {
        let (value, size) = visit.point(0, 0.0, CONTEXTS * BANDS - 1);
        *first = value;
        sizes[0] = size;
    }
    for level in (1..=levels).rev() {
        let band = level.min(bands) - 1;
        visit.level(level);
        walk_level(grid, &rules[band], 1 << (level - 1), band, values, sizes, visit);
        if visit.failed() {
            return;
        }
    }
}

/// Goes through the points whose coordinates are multiples of `step`, but not all of twice of it: those are known.
pub(super) fn walk_level<T: Number>(
    grid: &Grid,
    rules: &[Rule; GROUPS],
    step: usize,
    band: usize,
    values: &mut [T],
    sizes: &mut [u8],
    visit: &mut impl Visit<T>,
) {
    for group in ORDER.into_iter().filter(|&group| grid.has(group, step)) {
        let group = Group { grid, group, step, rule: &rules[group], band };
        group.walk(values, sizes, visit);
        if visit.failed() {
            return;
        }
    }
}

/// Goes through the points whose coordinates are all even; `guess` predicts each from what is there.
pub(super) fn walk_even<T: Number>(
    grid: &Grid,
    values: &mut [T],
    sizes: &mut [u8],
    guess: impl Fn(usize, T) -> f64,
    visit: &mut impl Visit<T>,
) {
    let even = |dim: usize| (0..grid.len[dim]).step_by(2);
    for a in even(0) {
        for b in even(1) {
            for c in even(2) {
                let base = a * grid.stride[0] + b * grid.stride[1] + c * grid.stride[2];
                let mut last = 0u8;
                for d in even(3) {
                    let index = base + d;
                    let above = if c > 0 { sizes[index - 2 * grid.stride[2]] } else { last };
                    let around = 3 * (u32::from(last) + u32::from(above));
                    let guess = guess(index, values[index]);
                    let (value, size) = visit.point(index, guess, CONTEXTS + context(around));
                    values[index] = value;
                    sizes[index] = size;
                    last = size;
                }
                if visit.failed() {
                    return;
                }
            }
        }
    }
}

/// A group of points on a level.
pub(super) struct Group<'a> {
    pub(super) grid: &'a Grid,
    pub(super) group: usize,
    pub(super) step: usize,
    pub(super) rule: &'a Rule,
    pub(super) band: usize,
}

impl Group<'_> {
    fn first(&self, dim: usize) -> usize {
        if self.group >> dim & 1 == 1 { self.step } else { 0 }
    }

    /// Calls `row` with the coordinates of the first point of each row and how far back in memory
    /// the row before lies, 0 if there is none.
    pub(super) fn rows(&self, mut row: impl FnMut([usize; 4], usize)) {
        let (grid, twice) = (self.grid, 2 * self.step);
        let range = |dim: usize| (self.first(dim)..grid.len[dim]).step_by(twice);
        for a in range(0) {
            for b in range(1) {
                for c in range(2) {
                    let before = [(c, 2), (b, 1), (a, 0)];
                    let back =
                        before.into_iter().find(|&(at, dim)| at >= twice && at > self.first(dim));
                    let back = back.map_or(0, |(_, dim)| grid.stride[dim] * twice);
                    row([a, b, c, self.first(3)], back);
                }
            }
        }
    }

    fn walk<T: Number>(&self, values: &mut [T], sizes: &mut [u8], visit: &mut impl Visit<T>) {
        let (grid, step) = (self.grid, self.step);
        let mut taps: Vec<Tap> = Vec::with_capacity(16);
        let in_row = self.group >> 3 & 1 == 1;
        // The neighbours whose codes speak of this point: along the slowest dimension of the group.
        let dim = self.group.trailing_zeros() as usize;
        let beside = grid.stride[dim] * step;
        self.rows(|start, back| {
            let base =
                start[0] * grid.stride[0] + start[1] * grid.stride[1] + start[2] * grid.stride[2];
            let mut at = start;
            let mut last = 0u8;
            while at[3] < grid.len[3] {
                // Points of a row have the same neighbours except near its ends.
                grid.taps(self.rule, &at, step, &mut taps);
                let end = if !in_row {
                    grid.len[3]
                } else if at[3] >= 3 * step && at[3] + 3 * step < grid.len[3] {
                    grid.len[3] - 3 * step
                } else {
                    at[3] + 1
                };
                let inside = start[dim] + step < grid.len[dim];
                let segment = Segment {
                    base,
                    from: at[3],
                    to: end,
                    step: 2 * step,
                    back,
                    beside,
                    right: if dim == 3 { at[3] + step < grid.len[3] } else { inside },
                    contexts: self.band * CONTEXTS,
                };
                last = match taps.as_slice() {
                    &[a, b] => segment.run([a, b], values, sizes, visit, last),
                    &[a, b, c, d] => segment.run([a, b, c, d], values, sizes, visit, last),
                    &[a, b, c, d, e, f, g, h] => {
                        segment.run([a, b, c, d, e, f, g, h], values, sizes, visit, last)
                    }
                    other => segment.run(other, values, sizes, visit, last),
                };
                at[3] += (end - at[3]).div_ceil(2 * step) * 2 * step;
            }
        });
    }
}

/// Points of a row with the same neighbours.
struct Segment {
    base: usize,
    from: usize,
    to: usize,
    step: usize,
    back: usize,
    beside: usize,
    right: bool,
    contexts: usize,
}

impl Segment {
    #[inline(always)]
    fn run<T: Number>(
        &self,
        taps: impl AsRef<[Tap]>,
        values: &mut [T],
        sizes: &mut [u8],
        visit: &mut impl Visit<T>,
        mut last: u8,
    ) -> u8 {
        let taps = taps.as_ref();
        for x in (self.from..self.to).step_by(self.step) {
            let index = self.base + x;
            let mut predicted = 0.0;
            for &(offset, weight) in taps {
                predicted += values[index.wrapping_add_signed(offset)].wide() * weight;
            }
            let above = if self.back > 0 { sizes[index - self.back] } else { last };
            let left = sizes[index - self.beside];
            let right = if self.right { sizes[index + self.beside] } else { left };
            let around =
                2 * (u32::from(last) + u32::from(above)) + u32::from(left) + u32::from(right);
            let (value, size) = visit.point(index, predicted, self.contexts + context(around));
            values[index] = value;
            sizes[index] = size;
            last = size;
        }
        last
    }
}
