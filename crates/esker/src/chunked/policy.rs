//! Who owns which unit: the owner policies of chunked variables, pure and without ranks.
//!
//! A chunk is encoded and written by one rank, its *owner*; what other ranks have of it is sent
//! there. [`Assigner`] weighs two wishes (seeds/000 §5.2.5): little data should move, so a rank
//! that has much of a unit should own it, and nobody should own much more than others, because
//! encoding is work. The owner is the rank of the highest
//!
//! ```text
//! score = access / bytes of the unit - weight × owned bytes / fair share
//! ```
//!
//! where the fair share is all bytes over the ranks. From that follows, with a weight w and
//! accesses that are no larger than their unit:
//!
//! - Nobody owns more than (1 + 1/w) fair shares and one unit: a rank that has more than 1/w shares
//!   above the lightest loses to it even a unit that it has whole.
//! - With a weight of at most 1, a rank that has whole units keeps them up to its fair share.
//!
//! [`LargestWriter`] is the rule of HDF5, for comparison. Both are exact: scores are compared as
//! rational numbers, so that every machine chooses the same owners.
//!
//! ```
//! use esker::owners::Assigner;
//!
//! // Rank 0 has everything. It keeps two shares of four, and the others get what is left.
//! let mut assigner = Assigner::new(4, 8 * 100, 1.0);
//! let owners: Vec<u32> = (0..8).map(|_| assigner.owner(100, &[(0, 100)])).collect();
//! assert_eq!(owners, [0, 0, 0, 1, 2, 3, 0, 1]);
//! ```

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::collections::HashMap;
use std::collections::binary_heap::PeekMut;

/// The weight of the workload penalty where nobody says another: the largest with which ranks
/// that have whole units keep them (docs/design/003-owners.md).
pub const DEFAULT_WEIGHT: f64 = 1.0;

/// Weights are multiples of one over this.
const WEIGHT_STEPS: u64 = 1 << 20;
/// So large a weight leaves nothing but balance.
const LARGEST_WEIGHT: f64 = (1 << 20) as f64;

/// Chooses owners one unit after the other.
///
/// A unit takes time for its accesses and the logarithm of the ranks; memory grows with the ranks
/// that own something.
#[derive(Debug, Clone)]
pub struct Assigner {
    ranks: u32,
    total: u64,
    weight: u64,
    homes: u64,
    /// The rank that is the first among equals.
    first: u32,
    /// The penalty of a byte owned is price / scale of a unit.
    price: u128,
    scale: u128,
    loads: Loads,
    /// Ranks before this one, counted from `first`, own something.
    idle: u32,
    /// When all own something: each rank with what it owned when it was looked at.
    lightest: BinaryHeap<Reverse<(u64, u32)>>,
}

/// A rank that could own the unit.
#[derive(Debug, Clone, Copy)]
struct Candidate {
    access: u64,
    load: u64,
    /// Its place behind the first among equals.
    place: u32,
}

impl Assigner {
    /// For so many ranks that share units of `total` bytes; `weight` of the workload penalty.
    ///
    /// The weight is taken to the next multiple of 2⁻²⁰ between 0 (no penalty) and 2²⁰.
    pub fn new(ranks: usize, total: u64, weight: f64) -> Assigner {
        let ranks = u32::try_from(ranks).unwrap_or(u32::MAX).max(1);
        // What is not a number, or negative, becomes 0.
        let weight = (weight.min(LARGEST_WEIGHT) * WEIGHT_STEPS as f64).round() as u64;
        let assigner = Assigner {
            ranks,
            total: total.max(1),
            weight,
            homes: 1,
            first: 0,
            price: 0,
            scale: 1,
            loads: Loads::Few(HashMap::new()),
            idle: 0,
            lightest: BinaryHeap::new(),
        };
        assigner.scaled(1)
    }

    /// A home that sees one unit in `homes` only: what it assigns counts so many times.
    pub fn scaled(mut self, homes: u64) -> Assigner {
        self.homes = homes.clamp(1, u64::from(u32::MAX));
        let price = u128::from(self.weight) * u128::from(self.ranks) * u128::from(self.homes);
        let scale = u128::from(WEIGHT_STEPS) * u128::from(self.total);
        let divisor = common_divisor(price, scale);
        (self.price, self.scale) = (price / divisor, scale / divisor);
        self
    }

