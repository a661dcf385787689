//! Who gets one patch more is decided before anyone knows how patches fall. Afterwards, chains of moves correct it: a
//! patch goes from a rank with one more to a second, another from there to a third, up to a rank with one less.

use std::collections::{HashMap, HashSet};

use super::Patches;

/// The longest chain, in patches that move.
const CHAIN: usize = 3;
/// Rounds, in each of which chains that do not touch are carried out.
const ROUNDS: usize = 12;

/// Changes owners where less moves then. `more` says of ranks that may gain or lose a patch whether they have one more
/// than others.
pub(super) fn exchange(patches: &Patches, owners: &mut [u32], more: &HashMap<u32, bool>) {
    let mut more = more.clone();
    for _ in 0..ROUNDS {
        let layers = layers(patches, owners, &more);
        let mut ends: Vec<(i64, usize, u32)> = Vec::new();
        for (steps, layer) in layers.iter().enumerate().skip(1) {
            let less = layer.iter().filter(|(rank, _)| more.get(rank) == Some(&false));
            ends.extend(
                less.filter(|(_, (gain, _))| *gain > 0).map(|(r, (gain, _))| (*gain, steps, *r)),
            );
        }
        ends.sort_unstable_by(|a, b| b.cmp(a));
        let mut used = HashSet::new();
        let mut carried_out = 0;
        for (_, steps, end) in ends {
            let Some(chain) = chain(&layers, owners, steps, end) else { continue };
            let first = chain.first().map_or(end, |&(patch, _)| owners[patch]);
            let ranks: Vec<u32> = chain.iter().map(|&(_, to)| to).chain([first]).collect();
            let distinct = ranks.iter().enumerate().all(|(i, rank)| !ranks[..i].contains(rank));
            if !distinct || ranks.iter().any(|rank| used.contains(rank)) {
                continue;
            }
            used.extend(ranks);
            chain.iter().for_each(|&(patch, to)| owners[patch] = to);
            more.insert(first, false);
            more.insert(end, true);
            carried_out += 1;
        }
        if carried_out == 0 {
            return;
        }
    }
}

/// For each rank that chains of so many moves reach: what stays more by the best of them, and the patch of its last move.
type Layer = HashMap<u32, (i64, usize)>;

fn layers(patches: &Patches, owners: &[u32], more: &HashMap<u32, bool>) -> Vec<Layer> {
    let starts = more.iter().filter(|(_, more)| **more);
    let mut layers: Vec<Layer> = vec![starts.map(|(rank, _)| (*rank, (0, usize::MAX))).collect()];
    for _ in 0..CHAIN {
        let Some(before) = layers.last() else { break };
        let mut next = Layer::new();
        for (patch, (accesses, owner)) in patches.iter().zip(owners).enumerate() {
            let Some((gain, _)) = before.get(owner) else { continue };
            let bytes = |b: u64| i64::try_from(b).unwrap_or(i64::MAX / 4);
            let own = accesses.iter().find(|(rank, _)| rank == owner).map_or(0, |(_, b)| bytes(*b));
            for (rank, other) in accesses.iter().filter(|(rank, _)| rank != owner) {
                let gain = gain.saturating_add(bytes(*other) - own);
                let kept = next.entry(*rank).or_insert((i64::MIN, patch));
                if gain > kept.0 {
                    *kept = (gain, patch);
                }
            }
        }
        layers.push(next);
    }
    layers
}

/// The moves of a chain, the first one first: patches and where they go.
fn chain(layers: &[Layer], owners: &[u32], steps: usize, end: u32) -> Option<Vec<(usize, u32)>> {
    let (mut moves, mut rank) = (Vec::new(), end);
    for layer in layers[1..=steps].iter().rev() {
        let &(_, patch) = layer.get(&rank)?;
        moves.push((patch, rank));
        rank = owners[patch];
    }
    moves.reverse();
    Some(moves)
}
