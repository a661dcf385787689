//! HACC's checkpoint, as its I/O code GenericIO writes it (seeds/003 §IV.A): nine variables of particles, of which each rank has a
//! contiguous part, one after the other, each a transaction with a checksum of every rank's part.

use super::{Scale, fixed, part, var};
use crate::plan::{Calls, Data, Element, Plan, RankPlan, Request, Slabs};

/// Positions, velocities, the potential, the particle's number and a mask.
const VARIABLES: [(&str, Element); 9] = [
    ("x", Element::F32),
    ("y", Element::F32),
    ("z", Element::F32),
    ("vx", Element::F32),
    ("vy", Element::F32),
    ("vz", Element::F32),
    ("phi", Element::F32),
    ("id", Element::I64),
    ("mask", Element::U16),
];

pub(super) fn plan(ranks: usize, scale: &Scale) -> Plan {
    let of_a_particle: u64 = VARIABLES.iter().map(|(_, element)| element.size()).sum();
    let variables = VARIABLES.len() as u64;
    let of_sums = variables * ranks as u64 * Element::I64.size();
    let particles = (scale.bytes().saturating_sub(of_sums) / of_a_particle).max(1);
    let mut vars: Vec<_> =
        VARIABLES.iter().map(|(name, element)| var(name, *element, &[0])).collect();
    let mut sums = var("crc", Element::I64, &[1, 2]);
    sums.data = Data::Sums;
    vars.push(sums);
    let rank = |rank: usize| {
        let (start, count) = part(particles, ranks as u64, rank as u64);
        let sum = |variable: u64| Slabs::one(&[variable, rank as u64], &[1, 1]);
        let own = std::iter::once(Slabs::one(&[start], &[count]));
        let step = |variable: usize| {
            let values = Request { var: variable, list: 0, record: None };
            vec![values, Request { var: VARIABLES.len(), list: 1 + variable, record: None }]
        };
        RankPlan {
            lists: own.chain((0..variables).map(sum)).collect(),
            steps: (0..VARIABLES.len()).map(step).collect(),
        }
    };
    let ranks_dim = fixed("rank", ranks as u64);
    Plan {
        dims: vec![fixed("particle", particles), fixed("variable", variables), ranks_dim],
        vars,
        records: 0,
        pipeline: String::new(),
        transactions: true,
        steps: vec![Calls::Queued; VARIABLES.len()],
        ranks: (0..ranks).map(rank).collect(),
    }
}