    /// Where ranks are equal, the first from this one on is chosen instead of the lowest.
    ///
    /// Homes do not know what others assign. If each begins elsewhere (home h of H at
    /// [`first_of_home`]) they do not all load the same ranks with the units that their
    /// writers cannot keep. To be called before the first unit.
    pub fn starting_at(mut self, rank: u32) -> Assigner {
        self.first = rank % self.ranks;
        self
    }

    /// The owner of a unit of `bytes` bytes, of which ranks have (rank, bytes), sorted by rank.
    ///
    /// Equal scores: the larger access, the lighter load, the lower rank.
    pub fn owner(&mut self, bytes: u64, accesses: &[(u32, u64)]) -> u32 {
        let mut best = self.lightest();
        for (rank, access) in accesses.iter().filter(|(rank, _)| *rank < self.ranks) {
            let (load, place) = (self.loads.of(*rank), self.place(*rank));
            let candidate = Candidate { access: *access, load, place };
            if self.compare(bytes, candidate, best) == Ordering::Greater {
                best = candidate;
            }
        }
        let owner = self.rank_at(best.place);
        self.loads.add(owner, bytes, self.ranks);
        owner
    }

    /// What this rank was given so far, in bytes.
    pub fn owned(&self, rank: u32) -> u64 {
        self.loads.of(rank)
    }

    /// The lightest rank, as one that has nothing of the unit. No other that has nothing of it
    /// can have a higher score, so it stands for all of them.
    fn lightest(&mut self) -> Candidate {
        while self.idle < self.ranks && self.loads.of(self.rank_at(self.idle)) > 0 {
            self.idle += 1;
            if self.idle == self.ranks {
                let loaded = |place| Reverse((self.loads.of(self.rank_at(place)), place));
                self.lightest = (0..self.ranks).map(loaded).collect();
            }
        }
        if self.idle < self.ranks {
            return Candidate { access: 0, load: 0, place: self.idle };
        }
        // Loads only grow: an entry that is out of date is too light, and comes up.
        let (ranks, first) = (self.ranks, self.first);
        while let Some(mut top) = self.lightest.peek_mut() {
            let Reverse((seen, place)) = *top;
            let load = self.loads.of(rank_at(place, first, ranks));
            if load == seen {
                return Candidate { access: 0, load, place };
            }
            *top = Reverse((load, place));
            // Dropping it sifts it to where it belongs.
            drop::<PeekMut<'_, _>>(top);
        }
        Candidate { access: 0, load: 0, place: 0 }
    }

    /// Greater if `a` should own the unit rather than `b`.
    fn compare(&self, bytes: u64, a: Candidate, b: Candidate) -> Ordering {
        let gain = a.access.cmp(&b.access);
        let burden = if self.price == 0 { Ordering::Equal } else { a.load.cmp(&b.load) };
        let weigh = || {
            let (more, heavier) = (a.access.abs_diff(b.access), a.load.abs_diff(b.load));
            compare_products((self.scale, more), (self.price, heavier, bytes.max(1)))
        };
        let score = match (gain, burden) {
            (Ordering::Greater, Ordering::Greater) => weigh(),
            (Ordering::Less, Ordering::Less) => weigh().reverse(),
            (Ordering::Equal, burden) => burden.reverse(),
            (gain, _) => gain,
        };
        score.then(gain).then(b.load.cmp(&a.load)).then(b.place.cmp(&a.place))
    }

    fn place(&self, rank: u32) -> u32 {
        if rank >= self.first { rank - self.first } else { self.ranks - self.first + rank }
    }

    fn rank_at(&self, place: u32) -> u32 {
        rank_at(place, self.first, self.ranks)
    }
}

fn rank_at(place: u32, first: u32, ranks: u32) -> u32 {
    if place < ranks - first { first + place } else { place - (ranks - first) }
}

