//! An auction for places at ranks.
//!
//! Bertsekas' auction with places at one rank as like objects: a patch bids for the cheapest place of the rank where it
//! gains most, and pays as much more as it gains there over its second choice, and a step. When all have a place, no
//! patch could gain more than a step elsewhere. Large steps first make prices that are about right.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use super::Patches;

/// Steps of the auctions, as shares of the largest patch: the first finds prices, the last decides.
const STEPS: [i64; 2] = [8, 64];

/// The owner of each patch, where ranks have so many places: as many in all as there are patches. Ranks that nobody
/// names with a place have none.
pub fn assign(patches: &Patches, places: &[(u32, u32)]) -> Vec<u32> {
    let mut auction = Auction::new(patches, places);
    let most = patches.iter().flatten().map(|(_, bytes)| *bytes).max().unwrap_or(0);
    let most = i64::try_from(most).unwrap_or(i64::MAX) / 4;
    for step in STEPS {
        auction.run((most / step * 4).max(1));
    }
    auction.owners.iter().map(|&seller| auction.ranks[seller as usize]).collect()
}

const NOBODY: u32 = u32::MAX;

/// A place: its price, and the patch that has it.
type Place = Reverse<(i64, u32)>;

struct Auction<'a> {
    patches: &'a Patches,
    /// The rank of each seller.
    ranks: Vec<u32>,
    of_rank: HashMap<u32, u32>,
    /// Each seller's places, the cheapest first.
    places: Vec<BinaryHeap<Place>>,
    cheapest: Cheapest,
    owners: Vec<u32>,
}

impl Auction<'_> {
    fn new<'a>(patches: &'a Patches, places: &[(u32, u32)]) -> Auction<'a> {
        let mut left = patches.len();
        let mut ranks = Vec::new();
        let mut all = Vec::new();
        for &(rank, count) in places.iter().filter(|(_, count)| *count > 0) {
            let count = (count as usize).min(left);
            left -= count;
            if count > 0 {
                ranks.push(rank);
                all.push(vec![Reverse((0, NOBODY)); count].into());
            }
        }
        if left > 0 {
            // Fewer places than patches: the last rank, or rank 0, takes what is left.
            match all.last_mut() {
                Some(last) => BinaryHeap::extend(last, vec![Reverse((0, NOBODY)); left]),
                None => {
                    ranks.push(0);
                    all.push(vec![Reverse((0, NOBODY)); left].into());
                }
            }
        }
        let of_rank = ranks.iter().enumerate().map(|(i, &rank)| (rank, i as u32)).collect();
        let cheapest = Cheapest::new(&all);
        let owners = vec![NOBODY; patches.len()];
        Auction { patches, ranks, of_rank, places: all, cheapest, owners }
    }

    /// Everybody bids anew, at the prices that there are.
    fn run(&mut self, step: i64) {
        for (seller, places) in self.places.iter_mut().enumerate() {
            let free = places.drain().map(|Reverse((price, _))| Reverse((price, NOBODY)));
            *places = free.collect::<Vec<_>>().into();
            self.cheapest.set(seller, lowest(places));
        }
        let mut bidders: Vec<u32> = (0..self.patches.len() as u32).rev().collect();
        while let Some(patch) = bidders.pop() {
            let (seller, price) = self.bid(patch, step);
            let places = &mut self.places[seller];
            let Some(Reverse((_, before))) = places.pop() else { continue };
            places.push(Reverse((price, patch)));
            self.cheapest.set(seller, lowest(places));
            self.owners[patch as usize] = seller as u32;
            if before != NOBODY {
                bidders.push(before);
            }
        }
    }

    /// The seller where the patch gains most, and what it pays there.
    fn bid(&self, patch: u32, step: i64) -> (usize, i64) {
        let (mut best, mut second) = ((i64::MIN, 0), i64::MIN);
        let mut offer = |gain: i64, seller: usize| {
            if gain > best.0 {
                (best, second) = ((gain, seller), best.0.max(second));
            } else {
                second = second.max(gain);
            }
        };
        let accesses = self.patches.of(patch as usize);
        for (rank, bytes) in accesses {
            if let Some(&seller) = self.of_rank.get(rank) {
                let bytes = i64::try_from(*bytes).unwrap_or(i64::MAX) / 4;
                offer(
                    bytes.saturating_mul(4) - self.cheapest.price(seller as usize),
                    seller as usize,
                );
            }
        }
        // Others have nothing of it: the cheapest two stand for all.
        let has = |seller: usize| accesses.iter().any(|(rank, _)| *rank == self.ranks[seller]);
        let first = self.cheapest.first();
        if !has(first) {
            offer(-self.cheapest.price(first), first);
        }
        if let Some(next) = self.cheapest.without(first).filter(|&next| !has(next)) {
            offer(-self.cheapest.price(next), next);
        }
        let (gain, seller) = best;
        // The next place of the same rank is a choice as well.
        let mut top = self.places[seller].clone_two();
        let (price, next) = (top.next().unwrap_or(0), top.next());
        if let Some(next) = next {
            second = second.max(gain + price - next);
        }
        let more = if second == i64::MIN { 0 } else { gain - second };
        (seller, price.saturating_add(more).saturating_add(step))
    }
}

