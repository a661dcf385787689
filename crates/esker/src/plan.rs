//! What a rank's requests touch, in the order of the file.
//!
//! A plan is a pure function of the queue. It keeps hyperslabs as patterns and single runs as
//! they are, sorted by where they begin, and is swept once from the lowest byte to the
//! highest: [`Sweep::take`] gives the pieces of the next stretch of the file, sorted, cut at its
//! borders (never inside an element: one that straddles a border belongs to the stretch it
//! begins in), and without overlaps. So only what one stretch holds is ever flattened, and where
//! requests do not interleave nothing is sorted at all (seeds/000 §3.2.4, with the stretch as the
//! group of the second level).

mod extent;
mod piece;
mod sweep;

use esker_format::runs::Pattern;

use extent::What;

pub(crate) use extent::{Elements, Extent, SharedRuns, Shift, Single};
pub(crate) use piece::{CombPiece, Piece, later_wins};
pub(crate) use sweep::{Overlap, Sweep};

/// A plan in numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Summary {
    /// The lowest byte; `u64::MAX` without any.
    pub(crate) first: u64,
    /// The first byte after the highest.
    pub(crate) end: u64,
    /// Contiguous runs, as the requests have them.
    pub(crate) runs: u64,
    /// Bytes.
    pub(crate) bytes: u64,
}

impl Default for Summary {
    fn default() -> Self {
        Summary { first: u64::MAX, end: 0, runs: 0, bytes: 0 }
    }
}

impl Summary {
    fn of_runs(list: &[Single]) -> Summary {
        let mut sum = Summary { runs: list.len() as u64, ..Summary::default() };
        for run in list {
            sum.first = sum.first.min(run.offset);
            sum.end = sum.end.max(run.offset + run.len);
            sum.bytes += run.len;
        }
        sum
    }

    fn of_pattern(pattern: &Pattern) -> Summary {
        let runs = pattern.run_count();
        let bytes = runs * pattern.run_len();
        Summary { first: pattern.first(), end: pattern.end(), runs, bytes }
    }

    /// The same so far behind.
    fn moved(self, by: u64) -> Summary {
        let (first, end) = (self.first.saturating_add(by), self.end.saturating_add(by));
        Summary { first, end, ..self }
    }

    pub(crate) fn join(&mut self, other: &Summary) {
        self.first = self.first.min(other.first);
        self.end = self.end.max(other.end);
        self.runs += other.runs;
        self.bytes += other.bytes;
    }

    /// The mean length of a run, at least 1.
    pub(crate) fn mean_run(&self) -> u64 {
        (self.bytes / self.runs.max(1)).max(1)
    }
}

/// Something in a plan that begins at `first`: all of a request's single runs, or a pattern.
#[derive(Debug)]
struct Entry<'a> {
    first: u64,
    end: u64,
    request: u32,
    what: What<'a>,
}

/// All requests of a rank, by where they begin.
#[derive(Debug)]
pub(crate) struct Plan<'a> {
    entries: Vec<Entry<'a>>,
    sizes: Vec<u64>,
    pub(crate) summary: Summary,
}

