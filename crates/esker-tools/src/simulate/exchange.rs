//! Messages and bytes of an exchange over windows, for as many ranks as one likes.
//!
//! Who has something of a window is a range of neighbours, so that windows, nodes and ranks are counted, and nothing is
//! sent. Counted for three roads: messages from rank to owner, windows in the memory of their nodes with messages between
//! them, and the same with what goes between nodes gathered into one message for each pair of them.

use std::fmt;
use std::ops::Range;

use crate::Progress;

/// Who has which bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Share {
    /// Each rank a stretch, one behind the other.
    Contiguous,
    /// All ranks in turn, so many bytes each.
    Strided(u64),
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Share::Contiguous => f.write_str("contiguous"),
            Share::Strided(bytes) => write!(f, "strided by {bytes} bytes"),
        }
    }
}

/// A collective write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exchange {
    /// Ranks, neighbours on a node, evenly on all.
    pub ranks: u64,
    /// Nodes, at most as many.
    pub nodes: u64,
    /// Ranks of a node that own windows.
    pub aggregators_per_node: u64,
    /// Bytes of a window.
    pub window: u64,
    /// Bytes of a rank.
    pub bytes_per_rank: u64,
    /// Which.
    pub share: Share,
}

/// What is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sent {
    /// Messages from node to node.
    pub between_nodes: u64,
    /// Messages within nodes.
    pub within_nodes: u64,
    /// Bytes of values from node to node.
    pub bytes_between: u64,
    /// Messages that a rank sends in a round, of the rank and round that have most; of couriers, at most so many.
    pub most_in_a_round: u64,
}

/// What was counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counted {
    /// Ranks that own windows.
    pub aggregators: u64,
    /// Rounds.
    pub rounds: u64,
    /// By messages from every rank to every owner.
    pub by_ranks: Sent,
    /// With windows in the memory of nodes.
    pub shared: Sent,
    /// With that, and one message for each pair of nodes.
    pub gathered: Sent,
}

impl Exchange {
    /// Counts. `None` if numbers are not above 0, nodes are more than ranks, or the file has more bytes than there are numbers.
    pub fn count(&self, progress: &mut dyn Progress) -> Option<Counted> {
        let of_share = match self.share {
            Share::Contiguous => 1,
            Share::Strided(bytes) => bytes,
        };
        let numbers = [self.ranks, self.nodes, self.aggregators_per_node, self.window, of_share];
        let file = self.ranks.checked_mul(self.bytes_per_rank)?;
        file.checked_add(self.ranks.checked_mul(of_share.max(self.window))?)?;
        if numbers.contains(&0) || self.nodes > self.ranks || self.bytes_per_rank == 0 {
            return None;
        }
        let aggregators = self.nodes.saturating_mul(self.aggregators_per_node).min(self.ranks);
        let span = self.window.checked_mul(aggregators)?;
        let rounds = file.div_ceil(span);
        let (by_ranks, shared, gathered) = Default::default();
        let mut all = Counted { aggregators, rounds, by_ranks, shared, gathered };
        for round in 0..rounds {
            self.count_round(round * span..(round * span).saturating_add(span).min(file), &mut all);
            progress.progress(round + 1, rounds);
        }
        Some(all)
    }

    /// The node of a rank.
    fn node_of(&self, rank: u64) -> u64 {
        (u128::from(rank) * u128::from(self.nodes) / u128::from(self.ranks)) as u64
    }

    /// The ranks of a node.
    fn ranks_of(&self, node: u64) -> Range<u64> {
        let first = |node: u64| {
            (u128::from(node) * u128::from(self.ranks)).div_ceil(u128::from(self.nodes)) as u64
        };
        first(node)..first(node + 1)
    }

    /// The ranks that have something of these bytes of the file: one range, or two where it goes over the last rank.
    fn ranks_at(&self, bytes: &Range<u64>) -> [Range<u64>; 2] {
        match self.share {
            Share::Contiguous => {
                let first = bytes.start / self.bytes_per_rank;
                [first..(bytes.end - 1) / self.bytes_per_rank + 1, 0..0]
            }
            Share::Strided(len) => {
                let (first, end) = (bytes.start / len, (bytes.end - 1) / len + 1);
                if end - first >= self.ranks {
                    return [0..self.ranks, 0..0];
                }
                let (first, count) = (first % self.ranks, end - first);
                let over = (first + count).saturating_sub(self.ranks);
                [first..first + count - over, 0..over]
            }
        }
    }

