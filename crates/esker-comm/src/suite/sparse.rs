//! Exchanges in which nobody knows who will send.

use super::{Failure, Trial, same};
use crate::Message;

/// Sends `number` of messages from each rank to each rank, as `plan(from, to)` says, with
/// lengths up to `limit`, and checks what arrives.
fn exchange(
    t: &Trial<'_>,
    limit: usize,
    plan: impl Fn(usize, usize) -> usize,
) -> Result<(), Failure> {
    let mut sent = Vec::new();
    for to in (0..t.size).rev() {
        for number in 0..plan(t.rank, to) {
            sent.push((to, t.message(t.rank, to, number, limit)));
        }
    }
    let arrived = t.comm.sparse_exchange(sent)?;
    let mut expected: Vec<(usize, Message)> = Vec::new();
    for from in 0..t.size {
        let number = plan(from, t.rank);
        expected.extend((0..number).map(|n| (from, t.message(from, t.rank, n, limit))));
    }
    same!(arrived, expected, "what arrived");
    Ok(())
}

pub(super) fn nobody(t: &mut Trial<'_>) -> Result<(), Failure> {
    exchange(t, 1, |_, _| 0)
}

pub(super) fn ring(t: &mut Trial<'_>) -> Result<(), Failure> {
    exchange(t, 1000, |from, to| usize::from(to == (from + 1) % t.size))
}

pub(super) fn all_to_one(t: &mut Trial<'_>) -> Result<(), Failure> {
    let one = super::Dice(t.seed).below(t.size);
    exchange(t, 1000, |_, to| usize::from(to == one))
}

pub(super) fn random(t: &mut Trial<'_>) -> Result<(), Failure> {
    let draw = |from: usize, to: usize| super::mix(t.seed ^ ((from << 16) + to) as u64);
    exchange(t, 5000, |from, to| match draw(from, to) % 8 {
        0 => 1,
        1 => 3,
        2 => 20,
        _ => 0,
    })
}

pub(super) fn large(t: &mut Trial<'_>) -> Result<(), Failure> {
    // Each rank sends to the rank half-way round and to itself.
    let half = t.size / 2;
    exchange(t, t.effort.large, |from, to| usize::from(to == (from + half) % t.size || to == from))
}

pub(super) fn back_to_back(t: &mut Trial<'_>) -> Result<(), Failure> {
    // Ranks run ahead of each other by their random amounts of work.
    for round in 0..10u64 {
        for _ in 0..t.own.below(3) {
            std::thread::yield_now();
        }
        let to = (super::mix(t.seed ^ round) % t.size as u64) as usize;
        let arrived = t.comm.sparse_exchange(vec![(to, Message::from_u64s(&[round]))])?;
        same!(arrived.len(), if t.rank == to { t.size } else { 0 }, "round {round}");
        for (from, message) in arrived {
            same!(message.to_u64s(), [round], "message of {from}");
        }
    }
    Ok(())
}
