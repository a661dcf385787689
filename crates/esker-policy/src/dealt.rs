//! Which rank has which block of an array, where a program deals equal blocks to its ranks.
//!
//! AMReX and codes like it put their blocks on a Morton curve and give each rank a stretch of it, or let a knapsack deal them
//! by weight. The first keeps neighbours together, the second does not: that is what merging lives on. Nothing is stored, a block's
//! place is computed when it is asked for, so that a million ranks need no memory.

use std::fmt;
use std::ops::Range;

use crate::boxes::{BoxError, Boxes};

/// How blocks are dealt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dealing {
    /// Stretches of the Morton curve.
    Morton,
    /// Stretches of the blocks in rows.
    Rows,
    /// As a knapsack deals them, whose weights have nothing to do with places: in an order like random, to all ranks in turn.
    Knapsack,
}

impl Dealing {
    /// All of them.
    pub const ALL: [Dealing; 3] = [Dealing::Morton, Dealing::Rows, Dealing::Knapsack];

    /// The one with this name.
    pub fn from_name(name: &str) -> Option<Dealing> {
        Dealing::ALL.into_iter().find(|dealing| dealing.name() == name)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Dealing::Morton => "morton",
            Dealing::Rows => "rows",
            Dealing::Knapsack => "knapsack",
        }
    }
}

/// Why nothing can be dealt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DealError {
    /// Not as many lengths of a block as of the grid, or none.
    Dimensions,
    /// Something is zero.
    Zero,
    /// More blocks, or longer dimensions, than 64 bits can number.
    Size,
    /// More ranks than blocks.
    Ranks {
        /// How many blocks there are.
        blocks: u64,
    },
}

impl fmt::Display for DealError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DealError::Dimensions => {
                f.write_str("a block has as many lengths as the grid, at least one")
            }
            DealError::Zero => f.write_str("grid, block and ranks are above 0"),
            DealError::Size => {
                f.write_str("these are more blocks or elements than 64 bits can number")
            }
            DealError::Ranks { blocks } => {
                write!(f, "{blocks} blocks are too few: each rank has one or more")
            }
        }
    }
}

impl std::error::Error for DealError {}

/// A grid of equal blocks, dealt to ranks.
#[derive(Debug, Clone, PartialEq)]
pub struct Dealt {
    grid: Vec<u64>,
    block: Vec<u64>,
    blocks: u64,
    ranks: u64,
    dealing: Dealing,
    uneven: f64,
    seed: u64,
}

impl Dealt {
    /// A grid of so many blocks in each dimension, each with so many elements, to so many ranks.
    pub fn new(
        grid: &[u64],
        block: &[u64],
        ranks: u64,
        dealing: Dealing,
    ) -> Result<Dealt, DealError> {
        if grid.len() != block.len() || grid.is_empty() {
            return Err(DealError::Dimensions);
        }
        if grid.iter().chain(block).any(|length| *length == 0) || ranks == 0 {
            return Err(DealError::Zero);
        }
        let blocks = grid.iter().try_fold(1u64, |all, length| all.checked_mul(*length));
        let lengths =
            grid.iter().zip(block).all(|(grid, block)| grid.checked_mul(*block).is_some());
        let blocks = blocks.filter(|blocks| lengths && *blocks < 1 << 62).ok_or(DealError::Size)?;
        if ranks > blocks {
            return Err(DealError::Ranks { blocks });
        }
        let (grid, block) = (grid.to_vec(), block.to_vec());
        Ok(Dealt { grid, block, blocks, ranks, dealing, uneven: 0.0, seed: 0 })
    }

    /// Stretches that are longer or shorter than the mean, by this share of it at most at each end (0 to 1): ranks balance
    /// work, not blocks. Knapsacks stay as they are.
    pub fn uneven(mut self, share: f64, seed: u64) -> Dealt {
        self.uneven = share.clamp(0.0, 1.0);
        self.seed = seed;
        self
    }

    /// How many blocks there are.
    pub fn blocks(&self) -> u64 {
        self.blocks
    }

    /// How many ranks there are.
    pub fn ranks(&self) -> u64 {
        self.ranks
    }

    /// Lengths of a block.
    pub fn block(&self) -> &[u64] {
        &self.block
    }

