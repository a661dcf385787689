//! Messages between two ranks.

use std::time::{Duration, Instant};

use super::{Failure, Trial, same};
use crate::{CommError, Message, Received, Receiving, Sending, Source};

pub(super) fn ring(t: &mut Trial<'_>) -> Result<(), Failure> {
    let (right, left) = ((t.rank + 1) % t.size, (t.rank + t.size - 1) % t.size);
    for (number, length) in [0, 1, 1000, 100_000].into_iter().enumerate() {
        let sending = t.comm.isend(right, 3, t.sized(t.rank, right, number, length))?;
        let expected = t.sized(left, t.rank, number, length);
        let receiving = if number % 2 == 0 {
            t.comm.irecv(Source::Rank(left), 3)?
        } else {
            t.comm.irecv_sized(left, 3, length)?
        };
        let received = receiving.wait()?;
        same!(received, Received { source: left, message: expected }, "{length} bytes");
        sending.wait()?;
    }
    Ok(())
}

pub(super) fn many_outstanding(t: &mut Trial<'_>) -> Result<(), Failure> {
    let each = 400 / t.size + 1;
    let mut receives = Vec::new();
    let mut sends = Vec::new();
    // Receives first: nothing has arrived when they are posted.
    for from in 0..t.size {
        for number in 0..each {
            let length = t.message(from, t.rank, number, 300).len();
            receives.push(if from % 2 == 0 {
                t.comm.irecv_sized(from, 1, length)?
            } else {
                t.comm.irecv(Source::Rank(from), 1)?
            });
        }
    }
    for number in 0..each {
        for to in 0..t.size {
            sends.push(t.comm.isend(to, 1, t.message(t.rank, to, number, 300))?);
        }
    }
    for (index, received) in Receiving::wait_all(receives)?.into_iter().enumerate() {
        let (from, number) = (index / each, index % each);
        let message = t.message(from, t.rank, number, 300);
        same!(received, Received { source: from, message }, "message {number} of {from}");
    }
    Sending::wait_all(sends)?;
    Ok(())
}

pub(super) fn tags_choose(t: &mut Trial<'_>) -> Result<(), Failure> {
    let to = t.shared.below(t.size);
    let tags = [0u16, 1, 7, 40_000, u16::MAX - 1];
    let mut sends = Vec::new();
    for tag in tags {
        sends.push(t.comm.isend(to, tag, t.message(t.rank, to, tag.into(), 200))?);
    }
    if t.rank == to {
        // Taken in the other order than sent, and by source from the last.
        for tag in tags.into_iter().rev() {
            for from in (0..t.size).rev() {
                let received = t.comm.irecv(Source::Rank(from), tag)?.wait()?;
                same!(received.message, t.message(from, to, tag.into(), 200), "tag {tag}");
            }
        }
    }
    Sending::wait_all(sends)?;
    Ok(())
}

pub(super) fn any_source(t: &mut Trial<'_>) -> Result<(), Failure> {
    let to = t.shared.below(t.size);
    let each = 5;
    let mut sends = Vec::new();
    for number in 0..each {
        sends.push(t.comm.isend(to, 2, t.message(t.rank, to, number, 2000))?);
    }
    if t.rank == to {
        let mut seen = vec![0; t.size];
        for _ in 0..each * t.size {
            let Received { source, message } = t.comm.irecv(Source::Any, 2)?.wait()?;
            same!(message, t.message(source, to, seen[source], 2000), "in order from {source}");
            seen[source] += 1;
        }
        same!(seen, vec![each; t.size], "messages of each rank");
    }
    Sending::wait_all(sends)?;
    Ok(())
}

pub(super) fn large_messages(t: &mut Trial<'_>) -> Result<(), Failure> {
    let (right, left) = ((t.rank + 1) % t.size, (t.rank + t.size - 1) % t.size);
    let length = t.effort.large;
    // Two at once, one of known length and one not, and a slice of a shared buffer.
    let sends = [
        t.comm.isend(right, 4, t.sized(t.rank, right, 0, length))?,
        t.comm.isend(right, 5, t.sized(t.rank, right, 1, length).into_shared().slice(3..length))?,
    ];
    let known = t.comm.irecv_sized(left, 4, length)?;
    let unknown = t.comm.irecv(Source::Any, 5)?.wait()?;
    same!(unknown.message[..], t.sized(left, t.rank, 1, length)[3..], "unknown length");
    same!(known.wait()?.message, t.sized(left, t.rank, 0, length), "known length");
    Sending::wait_all(sends)?;
    Ok(())
}

