//! Collective operations on the whole communicator.

use std::thread::sleep;
use std::time::{Duration, Instant};

use super::{Failure, Trial, same};
use crate::{CommError, CommunicatorExt, Disagreement, Message, ReduceOp, Reduction, Source};

pub(super) fn barrier_waits_for_everyone(t: &mut Trial<'_>) -> Result<(), Failure> {
    let late = t.shared.below(t.size);
    t.comm.barrier()?;
    let start = Instant::now();
    if t.rank == late {
        sleep(Duration::from_millis(20));
    }
    t.comm.barrier()?;
    // Clocks of ranks differ only in when they left the first barrier, which nobody leaves
    // before the late one came; half of the nap allows for a slow machine.
    same!(
        start.elapsed() >= Duration::from_millis(10) || t.size == 1 || t.rank != late,
        true,
        "time in the barrier"
    );
    for _ in 0..20 {
        t.comm.barrier()?;
    }
    Ok(())
}

pub(super) fn broadcast(t: &mut Trial<'_>) -> Result<(), Failure> {
    for root in 0..t.size {
        for (number, length) in [0, 1, 503, 504, 505, 4096].into_iter().enumerate() {
            let expected = t.sized(root, 0, number, length);
            let mine = if t.rank == root { expected.clone() } else { Message::from(vec![9; 3]) };
            same!(t.comm.broadcast(root, mine)?, expected, "broadcast of {length} from {root}");
        }
    }
    let root = t.shared.below(t.size);
    let expected = t.sized(root, 0, 99, t.effort.large);
    let mine = if t.rank == root { expected.clone() } else { Message::empty() };
    same!(t.comm.broadcast(root, mine)?, expected, "large broadcast");
    Ok(())
}

pub(super) fn gather(t: &mut Trial<'_>) -> Result<(), Failure> {
    for root in 0..t.size {
        let limit = [1, 60, 5000][root % 3];
        let gathered = t.comm.gather(root, t.message(t.rank, root, 0, limit))?;
        let everyone = (0..t.size).map(|from| t.message(from, root, 0, limit)).collect();
        same!(gathered, (t.rank == root).then_some(everyone), "gather to {root}");
    }
    let root = t.shared.below(t.size);
    let gathered = t.comm.gather(root, t.sized(t.rank, root, 1, t.effort.large / 2))?;
    if let Some(messages) = gathered {
        for (from, message) in messages.iter().enumerate() {
            same!(*message, t.sized(from, root, 1, t.effort.large / 2), "large gather from {from}");
        }
    }
    Ok(())
}

pub(super) fn all_gather(t: &mut Trial<'_>) -> Result<(), Failure> {
    for limit in [1, 56, 57, 10_000, t.effort.large / t.size] {
        let gathered = t.comm.all_gather(t.message(t.rank, 0, limit, limit))?;
        let everyone: Vec<_> = (0..t.size).map(|from| t.message(from, 0, limit, limit)).collect();
        same!(gathered, everyone, "all-gather of up to {limit} bytes");
    }
    // Only the last rank has anything.
    let length = if t.rank + 1 == t.size { 1000 } else { 0 };
    let gathered = t.comm.all_gather(t.sized(t.rank, 0, 7, length))?;
    let lengths: Vec<_> = gathered.iter().map(|m| m.len()).collect();
    let mut expected = vec![0; t.size];
    expected[t.size - 1] = 1000;
    same!(lengths, expected, "all-gather where one rank has something");
    Ok(())
}

pub(super) fn all_gather_u64(t: &mut Trial<'_>) -> Result<(), Failure> {
    for count in [0, 1, 3, 1000] {
        let of = |rank: usize| (0..count).map(move |i| (rank * 10_000 + i) as u64);
        let gathered = t.comm.all_gather_u64(&of(t.rank).collect::<Vec<_>>())?;
        same!(gathered, (0..t.size).flat_map(of).collect::<Vec<_>>(), "{count} numbers");
    }
    Ok(())
}

