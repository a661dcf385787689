//! Arrays cut into one block for each rank.

use super::{Scale, fixed, grid, one_call, part, position, root, var};
use crate::plan::{Calls, Data, Element, Plan, RankPlan, Request, Slabs};

pub(super) fn contiguous(ranks: usize, scale: &Scale) -> Plan {
    let n = (scale.bytes() / 8).max(1);
    let slabs = (0..ranks).map(|rank| {
        let (start, count) = part(n, ranks as u64, rank as u64);
        Slabs::one(&[start], &[count])
    });
    one_call(vec![fixed("x", n)], var("field", Element::F64, &[0]), slabs)
}

/// The variable is a matrix whose row has one transfer of each rank.
pub(super) fn strided(ranks: usize, scale: &Scale) -> Plan {
    let transfer = (scale.transfer / 8).max(1);
    let row = transfer * ranks as u64;
    let segments = (scale.bytes() / 8 / row).max(1);
    let slabs =
        (0..ranks as u64).map(|rank| Slabs::one(&[0, rank * transfer], &[segments, transfer]));
    let dims = vec![fixed("segment", segments), fixed("transfer", row)];
    one_call(dims, var("field", Element::F64, &[0, 1]), slabs)
}

/// The same, with a call for each transfer.
pub(super) fn strided_calls(ranks: usize, scale: &Scale) -> Plan {
    let mut plan = strided(ranks, scale);
    for rank in &mut plan.ranks {
        let whole = &rank.lists[0];
        let (first, transfer) = (whole.starts[1], whole.counts[1]);
        let rows = 0..whole.counts[0];
        rank.lists = rows.map(|row| Slabs::one(&[row, first], &[1, transfer])).collect();
        let lists = 0..rank.lists.len();
        rank.steps = vec![lists.map(|list| Request { var: 0, list, record: None }).collect()];
    }
    plan.steps = vec![Calls::Independent];
    plan
}

pub(super) fn checkerboard(ranks: usize, scale: &Scale) -> Plan {
    let edge = root(scale.bytes() / 4, 2).max(1);
    let grid: [u64; 2] = grid(ranks);
    let slabs = (0..ranks).map(|rank| {
        let at = position(grid, rank);
        let (y, rows) = part(edge, grid[0], at[0]);
        let (x, columns) = part(edge, grid[1], at[1]);
        Slabs::one(&[y, x], &[rows, columns])
    });
    let dims = vec![fixed("y", edge), fixed("x", edge)];
    one_call(dims, var("field", Element::F32, &[0, 1]), slabs)
}

/// A square block on each rank, of a tile of two by two blocks that is the same everywhere and
/// in which `percent` are random (seeds/000 §5.5.1). The paper's blocks are of 4096 squared.
pub(super) fn tiles(ranks: usize, scale: &Scale, percent: u64) -> Plan {
    let block = root(scale.bytes() / 4 / ranks as u64, 2).max(1);
    let grid: [u64; 2] = grid(ranks);
    let slabs = (0..ranks).map(|rank| {
        let at = position(grid, rank);
        Slabs::one(&[at[0] * block, at[1] * block], &[block, block])
    });
    let dims = vec![fixed("y", grid[0] * block), fixed("x", grid[1] * block)];
    let mut tiles = var("tiles", Element::I32, &[0, 1]);
    tiles.data = Data::Tile { percent, edge: 2 * block };
    one_call(dims, tiles, slabs)
}

/// S3D's checkpoint: mass fractions of 11 species, 3 velocities, pressure and temperature.
pub(super) fn blocks3d(ranks: usize, scale: &Scale) -> Plan {
    let edge = root(scale.bytes() / 8 / 16, 3).max(1);
    let grid: [u64; 3] = grid(ranks);
    let dims = vec![
        fixed("species", 11),
        fixed("direction", 3),
        fixed("z", edge),
        fixed("y", edge),
        fixed("x", edge),
    ];
    let vars = vec![
        var("mass_fraction", Element::F64, &[0, 2, 3, 4]),
        var("velocity", Element::F64, &[1, 2, 3, 4]),
        var("pressure", Element::F64, &[2, 3, 4]),
        var("temperature", Element::F64, &[2, 3, 4]),
    ];
    let rank = |rank: usize| {
        let at = position(grid, rank);
        let block: Vec<(u64, u64)> = (0..3).map(|d| part(edge, grid[d], at[d])).collect();
        let (start, count): (Vec<u64>, Vec<u64>) = block.into_iter().unzip();
        let with = |components| {
            Slabs::one(&[&[0], &start[..]].concat(), &[&[components], &count[..]].concat())
        };
        let lists = vec![with(11), with(3), Slabs::one(&start, &count)];
        let request = |(var, list)| Request { var, list, record: None };
        let requests = [(0, 0), (1, 1), (2, 2), (3, 2)].map(request).to_vec();
        RankPlan { lists, steps: vec![requests] }
    };
    let ranks = (0..ranks).map(rank).collect();
    Plan {
        dims,
        vars,
        records: 0,
        pipeline: String::new(),
        transactions: false,
        steps: vec![Calls::Queued],
        ranks,
    }
}
