//! Whether ranks that are about to write for themselves would write the same bytes.
//!
//! Only asked where runs are long and therefore few: each rank sends its runs to the ranks that
//! judge a part of the range each.

use esker_comm::{CommunicatorExt, Message};

use esker_format::runs::Run;

use crate::error::{Error, Result};
use crate::mail::Mail;
use crate::plan::{Overlap, Plan};
use crate::wire::{self, Packet, RunList};

/// Whether two ranks have a byte in common of the range `first..end` of all plans. Collective.
pub(crate) fn ranks_meet(
    mail: Mail<'_>,
    plan: &Plan<'_>,
    (first, end): (u64, u64),
) -> Result<bool> {
    let ranks = mail.comm.size() as u64;
    let part = (end - first).div_ceil(ranks).max(1);
    let mut sweep = plan.sweep();
    let mut messages = Vec::new();
    for judge in 0..ranks {
        let start = first + judge * part;
        let pieces = sweep.take(start, (start + part).min(end), Overlap::LaterWins);
        if pieces.is_empty() {
            continue;
        }
        let mut list = RunList::new(start);
        for piece in pieces {
            list.push(Run { offset: piece.offset, len: piece.len });
        }
        let mut packet = Packet::default();
        packet.ask(start, list);
        messages.push((judge as usize, packet.finish()));
    }
    let came = mail.swap_all(messages, "it was about what ranks are going to write")?;
    let met = came.and_then(|came| is_met(&came));
    // One reduction where all is well.
    match mail.comm.max_u64(met.as_ref().map_or(FAILED, |met| u64::from(*met)))? {
        FAILED => mail.agree(met),
        any => Ok(any > 0),
    }
}

/// What a rank says that could not look.
const FAILED: u64 = 2;

/// Whether any of the runs of several ranks overlap.
fn is_met(came: &[(usize, Message)]) -> Result<bool> {
    let mut all: Vec<Run> = Vec::new();
    for (_, message) in came {
        for section in wire::sections(message) {
            let (start, place) = section.ok_or(Error::Garbled)?;
            let (runs, _) = wire::open(&message[place], start).ok_or(Error::Garbled)?;
            all.extend(runs.runs());
        }
    }
    all.sort_unstable_by_key(|run| run.offset);
    // One rank's runs do not overlap, so that an overlap is between two.
    Ok(all.windows(2).any(|w| w[0].end() > w[1].offset))
}
