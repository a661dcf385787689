//! The road of a dataset that is a log: writes are appended, reads go through the view.

use std::sync::Arc;
use std::time::Instant;

use esker_comm::{ReduceOp, Reduction};
use esker_format::{Header, VarId, Variable, values};
use esker_store::File;

use crate::dataset::Dataset;
use crate::direct;
use crate::engine::{count, detach_extents};
use crate::error::{Error, Result};
use crate::log::{Memo, Parts, View, questions};
use crate::memory::MemoryLayout;
use crate::plan::{Extent, Plan, Summary};
use crate::report::{Report, Strategy};
use crate::request::{Request, Requests};
use crate::selection::{Checked, Purpose, Selection, log_record_step};
use crate::strategy::{Mine, Together};

impl Dataset {
    /// Appends to this rank's log.
    pub(crate) fn append_to_log(
        &mut self,
        puts: &mut [Request<'_>],
        report: &mut Report,
    ) -> Result<()> {
        report.write_strategy = Strategy::Appended;
        report.requests += puts.len() as u64;
        for put in puts {
            let variable = &self.header.schema.vars.as_slice()[put.var.0];
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
        let mut memo = container.memo();
        if slabs.rank == variable.dims.len()
            && let Some(found) = memo.find(slabs, &frame)
        {
            return Ok(known(found));
        }
        let mut checked = self.check(var, selection, purpose)?;
        match memo.insert(slabs, &frame, &mut checked.extent, step, checked.elements) {
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

    /// The road of a collective call: nobody appends when somebody's arguments are wrong.
    pub(crate) fn log_together(
        &mut self,
        puts: &mut [Request<'_>],
        gets: &mut [Request<'_>],
        ready: Result<()>,
    ) -> Result<()> {
        let mut report = self.report;
        report.calls += 1;
        let clock = Instant::now();
        let (puts_any, gets_any) = (!puts.is_empty(), !gets.is_empty());
        let mine = [puts_any.into(), gets_any.into(), self.records];
        let [puts_any, gets_any, records] = self.agree_with(ready, mine)?;
        self.records = records;
        report.phases.agree += clock.elapsed();
        let mut over = 0;
        if puts_any > 0 {
            let appended = self.append_to_log(puts, &mut report);
            let clock = Instant::now();
            let is_over = self.burst.as_mut().is_some_and(|burst| burst.is_over(&self.base));
            let agreed = self.agree_with(appended, [self.records, is_over.into()]);
            report.phases.agree += clock.elapsed();
            self.report = report;
            [self.records, over] = agreed?;
        }
        self.report = report;
        // What this rank wrote so far is older than what any rank writes from now on.
        if let Some(container) = &mut self.container {
            container.epoch += 1;
        }
        if let Some(burst) = &mut self.burst {
            burst.next_epoch();
        }
        if over > 0 && gets_any == 0 {
            return self.flush();
        }
        if gets_any == 0 {
            return Ok(());
        }
        self.read_log_together(gets)
    }

    /// Reads what any rank has written before. Collective.
    fn read_log_together(&mut self, gets: &mut [Request<'_>]) -> Result<()> {
        if let Some(container) = &mut self.container
            && container.see_all(&self.base, self.records, &self.io)?
        {
            return self.read_asking(gets);
        }
        self.flush()?;
        let extents = detach_extents(gets);
        let plan = Plan::new(extents.iter());
        let mut report = self.report;
        count(&mut report, &plan, gets.len());
        let waste = plan.sieved(self.base.hints.sieve_hole) / plan.summary.bytes.max(1);
        let (records, block) = (self.records, self.file.block_size());
        let nothing = Mine { summary: Summary::default(), waste: 0, records, block };
        let mine = [nothing, Mine { summary: plan.summary, waste, records, block }];
        let together = Together::reduce(&*self.base.comm, Some(mine))?;
        let mut buffers = std::mem::take(&mut self.buffers);
        let read = match together {
            Some([_, read]) if !read.is_empty() => {
                self.read_together(&read, &plan, gets, &mut buffers, &mut report)
            }
            _ => Ok(()),
        };
        self.buffers = buffers;
        self.report = report;
        self.base.agree(read)
    }

    /// The same where each rank has indexed a share of the logs: the others are asked what is
    /// where, and everyone reads its own pieces. Collective.
    fn read_asking(&mut self, gets: &mut [Request<'_>]) -> Result<()> {
        let Some(container) = &self.container else { return Ok(()) };
        let (base, mut report) = (&self.base, self.report);
        let vars: Vec<VarId> = gets.iter().map(|get| get.var).collect();
        let extents = detach_extents(gets);
        let plan = Plan::new(extents.iter());
        count(&mut report, &plan, gets.len());
        let asked = questions(&self.header, vars.into_iter().zip(&extents));
        let clock = Instant::now();
        let index = container.ask(base, &asked, &mut report)?;
        report.phases.exchange += clock.elapsed();
        let read = index.map_or(Ok(()), |index| {
            let view = View::new(base.path.clone(), None, index, self.header.clone());
            view.have_records(self.records);
            report.read_strategy = Strategy::Direct;
            match direct::read(&view, &plan, gets, &base.hints, &mut report)? {
                Some(end) if !base.short_file => Err(self.short_at(end)),
                _ => Ok(()),
            }
        });
        self.report = report;
        self.base.agree(read)
    }

    /// What this rank reads, with its own writes in it.
    pub(crate) fn see_own(&self) -> Result<Arc<dyn File>> {
        if let Some(container) = &self.container {
            container.see(&self.base, self.records)?;
        }
        let seen = self.burst.as_ref().map_or(Ok(None), |burst| burst.see(self.records))?;
        Ok(seen.map_or_else(|| self.file.clone(), |view| view as Arc<dyn File>))
    }

    /// The outcome of all ranks and the largest of each of their numbers, in one reduction.
    /// Collective.
    pub(crate) fn agree_with<const N: usize>(
        &self,
        outcome: Result<()>,
        mut numbers: [u64; N],
    ) -> Result<[u64; N]> {
        let comm = &self.base.comm;
        if comm.size() == 1 {
            return outcome.map(|()| numbers);
        }
        let mut largest = numbers.to_vec();
        largest.push(outcome.is_err().into());
        comm.all_reduce(Reduction::U64(&mut largest), ReduceOp::Max)?;
        if largest.pop() > Some(0) {
            self.base.agree(outcome)?;
        }
        numbers.copy_from_slice(&largest);
        Ok(numbers)
    }
}

/// The distance of the variable's records in the log's space; 0 for one without.
fn record_step(header: &Header, variable: &Variable) -> u64 {
    match header.schema.is_record(variable) {
        true => log_record_step(header.schema.shape(variable, 0)[1..].iter().product()),
        false => 0,
    }
}
