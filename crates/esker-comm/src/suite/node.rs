//! Memory that the ranks of a node share.

use std::sync::Arc;

use super::{Dice, Failure, Trial, same};
use crate::{CommError, Communicator, NodeMemory, Stages};

/// The ranks of a node, and memory of theirs with a stage of `bytes` for each of some of them.
fn memory(t: &mut Trial<'_>, bytes: usize) -> Result<(Arc<dyn Communicator>, NodeMemory), Failure> {
    let buffers = 1 + t.shared.below(2);
    let node = t.comm.split_by_node()?;
    let owners = (0..node.size()).filter(|rank| rank % 2 == 0).collect();
    let made = node.node_memory(&Stages { owners, bytes, buffers })?;
    // Where tests run, it can be had.
    Ok((node, made?))
}

/// The byte at a place of a stage in a turn.
fn byte(stage: usize, turn: u64, at: usize) -> u8 {
    (stage as u64 * 131 + turn * 37 + at as u64 * 7 + (at as u64 >> 8)) as u8
}

/// Which rank has which run of elements in a turn: the same wherever it is asked for.
fn runs(seed: u64, ranks: usize, elements: usize) -> Vec<(usize, usize, usize)> {
    let mut dice = Dice(seed);
    let (mut at, mut runs) = (dice.below(3), Vec::new());
    while at < elements {
        let long = if dice.below(4) == 0 { 600 } else { 9 };
        let len = (1 + dice.below(long)).min(elements - at);
        runs.push((dice.below(ranks), at, len));
        at += len + if dice.below(3) == 0 { dice.below(40) } else { 0 };
    }
    runs
}

pub(super) fn what_is_laid(t: &mut Trial<'_>) -> Result<(), Failure> {
    let size = [1, 2, 4, 8][t.shared.below(4)];
    let bytes = 3 + size * (1 + t.shared.below(5000));
    let (node, memory) = memory(t, bytes)?;
    let (me, owners) = (node.rank(), memory.stages().owners.clone());
    let (ahead, turns) = (memory.stages().buffers as u64 - 1, 7);
    for turn in 0..turns {
        let elements = (bytes - 3) / size;
        let runs = |stage: usize| runs(t.seed ^ (turn << 8) ^ stage as u64, node.size(), elements);
        for (stage, _) in owners.iter().enumerate() {
            for open in turn..=(turn + ahead).min(turns - 1) {
                memory.open(stage, open)?;
            }
        }
        for (stage, _) in owners.iter().enumerate() {
            let mut laying = memory.lay(stage, turn, bytes)?;
            for (_, from, len) in runs(stage).into_iter().filter(|(rank, ..)| *rank == me) {
                let at = 3 + from * size;
                laying.claim(at, len * size, size, |from, out| {
                    let values = (at + from..).map(|at| byte(stage, turn, at));
                    out.iter_mut().zip(values).for_each(|(out, value)| *out = value);
                });
            }
            laying.finish()?;
        }
        for (stage, _) in owners.iter().enumerate().filter(|(_, owner)| **owner == me) {
            let mut known = vec![false; bytes];
            for (_, from, len) in runs(stage) {
                known[3 + from * size..3 + (from + len) * size].fill(true);
            }
            let mut whole = memory.take(stage, turn, bytes)?;
            let (found, bits) = whole.parts();
            let is_known = |at: usize| bits[at / 64] >> (at % 64) & 1 == 1;
            let wrong = (0..bytes).find(|at| {
                let right = !known[*at] || found[*at] == byte(stage, turn, *at);
                is_known(*at) != known[*at] || !right
            });
            same!(wrong, None, "stage {stage}, turn {turn}: the first wrong byte");
        }
    }
    Ok(())
}

pub(super) fn overlaps(t: &mut Trial<'_>) -> Result<(), Failure> {
    let (size, elements) = ([4, 8][t.shared.below(2)], 3000);
    let bytes = 5 + size * elements;
    let (node, memory) = memory(t, bytes)?;
    memory.open(0, 0)?;
    let mut laying = memory.lay(0, 0, bytes)?;
    // All ranks have everything, in runs of other lengths.
    let mut at = 0;
    while at < elements {
        let len = (1 + t.own.below(400)).min(elements - at);
        laying.claim(5 + at * size, len * size, size, |_, out| out.fill(1 + node.rank() as u8));
        at += len;
    }
    laying.finish()?;
    if node.rank() == 0 {
        let mut whole = memory.take(0, 0, bytes)?;
        let (found, bits) = whole.parts();
        let mixed = found[5..].chunks(size).position(|e| e.iter().any(|b| *b != e[0] || *b == 0));
        same!(mixed, None, "an element of several ranks, or of none");
        let known: u32 = bits.iter().map(|word| word.count_ones()).sum();
        same!(known as usize, bytes - 5, "bytes that are known");
    }
    Ok(())
}

