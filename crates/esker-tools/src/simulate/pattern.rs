//! Who has how much of which chunk: patterns of writing, made up chunk after chunk.

use super::map::Maps;

/// A way in which programs write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pattern {
    /// Ranks are the squares of a grid, and a chunk has four of them (seeds/000 §5.5.1).
    Checkerboard,
    /// Each rank has whole chunks, one behind the other (FLASH, §5.5.2).
    Blocks,
    /// Each rank has a contiguous part that does not end where a chunk ends.
    Misaligned,
    /// Whole chunks, but half of the ranks have none and a few have many: adaptive meshes.
    Uneven,
    /// Rank 0 has everything.
    OneWriter,
    /// 108 one-dimensional variables in 15 groups of very different lengths, each rank with an
    /// equal part of each (§5.5.3).
    Pandana,
    /// Each chunk is shared by one to four ranks, somewhere.
    Random,
}

impl Pattern {
    /// All of them.
    pub const ALL: [Pattern; 7] = [
        Pattern::Checkerboard,
        Pattern::Blocks,
        Pattern::Misaligned,
        Pattern::Uneven,
        Pattern::OneWriter,
        Pattern::Pandana,
        Pattern::Random,
    ];

    /// Its name on a command line.
    pub fn name(self) -> &'static str {
        match self {
            Pattern::Checkerboard => "checkerboard",
            Pattern::Blocks => "blocks",
            Pattern::Misaligned => "misaligned",
            Pattern::Uneven => "uneven",
            Pattern::OneWriter => "one-writer",
            Pattern::Pandana => "pandana",
            Pattern::Random => "random",
        }
    }

    /// The pattern of this name.
    pub fn from_name(name: &str) -> Option<Pattern> {
        Pattern::ALL.into_iter().find(|pattern| pattern.name() == name)
    }
}

/// The size of a simulation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Setting {
    /// How many ranks there are, at most [`MOST_RANKS`](super::MOST_RANKS).
    pub ranks: u32,
    /// Bytes of a chunk.
    pub chunk: u64,
    /// How many chunks of data there are for each rank.
    pub per_rank: u64,
    /// Of what is random.
    pub seed: u64,
}

impl Default for Setting {
    fn default() -> Setting {
        Setting { ranks: 4, chunk: 1 << 20, per_rank: 8, seed: 0 }
    }
}

/// What is done with one chunk: its bytes, and who has how much of it.
pub type Visit<'a> = &'a mut dyn FnMut(u64, &[(u32, u64)]);

/// All chunks of a write, told one after the other.
#[derive(Debug, Clone)]
pub struct Workload {
    source: Source,
    setting: Setting,
    /// How many ranks there are.
    pub ranks: u32,
    /// How many chunks.
    pub chunks: u64,
    /// Their bytes.
    pub bytes: u64,
    /// How often a rank has a part of a chunk.
    pub accesses: u64,
    /// The bytes of all these parts.
    pub accessed: u64,
}

#[derive(Debug, Clone)]
enum Source {
    Pattern(Pattern),
    Maps(Maps),
}

impl Workload {
    /// A pattern of this size. At least one rank, one byte and one chunk are taken.
    pub fn new(pattern: Pattern, setting: &Setting) -> Workload {
        Workload::counted(Source::Pattern(pattern), setting)
    }

    /// The variables of a model with these decomposition maps. The ranks of more than one map have
    /// copies of the grid, one behind the other; `per_rank` and `seed` are not used.
    pub fn of_maps(maps: &Maps, setting: &Setting) -> Workload {
        Workload::counted(Source::Maps(maps.clone()), setting)
    }

    fn counted(source: Source, setting: &Setting) -> Workload {
        let setting = Setting {
            ranks: setting.ranks.clamp(1, super::MOST_RANKS),
            // A quarter of a chunk, and a third, have to be something; sums have to fit.
            chunk: setting.chunk.clamp(16, 1 << 32),
            per_rank: setting.per_rank.clamp(1, 1 << 10),
            seed: setting.seed,
        };
        let ranks = setting.ranks;
        let mut workload =
            Workload { source, setting, ranks, chunks: 0, bytes: 0, accesses: 0, accessed: 0 };
        let (mut chunks, mut bytes, mut accesses, mut accessed) = (0, 0, 0, 0);
        workload.visit(&mut |unit, parts| {
            chunks += 1;
            bytes += unit;
            accesses += parts.len() as u64;
            accessed += parts.iter().map(|(_, bytes)| bytes).sum::<u64>();
        });
        (workload.chunks, workload.bytes) = (chunks, bytes);
        (workload.accesses, workload.accessed) = (accesses, accessed);
        workload
    }

