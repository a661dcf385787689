//! A synthetic case like E3SM's land model: hundreds of variables, and hundreds of records.
//!
//! The numbers of variables and records are the model's; its maps are not at hand, so these
//! are made up, the same on every machine. Continents come from smooth noise and cover about a
//! third of a grid of latitudes and longitudes. Land cells in their natural order are cut into
//! 20 segments for each of 16 ranks, which are dealt in turn, as the land model deals its cells
//! to its ranks; the rest, which holds fill values only, is cut into one contiguous part each.
//! The grid is as large as the size asked for has room for.

use super::e3sm::{DecompositionMap, Map, Output};
use super::part;
use crate::plan::Element;
use crate::values::bits;

/// Ranks of the map, as many as E3SM's recorded ones have.
const RANKS: u64 = 16;
/// Segments of land of each rank.
const SEGMENTS: u64 = 20;
/// Levels of each map: fields, soil, lake, kinds of land, kinds of plants.
const LEVELS: [u64; 5] = [1, 15, 10, 9, 17];
/// About what a rank writes of a record in the model's own runs on two ranks and more.
const USUAL_BYTES: u64 = 256 << 20;

pub(super) const LAND: Output = Output {
    element: Element::F32,
    // Areas and masks, properties of the soil and of lakes do not change.
    variables: &[(5, 460), (6, 69), (2, 2), (0, 1), (0, 1)],
    small: &[
        // Coordinates.
        (3, Element::F32, 15, false),
        (1, Element::F32, 144, false),
        (1, Element::F32, 96, false),
        // Times and dates, time bounds, when it was written.
        (1, Element::F64, 0, true),
        (1, Element::F64, 2, true),
        (5, Element::I32, 0, true),
        (2, Element::I32, 4, true),
    ],
    usual_records: 240,
};

/// The maps for a file of about so many bytes, but of 24 cells at least.
pub(super) fn map(bytes: Option<u64>, records: Option<u64>) -> DecompositionMap {
    let records = records.unwrap_or(LAND.usual_records).max(1);
    let of_cell = LAND.variables.iter().zip(LEVELS);
    let of_cell = of_cell.map(|((once, each), n)| n * (*once as u64 + records * *each as u64));
    let of_cell: u64 = of_cell.sum::<u64>() * LAND.element.size();
    let cells = bytes.unwrap_or(USUAL_BYTES) / of_cell;
    let rows = super::root(cells * 2 / 3, 2).max(4);
    let columns = (cells / rows).max(6);
    let owned = cells_of_ranks(rows, columns);
    let cells = rows * columns;
    let maps = LEVELS.map(|levels| {
        let ranks = owned.iter().map(|runs| {
            let level = |k: u64| runs.iter().map(move |(first, len)| (k * cells + first, *len));
            (0..levels).flat_map(level).collect()
        });
        let shape = if levels == 1 { vec![rows, columns] } else { vec![levels, rows, columns] };
        Map { shape, ranks: ranks.collect() }
    });
    DecompositionMap { maps: maps.to_vec() }
}

/// The runs of cells of each rank.
fn cells_of_ranks(rows: u64, columns: u64) -> Vec<Vec<(u64, u64)>> {
    let (mut land, mut sea) = (Vec::new(), Vec::new());
    for cell in 0..rows * columns {
        let (row, column) = (cell / columns, cell % columns);
        let list = if is_land(row, rows, column, columns) { &mut land } else { &mut sea };
        list.push(cell);
    }
    let cells = |list: &[u64], parts: u64, i: u64| {
        let (start, count) = part(list.len() as u64, parts, i);
        list[start as usize..(start + count) as usize].to_vec()
    };
    let rank = |rank: u64| {
        let segments = (0..SEGMENTS).map(|i| cells(&land, RANKS * SEGMENTS, i * RANKS + rank));
        let mut runs: Vec<(u64, u64)> = Vec::new();
        for cell in segments.flatten().chain(cells(&sea, RANKS, rank)) {
            match runs.last_mut() {
                Some((first, len)) if *first + *len == cell => *len += 1,
                _ => runs.push((cell, 1)),
            }
        }
        runs
    };
    (0..RANKS).map(rank).collect()
}

/// Noise on a lattice of 6 by 9 points, interpolated between them; the highest third is land.
fn is_land(row: u64, rows: u64, column: u64, columns: u64) -> bool {
    const ONE: u64 = 256;
    let (y, x) = (row * 5 * ONE / rows, column * 8 * ONE / columns);
    let (at_y, at_x) = (y % ONE, x % ONE);
    let height = |dy, dx| bits(0, (y / ONE + dy) * 9 + x / ONE + dx) >> 56;
    let upper = height(0, 0) * (ONE - at_x) + height(0, 1) * at_x;
    let lower = height(1, 0) * (ONE - at_x) + height(1, 1) * at_x;
    (upper * (ONE - at_y) + lower * at_y) / (ONE * ONE) >= 145
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn about_a_third_is_land_in_pieces_of_all_sizes() {
        let (rows, columns) = (96, 144);
        let land = (0..rows * columns).filter(|i| is_land(i / columns, rows, i % columns, columns));
        let share = land.count() as f64 / (rows * columns) as f64;
        assert!((0.25..0.42).contains(&share), "{share}");
        let runs: Vec<usize> = cells_of_ranks(rows, columns).iter().map(Vec::len).collect();
        assert!(runs.iter().all(|n| (20..200).contains(n)), "{runs:?}");
    }
}