    /// Lengths of the array.
    pub fn array(&self) -> Vec<u64> {
        self.grid.iter().zip(&self.block).map(|(grid, block)| grid * block).collect()
    }

    /// Where in the grid the blocks of a rank are, in the order in which it has them.
    pub fn of_rank(&self, rank: u64) -> impl Iterator<Item = Vec<u64>> + '_ {
        let (turns, stretch) = match self.dealing {
            Dealing::Knapsack => (self.blocks.saturating_sub(rank).div_ceil(self.ranks), 0),
            _ if rank >= self.ranks => (0, 0),
            _ => {
                let (begin, end) = (self.boundary(rank), self.boundary(rank + 1));
                (end - begin, begin)
            }
        };
        let turns = if rank < self.ranks { turns } else { 0 };
        (0..turns).map(move |turn| match self.dealing {
            Dealing::Morton => self.on_curve(stretch + turn),
            Dealing::Rows => self.in_rows(stretch + turn),
            Dealing::Knapsack => self.in_rows(self.shuffled(rank + turn * self.ranks)),
        })
    }

    /// The blocks of some ranks as boxes of the array, rank after rank. They are appended.
    pub fn boxes(&self, ranks: Range<u64>, into: &mut Boxes) -> Result<(), BoxError> {
        for rank in ranks {
            for place in self.of_rank(rank) {
                let start = place.iter().zip(&self.block).map(|(at, length)| at * length);
                into.push(&start.collect::<Vec<u64>>(), &self.block)?;
            }
        }
        Ok(())
    }

    /// Where the stretch of a rank begins.
    fn boundary(&self, rank: u64) -> u64 {
        let exact = (u128::from(self.blocks) * u128::from(rank) / u128::from(self.ranks)) as u64;
        if rank == 0 || rank >= self.ranks || self.uneven == 0.0 {
            return exact;
        }
        // Less than half of the mean on either side, so that every stretch has a block.
        let mean = self.blocks as f64 / self.ranks as f64;
        let share = mixed(rank ^ mixed(self.seed)) as f64 / u64::MAX as f64 - 0.5;
        let moved = (share * self.uneven * (mean - 2.0).max(0.0)).floor() as i64;
        exact.saturating_add_signed(moved)
    }

    fn in_rows(&self, mut number: u64) -> Vec<u64> {
        let mut place = vec![0; self.grid.len()];
        for (at, length) in place.iter_mut().zip(&self.grid).rev() {
            *at = number % length;
            number /= length;
        }
        place
    }

    /// The block with this number on the Morton curve, the last dimension fastest. What of the curve lies outside of
    /// the grid is passed over, half by half.
    fn on_curve(&self, mut number: u64) -> Vec<u64> {
        let longest = self.grid.iter().copied().max().unwrap_or(1);
        let levels = u64::BITS - (longest - 1).leading_zeros();
        let mut place = vec![0; self.grid.len()];
        // How much of the part that was found so far lies in the grid, by dimension.
        let mut within = self.grid.clone();
        for level in (0..levels).rev() {
            for dim in 0..self.grid.len() {
                let half = 1u64 << level;
                let lower = within[dim].min(half);
                let others = within.iter().enumerate().filter(|(other, _)| *other != dim);
                let count = others.map(|(_, length)| length).product::<u64>() * lower;
                if number < count {
                    within[dim] = lower;
                } else {
                    number -= count;
                    place[dim] += half;
                    within[dim] -= lower;
                }
            }
        }
        place
    }

    /// A permutation of the blocks: four rounds of a Feistel network, again until the number is one of a block.
    fn shuffled(&self, number: u64) -> u64 {
        let bits = (u64::BITS - (self.blocks - 1).leading_zeros()).max(2).div_ceil(2);
        let mask = (1u64 << bits) - 1;
        let mut number = number;
        loop {
            let (mut left, mut right) = (number >> bits, number & mask);
            for round in 0..4 {
                let new = left ^ (mixed(right ^ mixed(self.seed ^ round)) & mask);
                (left, right) = (right, new);
            }
            number = left << bits | right;
            if number < self.blocks {
                return number;
            }
        }
    }
}

/// A number that looks random (SplitMix64).
fn mixed(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
