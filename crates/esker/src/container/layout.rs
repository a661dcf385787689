//! A container as a layout: every rank appends to a log, and reads ask an index for elements of records.

use std::sync::Arc;
use std::time::Instant;

use esker_format::{Header, NumRecs, VarId, Variable, values};

use super::chunks::Planned;
use super::seeing::Wanted;
use super::{Container, Standing};
use crate::bounded::CacheUse;
use crate::canonical::Canonical;
use crate::error::{Error, Result};
use crate::ground::Ground;
use crate::hints::Hints;
use crate::layout::{Announced, Asked, Layout, Noted, Over, Wait, together};
use crate::lists::is_worth;
use crate::log::{self, Parts, View, questions, record_step};
use crate::memory::{Lent, MemoryLayout};
use crate::plan::{Extent, Plan};
use crate::report::{Report, Strategy};
use crate::request::{Direction, Request, RequestId};
use crate::selection::{Checked, Purpose, Selection, Space};
use crate::strategy::{self, Mine, Together};

/// Whether somebody writes, whether somebody reads, how logs stand, and how many chunks a rank puts into.
const OWN: usize = 6;

impl Container {
    /// Appends to this rank's log.
    fn append(
        &mut self,
        ground: &mut Ground,
        puts: &mut [Request<'_>],
        report: &mut Report,
    ) -> Result<()> {
        let clock = Instant::now();
        report.write_strategy = Strategy::Appended;
        report.requests += puts.len() as u64;
        let appended = puts.iter_mut().try_for_each(|put| self.append_one(ground, put, report));
        report.phases.write += clock.elapsed();
        appended
    }

    /// Whether the requests are for variables that are cut into chunks.
    fn is_gridded(&self, put: &Request<'_>) -> bool {
        self.gridded.as_ref().is_some_and(|gridded| gridded.has(put.var))
    }

    /// What puts have for chunks, in their order.
    fn plan_chunks(&self, ground: &Ground, puts: &mut [Request<'_>]) -> Result<Planned> {
        match &self.gridded {
            None => Ok(Planned::default()),
            Some(gridded) => {
                let puts = puts.iter_mut().filter(|put| gridded.has(put.var));
                gridded.plan(ground, puts)
            }
        }
    }

    /// Moves what a wait puts: into this rank's log, and into chunks, of which each rank has at most so many. Collective.
    fn put_batch(
        &mut self,
        ground: &mut Ground,
        puts: &mut Vec<Request<'_>>,
        (planned, chunks): (&Planned, u64),
        report: &mut Report,
    ) -> Result<()> {
        if chunks == 0 {
            return self.append(ground, puts, report);
        }
        let all = std::mem::take(puts);
        let (mut gridded, mut others): (Vec<_>, Vec<_>) =
            all.into_iter().partition(|put| self.is_gridded(put));
        let appended = match others.is_empty() {
            true => Ok(()),
            false => self.append(ground, &mut others, report),
        };
        if ground.base.comm.size() > 1 {
            // What is put together lies over what any rank has put alone before.
            self.epoch += 1;
        }
        let accesses = chunks.saturating_mul(ground.base.comm.size() as u64);
        let gathered = self.gather(ground, &mut gridded, planned, accesses, report);
        if gathered.is_ok() {
            let most = gridded.iter().map(|put| put.records).max().unwrap_or(0);
            ground.records = ground.records.max(most);
        }
        puts.append(&mut others);
        puts.append(&mut gridded);
        appended.and(gathered)
    }

    pub(super) fn append_one(
        &mut self,
        ground: &mut Ground,
        put: &mut Request<'_>,
        report: &mut Report,
    ) -> Result<()> {
        let variable = ground.header.schema.variable(put.var).ok_or(Error::Garbled)?;
        let step = record_step(&ground.header, variable);
        let (epoch, filters) = (self.epoch, self.view.filters(put.var));
        let Some(writer) = self.writer() else { return Ok(()) };
        let appended = writer.append(put, step, epoch, filters.as_deref(), report);
        appended.map_err(|error| match error {
            Error::Filter(why) => {
                let (path, name) = (ground.base.path.display(), &variable.name);
                Error::Filter(format!("{path}: variable {name:?}: {why}"))
            }
            other => other,
        })?;
        // What was appended before a failure is there.
        ground.records = ground.records.max(put.records);
        Ok(())
    }

    /// Checks a list of blocks that is to be written. One that a log has met is known.
    fn check_list(
        &self,
        ground: &Ground,
        asked: Asked<'_>,
        variable: &Variable,
    ) -> Option<Result<Checked>> {
        let slabs = asked.selection.slabs().filter(|slabs| is_worth(slabs))?;
        let is_record = ground.header.schema.is_record(variable);
        let mut shape = ground.header.schema.shape(variable, 0);
        let known = |(parts, record): (Arc<Parts>, u64)| Checked {
            elements: parts.elements,
            records: if is_record { record + 1 } else { 0 },
            extent: Extent::new(1),
            whole_records: None,
            parts: Some((parts, record)),
            gaps: Vec::new(),
            space: Space::Log,
        };
        let step = record_step(&ground.header, variable);
        shape.drain(..usize::from(is_record));
        let frame = (shape, is_record);
        let budget = ground.base.hints.cache;
        let mut memo = self.memo();
        if slabs.rank == variable.dims.len()
            && let Some(found) = memo.find(slabs, &frame, budget)
        {
            return Some(Ok(known(found)));
        }
        let checked = Canonical.check(ground, Asked { space: Space::Log, ..asked });
        let Ok(mut checked) = checked else { return Some(checked) };
        let numbers = (step, checked.elements);
        let kept = memo.insert(slabs, &frame, &mut checked.extent, numbers, budget);
        Some(Ok(kept.map_or(checked, known)))
    }

    /// What this rank will read, in numbers of the classic file that this stands for.
    fn to_be_read(&self, ground: &Ground, gets: &[Request<'_>]) -> Mine {
        let hole = ground.base.hints.sieve_hole;
        let all = gets.iter().map(|get| (get.var, &get.extent));
        let (summary, sieved) = log::summary(&ground.header, all, hole);
        let waste = sieved / summary.bytes.max(1);
        Mine { summary, waste, records: ground.records, block: ground.file.block_size() }
    }

    /// Reads what any rank has written before. Collective.
    fn read_batch(
        &mut self,
        ground: &mut Ground,
        gets: &mut [Request<'_>],
        together: &Together,
        logs: Standing,
    ) -> Result<()> {
        let extents = crate::canonical::detach_extents(gets);
        self.stand_together(&ground.base, logs)?;
        if self.distributed {
            let seen = self.see_share(&ground.base, ground.records, &ground.io);
            ground.base.agree(seen)?;
            return self.read_distributed(ground, gets, &extents);
        }
        let wanted =
            || log::records_read(&ground.header, gets.iter().map(|get| get.var).zip(&extents));
        let mut exchanges = self.may_exchange(ground, together);
        let mut seen = Ok(());
        if exchanges && strategy::may_read_direct(&ground.base.hints) {
            seen = self.see(&ground.base, ground.records, Some(&wanted));
            let costs = ground.base.agree_with(seen, self.costs(ground, gets, &extents));
            let ranks = ground.base.comm.size() as u64;
            exchanges = costs.as_ref().is_ok_and(|costs| is_exchanged(*costs, ranks));
            seen = costs.map(drop);
        }
        // Who reads for others does not know what.
        let wanted: Wanted<'_> = (!exchanges).then_some(&wanted);
        seen = seen.and_then(|()| self.see(&ground.base, ground.records, wanted));
        if exchanges {
            seen = ground.base.agree(seen);
        }
        let (mut report, mut buffers) = (ground.report, std::mem::take(&mut ground.buffers));
        let read = seen.and_then(|()| match exchanges {
            _ if together.is_empty() => Ok(()),
            false => {
                report.read_strategy = Strategy::Direct;
                log::read_from(ground, &self.view, (gets, &extents), &mut report)
            }
            // Windows are bytes.
            true => {
                let extents = ground.in_file(gets, extents);
                let plan = Plan::new(extents.iter());
                ground.read_together(together, &plan, gets, &mut buffers, &mut report)
            }
        });
        ground.buffers = buffers;
        let peak = self.view.state().index.take_peak() as u64;
        report.index_memory = report.index_memory.max(peak);
        ground.report = report;
        ground.base.agree(read)
    }

    fn may_exchange(&self, ground: &Ground, together: &Together) -> bool {
        strategy::exchanges_read(together, &ground.base.hints, ground.base.comm.size())
    }

    /// What lies near in the file need not in the logs: what this rank's read of its own would cost, once it has seen them. How many
    /// times what it wants, bytes of the logs, bytes of the file.
    fn costs(&self, ground: &Ground, gets: &[Request<'_>], extents: &[Extent]) -> [u64; 3] {
        let all = || gets.iter().map(|get| get.var).zip(extents);
        let (_, sieved) = log::summary(&ground.header, all(), ground.base.hints.sieve_hole);
        match log::loaded(&ground.header, &self.view.state().index, all()) {
            Some((wanted, loaded)) => [loaded / wanted.max(1), loaded, sieved],
            None => [u64::MAX, u64::MAX, sieved],
        }
    }

    /// The same where each rank has indexed a share of the logs: the others are asked what is
    /// where, and everyone reads its own pieces. Collective.
    fn read_distributed(
        &self,
        ground: &mut Ground,
        gets: &mut [Request<'_>],
        extents: &[Extent],
    ) -> Result<()> {
        let (base, mut report) = (&ground.base, ground.report);
        let asked = questions(&ground.header, gets.iter().map(|get| get.var).zip(extents));
        let view = |index| View::new(base.path.clone(), None, index, ground.header.clone());
        let how = (&ground.header, &base.hints);
        let read = self.read_asking(
            base,
            asked,
            view,
            |lay, report| log::read(how, (gets, extents), report, lay),
            &mut report,
        );
        ground.report = report;
        ground.base.agree(read)
    }

    /// The definitions have changed, in data mode. Collective.
    pub(crate) fn amend(&mut self, ground: &mut Ground, header: Header) -> Result<()> {
        self.define(&ground.base, &header, &mut ground.report)?;
        ground.header = header;
        Ok(())
    }
}

/// Whether an exchange is worth it, by what reads of one's own cost at most: it shares what lies near in the file among the ranks.
fn is_exchanged([times, loaded, sieved]: [u64; 3], ranks: u64) -> bool {
    strategy::is_wasteful(times) && loaded.saturating_mul(ranks) > sieved
}

impl Layout for Container {
    fn has(&self, _: VarId) -> bool {
        true
    }

    fn check(&self, ground: &Ground, asked: Asked<'_>) -> Result<Checked> {
        let variable = ground.header.schema.variable(asked.var).ok_or(Error::Garbled)?;
        let listed = match asked.purpose {
            Purpose::Read => None,
            Purpose::Write { .. } => self.check_list(ground, asked, variable),
        };
        listed.unwrap_or_else(|| Canonical.check(ground, Asked { space: Space::Log, ..asked }))
    }

    fn write_alone(
        &mut self,
        ground: &mut Ground,
        puts: &mut Vec<Request<'_>>,
        report: &mut Report,
    ) -> Result<()> {
        // Others cannot be asked for what they have of a chunk.
        if ground.base.comm.size() > 1 {
            return self.append(ground, puts, report);
        }
        let planned = self.plan_chunks(ground, puts)?;
        self.put_batch(ground, puts, (&planned, planned.chunks()), report)
    }

    fn read_alone(
        &self,
        ground: &Ground,
        gets: &mut Vec<Request<'_>>,
        _: Option<&Arc<dyn Over>>,
        report: &mut Report,
    ) -> Result<()> {
        let wanted =
            || log::records_read(&ground.header, gets.iter().map(|get| (get.var, &get.extent)));
        self.see(&ground.base, ground.records, Some(&wanted))?;
        self.view.read(ground, gets, report)
    }

    fn boxes(&self, var: VarId) -> Option<&[u64]> {
        self.gridded.as_ref()?.chunk(var)
    }

    fn over(&self, ground: &Ground) -> Result<Option<Arc<dyn Over>>> {
        self.see(&ground.base, ground.records, None)?;
        Ok(Some(self.view.clone()))
    }

    fn space(&self) -> Space {
        Space::Log
    }

    fn announce(&self, ground: &mut Ground, wait: &mut Wait<'_>) -> Announced {
        let Wait { puts, gets, .. } = wait;
        // Who reads expects others to, and writes out what they shall see.
        let flushed = match gets.is_empty() {
            true => Ok(()),
            false => self.flush_own(),
        };
        let planned = self.plan_chunks(ground, puts);
        let (ready, planned) = match planned {
            Ok(planned) => (flushed, planned),
            Err(error) => (flushed.and(Err(error)), Planned::default()),
        };
        let mine = self.to_be_read(ground, gets);
        let report = &mut ground.report;
        report.requests += gets.len() as u64;
        report.runs += mine.summary.runs;
        report.bytes += mine.summary.bytes;
        let Standing { grown, unwritten, metadata } = self.standing();
        let (puts, gets) = (!puts.is_empty(), !gets.is_empty());
        let own = [puts.into(), gets.into(), grown, unwritten, metadata, planned.chunks()];
        let numbers = own.into_iter().chain(mine.fields()).collect();
        (ready, numbers, Box::new(planned))
    }

    fn act(
        &mut self,
        ground: &mut Ground,
        wait: &mut Wait<'_>,
        agreed: &[u64],
        kept: Noted,
    ) -> Result<()> {
        let (own, agreed) = agreed.split_first_chunk::<OWN>().ok_or(Error::Garbled)?;
        let [puts_any, gets_any, grown, unwritten, metadata, chunks] = *own;
        let planned: Box<Planned> = kept.downcast().map_err(|_| Error::Garbled)?;
        let [read] = Together::of_all(agreed).ok_or(Error::Garbled)?;
        let mut logs = Standing { grown, unwritten, metadata };
        ground.records = read.records;
        if puts_any > 0 {
            let mut report = ground.report;
            let planned = (&*planned, chunks);
            let mut appended = self.put_batch(ground, &mut wait.puts, planned, &mut report);
            let clock = Instant::now();
            if gets_any > 0 && appended.is_ok() {
                appended = self.flush_own();
            }
            let metadata = self.standing().metadata;
            let agreed = ground.base.agree_with(appended, [ground.records, metadata]);
            report.phases.agree += clock.elapsed();
            ground.report = report;
            let metadata;
            [ground.records, metadata] = agreed?;
            logs = Standing { grown: 1, unwritten: 0, metadata };
        }
        // What this rank wrote so far is older than what any rank writes from now on.
        self.epoch += 1;
        match gets_any {
            0 => Ok(()),
            _ => self.read_batch(ground, &mut wait.gets, &read, logs),
        }
    }

    fn commit(&mut self, ground: &mut Ground, durable: bool) -> Result<bool> {
        ground.header.numrecs = NumRecs::Count(ground.records);
        Container::commit(self, &ground.base, &ground.header, durable, &mut ground.report)?;
        ground.io.drain();
        if let Some(records) = self.take_in_others(&ground.base)? {
            ground.records = ground.records.max(records);
            ground.header.numrecs = NumRecs::Count(ground.records);
            self.view.have_records(ground.records);
            // Reads that begin from now on see what others have written.
            ground.generation += 1;
        }
        Ok(true)
    }

    fn abort(&mut self, ground: &mut Ground) -> Result<bool> {
        ground.io.drain();
        self.give_up(&ground.base)?;
        Ok(true)
    }

    fn abandon(&self, ground: &Ground) -> Result<()> {
        self.void(&ground.base)?;
        self.give_up_number(&ground.base)
    }

    fn version(&self) -> Option<u64> {
        Some(Container::version(self))
    }

    /// Appends fill values over one record of a variable, each rank its share of the slowest
    /// other dimension. Collective.
    fn fill_record(&mut self, ground: &mut Ground, var: VarId, record: u64) -> Result<()> {
        let variable = ground.header.schema.variable(var).ok_or(Error::Garbled)?;
        let (fill, ty) = (values::fill_value(variable), variable.ty.natural());
        let axis = usize::from(ground.header.schema.is_record(variable));
        let mut count = ground.header.schema.shape(variable, ground.records);
        let mut start = vec![0; variable.dims.len()];
        if axis == 1 {
            (start[0], count[0]) = (record, 1);
        }
        let mine = ground.base.share().items(count.get(axis).copied().unwrap_or(1));
        if let Some(len) = count.get_mut(axis) {
            (start[axis], *len) = (mine.start, mine.end - mine.start);
        }
        let mut wait = Wait::default();
        let queued = match mine.is_empty() {
            true => Ok(()),
            false => {
                // One value in memory stands for all of them.
                let layout = MemoryLayout::strided(0, &count, &vec![0; count.len()]);
                let selection = &Selection::slab(&start, &count);
                let purpose = Purpose::Write { elements: count.iter().product() };
                let asked = Asked { var, selection, purpose, space: Space::Log };
                self.check(ground, asked).and_then(|checked| {
                    let lent = Lent::Source(fill.native_bytes());
                    let memory = ground.memory(var, lent, ty, layout)?;
                    let what = (Direction::Put, var, checked);
                    wait.puts.push(Request::new(RequestId::REPLAYED, what, memory, ground.epoch));
                    Ok(())
                })
            }
        };
        together(self, ground, &mut wait, queued)
    }

    fn caches(&self, hints: &Hints) -> Vec<CacheUse> {
        self.caches_now(hints)
    }

    fn notes(&self) -> Option<&[String]> {
        Some(Container::notes(self))
    }
}