/// Where home `home` of `homes` begins among equal ranks ([`Assigner::starting_at`]).
pub fn first_of_home(home: u64, homes: u64, ranks: usize) -> u32 {
    let first = u128::from(home) * ranks as u128 / u128::from(homes.max(1));
    (first % ranks.max(1) as u128) as u32
}

/// What each rank owns.
#[derive(Debug, Clone)]
enum Loads {
    /// The few that own something: a home of a large job sees a small part of its ranks.
    Few(HashMap<u32, u64>),
    All(Vec<u64>),
}

impl Loads {
    fn of(&self, rank: u32) -> u64 {
        match self {
            Loads::Few(loads) => loads.get(&rank).copied().unwrap_or(0),
            Loads::All(loads) => loads.get(rank as usize).copied().unwrap_or(0),
        }
    }

    fn add(&mut self, rank: u32, bytes: u64, ranks: u32) {
        // A unit without bytes is one more to care for, too.
        let bytes = bytes.max(1);
        match self {
            Loads::Few(loads) => {
                let load = loads.entry(rank).or_insert(0);
                *load = load.saturating_add(bytes);
                // From an eighth on, a list takes less memory.
                if loads.len() as u64 * 8 > u64::from(ranks) {
                    let mut all = vec![0; ranks as usize];
                    for (rank, load) in loads.drain() {
                        if let Some(place) = all.get_mut(rank as usize) {
                            *place = load;
                        }
                    }
                    *self = Loads::All(all);
                }
            }
            Loads::All(loads) => {
                if let Some(load) = loads.get_mut(rank as usize) {
                    *load = load.saturating_add(bytes);
                }
            }
        }
    }
}

/// HDF5's rule: the largest access wins; of equal ones, that of the rank with the fewest units,
/// then of the lowest rank.
#[derive(Debug, Clone)]
pub struct LargestWriter {
    units: Vec<u32>,
}

impl LargestWriter {
    /// For so many ranks.
    pub fn new(ranks: usize) -> LargestWriter {
        LargestWriter { units: vec![0; ranks] }
    }

    /// The owner of a unit of which ranks have (rank, bytes), sorted by rank: 0 if none has.
    pub fn owner(&mut self, accesses: &[(u32, u64)]) -> u32 {
        let units = |rank: u32| self.units.get(rank as usize).copied().unwrap_or(0);
        let wish = |(rank, access): &(u32, u64)| (*access, Reverse((units(*rank), *rank)));
        let owner = accesses.iter().max_by_key(|access| wish(access)).map_or(0, |(rank, _)| *rank);
        if let Some(units) = self.units.get_mut(owner as usize) {
            *units = units.saturating_add(1);
        }
        owner
    }
}

fn common_divisor(mut a: u128, mut b: u128) -> u128 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a.max(1)
}

/// Compares the product of the first with that of the second, however large.
fn compare_products(first: (u128, u64), second: (u128, u64, u64)) -> Ordering {
    let left = first.0.checked_mul(first.1.into());
    let right = second.0.checked_mul(second.1.into());
    match (left, right.and_then(|right| right.checked_mul(second.2.into()))) {
        (Some(left), Some(right)) => left.cmp(&right),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => {
            let left = Wide::from(first.0).times(first.1);
            left.cmp(&Wide::from(second.0).times(second.1).times(second.2))
        }
    }
}

/// A number of 256 bits, the highest first. A price has 104 bits at most and a scale 84, so three
/// factors fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Wide([u64; 4]);

impl From<u128> for Wide {
    fn from(number: u128) -> Wide {
        Wide([0, 0, (number >> 64) as u64, number as u64])
    }
}

