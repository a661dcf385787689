//! Which rank gets which patch: for each as many, rounded down or up, and few bytes moved.
//!
//! A patch is transformed and encoded by one rank, so ranks should have like numbers of patches, even if one rank has all
//! the data (seeds/001 §IV-A leaves whole patches where they are, and such a rank overloaded). Among all ways to do that,
//! one is wanted that leaves much where it is. It is found by an auction: each patch bids for a place at the rank that
//! has most of it, less the rank's price; who is outbid looks elsewhere, and prices rise until all have a place. What
//! stays is then within a small share of a patch, for each patch, of the most that can.
//!
//! On many ranks, *homes* do this, each for a contiguous share of the patches, and nobody knows everything:
//!
//! 1. A home tells each rank that has something of its patches how much that is, in patches ([`Patches::demands`]).
//! 2. Ranks agree who gets one patch more than others: those who have most of a patch left ([`quotas`]; by a histogram
//!    of [`EXTRA_STEPS`] numbers, reduced once).
//! 3. A rank shares its places among the homes that asked ([`split`]).
//! 4. Homes with too many places give some to those with too few, in the order of homes ([`balance`]; a scan).
//! 5. A home holds its auction ([`assign`]), and then looks for chains of moves between ranks whose places it has all.
//!
//! ```
//! use esker_policy::patches::{Patches, owners};
//!
//! // Rank 0 has everything; of three ranks each gets two patches all the same.
//! let mut patches = Patches::default();
//! (0..6).for_each(|_| patches.push([(0, 100)]));
//! let mut owned = [0; 3];
//! owners(3, &patches).into_iter().for_each(|rank| owned[rank as usize] += 1);
//! assert_eq!(owned, [2, 2, 2]);
//! ```

mod auction;
mod exchange;
mod homes;

pub use auction::assign;
pub use homes::{Effort, balance, owners_by_homes, quotas, split};

/// In so many steps ranks say how much of a patch they have left.
pub const EXTRA_STEPS: usize = 1024;

/// Who has how much of each patch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Patches {
    /// Where the accesses of each patch end.
    ends: Vec<usize>,
    accesses: Vec<(u32, u64)>,
}

impl Patches {
    /// One more patch: ranks and their bytes of it.
    pub fn push(&mut self, accesses: impl IntoIterator<Item = (u32, u64)>) {
        self.accesses.extend(accesses);
        self.ends.push(self.accesses.len());
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Ranks and their bytes of a patch; none of one that there is not.
    pub fn of(&self, patch: usize) -> &[(u32, u64)] {
        let begin = patch.checked_sub(1).map_or(Some(0), |before| self.ends.get(before).copied());
        match (begin, self.ends.get(patch)) {
            (Some(begin), Some(&end)) => &self.accesses[begin..end],
            _ => &[],
        }
    }

    /// All patches in turn.
    pub fn iter(&self) -> impl Iterator<Item = &[(u32, u64)]> {
        (0..self.len()).map(|patch| self.of(patch))
    }

    /// The bytes of all patches.
    pub fn bytes(&self) -> u64 {
        self.accesses.iter().map(|(_, bytes)| bytes).sum()
    }

    /// What it takes in memory.
    pub fn memory(&self) -> u64 {
        (size_of_val(self.ends.as_slice()) + size_of_val(self.accesses.as_slice())) as u64
    }

    /// For each rank that has something, how much in patches, by rank.
    pub fn demands(&self) -> Vec<(u32, f64)> {
        let mut shares = Vec::with_capacity(self.accesses.len());
        for accesses in self.iter() {
            let bytes: u64 = accesses.iter().map(|(_, bytes)| bytes).sum();
            let share = |&(rank, had): &(u32, u64)| (rank, had as f64 / bytes.max(1) as f64);
            shares.extend(accesses.iter().map(share));
        }
        shares.sort_unstable_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
        shares.dedup_by(|next, kept| {
            let same = next.0 == kept.0;
            if same {
                kept.1 += next.1;
            }
            same
        });
        shares
    }
}

/// The bytes that are not with the owner of their patch.
pub fn moved(patches: &Patches, owners: &[u32]) -> u64 {
    let stays = |(accesses, owner): (&[(u32, u64)], &u32)| -> u64 {
        accesses.iter().filter(|(rank, _)| rank == owner).map(|(_, bytes)| bytes).sum()
    };
    patches.bytes() - patches.iter().zip(owners).map(stays).sum::<u64>()
}

/// The owner of each patch, chosen by one home: each of `ranks` has as many, rounded down or up.
pub fn owners(ranks: u32, patches: &Patches) -> Vec<u32> {
    owners_by_homes(ranks, &[patches]).0.concat()
}

/// The largest writer owns a patch, whatever it has already. For comparison.
pub fn greedy(patches: &Patches) -> Vec<u32> {
    let largest = |accesses: &[(u32, u64)]| {
        let best = accesses.iter().max_by(|a, b| a.1.cmp(&b.1).then(b.0.cmp(&a.0)));
        best.map_or(0, |(rank, _)| *rank)
    };
    patches.iter().map(largest).collect()
}

/// The rule of seeds/001 §IV-A. For comparison: patches that one rank has whole stay; a shared one goes to the first
/// sharer below its target, or to the first rank below its target.
pub fn paper(ranks: u32, patches: &Patches) -> Vec<u32> {
    let count = patches.len() as u64;
    let more = count % u64::from(ranks.max(1));
    let target = |rank: u32| count / u64::from(ranks.max(1)) + u64::from(u64::from(rank) < more);
    let mut owned = vec![0u64; ranks.max(1) as usize];
    let mut owners = vec![u32::MAX; patches.len()];
    for (patch, accesses) in patches.iter().enumerate() {
        if let [(rank, _)] = accesses {
            owners[patch] = *rank;
            owned[*rank as usize] += 1;
        }
    }
    let mut first = 0;
    for (patch, accesses) in patches.iter().enumerate() {
        if owners[patch] != u32::MAX {
            continue;
        }
        let below =
            accesses.iter().map(|(rank, _)| *rank).filter(|&r| owned[r as usize] < target(r));
        let owner = below.min().unwrap_or_else(|| {
            while first + 1 < ranks && owned[first as usize] >= target(first) {
                first += 1;
            }
            first
        });
        owners[patch] = owner;
        owned[owner as usize] += 1;
    }
    owners
}
