//! Who moves what: direct, or through owners of windows. Pure functions of small numbers.

use crate::hints::{Automatic, Hints};
use crate::plan::Summary;

/// What all ranks together have, from one reduction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Together {
    /// The lowest byte of all.
    pub(crate) first: u64,
    /// The first byte after the highest.
    pub(crate) end: u64,
    /// The largest number of bytes that a rank has.
    pub(crate) most_bytes: u64,
    /// The shortest mean run of a rank that has any.
    pub(crate) mean_run: u64,
    /// The largest number of bytes that a rank would read by sieving, for each byte it wants.
    pub(crate) waste: u64,
    /// The most records that a rank needs.
    pub(crate) records: u64,
    /// The largest block that the file has for a rank.
    pub(crate) block: u64,
}

/// What one rank brings to the reduction.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Mine {
    pub(crate) summary: Summary,
    pub(crate) waste: u64,
    pub(crate) records: u64,
    pub(crate) block: u64,
}

/// What a rank has in a wait for variables that are stored in units with owners, or the largest that any rank
/// has of each number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct ForUnits {
    /// The records that it needs.
    pub(crate) records: u64,
    /// Units that it writes to.
    pub(crate) written: u64,
    /// Not 0 where nobody may write to them.
    pub(crate) refused: u64,
    /// Units that it reads from, how many of their bytes it wants, and how many it would get in vain: those beyond
    /// one and a half times what it wants.
    pub(crate) read: u64,
    pub(crate) wanted: u64,
    pub(crate) vain: u64,
}

/// Numbers in a reduction, for writing and for reading.
const FIELDS: usize = 7;

/// Those for units.
const OF_UNITS: usize = 6;

impl ForUnits {
    pub(crate) fn fields(self) -> [u64; OF_UNITS] {
        let ForUnits { records, written, refused, read, wanted, vain } = self;
        [records, written, refused, read, wanted, vain]
    }

    pub(crate) fn of([records, written, refused, read, wanted, vain]: [u64; OF_UNITS]) -> ForUnits {
        ForUnits { records, written, refused, read, wanted, vain }
    }
}

impl Mine {
    pub(crate) fn fields(&self) -> [u64; FIELDS] {
        let Summary { first, end, bytes, runs } = self.summary;
        let mean_run = if runs == 0 { u64::MAX } else { self.summary.mean_run() };
        [!first, end, bytes, !mean_run, self.waste, self.records, self.block]
    }
}

impl Together {
    /// What all ranks have together, of the largest of each of their [`Mine::fields`].
    pub(crate) fn of_all<const N: usize>(numbers: &[u64]) -> Option<[Together; N]> {
        let all = <[[u64; FIELDS]; N]>::try_from(numbers.as_chunks().0).ok()?;
        Some(all.map(Together::of))
    }

    fn of([first, end, most_bytes, mean_run, waste, records, block]: [u64; FIELDS]) -> Together {
        let (first, mean_run) = (!first, !mean_run);
        Together { first, end, most_bytes, mean_run, waste, records, block }
    }

    /// What one rank alone has.
    pub(crate) fn alone(summary: Summary, block: u64) -> Together {
        let Summary { first, end, bytes, .. } = summary;
        let mean_run = summary.mean_run();
        Together { first, end, most_bytes: bytes, mean_run, waste: 0, records: 0, block }
    }

    /// Whether nobody has anything.
    pub(crate) fn is_empty(&self) -> bool {
        self.end <= self.first
    }
}

/// How the file is cut into windows: round after round, one for each aggregator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Windows {
    first: u64,
    end: u64,
    /// Bytes of a window.
    window: u64,
    /// How many owners there are.
    pub(crate) aggregators: u64,
}

/// Memory for the list of pieces of one round, in bytes for each byte of a window: bounds
/// what runs of a few bytes can take.
const PIECES_FOR_WINDOW: u64 = 8;

/// Bytes of an entry in that list.
const PIECE: u64 = 32;

impl Windows {
    /// The windows for what all ranks have together.
    pub(crate) fn new(together: &Together, hints: &Hints, aggregators: u64) -> Windows {
        let unit = hints.striping_unit.unwrap_or(together.block);
        let longest = hints.window(together.block);
        let unit = unit.clamp(1, longest);
        let first = together.first - together.first % unit;
        let span = together.end - first;
        // Short runs make long lists: then a window is smaller.
        let for_pieces = longest / PIECE * PIECES_FOR_WINDOW * together.mean_run;
        let most = longest.min(for_pieces.max(unit)).max(1);
        // Whole stripes, unless a buffer does not hold one.
        let most = if most > unit { most - most % unit } else { most };
        // As many rounds as it takes, all of the same length.
        let rounds = span.div_ceil(most.saturating_mul(aggregators)).max(1);
        let window = span.div_ceil(rounds * aggregators).next_multiple_of(unit).min(most);
        Windows { first, end: together.end, window: window.max(1), aggregators }
    }

    /// Bytes of a window, but perhaps of the last.
    pub(crate) fn len(&self) -> u64 {
        self.window
    }

    /// How many rounds it takes.
    pub(crate) fn rounds(&self) -> u64 {
        (self.end - self.first).div_ceil(self.window * self.aggregators)
    }

    /// The round of a byte at or after the first; beyond all rounds for one after the last.
    pub(crate) fn round_of(&self, offset: u64) -> u64 {
        match offset < self.end {
            true => offset.saturating_sub(self.first) / (self.window * self.aggregators),
            false => self.rounds(),
        }
    }

