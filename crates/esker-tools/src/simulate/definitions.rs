//! Definitions of many ranks merged into one header, for as many ranks as one likes: what a rank has to hold, and how often it talks.
//!
//! Nothing is merged here: who holds which object when follows from ranks and names, and is counted. Three roads: up a binary tree to
//! rank 0, which tells all (what `enddef` does); straight to the rank that the name's hash says; and there by halving, in which
//! partners exchange what belongs to the other's half of all hashes, so that what several ranks define is one on the way
//! (docs/rooms/models.md, merging by shares).

use std::fmt;

use crate::Progress;

/// Who defines the same objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sharing {
    /// Every rank has objects of its own.
    Own,
    /// So many neighbours have the same ones.
    Groups(u32),
    /// All ranks have the same ones.
    All,
}

impl fmt::Display for Sharing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Sharing::Own => f.write_str("each its own"),
            Sharing::Groups(ranks) => write!(f, "groups of {ranks}"),
            Sharing::All => f.write_str("all the same"),
        }
    }
}

/// Definitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Definitions {
    /// Ranks.
    pub ranks: u32,
    /// Objects that a rank defines.
    pub per_rank: u32,
    /// Who defines the same.
    pub sharing: Sharing,
}

/// What a way of merging takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Road {
    /// Steps that follow each other.
    pub rounds: u64,
    /// Objects that a rank holds at once, of the rank that holds most: its own, and what others have sent it.
    pub most_held: u64,
    /// Messages that a rank sends or gets, of the rank that has most.
    pub most_messages: u64,
    /// Objects that all ranks send, each counted as often as it is sent.
    pub sent: u64,
}

/// What was counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Merged {
    /// Objects that there are in the end.
    pub objects: u64,
    /// Up a tree to rank 0, and all of it to everyone.
    pub tree: Road,
    /// Straight to the owners.
    pub straight: Road,
    /// To the owners by halving.
    pub halving: Road,
}

impl Definitions {
    /// Counts; `None` if a number is 0, or objects are more than 2^32.
    pub fn count(&self, progress: &mut dyn Progress) -> Option<Merged> {
        let is_group = |n| matches!(n, Sharing::Groups(0));
        if self.ranks == 0 || self.per_rank == 0 || is_group(self.sharing) {
            return None;
        }
        let items = u64::from(self.ranks) * u64::from(self.per_rank);
        if items > 1 << 32 {
            return None;
        }
        let objects = self.distinct(0, self.ranks);
        let halving = self.by_halving(progress);
        let straight = self.straight();
        progress.progress(1, 1);
        Some(Merged { objects, tree: self.up_a_tree(), straight, halving })
    }

    /// The first of the objects that a rank defines.
    fn first(&self, rank: u32) -> u64 {
        let group = match self.sharing {
            Sharing::Own => rank,
            Sharing::Groups(ranks) => rank / ranks,
            Sharing::All => 0,
        };
        u64::from(group) * u64::from(self.per_rank)
    }

    /// The objects of a rank.
    fn of_rank(&self, rank: u32) -> impl Iterator<Item = u64> {
        let first = self.first(rank);
        first..first + u64::from(self.per_rank)
    }

    /// How many objects these ranks have together.
    fn distinct(&self, from: u32, to: u32) -> u64 {
        match to.checked_sub(1).filter(|_| to > from) {
            None => 0,
            Some(last) => self.first(last) - self.first(from) + u64::from(self.per_rank),
        }
    }

    fn up_a_tree(&self) -> Road {
        let mut road = Road::default();
        let mut reach = 1u32;
        while reach < self.ranks {
            road.rounds += 1;
            let mut parent = 0u32;
            while let Some(child) = parent.checked_add(reach).filter(|child| *child < self.ranks) {
                let end = child.saturating_add(reach).min(self.ranks);
                let came = self.distinct(child, end);
                road.sent += came;
                road.most_held = road.most_held.max(self.distinct(parent, child) + came);
                match child.checked_add(reach) {
                    Some(next) => parent = next,
                    None => break,
                }
            }
            match reach.checked_mul(2) {
                Some(next) => reach = next,
                None => break,
            }
        }
        // And down again, all of it to everyone.
        let all = self.distinct(0, self.ranks);
        road.most_held = road.most_held.max(all);
        road.most_messages = 2 * road.rounds;
        road.rounds *= 2;
        road.sent += all * u64::from(self.ranks - 1);
        road
    }

