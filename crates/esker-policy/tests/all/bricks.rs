//! Where elements lie in bricks, and which shape bricks get.

use esker_policy::bricks::{
    BrickError, Bricks, LEAST_BYTES, MOST_BYTES, Mix, Wanted, choose, expected_seconds,
};
use esker_policy::reading::{Costs, Span};
use proptest::prelude::*;

/// All indices of a box, in rows.
fn indices(start: &[u64], count: &[u64]) -> Vec<Vec<u64>> {
    let mut all = vec![Vec::new()];
    for (start, count) in start.iter().zip(count) {
        let longer =
            |index: Vec<u64>| (*start..start + count).map(move |at| [&index[..], &[at]].concat());
        all = all.into_iter().flat_map(longer).collect();
    }
    all
}

fn cuboid_and_brick() -> impl Strategy<Value = Vec<(u64, u64)>> {
    proptest::collection::vec((1..9u64, 1..12u64), 0..5).prop_filter("small", |sides| {
        sides.iter().map(|(length, _)| length).product::<u64>() < 3000
    })
}

proptest! {
    #[test]
    fn bricks_lie_one_behind_the_other_each_dense_and_in_rows(sides in cuboid_and_brick()) {
        let (cuboid, brick): (Vec<u64>, Vec<u64>) = sides.into_iter().unzip();
        let bricks = Bricks::new(&cuboid, &brick).unwrap();
        let mut offset = 0;
        for number in 0..bricks.len() {
            let (start, extents) = bricks.extent(number).unwrap();
            let begin = offset;
            for index in indices(&start, &extents) {
                let place = bricks.place(&index).unwrap();
                prop_assert_eq!((place.brick, place.begin, place.within), (number, begin, offset - begin));
                prop_assert_eq!(place.offset(), offset);
                prop_assert_eq!(bricks.index(offset), Some(index));
                offset += 1;
            }
        }
        prop_assert_eq!(offset, cuboid.iter().product::<u64>());
        prop_assert_eq!(bricks.elements(), offset);
        prop_assert_eq!(bricks.extent(bricks.len()), None);
        prop_assert_eq!(bricks.index(offset), None);
        prop_assert_eq!(bricks.place(&cuboid).filter(|_| !cuboid.is_empty()), None);
    }

    #[test]
    fn a_box_touches_the_bricks_that_have_its_elements(
        sides in cuboid_and_brick(),
        ends in proptest::collection::vec((0..10u64, 0..10u64), 5),
    ) {
        let (cuboid, brick): (Vec<u64>, Vec<u64>) = sides.into_iter().unzip();
        let bricks = Bricks::new(&cuboid, &brick).unwrap();
        let (start, count): (Vec<u64>, Vec<u64>) = ends.into_iter().take(cuboid.len()).unzip();
        let mut expected: Vec<u64> =
            indices(&start, &count).iter().filter_map(|index| Some(bricks.place(index)?.brick)).collect();
        expected.sort_unstable();
        expected.dedup();
        prop_assert_eq!(bricks.touched(&start, &count).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn bricks_have_16_to_256_kibibytes(
        cuboid in proptest::collection::vec(1..3000u64, 1..5), element in prop_oneof![Just(1u64), Just(4), Just(8)],
    ) {
        let brick = choose(&cuboid, element, &Mix::Common, &Costs::default()).unwrap();
        let bytes = |lengths: &[u64]| lengths.iter().product::<u64>() * element;
        let fits = bytes(&brick) <= MOST_BYTES && bytes(&brick) >= LEAST_BYTES.min(bytes(&cuboid));
        // Lengths are powers of two or the cuboid's, so that a least size may be passed over: never by half.
        prop_assert!(fits || bytes(&cuboid) <= LEAST_BYTES, "{:?} of {:?}", brick, cuboid);
        prop_assert!(brick.iter().zip(&cuboid).all(|(brick, cuboid)| brick <= cuboid));
    }
}

#[test]
fn impossible_bricks_are_errors_not_addresses() {
    assert_eq!(Bricks::new(&[3, 0], &[1, 1]), Err(BrickError::Empty { dimension: 1 }));
    assert_eq!(Bricks::new(&[3, 4], &[0, 1]), Err(BrickError::Empty { dimension: 0 }));
    assert_eq!(Bricks::new(&[3, 4], &[1]), Err(BrickError::Dimensions { cuboid: 2, brick: 1 }));
    assert_eq!(Bricks::new(&[1 << 32, 1 << 32], &[1, 1]), Err(BrickError::Elements));
    let largest = Bricks::new(&[u64::MAX], &[1 << 40]).unwrap();
    assert_eq!(largest.index(u64::MAX - 1), Some(vec![u64::MAX - 1]));
    assert_eq!(largest.place(&[u64::MAX - 1]).unwrap().offset(), u64::MAX - 1);
    assert_eq!(largest.touched(&[u64::MAX - 2], &[u64::MAX]).collect::<Vec<_>>(), [(1 << 24) - 1]);
    assert!(choose(&[1 << 40, 1 << 40], 8, &Mix::Common, &Costs::default()).is_err());
}

#[test]
fn the_shape_follows_the_reads() {
    let one = |spans: Vec<Span>| Mix::Known(vec![Wanted { spans, weight: 1.0 }]);
    let chosen = |mix: &Mix| choose(&[192, 192, 192], 4, mix, &Costs::default()).unwrap();
    // Planes across the fastest dimension want bricks that are thin there, whatever they are elsewhere.
    let across = chosen(&one(vec![Span::All, Span::All, Span::Elements(1)]));
    assert_eq!(across[2], 1, "{across:?}");
    let slowest = chosen(&one(vec![Span::Elements(1), Span::All, Span::All]));
    assert_eq!(slowest[0], 1, "{slowest:?}");
    assert_eq!(slowest[2], 192, "{slowest:?}");
    // All six together: no dimension is one element, none is the whole.
    let mixed = chosen(&Mix::Common);
    assert!(mixed.iter().all(|side| (2..192).contains(side)), "{mixed:?}");
    // The model says that a plane across the fastest dimension is far cheaper than in rows.
    let costs = Costs::default();
    let plane = [Span::All, Span::All, Span::Elements(1)];
    let seconds = |brick: &[u64]| expected_seconds(&[192; 3], brick, 4, &plane, &costs);
    assert!(
        seconds(&mixed) * 2.0 < seconds(&[192; 3]),
        "{} {}",
        seconds(&mixed),
        seconds(&[192; 3])
    );
}

#[test]
fn many_dimensions_end_soon_and_small_cuboids_are_one_brick() {
    let many = vec![3u64; 30];
    let brick = choose(&many, 8, &Mix::Common, &Costs::default()).unwrap();
    assert!(brick.iter().product::<u64>() * 8 <= MOST_BYTES);
    assert_eq!(choose(&[8, 8, 8], 8, &Mix::Common, &Costs::default()).unwrap(), [8, 8, 8]);
    assert_eq!(choose(&[], 8, &Mix::Common, &Costs::default()).unwrap(), [0u64; 0]);
}
