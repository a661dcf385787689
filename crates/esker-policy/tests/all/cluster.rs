//! Cuboids are disjoint, cover what the boxes cover, and say what fills them.

use std::collections::HashMap;

use esker_policy::boxes::Boxes;
use esker_policy::cluster::{ClusterError, Clusters, Limits, cluster};
use proptest::prelude::*;

type Hyperslab = (Vec<u64>, Vec<u64>);

fn boxes(dims: usize, slabs: &[Hyperslab]) -> Boxes {
    let mut boxes = Boxes::new(dims);
    slabs.iter().for_each(|(start, count)| boxes.push(start, count).unwrap());
    boxes
}

/// Every element of a hyperslab, in order.
fn elements(start: &[u64], count: &[u64]) -> Vec<Vec<u64>> {
    let mut all = vec![Vec::new()];
    for (start, count) in start.iter().zip(count) {
        let longer = |element: Vec<u64>| {
            (*start..start + count).map(move |at| [&element[..], &[at]].concat())
        };
        all = all.into_iter().flat_map(longer).collect();
    }
    all
}

/// Who has an element last; who has how many boxes over it.
fn bitmap(slabs: &[Hyperslab]) -> HashMap<Vec<u64>, usize> {
    let each = slabs.iter().enumerate();
    each.flat_map(|(index, (start, count))| {
        elements(start, count).into_iter().map(move |element| (element, index))
    })
    .collect()
}

/// Lays the sources into each cuboid as a writer would, and compares every element with the bitmap.
fn judge(slabs: &[Hyperslab], given: &Boxes, merged: &Clusters) {
    let expected = bitmap(slabs);
    let mut laid: HashMap<Vec<u64>, usize> = HashMap::new();
    let mut parts = 0;
    for (number, cuboid) in merged.cuboids().enumerate() {
        let mut filled: HashMap<Vec<u64>, usize> = HashMap::new();
        let mut last = None;
        for source in merged.sources(number) {
            assert!(last < Some(source), "sources are in the order of the boxes");
            last = Some(source);
            parts += 1;
            let (start, count) = cuboid.intersection(given.get(source)).expect("a part of the box");
            filled.extend(elements(&start, &count).into_iter().map(|element| (element, source)));
        }
        let all = elements(&cuboid.start(), &cuboid.count());
        assert_eq!(filled.len(), all.len(), "every element of a cuboid is filled");
        for element in all {
            assert_eq!(laid.insert(element, usize::MAX), None, "cuboids are disjoint");
        }
        laid.extend(filled);
    }
    assert_eq!(laid, expected);
    assert_eq!(parts, merged.parts());
}

/// Boxes on a grid of blocks, some of them missing, in any order: what codes with moving blocks have.
fn blocks() -> impl Strategy<Value = (usize, Vec<Hyperslab>)> {
    (1..=4usize).prop_flat_map(|dims| {
        let block = proptest::collection::vec((0..[16, 6, 4, 3][dims - 1] as u64, Just(())), dims);
        proptest::collection::vec(block, 1..40).prop_map(move |places| {
            let mut places: Vec<Vec<u64>> = places
                .into_iter()
                .map(|place| place.into_iter().map(|(at, ())| at).collect())
                .collect();
            let mut seen = std::collections::HashSet::new();
            places.retain(|place| seen.insert(place.clone()));
            let lengths = [2, 1, 3, 2];
            let slab = |place: Vec<u64>| {
                let start = place.iter().zip(lengths).map(|(at, length)| at * length).collect();
                (start, lengths[..dims].to_vec())
            };
            (dims, places.into_iter().map(slab).collect())
        })
    })
}

/// Boxes of any shape anywhere, most of which overlap.
fn anywhere() -> impl Strategy<Value = (usize, Vec<Hyperslab>)> {
    (1..=4usize).prop_flat_map(|dims| {
        let side = [40, 14, 8, 5][dims - 1] as u64;
        let range = (0..side).prop_flat_map(move |start| (Just(start), 1..=(side - start).min(5)));
        let slab =
            proptest::collection::vec(range, dims).prop_map(|ranges| ranges.into_iter().unzip());
        (Just(dims), proptest::collection::vec(slab, 0..24))
    })
}

