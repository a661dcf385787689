//! Promises about sizes for other grids.

use esker_policy::sizes::SizeGrid;
use proptest::prelude::*;

/// All cells of a grid.
fn cells(shape: &[usize]) -> Vec<Vec<usize>> {
    let mut all = vec![vec![]];
    for &len in shape {
        all = all
            .into_iter()
            .flat_map(|c| (0..len).map(move |i| [c.clone(), vec![i]].concat()))
            .collect();
    }
    all
}

fn grids() -> impl Strategy<Value = (Vec<usize>, Vec<u64>)> {
    prop::collection::vec(1usize..6, 1..4).prop_flat_map(|shape| {
        let cells = shape.iter().product::<usize>();
        (Just(shape), prop::collection::vec(0u64..1 << 40, cells))
    })
}

proptest! {
    #[test]
    fn the_same_grid_has_the_same_sizes((shape, sizes) in grids()) {
        let grid = SizeGrid::new(&shape, sizes.clone()).unwrap();
        let same: Vec<u64> = cells(&shape).iter().map(|c| grid.at(&shape, c).unwrap()).collect();
        prop_assert_eq!(same, sizes);
    }

    #[test]
    fn no_size_is_outside_of_the_range(
        (shape, sizes) in grids(),
        lengths in prop::collection::vec(1usize..14, 3),
    ) {
        let grid = SizeGrid::new(&shape, sizes.clone()).unwrap();
        let lengths = &lengths[..shape.len()];
        let (low, high) = (sizes.iter().min().unwrap(), sizes.iter().max().unwrap());
        for cell in cells(lengths) {
            let size = grid.at(lengths, &cell).unwrap();
            prop_assert!((low..=high).contains(&&size));
        }
    }

    #[test]
    fn between_centres_sizes_are_linear_in_every_dimension(
        (shape, lengths) in (prop::collection::vec(2usize..6, 3), prop::collection::vec(1usize..20, 3)),
        slopes in prop::collection::vec(0u64..1000, 3),
    ) {
        // A plane, large enough that rounding is nothing: where the centre of a cell is tells its size.
        let plane = |at: &[f64]| 1e6 + at.iter().zip(&slopes).map(|(x, s)| x * *s as f64 * 1e3).sum::<f64>();
        let centre = |c: &Vec<usize>| c.iter().map(|&i| i as f64).collect::<Vec<_>>();
        let sizes = cells(&shape).iter().map(|c| plane(&centre(c)) as u64).collect();
        let grid = SizeGrid::new(&shape, sizes).unwrap();
        for cell in cells(&lengths) {
            let place = |((&i, &len), &own): ((&usize, &usize), &usize)| {
                ((i as f64 + 0.5) * own as f64 / len as f64 - 0.5).clamp(0.0, own as f64 - 1.0)
            };
            let at: Vec<f64> = cell.iter().zip(&lengths).zip(&shape).map(place).collect();
            let size = grid.at(&lengths, &cell).unwrap() as f64;
            prop_assert!((size - plane(&at)).abs() <= 1.0, "{cell:?}: {size} and {}", plane(&at));
        }
    }
}

#[test]
fn a_dimension_is_not_taken_for_another() {
    // Sizes that grow along the first dimension only: the other two change nothing.
    let sizes = (0..4).flat_map(|z| vec![z * 100; 6]).collect();
    let grid = SizeGrid::new(&[4, 2, 3], sizes).unwrap();
    for (y, x) in [(0, 0), (4, 0), (0, 6), (4, 6)] {
        assert_eq!(grid.at(&[8, 5, 7], &[3, y, x]), Some(125));
    }
    assert_eq!(grid.at(&[8, 5, 7], &[8, 0, 0]), None);
    assert_eq!(grid.at(&[8, 5], &[0, 0]), None);
    assert_eq!(SizeGrid::new(&[2, 2], vec![1; 3]), None);
    assert_eq!(SizeGrid::new(&[0], vec![]), None);
}
