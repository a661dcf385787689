//! Staging the blocks of many ranks to a few nodes that lay them out anew: who talks to whom, and what it costs.
//!
//! Which server gets which piece is counted block by block. From the bytes of the busiest server and the speeds given,
//! the times of the [model](esker_policy::staging) follow.

use esker_policy::dealt::{DealError, Dealt};
use esker_policy::staging::Staging;

use crate::Progress;

/// Why staging could not be counted.
#[derive(Debug, thiserror::Error)]
pub enum StageError {
    /// Blocks cannot be dealt like this.
    #[error(transparent)]
    Deal(#[from] DealError),
    /// The target layout is none of the array.
    #[error(
        "the target layout has {found} dimensions, the array {expected}, and no length may be 0"
    )]
    Dimensions {
        /// Of the array.
        expected: usize,
        /// Of the target.
        found: usize,
    },
    /// More blocks of the target layout than are counted.
    #[error("the target layout has {units} blocks, more than {most}")]
    Units {
        /// How many.
        units: u128,
        /// At most.
        most: u64,
    },
    /// Servers and ranks of a node.
    #[error("there is a server or more, and a rank or more on each node")]
    Zero,
}

/// The target layout may have so many blocks.
pub const MOST_UNITS: u64 = 1 << 24;

/// Bytes in a second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Speeds {
    /// Into a server.
    pub network: f64,
    /// From a server to disk.
    pub server_write: f64,
    /// From disk to a server.
    pub server_read: f64,
    /// From a node that computes to disk.
    pub node_write: f64,
    /// Of the file system, from and to all together.
    pub file_system: f64,
}

impl Speeds {
    /// What the paper measured on Summit: 256 GiB from 256 nodes to 2, in the seconds of its Table 2; at most 2.5 TB/s of all.
    pub fn of_the_paper() -> Speeds {
        let output = (256u64 << 30) as f64;
        let paper = Staging::of_the_paper(0.0, 0.0);
        let of_server = output / paper.servers;
        Speeds {
            network: of_server / paper.stage,
            server_write: of_server / paper.write,
            server_read: of_server / paper.read,
            node_write: output / paper.nodes / paper.write_direct,
            file_system: 2.5e12,
        }
    }
}

/// A run that stages its output.
#[derive(Debug, Clone)]
pub struct StagedRun {
    /// Who has which block.
    pub dealt: Dealt,
    /// Bytes of an element.
    pub element: u64,
    /// Ranks of a node.
    pub per_node: u64,
    /// Nodes that receive and write.
    pub servers: u64,
    /// Blocks of the target layout along each dimension.
    pub grid: Vec<u64>,
}

/// What goes to the servers, in one output.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Traffic {
    /// Blocks of the target layout.
    pub units: u64,
    /// Pieces: what a block has of a unit.
    pub pieces: u64,
    /// Pairs of rank and server that talk.
    pub pairs: u64,
    /// Servers of the rank that has most.
    pub most_servers: u64,
    /// Ranks of the server that has most.
    pub most_ranks: u64,
    /// Bytes of an output.
    pub bytes: f64,
    /// Bytes of the server that gets most.
    pub most_bytes: f64,
}

impl StagedRun {
    /// Counts, rank after rank.
    pub fn count(&self, progress: &mut dyn Progress) -> Result<Traffic, StageError> {
        let array = self.dealt.array();
        let (expected, found) = (array.len(), self.grid.len());
        if expected != found || self.grid.contains(&0) {
            return Err(StageError::Dimensions { expected, found });
        }
        if self.servers == 0 || self.per_node == 0 {
            return Err(StageError::Zero);
        }
        // Units are as long as each other, but for those at upper edges.
        let sides: Vec<u64> =
            array.iter().zip(&self.grid).map(|(all, parts)| all.div_ceil(*parts)).collect();
        let grid: Vec<u64> =
            array.iter().zip(&sides).map(|(all, side)| all.div_ceil(*side)).collect();
        let all = grid.iter().map(|parts| u128::from(*parts)).try_fold(1u128, u128::checked_mul);
        let units = all.unwrap_or(u128::MAX);
        if units > MOST_UNITS.into() {
            return Err(StageError::Units { units, most: MOST_UNITS });
        }
        let mut traffic = Traffic { units: units as u64, ..Traffic::default() };
        let servers = self.servers.min(traffic.units) as usize;
        let mut bytes_of = vec![0.0; servers];
        let mut ranks_of = vec![0u64; servers];
        let mut met: Vec<usize> = Vec::new();
        for rank in 0..self.dealt.ranks() {
            met.clear();
            for place in self.dealt.of_rank(rank) {
                pieces(&place, self.dealt.block(), &sides, &grid, &mut |unit, elements| {
                    let server = (u128::from(unit) * servers as u128 / units) as usize;
                    bytes_of[server] += elements * self.element as f64;
                    traffic.pieces += 1;
                    if met.last() != Some(&server) {
                        met.push(server);
                    }
                });
            }
            met.sort_unstable();
            met.dedup();
            met.iter().for_each(|server| ranks_of[*server] += 1);
            traffic.pairs += met.len() as u64;
            traffic.most_servers = traffic.most_servers.max(met.len() as u64);
            if rank % 1024 == 0 {
                progress.progress(rank, self.dealt.ranks());
            }
        }
        traffic.most_ranks = ranks_of.into_iter().max().unwrap_or(0);
        traffic.bytes = bytes_of.iter().sum();
        traffic.most_bytes = bytes_of.into_iter().fold(0.0, f64::max);
        Ok(traffic)
    }

    /// The model of this run: what the busiest server and all nodes take at these speeds.
    pub fn model(&self, traffic: &Traffic, speeds: &Speeds, compute: f64, outputs: f64) -> Staging {
        let nodes = self.dealt.ranks().div_ceil(self.per_node.max(1)) as f64;
        let shared = traffic.bytes / speeds.file_system;
        Staging {
            nodes,
            servers: self.servers as f64,
            outputs,
            compute,
            write_direct: (traffic.bytes / nodes / speeds.node_write).max(shared),
            read: (traffic.most_bytes / speeds.server_read).max(shared),
            stage: traffic.most_bytes / speeds.network,
            write: (traffic.most_bytes / speeds.server_write).max(shared),
        }
    }
}

/// What a block has of each unit: the unit's number and the elements.
fn pieces(
    place: &[u64],
    block: &[u64],
    sides: &[u64],
    grid: &[u64],
    then: &mut dyn FnMut(u64, f64),
) {
    fn along(
        dims: &[(u64, u64, u64, u64)],
        unit: u64,
        elements: f64,
        then: &mut dyn FnMut(u64, f64),
    ) {
        let Some(((start, end, side, grid), behind)) = dims.split_first() else {
            return then(unit, elements);
        };
        for at in start / side..=(end - 1) / side {
            let part = (at * side).saturating_add(*side).min(*end) - (at * side).max(*start);
            along(behind, unit * grid + at, elements * part as f64, then);
        }
    }
    let ranges = place.iter().zip(block).map(|(at, length)| (at * length, at * length + length));
    let dims = ranges
        .zip(sides.iter().zip(grid))
        .map(|((start, end), (side, grid))| (start, end, *side, *grid));
    along(&dims.collect::<Vec<_>>(), 0, 1.0, then);
}