proptest! {
    #[test]
    fn cuboids_of_blocks_cover_exactly_what_the_blocks_cover(((dims, slabs), cut) in (blocks(), any::<bool>())) {
        let given = boxes(dims, &slabs);
        let merged = cluster(&given, &Limits { cut, ..Limits::default() }).unwrap();
        judge(&slabs, &given, &merged);
        prop_assert!(merged.len() <= slabs.len());
        if !cut {
            prop_assert_eq!(merged.parts(), slabs.len(), "a block that is not cut is one part of one cuboid");
        }
    }

    #[test]
    fn where_boxes_overlap_the_later_one_wins(((dims, slabs), cut) in (anywhere(), any::<bool>())) {
        let given = boxes(dims, &slabs);
        let merged = cluster(&given, &Limits { cut, parts_per_box: 1000 }).unwrap();
        judge(&slabs, &given, &merged);
    }

    #[test]
    fn without_cutting_a_box_that_overlaps_none_stays_whole((dims, slabs) in anywhere()) {
        let given = boxes(dims, &slabs);
        let merged = cluster(&given, &Limits { cut: false, parts_per_box: 1000 }).unwrap();
        for (index, (start, count)) in slabs.iter().enumerate() {
            let alone = (0..slabs.len()).filter(|other| *other != index)
                .all(|other| given.get(index).intersection(given.get(other)).is_none());
            if alone {
                let whole = (0..merged.len()).filter(|at| merged.sources(*at).any(|source| source == index));
                let whole: Vec<_> = whole.map(|at| merged.cuboids().nth(at).unwrap()
                    .intersection(given.get(index)).unwrap()).collect();
                prop_assert_eq!(whole, vec![(start.clone(), count.clone())]);
            }
        }
    }

    #[test]
    fn where_in_the_array_boxes_lie_changes_nothing((dims, slabs) in anywhere()) {
        let far = u64::MAX - 64;
        let moved: Vec<Hyperslab> = slabs.iter().map(|(start, count)| {
            (start.iter().map(|start| start + far).collect(), count.clone())
        }).collect();
        let limits = Limits { parts_per_box: 1000, ..Limits::default() };
        let here = cluster(&boxes(dims, &slabs), &limits).unwrap();
        let there = cluster(&boxes(dims, &moved), &limits).unwrap();
        prop_assert_eq!(here.len(), there.len());
        for (here, there) in here.cuboids().zip(there.cuboids()) {
            prop_assert_eq!(here.count(), there.count());
            prop_assert_eq!(here.start()[0] + far, there.start()[0]);
        }
    }
}

#[test]
fn a_checkerboard_without_an_edge_in_any_histogram_ends() {
    let squares = (0..8u64).flat_map(|y| (0..8u64).map(move |x| (y, x)));
    let slabs: Vec<Hyperslab> = squares
        .filter(|(y, x)| (y + x) % 2 == 0)
        .map(|(y, x)| (vec![3 * y, 5 * x], vec![3, 5]))
        .collect();
    let given = boxes(2, &slabs);
    for cut in [false, true] {
        let merged = cluster(&given, &Limits { cut, ..Limits::default() }).unwrap();
        judge(&slabs, &given, &merged);
        assert_eq!(merged.len(), 32);
    }
    let cubes = (0..64u64).map(|at| vec![at / 16, at / 4 % 4, at % 4]);
    let slabs: Vec<Hyperslab> =
        cubes.filter(|at| at.iter().sum::<u64>() % 2 == 0).map(|at| (at, vec![1, 1, 1])).collect();
    assert_eq!(cluster(&boxes(3, &slabs), &Limits::default()).unwrap().len(), 32);
}

#[test]
fn the_blocks_of_process_0_in_figure_8_are_16_and_become_6() {
    // The paper's counts; the blocks are an arrangement of 16 of 4 x 4 x 4 with the same outcome: two beams of
    // four, a plate of four, a beam of two, and two alone.
    let beams = [[0u64, 0], [3, 3]].map(|[y, z]| (0..4).map(move |x| vec![x, y, z]));
    let plate = [[0u64, 2, 1], [0, 3, 1], [1, 2, 1], [1, 3, 1]].map(|at| at.to_vec());
    let others = [[3u64, 1, 2], [2, 1, 2], [0, 0, 3], [2, 2, 0]].map(|at| at.to_vec());
    let blocks = beams.into_iter().flatten().chain(plate).chain(others);
    let slabs: Vec<Hyperslab> =
        blocks.map(|at| (at.into_iter().map(|at| 128 * at).collect(), vec![128; 3])).collect();
    assert_eq!(slabs.len(), 16);
    assert_eq!(
        cluster(&boxes(3, &slabs), &Limits { cut: false, ..Limits::default() }).unwrap().len(),
        6
    );
}

