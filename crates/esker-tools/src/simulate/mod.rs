//! Owners of chunks, messages of an [`Exchange`], merged [`Definitions`], what a [`commit`](fn@commit) takes, what is left of blocks by [`Merging`], what
//! a [`StagedRun`] costs, and [`Blocks`] of patches and [`Cuts`] into files, for as many ranks as one likes, in one process.
//!
//! Owner policies are pure functions of who has how much of a chunk ([`esker::owners`]), so their
//! balance and their cost can be seen without ranks and without files. A [`Workload`] tells chunk after
//! chunk who has how much of it, without keeping a list; [`simulate`] lets a [`Rule`] choose the owners.
//!
//! ```
//! use esker_tools::simulate::{Homes, Pattern, Rule, Setting, Workload, simulate};
//! use esker_tools::Unseen;
//!
//! let workload = Workload::new(Pattern::OneWriter, &Setting { ranks: 64, ..Setting::default() });
//! let hdf5 = simulate(&workload, Rule::LargestWriter, Homes::Auto, &mut Unseen);
//! let ours = simulate(&workload, Rule::Preference(1.0), Homes::Auto, &mut Unseen);
//! assert_eq!(hdf5.bytes_over_mean(), 64.0);
//! assert!(ours.bytes_over_mean() <= 2.125);
//! ```

mod commit;
mod definitions;
mod exchange;
mod files;
mod map;
mod merge;
mod patches;
mod pattern;
mod stage;

use std::ops::Range;
use std::time::{Duration, Instant};

use esker::owners::{Assigner, LargestWriter, first_of_home};

pub use commit::{Cost, Stage, commit};
pub use definitions::{Definitions, Merged, Road, Sharing};
pub use exchange::{Counted, Exchange, Sent, Share};
pub use files::{CutBy, Cuts, Sizes};
pub use map::{MapError, Maps};
pub use merge::{MergeError, MergedBlocks, Merging, Reduced, grid_for};
pub use patches::{Blocks, Deal, Dealt};
pub use pattern::{Pattern, Setting, Visit, Workload};
pub use stage::{MOST_UNITS, Speeds, StageError, StagedRun, Traffic};

use crate::Progress;

/// So many ranks can be simulated: a table of each rank's load is kept.
pub const MOST_RANKS: u32 = 1 << 20;

/// Accesses that one home has.
const ACCESSES_OF_HOME: u64 = 4 << 20;

/// How owners are chosen.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Rule {
    /// Esker's: access minus this weight times the workload.
    Preference(f64),
    /// HDF5's: the largest writer.
    LargestWriter,
}

/// How many ranks choose, each for a part of the chunks and without knowing of the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Homes {
    /// As in a real write: one for 65,536 accesses.
    Auto,
    /// So many.
    Number(u64),
}

impl Homes {
    /// How many there are for this workload: at least one, at most the ranks.
    pub fn of(self, workload: &Workload) -> u64 {
        let homes = match self {
            Homes::Auto => workload.accesses.div_ceil(ACCESSES_OF_HOME),
            Homes::Number(homes) => homes,
        };
        homes.clamp(1, u64::from(workload.ranks))
    }
}

/// What came of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Outcome {
    /// Ranks that shared the chunks.
    pub ranks: u32,
    /// Homes that chose.
    pub homes: u64,
    /// Chunks in all.
    pub chunks: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Bytes that ranks had.
    pub accessed: u64,
    /// Chunks of the rank that owns most.
    pub most_chunks: u64,
    /// Bytes of the rank that owns most.
    pub most_bytes: u64,
    /// Bytes that were not with the owner of their chunk.
    pub moved: u64,
    /// Ranks that own a chunk.
    pub owners: u32,
    /// Time that the choice took, of all homes together.
    pub time: Duration,
}

impl Outcome {
    /// The most chunks that a rank owns over the mean.
    pub fn chunks_over_mean(&self) -> f64 {
        over_mean(self.most_chunks, self.chunks, self.ranks)
    }

    /// The most bytes that a rank owns over the mean: how much longer encoding takes than if it
    /// were shared evenly.
    pub fn bytes_over_mean(&self) -> f64 {
        over_mean(self.most_bytes, self.bytes, self.ranks)
    }

    /// The share of the bytes that moved.
    pub fn moved_share(&self) -> f64 {
        if self.accessed == 0 { 0.0 } else { self.moved as f64 / self.accessed as f64 }
    }
}

fn over_mean(most: u64, all: u64, ranks: u32) -> f64 {
    if all == 0 { 0.0 } else { most as f64 * f64::from(ranks) / all as f64 }
}

