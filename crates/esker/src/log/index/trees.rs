//! Entries by the boxes that they are in: packed trees, one for each variable.
//!
//! The boxes of a variable lie along a curve that keeps near together what is near, sixteen of them are in a node, and sixteen nodes in
//! one above. So a question costs a logarithm and the answer, nothing points to anything, and there is no allocation for an entry. What
//! comes later makes trees of its own; those that are less than twice as large as what comes are made anew with it.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use super::Found;
use crate::log::grid::{DIMS, Grid, Slab};

/// Boxes in a node.
const FAN: usize = 16;

/// The grids of variables.
pub(crate) type Grids = HashMap<u64, Grid>;

/// An entry of a variable.
#[derive(Debug)]
struct Held {
    var: u64,
    found: Found,
}

/// Entries of all variables, to which more may be added.
#[derive(Debug, Default)]
pub(super) struct Trees {
    grids: Arc<Grids>,
    levels: Vec<Level>,
    /// Added, and not to be found yet.
    fresh: Hulls,
}

/// Entries and, one behind the other, the first index and that behind the last of each dimension of each.
#[derive(Debug, Default)]
struct Hulls {
    items: Vec<Held>,
    bounds: Vec<u64>,
}

/// Trees that were made together, by variable.
#[derive(Debug)]
struct Level {
    hulls: Hulls,
    /// The bounds of nodes, those of a variable together, the lowest first.
    nodes: Vec<u64>,
    trees: Vec<Tree>,
}

/// The tree of a variable.
#[derive(Debug)]
struct Tree {
    var: u64,
    items: Range<usize>,
    /// Where its bounds begin, and those of its nodes.
    bounds: usize,
    nodes: usize,
}

/// Where an entry is to lie in the order of a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    var: u64,
    curve: u64,
    number: usize,
    bounds: usize,
}

impl Trees {
    /// Entries are seen in these grids from now on; gives those that are to be put in again.
    pub(super) fn see_in(&mut self, grids: Arc<Grids>) -> Vec<(u64, Found)> {
        let is_new = |(var, old): (&u64, &Grid)| grids.get(var).unwrap_or(&Grid::LINEAR) != old;
        let regrouped =
            self.grids.iter().any(is_new) || grids.iter().any(|(var, new)| self.grid(*var) != new);
        if !regrouped {
            return Vec::new();
        }
        let levels = std::mem::take(&mut self.levels);
        let fresh = std::mem::take(&mut self.fresh);
        self.grids = grids;
        let all = levels.into_iter().flat_map(|level| level.hulls.items).chain(fresh.items);
        all.map(|held| (held.var, held.found)).collect()
    }

    pub(super) fn grids(&self) -> &Arc<Grids> {
        &self.grids
    }

    /// In which a variable is seen.
    pub(super) fn grid(&self, var: u64) -> &Grid {
        self.grids.get(&var).unwrap_or(&Grid::LINEAR)
    }

    /// Bytes that the entry of a variable takes here, beside what it has elsewhere.
    pub(super) fn memory(&self, var: u64) -> usize {
        let bounds = 2 * self.grid(var).dims() * size_of::<u64>();
        size_of::<Held>() - size_of::<Found>() + bounds + bounds.div_ceil(FAN - 1)
    }

    /// There will be so many more.
    pub(super) fn reserve(&mut self, more: usize) {
        self.fresh.items.reserve(more);
    }

    /// Adds an entry, whose elements are in `hull`; it is found after the next [`Trees::settle`].
    pub(super) fn push(&mut self, var: u64, found: Found, hull: &Slab) {
        let end = hull.end();
        let dims = self.grid(var).dims();
        self.fresh.bounds.extend((0..dims).flat_map(|dim| [hull.start[dim], end[dim]]));
        self.fresh.items.push(Held { var, found });
    }

    /// Takes out what was added and is not to be kept; `keeps` learns what each takes here.
    pub(super) fn retain_fresh(&mut self, mut keeps: impl FnMut(usize, &Found) -> bool) {
        let old = std::mem::take(&mut self.fresh);
        let mut at = 0;
        for held in old.items {
            let n = 2 * self.grid(held.var).dims();
            if keeps(self.memory(held.var), &held.found) {
                self.fresh.bounds.extend(&old.bounds[at..at + n]);
                self.fresh.items.push(held);
            }
            at += n;
        }
    }