#[test]
fn nothing_scalars_and_copies_are_merged_too() {
    assert!(cluster(&Boxes::new(3), &Limits::default()).unwrap().is_empty());
    let scalar = boxes(0, &[(vec![], vec![]), (vec![], vec![])]);
    let merged = cluster(&scalar, &Limits::default()).unwrap();
    assert_eq!((merged.len(), merged.sources(0).collect::<Vec<_>>()), (1, vec![0, 1]));
    let all = (vec![7, 0], vec![2, u64::MAX]);
    let merged = cluster(&boxes(2, &[all.clone(), all.clone()]), &Limits::default()).unwrap();
    assert_eq!((merged.len(), merged.parts()), (1, 2));
    assert_eq!(merged.cuboids().next().unwrap().start(), [7, 0]);
    // A box over others hides them, and says so by its place.
    let hidden = [(vec![0, 0], vec![1, 1]), (vec![1, 1], vec![1, 1]), (vec![0, 0], vec![3, 3])];
    let merged = cluster(&boxes(2, &hidden), &Limits::default()).unwrap();
    assert_eq!((merged.len(), merged.sources(0).collect::<Vec<_>>()), (1, vec![0, 1, 2]));
}

#[test]
fn strips_that_make_millions_of_cuboids_are_an_error_before_they_take_memory() {
    let across = (0..4000u64).map(|at| (vec![2 * at, 0], vec![1, 8000]));
    let along = (0..4000u64).map(|at| (vec![0, 2 * at], vec![8000, 1]));
    let slabs: Vec<Hyperslab> = across.chain(along).collect();
    let error = cluster(&boxes(2, &slabs), &Limits::default()).unwrap_err();
    assert_eq!(error, ClusterError::Parts { boxes: 8000, most: 128_000 });
    assert_eq!(
        error.to_string(),
        "8000 boxes overlap so much that merging them makes more than 128000 parts"
    );
}

#[test]
fn boxes_that_share_no_coordinates_are_swept_in_parts_and_still_exact() {
    // Halved again and again at places of their own: a tree of cuts, no plane of which goes through.
    let mut slabs: Vec<Hyperslab> = vec![(vec![0, 0, 0], vec![1 << 40, 1 << 40, 1 << 40])];
    let mut seed = 7u64;
    while slabs.len() < 3000 {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let (start, count) = slabs.swap_remove((seed >> 33) as usize % slabs.len());
        let longest = (0..3).max_by_key(|dim| count[*dim]).unwrap();
        let at = count[longest] / 4 + (seed >> 20) % (count[longest] / 2);
        let (mut upper, mut below, mut above) = (start.clone(), count.clone(), count.clone());
        (upper[longest], below[longest], above[longest]) =
            (start[longest] + at, at, count[longest] - at);
        slabs.extend([(start, below), (upper, above)]);
    }
    let all = boxes(3, &slabs);
    assert_eq!(cluster(&all, &Limits::default()).unwrap().len(), 1);
    // One of six is gone: no more cuboids than boxes, no element twice, all of them.
    let most: Vec<Hyperslab> =
        slabs.into_iter().enumerate().filter(|(at, _)| at % 6 != 0).map(|(_, slab)| slab).collect();
    let given = boxes(3, &most);
    let merged = cluster(&given, &Limits::default()).unwrap();
    assert!(merged.len() <= most.len(), "{} of {}", merged.len(), most.len());
    let volume = |count: &[u64]| count.iter().map(|count| u128::from(*count)).product::<u128>();
    let covered: u128 = merged.cuboids().map(|cuboid| volume(&cuboid.count())).sum();
    assert_eq!(covered, most.iter().map(|(_, count)| volume(count)).sum::<u128>());
    for (number, cuboid) in merged.cuboids().enumerate() {
        let of_boxes = merged
            .sources(number)
            .map(|source| volume(&cuboid.intersection(given.get(source)).unwrap().1));
        assert_eq!(of_boxes.sum::<u128>(), volume(&cuboid.count()));
    }
}
