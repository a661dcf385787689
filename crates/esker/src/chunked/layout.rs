//! Chunked variables as a layout: what is for them is planned in addresses of chunks before ranks agree, and moved
//! after the requests of ordinary variables were.

use std::sync::Arc;

use esker_comm::CommunicatorExt;
use esker_format::chunked::begun_of;
use esker_format::{Schema, VarId};

use super::Chunked;
use super::read::touched;
use crate::base::read_header;
use crate::bounded::CacheUse;
use crate::canonical::{count, detach_extents};
use crate::counting::{Begun, same_but_for_growth};
use crate::error::{Error, Result};
use crate::ground::Ground;
use crate::hints::Hints;
use crate::layout::{Announced, Asked, Layout, Noted, Over, Room, Stage, Wait};
use crate::plan::{Extent, Plan};
use crate::report::{Report, Strategy};
use crate::request::Request;
use crate::selection::Checked;
use crate::strategy::ForUnits;

/// Requests of one direction, planned.
pub(super) struct Planned<'e> {
    pub(super) plan: Plan<'e>,
    /// The chunks that they touch, by address, with the bytes that they have of each.
    pub(super) units: Vec<(u64, u64)>,
    requests: usize,
}

/// What is remembered of a wait: the chunks that writes and reads touch, and whether somebody else writes the file.
struct Announcing {
    writes: Vec<(u64, u64)>,
    reads: Vec<(u64, u64)>,
    sole: Result<()>,
}

impl Chunked {
    pub(super) fn plan<'e>(&self, extents: &'e [Extent]) -> Planned<'e> {
        let (plan, units) = (Plan::new(extents.iter()), touched(&self.space, extents.iter()));
        Planned { plan, units, requests: extents.len() }
    }

    /// What this rank has put alone, which comes before what it puts now.
    fn puts_alone(&self, ground: &Ground) -> &[Request<'static>] {
        match ground.base.writable {
            true => self.deferred.puts(),
            false => &[],
        }
    }

    /// Writes what a wait has. Collective.
    fn write_batch(
        &mut self,
        ground: &mut Ground,
        puts: &mut Vec<Request<'_>>,
        units: Vec<(u64, u64)>,
        together: &ForUnits,
    ) -> Result<()> {
        let alone: Vec<Request<'_>> = match ground.base.writable {
            true => self.deferred.take().into_iter().collect(),
            false => Vec::new(),
        };
        let count = alone.len();
        let mut all: Vec<Request<'_>> = alone;
        all.append(puts);
        let extents = detach_extents(&mut all);
        let planned = Planned { plan: Plan::new(extents.iter()), units, requests: extents.len() };
        let mut report = ground.report;
        planned.count(&mut report);
        let written = self.write_planned(ground, &mut all, &planned, together, &mut report);
        ground.report = report;
        // What has failed may be tried again.
        drop(planned);
        all.iter_mut().zip(extents).for_each(|(put, extent)| put.extent = extent);
        *puts = all.split_off(count);
        if written.is_err() {
            self.deferred.give_back(all);
        }
        written
    }
}

impl Planned<'_> {
    pub(super) fn count(&self, report: &mut Report) {
        count(report, &self.plan, self.requests);
    }

    /// Bytes of the chunks, and how many of these are wanted.
    pub(super) fn whole_and_wanted(&self, chunked: &Chunked) -> (u64, u64) {
        whole_and_wanted(chunked, &self.units)
    }
}

fn whole_and_wanted(chunked: &Chunked, units: &[(u64, u64)]) -> (u64, u64) {
    let bytes_of = |unit: u64| chunked.space.chunk_at(unit).map_or(0, |(_, _, bytes)| bytes);
    let of_one =
        |(whole, wanted), (unit, bytes): &(u64, u64)| (whole + bytes_of(*unit), wanted + bytes);
    units.iter().fold((0, 0), of_one)
}

/// What makes the layout of chunked variables.
#[derive(Debug)]
pub(crate) struct ChunkRoom;

impl Room for ChunkRoom {
    fn open(&self, ground: &mut Ground) -> Option<Box<dyn Layout>> {
        if ground.base.raw {
            return None;
        }
        let chunked = Chunked::of(&ground.header, &ground.base)?;
        // Programs do not see the variable that ends the chunks.
        ground.fills.truncate(chunked.schema.vars.len());
        ground.shown = Some(chunked.schema.clone());
        ground.sole = true;
        ground.in_folder = chunked.files.is_some();
        ground.begun = Some(Begun::of(&ground.header, chunked.files.is_some()));
        Some(chunked)
    }
}

impl Layout for Chunked {
    fn has(&self, var: VarId) -> bool {
        self.var(var).is_some()
    }

    fn check(&self, ground: &Ground, asked: Asked<'_>) -> Result<Checked> {
        if asked.selection.as_blob().is_some() {
            return Err(ground.not_decomposed(asked.var));
        }
        self.check_in_chunks(ground, asked)
    }

    fn shape(&self, ground: &Ground, var: VarId, in_logs: bool) -> Result<Vec<u64>> {
        // The shape of an anchor that is none is not that of a scalar, and records that nobody has begun are none.
        if let Some(found) = self.found(ground, var)? {
            self.require_begun(ground, (var, found), ground.records, in_logs)?;
        }
        let variable = self.schema.variable(var).ok_or(Error::Garbled)?;
        Ok(self.schema.shape(variable, self.records_known(ground)))
    }

    fn require_sound(&self, ground: &Ground, var: VarId) -> Result<()> {
        self.found(ground, var).map(drop)
    }

