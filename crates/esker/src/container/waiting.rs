//! Waiting for a version that somebody else is going to commit.
//!
//! Rank 0 looks, now and then; the others sleep as long as it does, and are told then. So nobody spins, whatever the
//! MPI does in a broadcast.

use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use esker_comm::{Communicator, Message};
use esker_format::log::{Promise, PromiseSlot};
use esker_store::Store;

use super::versions::{Read, Shelf, gives_names, history, of_history};
use super::{Format, Mark, broken, is_container};
use crate::base::told_of_root;
use crate::error::{Error, Result};
use crate::held::After;

/// How long is slept at first, and at last.
const SHORTEST: Duration = Duration::from_millis(1);
const LONGEST: Duration = Duration::from_millis(100);

/// What rank 0 tells.
const NOT_YET: u64 = 0;
const TOO_LATE: u64 = 1;
const FOUND: u64 = 2;

/// Waits for the first version behind one: the first that has values or definitions of its own and can be opened. Collective.
pub(crate) fn next_version(
    comm: &dyn Communicator,
    store: &Arc<dyn Store>,
    path: &Path,
    after: After,
) -> Result<u64> {
    let began = Instant::now();
    let mut pause = SHORTEST;
    loop {
        let looked = match comm.rank() {
            0 => first_behind(store, path, after.version).map(|found| match found {
                Some(number) => [FOUND, number],
                None if after.timeout.is_some_and(|timeout| began.elapsed() >= timeout) => {
                    [TOO_LATE, 0]
                }
                None => [NOT_YET, 0],
            }),
            _ => Ok([NOT_YET, 0]),
        };
        let told = told_of_root(comm, looked.map(|told| Message::from_u64s(&told).to_vec()))?;
        let told = <[u64; 2]>::try_from(Message::from(told).to_u64s());
        match told.map_err(|_| Error::Garbled)? {
            [FOUND, number] => return Ok(number),
            [TOO_LATE, _] => {
                return Err(Error::NoVersionYet {
                    path: path.to_path_buf(),
                    after: after.version,
                    waited: after.timeout.unwrap_or_default(),
                });
            }
            _ => {}
        }
        let left = after.timeout.map(|timeout| timeout.saturating_sub(began.elapsed()));
        sleep(pause.min(left.unwrap_or(pause)));
        pause = (pause * 2).min(LONGEST);
    }
}

/// The first version behind one that can be opened and does more than give names.
fn first_behind(store: &Arc<dyn Store>, path: &Path, after: u64) -> Result<Option<u64>> {
    if !is_container(&**store, path)? {
        // Who waits for the first version may be there before the container.
        return match after == 0 && !store.exists(path)? {
            true => Ok(None),
            false => Err(broken(path, "it is no container, and has no versions to wait for")),
        };
    }
    let path = &store.resolve(path)?;
    let store = &store.enclosed(path)?;
    Mark::require(&**store, path)?;
    let shelf = Shelf::open(store, path)?;
    let top = shelf.top()?;
    if top <= after {
        return Ok(None);
    }
    let expired = expired(&shelf)?;
    let history = history(store, path, 0);
    let mut number = after.saturating_add(1);
    while number <= top {
        if let Some(range) = expired.iter().find(|range| range.contains(&number)) {
            number = range.end().saturating_add(1);
            continue;
        }
        let slot = shelf.promises.of(number)?;
        match shelf.read(number, &slot)? {
            Read::Whole(..) => {
                let names = shelf.format == Format::Two
                    && gives_names(&history, number).map_err(|e| of_history(path, e))?;
                if !names {
                    return Ok(Some(number));
                }
            }
            Read::GivenUp => {}
            found @ (Read::Damaged(_) | Read::Absent) => {
                if let PromiseSlot::Promise(Promise { durable: true, .. }) = slot {
                    let what = match found {
                        Read::Damaged(what) => what,
                        _ => "it is not there".to_string(),
                    };
                    let why = format!("version {number} was synced, and cannot be read: {what}");
                    return Err(broken(path, why));
                }
            }
        }
        number += 1;
    }
    Ok(None)
}

/// Numbers of versions that may not be opened any more, but for those that have names.
fn expired(shelf: &Shelf) -> Result<Vec<RangeInclusive<u64>>> {
    let Some(last) = shelf.last_readable().ok().flatten() else { return Ok(Vec::new()) };
    let (Ok(expired), Ok(tags)) = (last.expired(), last.tags()) else { return Ok(Vec::new()) };
    let mut ranges = Vec::new();
    for range in expired {
        let (mut first, end) = (*range.start(), *range.end());
        let mut named: Vec<u64> = tags.iter().map(|(_, _, number)| *number).collect();
        named.sort_unstable();
        for number in named.into_iter().filter(|number| range.contains(number)) {
            if first < number {
                ranges.push(first..=number - 1);
            }
            first = number + 1;
        }
        if first <= end {
            ranges.push(first..=end);
        }
    }
    Ok(ranges)
}