    /// How many bytes before `end` of the file are of these ranks.
    fn bytes_of(&self, ranks: &Range<u64>, end: u64) -> u64 {
        let within = |from: u64, to: u64, at: u64| at.clamp(from, to) - from;
        match self.share {
            Share::Contiguous => {
                within(ranks.start * self.bytes_per_rank, ranks.end * self.bytes_per_rank, end)
            }
            Share::Strided(len) => {
                let turn = len * self.ranks;
                let whole = end / turn * (ranks.end - ranks.start) * len;
                whole + within(ranks.start * len, ranks.end * len, end % turn)
            }
        }
    }

    fn count_round(&self, round: Range<u64>, all: &mut Counted) {
        let count = all.aggregators;
        let owner = |n: u64| (u128::from(n) * u128::from(self.ranks) / u128::from(count)) as u64;
        // Changes from rank to rank of how many messages each sends: to owners, to owners elsewhere, to couriers.
        let mut steps = vec![[0i64; 3]; self.ranks as usize + 1];
        let add = |steps: &mut Vec<[i64; 3]>, range: &Range<u64>, which: usize, n: i64| {
            if range.start < range.end {
                steps[range.start as usize][which] += n;
                steps[range.end as usize][which] -= n;
            }
        };
        // To how many others each node sends.
        let mut sends = vec![0u64; self.nodes as usize];
        let mut most_owners = 0;
        let (mut number, mut at) = (0, round.start);
        while at < round.end {
            // The windows of one node's owners.
            let (node, first) = (self.node_of(owner(number)), at);
            let here = self.ranks_of(node);
            let mut owners = 0;
            while at < round.end && self.node_of(owner(number)) == node {
                let bytes = at..(at + self.window).min(round.end);
                for range in self.ranks_at(&bytes) {
                    let own = u64::from(range.contains(&owner(number)));
                    let near = overlap(&range, &here);
                    all.by_ranks.between_nodes += len(&range) - near;
                    all.by_ranks.within_nodes += near - own;
                    add(&mut steps, &range, 0, 1);
                    add(&mut steps, &range, 1, 1);
                    let near = range.start.max(here.start)..range.end.min(here.end);
                    add(&mut steps, &near, 1, -1);
                    if own == 1 {
                        let one = owner(number)..owner(number) + 1;
                        add(&mut steps, &one, 0, -1);
                    }
                }
                (at, number, owners) = (bytes.end, number + 1, owners + 1);
            }
            // Together they are one stretch of the file.
            let ranges = self.ranks_at(&(first..at));
            let inside = self.bytes_of(&here, at) - self.bytes_of(&here, first);
            all.by_ranks.bytes_between += at - first - inside;
            let mut nodes: Vec<u64> = Vec::new();
            for range in ranges.iter().filter(|range| range.start < range.end) {
                nodes.extend(self.node_of(range.start)..=self.node_of(range.end - 1));
                add(&mut steps, range, 2, 1);
                let near = range.start.max(here.start)..range.end.min(here.end);
                add(&mut steps, &near, 2, -1);
            }
            nodes.sort_unstable();
            nodes.dedup();
            nodes.retain(|other| *other != node);
            nodes.iter().for_each(|other| sends[*other as usize] += 1);
            most_owners = owners.max(most_owners);
            let others = nodes.len() as u64;
            all.gathered.between_nodes += others;
            // Couriers hand out to each owner what came.
            all.gathered.within_nodes += others.min(len(&here)) * owners;
        }
        all.shared.between_nodes = all.by_ranks.between_nodes;
        all.shared.bytes_between = all.by_ranks.bytes_between;
        all.gathered.bytes_between = all.by_ranks.bytes_between;
        // What a courier packs for other nodes, and hands out to the owners of its own.
        let shares =
            (0..self.nodes).map(|node| sends[node as usize].div_ceil(len(&self.ranks_of(node))));
        let passed_on = shares.max().unwrap_or(0) + most_owners;
        let mut sent = [0i64; 3];
        for (rank, step) in steps[..self.ranks as usize].iter().enumerate() {
            sent.iter_mut().zip(step).for_each(|(sent, step)| *sent += step);
            let couriers = (sent[2] as u64).min(len(&self.ranks_of(self.node_of(rank as u64))));
            all.gathered.within_nodes += couriers;
            let most = |most: &mut u64, now: u64| *most = (*most).max(now);
            most(&mut all.by_ranks.most_in_a_round, sent[0] as u64);
            most(&mut all.shared.most_in_a_round, sent[1] as u64);
            most(&mut all.gathered.most_in_a_round, couriers + passed_on);
        }
    }
}

fn len(range: &Range<u64>) -> u64 {
    range.end.saturating_sub(range.start)
}