    fn straight(&self) -> Road {
        let ranks = u64::from(self.ranks);
        let mut arriving = vec![0u64; self.ranks as usize];
        let mut senders = vec![0u64; self.ranks as usize];
        let mut last = vec![u32::MAX; self.ranks as usize];
        let mut road = Road { rounds: 1, ..Road::default() };
        for rank in 0..self.ranks {
            let mut targets = 0;
            for object in self.of_rank(rank) {
                let owner = owner(hash(object), ranks) as usize;
                arriving[owner] += 1;
                if last[owner] != rank {
                    last[owner] = rank;
                    senders[owner] += 1;
                    targets += 1;
                }
            }
            road.most_messages = road.most_messages.max(targets);
        }
        road.sent = arriving.iter().sum();
        let own = u64::from(self.per_rank);
        road.most_held = own + arriving.iter().copied().max().unwrap_or(0);
        road.most_messages = road.most_messages.max(senders.into_iter().max().unwrap_or(0));
        road
    }

    /// Ranks that are no power of two: those beyond give what they have to a partner first.
    fn by_halving(&self, progress: &mut dyn Progress) -> Road {
        let own = u64::from(self.per_rank);
        let steps = self.ranks.ilog2();
        let ranks = 1u32 << steps;
        let mut road = Road { most_held: own, ..Road::default() };
        // Where each object is, by rank and hash, once for each rank that has it.
        let mut held: Vec<(u32, u32, u64)> = Vec::new();
        for rank in 0..self.ranks {
            let holder = if rank < ranks { rank } else { rank - ranks };
            held.extend(self.of_rank(rank).map(|object| {
                let owner = owner(hash(object), u64::from(ranks)) as u32;
                (holder, owner, object)
            }));
        }
        if ranks < self.ranks {
            road.rounds += 1;
            road.sent += u64::from(self.ranks - ranks) * own;
            road.most_held = 2 * own;
        }
        once(&mut held);
        for step in 0..steps {
            // The highest bit first: then a rank's half of the owners is a range.
            let bit = 1u32 << (steps - 1 - step);
            road.rounds += 1;
            let moves = |(holder, owner, _): &(u32, u32, u64)| (holder ^ owner) & bit != 0;
            road.sent += held.iter().filter(|item| moves(item)).count() as u64;
            for item in &mut held {
                item.0 = (item.0 & !bit) | (item.1 & bit);
            }
            // Before equal ones are one: both the rank's and the partner's are there.
            road.most_held = road.most_held.max(own + most(&mut held));
            once(&mut held);
            progress.progress(u64::from(step) + 1, u64::from(steps) + 1);
        }
        road.most_messages = 2 * road.rounds;
        road
    }
}

/// Every object of a holder once.
fn once(held: &mut Vec<(u32, u32, u64)>) {
    held.sort_unstable();
    held.dedup();
}

/// The most that a holder has.
fn most(held: &mut [(u32, u32, u64)]) -> u64 {
    held.sort_unstable();
    held.chunk_by(|a, b| a.0 == b.0).map(|of| of.len() as u64).max().unwrap_or(0)
}