/// Chooses the owner of every chunk. The observer is told chunks.
pub fn simulate(
    workload: &Workload,
    rule: Rule,
    homes: Homes,
    progress: &mut impl Progress,
) -> Outcome {
    let homes = if rule == Rule::LargestWriter { 1 } else { homes.of(workload) };
    let mut chooser = Chooser::new(workload, rule, homes);
    let mut tally = Tally::new(workload.ranks);
    let mut batch = Batch::default();
    let mut time = Duration::ZERO;
    workload.visit(&mut |bytes, accesses| {
        batch.push(bytes, accesses);
        if batch.is_full() {
            time += chooser.choose(&mut batch);
            tally.add(&batch);
            batch.clear();
            progress.progress(tally.chunks, workload.chunks);
        }
    });
    time += chooser.choose(&mut batch);
    tally.add(&batch);
    progress.progress(tally.chunks, workload.chunks);
    Outcome {
        ranks: workload.ranks,
        homes,
        chunks: workload.chunks,
        bytes: workload.bytes,
        accessed: workload.accessed,
        most_chunks: tally.of_rank.iter().map(|(chunks, _)| *chunks).max().unwrap_or(0),
        most_bytes: tally.of_rank.iter().map(|(_, bytes)| *bytes).max().unwrap_or(0),
        moved: workload.accessed - tally.stayed,
        owners: tally.of_rank.iter().filter(|(chunks, _)| *chunks > 0).count() as u32,
        time,
    }
}

/// Chunks whose owners are chosen in one go, so that looking at the clock does not cost more than
/// choosing.
#[derive(Default)]
struct Batch {
    /// Bytes, and where its accesses are.
    chunks: Vec<(u64, Range<usize>)>,
    accesses: Vec<(u32, u64)>,
    owners: Vec<u32>,
}

impl Batch {
    fn push(&mut self, bytes: u64, accesses: &[(u32, u64)]) {
        let begin = self.accesses.len();
        self.accesses.extend_from_slice(accesses);
        self.chunks.push((bytes, begin..self.accesses.len()));
    }

    fn is_full(&self) -> bool {
        self.accesses.len() >= 1 << 20
    }

    fn clear(&mut self) {
        self.chunks.clear();
        self.accesses.clear();
        self.owners.clear();
    }

    fn iter(&self) -> impl Iterator<Item = (u64, &[(u32, u64)])> {
        self.chunks.iter().map(|(bytes, place)| (*bytes, &self.accesses[place.clone()]))
    }
}

enum Chooser {
    /// One for each home, and where the next chunk begins if all lie one behind the other.
    Preference(Vec<Assigner>, u64),
    LargestWriter(LargestWriter),
}

impl Chooser {
    fn new(workload: &Workload, rule: Rule, homes: u64) -> Chooser {
        let ranks = workload.ranks as usize;
        match rule {
            Rule::LargestWriter => Chooser::LargestWriter(LargestWriter::new(ranks)),
            Rule::Preference(weight) => {
                let home = |home| {
                    let assigner = Assigner::new(ranks, workload.bytes, weight).scaled(homes);
                    assigner.starting_at(first_of_home(home, homes, ranks))
                };
                Chooser::Preference((0..homes).map(home).collect(), 0)
            }
        }
    }

    fn choose(&mut self, batch: &mut Batch) -> Duration {
        let mut owners = std::mem::take(&mut batch.owners);
        let time = match self {
            Chooser::LargestWriter(rule) => {
                let begun = Instant::now();
                owners.extend(batch.iter().map(|(_, accesses)| rule.owner(accesses)));
                begun.elapsed()
            }
            Chooser::Preference(homes, address) => {
                let mut order: Vec<(usize, usize)> = Vec::with_capacity(batch.chunks.len());
                for (number, (bytes, _)) in batch.chunks.iter().enumerate() {
                    order.push((home_of(*address, homes.len()), number));
                    *address += bytes;
                }
                // Home by home, as each has its table in the cache of a processor of its own.
                order.sort_unstable();
                owners.resize(order.len(), 0);
                let begun = Instant::now();
                for (home, number) in order {
                    let (bytes, place) = &batch.chunks[number];
                    owners[number] = homes[home].owner(*bytes, &batch.accesses[place.clone()]);
                }
                begun.elapsed()
            }
        };
        batch.owners = owners;
        time
    }
}

