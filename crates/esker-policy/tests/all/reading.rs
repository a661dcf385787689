//! What the read model counts, beside counting element by element.

use std::collections::BTreeSet;

use esker_policy::boxes::Boxes;
use esker_policy::bricks::Bricks;
use esker_policy::reading::{Costs, Layout, Work, work};
use proptest::prelude::*;

const BLOCK: u64 = 64;

fn costs() -> Costs {
    Costs { checksum_block: BLOCK, ..Costs::default() }
}

/// A place in storage of each element that is read, in the order of the caller's memory: which stored box, which byte there.
fn counted(places: &[(u64, u64)], element: u64) -> Work {
    let boxes: BTreeSet<u64> = places.iter().map(|place| place.0).collect();
    let blocks: BTreeSet<(u64, u64)> = places
        .iter()
        .flat_map(|(stored, at)| {
            [(*stored, at * element / BLOCK), (*stored, (at * element + element - 1) / BLOCK)]
        })
        .collect();
    let breaks = places.windows(2).filter(|pair| pair[1] != (pair[0].0, pair[0].1 + 1)).count();
    Work {
        boxes: boxes.len() as f64,
        rows: (breaks + usize::from(!places.is_empty())) as f64,
        checksum_blocks: blocks.len() as f64,
        touched_bytes: 0.0,
        copied_bytes: (places.len() as u64 * element) as f64,
    }
}

fn indices(start: &[u64], count: &[u64], shape: &[u64]) -> Vec<Vec<u64>> {
    let mut all = vec![Vec::new()];
    for ((start, count), length) in start.iter().zip(count).zip(shape) {
        let range = *start..(start + count).min(*length);
        all = all
            .into_iter()
            .flat_map(|index: Vec<u64>| range.clone().map(move |at| [&index[..], &[at]].concat()))
            .collect();
    }
    all
}

/// The bricks of an array are numbered in rows, and each is stored by itself.
fn places(shape: &[u64], sides: &[u64], start: &[u64], count: &[u64]) -> Vec<(u64, u64)> {
    let bricks = Bricks::new(shape, sides).unwrap();
    let all = indices(start, count, shape);
    all.iter()
        .map(|index| bricks.place(index).unwrap())
        .map(|place| (place.brick, place.within))
        .collect()
}

proptest! {
    #[test]
    fn boxes_rows_and_bytes_are_what_one_counts(
        dims in proptest::collection::vec((1..12u64, 1..14u64, 0..12u64, 1..13u64), 1..4),
    ) {
        let shape: Vec<u64> = dims.iter().map(|dim| dim.0).collect();
        let sides: Vec<u64> = dims.iter().map(|dim| dim.1).collect();
        let start: Vec<u64> = dims.iter().map(|dim| dim.2).collect();
        let count: Vec<u64> = dims.iter().map(|dim| dim.3).collect();
        for (layout, sides) in [(Layout::Canonical, &shape), (Layout::Blocks(sides.clone()), &sides)] {
            let model = work(&layout, &shape, &start, &count, 4, &costs());
            let expected = counted(&places(&shape, sides, &start, &count), 4);
            prop_assert_eq!(model.boxes, expected.boxes);
            prop_assert_eq!(model.copied_bytes, expected.copied_bytes);
            // Rows that follow each other through several dimensions are one: the model knows those within a box.
            prop_assert!(model.rows >= expected.rows, "{} {}", model.rows, expected.rows);
            if layout == Layout::Canonical {
                prop_assert_eq!(model.rows, expected.rows);
            }
            prop_assert!(model.checksum_blocks <= 2.0 * expected.checksum_blocks + 2.0 * expected.boxes);
            prop_assert!(2.0 * model.checksum_blocks >= expected.checksum_blocks);
        }
    }
}

#[test]
fn only_boxes_that_a_read_touches_cost_anything() {
    let mut boxes = Boxes::new(2);
    for at in 0..100 {
        boxes.push(&[at / 10 * 8, at % 10 * 8], &[8, 8]).unwrap();
    }
    let stored = Layout::Boxes { boxes: boxes.clone(), bricks: None };
    let column = work(&stored, &[80, 80], &[0, 13], &[80, 1], 8, &costs());
    assert_eq!((column.boxes, column.rows, column.copied_bytes), (10.0, 80.0, 640.0));
    let row = work(&stored, &[80, 80], &[13, 0], &[1, 80], 8, &costs());
    assert_eq!((row.boxes, row.rows), (10.0, 10.0));
    let nothing = work(&stored, &[80, 80], &[80, 0], &[1, 80], 8, &costs());
    assert_eq!(nothing, Work::default());
    // One box of all in bricks of the blocks' size is read like the blocks.
    let mut one = Boxes::new(2);
    one.push(&[0, 0], &[80, 80]).unwrap();
    let bricks = Layout::Boxes { boxes: one, bricks: Some(vec![8, 8]) };
    for (start, count) in
        [([0, 13], [80, 1]), ([13, 0], [1, 80]), ([3, 5], [40, 41]), ([0, 0], [80, 80])]
    {
        let in_blocks = work(&stored, &[80, 80], &start, &count, 8, &costs());
        assert_eq!(work(&bricks, &[80, 80], &start, &count, 8, &costs()), in_blocks);
    }
}

#[test]
fn a_plane_across_the_fastest_dimension_is_dear_in_rows_and_cheap_in_bricks() {
    // The figures of ADIOS2: one block of 192^3 takes 6 times as long as blocks of 16^3 for this plane.
    let costs = Costs::default();
    let plane = |layout: &Layout| {
        work(layout, &[192; 3], &[0, 0, 96], &[192, 192, 1], 4, &costs).seconds(&costs)
    };
    let (rows, blocks) = (plane(&Layout::Canonical), plane(&Layout::Blocks(vec![16; 3])));
    assert!(rows / blocks > 3.0, "{}", rows / blocks);
}