impl<'a> Plan<'a> {
    /// The plan of the requests' extents; their numbers are the order in which they overlap.
    pub(crate) fn new(extents: impl Iterator<Item = &'a Extent>) -> Plan<'a> {
        let mut entries = Vec::new();
        let mut summary = Summary::default();
        let mut sizes = Vec::new();
        for (request, extent) in extents.enumerate() {
            let request = request as u32;
            sizes.push(extent.size);
            extent.each(|what, all| {
                summary.join(&all);
                entries.push(Entry { first: all.first, end: all.end, request, what });
            });
        }
        if !entries.is_sorted_by_key(|e| e.first) {
            entries.sort_by_key(|e| e.first);
        }
        Plan { entries, sizes, summary }
    }

    /// Bytes that reading everything takes when holes of at most `sieve` bytes are read along.
    pub(crate) fn sieved(&self, sieve: u64) -> u64 {
        let of_pattern = |pattern: &Pattern| {
            let span = pattern.end() - pattern.first();
            let wanted = pattern.run_count() * pattern.run_len();
            // Holes of one level are alike; a pattern with short ones is read through.
            let mean_hole = (span - wanted) / pattern.run_count();
            if mean_hole <= sieve { span } else { wanted }
        };
        let of_singles = |singles: &[Single]| {
            let mut bytes = 0;
            let mut end = 0;
            for single in singles {
                let hole = single.offset.saturating_sub(end);
                bytes += single.len + if end > 0 && hole <= sieve { hole } else { 0 };
                end = single.offset + single.len;
            }
            bytes
        };
        self.entries
            .iter()
            .map(|entry| match entry.what {
                What::Singles(singles, _) => of_singles(singles),
                What::Pattern(pattern, _) | What::Box(pattern, _) => of_pattern(pattern),
            })
            .sum()
    }

    /// Starts at the lowest byte.
    pub(crate) fn sweep(&self) -> Sweep<'_, 'a> {
        Sweep::new(self)
    }
}

/// Sorts by offset, keeping the order of equal ones: a radix sort on the bytes in which the
/// offsets differ, which for a million short runs takes a third of a comparison sort's time.
pub(crate) fn sort_by_offset<T: Copy>(items: &mut Vec<T>, offset: impl Fn(&T) -> u64) {
    const SMALL: usize = 4096;
    if items.len() < SMALL {
        items.sort_by_key(|item| offset(item));
        return;
    }
    let lowest = items.iter().map(&offset).min().unwrap_or(0);
    let highest = items.iter().map(&offset).max().unwrap_or(0);
    let bits = u64::BITS - (highest - lowest).leading_zeros();
    const DIGIT: u32 = 11;
    let mut from = std::mem::take(items);
    let mut to = from.clone();
    for shift in (0..bits).step_by(DIGIT as usize) {
        let digit = |item: &T| ((offset(item) - lowest) >> shift) as usize & ((1 << DIGIT) - 1);
        let mut starts = [0usize; 1 << DIGIT];
        for item in &from {
            starts[digit(item)] += 1;
        }
        let mut sum = 0;
        for start in &mut starts {
            (*start, sum) = (sum, sum + *start);
        }
        for item in &from {
            let place = &mut starts[digit(item)];
            to[*place] = *item;
            *place += 1;
        }
        std::mem::swap(&mut from, &mut to);
    }
    *items = from;
}

#[cfg(test)]
mod tests {
    use esker_format::runs::Run;
    use proptest::prelude::*;

    use super::*;
    use crate::taken::Taken;

    fn extent(runs: &[(u64, u64)]) -> Extent {
        let mut extent = Extent::new(1);
        let mut element = 0;
        for (offset, len) in runs {
            extent.push(Pattern::new(*offset, 1, [(*len, 1)].into_iter()), element);
            element += len;
        }
        extent.finish();
        extent
    }

    /// Who has each byte after all requests were applied one after the other.
    fn model(requests: &[Vec<(u64, u64)>]) -> std::collections::BTreeMap<u64, (u32, u64)> {
        let mut bytes = std::collections::BTreeMap::new();
        for (request, runs) in requests.iter().enumerate() {
            let mut element = 0;
            for (offset, len) in runs {
                for i in 0..*len {
                    bytes.insert(offset + i, (request as u32, element));
                    element += 1;
                }
            }
        }
        bytes
    }