impl Wide {
    fn times(self, factor: u64) -> Wide {
        let mut carry = 0;
        let mut digits = self.0;
        for digit in digits.iter_mut().rev() {
            let product = u128::from(*digit) * u128::from(factor) + carry;
            *digit = product as u64;
            carry = product >> 64;
        }
        Wide(digits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Every rank is asked, and scores are fractions over one denominator.
    struct Model {
        weight: i128,
        total: i128,
        homes: i128,
        first: usize,
        loads: Vec<i128>,
    }

    impl Model {
        fn owner(&mut self, bytes: u64, accesses: &[(u32, u64)]) -> u32 {
            let ranks = self.loads.len();
            let wish = |rank: usize| {
                let access = accesses.iter().find(|(r, _)| *r as usize == rank);
                let access = i128::from(access.map_or(0, |(_, bytes)| *bytes));
                let load = self.loads[rank];
                // The penalty is weight / 4 × load × ranks / total.
                let penalty = self.weight * self.homes * load * ranks as i128 * i128::from(bytes);
                let score = access * 4 * self.total - penalty;
                (score, access, -load, Reverse((rank + ranks - self.first) % ranks))
            };
            let owner = (0..ranks).max_by_key(|rank| wish(*rank)).unwrap();
            self.loads[owner] += i128::from(bytes);
            owner as u32
        }
    }

    type Unit = (u64, Vec<(u32, u64)>);

    fn units(ranks: u32) -> impl Strategy<Value = Vec<Unit>> {
        // Few sizes, so that there are many ties.
        let size = prop_oneof![Just(4u64), Just(8), 1u64..1000];
        let unit = (size, proptest::collection::btree_map(0..ranks, 0u64..=4, 0..5));
        let unit = unit.prop_map(|(bytes, shares)| {
            (bytes, shares.into_iter().map(|(rank, share)| (rank, bytes * share / 4)).collect())
        });
        proptest::collection::vec(unit, 1..200)
    }

    fn total(units: &[Unit]) -> u64 {
        units.iter().map(|(bytes, _)| bytes).sum()
    }

    proptest! {
        #[test]
        fn owners_are_those_of_a_model_that_asks_every_rank(
            (ranks, units) in (1u32..20).prop_flat_map(|ranks| (Just(ranks), units(ranks))),
            quarters in 0u32..10,
            homes in 1u64..4,
            first in 0u32..40,
        ) {
            let total = total(&units);
            let mut model = Model {
                weight: i128::from(quarters),
                total: i128::from(total),
                homes: i128::from(homes),
                first: (first % ranks) as usize,
                loads: vec![0; ranks as usize],
            };
            let weight = f64::from(quarters) / 4.0;
            let assigner = Assigner::new(ranks as usize, total, weight);
            let mut assigner = assigner.scaled(homes).starting_at(first);
            for (bytes, accesses) in &units {
                prop_assert_eq!(assigner.owner(*bytes, accesses), model.owner(*bytes, accesses));
            }
        }

        #[test]
        fn nobody_owns_more_than_two_shares_and_a_unit_with_weight_1(
            (ranks, writers) in (1u32..20).prop_flat_map(|ranks| {
                // A few ranks write most units.
                let writer = prop_oneof![0..ranks, 0..ranks.min(2)];
                (Just(ranks), proptest::collection::vec((writer, 1u64..100), 1..300))
            }),
        ) {
            let total: u64 = writers.iter().map(|(_, bytes)| bytes).sum();
            let largest = writers.iter().map(|(_, bytes)| *bytes).max().unwrap();
            let mut assigner = Assigner::new(ranks as usize, total, 1.0);
            for (writer, bytes) in &writers {
                assigner.owner(*bytes, &[(*writer, *bytes)]);
            }
            for rank in 0..ranks {
                let above = assigner.owned(rank).saturating_sub(largest);
                prop_assert!(above * u64::from(ranks) <= 2 * total, "rank {rank} owns {above}");
            }
        }

        #[test]
        fn whole_units_stay_with_their_writers_up_to_the_fair_share(
            ranks in 1u32..20,
            of_rank in 1usize..20,
            // Any order of writing.
            order in any::<u64>(),
            quarters in 0u32..=4,
        ) {
            let mut writers: Vec<u32> = (0..ranks).flat_map(|r| vec![r; of_rank]).collect();
            let mut state = order;
            for i in (1..writers.len()).rev() {
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                writers.swap(i, (state >> 33) as usize % (i + 1));
            }
            let total = 10 * writers.len() as u64;
            let mut assigner = Assigner::new(ranks as usize, total, f64::from(quarters) / 4.0);
            for writer in writers {
                prop_assert_eq!(assigner.owner(10, &[(writer, 10)]), writer);
            }
        }

        #[test]
        fn without_a_penalty_the_largest_writer_owns(
            (ranks, units) in (1u32..20).prop_flat_map(|ranks| (Just(ranks), units(ranks))),
        ) {
            let mut assigner = Assigner::new(ranks as usize, total(&units), 0.0);
            let mut hdf5 = LargestWriter::new(ranks as usize);
            for (bytes, accesses) in &units {
                let (ours, theirs) = (assigner.owner(*bytes, accesses), hdf5.owner(accesses));
                let of = |rank| accesses.iter().find(|(r, _)| *r == rank).map_or(0, |(_, b)| *b);
                prop_assert_eq!(of(ours), of(theirs));
                let largest = accesses.iter().filter(|(_, bytes)| *bytes == of(theirs)).count();
                if largest == 1 && of(theirs) > 0 {
                    prop_assert_eq!(ours, theirs);
                }
            }
        }

        #[test]
        fn large_numbers_are_compared_as_small_ones(
            (a, b, c, d, e) in (any::<u64>(), any::<u32>(), any::<u64>(), any::<u16>(), any::<u16>()),
        ) {
            let narrow = (u128::from(a) * u128::from(b)).cmp(&(u128::from(c) * u128::from(d) * u128::from(e)));
            let left = Wide::from(u128::from(a)).times(b.into());
            let right = Wide::from(u128::from(c)).times(d.into()).times(e.into());
            prop_assert_eq!(left.cmp(&right), narrow);
            // Twice 64 bits more on both sides change nothing.
            let more = 1u128 << 96;
            let first = (u128::from(a), b.into());
            prop_assert_eq!(compare_products(first, (u128::from(c), d.into(), e.into())), narrow);
            let (a, c) = (u128::from(a as u32) * more, u128::from(c as u32) * more);
            let wide = compare_products((a, u64::from(b) << 32), (c, u64::from(d) << 32, e.into()));
            let left = (a >> 96) * u128::from(b);
            let right = (c >> 96) * u128::from(d) * u128::from(e);
            prop_assert_eq!(wide, left.cmp(&right));
        }
    }

    #[test]
    fn the_largest_jobs_are_weighed_without_overflow() {
        let mut assigner = Assigner::new(usize::MAX, u64::MAX, f64::INFINITY).scaled(u64::MAX);
        let owners = [0; 4].map(|_| assigner.owner(u64::MAX / 4, &[(7, u64::MAX / 4)]));
        assert_eq!(owners, [7, 0, 1, 2]);
        let mut assigner = Assigner::new(2, 0, f64::NAN);
        assert_eq!([0; 3].map(|_| assigner.owner(0, &[(1, 0)])), [0, 1, 0]);
        assert_eq!(Assigner::new(0, 1, -1.0).owner(5, &[]), 0);
    }

    #[test]
    fn ranks_that_do_not_exist_own_nothing() {
        assert_eq!(Assigner::new(2, 10, 1.0).owner(10, &[(2, 10)]), 0);
    }

    #[test]
    fn equal_writers_take_turns_as_in_hdf5() {
        let accesses = [(0, 25), (1, 25), (2, 25), (3, 25)];
        let (mut ours, mut hdf5) = (Assigner::new(4, 800, 1.0), LargestWriter::new(4));
        for turn in 0..8 {
            assert_eq!(ours.owner(100, &accesses), turn % 4);
            assert_eq!(hdf5.owner(&accesses), turn % 4);
        }
    }

    #[test]
    fn homes_begin_at_ranks_of_their_own() {
        let first: Vec<u32> = (0..4).map(|home| first_of_home(home, 4, 10)).collect();
        assert_eq!(first, [0, 2, 5, 7]);
        assert_eq!(first_of_home(3, 0, 0), 0);
        let mut assigner = Assigner::new(4, 400, 1.0).starting_at(2);
        assert_eq!([0; 4].map(|_| assigner.owner(100, &[])), [2, 3, 0, 1]);
    }
}
