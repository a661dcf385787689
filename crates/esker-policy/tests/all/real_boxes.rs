//! The box lists of AMReX programs in shared/data/amr, each level whole.

use esker_policy::boxes::Boxes;
use esker_policy::cluster::{Limits, cluster};

/// The boxes of a level: corners there are inclusive.
fn level(file: &str, level: usize) -> Option<Boxes> {
    let path = esker_testkit::data::shared()?.join("amr").join(file);
    let text = std::fs::read_to_string(path).unwrap();
    let document: serde_json::Value = serde_json::from_str(&text).unwrap();
    let numbers = |corner: &serde_json::Value| -> Vec<u64> {
        corner.as_array().unwrap().iter().map(|number| number.as_u64().unwrap()).collect()
    };
    let list = document["levels"][level].as_array().unwrap();
    let mut boxes = Boxes::new(numbers(&list[0][0]).len());
    for corners in list {
        let (low, high) = (numbers(&corners[0]), numbers(&corners[1]));
        let count: Vec<u64> = low.iter().zip(&high).map(|(low, high)| high + 1 - low).collect();
        boxes.push(&low, &count).unwrap();
    }
    Some(boxes)
}

const RT: &str = "amrex_cns_rt3d_256x256x512";

/// How many cuboids a level becomes, whose number of boxes is known.
fn merged(file: &str, number: usize, boxes: usize, cut: bool) -> Option<usize> {
    let level = level(file, number)?;
    assert_eq!(level.len(), boxes, "{file}");
    let merged = cluster(&level, &Limits { cut, ..Limits::default() }).unwrap();
    let volume = |count: Vec<u64>| count.iter().product::<u64>();
    let covered: u64 = merged.cuboids().map(|cuboid| volume(cuboid.count())).sum();
    assert_eq!(covered, level.iter().map(|one| volume(one.count())).sum::<u64>(), "{file}");
    Some(merged.len())
}

#[test]
fn a_thousand_boxes_of_amrex_become_at_most_170_cuboids_and_396_without_cutting() {
    let file = format!("{RT}_bf4_mg16_eff0.97_boxes.json");
    let Some(cut) = merged(&file, 2, 1006, true) else { return };
    assert!(cut <= 170, "{cut}");
    let whole = merged(&file, 2, 1006, false).unwrap();
    assert!(whole <= 396, "{whole}");
}

#[test]
fn the_244_boxes_of_a_coarser_clustering_become_at_most_95() {
    let Some(cut) = merged(&format!("{RT}_bf4_mg32_eff0.9_boxes.json"), 2, 244, true) else {
        return;
    };
    assert!(cut <= 95, "{cut}");
}

#[test]
fn the_551_boxes_of_a_plane_become_4_and_a_full_level_1() {
    let Some(cut) = merged("amrkitchen_plt_2d_boxes.json", 1, 551, true) else { return };
    assert_eq!(cut, 4);
    assert_eq!(merged(&format!("{RT}_bf8_mg32_eff0.7_boxes.json"), 2, 64, true), Some(1));
    assert_eq!(merged("amrkitchen_plt_3d_boxes.json", 2, 64, false), Some(1));
}
