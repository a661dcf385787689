//! The runs of a footprint by place, so that what falls into a range is found by a logarithm.

use esker_format::log::{ElementRun, Footprint};
use esker_format::runs::Pattern;

use super::cut::shape_of;
use crate::intervals::gallop;

/// A footprint that can be asked.
#[derive(Debug)]
pub(crate) enum SortedRuns {
    /// A hyperslab: its runs are computed.
    Block(Pattern),
    /// A list: its runs lie sorted by where they begin.
    List(Vec<PlacedRun<u64>>),
    /// The same in half the memory, of which a walk through a list reads much.
    Short(Vec<PlacedRun<u32>>),
}

/// A run of elements of the array and the payload's first element that belongs there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PlacedRun<N> {
    /// The first element, relative to the footprint's lowest.
    start: N,
    /// How many.
    len: N,
    /// The number of the first in the payload.
    element: N,
    /// The end of the longest reaching run so far, which is its own end where runs do not
    /// overlap.
    reach: N,
}

/// The runs by place, in numbers that `narrow` makes.
fn placed<N: Copy + Into<u64>>(
    runs: &[ElementRun],
    narrow: impl Fn(u64) -> N,
) -> Vec<PlacedRun<N>> {
    let mut element = 0;
    let place = |run: &ElementRun| {
        let [start, len, reach] = [run.start, run.len, run.start + run.len].map(&narrow);
        let placed = PlacedRun { start, len, element: narrow(element), reach };
        element += run.len;
        placed
    };
    let mut list: Vec<PlacedRun<N>> = runs.iter().map(place).collect();
    if !list.is_sorted_by_key(|run| run.start.into()) {
        list.sort_by_key(|run| run.start.into());
    }
    let mut reach = 0;
    for run in &mut list {
        reach = reach.max(run.reach.into());
        run.reach = narrow(reach);
    }
    list
}

impl SortedRuns {
    pub(crate) fn new(footprint: &Footprint) -> SortedRuns {
        match footprint {
            Footprint::Block { run, levels } => {
                SortedRuns::Block(Pattern::of_levels(0, *run, levels.clone()))
            }
            Footprint::Runs(runs) => {
                let highest = runs.iter().map(|run| run.start + run.len).max().unwrap_or(0);
                let elements: u64 = runs.iter().map(|run| run.len).sum();
                match highest.max(elements) <= u32::MAX.into() {
                    true => SortedRuns::Short(placed(runs, |n| n as u32)),
                    false => SortedRuns::List(placed(runs, |n| n)),
                }
            }
        }
    }

    /// The shape of a payload with so many records of it, of `elements` elements each.
    pub(crate) fn payload_shape(&self, records: u64, elements: u64) -> Vec<usize> {
        let inner = match self {
            SortedRuns::Block(pattern) => {
                let counts = pattern.levels().iter().map(|(count, _)| *count);
                counts.chain([pattern.run_len()]).collect()
            }
            SortedRuns::List(_) | SortedRuns::Short(_) => vec![elements],
        };
        shape_of(records, inner)
    }

    /// Whether it is all elements of its span.
    pub(crate) fn is_one_run(&self) -> bool {
        match self {
            SortedRuns::Block(pattern) => pattern.levels().is_empty(),
            SortedRuns::List(list) => list.len() == 1,
            SortedRuns::Short(list) => list.len() == 1,
        }
    }

    /// How many runs there are.
    pub(crate) fn count(&self) -> u64 {
        match self {
            SortedRuns::Block(pattern) => pattern.run_count(),
            SortedRuns::List(list) => list.len() as u64,
            SortedRuns::Short(list) => list.len() as u64,
        }
    }

    /// Bytes that it takes.
    pub(crate) fn memory(&self) -> usize {
        match self {
            SortedRuns::Block(_) => 256,
            SortedRuns::List(list) => list.capacity() * size_of::<PlacedRun<u64>>(),
            SortedRuns::Short(list) => list.capacity() * size_of::<PlacedRun<u32>>(),
        }
    }

