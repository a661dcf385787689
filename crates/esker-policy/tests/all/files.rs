//! Promises about cuts into files.

use esker_policy::files::{
    bytes_of_files, cut, cut_by_homes, equal_counts, largest, optimal, paper,
};
use proptest::prelude::*;

/// The smallest largest file of any cut: by trying all of them.
fn best(files: usize, sizes: &[u64]) -> u64 {
    if files <= 1 {
        return sizes.iter().sum();
    }
    let cuts = 1..=sizes.len() + 1 - files;
    let with = |first: usize| best(files - 1, &sizes[first..]).max(sizes[..first].iter().sum());
    cuts.map(with).min().unwrap_or(0)
}

fn sizes() -> impl Strategy<Value = Vec<u64>> {
    let size = prop_oneof![0u64..10, 0u64..1000, Just(5), 1u64 << 30..1 << 40];
    prop::collection::vec(size, 1..200)
}

proptest! {
    #[test]
    fn the_best_cut_is_the_best_of_all(files in 1usize..5, sizes in prop::collection::vec(0u64..50, 1..12)) {
        let files = files.min(sizes.len());
        prop_assert_eq!(largest(&optimal(files as u64, &sizes), &sizes), best(files, &sizes));
    }

    #[test]
    fn the_largest_file_is_within_a_fiftieth_of_the_best_and_none_is_idle(
        files in 1u64..60,
        sizes in sizes(),
        homes in 1usize..9,
    ) {
        let shares: Vec<&[u64]> = sizes.chunks(sizes.len().div_ceil(homes)).collect();
        let (starts, _) = cut_by_homes(files, &shares);
        prop_assert_eq!(starts.len() as u64, files.min(sizes.len() as u64));
        prop_assert_eq!(starts[0], 0);
        prop_assert!(starts.windows(2).all(|pair| pair[0] < pair[1]));
        prop_assert!(*starts.last().unwrap() < sizes.len() as u64);
        let (ours, least) = (largest(&starts, &sizes), largest(&optimal(files, &sizes), &sizes));
        prop_assert!(ours as f64 <= 1.02 * least as f64, "{ours}, and {least} is possible");
        // Whoever holds the sizes, the cut is the same.
        prop_assert_eq!(cut(files, &sizes), starts);
    }

    #[test]
    fn every_byte_is_in_one_file(files in 1u64..60, sizes in sizes()) {
        for starts in [cut(files, &sizes), equal_counts(files, &sizes), paper(files, &sizes), optimal(files, &sizes)] {
            let total: u64 = sizes.iter().sum();
            prop_assert_eq!(bytes_of_files(&starts, &sizes).iter().sum::<u64>(), total);
        }
    }
}

#[test]
fn the_papers_rule_can_be_worse_than_equal_counts_and_leave_files_empty() {
    // Small patches run up to just below the average, and then a large one comes.
    let sizes = [9, 100, 9, 100, 9, 100];
    let over = |starts: Vec<u64>| largest(&starts, &sizes);
    assert_eq!(over(cut(3, &sizes)), 109);
    assert!(over(paper(3, &sizes)) >= over(equal_counts(3, &sizes)));
    // The last patch is most of it, and the one before it took the average: files are left without anything.
    let sizes = [100, 1, 1, 1000];
    assert!(paper(4, &sizes).len() < 4);
    assert_eq!(cut(4, &sizes), [0, 1, 2, 3]);
}

#[test]
fn nothing_is_cut_into_nothing() {
    assert!(
        cut(4, &[]).is_empty() && optimal(4, &[]).is_empty() && equal_counts(4, &[]).is_empty()
    );
    assert_eq!(cut(0, &[3, 4]), [0]);
    assert_eq!(cut(2, &[0, 0]), [0, 1]);
    assert_eq!(cut(3, &[u64::MAX, u64::MAX, 1]), [0, 1, 2]);
}

#[test]
fn a_home_holds_its_share_and_little_more() {
    let sizes: Vec<u64> = (0..100_000u64).map(|i| i * 7919 % 1000 + 1).collect();
    let shares: Vec<&[u64]> = sizes.chunks(1000).collect();
    let (starts, effort) = cut_by_homes(64, &shares);
    assert_eq!(starts.len(), 64);
    assert!(effort.memory <= 8 * (1000 + 64) + 2048, "{effort:?}");
    assert!(effort.passes <= 4, "{effort:?}");
}