/// The home of the chunk at this address: mixed, as in a real write, so that the chunks of a rank
/// do not all have the same one.
fn home_of(address: u64, homes: usize) -> usize {
    let mixed = address.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    (mixed % homes as u64) as usize
}

struct Tally {
    chunks: u64,
    /// Chunks and bytes.
    of_rank: Vec<(u64, u64)>,
    stayed: u64,
}

impl Tally {
    fn new(ranks: u32) -> Tally {
        Tally { chunks: 0, of_rank: vec![(0, 0); ranks as usize], stayed: 0 }
    }

    fn add(&mut self, batch: &Batch) {
        for ((bytes, accesses), owner) in batch.iter().zip(&batch.owners) {
            let (chunks, owned) = &mut self.of_rank[*owner as usize];
            (*chunks, *owned) = (*chunks + 1, *owned + bytes);
            self.chunks += 1;
            if let Ok(place) = accesses.binary_search_by_key(owner, |(rank, _)| *rank) {
                self.stayed += accesses[place].1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Unseen;

    fn outcome(pattern: Pattern, ranks: u32, rule: Rule, homes: u64) -> Outcome {
        let workload = Workload::new(pattern, &Setting { ranks, ..Setting::default() });
        simulate(&workload, rule, Homes::Number(homes), &mut Unseen)
    }

    #[test]
    fn aligned_blocks_stay_where_they_are() {
        for rule in [Rule::LargestWriter, Rule::Preference(1.0), Rule::Preference(0.25)] {
            let outcome = outcome(Pattern::Blocks, 100, rule, 1);
            assert_eq!((outcome.moved, outcome.bytes_over_mean()), (0, 1.0));
        }
        // A weight above 1 takes from a rank what it could keep.
        assert!(outcome(Pattern::Blocks, 100, Rule::Preference(2.0), 1).moved_share() > 0.2);
    }

    #[test]
    fn of_a_checkerboard_three_quarters_move_and_nobody_has_more_than_others() {
        for rule in [Rule::LargestWriter, Rule::Preference(1.0)] {
            let outcome = outcome(Pattern::Checkerboard, 64, rule, 1);
            assert_eq!((outcome.moved_share(), outcome.chunks_over_mean()), (0.75, 1.0));
        }
    }

    #[test]
    fn one_writer_has_1_and_1_over_weight_shares() {
        for (weight, shares) in [(0.5, 3.0), (1.0, 2.0), (2.0, 1.5)] {
            let outcome = outcome(Pattern::OneWriter, 256, Rule::Preference(weight), 1);
            let over = outcome.bytes_over_mean();
            assert!((over - shares).abs() <= 0.125, "weight {weight}: {over}");
        }
        assert_eq!(outcome(Pattern::OneWriter, 256, Rule::LargestWriter, 1).owners, 1);
    }

    #[test]
    fn homes_that_do_not_know_of_each_other_share_one_writers_chunks_too() {
        let outcome = outcome(Pattern::OneWriter, 256, Rule::Preference(1.0), 16);
        assert_eq!(outcome.homes, 16);
        assert!(outcome.bytes_over_mean() <= 4.0, "{}", outcome.bytes_over_mean());
    }

    #[test]
    fn every_pattern_is_the_same_twice_and_counts_every_byte_once() {
        for pattern in Pattern::ALL {
            for ranks in [1, 2, 7, 100] {
                let setting = Setting { ranks, chunk: 1000, per_rank: 3, seed: 5 };
                let workload = Workload::new(pattern, &setting);
                let (mut bytes, mut accessed) = (0, 0);
                workload.visit(&mut |unit, accesses| {
                    assert!(!accesses.is_empty(), "{pattern:?}");
                    assert!(accesses.is_sorted_by(|a, b| a.0 < b.0), "{pattern:?}");
                    assert!(accesses.iter().all(|(rank, bytes)| *rank < ranks && *bytes > 0));
                    let of_unit: u64 = accesses.iter().map(|(_, bytes)| bytes).sum();
                    assert!(of_unit <= unit, "{pattern:?}");
                    (bytes, accessed) = (bytes + unit, accessed + of_unit);
                });
                assert_eq!((bytes, accessed), (workload.bytes, workload.accessed), "{pattern:?}");
                for rule in [Rule::LargestWriter, Rule::Preference(1.0)] {
                    let again = || {
                        let o = simulate(&workload, rule, Homes::Number(3), &mut Unseen);
                        (o.moved, o.most_bytes, o.most_chunks, o.owners)
                    };
                    assert_eq!(again(), again(), "{pattern:?}");
                }
            }
        }
    }
}
