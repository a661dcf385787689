//! Memory is linear in the boxes, whatever they are like.

use esker_policy::boxes::Boxes;
use esker_policy::cluster::{Limits, cluster};
use esker_testkit::memory;

/// Bytes for each box that merging has at once, beside the boxes it was given.
fn bytes_of_a_box(boxes: &Boxes) -> usize {
    let (merged, peak) = memory::peak(|| cluster(boxes, &Limits::default()));
    merged.unwrap();
    peak / boxes.len()
}

/// Half of a cube of small cubes, and boxes that share no coordinates.
fn kinds(side: u64) -> [Boxes; 2] {
    let (mut half, mut apart) = (Boxes::new(3), Boxes::new(3));
    let mut seed = 1u64;
    for at in 0..side.pow(3) {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let place = [at / side / side, at / side % side, at % side];
        if seed >> 63 == 0 {
            half.push(&place.map(|at| 16 * at), &[16; 3]).unwrap();
        }
        let jitter = [seed >> 40 & 0xff, seed >> 48 & 0xff, seed >> 55 & 0xff];
        let start: Vec<u64> =
            place.iter().zip(jitter).map(|(at, jitter)| (at << 10) + jitter).collect();
        apart.push(&start, &[512, 600, 700]).unwrap();
    }
    [half, apart]
}

#[test]
fn eight_times_the_boxes_take_eight_times_the_memory() {
    for (few, many) in kinds(12).iter().zip(&kinds(24)) {
        let (few, many) = (bytes_of_a_box(few), bytes_of_a_box(many));
        assert!(many <= 2 * few, "{few} bytes a box, then {many}");
        assert!(many <= 2000, "{many} bytes a box");
    }
}
