//! Owners of patches: even numbers for each rank, and what moves for that.

use std::time::{Duration, Instant};

use esker_policy::patches::{Patches, greedy, moved, owners_by_homes, paper};

use super::MOST_RANKS;

/// Accesses that one home has.
const ACCESSES_OF_HOME: usize = 65_536;
/// So many patches can be simulated.
const MOST_PATCHES: u64 = 1 << 24;

/// Ranks in a grid of three dimensions, each with a cube of cells, and cubes that are patches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Blocks {
    /// Ranks; their grid is as near to a cube as can be.
    pub ranks: u32,
    /// Cells of a rank in each dimension.
    pub block: u64,
    /// Cells of a patch in each dimension.
    pub patch: u64,
}

/// What a rule does.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Dealt {
    /// Its name.
    pub rule: &'static str,
    /// Ranks that choose, each for a share of the patches.
    pub homes: u64,
    /// Patches of the rank with most.
    pub most: u64,
    /// And of the one with least.
    pub least: u64,
    /// The share of the bytes that moved.
    pub moved: f64,
    /// Bytes that choosing takes on the busiest rank.
    pub memory: u64,
    /// Time that the choice took, of all homes together.
    pub time: Duration,
}

/// All rules on the same blocks.
#[derive(Debug, Clone, PartialEq)]
pub struct Deal {
    /// Patches.
    pub patches: u64,
    /// Accesses: a rank that has something of a patch.
    pub accesses: u64,
    /// Greedy, the paper's, ours.
    pub rules: Vec<Dealt>,
}

/// Factors of a number, as near to each other as can be, the largest first.
fn grid(ranks: u32) -> [u64; 3] {
    let ranks = u64::from(ranks);
    let factor = |n: u64, most: u64| (1..=most).rev().find(|f| n.is_multiple_of(*f)).unwrap_or(1);
    let least = factor(ranks, (ranks as f64).cbrt().round() as u64);
    let rest = ranks / least;
    let middle = factor(rest, rest.isqrt());
    let mut grid = [rest / middle, middle, least];
    grid.sort_unstable_by(|a, b| b.cmp(a));
    grid
}

/// Every third bit.
fn every_third(code: u64) -> u64 {
    (0..21).fold(0, |sum, bit| sum | (code >> (3 * bit) & 1) << bit)
}

impl Blocks {
    /// The places of patches in Morton order, each with the ranks that have something of it and their bytes (of 4 for a cell).
    fn patches(&self) -> Vec<Patches> {
        let ranks = grid(self.ranks);
        let lengths = ranks.map(|len| len * self.block);
        let counts = lengths.map(|len| len.div_ceil(self.patch));
        let side = counts.iter().max().map_or(1, |len| len.next_power_of_two());
        let mut homes = vec![Patches::default()];
        let mut accesses = 0;
        let mut list: Vec<(u32, u64)> = Vec::new();
        for code in 0..side * side * side {
            let at = [every_third(code >> 2), every_third(code >> 1), every_third(code)];
            if (0..3).any(|dim| at[dim] >= counts[dim]) {
                continue;
            }
            list.clear();
            list.push((0, 4));
            for dim in 0..3 {
                let (start, end) =
                    (at[dim] * self.patch, ((at[dim] + 1) * self.patch).min(lengths[dim]));
                let ranks_here = start / self.block..end.div_ceil(self.block);
                list = list
                    .iter()
                    .flat_map(|&(rank, bytes)| {
                        ranks_here.clone().map(move |here| {
                            let cells =
                                end.min((here + 1) * self.block) - start.max(here * self.block);
                            (rank * ranks[dim] as u32 + here as u32, bytes * cells)
                        })
                    })
                    .collect();
            }
            if accesses + list.len() > ACCESSES_OF_HOME {
                homes.push(Patches::default());
                accesses = 0;
            }
            accesses += list.len();
            if let Some(home) = homes.last_mut() {
                home.push(list.iter().copied());
            }
        }
        homes
    }

    /// Whether it can be simulated: not more than so many ranks and patches. The error says how many there would be.
    pub fn check(&self) -> Result<(), String> {
        if self.ranks == 0 || self.ranks > MOST_RANKS || self.block == 0 || self.patch == 0 {
            return Err(format!(
                "there are 1 to {MOST_RANKS} ranks, with blocks and patches of 1 cell or more"
            ));
        }
        let count = |len: u64| len.checked_mul(self.block).map(|cells| cells.div_ceil(self.patch));
        let all = grid(self.ranks).into_iter().map(count);
        let all = all.reduce(|a, b| a?.checked_mul(b?)).flatten();
        match all {
            Some(patches) if patches <= MOST_PATCHES => Ok(()),
            Some(patches) => {
                Err(format!("{patches} patches; up to {MOST_PATCHES} can be simulated"))
            }
            None => Err("these are more cells than can be counted".into()),
        }
    }

    /// Lets all rules choose owners.
    pub fn deal(&self) -> Result<Deal, String> {
        self.check()?;
        let homes = self.patches();
        let mut whole = Patches::default();
        homes.iter().flat_map(Patches::iter).for_each(|list| whole.push(list.iter().copied()));
        let share = homes.iter().map(Patches::memory).max().unwrap_or(0);
        let clock = Instant::now();
        let owners = greedy(&whole);
        let mut rules = vec![self.judge("greedy", homes.len(), &whole, &owners, share, clock)];
        // Its ranks decide about every patch, each for itself.
        let clock = Instant::now();
        let owners = paper(self.ranks, &whole);
        rules.push(self.judge("paper", 1, &whole, &owners, whole.memory(), clock));
        let clock = Instant::now();
        let lists: Vec<&Patches> = homes.iter().collect();
        let (owners, effort) = owners_by_homes(self.ranks, &lists);
        let owners = owners.concat();
        rules.push(self.judge("ours", homes.len(), &whole, &owners, effort.memory, clock));
        let accesses = whole.iter().map(|list| list.len() as u64).sum();
        Ok(Deal { patches: whole.len() as u64, accesses, rules })
    }

    fn judge(
        &self,
        rule: &'static str,
        homes: usize,
        patches: &Patches,
        owners: &[u32],
        memory: u64,
        clock: Instant,
    ) -> Dealt {
        let time = clock.elapsed();
        let mut counts = vec![0u64; self.ranks as usize];
        owners.iter().for_each(|&rank| counts[rank as usize] += 1);
        Dealt {
            rule,
            homes: homes as u64,
            most: counts.iter().copied().max().unwrap_or(0),
            least: counts.iter().copied().min().unwrap_or(0),
            moved: moved(patches, owners) as f64 / patches.bytes().max(1) as f64,
            memory,
            time,
        }
    }
}
