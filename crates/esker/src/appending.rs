//! The road of a dataset that has a log: writes are appended, reads ask it for elements of records.

use std::sync::Arc;
use std::time::Instant;

use esker_format::{Header, VarId, Variable, values};

use crate::container::Standing;
use crate::dataset::Dataset;
use crate::engine::detach_extents;
use crate::error::{Error, Result};
use crate::log::{self, Memo, Parts, View, questions};
use crate::memory::MemoryLayout;
use crate::plan::{Extent, Plan, Summary};
use crate::report::{Report, Strategy};
use crate::request::{Request, Requests};
use crate::selection::{Checked, LogSpace, Purpose, Selection, log_record_step};
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
        let mine = self.to_be_read(gets, &extents);
        report.requests += gets.len() as u64;
        report.runs += mine.summary.runs;
        report.bytes += mine.summary.bytes;
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
            // To make room for chunks, the flush has moved what was to be read.
            gets.iter_mut().for_each(|get| get.epoch = self.epoch);
            let mine = [self.to_be_read(gets, &extents)];
            let reduced = Together::reduce(&*self.base.comm, Some(mine), ForUnits::default(), [])?;
            let Some(([read], _, [])) = reduced else { return Ok(units) };
            self.read_log_together(gets, &extents, &read, logs)?;
        } else if gets_any > 0 {
            self.read_log_together(gets, &extents, &read, logs)?;
        }
        Ok(units)
    }

    /// What this rank will read, in numbers of the classic file: that of a burst buffer, or the one that a
    /// container stands for.
    fn to_be_read(&self, gets: &[Request<'_>], extents: &[Extent]) -> Mine {
        let hole = self.base.hints.sieve_hole;
        let (summary, sieved) = match &self.container {
            Some(_) => {
                log::summary(&self.header, gets.iter().map(|get| get.var).zip(extents), hole)
            }
            None => {
                let extents = self.in_file(gets, extents);
                let plan = Plan::new(extents.iter());
                (plan.summary, plan.sieved(hole))
            }
        };
        let waste = sieved / summary.bytes.max(1);
        Mine { summary, waste, records: self.records, block: self.file.block_size() }
    }

    /// The places of requests in the file, apart from their memory.
    pub(crate) fn places_in_file(&self, requests: &mut [Request<'_>]) -> Vec<Extent> {
        let extents = detach_extents(requests);
        match self.has_log() {
            true => self.in_file(requests, &extents),
            false => extents,
        }
    }

    fn in_file(&self, requests: &[Request<'_>], extents: &[Extent]) -> Vec<Extent> {
        let spaces = requests.iter().map(|request| LogSpace::of(&self.header, request.var));
        spaces.zip(extents).map(|(space, extent)| extent.in_file(&space)).collect()
    }

    /// Reads what any rank has written before. Collective.
    fn read_log_together(
        &mut self,
        gets: &mut [Request<'_>],
        extents: &[Extent],
        together: &Together,
        logs: Standing,
    ) -> Result<()> {
        let mut seen = Ok(());
        if let Some(container) = &mut self.container {
            container.stand_together(&self.base, logs)?;
            if container.distributed {
                seen = container.see_share(&self.base, self.records, &self.io);
                self.base.agree(seen)?;
                return self.read_asking(gets, extents);
            }
            seen = container.see(&self.base, self.records);
        }
        let exchanges = strategy::exchanges_read(together, &self.base.hints, self.base.comm.size());
        if exchanges {
            seen = self.base.agree(seen);
        }
        let (mut report, mut buffers) = (self.report, std::mem::take(&mut self.buffers));
        let read = seen.and_then(|()| match &self.container {
            _ if together.is_empty() => Ok(()),
            Some(container) if !exchanges => {
                report.read_strategy = Strategy::Direct;
                self.read_from(&container.view, (gets, extents), &mut report)
            }
            // Windows are bytes.
            _ => {
                let extents = self.in_file(gets, extents);
                let plan = Plan::new(extents.iter());
                self.read_together(together, &plan, gets, &mut buffers, &mut report)
            }
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
    fn read_asking(&mut self, gets: &mut [Request<'_>], extents: &[Extent]) -> Result<()> {
        let Some(container) = &self.container else { return Ok(()) };
        let (base, mut report) = (&self.base, self.report);
        let asked = questions(&self.header, gets.iter().map(|get| get.var).zip(extents));
        let view = |index| View::new(base.path.clone(), None, index, self.header.clone());
        let how = (&self.header, &base.hints);
        let read = container.read_asking(
            base,
            asked,
            view,
            |lay, report| log::read(how, (gets, extents), report, lay),
            &mut report,
        );
        self.report = report;
        self.base.agree(read)
    }

    /// Reads what a view's index knows.
    fn read_from(
        &self,
        view: &View,
        requests: (&mut [Request<'_>], &[Extent]),
        report: &mut Report,
    ) -> Result<()> {
        let how = (&self.header, &self.base.hints);
        log::read(how, requests, report, |batch, out| {
            let state = view.state();
            Ok(view.lay_batch((&state, &state.index), batch, false, out)?)
        })
    }

    /// Reads for this rank alone what logs have to tell of, its own writes with it; false if there are none.
    pub(crate) fn read_log(&self, gets: &mut [Request<'_>], report: &mut Report) -> Result<bool> {
        let Some(view) = self.log_view()? else { return Ok(false) };
        let extents = detach_extents(gets);
        report.requests += gets.len() as u64;
        for (get, extent) in gets.iter().zip(&extents) {
            let Summary { runs, bytes, .. } = extent.summary();
            report.runs += runs;
            report.bytes += bytes * get.memory.sides.external.size();
        }
        self.read_from(&view, (gets, &extents), report)?;
        Ok(true)
    }

    /// Whether what is read may be in a log: then places of requests are those in one.
    pub(crate) fn has_log(&self) -> bool {
        self.appends() || self.seen.is_some()
    }

    /// What this rank reads, with its own writes in it, as far as logs have to tell of it: all of a container,
    /// or the file with what the rank has written to a burst buffer over it.
    pub(crate) fn log_view(&self) -> Result<Option<Arc<View>>> {
        match (&self.container, &self.burst) {
            (Some(container), _) => {
                container.see(&self.base, self.records)?;
                Ok(Some(container.view.clone()))
            }
            (None, Some(burst)) => burst.see(self.records),
            (None, None) => Ok(self.seen.clone()),
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
