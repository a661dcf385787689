//! Encoded patches in files: how much larger the largest is than the mean.

use std::time::{Duration, Instant};

use esker_policy::files::{bytes_of_files, cut_by_homes, equal_counts, optimal, paper};

use super::MOST_RANKS;

/// So many patches can be simulated.
const MOST_PATCHES: u64 = 1 << 24;

/// How sizes of encoded patches are distributed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sizes {
    /// All about the same.
    Even,
    /// Small ones, and large ones near a wavy surface in space, as of a flame.
    Flame,
    /// From small to a thousand times larger, anywhere.
    Random,
}

impl Sizes {
    /// All of them.
    pub const ALL: [Sizes; 3] = [Sizes::Even, Sizes::Flame, Sizes::Random];

    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Sizes::Even => "even",
            Sizes::Flame => "flame",
            Sizes::Random => "random",
        }
    }

    /// The size of a patch, by its number in Morton order in a cube of so many patches along each side.
    fn of(self, number: u64, side: f64) -> u64 {
        let noise = number.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let noise = (noise ^ noise >> 31).wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 40;
        let noise = noise as f64 / (1u64 << 24) as f64;
        let axis = |shift: u64| {
            (0..21).fold(0u64, |sum, bit| sum | (number >> (3 * bit + shift) & 1) << bit) as f64
                / side
        };
        let size = match self {
            Sizes::Even => 9_000.0 + 2_000.0 * noise,
            Sizes::Flame => {
                let (x, y, z) = (axis(0), axis(1), axis(2));
                let surface = 0.5 + 0.2 * (9.0 * x).sin() * (7.0 * y).cos();
                let near = (-((z - surface) / 0.05).powi(2)).exp();
                (400.0 + 60_000.0 * near) * (0.7 + 0.6 * noise)
            }
            Sizes::Random => 100.0 * 1000f64.powf(noise),
        };
        size as u64
    }
}

/// Patches in files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cuts {
    /// Their sizes.
    pub sizes: Sizes,
    /// Patches in all.
    pub patches: u64,
    /// Files.
    pub files: u64,
    /// Ranks that have them.
    pub ranks: u32,
}

/// What a rule does.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CutBy {
    /// Its name.
    pub rule: &'static str,
    /// Bytes of the largest file over the mean.
    pub over_mean: f64,
    /// Files without a patch.
    pub idle: u64,
    /// Times that something goes through all homes in turn.
    pub passes: u64,
    /// Bytes that it takes on the busiest rank.
    pub memory: u64,
    /// The time of all homes together.
    pub time: Duration,
}

impl Cuts {
    /// Equal counts, the paper's rule, ours, and the best.
    pub fn by_all_rules(&self) -> Result<Vec<CutBy>, String> {
        if self.patches == 0 || self.patches > MOST_PATCHES || self.files == 0 {
            return Err(format!("there are 1 to {MOST_PATCHES} patches, and one file or more"));
        }
        if self.ranks == 0 || self.ranks > MOST_RANKS {
            return Err(format!("there are 1 to {MOST_RANKS} ranks"));
        }
        let side = (self.patches as f64).cbrt().max(1.0);
        let sizes: Vec<u64> = (0..self.patches).map(|number| self.sizes.of(number, side)).collect();
        let all = 8 * self.patches;
        let homes = u64::from(self.ranks).min(self.files).max(1);
        let shares: Vec<&[u64]> = sizes.chunks(self.patches.div_ceil(homes) as usize).collect();
        let clock = Instant::now();
        let mut rules = vec![self.judge(
            "equal counts",
            &equal_counts(self.files, &sizes),
            &sizes,
            (0, 8 * self.files),
            clock,
        )];
        let clock = Instant::now();
        rules.push(self.judge("paper", &paper(self.files, &sizes), &sizes, (1, all), clock));
        let clock = Instant::now();
        let (starts, effort) = cut_by_homes(self.files, &shares);
        rules.push(self.judge("ours", &starts, &sizes, (effort.passes, effort.memory), clock));
        let clock = Instant::now();
        rules.push(self.judge("optimal", &optimal(self.files, &sizes), &sizes, (1, all), clock));
        Ok(rules)
    }

    fn judge(
        &self,
        rule: &'static str,
        starts: &[u64],
        sizes: &[u64],
        (passes, memory): (u64, u64),
        clock: Instant,
    ) -> CutBy {
        let time = clock.elapsed();
        let files = bytes_of_files(starts, sizes);
        let total: u64 = files.iter().sum();
        let largest = files.iter().copied().max().unwrap_or(0);
        CutBy {
            rule,
            over_mean: largest as f64 * self.files as f64 / total.max(1) as f64,
            idle: self.files.saturating_sub(starts.len() as u64),
            passes,
            memory,
            time,
        }
    }
}
