//! The oldest of many entries, in bounded memory.

use std::cmp::Ordering;
use std::collections::{BinaryHeap, HashMap, HashSet};

use super::boxes::Collected;
use super::{Found, Order};

/// The oldest entries of those that were offered.
pub(super) struct Lowest {
    after: Option<Order>,
    most: usize,
    /// The newest on top.
    heap: BinaryHeap<Kept>,
    /// Their orders: an entry may be offered again.
    known: HashSet<Order>,
    /// How many of them have which footprint, by log and number.
    footprints: HashMap<(u32, u64), usize>,
    cost: usize,
    peak: usize,
    /// Whether some had no room.
    more: bool,
}

struct Kept {
    var: u64,
    found: Found,
    cost: Cost,
}

/// What an entry takes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cost {
    /// For itself.
    pub(crate) own: usize,
    /// Together with all that have the same footprint.
    pub(crate) shared: usize,
}

impl Ord for Kept {
    fn cmp(&self, other: &Kept) -> Ordering {
        self.found.order.cmp(&other.found.order)
    }
}

impl PartialOrd for Kept {
    fn partial_cmp(&self, other: &Kept) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Kept {
    fn eq(&self, other: &Kept) -> bool {
        self.found.order == other.found.order
    }
}

impl Eq for Kept {}

impl Lowest {
    /// Of those after `after`, as many as cost `most`, and at least one.
    pub(super) fn new(after: Option<Order>, most: usize) -> Lowest {
        let (heap, known, footprints) = (BinaryHeap::new(), HashSet::new(), HashMap::new());
        Lowest { after, most, heap, known, footprints, cost: 0, peak: 0, more: false }
    }

    /// Whether none of these orders can be among them.
    pub(super) fn is_without(&self, first: Order, last: Order) -> bool {
        self.after.is_some_and(|after| last <= after) || self.has_no_room_for(first)
    }

    fn has_no_room_for(&self, order: Order) -> bool {
        self.more && self.heap.peek().is_some_and(|newest| newest.found.order < order)
    }

    /// Keeps the entry if it is one of the oldest.
    pub(super) fn offer(&mut self, var: u64, found: &Found, cost: Cost) {
        let order = found.order;
        let is_old = self.after.is_some_and(|after| order <= after);
        if is_old || self.has_no_room_for(order) || !self.known.insert(order) {
            return;
        }
        self.heap.push(Kept { var, found: found.alone(), cost });
        let sharing = self.footprints.entry((found.log, found.footprint)).or_default();
        *sharing += 1;
        self.cost += cost.own + if *sharing == 1 { cost.shared } else { 0 };
        self.peak = self.peak.max(self.cost);
        while self.cost > self.most && self.heap.len() > 1 {
            let Some(newest) = self.heap.pop() else { break };
            self.known.remove(&newest.found.order);
            let footprint = (newest.found.log, newest.found.footprint);
            let sharing = self.footprints.get_mut(&footprint).map_or(0, |sharing| {
                *sharing -= 1;
                *sharing
            });
            self.cost -= newest.cost.own;
            if sharing == 0 {
                self.footprints.remove(&footprint);
                self.cost -= newest.cost.shared;
            }
            self.more = true;
        }
    }

    /// The most that was held at once.
    pub(super) fn peak(&self) -> usize {
        self.peak
    }

    pub(super) fn finish(self) -> Collected {
        let sorted = self.heap.into_sorted_vec();
        let entries = sorted.into_iter().map(|kept| (kept.var, kept.found)).collect();
        Collected { entries, more: self.more }
    }
}