    /// Forgets all entries.
    pub(super) fn clear(&mut self) {
        *self = Trees { grids: self.grids.clone(), ..Trees::default() };
    }

    /// Takes in what was added.
    pub(super) fn settle(&mut self) {
        if self.fresh.items.is_empty() {
            return;
        }
        let mut all = std::mem::take(&mut self.fresh);
        while let Some(level) =
            self.levels.pop_if(|level| level.hulls.items.len() < 2 * all.items.len())
        {
            let mut longer = level.hulls;
            longer.items.append(&mut all.items);
            longer.bounds.append(&mut all.bounds);
            all = longer;
        }
        let level = Level::new(all, |var| self.grid(var).dims());
        self.levels.push(level);
    }

    /// Whether a variable has any.
    pub(super) fn has(&self, var: u64) -> bool {
        self.levels.iter().any(|level| level.tree(var).is_some())
    }

    /// Calls `each` with every entry of a variable.
    pub(super) fn each_of(&self, var: u64, mut each: impl FnMut(&Found)) {
        for level in &self.levels {
            let items = level.tree(var).map_or(0..0, |tree| tree.items.clone());
            level.hulls.items[items].iter().for_each(|held| each(&held.found));
        }
    }

    /// Calls `each` with every entry of a variable whose box meets this one.
    pub(super) fn meeting(&self, var: u64, slab: &Slab, mut each: impl FnMut(&Found)) {
        let dims = self.grid(var).dims();
        let end = slab.end();
        let mut asked = [[0; 2]; DIMS];
        let pairs = slab.start.iter().zip(&end).map(|(start, end)| [*start, *end]);
        asked.iter_mut().zip(pairs).for_each(|(asked, pair)| *asked = pair);
        for level in &self.levels {
            if let Some(tree) = level.tree(var) {
                level.meeting(tree, &asked[..dims], &mut each);
            }
        }
    }
}

impl Level {
    fn new(hulls: Hulls, dims_of: impl Fn(u64) -> usize) -> Level {
        let hulls = along_the_curve(hulls, &dims_of);
        let (mut nodes, mut trees) = (Vec::new(), Vec::new());
        let (mut item, mut at) = (0, 0);
        for of_var in hulls.items.chunk_by(|a, b| a.var == b.var) {
            let Some(Held { var, .. }) = of_var.first() else { continue };
            let dims = dims_of(*var);
            let own = at..at + 2 * dims * of_var.len();
            let items = item..item + of_var.len();
            trees.push(Tree { var: *var, items, bounds: own.start, nodes: nodes.len() });
            (item, at) = (item + of_var.len(), own.end);
            // The lowest nodes are around entries, the others around nodes.
            let mut below = around(&hulls.bounds[own], dims);
            while !below.is_empty() {
                let above = around(&below, dims);
                nodes.append(&mut below);
                below = above;
            }
        }
        Level { hulls, nodes, trees }
    }

    fn tree(&self, var: u64) -> Option<&Tree> {
        let number = self.trees.binary_search_by_key(&var, |tree| tree.var).ok()?;
        self.trees.get(number)
    }

    fn meeting(&self, tree: &Tree, asked: &[[u64; 2]], each: &mut impl FnMut(&Found)) {
        // How many boxes each row of the tree has, and where their bounds begin.
        let wide = 2 * asked.len();
        let mut rows = vec![(tree.items.len(), tree.bounds)];
        let (mut count, mut at) = (tree.items.len(), tree.nodes);
        while count > FAN {
            count = count.div_ceil(FAN);
            rows.push((count, at));
            at += count * wide;
        }
        let Some(top) = rows.len().checked_sub(1) else { return };
        self.walk(tree, &rows, (top, 0..rows[top].0), asked, each);
    }

