//! The part of the file that chunks and tables lie in: where there is room.

use std::collections::{BTreeMap, HashSet};

use esker_format::chunked::ALIGN;

use super::write::Placed;

/// Holes that are remembered, at most; the longest.
const MOST: usize = 64 * 1024;

/// The heap as this rank knows it. Places are counted from its beginning.
#[derive(Debug, Clone, Default)]
pub(crate) struct Heap {
    /// Where it begins in the file.
    pub(crate) begin: u64,
    /// Where new things go when no hole takes them; the same on every rank. `None` before the tables
    /// were looked at.
    pub(crate) end: Option<u64>,
    /// How long it may become.
    pub(crate) limit: Option<u64>,
    /// Free places that this rank may use, by length.
    holes: BTreeMap<u64, Vec<u64>>,
    count: usize,
    /// Places that are free after the next sync: until then they are what is safe.
    pending: Vec<(u64, u64)>,
    /// Where this rank has put chunks since the last sync.
    fresh: HashSet<u64>,
    /// Whether somebody reads by an older table, so that nothing that was in use is free yet.
    pub(crate) held: bool,
}

/// The length of the place for so many bytes.
pub(crate) fn room_for(bytes: u64) -> u64 {
    bytes.checked_next_multiple_of(ALIGN).unwrap_or(u64::MAX)
}

impl Heap {
    pub(crate) fn new(begin: u64, end: Option<u64>, limit: Option<u64>) -> Heap {
        Heap { begin, end, limit, ..Heap::default() }
    }

    /// A hole for so many bytes, if there is one; what is left of it stays one.
    pub(crate) fn take(&mut self, bytes: u64) -> Option<u64> {
        let need = room_for(bytes);
        let (&len, places) = self.holes.range_mut(need..).next()?;
        let place = places.pop()?;
        if places.is_empty() {
            self.holes.remove(&len);
        }
        self.count -= 1;
        self.add_hole(place + need, len - need);
        self.fresh.insert(place);
        Some(place)
    }

    /// Something was put there.
    pub(crate) fn put(&mut self, place: u64) {
        self.fresh.insert(place);
    }

    /// What was there is not needed any more.
    pub(crate) fn free(&mut self, place: u64, bytes: u64) {
        let len = room_for(bytes);
        match self.fresh.remove(&place) && !self.held {
            true => self.add_hole(place, len),
            false => self.pending.push((place, len)),
        }
    }

    /// Chunks that were written there will not be read.
    pub(super) fn give_back(&mut self, placed: &[Placed]) {
        for Placed { old, entry, .. } in placed {
            if old.is_none_or(|old| old.place != entry.place) {
                self.free(entry.place, entry.size);
            }
        }
    }

    /// Everything written so far is safe.
    pub(crate) fn synced(&mut self) {
        if self.held {
            return;
        }
        self.fresh.clear();
        for (place, len) in std::mem::take(&mut self.pending) {
            self.add_hole(place, len);
        }
    }

    pub(crate) fn add_hole(&mut self, place: u64, len: u64) {
        if len == 0 {
            return;
        }
        if self.count == MOST {
            let Some((&shortest, _)) = self.holes.iter().next() else { return };
            if shortest >= len {
                return;
            }
            let places = self.holes.get_mut(&shortest).map(|places| (places.pop(), places.len()));
            if places.is_some_and(|(_, left)| left == 0) {
                self.holes.remove(&shortest);
            }
            self.count -= 1;
        }
        self.holes.entry(len).or_default().push(place);
        self.count += 1;
    }
}

/// What is free below the end of what these places, with lengths, have; and that end.
pub(crate) fn holes_between(mut used: Vec<(u64, u64)>) -> (Vec<(u64, u64)>, u64) {
    used.sort_unstable();
    let mut holes = Vec::new();
    let mut end = 0;
    for (place, len) in used {
        if place > end {
            holes.push((end, place - end));
        }
        end = end.max(place.saturating_add(len));
    }
    (holes, end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_sync_promised_is_no_hole_before_the_next_one() {
        let mut heap = Heap::new(0, Some(0), None);
        heap.put(64);
        heap.free(64, 100);
        assert_eq!(heap.take(128), Some(64), "never promised, so free at once");
        heap.synced();
        heap.free(64, 100);
        assert_eq!(heap.take(1), None);
        heap.synced();
        assert_eq!(heap.take(1), Some(64));
        assert_eq!(heap.take(1), Some(128), "what was left of it");
    }

    #[test]
    fn holes_are_what_nothing_has() {
        let used = vec![(128, 64), (0, 64), (256, 64)];
        assert_eq!(holes_between(used), (vec![(64, 64), (192, 64)], 320));
    }
}
