//! How long merging a million boxes takes, and how many cuboids come of them:
//! `cargo bench -p esker-policy --bench cluster`; with a word behind `--`, the cases that have it in their name.

use std::time::Instant;

use esker_policy::boxes::Boxes;
use esker_policy::cluster::{Limits, cluster};
use esker_policy::dealt::{Dealing, Dealt};

/// Numbers that look random.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((u128::from(self.0) * u128::from(end)) >> 64) as u64
    }
}

/// Blocks of a grid of 100 x 100 x 100, in any order, of which each is kept that the rule keeps.
fn blocks(numbers: &mut Numbers, keep: impl Fn([u64; 3], &mut Numbers) -> bool) -> Boxes {
    let mut places: Vec<[u64; 3]> =
        (0..1_000_000).map(|at| [at / 10_000, at / 100 % 100, at % 100]).collect();
    places.retain(|place| keep(*place, numbers));
    for at in (1..places.len()).rev() {
        places.swap(at, numbers.below(at as u64 + 1) as usize);
    }
    let mut boxes = Boxes::new(3);
    places.iter().for_each(|place| boxes.push(&place.map(|at| 16 * at), &[16; 3]).unwrap());
    boxes
}

/// Space halved at places of their own until there are so many boxes; one of six is left out.
fn halved(numbers: &mut Numbers, count: usize) -> Boxes {
    let mut all = vec![([0u64; 3], [1u64 << 40; 3])];
    while all.len() < count {
        let at = numbers.below(all.len() as u64) as usize;
        let (start, size) = all.swap_remove(at);
        let longest = (0..3).max_by_key(|dim| size[*dim]).unwrap_or(0);
        let cut = size[longest] / 4 + numbers.below(size[longest] / 2);
        let (mut upper, mut below, mut above) = (start, size, size);
        (upper[longest], below[longest]) = (start[longest] + cut, cut);
        above[longest] -= cut;
        all.extend([(start, below), (upper, above)]);
    }
    let mut boxes = Boxes::new(3);
    let kept = all.iter().enumerate().filter(|(at, _)| at % 6 != 0);
    kept.for_each(|(_, (start, size))| boxes.push(start, size).unwrap());
    boxes
}

/// Boxes of some cells, anywhere, so that a third of them overlaps.
fn overlapping(numbers: &mut Numbers) -> Boxes {
    let mut boxes = Boxes::new(3);
    for _ in 0..1_000_000 {
        let start: [u64; 3] = std::array::from_fn(|_| numbers.below(4000));
        let count: [u64; 3] = std::array::from_fn(|_| 1 + numbers.below(50));
        boxes.push(&start, &count).unwrap();
    }
    boxes
}

/// What each rank, or each node of six, takes to merge its blocks on a Morton curve.
fn of_ranks() {
    let dealt = Dealt::new(&[16, 32, 32], &[128; 3], 1536, Dealing::Morton).expect("enough blocks");
    for ranks in [1, 6] {
        let all: Vec<Boxes> = (0..1536 / ranks)
            .map(|first| {
                let mut boxes = Boxes::new(3);
                let appended = dealt.boxes(first * ranks..(first + 1) * ranks, &mut boxes);
                appended.expect("blocks of the array");
                boxes
            })
            .collect();
        let begun = Instant::now();
        let merged = all.iter().filter_map(|boxes| cluster(boxes, &Limits::default()).ok());
        let cuboids: usize = merged.map(|merged| merged.len()).sum();
        let each = begun.elapsed().as_secs_f64() / all.len() as f64;
        let mean = cuboids as f64 / all.len() as f64;
        println!("{ranks} of 1536 ranks: {:.1} µs, {mean:.2} cuboids", each * 1e6);
    }
}

fn main() {
    of_ranks();
    let numbers = &mut Numbers(1);
    let cases = [
        ("a full grid", blocks(numbers, |_, _| true)),
        (
            "a ball",
            blocks(numbers, |at, _| at.map(|at| at.abs_diff(50).pow(2)).iter().sum::<u64>() < 2400),
        ),
        ("half of a grid", blocks(numbers, |_, numbers| numbers.below(2) == 0)),
        ("nine of ten", blocks(numbers, |_, numbers| numbers.below(10) != 0)),
        ("a checkerboard", blocks(numbers, |at, _| at.iter().sum::<u64>() % 2 == 0)),
        ("halved space", halved(numbers, 1_000_000)),
        ("anywhere", overlapping(numbers)),
    ];
    let wanted: Vec<String> =
        std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let is_wanted = |name: &str| wanted.is_empty() || wanted.iter().any(|word| name.contains(word));
    for (name, boxes) in cases.iter().filter(|(name, _)| is_wanted(name)) {
        for cut in [true, false] {
            let begun = Instant::now();
            let merged = cluster(boxes, &Limits { cut, ..Limits::default() });
            let seconds = begun.elapsed().as_secs_f64();
            let made = merged.map_or_else(
                |error| error.to_string(),
                |merged| format!("{} cuboids of {} parts", merged.len(), merged.parts()),
            );
            let cut = if cut { "" } else { ", whole" };
            println!("{name}{cut}: {} boxes, {seconds:.2} s, {made}", boxes.len());
        }
    }
}
