//! What merging blocks leaves of them, within ranks and within nodes, for as many ranks as one likes.
//!
//! Blocks are dealt rank by rank and merged by [the code that a writer calls](fn@esker_policy::cluster::cluster); of
//! each rank only counts are kept.

use std::ops::Range;
use std::time::{Duration, Instant};

use esker_policy::boxes::{BoxError, Boxes};
use esker_policy::cluster::{ClusterError, Limits, cluster};
use esker_policy::dealt::{DealError, Dealt};

use crate::Progress;

/// Why merging could not be counted.
#[derive(Debug, thiserror::Error)]
pub enum MergeError {
    /// Blocks cannot be dealt like this.
    #[error(transparent)]
    Deal(#[from] DealError),
    /// A block is none.
    #[error(transparent)]
    Box(#[from] BoxError),
    /// Blocks cannot be merged.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    /// Ranks of a node.
    #[error("a node has one rank or more")]
    Node,
}

/// Ranks of nodes, with blocks.
#[derive(Debug, Clone)]
pub struct Merging {
    /// Who has which block.
    pub dealt: Dealt,
    /// Ranks of a node; neighbours.
    pub per_node: u64,
    /// How blocks may be merged.
    pub limits: Limits,
}

/// What merging makes of all groups of ranks together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Reduced {
    /// Groups: ranks, or nodes.
    pub groups: u64,
    /// Blocks of all.
    pub blocks: u64,
    /// Cuboids of all.
    pub cuboids: u64,
    /// Parts of blocks in them.
    pub parts: u64,
    /// Blocks of the group that has most.
    pub most_blocks: u64,
    /// Cuboids of the group that has most.
    pub most_cuboids: u64,
    /// Time of merging, of all groups together.
    pub time: Duration,
}

impl Reduced {
    /// Blocks of a group.
    pub fn mean_blocks(&self) -> f64 {
        self.blocks as f64 / self.groups.max(1) as f64
    }

    /// Cuboids of a group.
    pub fn mean_cuboids(&self) -> f64 {
        self.cuboids as f64 / self.groups.max(1) as f64
    }

    /// Seconds of a group.
    pub fn mean_seconds(&self) -> f64 {
        self.time.as_secs_f64() / self.groups.max(1) as f64
    }

    fn add(&mut self, other: Reduced) {
        self.groups += other.groups;
        self.blocks += other.blocks;
        self.cuboids += other.cuboids;
        self.parts += other.parts;
        self.most_blocks = self.most_blocks.max(other.most_blocks);
        self.most_cuboids = self.most_cuboids.max(other.most_cuboids);
        self.time += other.time;
    }
}

/// MergedBlocks within ranks and within nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MergedBlocks {
    /// Each rank its own.
    pub ranks: Reduced,
    /// Each node what its ranks have.
    pub nodes: Reduced,
}

/// Groups that are counted between two reports of progress.
const BATCH: u64 = 4096;

impl Merging {
    /// Merges the blocks of every rank, and of every node, on all processors.
    pub fn count(&self, progress: &mut dyn Progress) -> Result<MergedBlocks, MergeError> {
        if self.per_node == 0 {
            return Err(MergeError::Node);
        }
        let ranks = self.dealt.ranks();
        let nodes = ranks.div_ceil(self.per_node);
        let mut merged = MergedBlocks::default();
        for (groups, of_group, into, before) in
            [(ranks, 1, &mut merged.ranks, 0), (nodes, self.per_node, &mut merged.nodes, ranks)]
        {
            for first in (0..groups).step_by(BATCH as usize) {
                let batch = first..(first + BATCH).min(groups);
                let end = batch.end;
                into.add(self.batch(batch, of_group)?);
                progress.progress(before + end, ranks + nodes);
            }
        }
        Ok(merged)
    }

    fn batch(&self, groups: Range<u64>, of_group: u64) -> Result<Reduced, MergeError> {
        let threads =
            std::thread::available_parallelism().map_or(1, |threads| threads.get() as u64);
        let share = (groups.end - groups.start).div_ceil(threads).max(1) as usize;
        let shares = groups.clone().step_by(share);
        let shares = shares.map(|first| first..(first + share as u64).min(groups.end));
        std::thread::scope(|scope| {
            let running: Vec<_> =
                shares.map(|share| scope.spawn(move || self.groups(share, of_group))).collect();
            let mut all = Reduced::default();
            for thread in running {
                match thread.join() {
                    Ok(reduced) => all.add(reduced?),
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
            Ok(all)
        })
    }

    fn groups(&self, groups: Range<u64>, of_group: u64) -> Result<Reduced, MergeError> {
        let mut reduced = Reduced::default();
        let mut boxes = Boxes::new(self.dealt.block().len());
        for group in groups {
            boxes.clear();
            let first = group * of_group;
            self.dealt.boxes(first..(first + of_group).min(self.dealt.ranks()), &mut boxes)?;
            let begun = Instant::now();
            let merged = cluster(&boxes, &self.limits)?;
            let (blocks, cuboids) = (boxes.len() as u64, merged.len() as u64);
            reduced.add(Reduced {
                groups: 1,
                blocks,
                cuboids,
                parts: merged.parts() as u64,
                most_blocks: blocks,
                most_cuboids: cuboids,
                time: begun.elapsed(),
            });
        }
        Ok(reduced)
    }
}

/// A grid of blocks for so many ranks, some 8 to 16 for each: the paper's 16 x 32 x 32 blocks for 1,536 ranks, its
/// shortest dimension doubled or its longest one halved as often as it takes.
pub fn grid_for(ranks: u64) -> Vec<u64> {
    let mut grid = vec![16u64, 32, 32];
    let blocks = |grid: &[u64]| grid.iter().product::<u64>();
    while blocks(&grid).saturating_mul(2) <= ranks.saturating_mul(16) {
        if let Some(shortest) = grid.iter_mut().min() {
            *shortest *= 2;
        }
    }
    while blocks(&grid) > ranks.saturating_mul(16) {
        if let Some(longest) = grid.iter_mut().max().filter(|longest| **longest > 1) {
            *longest /= 2;
        }
    }
    grid
}