    fn walk(
        &self,
        tree: &Tree,
        rows: &[(usize, usize)],
        (row, boxes): (usize, Range<usize>),
        asked: &[[u64; 2]],
        each: &mut impl FnMut(&Found),
    ) {
        let wide = 2 * asked.len();
        let bounds = if row == 0 { &self.hulls.bounds } else { &self.nodes };
        let from = rows[row].1;
        for number in boxes {
            let at = from + number * wide;
            let (pairs, _) = bounds[at..at + wide].as_chunks::<2>();
            let meets =
                |([start, end], [from, to]): (&[u64; 2], &[u64; 2])| start < to && from < end;
            if !pairs.iter().zip(asked).all(meets) {
                continue;
            }
            match row.checked_sub(1) {
                None => each(&self.hulls.items[tree.items.start + number].found),
                Some(below) => {
                    let first = number * FAN;
                    let inside = first..(first + FAN).min(rows[below].0);
                    self.walk(tree, rows, (below, inside), asked, each);
                }
            }
        }
    }
}

/// The bounds of nodes around each sixteen of these boxes; none where one node has them all.
fn around(bounds: &[u64], dims: usize) -> Vec<u64> {
    if bounds.len() <= 2 * dims * FAN {
        return Vec::new();
    }
    let mut nodes = Vec::with_capacity(bounds.len() / FAN + 2 * dims);
    for boxes in bounds.chunks(2 * dims * FAN) {
        for dim in 0..dims {
            let pairs = || boxes.chunks_exact(2 * dims).map(|bounds| &bounds[2 * dim..]);
            nodes.push(pairs().map(|pair| pair[0]).min().unwrap_or(0));
            nodes.push(pairs().map(|pair| pair[1]).max().unwrap_or(0));
        }
    }
    nodes
}

/// The entries by variable, and those of one along a curve.
fn along_the_curve(old: Hulls, dims_of: &impl Fn(u64) -> usize) -> Hulls {
    let mut curves: HashMap<u64, Curve> = HashMap::new();
    let mut at = 0;
    for held in &old.items {
        let dims = dims_of(held.var);
        let curve = curves.entry(held.var).or_insert_with(|| Curve::new(dims));
        curve.widen(&old.bounds[at..at + 2 * dims]);
        at += 2 * dims;
    }
    curves.values_mut().for_each(Curve::finish);
    at = 0;
    let mut keys: Vec<Key> = Vec::with_capacity(old.items.len());
    for (number, Held { var, .. }) in old.items.iter().enumerate() {
        let n = 2 * dims_of(*var);
        let place = curves.get(var).map_or(0, |curve| curve.of(&old.bounds[at..at + n]));
        keys.push(Key { var: *var, curve: place, number, bounds: at });
        at += n;
    }
    drop(curves);
    if keys.is_sorted() {
        return old;
    }
    keys.sort_unstable();
    let mut bounds = Vec::with_capacity(old.bounds.len());
    for Key { var, bounds: at, .. } in &keys {
        bounds.extend(&old.bounds[*at..*at + 2 * dims_of(*var)]);
    }
    // Entries are long: each goes once to where it belongs, in the circles that they make.
    let mut items = old.items;
    for start in 0..items.len() {
        let mut to = start;
        loop {
            let from = std::mem::replace(&mut keys[to].number, to);
            if from == start || from == to {
                break;
            }
            items.swap(to, from);
            to = from;
        }
    }
    Hulls { items, bounds }
}

/// Bits of the middles of boxes, interleaved: the Z-order of cells that are about as large as the boxes.
#[derive(Debug)]
struct Curve {
    dims: usize,
    boxes: u64,
    lowest: [u64; DIMS],
    highest: [u64; DIMS],
    /// The sum of their lengths.
    lengths: [u64; DIMS],
    /// Bits of the middle that do not count, and how many do.
    shifts: [u32; DIMS],
    bits: u32,
}

impl Curve {
    fn new(dims: usize) -> Curve {
        let (lowest, zeros) = ([u64::MAX; DIMS], [0; DIMS]);
        let (highest, lengths, shifts) = (zeros, zeros, [0; DIMS]);
        Curve { dims, boxes: 0, lowest, highest, lengths, shifts, bits: 0 }
    }

    fn middle(pair: &[u64; 2]) -> u64 {
        pair[0] + (pair[1].saturating_sub(pair[0])) / 2
    }

