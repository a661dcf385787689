//! Two dimensions: a partition into as few rectangles as there can be.
//!
//! A *chord* is a cut between two concave corners. A partition along a largest set of chords of which no two touch,
//! and with one more cut from every corner that has none, is the smallest there is (Lipski, Lodi, Luccio, Mugnai and
//! Pagli 1979; Ohtsuki 1982). Horizontal chords are where a sweep's rectangles meet and both ends of what they share are
//! corners; those along the other dimension are in the other sweep. Chords that touch are a graph of two sides, in which
//! a matching tells the largest set.

use std::collections::{BTreeSet, VecDeque};

use super::cells::Cells;

/// A cut across the first dimension at `at`, or across the second one: from `low` to `high` along the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Chord {
    at: u32,
    low: u32,
    high: u32,
}

/// The smallest partition, of the sweep along both dimensions in order and that in reverse order; `None` if more than
/// `most` pairs of chords touch.
pub(super) fn fewest(swept: &Cells, across: &Cells, most: usize) -> Option<Cells> {
    let mut first = chords(swept, 0);
    let mut second = chords(across, 1);
    first.sort_unstable();
    second.sort_unstable_by_key(|chord| (chord.low, chord.high, chord.at));
    let touching = touching(&first, &second, most)?;
    let chosen = independent(&touching, second.len());
    let chosen: Vec<Chord> = second
        .into_iter()
        .zip(chosen)
        .filter_map(|(chord, chosen)| chosen.then_some(chord))
        .collect();
    Some(cut(swept, &chosen))
}

/// The chords of a sweep whose slabs follow each other along this dimension.
fn chords(swept: &Cells, along: usize) -> Vec<Chord> {
    let (low, high) = (2 * along, 2 * along + 1);
    let (from, to) = (2 - low, 3 - low);
    let mut ending: Vec<&[u32]> = swept.iter().collect();
    let mut beginning = ending.clone();
    ending.sort_unstable_by_key(|cell| (cell[high], cell[from]));
    beginning.sort_unstable_by_key(|cell| (cell[low], cell[from]));
    let mut chords = Vec::new();
    let mut first = 0;
    for below in ending {
        // Whatever ends before this one begins, or lies at a lower place, touches nothing that comes.
        while beginning.get(first).is_some_and(|above| {
            (above[low], above[to]) <= (below[high], below[from]) && above[low] <= below[high]
        }) {
            first += 1;
        }
        let touching = beginning[first..]
            .iter()
            .take_while(|above| above[low] == below[high] && above[from] < below[to]);
        for above in touching {
            if above[from] != below[from] && above[to] != below[to] {
                chords.push(Chord {
                    at: below[high],
                    low: above[from].max(below[from]),
                    high: above[to].min(below[to]),
                });
            }
        }
    }
    chords
}

/// For each chord across the first dimension, which of the other ones (by `low`) it meets, ends included.
fn touching(first: &[Chord], second: &[Chord], most: usize) -> Option<Vec<Vec<u32>>> {
    let mut ending: Vec<(u32, u32, u32)> =
        second.iter().zip(0..).map(|(chord, index)| (chord.high, chord.at, index)).collect();
    ending.sort_unstable();
    let mut beginning = second.iter().zip(0u32..).peekable();
    let mut ending = ending.into_iter().peekable();
    let mut open = BTreeSet::new();
    let mut pairs = 0;
    let mut touching = Vec::with_capacity(first.len());
    for chord in first {
        while let Some((new, index)) = beginning.next_if(|(new, _)| new.low <= chord.at) {
            open.insert((new.at, index));
        }
        while let Some((_, at, index)) = ending.next_if(|(high, ..)| *high < chord.at) {
            open.remove(&(at, index));
        }
        let met = open.range((chord.low, 0)..=(chord.high, u32::MAX));
        let met: Vec<u32> = met.map(|(_, index)| *index).take(most + 1).collect();
        pairs += met.len();
        if pairs > most {
            return None;
        }
        touching.push(met);
    }
    Some(touching)
}

