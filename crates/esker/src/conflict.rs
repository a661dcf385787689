//! Whether ranks that are about to write for themselves would write the same bytes.
//!
//! Only asked where runs are long and therefore few: each rank sends its runs to the ranks that
//! judge a part of the range each.

use esker_comm::{Communicator, CommunicatorExt, Message};

use esker_format::runs::Run;

use crate::error::{Error, Result};
use crate::plan::{Overlap, Plan};
use crate::wire::{self, Packet, RunList};

/// Whether two ranks have a byte in common of the range `first..end` of all plans. Collective.
pub(crate) fn ranks_meet(
    comm: &dyn Communicator,
    plan: &Plan<'_>,
    (first, end): (u64, u64),
) -> Result<bool> {
    let ranks = comm.size() as u64;
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
        messages.push((judge as usize, Message::from(packet.finish())));
    }
    let mut all: Vec<Run> = Vec::new();
    for (_, message) in comm.sparse_exchange(messages)? {
        for section in wire::sections(&message) {
            let (start, place) = section.ok_or(Error::Garbled)?;
            let (runs, _) = wire::open(&message[place], start).ok_or(Error::Garbled)?;
            all.extend(runs.runs());
        }
    }
    all.sort_unstable_by_key(|run| run.offset);
    // One rank's runs do not overlap, so that an overlap is between two.
    let met = all.windows(2).any(|w| w[0].end() > w[1].offset);
    Ok(comm.any(met)?)
}