    fn widen(&mut self, bounds: &[u64]) {
        self.boxes += 1;
        for (dim, pair) in bounds.as_chunks::<2>().0.iter().enumerate() {
            let middle = Curve::middle(pair);
            self.lowest[dim] = self.lowest[dim].min(middle);
            self.highest[dim] = self.highest[dim].max(middle);
            let length = pair[1].saturating_sub(pair[0]);
            self.lengths[dim] = self.lengths[dim].saturating_add(length);
        }
    }

    fn finish(&mut self) {
        // What all have in one cell takes no bits from the others.
        let bits_of = |n: u64| u64::BITS - n.leading_zeros();
        let cells: [u32; DIMS] = std::array::from_fn(|dim| {
            let length = self.lengths[dim] / self.boxes.max(1);
            self.shifts[dim] = bits_of(length).saturating_sub(1);
            bits_of(self.highest[dim].saturating_sub(self.lowest[dim]) >> self.shifts[dim])
        });
        let many = cells[..self.dims].iter().filter(|bits| **bits > 0).count().max(1) as u32;
        self.bits = u64::BITS / many;
        for (shift, bits) in self.shifts.iter_mut().zip(cells) {
            *shift = if bits == 0 { u64::BITS } else { *shift + bits.saturating_sub(self.bits) };
        }
    }

