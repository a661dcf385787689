//! Pandana: the events of many files appended to one (seeds/000 §5.5.3).
//!
//! A group is a kind of event, and its variables are the attributes of the events. Groups are of
//! very different lengths, and ranks bring different numbers of events.

use super::{Scale, fixed, var};
use crate::plan::{Calls, Data, Element, Plan, RankPlan, Request, Slabs};

/// Attributes of each kind of event: 15 groups, 108 variables.
const GROUPS: [u64; 15] = [4, 5, 5, 6, 6, 7, 7, 7, 8, 8, 8, 9, 9, 9, 10];

/// The first attributes of every group number the run, the part of it, the event and so on.
const COUNTERS: u64 = 4;

/// How much longer a group is than the one before, about: the last has 2,000 times the events
/// of the first.
fn weight(group: usize) -> u64 {
    (0..group).fold(1_000_000, |weight, _| weight * 172 / 100)
}

pub(super) fn plan(ranks: usize, scale: &Scale) -> Plan {
    let bytes = scale.bytes.unwrap_or(256 << 20);
    let all: u64 = GROUPS.iter().enumerate().map(|(g, vars)| vars * weight(g)).sum();
    let events = |group: usize| {
        let share = u128::from(bytes / 4) * u128::from(weight(group)) / u128::from(all);
        (share as u64).max(1)
    };
    let (mut dims, mut vars, mut group_of) = (Vec::new(), Vec::new(), Vec::new());
    for (group, attributes) in GROUPS.into_iter().enumerate() {
        dims.push(fixed(&format!("events_{group:02}"), events(group)));
        for attribute in 0..attributes {
            let element = if attribute < COUNTERS { Element::I32 } else { Element::F32 };
            let mut column = var(&format!("g{group:02}_{attribute:02}"), element, &[group]);
            column.data = Data::Column;
            vars.push(column);
            group_of.push(group);
        }
    }
    // Files have from 60 to 140 hundredths of the usual number of events.
    let share = |rank: usize, group: usize| 60 + (rank * 37 + group * 11) as u64 % 81;
    let rank = |rank: usize| {
        let list = |group: usize| {
            let before = |ranks: usize| (0..ranks).map(|r| share(r, group)).sum::<u64>();
            let edge = |r: usize| {
                let of_all = u128::from(events(group)) * u128::from(before(r));
                (of_all / u128::from(before(ranks))) as u64
            };
            Slabs::one(&[edge(rank)], &[edge(rank + 1) - edge(rank)])
        };
        let request = |(var, list): (usize, &usize)| Request { var, list: *list, record: None };
        RankPlan {
            lists: (0..GROUPS.len()).map(list).collect(),
            steps: vec![group_of.iter().enumerate().map(request).collect()],
        }
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
