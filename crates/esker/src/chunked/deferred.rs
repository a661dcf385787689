//! Puts of one rank alone into chunked variables.
//!
//! A chunk has an owner, and a rank alone cannot know it. So what it puts is kept in its memory, up to
//! `esker_chunk_pending` bytes, and written with the next collective call, before what that call has itself. The rank
//! sees its own puts when it reads alone; a later put wins over an earlier one.

use esker_comm::CommunicatorExt;
use esker_format::values::swap_in_place;

use super::Chunked;
use crate::error::{Error, Result};
use crate::ground::Ground;
use crate::layout::{Wait, together};
use crate::memory::{Lent, Memory, MemoryLayout, Sides};
use crate::plan::{Overlap, Plan, Sweep};
use crate::request::{Direction, Request, RequestId};

/// What a rank has put alone, in order.
#[derive(Debug, Default)]
pub(crate) struct Deferred {
    puts: Vec<Request<'static>>,
    bytes: u64,
}

impl Deferred {
    pub(super) fn is_empty(&self) -> bool {
        self.puts.is_empty()
    }

    /// Records that the dataset has when these are written.
    fn records(&self) -> u64 {
        self.puts.iter().map(|put| put.records).max().unwrap_or(0)
    }

    pub(super) fn puts(&self) -> &[Request<'static>] {
        &self.puts
    }

    /// Takes them out.
    pub(super) fn take(&mut self) -> Vec<Request<'static>> {
        self.bytes = 0;
        std::mem::take(&mut self.puts)
    }

    /// Puts back what could not be written.
    pub(super) fn give_back(&mut self, puts: Vec<Request<'_>>) {
        self.puts = puts.into_iter().filter_map(owned).collect();
        self.bytes = self.puts.iter().map(|put| put.memory.bytes_len()).sum();
    }

    fn plan(&self) -> Plan<'_> {
        Plan::new(self.puts.iter().map(|put| &put.extent))
    }
}

/// A request that has its memory itself, which those that were kept have.
fn owned(put: Request<'_>) -> Option<Request<'static>> {
    let Request { memory: Memory { lent, layout, sides, fill }, .. } = put;
    let Lent::Kept(values) = lent else { return None };
    let memory = Memory { lent: Lent::Kept(values), layout, sides, fill };
    let Request { id, direction, var, extent, parts, records, whole_records, space, epoch, .. } =
        put;
    let range = Default::default();
    Some(Request {
        id,
        direction,
        var,
        memory,
        extent,
        parts,
        records,
        whole_records,
        space,
        epoch,
        range,
        expected: None,
    })
}

/// Decoded chunks with a rank's own puts over them.
pub(super) struct OwnPuts<'d> {
    deferred: &'d Deferred,
    plan: Plan<'d>,
}

impl<'d> OwnPuts<'d> {
    pub(super) fn of(deferred: &'d Deferred) -> Option<OwnPuts<'d>> {
        (!deferred.is_empty()).then(|| OwnPuts { deferred, plan: deferred.plan() })
    }

    /// To look at chunks by address, from the lowest to the highest.
    pub(super) fn sweep(&self) -> Sweep<'_, 'd> {
        self.plan.sweep()
    }

    /// A chunk as its reader sees it; `None` if nothing lies over it.
    pub(super) fn over(
        &self,
        sweep: &mut Sweep<'_, 'd>,
        unit: u64,
        values: &[u8],
    ) -> Result<Option<Vec<u8>>> {
        let pieces = sweep.take(unit, unit + values.len() as u64, Overlap::LaterWins);
        if pieces.is_empty() {
            return Ok(None);
        }
        let mut over = values.to_vec();
        for piece in pieces {
            let from = (piece.offset - unit) as usize;
            let place = over.get_mut(from..from + piece.len as usize).ok_or(Error::Garbled)?;
            let put = self.deferred.puts.get(piece.request as usize).ok_or(Error::Garbled)?;
            // They fitted when they were kept.
            let _ = put.memory.pack(piece.element, place).map_err(Error::Unchecked)?;
        }
        Ok(Some(over))
    }
}

impl Chunked {
    /// Records that this rank alone knows of.
    pub(super) fn deferred_records(&self) -> u64 {
        self.deferred.records()
    }

    /// Keeps puts of this rank alone for the next collective call.
    pub(super) fn defer(&mut self, ground: &Ground, puts: &mut [Request<'_>]) -> Result<()> {
        let most = ground.base.hints.chunk_pending;
        let new: u64 =
            puts.iter().map(|put| Plan::new([&put.extent].into_iter()).summary.bytes).sum();
        let held = self.deferred.bytes;
        if let Some(put) = puts.first().filter(|_| new.saturating_add(held) > most) {
            let ranks = ground.base.comm.size();
            let why = format!(
                "one of {ranks} ranks cannot write it alone, because its chunks have owners, and {new} bytes more than \
                 the {held} that wait for a collective call are more than the hint esker_chunk_pending ({most}) allows: \
                 use collective calls (put_all, wait_all), or a burst buffer"
            );
            return Err(ground.chunk_error(put.var, why));
        }
        // All are copied before any is kept.
        let mut kept = Vec::with_capacity(puts.len());
        for put in puts.iter_mut() {
            let bytes = Plan::new([&put.extent].into_iter()).summary.bytes;
            let external = put.memory.sides.external;
            let mut values = Vec::new();
            let room = usize::try_from(bytes).ok().filter(|n| values.try_reserve_exact(*n).is_ok());
            let Some(room) = room else {
                let (path, var) = (ground.base.path.clone(), ground.name(put.var));
                return Err(Error::NoMemory { path, var, bytes: bytes.into() });
            };
            values.resize(room, 0);
            put.pack(0, &mut values)?;
            swap_in_place(&mut values, external.size() as usize);
            kept.push(values);
        }
        for (put, values) in puts.iter_mut().zip(kept) {
            let Sides { external, rules, .. } = put.memory.sides;
            let sides = Sides { external, memory: external.natural(), rules };
            let memory = Memory {
                lent: Lent::Kept(values),
                layout: MemoryLayout::dense(),
                sides,
                fill: put.memory.fill,
            };
            self.deferred.bytes += memory.bytes_len();
            self.deferred.puts.push(Request {
                id: RequestId::REPLAYED,
                direction: Direction::Put,
                var: put.var,
                memory,
                extent: std::mem::take(&mut put.extent),
                parts: None,
                records: put.records,
                whole_records: put.whole_records.clone(),
                space: put.space,
                epoch: put.epoch,
                range: Default::default(),
                expected: None,
            });
        }
        Ok(())
    }

    /// Writes what ranks have put alone, which otherwise waits for the next collective read or write. Collective.
    pub(super) fn complete_puts(&mut self, ground: &mut Ground) -> Result<()> {
        if ground.base.comm.size() == 1 || !ground.base.writable {
            return Ok(());
        }
        if !ground.base.comm.any(!self.deferred.is_empty())? {
            return Ok(());
        }
        self.forget_uncounted(ground)?;
        together(self, ground, &mut Wait::default(), Ok(()))
    }
}