/// The hash of an object's name, which is its number in decimals: FNV-1a, and a mixer, because names differ in their last digits.
fn hash(object: u64) -> u64 {
    let mut digits = [0u8; 20];
    let (mut left, mut at) = (object, 20);
    loop {
        at -= 1;
        digits[at] = b'0' + (left % 10) as u8;
        left /= 10;
        if left == 0 {
            break;
        }
    }
    let text = b"variable_".iter().chain(&digits[at..]);
    let fnv = text.fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let mixed = (fnv ^ (fnv >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    let mixed = (mixed ^ (mixed >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    mixed ^ (mixed >> 33)
}

/// The rank of a hash: equal ranges of all hashes.
fn owner(hash: u64, ranks: u64) -> u64 {
    ((u128::from(hash) * u128::from(ranks)) >> 64) as u64
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;
    use crate::Unseen;

    fn count(ranks: u32, per_rank: u32, sharing: Sharing) -> Merged {
        Definitions { ranks, per_rank, sharing }.count(&mut Unseen).unwrap()
    }

    #[test]
    fn halving_brings_every_object_to_its_owner_and_holds_what_a_plain_model_holds() {
        for sharing in [Sharing::Own, Sharing::Groups(3), Sharing::All] {
            for ranks in [1u32, 2, 3, 4, 7, 8, 16, 21] {
                let of = Definitions { ranks, per_rank: 5, sharing };
                let road = of.by_halving(&mut Unseen);
                // The same with sets of objects on ranks that exchange halves.
                let steps = ranks.ilog2();
                let power = 1u32 << steps;
                let mut sets: Vec<BTreeSet<u64>> = vec![BTreeSet::new(); power as usize];
                for rank in 0..ranks {
                    sets[(rank % power) as usize].extend(of.of_rank(rank));
                }
                let (mut sent, mut held) = (u64::from(ranks - power) * 5, 5);
                if ranks > power {
                    held = 10;
                }
                for step in (0..steps).rev() {
                    let before = sets.clone();
                    for rank in 0..power {
                        let partner = rank ^ (1 << step);
                        let mine = |object: &u64| {
                            (owner(hash(*object), u64::from(power)) as u32 ^ rank) & (1 << step)
                                == 0
                        };
                        let keep = before[rank as usize].iter().copied().filter(&mine);
                        let came: Vec<u64> =
                            before[partner as usize].iter().copied().filter(&mine).collect();
                        sent += came.len() as u64;
                        let kept: Vec<u64> = keep.collect();
                        held = held.max(5 + (kept.len() + came.len()) as u64);
                        sets[rank as usize] = kept.into_iter().chain(came).collect();
                    }
                }
                assert_eq!((road.sent, road.most_held), (sent, held), "{sharing} {ranks}");
                let all: BTreeMap<u64, u32> = (0..power)
                    .flat_map(|rank| sets[rank as usize].iter().map(move |o| (*o, rank)))
                    .collect();
                assert_eq!(all.len() as u64, of.distinct(0, ranks), "every object has one owner");
                for (object, rank) in all {
                    assert_eq!(owner(hash(object), u64::from(power)), u64::from(rank));
                }
            }
        }
    }

    #[test]
    fn a_tree_holds_everything_at_its_root_and_shares_hold_a_few_times_their_own() {
        let merged = count(4096, 8, Sharing::Own);
        assert_eq!((merged.objects, merged.tree.most_held), (32_768, 32_768));
        assert!(merged.halving.most_held <= 8 * 8, "{merged:?}");
        assert!(merged.straight.most_held <= 8 * 8, "{merged:?}");
        assert_eq!(merged.halving.rounds, 12);
        // What all define is one on the way; straight to its owner it comes from everybody.
        let merged = count(4096, 8, Sharing::All);
        assert_eq!(merged.objects, 8);
        assert!(merged.straight.most_held >= 4096, "{merged:?}");
        assert!(merged.halving.most_held <= 3 * 8, "{merged:?}");
        let merged = count(4096, 8, Sharing::Groups(64));
        assert_eq!(merged.objects, 8 * 64);
        assert!(merged.halving.most_held <= 8 * 8, "{merged:?}");
    }

    #[test]
    fn numbers_that_cannot_be_are_refused() {
        let wrong = |ranks, per_rank, sharing| {
            Definitions { ranks, per_rank, sharing }.count(&mut Unseen).is_none()
        };
        assert!(wrong(0, 1, Sharing::Own) && wrong(1, 0, Sharing::Own));
        assert!(wrong(4, 1, Sharing::Groups(0)) && wrong(1 << 20, 1 << 20, Sharing::Own));
        assert_eq!(count(1, 3, Sharing::Own).tree, Road { most_held: 3, ..Road::default() });
    }
}
