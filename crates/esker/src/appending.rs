//! The road of a dataset that is a log: writes are appended, reads go through the view.

use std::sync::Arc;
use std::time::Instant;

use esker_format::{Header, VarId, Variable, values};
use esker_store::File;

use crate::container::Standing;
use crate::dataset::Dataset;
use crate::engine::{count, detach_extents};
use crate::error::{Error, Result};
use crate::log::{Memo, Parts, View, questions};
use crate::memory::MemoryLayout;
use crate::plan::{Extent, Plan};
use crate::report::{Report, Strategy};
use crate::request::{Request, Requests};
use crate::selection::{Checked, Purpose, Selection, log_record_step};
use crate::strategy::{self, ForUnits, Mine, Together};

impl Dataset {
    /// Appends to this rank's log.
    pub(crate) fn append_to_log(
        &mut self,
        puts: &mut [Request<'_>],
        report: &mut Report,
    ) -> Result<()> {
        let clock = Instant::now();
        report.write_strategy = Strategy::Appended;
        report.requests += puts.len() as u64;
        let appended = self.append_each(puts, report);
        report.phases.write += clock.elapsed();
        appended
    }

    fn append_each(&mut self, puts: &mut [Request<'_>], report: &mut Report) -> Result<()> {
        for put in puts {
            let schema = self.chunked.as_ref().map_or(&self.header.schema, |c| &c.schema);
            let variable = &schema.vars.as_slice()[put.var.0];
            let step = record_step(&self.header, variable);
            match (&mut self.container, &mut self.burst) {
                (Some(container), _) => {
                    let (epoch, filters) = (container.epoch, container.view.filters(put.var));
                    let Some(writer) = container.writer() else { return Ok(()) };
                    let appended = writer.append(put, step, epoch, filters.as_deref(), report);
                    appended.map_err(|error| match error {
                        Error::Filter(why) => {
                            let (path, name) = (self.base.path.display(), &variable.name);
                            Error::Filter(format!("{path}: variable {name:?}: {why}"))
                        }
                        other => other,
                    })?;
                }
                (None, Some(burst)) => burst.append(&self.base, put, step, report)?,
                (None, None) => {}
            }
            // What was appended before a failure is there.
            self.records = self.records.max(put.records);
        }
        Ok(())
    }

    /// Checks what is to be written. A list that a log has met is known.
    pub(crate) fn check_write(
        &self,
        var: VarId,
        selection: &Selection,
        purpose: Purpose,
    ) -> Result<Checked> {
        let (Some(container), Some(slabs)) =
            (&self.container, selection.slabs().filter(|slabs| Memo::is_for(slabs)))
        else {
            return self.check(var, selection, purpose);
        };
        let variable = &self.header.schema.vars.as_slice()[var.0];
        let is_record = self.header.schema.is_record(variable);
        let mut shape = self.header.schema.shape(variable, 0);
        let known = |(parts, record): (Arc<Parts>, u64)| Checked {
            elements: parts.elements,
            records: if is_record { record + 1 } else { 0 },
            extent: Extent::new(1),
            whole_records: None,
            parts: Some((parts, record)),
            gaps: Vec::new(),
        };
        let step = record_step(&self.header, variable);
        shape.drain(..usize::from(is_record));
        let frame = (shape, is_record);
        let budget = self.base.hints.cache;
        let mut memo = container.memo();
        if slabs.rank == variable.dims.len()
            && let Some(found) = memo.find(slabs, &frame, budget)
        {
            return Ok(known(found));
        }
        let mut checked = self.check(var, selection, purpose)?;
        match memo.insert(slabs, &frame, &mut checked.extent, (step, checked.elements), budget) {
            Some(found) => Ok(known(found)),
            None => Ok(checked),
        }
    }

    /// Appends fill values over one record of a variable, each rank its share of the slowest
    /// other dimension. Collective.
    pub(crate) fn append_fill(&mut self, var: VarId, record: u64) -> Result<()> {
        let variable = self.variable(var)?;
        let (fill, ty) = (values::fill_value(variable), variable.ty.natural());
        let axis = usize::from(self.schema().is_record(variable));
        let (mut start, mut count) = (vec![0; variable.dims.len()], self.shape(var)?);
        if axis == 1 {
            (start[0], count[0]) = (record, 1);
        }
        let mine = self.base.share().items(count.get(axis).copied().unwrap_or(1));
        if let Some(len) = count.get_mut(axis) {
            (start[axis], *len) = (mine.start, mine.end - mine.start);
        }
        let mut queue = Requests::new();
        let queued = match mine.is_empty() {
            true => Ok(()),
            false => {
                // One value in memory stands for all of them.
                let layout = MemoryLayout::strided(0, &count, &vec![0; count.len()]);
                let selection = Selection::slab(&start, &count);
                let memory = (fill.native_bytes(), ty);
                self.iput_bytes(&mut queue, var, &selection, memory, layout).map(drop)
            }
        };
        self.base.agree(queued)?;
        self.wait_all(&mut queue)
    }

    /// The road of a collective call: nobody appends when somebody's arguments are wrong. What this rank will
    /// read of `units` afterwards has to be in the file then, too.
    pub(crate) fn log_together(
        &mut self,
        puts: &mut [Request<'_>],
        gets: &mut [Request<'_>],
        units: ForUnits,
        ready: Result<()>,
    ) -> Result<ForUnits> {
        let mut report = self.report;
        report.calls += 1;
        let clock = Instant::now();
        // Who reads expects others to, and writes out what they shall see.
        let flushed = match (&self.container, gets.is_empty()) {
            (Some(container), false) => container.flush_own(),
            _ => Ok(()),
        };
        let ready = ready.and(flushed);
        let extents = detach_extents(gets);
        let plan = Plan::new(extents.iter());
        count(&mut report, &plan, gets.len());
        let waste = plan.sieved(self.base.hints.sieve_hole) / plan.summary.bytes.max(1);
        let (records, block) = (self.records, self.file.block_size());
        let mine = Mine { summary: plan.summary, waste, records, block };
        let logs = self.container.as_ref().map_or(Standing::default(), |c| c.standing());
        let Standing { grown, unwritten, metadata } = logs;
        let numbers =
            [(!puts.is_empty()).into(), (!gets.is_empty()).into(), grown, unwritten, metadata];
        let mine = ready.is_ok().then_some([mine]);
        let reduced = Together::reduce(&*self.base.comm, mine, units, numbers)?;
        let Some(([read], units, numbers)) = reduced else {
            return self.base.agree(ready).map(|()| units);
        };
        let [puts_any, gets_any, grown, unwritten, metadata] = numbers;
        let gets_any = gets_any.max(units.read);
        let mut logs = Standing { grown, unwritten, metadata };
        self.records = read.records;
        report.phases.agree += clock.elapsed();
        let mut over = 0;
        if puts_any > 0 {
            let mut appended = self.append_to_log(puts, &mut report);
            let clock = Instant::now();
            if let (Some(container), true, true) = (&self.container, gets_any > 0, appended.is_ok())
            {
                appended = container.flush_own();
            }
            let is_over = self.burst.as_mut().is_some_and(|burst| burst.is_over(&self.base));
            let metadata = self.container.as_ref().map_or(0, |c| c.standing().metadata);
            let agreed = self.base.agree_with(appended, [self.records, is_over.into(), metadata]);
            report.phases.agree += clock.elapsed();
            self.report = report;
            let metadata;
            [self.records, over, metadata] = agreed?;
            logs = Standing { grown: 1, unwritten: 0, metadata };
        }
        self.report = report;
        // What this rank wrote so far is older than what any rank writes from now on.
        if let Some(container) = &mut self.container {
            container.epoch += 1;
        }
        if let Some(burst) = &mut self.burst {
            burst.next_epoch();
        }
        if gets_any == 0 && over == 0 {
            return Ok(units);
        }
        let before = self.epoch;
        self.flush()?;
        if gets_any > 0 && self.epoch != before {
            for (get, extent) in gets.iter_mut().zip(extents) {
                get.extent = extent;
            }
            self.read_where_moved(gets)?;
        } else if gets_any > 0 {
            self.read_log_together(gets, &extents, &plan, &read, logs)?;
        }
        Ok(units)
    }

    /// Reads what a flush has moved, to make room for chunks, after the reads were planned. Collective.
    fn read_where_moved(&mut self, gets: &mut [Request<'_>]) -> Result<()> {
        self.follow_moves(gets);
        let extents = detach_extents(gets);
        let plan = Plan::new(extents.iter());
        let waste = plan.sieved(self.base.hints.sieve_hole) / plan.summary.bytes.max(1);
        let (records, block) = (self.records, self.file.block_size());
        let mine = [Mine { summary: plan.summary, waste, records, block }];
        let reduced = Together::reduce(&*self.base.comm, Some(mine), ForUnits::default(), [])?;
        let Some(([read], _, [])) = reduced else { return Ok(()) };
        self.read_log_together(gets, &extents, &plan, &read, Standing::default())
    }

    /// Reads what any rank has written before. Collective.
    fn read_log_together(
        &mut self,
        gets: &mut [Request<'_>],
        extents: &[Extent],
        plan: &Plan<'_>,
        together: &Together,
        logs: Standing,
    ) -> Result<()> {
        let mut seen = Ok(());
        if let Some(container) = &mut self.container {
            container.stand_together(&self.base, logs)?;
            if container.distributed {
                seen = container.see_share(&self.base, self.records, &self.io);
                self.base.agree(seen)?;
                return self.read_asking(gets, extents, plan);
            }
            seen = container.see(&self.base, self.records);
        }
        if strategy::exchanges_read(together, &self.base.hints, self.base.comm.size()) {
            seen = self.base.agree(seen);
        }
        let (mut report, mut buffers) = (self.report, std::mem::take(&mut self.buffers));
        let read = seen.and_then(|()| match together.is_empty() {
            true => Ok(()),
            false => self.read_together(together, plan, gets, &mut buffers, &mut report),
        });
        self.buffers = buffers;
        if let Some(container) = &self.container {
            let peak = container.view.state().index.take_peak() as u64;
            report.index_memory = report.index_memory.max(peak);
        }
        self.report = report;
        self.base.agree(read)
    }

    /// The same where each rank has indexed a share of the logs: the others are asked what is
    /// where, and everyone reads its own pieces. Collective.
    fn read_asking(
        &mut self,
        gets: &mut [Request<'_>],
        extents: &[Extent],
        plan: &Plan<'_>,
    ) -> Result<()> {
        let Some(container) = &self.container else { return Ok(()) };
        let (base, mut report) = (&self.base, self.report);
        let vars = gets.iter().map(|get| get.var);
        let asked = questions(&self.header, vars.zip(extents));
        let view = |index| {
            let view = View::new(base.path.clone(), None, index, self.header.clone());
            view.have_records(self.records);
            view
        };
        let read = container.read_asking(base, asked, (plan, gets), view, &mut report);
        let read = read.and_then(|short| match short {
            Some(end) if !base.short_file => Err(self.short_at(end)),
            _ => Ok(()),
        });
        self.report = report;
        self.base.agree(read)
    }

    /// What this rank reads, with its own writes in it.
    pub(crate) fn see_own(&self) -> Result<Arc<dyn File>> {
        if let Some(container) = &self.container {
            container.see(&self.base, self.records)?;
        }
        Ok(self.own_view()?.map_or_else(|| self.file.clone(), |view| view as Arc<dyn File>))
    }

    /// The file with what this rank has written to a burst buffer over it, if there is any.
    pub(crate) fn own_view(&self) -> Result<Option<Arc<View>>> {
        match (&self.burst, &self.seen) {
            (Some(burst), _) => burst.see(self.records),
            (None, seen) => Ok(seen.clone()),
        }
    }
}

/// The distance of the variable's records in the log's space; 0 for one without.
fn record_step(header: &Header, variable: &Variable) -> u64 {
    match header.schema.is_record(variable) {
        true => log_record_step(header.schema.shape(variable, 0)[1..].iter().product()),
        false => 0,
    }
}