    /// Visits every chunk in the order of its number: its bytes, and who has how much of it, by rank.
    pub fn visit(&self, visit: Visit<'_>) {
        let Setting { ranks, chunk, per_rank, seed } = self.setting;
        let all = u64::from(ranks) * per_rank;
        match &self.source {
            Source::Maps(maps) => maps.visit(ranks, chunk, visit),
            Source::Pattern(Pattern::Checkerboard) => {
                (0..4 * per_rank).for_each(|_| checkerboard(ranks, chunk, visit));
            }
            Source::Pattern(Pattern::Blocks) => {
                for rank in 0..ranks {
                    (0..per_rank).for_each(|_| visit(chunk, &[(rank, chunk)]));
                }
            }
            Source::Pattern(Pattern::Misaligned) => {
                let part = per_rank * chunk - chunk / 3;
                linear(ranks, u64::from(ranks) * part, chunk, visit);
            }
            Source::Pattern(Pattern::Uneven) => {
                let mut random = Random(seed);
                for rank in 0..ranks {
                    // 0, 1, 2, … with probabilities of a half, a quarter, an eighth, …
                    let times = u64::from(random.next().trailing_zeros());
                    // Nobody would write at all if the only rank had nothing.
                    let chunks = per_rank * if ranks == 1 { 1 } else { times };
                    (0..chunks).for_each(|_| visit(chunk, &[(rank, chunk)]));
                }
            }
            Source::Pattern(Pattern::OneWriter) => {
                (0..all).for_each(|_| visit(chunk, &[(0, chunk)]));
            }
            Source::Pattern(Pattern::Pandana) => pandana(ranks, all * chunk, chunk, visit),
            Source::Pattern(Pattern::Random) => {
                let mut random = Random(seed);
                (0..all).for_each(|_| shared_somewhere(ranks, chunk, &mut random, visit));
            }
        }
    }
}

/// One variable of a square grid of ranks.
fn checkerboard(ranks: u32, chunk: u64, visit: Visit<'_>) {
    let width = f64::from(ranks).sqrt().ceil() as u32;
    let height = ranks.div_ceil(width);
    for (y, x) in (0..height).step_by(2).flat_map(|y| (0..width).step_by(2).map(move |x| (y, x))) {
        let mut accesses = [(0, 0); 4];
        let mut count = 0;
        for (y, x) in [(y, x), (y, x + 1), (y + 1, x), (y + 1, x + 1)] {
            let rank = y * width + x;
            if x < width && rank < ranks {
                accesses[count] = (rank, chunk / 4);
                count += 1;
            }
        }
        if count > 0 {
            visit(chunk, &accesses[..count]);
        }
    }
}

/// One variable of one dimension, of which each rank has an equal, contiguous part. The last
/// chunk is whole, though nobody has its end.
fn linear(ranks: u32, len: u64, chunk: u64, visit: Visit<'_>) {
    let begin = |rank: u32| (u128::from(len) * u128::from(rank) / u128::from(ranks)) as u64;
    let mut accesses = Vec::new();
    let (mut rank, mut rank_end) = (0, begin(1));
    let mut at = 0;
    while at < len {
        let end = (at + chunk).min(len);
        accesses.clear();
        while at < end {
            let until = rank_end.min(end);
            if until > at {
                accesses.push((rank, until - at));
                at = until;
            }
            if at == rank_end && rank + 1 < ranks {
                rank += 1;
                rank_end = begin(rank + 1);
            }
        }
        visit(chunk, &accesses);
    }
}

/// Each group is two thirds as long as the one before, the last 1/292 of the first.
fn pandana(ranks: u32, bytes: u64, chunk: u64, visit: Visit<'_>) {
    const VARIABLES: usize = 108;
    const GROUPS: usize = 15;
    let length = |var: usize| (2.0f64 / 3.0).powi((var % GROUPS) as i32);
    let all: f64 = (0..VARIABLES).map(length).sum();
    for var in 0..VARIABLES {
        let len = ((bytes as f64 * length(var) / all) as u64).max(1);
        linear(ranks, len, chunk.min(len), visit);
    }
}

fn shared_somewhere(ranks: u32, chunk: u64, random: &mut Random, visit: Visit<'_>) {
    let mut accesses = [(0, 0); 4];
    let count = 1 + random.below(4) as usize;
    let mut left = chunk;
    for (i, access) in accesses.iter_mut().take(count).enumerate() {
        let bytes = if i + 1 == count { left } else { random.below(left) };
        left -= bytes;
        *access = (random.below(ranks.into()) as u32, bytes);
    }
    accesses[..count].sort_unstable();
    let mut merged = [(0, 0); 4];
    let mut len: usize = 0;
    for (rank, bytes) in accesses.into_iter().take(count).filter(|(_, bytes)| *bytes > 0) {
        match len.checked_sub(1) {
            Some(last) if merged[last].0 == rank => merged[last].1 += bytes,
            _ => {
                merged[len] = (rank, bytes);
                len += 1;
            }
        }
    }
    visit(chunk, &merged[..len]);
}

/// SplitMix64: the same numbers on every machine.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below this one, which is not 0.
    fn below(&mut self, limit: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(limit)) >> 64) as u64
    }
}