    proptest! {
        #[test]
        fn stretches_have_few_runs_and_all_of_them(
            runs in proptest::collection::vec((0u64..300, 1u64..9), 0..40),
            patterns in proptest::collection::vec((0u64..2000, 2u64..30, 2u64..70), 0..3),
            most in 4u64..20,
        ) {
            let (mut at, mut element) = (0, 0);
            let mut extent = Extent::new(1);
            for (gap, len) in runs {
                extent.push_run(Run { offset: at + gap, len }, element);
                (at, element) = (at + gap + len, element + len);
            }
            for (offset, count, step) in patterns {
                extent.push(Pattern::new(offset, 1, [(count, step)].into_iter()), element);
                element += count;
            }
            extent.finish();
            let plan = Plan::new([&extent].into_iter());
            let mut sweep = plan.sweep();
            let (mut at, mut length, mut found) = (plan.summary.first, u64::MAX, 0);
            while let Some(start) = sweep.next_offset(at).filter(|s| *s < plan.summary.end) {
                at = sweep.stretch(start, &mut length, most);
                let pieces = sweep.take(start, at, Overlap::Shared);
                let few = most + plan.entries.len() as u64;
                prop_assert!(at == start + 1 || pieces.len() as u64 <= few);
                found += pieces.iter().map(|piece| piece.len).sum::<u64>();
            }
            prop_assert_eq!(found, element);
        }

        #[test]
        fn a_sweep_gives_every_byte_to_its_last_writer(
            requests in proptest::collection::vec(
                proptest::collection::vec((0u64..300, 1u64..40), 0..6), 1..5),
            step in 1u64..200,
        ) {
            let extents: Vec<Extent> = requests.iter().map(|runs| extent(runs)).collect();
            let plan = Plan::new(extents.iter());
            let mut sweep = plan.sweep();
            let mut found = std::collections::BTreeMap::new();
            let mut at = 0;
            while at < 400 {
                let pieces = sweep.take(at, at + step, Overlap::LaterWins);
                for piece in pieces {
                    prop_assert!(piece.offset >= at && piece.end() <= at + step);
                    for i in 0..piece.len {
                        let byte = (piece.request, piece.element + i);
                        prop_assert!(found.insert(piece.offset + i, byte).is_none());
                    }
                }
                at += step;
                if let Some(next) = sweep.next_offset(at) {
                    prop_assert!(next >= at);
                }
            }
            prop_assert_eq!(found, model(&requests));
        }

        #[test]
        fn combs_are_the_pieces_of_the_same_stretch(
            slabs in proptest::collection::vec(
                (0u64..2000, 1u64..4, proptest::collection::vec((1u64..9, 0u64..3), 1..4)), 1..4),
            step in 1u64..400,
        ) {
            const SIZE: u64 = 4;
            let extents: Vec<Extent> = slabs.iter().map(|(base, run, dims)| {
                let mut distance = run * SIZE;
                let levels = dims.iter().map(|(count, hole)| {
                    let level = (*count, distance + hole * SIZE);
                    distance = level.1 * count;
                    level
                });
                let mut levels: Vec<(u64, u64)> = levels.collect();
                levels.push((*run, SIZE));
                levels.rotate_right(1);
                let mut extent = Extent::new(SIZE);
                extent.push(Pattern::new(*base, SIZE, levels.into_iter().rev()), 0);
                extent.finish();
                extent
            }).collect();
            let plan = Plan::new(extents.iter());
            let (mut one, mut other) = (plan.sweep(), plan.sweep());
            let mut at = 0;
            while at < plan.summary.end {
                let elements = |piece: &Piece| {
                    let Piece { offset, request, element, len } = *piece;
                    (0..len / SIZE).map(move |i| (offset + i * SIZE, request, element + i))
                };
                let expected: Vec<_> =
                    one.take(at, at + step, Overlap::Shared).iter().flat_map(elements).collect();
                let found: Vec<_> = match other.take_together(at, at + step, Overlap::Shared) {
                    Taken::Pieces(pieces) => pieces.iter().flat_map(elements).collect(),
                    Taken::Combs(combs) => combs.iter().flat_map(|c| {
                        (0..c.comb.runs).flat_map(move |n| {
                            let Run { offset, len } = c.comb.run(n);
                            let (request, element) = (c.request, c.element_of(n, SIZE));
                            elements(&Piece { offset, len, request, element })
                        })
                    }).collect(),
                };
                prop_assert_eq!(found, expected);
                at += step;
            }
        }

        #[test]
        fn a_radix_sort_sorts_and_keeps_equals_in_order(
            mut keys in proptest::collection::vec(0u64..1_000_000, 4096..6000)
        ) {
            let mut items: Vec<(u64, usize)> = keys.drain(..).enumerate().map(|(i, k)| (k, i)).collect();
            let mut expected = items.clone();
            expected.sort_by_key(|i| i.0);
            sort_by_offset(&mut items, |i| i.0);
            prop_assert_eq!(items, expected);
        }
    }

    #[test]
    fn repeated_runs_are_as_if_each_were_there() {
        let (mut flat, mut repeated) = (Extent::new(2), Extent::new(2));
        let runs: Vec<Single> = [(40, 4, 0), (10, 6, 2), (20, 2, 5)]
            .map(|(offset, len, element)| Single { offset, len, element })
            .into();
        let places: Vec<Shift> =
            (0..5).map(|i| Shift { offset: 100 * i, element: 6 * i }).collect();
        for place in &places {
            for run in &runs {
                let Single { offset, len, element } = *run;
                flat.push_run(Run { offset: offset + place.offset, len }, element + place.element);
            }
        }
        repeated.push_repeated(runs, places);
        flat.finish();
        repeated.finish();
        assert_eq!(flat.end(), repeated.end());
        let (one, other) = (Plan::new([&flat].into_iter()), Plan::new([&repeated].into_iter()));
        assert_eq!(one.summary, other.summary);
        for step in [7, 50, 1000] {
            let (mut one, mut other) = (one.sweep(), other.sweep());
            for at in (0..600).step_by(step) {
                let (from, to) = (at as u64, (at + step) as u64);
                assert_eq!(one.next_offset(from).is_some(), other.next_offset(from).is_some());
                let expected = one.take(from, to, Overlap::Shared).to_vec();
                assert_eq!(other.take(from, to, Overlap::Shared), expected);
            }
        }
    }

    #[test]
    fn neighbours_become_one_run() {
        let extent = extent(&[(10, 5), (15, 5), (30, 2)]);
        let mut runs = 0;
        extent.parts_not_shared(|_, _, one_run| runs += u32::from(one_run));
        assert_eq!(runs, 2);
        assert_eq!(extent.end(), 32);
        let plan = Plan::new([&extent].into_iter());
        assert_eq!(plan.summary, Summary { first: 10, end: 32, runs: 2, bytes: 12 });
        assert_eq!(plan.sieved(9), 12);
        assert_eq!(plan.sieved(10), 22);
    }
}
