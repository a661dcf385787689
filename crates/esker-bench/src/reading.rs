//! What is read back: what was written, or what an analyst asks for.

use crate::kernels::part;
use crate::plan::{Calls, Plan, RankPlan, Request, Slabs, Var};

/// What the ranks read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reading {
    /// Each rank what it wrote.
    Requests,
    /// One variable after the other, all of it, each rank a part of its slowest dimension.
    Whole,
    /// A plane of each variable, of the middle record; variables take turns among ranks.
    Planes,
}

impl Reading {
    /// All.
    pub const ALL: [Reading; 3] = [Reading::Requests, Reading::Whole, Reading::Planes];

    /// The name by which users call it.
    pub fn name(self) -> &'static str {
        match self {
            Reading::Requests => "requests",
            Reading::Whole => "whole",
            Reading::Planes => "planes",
        }
    }

    /// The reading of that name.
    pub fn from_name(name: &str) -> Option<Reading> {
        Reading::ALL.into_iter().find(|reading| reading.name() == name)
    }

    /// The plan by which the ranks read what `written` wrote; `None` if it is the same.
    pub fn plan(self, written: &Plan) -> Option<Plan> {
        match self {
            Reading::Requests => None,
            Reading::Whole => Some(whole(written, written.ranks.len())),
            Reading::Planes => Some(planes(written)),
        }
    }
}

/// A collective call for each variable, on so many ranks.
pub(crate) fn whole(written: &Plan, ranks: usize) -> Plan {
    let ranks = ranks as u64;
    let rank = |rank: u64| {
        let part_of = |var: &Var| {
            let shape: Vec<u64> =
                var.dims.iter().map(|d| written.dims[*d].len.unwrap_or(written.records)).collect();
            let (mut start, mut count) = (vec![0; shape.len()], shape.clone());
            let long_enough = shape.iter().position(|len| *len >= ranks);
            let longest = shape.iter().max();
            let longest = shape.iter().position(|len| Some(len) == longest);
            // A scalar is everyone's.
            if let Some(d) = long_enough.or(longest) {
                (start[d], count[d]) = part(shape[d], ranks, rank);
            }
            Slabs::one(&start, &count)
        };
        let request = |var| vec![Request { var, list: var, record: None }];
        RankPlan {
            lists: written.vars.iter().map(part_of).collect(),
            steps: (0..written.vars.len()).map(request).collect(),
        }
    };
    let ranks = (0..ranks).map(rank).collect();
    Plan { ranks, steps: vec![Calls::Blocking; written.vars.len()], ..written.clone() }
}

/// Independent calls. The planes of variables one after the other are perpendicular to one
/// dimension after the other.
fn planes(written: &Plan) -> Plan {
    let ranks = written.ranks.len();
    let rank = |rank: usize| {
        let own: Vec<usize> = (rank..written.vars.len()).step_by(ranks).collect();
        let plane = |var: &usize| {
            let mut count = written.inner_shape(&written.vars[*var]);
            let mut start = vec![0; count.len()];
            if count.len() > 1 {
                let d = var / ranks % count.len();
                (start[d], count[d]) = (count[d] / 2, 1);
            }
            Slabs::one(&start, &count)
        };
        let request = |(list, var): (usize, &usize)| {
            let has_records = written.is_record(&written.vars[*var]);
            Request { var: *var, list, record: has_records.then_some(written.records / 2) }
        };
        RankPlan {
            lists: own.iter().map(plane).collect(),
            steps: vec![own.iter().enumerate().map(request).collect()],
        }
    };
    let ranks = (0..ranks).map(rank).collect();
    Plan { ranks, steps: vec![Calls::Independent], ..written.clone() }
}
