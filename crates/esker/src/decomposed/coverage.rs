//! How many different elements the parts of all ranks have.

use std::collections::BTreeMap;

use esker_comm::CommunicatorExt;
use esker_format::varint;

use super::grid::{Block, Grid};
use crate::error::{Error, Result};
use crate::mail::Mail;

/// The number of elements that some rank has. Collective.
///
/// Each rank counts in an equal share of the grid what the others tell it of, so that nobody has
/// the whole map.
pub(super) fn covered(mail: Mail<'_>, grid: &Grid, blocks: &[Block]) -> Result<u64> {
    let shares = Shares { total: grid.total(), ranks: mail.comm.size() as u64 };
    let mut messages: BTreeMap<usize, (Vec<u8>, u64)> = BTreeMap::new();
    for block in blocks {
        grid.runs(block, |start, len| {
            let (mut at, end) = (start, start + len);
            while at < end {
                let owner = shares.owner(at);
                let until = shares.end(owner).min(end);
                let (bytes, before) = messages.entry(owner as usize).or_default();
                varint::put_difference(bytes, *before, at);
                varint::put(bytes, until - at);
                *before = until;
                at = until;
            }
        });
    }
    let messages = messages.into_iter().map(|(to, (bytes, _))| (to, bytes));
    let received = mail.swap_all(messages.collect(), "it was about who has which elements")?;
    let received = mail.agree(received)?;
    let mut runs = Vec::new();
    for (_, message) in &received {
        let (mut rest, mut before) = (&message[..], 0);
        while !rest.is_empty() {
            let start = varint::take_difference(&mut rest, before).ok_or(Error::Garbled)?;
            let len = varint::take(&mut rest).ok_or(Error::Garbled)?;
            before = start.checked_add(len).ok_or(Error::Garbled)?;
            runs.push((start, before));
        }
    }
    Ok(mail.comm.sum_u64(union(&mut runs))?)
}

/// Elements that any of the runs has.
fn union(runs: &mut [(u64, u64)]) -> u64 {
    runs.sort_unstable();
    let (mut count, mut at) = (0, 0);
    for (start, end) in runs {
        count += end.saturating_sub(at.max(*start));
        at = at.max(*end);
    }
    count
}

/// Who counts what.
struct Shares {
    total: u64,
    ranks: u64,
}

impl Shares {
    fn owner(&self, element: u64) -> u64 {
        let scaled = (u128::from(element) + 1) * u128::from(self.ranks) - 1;
        (scaled / u128::from(self.total)) as u64
    }

    fn end(&self, owner: u64) -> u64 {
        let scaled = u128::from(self.total) * (u128::from(owner) + 1);
        (scaled / u128::from(self.ranks)) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_element_is_counted_by_one_rank() {
        for (total, ranks) in [(1, 1), (1, 5), (10, 3), (7, 16), (1000, 7)] {
            let shares = Shares { total, ranks };
            for element in 0..total {
                let owner = shares.owner(element);
                assert!(owner < ranks && element < shares.end(owner), "{element} of {total}");
                assert!(owner == 0 || element >= shares.end(owner - 1), "{element} of {total}");
            }
        }
    }

    #[test]
    fn what_several_have_is_counted_once() {
        assert_eq!(union(&mut [(5, 9), (0, 3), (2, 6), (20, 21), (7, 8)]), 10);
    }
}