fn lowest(places: &BinaryHeap<Place>) -> i64 {
    places.peek().map_or(i64::MAX / 4, |Reverse((price, _))| *price)
}

/// The lowest two prices of a heap.
trait LowestTwo {
    fn clone_two(&self) -> std::vec::IntoIter<i64>;
}

impl LowestTwo for BinaryHeap<Place> {
    fn clone_two(&self) -> std::vec::IntoIter<i64> {
        // The second of a binary heap is one of the two below the first.
        let places = self.as_slice();
        let price = |i: usize| places.get(i).map(|Reverse((price, _))| *price);
        let second = match (price(1), price(2)) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        price(0).into_iter().chain(second).collect::<Vec<_>>().into_iter()
    }
}

/// The seller with the lowest price: a tournament.
struct Cheapest {
    /// Prices of sellers, padded to a power of two.
    prices: Vec<i64>,
    /// For each inner node the winner below; node 1 is the root.
    winners: Vec<u32>,
}

impl Cheapest {
    fn new(places: &[BinaryHeap<Place>]) -> Cheapest {
        let size = places.len().next_power_of_two().max(1);
        let mut prices: Vec<i64> = places.iter().map(lowest).collect();
        prices.resize(size, i64::MAX);
        let mut tree = Cheapest { prices, winners: vec![0; size] };
        (1..size).rev().for_each(|node| tree.play(node));
        tree
    }

    fn contestant(&self, node: usize) -> u32 {
        let size = self.prices.len();
        if node >= size { (node - size) as u32 } else { self.winners[node] }
    }

    fn play(&mut self, node: usize) {
        let (a, b) = (self.contestant(2 * node), self.contestant(2 * node + 1));
        let wins = self.prices[a as usize] <= self.prices[b as usize];
        self.winners[node] = if wins { a } else { b };
    }

    fn set(&mut self, seller: usize, price: i64) {
        self.prices[seller] = price;
        let mut node = (seller + self.prices.len()) / 2;
        while node >= 1 {
            self.play(node);
            node /= 2;
        }
    }

    fn price(&self, seller: usize) -> i64 {
        self.prices[seller]
    }

    fn first(&self) -> usize {
        self.contestant(1) as usize
    }

    /// The best of the others.
    fn without(&self, seller: usize) -> Option<usize> {
        let mut node = seller + self.prices.len();
        let mut best: Option<u32> = None;
        while node > 1 {
            let other = self.contestant(node ^ 1);
            if best.is_none_or(|best| self.prices[other as usize] < self.prices[best as usize]) {
                best = Some(other);
            }
            node /= 2;
        }
        best.map(|best| best as usize).filter(|&best| self.prices[best] < i64::MAX)
    }
}