pub(super) fn all_to_all(t: &mut Trial<'_>) -> Result<(), Failure> {
    for limit in [1, 100, 20_000, t.effort.large / t.size] {
        let sent = (0..t.size).map(|to| t.message(t.rank, to, 0, limit)).collect();
        let arrived = t.comm.all_to_all(sent)?;
        let expected: Vec<_> = (0..t.size).map(|from| t.message(from, t.rank, 0, limit)).collect();
        same!(arrived, expected, "all-to-all of up to {limit} bytes");
    }
    let sent: Vec<_> = (0..t.size).map(|to| (t.rank * 1000 + to) as u64).collect();
    let expected: Vec<_> = (0..t.size).map(|from| (from * 1000 + t.rank) as u64).collect();
    same!(t.comm.all_to_all_u64(&sent)?, expected, "numbers");
    Ok(())
}

pub(super) fn all_reduce(t: &mut Trial<'_>) -> Result<(), Failure> {
    let count = [0, 1, 5, 3000][t.shared.below(4)];
    // Whole numbers of moderate size, so that floating-point sums are exact in any order.
    let draw = |rank: usize, i: usize| super::mix(t.seed ^ ((rank << 20) + i) as u64) >> 20;
    let ops = [ReduceOp::Min, ReduceOp::Max, ReduceOp::Sum, ReduceOp::BitOr];
    for op in ops {
        let fold = |values: &mut dyn Iterator<Item = i64>| -> i64 {
            let found = match op {
                ReduceOp::Min => values.min(),
                ReduceOp::Max => values.max(),
                ReduceOp::Sum => values.reduce(|a, b| a + b),
                ReduceOp::BitOr => values.reduce(|a, b| a | b),
            };
            found.unwrap_or_default()
        };
        let signed = |rank, i: usize| draw(rank, i) as i64 - (1 << 43);
        let ranks = || 0..t.size;

        let mut u64s: Vec<u64> = (0..count).map(|i| draw(t.rank, i)).collect();
        t.comm.all_reduce(Reduction::U64(&mut u64s), op)?;
        let expected: Vec<u64> = (0..count)
            .map(|i| fold(&mut ranks().map(|rank| draw(rank, i) as i64)) as u64)
            .collect();
        same!(u64s, expected, "{op:?} of u64");

        let mut i64s: Vec<i64> = (0..count).map(|i| signed(t.rank, i)).collect();
        t.comm.all_reduce(Reduction::I64(&mut i64s), op)?;
        let signed_expected: Vec<i64> =
            (0..count).map(|i| fold(&mut ranks().map(|rank| signed(rank, i)))).collect();
        same!(i64s, signed_expected, "{op:?} of i64");

        if op != ReduceOp::BitOr {
            let mut f64s: Vec<f64> = (0..count).map(|i| signed(t.rank, i) as f64).collect();
            t.comm.all_reduce(Reduction::F64(&mut f64s), op)?;
            let expected: Vec<f64> = signed_expected.iter().map(|v| *v as f64).collect();
            same!(f64s, expected, "{op:?} of f64");
        }
    }
    // Over the whole range: a large u64 is not a negative number.
    let wide = |rank: usize| super::mix(t.seed ^ rank as u64);
    let mut least = [wide(t.rank), if t.rank == 0 { 1 } else { u64::MAX }];
    let mut most = least;
    t.comm.all_reduce(Reduction::U64(&mut least), ReduceOp::Min)?;
    t.comm.all_reduce(Reduction::U64(&mut most), ReduceOp::Max)?;
    same!(Some(least[0]), (0..t.size).map(wide).min(), "the least of all u64");
    same!(Some(most[0]), (0..t.size).map(wide).max(), "the most of all u64");
    same!((least[1], most[1]), (1, if t.size == 1 { 1 } else { u64::MAX }), "extremes of u64");
    same!(t.comm.all_equal(42)?, true, "equal numbers");
    same!(t.comm.all_equal(t.rank as u64)?, t.size == 1, "different numbers");
    same!(t.comm.any(t.rank + 1 == t.size)?, true, "any");
    same!(t.comm.all(t.rank + 1 == t.size)?, t.size == 1, "all");
    Ok(())
}

