//! FLASH's checkpoint: the blocks of all ranks stacked along the first dimension.

use super::{Scale, fixed, var};
use crate::plan::{Calls, Element, Plan, RankPlan, Request, Slabs};

const VARIABLES: usize = 24;
const EDGE: u64 = 16;

/// 80, 81 or 82 blocks on a rank, or as many as the size has room for, one or two more.
pub(super) fn plan(ranks: usize, scale: &Scale) -> Plan {
    let block_bytes = VARIABLES as u64 * EDGE.pow(3) * 8;
    let least = match scale.bytes {
        Some(bytes) => (bytes / block_bytes / ranks as u64).max(1),
        None => 80,
    };
    let blocks = |rank: usize| least + rank as u64 % 3;
    let total = (0..ranks).map(blocks).sum();
    let dims = vec![fixed("blocks", total), fixed("z", EDGE), fixed("y", EDGE), fixed("x", EDGE)];
    let name = |i: usize| format!("unk_{i:02}");
    let vars = (0..VARIABLES).map(|i| var(&name(i), Element::F64, &[0, 1, 2, 3])).collect();
    let mut first = 0;
    let rank = |rank: usize| {
        let slabs = Slabs::one(&[first, 0, 0, 0], &[blocks(rank), EDGE, EDGE, EDGE]);
        first += blocks(rank);
        let requests = (0..VARIABLES).map(|var| vec![Request { var, list: 0, record: None }]);
        RankPlan { lists: vec![slabs], steps: requests.collect() }
    };
    let ranks = (0..ranks).map(rank).collect();
    Plan {
        dims,
        vars,
        records: 0,
        pipeline: String::new(),
        transactions: false,
        steps: vec![Calls::Blocking; VARIABLES],
        ranks,
    }
}