/// Of a graph with two sides, given as the neighbours of each on the first: a largest independent set's part of the
/// second side, by König's theorem.
fn independent(neighbours: &[Vec<u32>], second: usize) -> Vec<bool> {
    let (of_first, of_second) = matching(neighbours, second);
    // Reached from the unmatched of the first side, along any edge there and along the matching back.
    let mut reached = vec![false; second];
    let mut waiting: Vec<usize> =
        (0..neighbours.len()).filter(|one| of_first[*one].is_none()).collect();
    while let Some(one) = waiting.pop() {
        for other in &neighbours[one] {
            let other = *other as usize;
            if !std::mem::replace(&mut reached[other], true) {
                waiting.extend(of_second[other]);
            }
        }
    }
    reached.into_iter().map(|reached| !reached).collect()
}

/// A largest matching (Hopcroft and Karp): the partner of each on both sides.
fn matching(neighbours: &[Vec<u32>], second: usize) -> (Vec<Option<usize>>, Vec<Option<usize>>) {
    let mut of_first: Vec<Option<usize>> = vec![None; neighbours.len()];
    let mut of_second: Vec<Option<usize>> = vec![None; second];
    loop {
        // How many steps away from an unmatched one.
        let mut distance = vec![usize::MAX; neighbours.len()];
        let mut queue: VecDeque<usize> = VecDeque::new();
        for one in (0..neighbours.len()).filter(|one| of_first[*one].is_none()) {
            distance[one] = 0;
            queue.push_back(one);
        }
        let mut ends = false;
        while let Some(one) = queue.pop_front() {
            for other in &neighbours[one] {
                match of_second[*other as usize] {
                    None => ends = true,
                    Some(next) if distance[next] == usize::MAX => {
                        distance[next] = distance[one] + 1;
                        queue.push_back(next);
                    }
                    Some(_) => {}
                }
            }
        }
        if !ends {
            return (of_first, of_second);
        }
        let mut tried = vec![0; neighbours.len()];
        for one in 0..neighbours.len() {
            if of_first[one].is_none() {
                augment(one, neighbours, &distance, &mut tried, &mut of_first, &mut of_second);
            }
        }
    }
}

/// Walks from an unmatched one to an unmatched other by steps of the distance, and matches along the way.
fn augment(
    from: usize,
    neighbours: &[Vec<u32>],
    distance: &[usize],
    tried: &mut [usize],
    of_first: &mut [Option<usize>],
    of_second: &mut [Option<usize>],
) {
    let mut way = vec![from];
    while let Some(one) = way.last().copied() {
        let Some(other) = neighbours[one].get(tried[one]).map(|other| *other as usize) else {
            way.pop();
            continue;
        };
        tried[one] += 1;
        match of_second[other] {
            None => {
                let mut other = Some(other);
                while let (Some(one), Some(new)) = (way.pop(), other) {
                    of_second[new] = Some(one);
                    other = of_first[one].replace(new);
                }
                return;
            }
            Some(next) if distance[next] == distance[one].wrapping_add(1) => way.push(next),
            Some(_) => {}
        }
    }
}

/// The rectangles of the first sweep, cut at chords across the second dimension.
fn cut(swept: &Cells, chords: &[Chord]) -> Cells {
    let mut cells: Vec<&[u32]> = swept.iter().collect();
    cells.sort_unstable();
    let mut ending: Vec<(u32, u32, u32)> =
        chords.iter().zip(0..).map(|(chord, index)| (chord.high, chord.at, index)).collect();
    ending.sort_unstable();
    let mut beginning = chords.iter().zip(0u32..).peekable();
    let mut ending = ending.into_iter().peekable();
    let mut open = BTreeSet::new();
    let mut pieces = Cells::new(2);
    for cell in cells {
        while let Some((new, index)) = beginning.next_if(|(new, _)| new.low <= cell[0]) {
            open.insert((new.at, index));
        }
        while let Some((_, at, index)) = ending.next_if(|(high, ..)| *high <= cell[0]) {
            open.remove(&(at, index));
        }
        let mut from = cell[2];
        for (at, _) in open.range((cell[2] + 1, 0)..(cell[3], 0)) {
            pieces.push(&[cell[0], cell[1], from, *at]);
            from = *at;
        }
        pieces.push(&[cell[0], cell[1], from, cell[3]]);
    }
    pieces
}