    /// The window of an aggregator in a round; empty beyond the end.
    pub(crate) fn window(&self, round: u64, aggregator: u64) -> std::ops::Range<u64> {
        let number = round * self.aggregators + aggregator;
        let start = (self.first + number * self.window).min(self.end);
        start..(start + self.window).min(self.end)
    }
}

/// Runs of at least this many bytes (and of a block of the file), on average and on every rank,
/// are not exchanged: a system call for each costs less than the copy to an owner. Measured with
/// the strided kernel at 2 ranks: 16 KiB 1,344 direct and 1,637 MB/s exchanged, 64 KiB 2,659 and
/// 1,471.
const DIRECT_WRITE: u64 = 32 * 1024;

/// A rank that reads at most so many bytes for each byte it wants reads for itself.
const DIRECT_READ_WASTE: u64 = 4;

/// Bytes of the file for each byte written from which on short runs are lone ones, which an owner
/// would write for themselves as well; counted only where there is more than `CLOSE` between
/// the first and the last.
const LONE: u64 = 64;
const CLOSE: u64 = 128 << 20;

/// Whether a collective write exchanges.
pub(crate) fn exchanges_write(together: &Together, hints: &Hints, ranks: usize) -> bool {
    match hints.cb_write {
        Automatic::Enable => true,
        Automatic::Disable => false,
        // Also with one rank: short runs that lie close together become one write.
        Automatic::Automatic => {
            let enough = hints.direct_run.unwrap_or(DIRECT_WRITE.max(together.block));
            let span = together.end - together.first;
            let bytes = together.most_bytes.saturating_mul(ranks as u64);
            let is_lone = span > CLOSE && span / LONE > bytes;
            together.mean_run < enough && !is_lone
        }
    }
}

/// Whether a collective read exchanges.
pub(crate) fn exchanges_read(together: &Together, hints: &Hints, ranks: usize) -> bool {
    match hints.cb_read {
        Automatic::Enable => true,
        Automatic::Disable => false,
        Automatic::Automatic => ranks > 1 && is_wasteful(together.waste),
    }
}

/// Whether it is worth an exchange to read so many times what is wanted.
pub(crate) fn is_wasteful(times: u64) -> bool {
    times > DIRECT_READ_WASTE
}

/// Whether a read may be direct if that turns out to be no waste.
pub(crate) fn may_read_direct(hints: &Hints) -> bool {
    matches!(hints.cb_read, Automatic::Automatic)
}

/// The machine under the ranks, seen alike by all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Machine {
    pub(crate) nodes: u64,
    /// The most cores that a rank may use.
    pub(crate) cores: u64,
}

/// More owners on one node than this do not write faster, but cost messages.
const MOST_ON_A_NODE: u64 = 4;

/// How many ranks own windows.
pub(crate) fn aggregators(ranks: usize, machine: Machine, hints: &Hints) -> usize {
    let on_a_node = match hints.aggregators_per_node {
        0 => machine.cores.min(MOST_ON_A_NODE),
        n => n,
    };
    let wanted = hints.cb_nodes.unwrap_or(machine.nodes.saturating_mul(on_a_node));
    usize::try_from(wanted).unwrap_or(usize::MAX).clamp(1, ranks)
}

/// The rank that aggregator number `number` of `count` is: evenly spread over all ranks, which
/// is evenly over the nodes, since ranks of a node are usually neighbours.
pub(crate) fn aggregator_rank(number: usize, count: usize, ranks: usize) -> usize {
    number * ranks / count
}

/// The number of the aggregator that `rank` is, if it is one.
pub(crate) fn aggregator_number(rank: usize, count: usize, ranks: usize) -> Option<usize> {
    let number = (rank * count).div_ceil(ranks);
    (number < count && aggregator_rank(number, count, ranks) == rank).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn windows_cover_the_range_once(
            first in 0u64..10_000, len in 1u64..1_000_000, aggregators in 1u64..9,
            buffer in 1u64..100_000, unit in 1u64..50_000, mean_run in 1u64..10_000,
        ) {
            let together = Together {
                first, end: first + len, most_bytes: len, mean_run, waste: 1, records: 0,
                block: 4096,
            };
            let mut hints = Hints::default();
            (hints.cb_buffer_size, hints.striping_unit) = (Some(buffer), Some(unit));
            let windows = Windows::new(&together, &hints, aggregators);
            let mut at = None;
            for round in 0..windows.rounds() {
                for aggregator in 0..aggregators {
                    let window = windows.window(round, aggregator);
                    prop_assert!(window.end - window.start <= buffer);
                    if let Some(at) = at {
                        prop_assert_eq!(window.start, at);
                    } else {
                        prop_assert!(window.start <= first);
                    }
                    at = Some(window.end);
                }
            }
            prop_assert_eq!(at, Some(first + len));
        }

        #[test]
        fn every_aggregator_is_a_rank_of_its_own(ranks in 1usize..200, count in 1usize..200) {
            let count = count.min(ranks);
            let mut found = Vec::new();
            for rank in 0..ranks {
                if let Some(number) = aggregator_number(rank, count, ranks) {
                    prop_assert_eq!(aggregator_rank(number, count, ranks), rank);
                    found.push(number);
                }
            }
            prop_assert_eq!(found, (0..count).collect::<Vec<_>>());
        }
    }
}
