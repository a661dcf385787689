//! Each block is dealt once, along the curve that the name says.

use std::collections::HashSet;

use esker_policy::boxes::Boxes;
use esker_policy::cluster::{Limits, cluster};
use esker_policy::dealt::{DealError, Dealing, Dealt};
use proptest::prelude::*;

proptest! {
    #[test]
    fn each_block_has_one_rank_and_each_rank_a_block(
        grid in proptest::collection::vec(1..9u64, 1..4), share in 0.01..1.0f64, uneven in 0.0..1.0f64,
        kind in 0..3usize, seed in any::<u64>(),
    ) {
        let blocks = grid.iter().product::<u64>();
        let ranks = ((blocks as f64 * share).ceil() as u64).clamp(1, blocks);
        let dealt = Dealt::new(&grid, &vec![3; grid.len()], ranks, Dealing::ALL[kind]).unwrap().uneven(uneven, seed);
        let mut seen = HashSet::new();
        for rank in 0..ranks {
            let mut any = false;
            for place in dealt.of_rank(rank) {
                prop_assert!(place.iter().zip(&grid).all(|(at, length)| at < length));
                prop_assert!(seen.insert(place));
                any = true;
            }
            prop_assert!(any, "rank {} of {} has blocks", rank, ranks);
        }
        prop_assert_eq!(seen.len() as u64, blocks);
        prop_assert_eq!(dealt.of_rank(ranks).count(), 0);
    }

    #[test]
    fn the_curve_is_the_order_of_interleaved_bits(grid in proptest::collection::vec(1..20u64, 1..4)) {
        let interleaved = |place: &Vec<u64>| {
            let bits = (0..6).rev().flat_map(|bit| place.iter().map(move |at| at >> bit & 1));
            bits.fold(0u64, |all, bit| all << 1 | bit)
        };
        let dealt = Dealt::new(&grid, &vec![1; grid.len()], 1, Dealing::Morton).unwrap();
        let curve: Vec<u64> = dealt.of_rank(0).map(|place| interleaved(&place)).collect();
        prop_assert!(curve.windows(2).all(|pair| pair[0] < pair[1]), "{:?}", curve);
    }
}

/// The mean number of cuboids of a rank of the paper's run.
fn cuboids_of_a_rank(dealing: Dealing) -> f64 {
    let dealt = Dealt::new(&[16, 32, 32], &[128, 128, 128], 1536, dealing).unwrap();
    let mut cuboids = 0;
    for rank in 0..1536 {
        let mut boxes = Boxes::new(3);
        dealt.boxes(rank..rank + 1, &mut boxes).unwrap();
        cuboids += cluster(&boxes, &Limits::default()).unwrap().len();
    }
    cuboids as f64 / 1536.0
}

#[test]
fn blocks_on_a_morton_curve_merge_from_10_7_to_at_most_3_5_a_rank() {
    // Section 4.3: 256 nodes, 1,536 ranks, from roughly 10 blocks to 3.
    let cuboids = cuboids_of_a_rank(Dealing::Morton);
    assert!((1.0..=3.5).contains(&cuboids), "{cuboids}");
}

#[test]
fn blocks_that_a_knapsack_deals_do_not_merge() {
    let cuboids = cuboids_of_a_rank(Dealing::Knapsack);
    assert!(cuboids > 10.4, "{cuboids}");
}

#[test]
fn what_cannot_be_dealt_is_an_error() {
    let new = |grid: &[u64], block: &[u64], ranks| Dealt::new(grid, block, ranks, Dealing::Morton);
    assert_eq!(new(&[2, 2], &[1], 1), Err(DealError::Dimensions));
    assert_eq!(new(&[], &[], 1), Err(DealError::Dimensions));
    assert_eq!(new(&[2, 0], &[1, 1], 1), Err(DealError::Zero));
    assert_eq!(new(&[2, 2], &[1, 1], 0), Err(DealError::Zero));
    assert_eq!(new(&[2, 2], &[1, 1], 5), Err(DealError::Ranks { blocks: 4 }));
    assert_eq!(new(&[1 << 40, 1 << 40], &[1, 1], 1), Err(DealError::Size));
    assert_eq!(new(&[1 << 40], &[1 << 40], 1), Err(DealError::Size));
}