fn overlap(one: &Range<u64>, other: &Range<u64>) -> u64 {
    one.end.min(other.end).saturating_sub(one.start.max(other.start))
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;
    use crate::Unseen;

    /// The same, byte by byte and letter by letter.
    fn one_by_one(of: &Exchange) -> Counted {
        let aggregators = (of.nodes * of.aggregators_per_node).min(of.ranks);
        let (file, span) = (of.ranks * of.bytes_per_rank, of.window * aggregators);
        let node = |rank: u64| rank * of.nodes / of.ranks;
        let (by_ranks, shared, gathered) = Default::default();
        let rounds = file.div_ceil(span);
        let mut all = Counted { aggregators, rounds, by_ranks, shared, gathered };
        for round in 0..rounds {
            let mut letters: BTreeMap<(u64, u64), u64> = BTreeMap::new();
            for byte in round * span..(round * span).saturating_add(span).min(file) {
                let from = match of.share {
                    Share::Contiguous => byte / of.bytes_per_rank,
                    Share::Strided(len) => byte / len % of.ranks,
                };
                let number = (byte - round * span) / of.window;
                *letters.entry((from, number * of.ranks / aggregators)).or_default() += 1;
            }
            letters.retain(|(from, to), _| from != to);
            let mut sent: BTreeMap<u64, [u64; 3]> = BTreeMap::new();
            let (mut pairs, mut couriers, mut handed) =
                (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
            let size = |n: u64| (0..of.ranks).filter(|rank| node(*rank) == n).count() as u64;
            for ((from, to), bytes) in &letters {
                let sent = sent.entry(*from).or_default();
                sent[0] += 1;
                if node(*from) == node(*to) {
                    all.by_ranks.within_nodes += 1;
                    continue;
                }
                sent[1] += 1;
                all.by_ranks.between_nodes += 1;
                all.by_ranks.bytes_between += bytes;
                pairs.insert((node(*from), node(*to)));
                couriers.insert((*from, node(*to) % size(node(*from))));
                handed.insert((node(*from) % size(node(*to)), *to));
            }
            all.gathered.between_nodes += pairs.len() as u64;
            all.gathered.within_nodes += (couriers.len() + handed.len()) as u64;
            for (rank, [plain, shared, _]) in sent {
                let own = couriers.iter().filter(|(from, _)| *from == rank).count() as u64;
                let most = |most: &mut u64, now: u64| *most = (*most).max(now);
                most(&mut all.by_ranks.most_in_a_round, plain);
                most(&mut all.shared.most_in_a_round, shared);
                most(&mut all.gathered.most_in_a_round, own);
            }
        }
        all.shared.between_nodes = all.by_ranks.between_nodes;
        all.shared.bytes_between = all.by_ranks.bytes_between;
        all.gathered.bytes_between = all.by_ranks.bytes_between;
        all
    }

    #[test]
    fn counting_by_ranges_is_counting_one_by_one() {
        for (ranks, nodes) in [(6, 2), (6, 3), (7, 3), (12, 4), (5, 5), (4, 1), (16, 3)] {
            for (aggregators_per_node, window) in [(1, 64), (2, 48), (2, 10), (9, 100)] {
                for share in [Share::Contiguous, Share::Strided(4), Share::Strided(30)] {
                    let bytes_per_rank = 240;
                    let of = Exchange {
                        ranks,
                        nodes,
                        aggregators_per_node,
                        window,
                        bytes_per_rank,
                        share,
                    };
                    let counted = of.count(&mut Unseen).unwrap();
                    let expected = one_by_one(&of);
                    assert_eq!(counted.by_ranks, expected.by_ranks, "{of:?}");
                    assert_eq!(counted.shared, expected.shared, "{of:?}");
                    let (found, right) = (counted.gathered, expected.gathered);
                    assert_eq!(found.between_nodes, right.between_nodes, "{of:?}");
                    // Where few ranks have something, a courier may have nothing for one of the owners.
                    assert!(found.within_nodes >= right.within_nodes, "{of:?}");
                    assert!(found.most_in_a_round >= right.most_in_a_round, "{of:?}");
                }
            }
        }
    }

    #[test]
    fn numbers_that_cannot_be_are_refused() {
        let good = Exchange {
            ranks: 4,
            nodes: 2,
            aggregators_per_node: 1,
            window: 10,
            bytes_per_rank: 100,
            share: Share::Contiguous,
        };
        assert!(good.count(&mut Unseen).is_some());
        let wrong = [
            Exchange { ranks: 0, ..good },
            Exchange { nodes: 5, ..good },
            Exchange { window: 0, ..good },
            Exchange { share: Share::Strided(0), ..good },
            Exchange { bytes_per_rank: u64::MAX / 2, ..good },
        ];
        for wrong in wrong {
            assert_eq!(wrong.count(&mut Unseen), None, "{wrong:?}");
        }
    }
}