    fn of(&self, bounds: &[u64]) -> u64 {
        let mut cells = [0u64; DIMS];
        let mut count = 0;
        for (dim, pair) in bounds.as_chunks::<2>().0.iter().enumerate() {
            if self.shifts[dim] < u64::BITS {
                cells[count] = (Curve::middle(pair) - self.lowest[dim]) >> self.shifts[dim];
                count += 1;
            }
        }
        let longest = cells.iter().fold(0, |all, cell| all | cell);
        let bits = self.bits.min(u64::BITS - longest.leading_zeros());
        let mut place = 0u64;
        for bit in (0..bits).rev() {
            for cell in &cells[..count] {
                place = place << 1 | (cell >> bit & 1);
            }
        }
        place
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::index::Sums;
    use esker_format::log::Records;
    use proptest::prelude::*;

    fn found(number: u64) -> Found {
        Found {
            order: (0, 0, 0, number),
            log: 0,
            records: Records::one(0),
            first: 0,
            end: 1,
            footprint: 0,
            elements: 1,
            place: 0,
            len: 8,
            width: 8,
            little: true,
            encoded: false,
            sums: Sums::from(&[][..]),
        }
    }

    fn slab(bounds: &[(u64, u64)]) -> Slab {
        let mut slab = Slab { start: [0; DIMS], count: [1; DIMS] };
        for (dim, (start, count)) in bounds.iter().enumerate() {
            (slab.start[dim], slab.count[dim]) = (*start, *count);
        }
        slab
    }

    fn asked(trees: &Trees, var: u64, slab: &Slab) -> Vec<u64> {
        let mut all = Vec::new();
        trees.meeting(var, slab, |found| all.push(found.order.3));
        all.sort();
        all
    }

    /// Variables of one, two and three dimensions, with that of records.
    fn trees() -> Trees {
        let grids = [(1, Grid::of_shape(&[9, 10])), (2, Grid::of_shape(&[9, 10, 10]))];
        let mut trees = Trees::default();
        assert!(trees.see_in(Arc::new(grids.into_iter().collect())).is_empty());
        trees
    }

    proptest! {
        #[test]
        fn every_entry_whose_box_meets_is_found_once(
            parts in prop::collection::vec(
                prop::collection::vec((0u64..3, prop::collection::vec((0u64..90, 1u64..20), 4)), 0..60),
                0..6,
            ),
            questions in prop::collection::vec((0u64..4, prop::collection::vec((0u64..99, 1u64..40), 4)), 1..9),
            last in 0u64..200,
        ) {
            let mut trees = trees();
            let mut all: Vec<(u64, Slab)> = Vec::new();
            for (number, part) in parts.iter().enumerate() {
                for (var, bounds) in part {
                    let hull = slab(&bounds[..2 + *var as usize]);
                    trees.push(*var, found(all.len() as u64), &hull);
                    all.push((*var, hull));
                }
                // Of the last part only some stays.
                if number + 1 == parts.len() {
                    trees.retain_fresh(|_, found| found.order.3 <= last || found.order.3 < (all.len() - part.len()) as u64);
                }
                trees.settle();
            }
            let before_last = all.len() - parts.last().map_or(0, Vec::len);
            let keeps = |number: usize| number < before_last || number as u64 <= last;
            for (var, bounds) in &questions {
                let slab = slab(&bounds[..(2 + *var as usize).min(4)]);
                let meets = |(number, (of, hull)): &(usize, &(u64, Slab))| {
                    of == var && keeps(*number) && hull.and(&slab).is_some()
                };
                let expected: Vec<u64> =
                    all.iter().enumerate().filter(meets).map(|(number, _)| number as u64).collect();
                prop_assert_eq!(asked(&trees, *var, &slab), expected);
                let mut every = 0;
                trees.each_of(*var, |_| every += 1);
                let of_var = all.iter().enumerate().filter(|(i, (of, _))| of == var && keeps(*i));
                prop_assert_eq!(every, of_var.count());
            }
        }
    }

    #[test]
    fn a_question_looks_at_few_nodes_of_many() {
        // A cube of blocks in any order, in records; each node that is looked into may have sixteen boxes.
        let grid = Grid::of_shape(&[400, 400, 400]);
        let mut trees = Trees::default();
        trees.see_in(Arc::new([(7, grid)].into_iter().collect()));
        let n = 20u64;
        for i in 0..n * n * n {
            let i = i * 3_001 % (n * n * n);
            let place = [(3, 1), (i / (n * n) * 20, 20), (i / n % n * 20, 20), (i % n * 20, 20)];
            trees.push(7, found(i), &slab(&place));
        }
        trees.settle();
        let level = &trees.levels[0];
        let tree = level.tree(7).unwrap();
        let wide = 8;
        let touched = |question: &Slab| {
            // Nodes of the lowest row that meet.
            let count = tree.items.len().div_ceil(FAN);
            let nodes = &level.nodes[tree.nodes..tree.nodes + count * wide];
            let end = question.end();
            let meets = |bounds: &&[u64]| {
                (0..4).all(|d| bounds[2 * d] < end[d] && question.start[d] < bounds[2 * d + 1])
            };
            nodes.chunks(wide).filter(meets).count()
        };
        for (question, answer) in [
            (slab(&[(3, 1), (0, 400), (0, 400), (77, 1)]), 400),
            (slab(&[(3, 1), (77, 1), (0, 400), (0, 400)]), 400),
            (slab(&[(3, 1), (100, 60), (100, 60), (100, 60)]), 27),
            (slab(&[(3, 1), (5, 1), (5, 1), (5, 1)]), 1),
        ] {
            assert_eq!(asked(&trees, 7, &question).len(), answer);
            assert!(
                touched(&question) <= answer / 2 + 8,
                "{} nodes for {answer}",
                touched(&question)
            );
        }
        assert_eq!(asked(&trees, 7, &slab(&[(4, 1), (0, 400), (0, 400), (0, 400)])).len(), 0);
    }

    #[test]
    fn lists_are_few_however_often_something_is_added() {
        let mut trees = trees();
        for i in 0..1000 {
            trees.push(i % 3, found(i), &slab(&[(i, 1)]));
            trees.settle();
        }
        assert!(trees.levels.len() <= 11, "{}", trees.levels.len());
        assert_eq!(asked(&trees, 1, &slab(&[(0, 500), (0, 9), (0, 9)])).len(), 167);
    }

    #[test]
    fn entries_come_back_when_their_variables_are_seen_otherwise() {
        let mut trees = trees();
        trees.push(1, found(5), &slab(&[(0, 1), (2, 1), (3, 1)]));
        trees.settle();
        let same = trees.grids().clone();
        assert!(trees.see_in(same).is_empty());
        let again = trees.see_in(Arc::default());
        assert_eq!(
            again.iter().map(|(var, found)| (*var, found.order.3)).collect::<Vec<_>>(),
            [(1, 5)]
        );
        assert!(!trees.has(1));
    }
}