pub(super) fn runs_of_a_pattern(t: &mut Trial<'_>) -> Result<(), Failure> {
    let size = [1, 2, 4, 8][t.shared.below(4)];
    let (elements, step) = (1 + t.shared.below(5), 1 + t.shared.below(40));
    let (len, step) = (elements * size, (elements + step) * size);
    let bytes = 20_000;
    let (node, memory) = memory(t, bytes)?;
    memory.open(0, 0)?;
    // Runs of all ranks, from elements that differ: some in other ranks' gaps, some upon other ranks' runs.
    let begins: Vec<usize> = (0..node.size()).map(|_| 3 + size * t.shared.below(200)).collect();
    let runs = |rank: usize| (bytes - begins[rank] - len) / step;
    let mut laying = memory.lay(0, 0, bytes)?;
    let me = node.rank();
    let values = vec![1 + me as u8; runs(me) * len];
    laying.lay_runs(begins[me], (len, step), size, &values);
    laying.finish()?;
    if me == 0 {
        let mut expected = vec![Vec::new(); bytes];
        for (rank, begin) in begins.iter().enumerate() {
            let starts = (0..runs(rank)).map(|n| begin + n * step);
            starts.flat_map(|at| at..at + len).for_each(|at| expected[at].push(1 + rank as u8));
        }
        let mut whole = memory.take(0, 0, bytes)?;
        let (found, bits) = whole.parts();
        let is_known = |at: usize| bits[at / 64] >> (at % 64) & 1 == 1;
        let right = |at: usize| match expected[at].is_empty() {
            true => !is_known(at),
            // An element is one rank's.
            false => {
                is_known(at) && expected[at].contains(&found[at]) && {
                    let first = at - (at - 3) % size;
                    found[first] == found[at]
                }
            }
        };
        same!((0..bytes).find(|at| !right(*at)), None, "the first wrong byte, {len} of {step}");
    }
    Ok(())
}

pub(super) fn what_is_wanted(t: &mut Trial<'_>) -> Result<(), Failure> {
    let bytes = 1 + t.shared.below(20_000);
    let (node, memory) = memory(t, bytes)?;
    let me = node.rank();
    let owners = memory.stages().owners.clone();
    for turn in 0..5 {
        let wants = |rank: usize| -> Vec<(usize, usize)> {
            let mut dice = Dice(t.seed ^ (rank as u64 + 100 * turn));
            let from = (0..dice.below(6)).map(|_| dice.below(bytes)).collect::<Vec<_>>();
            from.into_iter().map(|at| (at, dice.below(3000).min(bytes - at))).collect()
        };
        for (stage, _) in owners.iter().enumerate() {
            memory.open(stage, turn)?;
            let mut laying = memory.lay(stage, turn, bytes)?;
            wants(me).into_iter().for_each(|(at, len)| laying.want(at, len));
            laying.finish()?;
        }
        for (stage, _) in owners.iter().enumerate().filter(|(_, owner)| **owner == me) {
            let mut wanted = vec![false; bytes];
            for (at, len) in (0..node.size()).flat_map(&wants) {
                wanted[at..at + len].fill(true);
            }
            let mut whole = memory.take(stage, turn, bytes)?;
            let (found, bits) = whole.parts();
            let is_wanted = |at: usize| bits[at / 64] >> (at % 64) & 1 == 1;
            let wrong = (0..bytes).find(|at| is_wanted(*at) != wanted[*at]);
            same!(wrong, None, "the first byte that is wanted by other ranks than it was");
            for (at, out) in found.iter_mut().enumerate().filter(|(at, _)| wanted[*at]) {
                *out = byte(stage, turn, at);
            }
            whole.show();
        }
        for (stage, _) in owners.iter().enumerate() {
            let shown = memory.look(stage, turn, bytes)?;
            let right = |at: usize| shown.bytes()[at] == byte(stage, turn, at);
            let all = wants(me).into_iter().all(|(at, len)| (at..at + len).all(right));
            same!(all, true, "what rank {me} wanted of stage {stage} in turn {turn}");
        }
    }
    Ok(())
}

pub(super) fn misuse(t: &mut Trial<'_>) -> Result<(), Failure> {
    let none = Stages { owners: vec![t.size], bytes: 10, buffers: 1 };
    same!(t.comm.node_memory(&none).is_err(), true, "an owner that is no rank");
    let huge = Stages { owners: vec![0], bytes: usize::MAX - 5000, buffers: 2 };
    same!(t.comm.node_memory(&huge).is_err(), true, "more bytes than there are");
    let (node, memory) = memory(t, 100)?;
    memory.open(0, 0)?;
    let refused =
        |outcome: Result<(), CommError>| matches!(outcome, Err(CommError::BadArgument { .. }));
    same!(refused(memory.lay(0, 0, 101).map(drop)), true, "more bytes than a stage has");
    same!(refused(memory.lay(9, 0, 10).map(drop)), true, "a stage that is none");
    memory.lay(0, 0, 100)?.finish()?;
    same!(refused(memory.lay(0, 0, 100).map(drop)), true, "a turn that is finished");
    if node.rank() == 0 {
        memory.take(0, 0, 100)?.show();
        same!(refused(memory.take(0, 0, 100).map(drop)), true, "a turn that is taken");
    } else {
        same!(refused(memory.take(0, 0, 100).map(drop)), true, "another rank's stage");
    }
    drop(memory.look(0, 0, 100)?);
    same!(refused(memory.look(0, 0, 100).map(drop)), true, "a turn that was looked at");
    Ok(())
}