pub(super) fn testing(t: &mut Trial<'_>) -> Result<(), Failure> {
    let (right, left) = ((t.rank + 1) % t.size, (t.rank + t.size - 1) % t.size);
    let mut receives = [t.comm.irecv(Source::Rank(left), 8)?, t.comm.irecv_sized(left, 9, 10)?];
    for receive in &mut receives {
        same!(receive.test()?, None, "before anyone sends");
    }
    t.comm.barrier()?;
    let mut sends = Vec::new();
    for tag in [8u16, 9] {
        sends.push(t.comm.isend(right, tag, t.sized(t.rank, right, tag.into(), 10))?);
    }
    let deadline = Instant::now() + Duration::from_secs(30);
    for (mut receive, tag) in receives.into_iter().zip([8usize, 9]) {
        let received = loop {
            if let Some(received) = receive.test()? {
                break received;
            }
            same!(Instant::now() < deadline, true, "the message arrives");
            std::thread::yield_now();
        };
        same!(received.message, t.sized(left, t.rank, tag, 10), "tested");
        same!(receive.test().err(), Some(CommError::AlreadyReceived), "a second time");
        same!(receive.wait().err(), Some(CommError::AlreadyReceived), "a third time");
    }
    for send in &mut sends {
        while !send.test()? {
            std::thread::yield_now();
        }
        same!(send.test()?, true, "done stays done");
    }
    Ok(())
}

pub(super) fn wait_any(t: &mut Trial<'_>) -> Result<(), Failure> {
    let length = 20_000;
    let mut receives = Vec::new();
    for from in 0..t.size {
        receives.push(t.comm.irecv_sized(from, 6, length)?);
    }
    let mut sends = Vec::new();
    for to in 0..t.size {
        let to = (to + t.rank) % t.size;
        sends.push(t.comm.isend(to, 6, t.sized(t.rank, to, 0, length))?);
    }
    let mut seen = vec![false; t.size];
    while let Some(Received { source, message }) = Receiving::wait_any(&mut receives)? {
        same!(message, t.sized(source, t.rank, 0, length), "message of {source}");
        same!(std::mem::replace(&mut seen[source], true), false, "once from {source}");
    }
    same!(seen, vec![true; t.size], "one from each");
    Sending::wait_all(sends)?;
    Ok(())
}

pub(super) fn dropped_requests(t: &mut Trial<'_>) -> Result<(), Failure> {
    let (right, left) = ((t.rank + 1) % t.size, (t.rank + t.size - 1) % t.size);
    drop(t.comm.irecv(Source::Any, 11)?);
    drop(t.comm.irecv_sized(left, 12, 100)?);
    t.comm.barrier()?;
    // A large message, so that it cannot have left when the request is dropped.
    drop(t.comm.isend(right, 12, t.sized(t.rank, right, 0, t.effort.large))?);
    drop(t.comm.isend(right, 11, t.sized(t.rank, right, 1, 10))?);
    let small = t.comm.irecv(Source::Rank(left), 11)?.wait()?;
    same!(small.message, t.sized(left, t.rank, 1, 10), "small");
    let large = t.comm.irecv(Source::Rank(left), 12)?.wait()?;
    same!(large.message, t.sized(left, t.rank, 0, t.effort.large), "large");
    Ok(())
}

pub(super) fn wrong_length(t: &mut Trial<'_>) -> Result<(), Failure> {
    let (right, left) = ((t.rank + 1) % t.size, (t.rank + t.size - 1) % t.size);
    // On a duplicate: after an error nothing is promised of a communicator.
    let comm = t.comm.duplicate()?;
    let sending = comm.isend(right, 13, Message::from(vec![1; 10]))?;
    let error = comm.irecv_sized(left, 13, 20)?.wait().err();
    let expected =
        CommError::UnexpectedLength { source_rank: left, tag: 13, expected: 20, found: 10 };
    same!(error, Some(expected), "too short");
    sending.wait()?;
    t.comm.barrier()?;
    Ok(())
}