pub(super) fn exclusive_scan(t: &mut Trial<'_>) -> Result<(), Failure> {
    for count in [1, 0, 100] {
        let of = |rank: usize, i: usize| (rank * rank + i) as u64;
        let mut values: Vec<u64> = (0..count).map(|i| of(t.rank, i)).collect();
        t.comm.exclusive_scan(&mut values)?;
        let expected: Vec<u64> =
            (0..count).map(|i| (0..t.rank).map(|rank| of(rank, i)).sum()).collect();
        same!(values, expected, "scan of {count}");
    }
    Ok(())
}

pub(super) fn agreement(t: &mut Trial<'_>) -> Result<(), Failure> {
    same!(t.comm.agree(Ok::<_, String>(t.rank))?, t.rank, "nobody failed");
    let (one, other) = (t.shared.below(t.size), t.shared.below(t.size));
    let mine = if t.rank == one || t.rank == other {
        Err(format!("disk of rank {} is full", t.rank))
    } else {
        Ok(())
    };
    let failed = mine.is_err();
    match t.comm.agree(mine) {
        Err(Disagreement::Failed { rank, message, own }) => {
            same!(rank, one.min(other), "the lowest rank that failed");
            same!(message, format!("disk of rank {rank} is full"), "its message");
            same!(own.is_some(), failed, "own error kept");
        }
        outcome => return Err(format!("agreement on a failure: {outcome:?}").into()),
    }
    let numbers = [t.rank as u64, (t.size - t.rank) as u64];
    let largest = [t.size as u64 - 1, t.size as u64];
    let agreed = t.comm.agree_with(Ok::<_, String>(()), numbers)?;
    same!(agreed, ((), largest), "the largest numbers");
    let last = if t.rank + 1 == t.size { Err("full".to_string()) } else { Ok(()) };
    match t.comm.agree_with(last, numbers) {
        Err(Disagreement::Failed { rank, message, .. }) => {
            same!(
                (rank, &message[..]),
                (t.size - 1, "full"),
                "the rank that failed, and its message"
            );
        }
        outcome => return Err(format!("agreement on numbers and a failure: {outcome:?}").into()),
    }
    Ok(())
}

pub(super) fn merge_up(t: &mut Trial<'_>) -> Result<(), Failure> {
    let merged = t.comm.merge_up(Message::from_u64s(&[t.rank as u64]), |low, high| {
        Message::from([&low[..], &high[..]].concat())
    })?;
    let expected: Vec<u64> = (0..t.size as u64).collect();
    same!(merged.map(|m| m.to_u64s()), (t.rank == 0).then_some(expected), "merged");
    Ok(())
}

pub(super) fn wrong_arguments(t: &mut Trial<'_>) -> Result<(), Failure> {
    let (comm, size) = (t.comm, t.size);
    let missing = |operation| CommError::NoSuchRank { operation, rank: size, size };
    same!(comm.broadcast(size, Message::empty()).err(), Some(missing("broadcast")), "root");
    same!(comm.gather(size, Message::empty()).err(), Some(missing("gather")), "root");
    same!(comm.isend(size, 0, Message::empty()).err(), Some(missing("isend")), "destination");
    same!(comm.irecv(Source::Rank(size), 0).err(), Some(missing("irecv")), "source");
    same!(comm.irecv_sized(size, 0, 1).err(), Some(missing("irecv_sized")), "source");
    let to_nobody = vec![(size, Message::empty())];
    same!(comm.sparse_exchange(to_nobody).err(), Some(missing("sparse_exchange")), "destination");
    let refused = |error: Option<CommError>| matches!(error, Some(CommError::BadArgument { .. }));
    let too_many = vec![Message::empty(); size + 1];
    same!(refused(comm.all_to_all(too_many).err()), true, "one message too many");
    same!(refused(comm.all_to_all_u64(&vec![0; size + 1]).err()), true, "one number too many");
    let floats = Reduction::F64(&mut [1.0]);
    same!(refused(comm.all_reduce(floats, ReduceOp::BitOr).err()), true, "bits of floats");
    same!(refused(comm.split(Some(u32::MAX), 0).err()), true, "colour");
    comm.barrier()?;
    Ok(())
}
