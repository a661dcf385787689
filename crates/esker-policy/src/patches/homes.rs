//! What homes and ranks decide before the auctions, each from what it has.

use std::collections::HashMap;

use super::exchange::exchange;
use super::{EXTRA_STEPS, Patches, assign};

/// What choosing owners takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Effort {
    /// Bytes of the home that holds most: accesses, places and owners.
    pub memory: u64,
    /// Places that went from one home to another.
    pub given: u64,
}

/// How many patches each rank gets: as many as all, rounded down or up. One more get those who have most of a patch
/// beyond the others' number, in steps of a patch over [`EXTRA_STEPS`]; where these are equal, lower ranks.
///
/// On many ranks the histogram of the steps is reduced, and a scan tells each rank how many before it are on the step
/// that is only partly served.
pub fn quotas(patches: u64, demands: &[f64]) -> Vec<u32> {
    let ranks = demands.len().max(1) as u64;
    let (floor, mut extra) = (patches / ranks, patches % ranks);
    let step = |demand: &f64| {
        let beyond = (demand - floor as f64).clamp(0.0, 1.0);
        (beyond * (EXTRA_STEPS - 1) as f64) as usize
    };
    let mut histogram = vec![0u64; EXTRA_STEPS];
    demands.iter().for_each(|demand| histogram[step(demand)] += 1);
    // All steps above this one are served, and of this one so many.
    let mut last = EXTRA_STEPS;
    while last > 0 && histogram[last - 1] <= extra {
        last -= 1;
        extra -= histogram[last];
    }
    let quota = |demand: &f64| {
        let step = step(demand);
        let partly = step + 1 == last && extra > 0;
        extra -= u64::from(partly);
        (floor + u64::from(step >= last || partly)) as u32
    };
    demands.iter().map(quota).collect()
}

/// A rank's places for the homes that asked for so many patches: in proportion, whole, the largest remainders first.
/// None is for homes that asked for nothing.
pub fn split(places: u32, asked: &[f64]) -> Vec<u32> {
    let all: f64 = asked.iter().sum();
    if all <= 0.0 || !all.is_finite() {
        return vec![0; asked.len()];
    }
    let share = |asked: f64| f64::from(places) * (asked / all);
    let mut given: Vec<u32> = asked.iter().map(|&a| share(a) as u32).collect();
    let mut order: Vec<usize> = (0..asked.len()).collect();
    let rest = |&i: &usize| share(asked[i]) - share(asked[i]).floor();
    order.sort_by(|a, b| rest(b).total_cmp(&rest(a)).then(a.cmp(b)));
    let left = places - given.iter().sum::<u32>().min(places);
    order.iter().cycle().take(left as usize).for_each(|&i| given[i] += 1);
    given
}

/// Places that homes have too many of, for those who have too few: both in order, the first for the first.
/// `spare[home]` are what a home can do without, `lacking[home]` how many it needs.
pub fn balance(spare: &[Vec<(u32, u32)>], lacking: &[u64]) -> Vec<Vec<(u32, u32)>> {
    let mut places = spare.iter().flatten().copied();
    let mut now = (0, 0);
    let take = |lacking: &u64| {
        let (mut lacking, mut taken) = (*lacking, Vec::new());
        while lacking > 0 {
            if now.1 == 0 {
                let Some(next) = places.next() else { break };
                now = next;
            }
            let count = lacking.min(now.1.into()) as u32;
            if count > 0 {
                taken.push((now.0, count));
            }
            now.1 -= count;
            lacking -= u64::from(count);
        }
        taken
    };
    lacking.iter().map(take).collect()
}

/// The places of a home: by rank, how many it was given and how many it asked for.
type Given = Vec<(u32, u32, f64)>;

