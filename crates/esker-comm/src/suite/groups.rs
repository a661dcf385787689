//! Communicators made from others.

use std::sync::Arc;

use super::{Failure, Trial, same};
use crate::{Communicator, CommunicatorExt, Message, Source};

pub(super) fn split(t: &mut Trial<'_>) -> Result<(), Failure> {
    // Three colours, one rank in five without, and keys that turn the order round.
    let colour = |rank: usize| (rank % 5 != 4).then_some((rank % 3) as u32 * 1000);
    let part = t.comm.split(colour(t.rank), -(t.rank as i32))?;
    same!(part.is_some(), colour(t.rank).is_some(), "a communicator if a colour");
    let Some(part) = part else { return Ok(()) };
    let members: Vec<usize> =
        (0..t.size).rev().filter(|rank| colour(*rank) == colour(t.rank)).collect();
    same!(part.size(), members.len(), "size");
    same!(members.get(part.rank()), Some(&t.rank), "rank");
    let gathered = part.all_gather_u64(&[t.rank as u64])?;
    same!(gathered, members.iter().map(|r| *r as u64).collect::<Vec<_>>(), "members");
    Ok(())
}

pub(super) fn nested_splits(t: &mut Trial<'_>) -> Result<(), Failure> {
    let mut comm: Arc<dyn Communicator> = t.comm.duplicate()?;
    let mut members: Vec<u64> = (0..t.size as u64).collect();
    while comm.size() > 1 {
        let half = comm.size() / 2;
        let upper = comm.rank() >= half;
        members = if upper { members.split_off(half) } else { members[..half].to_vec() };
        let part = comm.split(Some(upper.into()), 0)?.ok_or("a colour gives a communicator")?;
        // The parent still works while the part is used.
        same!(comm.sum_u64(1)?, comm.size() as u64, "sum in the parent");
        same!(part.all_gather_u64(&[t.rank as u64])?, members, "members of the part");
        comm = part;
    }
    same!(members, [t.rank as u64], "the last part is this rank alone");
    Ok(())
}

pub(super) fn by_node(t: &mut Trial<'_>) -> Result<(), Failure> {
    let node = t.comm.split_by_node()?;
    let members = node.all_gather_u64(&[t.rank as u64])?;
    same!(members.get(node.rank()), Some(&(t.rank as u64)), "own place");
    same!(members.is_sorted(), true, "in the order of ranks");
    // Every rank is on exactly one node: the leaders' sizes add up.
    let leads = if node.rank() == 0 { node.size() } else { 0 };
    same!(t.comm.sum_u64(leads as u64)?, t.size as u64, "ranks on all nodes");
    Ok(())
}

pub(super) fn duplicate_does_not_interfere(t: &mut Trial<'_>) -> Result<(), Failure> {
    let other = t.comm.duplicate()?;
    same!((other.rank(), other.size()), (t.rank, t.size), "the same ranks");
    let (right, left) = ((t.rank + 1) % t.size, (t.rank + t.size - 1) % t.size);
    let sends = [
        t.comm.isend(right, 0, Message::from(vec![1]))?,
        other.isend(right, 0, Message::from(vec![2]))?,
    ];
    // Received in the other order than sent; collectives in between.
    other.barrier()?;
    same!(other.irecv(Source::Any, 0)?.wait()?.message[..], [2], "the duplicate's message");
    t.comm.barrier()?;
    same!(t.comm.irecv(Source::Rank(left), 0)?.wait()?.message[..], [1], "the original's message");
    crate::Sending::wait_all(sends)?;
    // Many in a row do not run out of anything.
    for _ in 0..20 {
        t.comm.duplicate()?.barrier()?;
    }
    Ok(())
}

pub(super) fn threads_with_duplicates(t: &mut Trial<'_>) -> Result<(), Failure> {
    let comms = [t.comm.duplicate()?, t.comm.duplicate()?];
    let results: Vec<_> = std::thread::scope(|scope| {
        let threads = comms.iter().enumerate().map(|(number, comm)| {
            scope.spawn(move || -> Result<u64, crate::CommError> {
                let mut sum = 0;
                for i in 0..20 {
                    sum += comm.sum_u64(number as u64 + i)?;
                }
                Ok(sum)
            })
        });
        let threads: Vec<_> = threads.collect();
        threads.into_iter().map(|thread| thread.join()).collect()
    });
    for (number, result) in results.into_iter().enumerate() {
        let sum = result.map_err(|_| "a thread panicked")??;
        same!(sum, (190 + 20 * number as u64) * t.size as u64, "sum of thread {number}");
    }
    Ok(())
}
