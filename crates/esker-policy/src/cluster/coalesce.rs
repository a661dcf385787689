//! Boxes that touch with equal faces become one.

use super::cells::Cells;

/// Merges whole boxes along one dimension after the other, in this order, until none is left that can be. Boxes that
/// are there twice become one. Which elements are covered stays the same, also where boxes overlap.
pub(super) fn coalesce(cells: &mut Cells, order: &[usize]) {
    let mut buffers = Buffers::default();
    let mut idle = 0;
    for dim in order.iter().copied().cycle() {
        if idle == order.len() || cells.len() < 2 {
            break;
        }
        let before = cells.len();
        along(cells, dim, &mut buffers);
        // A dimension is done with when all others have changed nothing since.
        idle = if cells.len() < before { 1 } else { idle + 1 };
    }
}

#[derive(Default)]
struct Buffers {
    /// Hash of all other dimensions, low corner, and number of each box.
    keys: Vec<(u64, u32, u32)>,
    merged: Vec<u32>,
}

fn along(cells: &mut Cells, dim: usize, Buffers { keys, merged }: &mut Buffers) {
    let (low, high) = (2 * dim, 2 * dim + 1);
    keys.clear();
    keys.extend(cells.iter().zip(0..).map(|(cell, index)| {
        (hash(cell[..low].iter().chain(&cell[high + 1..])), cell[low], index)
    }));
    keys.sort_unstable();
    merged.clear();
    let stride = 2 * cells.dims;
    for (_, _, index) in keys.iter() {
        let cell = cells.get(*index as usize);
        let last = merged.len().checked_sub(stride).map(|at| &mut merged[at..]);
        if let Some(last) = last {
            let same_face = last[..low] == cell[..low] && last[high + 1..] == cell[high + 1..];
            if same_face && (last[high] == cell[low] || last[low..=high] == cell[low..=high]) {
                last[high] = cell[high];
                continue;
            }
        }
        merged.extend_from_slice(cell);
    }
    std::mem::swap(&mut cells.corners, merged);
}

/// A hash of some coordinates. It puts equal faces beside each other; whether they are equal is compared.
pub(super) fn hash<'a>(coordinates: impl Iterator<Item = &'a u32>) -> u64 {
    coordinates.fold(0x9e37_79b9_7f4a_7c15, |hash, coordinate| {
        let product = u128::from(hash ^ u64::from(*coordinate)) * 0xa076_1d64_78bd_642f;
        (product as u64) ^ ((product >> 64) as u64)
    })
}