    /// Calls `each` with every run, or part of one, within `from..to`, by place: its first
    /// element, its length, and the payload's element. Questions that come in ascending order
    /// share a cursor, which begins as 0, so that each goes on where the last one ended.
    pub(crate) fn within(
        &self,
        cursor: &mut usize,
        from: u64,
        to: u64,
        mut each: impl FnMut(u64, u64, u64),
    ) {
        match self {
            SortedRuns::Block(pattern) => {
                let per_run = pattern.run_len();
                let runs = pattern.runs_after(from).take_while(|(_, run)| run.offset < to);
                for (number, run) in runs {
                    clip((run.offset, run.len, number * per_run), from, to, &mut each);
                }
            }
            SortedRuns::List(list) => within_list(list, cursor, from, to, each),
            SortedRuns::Short(list) => within_list(list, cursor, from, to, each),
        }
    }
}

fn within_list<N: Copy + Into<u64>>(
    list: &[PlacedRun<N>],
    cursor: &mut usize,
    from: u64,
    to: u64,
    mut each: impl FnMut(u64, u64, u64),
) {
    *cursor = gallop(list, *cursor, |run| run.reach.into() <= from);
    for run in &list[*cursor..] {
        let (start, len) = (run.start.into(), run.len.into());
        if start >= to {
            break;
        }
        clip((start, len, run.element.into()), from, to, &mut each);
    }
}

/// Calls `each` with what is in `from..to` of a run (its first element, its length, the payload's
/// element).
#[inline(always)]
fn clip(
    (start, len, element): (u64, u64, u64),
    from: u64,
    to: u64,
    each: &mut impl FnMut(u64, u64, u64),
) {
    let (begin, end) = (start.max(from), (start + len).min(to));
    if begin < end {
        each(begin, end - begin, element + (begin - start));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn footprint() -> impl Strategy<Value = Footprint> {
        let block = (1u64..4, 1u64..4, 0u64..5, 1u64..4, 0u64..9).prop_map(
            |(run, inner, gap, outer, gap2)| {
                let step = run + gap;
                let levels = vec![(outer, inner * step + gap2), (inner, step)];
                Footprint::Block { run, levels }
            },
        );
        let runs = prop::collection::vec((0u64..60, 1u64..6), 1..12).prop_map(|list| {
            let run = |(start, len)| ElementRun { start, len };
            Footprint::Runs(list.into_iter().map(run).collect())
        });
        prop_oneof![block, runs]
    }

    /// The elements in the order of the payload.
    fn elements(footprint: &Footprint) -> Vec<u64> {
        match footprint {
            Footprint::Runs(runs) => runs.iter().flat_map(|r| r.start..r.start + r.len).collect(),
            Footprint::Block { run, levels } => {
                let mut starts = vec![0];
                for (count, step) in levels {
                    starts = starts
                        .iter()
                        .flat_map(|s| (0..*count).map(move |i| s + i * step))
                        .collect();
                }
                starts.into_iter().flat_map(|s| s..s + run).collect()
            }
        }
    }

    proptest! {
        #[test]
        fn a_range_gives_exactly_the_elements_in_it(
            footprint in footprint(),
            from in 0u64..70,
            len in 0u64..70,
        ) {
            let sorted = SortedRuns::new(&footprint);
            let mut found: Vec<(u64, u64)> = Vec::new();
            sorted.within(&mut 0, from, from + len, |start, n, element| {
                found.extend((0..n).map(|i| (start + i, element + i)));
            });
            found.sort();
            let all = elements(&footprint);
            let mut expected: Vec<(u64, u64)> = all
                .into_iter()
                .zip(0..)
                .filter(|(place, _)| (from..from + len).contains(place))
                .collect();
            expected.sort();
            prop_assert_eq!(found, expected);
        }

        #[test]
        fn questions_in_order_share_a_cursor(
            footprint in footprint(),
            steps in prop::collection::vec((0u64..9, 0u64..9), 1..10),
        ) {
            let sorted = SortedRuns::new(&footprint);
            let (mut cursor, mut at) = (0, 0);
            for (gap, len) in steps {
                let (from, to) = (at + gap, at + gap + len);
                at = to;
                let mut with = Vec::new();
                sorted.within(&mut cursor, from, to, |s, n, e| with.push((s, n, e)));
                let mut without = Vec::new();
                sorted.within(&mut 0, from, to, |s, n, e| without.push((s, n, e)));
                prop_assert_eq!(with, without);
            }
        }
    }
}