    fn boxes(&self, var: VarId) -> Option<&[u64]> {
        match self.var(var)? {
            Ok(found) => Some(&found.chunking.chunk),
            Err(_) => None,
        }
    }

    fn records(&self, ground: &Ground) -> u64 {
        self.records_known(ground)
    }

    fn holds_back(&self) -> bool {
        !self.deferred.is_empty()
    }

    fn write_alone(
        &mut self,
        ground: &mut Ground,
        puts: &mut Vec<Request<'_>>,
        report: &mut Report,
    ) -> Result<()> {
        if ground.base.comm.size() > 1 {
            return self.defer(ground, puts);
        }
        self.require_sole(ground)?;
        let extents = detach_extents(puts);
        let planned = self.plan(&extents);
        planned.count(report);
        let records = puts.iter().map(|put| put.records).max().unwrap_or(0);
        let written = planned.units.len() as u64;
        let together = ForUnits { records, written, ..ForUnits::default() };
        let written = self.write_planned(ground, puts, &planned, &together, report);
        // What has failed may be tried again.
        drop(planned);
        puts.iter_mut().zip(extents).for_each(|(put, extent)| put.extent = extent);
        written
    }

    fn read_alone(
        &self,
        ground: &Ground,
        gets: &mut Vec<Request<'_>>,
        over: Option<&Arc<dyn Over>>,
        report: &mut Report,
    ) -> Result<()> {
        report.read_strategy = Strategy::Direct;
        self.read_by_itself(ground, gets, over, report)
    }

    fn mend(&mut self, ground: &mut Ground) -> Result<()> {
        self.forget_uncounted(ground)
    }

    fn announce(&self, ground: &mut Ground, wait: &mut Wait<'_>) -> Announced {
        let Wait { puts, gets, .. } = wait;
        let alone = self.puts_alone(ground);
        let all = || alone.iter().map(|p| (&p.extent, p.records));
        let all = all().chain(puts.iter().map(|p| (&p.extent, p.records)));
        let records = all.clone().map(|(_, records)| records).max().unwrap_or(0);
        let writes = touched(&self.space, all.map(|(extent, _)| extent));
        let reads = touched(&self.space, gets.iter().map(|get| &get.extent));
        let (whole, wanted) = whole_and_wanted(self, &reads);
        // Before anything is written.
        let is_root = ground.base.is_root() && ground.base.writable;
        let sole = if is_root { self.require_sole(ground) } else { Ok(()) };
        let numbers = ForUnits {
            records,
            written: writes.len() as u64,
            refused: sole.is_err().into(),
            read: reads.len() as u64,
            wanted,
            vain: whole.saturating_sub(wanted.saturating_add(wanted / 2)),
        };
        (Ok(()), numbers.fields().to_vec(), Box::new(Announcing { writes, reads, sole }))
    }

    fn act(
        &mut self,
        ground: &mut Ground,
        wait: &mut Wait<'_>,
        agreed: &[u64],
        kept: Noted,
    ) -> Result<()> {
        let Announcing { writes, reads, sole } = *kept.downcast().map_err(|_| Error::Garbled)?;
        let together = ForUnits::of(agreed.try_into().map_err(|_| Error::Garbled)?);
        if together.written > 0 {
            match together.refused {
                0 => self.write_batch(ground, &mut wait.puts, writes, &together)?,
                _ => ground.base.agree(sole)?,
            }
        }
        let gets = &mut wait.gets;
        let extents = detach_extents(gets);
        let plan = Plan::new(extents.iter());
        let planned = Planned { plan, units: reads, requests: gets.len() };
        let mut report = ground.report;
        planned.count(&mut report);
        let read = self.read_shared(ground, &planned, gets, &together, &mut report);
        ground.report = report;
        read
    }

    fn settle(&mut self, ground: &mut Ground, stage: Stage) -> Result<()> {
        match stage {
            Stage::Brought => self.complete_puts(ground),
            Stage::Ended => {
                self.settle_end(ground)?;
                // Before the file is made what readers count on.
                ground.base.by_root(|| self.require_sole(ground)).map(drop)
            }
            Stage::Safe => {
                if let Some(files) = &self.files {
                    // The chunks of every rank, before a table that speaks of them.
                    ground.base.agree(files.sync_chunks())?;
                    ground.base.agree(files.sync_tables())?;
                }
                ground.base.by_root(|| self.require_sole(ground)).map(drop)
            }
            Stage::Synced => {
                self.heap.synced();
                // Not before: whatever a loss of power leaves, the file counts as many records as this says.
                self.settle_records(ground)
            }
            Stage::Redefined => self.know_heap(ground),
            Stage::Closed => Ok(()),
        }
    }

    fn refresh(&mut self, ground: &mut Ground) -> Result<()> {
        self.forget_chunks(ground);
        let found = ground.base.by_root(|| {
            let (header, _) = read_header(&ground.base.path, &**ground.main())?;
            let same = same_but_for_growth(&header, &ground.header);
            Ok(if same { begun_of(&header.schema).unwrap_or(0) } else { 0 })
        })?;
        let begun = ground.base.comm.max_u64(found.unwrap_or(0))?;
        ground.has_begun(begun);
        Ok(())
    }

    fn may_become(&self, ground: &Ground, schema: &Schema) -> Result<()> {
        self.require_same(ground, schema)
    }

    fn amended(&mut self, ground: &mut Ground) {
        self.describe_again(ground);
    }

    fn fill_record(&mut self, ground: &mut Ground, var: VarId, record: u64) -> Result<()> {
        self.fill_one_record(ground, var, record)
    }

    fn caches(&self, hints: &Hints) -> Vec<CacheUse> {
        self.caches_now(hints).to_vec()
    }
}
