//! BTIO: the diagonal multipartition of the NAS benchmark BT.
//!
//! The cube is cut into tiles such that each rank has one in every plane of tiles, whichever
//! way the solver sweeps. With q^2 ranks the cube has q^3 tiles and a rank q of them along a
//! diagonal. For other numbers it is the generalised form with P^2 tiles in two dimensions.

use super::{Scale, fixed, part, root, var};
use crate::plan::{Calls, Dim, Element, Plan, RankPlan, Request, Slabs};

const COMPONENTS: u64 = 5;

pub(super) fn plan(ranks: usize, scale: &Scale) -> Plan {
    let record = |edge: u64| edge.pow(3) * COMPONENTS * 8;
    // The largest of the benchmark's sizes that leaves a few records.
    let edges = [128, 64, 32, 16, 8];
    let edge = edges.into_iter().find(|edge| 4 * record(*edge) <= scale.bytes()).unwrap_or(8);
    let records = (scale.bytes() / record(edge)).max(1);
    let dims = vec![
        Dim { name: "step".into(), len: None },
        fixed("z", edge),
        fixed("y", edge),
        fixed("x", edge),
        fixed("component", COMPONENTS),
    ];
    let rank = |rank: usize| {
        let lists: Vec<Slabs> = tiles(rank as u64, ranks as u64)
            .map(|tile| {
                let (starts, counts): (Vec<u64>, Vec<u64>) =
                    tile.iter().map(|(parts, i)| part(edge, *parts, *i)).unzip();
                Slabs::one(&[&starts[..], &[0]].concat(), &[&counts[..], &[COMPONENTS]].concat())
            })
            .collect();
        let full = |list: &usize| lists[*list].elements() > 0;
        let steps = (0..records).map(|record| {
            let request = |list| Request { var: 0, list, record: Some(record) };
            (0..lists.len()).filter(full).map(request).collect()
        });
        let steps = steps.collect();
        RankPlan { lists, steps }
    };
    let plans = (0..ranks).map(rank).collect();
    let vars = vec![var("u", Element::F64, &[0, 1, 2, 3, 4])];
    Plan {
        dims,
        vars,
        records,
        pipeline: String::new(),
        transactions: false,
        steps: vec![Calls::Queued; records as usize],
        ranks: plans,
    }
}

/// The tiles of a rank: for z, y and x, into how many parts the edge is cut, and which it is.
fn tiles(rank: u64, ranks: u64) -> impl Iterator<Item = [(u64, u64); 3]> {
    let q = root(ranks, 2);
    let square = q * q == ranks;
    (0..if square { q } else { ranks }).map(move |c| {
        if square {
            let (i, j) = (rank % q, rank / q);
            [(q, c), (q, (j + q - c) % q), (q, (i + c) % q)]
        } else {
            [(ranks, c), (1, 0), (ranks, (rank + c) % ranks)]
        }
    })
}