/// Takes from a home what is more than it has patches, where it asked for least; none if it is not too much.
fn take_spare(given: &mut Given, patches: u64) -> Vec<(u32, u32)> {
    let have: u64 = given.iter().map(|(_, count, _)| u64::from(*count)).sum();
    let mut over = have.saturating_sub(patches);
    // Places one by one: the last of a rank that was given much more than it asked for goes first.
    let mut places: Vec<(f64, usize)> = Vec::new();
    if over > 0 {
        for (i, (_, count, asked)) in given.iter().enumerate() {
            places.extend((0..*count).map(|place| (asked - f64::from(place), i)));
        }
        places.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    }
    let mut spare: Vec<(u32, u32)> = Vec::new();
    for (_, i) in places {
        if over == 0 {
            break;
        }
        given[i].1 -= 1;
        over -= 1;
        spare.push((given[i].0, 1));
    }
    spare.sort_unstable();
    spare
}

/// The owners of all homes' patches, chosen as homes and ranks would, and what that takes.
pub fn owners_by_homes(ranks: u32, homes: &[&Patches]) -> (Vec<Vec<u32>>, Effort) {
    let ranks = ranks.max(1);
    let patches: u64 = homes.iter().map(|home| home.len() as u64).sum();
    // What ranks are asked: (rank, home, patches), by rank.
    let mut asked: Vec<(u32, u32, f64)> = Vec::new();
    for (home, list) in homes.iter().enumerate() {
        let demands = list.demands().into_iter().filter(|(rank, _)| *rank < ranks);
        asked.extend(demands.map(|(rank, demand)| (rank, home as u32, demand)));
    }
    asked.sort_by_key(|&(rank, home, _)| (rank, home));
    let mut demands = vec![0.0; ranks as usize];
    asked.iter().for_each(|&(rank, _, demand)| demands[rank as usize] += demand);
    let quotas = quotas(patches, &demands);

    let mut given: Vec<Given> = vec![Vec::new(); homes.len()];
    let mut spare: Vec<Vec<(u32, u32)>> = vec![Vec::new(); homes.len()];
    let mut at = 0;
    for (rank, &quota) in quotas.iter().enumerate() {
        let end = at + asked[at..].iter().take_while(|(r, _, _)| *r as usize == rank).count();
        let mine = &asked[at..end];
        at = end;
        if mine.is_empty() && !homes.is_empty() {
            // A rank without data offers its places where a home of its share of the ranks would.
            spare[rank * homes.len() / ranks as usize].push((rank as u32, quota));
        }
        let shares: Vec<f64> = mine.iter().map(|(_, _, demand)| *demand).collect();
        for (&(_, home, demand), count) in mine.iter().zip(split(quota, &shares)) {
            given[home as usize].push((rank as u32, count, demand));
        }
    }
    let mut lacking = Vec::with_capacity(homes.len());
    let mut effort = Effort::default();
    for ((given, list), spare) in given.iter_mut().zip(homes).zip(&mut spare) {
        let needed = list.len() as u64;
        spare.extend(take_spare(given, needed));
        let have: u64 = given.iter().map(|(_, count, _)| u64::from(*count)).sum();
        lacking.push(needed - have.min(needed));
    }
    let taken = balance(&spare, &lacking);
    let mut all = Vec::with_capacity(homes.len());
    for ((given, taken), list) in given.iter().zip(&taken).zip(homes) {
        let mut places: Vec<(u32, u32)> = given.iter().map(|&(rank, n, _)| (rank, n)).collect();
        places.extend(taken);
        places.sort_unstable();
        places.dedup_by(|next, kept| {
            let same = next.0 == kept.0;
            kept.1 += if same { next.1 } else { 0 };
            same
        });
        effort.given += taken.iter().map(|(_, count)| u64::from(*count)).sum::<u64>();
        // Places are kept with price and patch, once more as the rank asked for them, and owners.
        let memory = list.memory() + 40 * places.len() as u64 + (16 + 12) * list.len() as u64;
        effort.memory = effort.memory.max(memory);
        let mut owners = assign(list, &places);
        // Ranks with all their places here may have one more or one less.
        let floor = patches / u64::from(ranks);
        let own = places.iter().filter(|(rank, count)| quotas[*rank as usize] == *count);
        let more: HashMap<u32, bool> =
            own.map(|&(rank, count)| (rank, u64::from(count) > floor)).collect();
        if !patches.is_multiple_of(u64::from(ranks)) {
            exchange(list, &mut owners, &more);
        }
        all.push(owners);
    }
    (all, effort)
}
