//! Values in and out: queued, independent and collective.

use std::collections::HashSet;
use std::time::Instant;

use bytemuck::cast_slice;
use esker_format::{
    ConversionRules, ConvertError, MemoryType, Native, RangeReport, Values, VarId, values,
};

use crate::dataset::Dataset;
use crate::direct;
use crate::error::{Error, Result, SelectionError};
use crate::exchange::{Buffers, Exchange};
use crate::memory::{FillBytes, Lent, Memory, MemoryLayout, Sides};
use crate::plan::{Plan, Summary};
use crate::report::{Report, Strategy};
use crate::request::{Direction, Request, RequestId, Requests};
use crate::selection::{Checked, Purpose, Selection};
use crate::strategy::{self, Mine, Together, Windows};

/// How a wait, or a call that is one, ends for each request.
pub type Outcomes = Vec<(RequestId, Result<()>)>;

impl Dataset {
    /// Reads a selection into a new vector, converting to `T`. Independent.
    ///
    /// Values that do not fit `T` are [`Error::Range`]; use [`Dataset::get_into`] to have the
    /// rest in spite of it.
    pub fn get<T: Native>(&self, var: VarId, selection: &Selection) -> Result<Vec<T>> {
        let checked = self.check(self.file_var(var)?, selection, Purpose::Read)?;
        // The file's own length bounds what a selection can ask for, so that a damaged
        // header does not make us allocate what cannot be there.
        self.require_present(self.file_var(var)?, &checked)?;
        let mut out = vec![T::zeroed(); checked.elements as usize];
        self.read_alone(var, checked, T::MEMORY, Memory::target(&mut out), MemoryLayout::dense())?;
        Ok(out)
    }

    /// Reads a selection into `out`, converting to `T`. Independent.
    ///
    /// On [`Error::Range`] everything was read, and values that did not fit are the fill
    /// value of `T`.
    pub fn get_into<T: Native>(
        &self,
        var: VarId,
        selection: &Selection,
        out: &mut [T],
    ) -> Result<()> {
        self.get_strided(var, selection, out, MemoryLayout::dense())
    }

    /// Like [`Dataset::get_into`], into memory with strides.
    pub fn get_strided<T: Native>(
        &self,
        var: VarId,
        selection: &Selection,
        out: &mut [T],
        layout: MemoryLayout,
    ) -> Result<()> {
        let checked = self.check(self.file_var(var)?, selection, Purpose::Read)?;
        self.require_memory(var, &checked, &layout, out.len())?;
        self.read_alone(var, checked, T::MEMORY, Memory::target(out), layout)
    }

    /// Reads a selection as values of the variable's own type. Independent.
    pub fn get_values(&self, var: VarId, selection: &Selection) -> Result<Values> {
        let checked = self.check(self.file_var(var)?, selection, Purpose::Read)?;
        self.require_present(self.file_var(var)?, &checked)?;
        let ty = self.variable(var)?.ty;
        let mut out = Values::zeros(ty, checked.elements as usize);
        let lent = Lent::Target(out.native_bytes_mut());
        self.read_alone(var, checked, ty.natural(), lent, MemoryLayout::dense())?;
        Ok(out)
    }

    /// Writes `data` to a selection, converting to the variable's type. Independent.
    ///
    /// Writing beyond the last record makes new records. On [`Error::Range`] everything was
    /// written, and values that did not fit are the variable's fill value.
    pub fn put<T: Native>(&mut self, var: VarId, selection: &Selection, data: &[T]) -> Result<()> {
        self.put_strided(var, selection, data, MemoryLayout::dense())
    }

    /// Like [`Dataset::put`], from memory with strides.
    pub fn put_strided<T: Native>(
        &mut self,
        var: VarId,
        selection: &Selection,
        data: &[T],
        layout: MemoryLayout,
    ) -> Result<()> {
        let mut queue = Requests::new();
        self.iput_strided(&mut queue, var, selection, data, layout)?;
        self.wait(&mut queue)
    }

    /// Writes values of whatever type they are to a selection. Independent.
    pub fn put_values(&mut self, var: VarId, selection: &Selection, data: &Values) -> Result<()> {
        let mut queue = Requests::new();
        let lent = Lent::Source(data.native_bytes());
        let ty = data.ty().natural();
        self.queue_put(&mut queue, var, selection, lent, ty, MemoryLayout::dense(), data.len())?;
        self.wait(&mut queue)
    }

    /// Appends whole records to a record variable, after the dataset's last record; gives the
    /// number of the first of them. Independent: for one rank.
    pub fn append<T: Native>(&mut self, var: VarId, data: &[T]) -> Result<u64> {
        let shape = self.shape(var)?;
        let refuse = |source| Err(self.selection_error(var, source));
        if !self.schema().is_record(self.variable(var)?) {
            return refuse(SelectionError::NotRecord);
        }
        let record = shape[1..].iter().product::<u64>().max(1);
        let given = data.len() as u64;
        if !given.is_multiple_of(record) {
            return refuse(SelectionError::NotWholeRecords { given, record });
        }
        let first = self.records;
        let (mut start, mut count) = (vec![0; shape.len()], shape);
        (start[0], count[0]) = (first, given / record);
        self.put(var, &Selection::slab(&start, &count), data)?;
        Ok(first)
    }

    /// Writes `data` to a selection, together with all other ranks, each with a selection of
    /// its own (perhaps [`Selection::none`]). Collective.
    pub fn put_all<T: Native>(
        &mut self,
        var: VarId,
        selection: &Selection,
        data: &[T],
    ) -> Result<()> {
        self.put_strided_all(var, selection, data, MemoryLayout::dense())
    }

    /// Like [`Dataset::put_all`], from memory with strides. Collective.
    pub fn put_strided_all<T: Native>(
        &mut self,
        var: VarId,
        selection: &Selection,
        data: &[T],
        layout: MemoryLayout,
    ) -> Result<()> {
        let mut queue = Requests::new();
        let queued = self.iput_strided(&mut queue, var, selection, data, layout).map(drop);
        self.all_together(&mut queue, queued)
    }

    /// Reads a selection into a new vector, together with all other ranks. Collective.
    pub fn get_all<T: Native>(&mut self, var: VarId, selection: &Selection) -> Result<Vec<T>> {
        let elements = self.file_var(var).and_then(|file_var| {
            let checked = self.check(file_var, selection, Purpose::Read)?;
            self.require_present(file_var, &checked)?;
            Ok(checked.elements as usize)
        });
        let mut out = vec![T::zeroed(); *elements.as_ref().unwrap_or(&0)];
        let mut queue = Requests::new();
        let queued = elements.and_then(|_| self.iget(&mut queue, var, selection, &mut out));
        self.all_together(&mut queue, queued.map(drop))?;
        drop(queue);
        Ok(out)
    }

    /// Reads a selection into `out`, together with all other ranks. Collective.
    pub fn get_all_into<T: Native>(
        &mut self,
        var: VarId,
        selection: &Selection,
        out: &mut [T],
    ) -> Result<()> {
        self.get_strided_all(var, selection, out, MemoryLayout::dense())
    }

    /// Like [`Dataset::get_all_into`], into memory with strides. Collective.
    pub fn get_strided_all<T: Native>(
        &mut self,
        var: VarId,
        selection: &Selection,
        out: &mut [T],
        layout: MemoryLayout,
    ) -> Result<()> {
        let mut queue = Requests::new();
        let queued = self.iget_strided(&mut queue, var, selection, out, layout).map(drop);
        self.all_together(&mut queue, queued)
    }

    /// Queues a write. Nothing moves before a wait, and `data` is lent until then.
    pub fn iput<'b, T: Native>(
        &self,
        queue: &mut Requests<'b>,
        var: VarId,
        selection: &Selection,
        data: &'b [T],
    ) -> Result<RequestId> {
        self.iput_strided(queue, var, selection, data, MemoryLayout::dense())
    }

    /// Queues a write from memory with strides.
    pub fn iput_strided<'b, T: Native>(
        &self,
        queue: &mut Requests<'b>,
        var: VarId,
        selection: &Selection,
        data: &'b [T],
        layout: MemoryLayout,
    ) -> Result<RequestId> {
        let lent = Memory::source(data);
        self.queue_put(queue, var, selection, lent, T::MEMORY, layout, data.len())
    }

    /// Queues a write of a copy of `data`, kept in the attached buffer of the queue until it
    /// is written ([`Requests::attach_buffer`]).
    pub fn bput<T: Native>(
        &self,
        queue: &mut Requests<'_>,
        var: VarId,
        selection: &Selection,
        data: &[T],
    ) -> Result<RequestId> {
        let bytes: &[u8] = cast_slice(data);
        queue.reserve(bytes.len() as u64)?;
        let lent = Lent::Kept(bytes.to_vec());
        let dense = MemoryLayout::dense();
        let queued = self.queue_put(queue, var, selection, lent, T::MEMORY, dense, data.len());
        if queued.is_err() {
            queue.give_back(bytes.len() as u64);
        }
        queued
    }

    /// Queues a read. Nothing moves before a wait, and `out` is lent until then.
    pub fn iget<'b, T: Native>(
        &self,
        queue: &mut Requests<'b>,
        var: VarId,
        selection: &Selection,
        out: &'b mut [T],
    ) -> Result<RequestId> {
        self.iget_strided(queue, var, selection, out, MemoryLayout::dense())
    }

    /// Queues a read into memory with strides.
    pub fn iget_strided<'b, T: Native>(
        &self,
        queue: &mut Requests<'b>,
        var: VarId,
        selection: &Selection,
        out: &'b mut [T],
        layout: MemoryLayout,
    ) -> Result<RequestId> {
        let file_var = self.file_var(var)?;
        let checked = self.check(file_var, selection, Purpose::Read)?;
        self.require_memory(var, &checked, &layout, out.len())?;
        let memory = self.memory(var, Memory::target(out), T::MEMORY, layout)?;
        Ok(self.push(queue, Direction::Get, file_var, checked, memory))
    }

    /// Moves everything queued, on this rank alone. Independent.
    ///
    /// The first error of a request is returned, after all that could be moved was; values
    /// out of range ([`Error::Range`]) do not keep other values from being moved.
    pub fn wait(&mut self, queue: &mut Requests<'_>) -> Result<()> {
        first_error(self.wait_each(queue, None)?)
    }

    /// Moves these requests (all that are queued if `None`) on this rank alone, and tells how
    /// each ended. Independent.
    pub fn wait_each(
        &mut self,
        queue: &mut Requests<'_>,
        ids: Option<&[RequestId]>,
    ) -> Result<Outcomes> {
        let mut requests = take(queue, ids);
        let moved = self.move_alone(&mut requests);
        queue.release(&requests);
        moved?;
        Ok(self.outcomes(requests))
    }

    /// Moves everything queued by any rank, planned together. Collective.
    ///
    /// When a rank cannot take part, because of a wrong argument or a full disk, every rank
    /// gets an error. [`Error::Range`] is this rank's alone; its data were moved.
    pub fn wait_all(&mut self, queue: &mut Requests<'_>) -> Result<()> {
        first_error(self.wait_all_each(queue, None)?)
    }

    /// Moves these requests of each rank (all that are queued if `None`) and tells how each
    /// ended. Collective.
    pub fn wait_all_each(
        &mut self,
        queue: &mut Requests<'_>,
        ids: Option<&[RequestId]>,
    ) -> Result<Outcomes> {
        let mut requests = take(queue, ids);
        let moved = self.move_together(&mut requests, Ok(()));
        queue.release(&requests);
        moved?;
        Ok(self.outcomes(requests))
    }

    /// A blocking collective call: a queue of one, or of none where queueing it failed.
    fn all_together(&mut self, queue: &mut Requests<'_>, queued: Result<()>) -> Result<()> {
        let mut requests = std::mem::take(&mut queue.queue);
        self.move_together(&mut requests, queued)?;
        first_error(self.outcomes(requests))
    }

    #[allow(clippy::too_many_arguments)]
    fn queue_put<'b>(
        &self,
        queue: &mut Requests<'b>,
        var: VarId,
        selection: &Selection,
        lent: Lent<'b>,
        memory: MemoryType,
        layout: MemoryLayout,
        elements: usize,
    ) -> Result<RequestId> {
        self.base.require_writable("write")?;
        let file_var = self.file_var(var)?;
        let purpose = Purpose::Write { elements: elements as u64 };
        let checked = self.check(file_var, selection, purpose)?;
        self.require_memory(var, &checked, &layout, elements)?;
        self.require_storable(checked.records)?;
        let memory = self.memory(var, lent, memory, layout)?;
        Ok(self.push(queue, Direction::Put, file_var, checked, memory))
    }

    fn push<'b>(
        &self,
        queue: &mut Requests<'b>,
        direction: Direction,
        var: VarId,
        checked: Checked,
        memory: Memory<'b>,
    ) -> RequestId {
        let Checked { records, extent, whole_records, .. } = checked;
        let (epoch, range) = (self.epoch, RangeReport::default());
        queue.push(|id| Request {
            id,
            direction,
            var,
            memory,
            extent,
            records,
            whole_records,
            epoch,
            range,
        })
    }

    fn check(&self, var: VarId, selection: &Selection, purpose: Purpose) -> Result<Checked> {
        selection.check(&self.header, var, self.records, purpose).map_err(|source| {
            let var = self.header.schema.vars.as_slice()[var.0].name.to_string();
            Error::Selection { path: self.base.path.clone(), var, source }
        })
    }

    fn selection_error(&self, var: VarId, source: SelectionError) -> Error {
        let name = self.schema().variable(var).map_or("", |v| &*v.name);
        Error::Selection { path: self.base.path.clone(), var: name.to_string(), source }
    }

    fn require_memory(
        &self,
        var: VarId,
        checked: &Checked,
        layout: &MemoryLayout,
        len: usize,
    ) -> Result<()> {
        layout.check(checked.elements, len).map_err(|source| {
            let var = self.schema().variable(var).map_or("", |v| &*v.name).to_string();
            Error::Memory { path: self.base.path.clone(), var, source }
        })
    }

    fn require_present(&self, var: VarId, checked: &Checked) -> Result<()> {
        let end = checked.extent.end();
        let file_len = self.file.len()?;
        if end > file_len { Err(self.short(var, end, file_len)) } else { Ok(()) }
    }

    /// The request's memory, if its type and the variable's convert.
    fn memory<'b>(
        &self,
        var: VarId,
        lent: Lent<'b>,
        memory: MemoryType,
        layout: MemoryLayout,
    ) -> Result<Memory<'b>> {
        let variable = self.variable(var)?;
        let rules = ConversionRules::of(self.header.schema.version);
        let sides = Sides { external: variable.ty, memory, rules };
        rules.check(variable.ty, memory).map_err(|source| self.convert(var, source))?;
        let fill = FillBytes::new(&values::fill_bytes(variable));
        Ok(Memory { lent, layout, sides, fill })
    }

    /// Reads one checked selection, with `&self`, so that threads may read at the same time.
    fn read_alone(
        &self,
        var: VarId,
        checked: Checked,
        ty: MemoryType,
        lent: Lent<'_>,
        layout: MemoryLayout,
    ) -> Result<()> {
        let memory = self.memory(var, lent, ty, layout)?;
        let mut queue = Requests::new();
        self.push(&mut queue, Direction::Get, self.file_var(var)?, checked, memory);
        let mut requests = queue.queue;
        let mut report = Report::default();
        self.read_direct(&mut requests, &mut report)?;
        first_error(self.outcomes(requests))
    }

    fn read_direct(&self, requests: &mut [Request<'_>], report: &mut Report) -> Result<()> {
        let extents = detach_extents(requests);
        let plan = Plan::new(extents.iter());
        count(report, &plan, requests.len());
        let (file, hints) = (&*self.file, &self.base.hints);
        match direct::read(file, &plan, requests, hints, report)? {
            None => Ok(()),
            Some(end) => Err(self.short_at(end)),
        }
    }

    /// The way of an independent wait.
    fn move_alone(&mut self, requests: &mut Vec<Request<'_>>) -> Result<()> {
        self.require_current(requests)?;
        let mut gets = split_gets(requests);
        let mut report = self.report;
        let moved = self.write_alone(requests, &mut report).and_then(|()| {
            if gets.is_empty() {
                return Ok(());
            }
            report.read_strategy = Strategy::Direct;
            self.read_direct(&mut gets, &mut report)
        });
        join(requests, gets);
        report.calls += 1;
        self.report = report;
        moved
    }

    fn write_alone(&mut self, puts: &mut [Request<'_>], report: &mut Report) -> Result<()> {
        if puts.is_empty() {
            return Ok(());
        }
        let records = puts.iter().map(|r| r.records).max().unwrap_or(0);
        // With several ranks, others may be writing the same records now.
        let alone = self.base.comm.size() == 1;
        if records > self.records && alone {
            self.fill_share(self.records, records, covered(puts, self.records, records))?;
        }
        let clock = Instant::now();
        let extents = detach_extents(puts);
        let plan = Plan::new(extents.iter());
        count(report, &plan, puts.len());
        report.phases.plan += clock.elapsed();
        let (file, hints) = (&*self.file, &self.base.hints);
        let summary = Together::alone(plan.summary, file.block_size());
        if alone && !summary.is_empty() && strategy::exchanges_write(&summary, hints, 1) {
            // Nobody else writes to the file, so that short runs can be gathered in a window.
            report.write_strategy = Strategy::Exchanged;
            let windows = Windows::new(&summary, hints, 1);
            let comm = &*self.base.comm;
            let exchange = Exchange { comm, file, hints, windows };
            exchange.write(&plan, puts, &mut self.buffers, report)?;
        } else {
            report.write_strategy = Strategy::Direct;
            direct::write(file, &plan, puts, hints, report)?;
        }
        if records > self.records {
            if alone {
                self.write_numrecs(records)?;
                self.header.numrecs = esker_format::NumRecs::Count(records);
            }
            self.records = records;
        }
        Ok(())
    }

    /// The road of a collective call. `ready` is this rank's own outcome so far.
    fn move_together(&mut self, requests: &mut Vec<Request<'_>>, ready: Result<()>) -> Result<()> {
        let clock = Instant::now();
        let ready = ready.and_then(|()| self.require_current(requests));
        let mut gets = split_gets(requests);
        let puts = requests;
        let (put_extents, get_extents) = (detach_extents(puts), detach_extents(&mut gets));
        let (writes, reads) = (Plan::new(put_extents.iter()), Plan::new(get_extents.iter()));
        let mut report = self.report;
        report.calls += 1;
        count(&mut report, &writes, puts.len());
        count(&mut report, &reads, gets.len());
        report.phases.plan += clock.elapsed();
        let clock = Instant::now();
        let hole = self.base.hints.sieve_hole;
        let waste = reads.sieved(hole) / reads.summary.bytes.max(1);
        let needed = puts.iter().map(|r| r.records).max().unwrap_or(0).max(self.records);
        let block = self.file.block_size();
        let mine = [
            Mine { summary: writes.summary, waste: 0, records: needed, block },
            Mine { summary: reads.summary, waste, records: self.records, block },
        ];
        let mine = ready.is_ok().then_some(mine);
        let Some([write, read]) = Together::reduce(&*self.base.comm, mine)? else {
            // Somebody's arguments are wrong. Nobody has acted yet, and everyone hears of it.
            return self.base.agree(ready);
        };
        report.phases.agree += clock.elapsed();
        let mut outcome = Ok(());
        if !write.is_empty() {
            // Records that any rank has made already, perhaps alone, are not made again.
            let existing = read.records;
            let mut buffers = std::mem::take(&mut self.buffers);
            outcome =
                self.write_together(&write, existing, &writes, puts, &mut buffers, &mut report);
            self.buffers = buffers;
        }
        let records = write.records;
        let clock = Instant::now();
        if !write.is_empty() {
            outcome = self.base.agree(outcome);
        }
        if outcome.is_ok() && self.base.writable {
            outcome = self.grow_together(records);
        }
        report.phases.agree += clock.elapsed();
        if outcome.is_ok() && !read.is_empty() {
            let mut buffers = std::mem::take(&mut self.buffers);
            outcome = self.read_together(&read, &reads, &mut gets, &mut buffers, &mut report);
            self.buffers = buffers;
            let clock = Instant::now();
            outcome = self.base.agree(outcome);
            report.phases.agree += clock.elapsed();
        }
        join(puts, gets);
        self.report = report;
        outcome
    }

    fn write_together(
        &self,
        together: &Together,
        existing: u64,
        plan: &Plan<'_>,
        puts: &mut [Request<'_>],
        buffers: &mut Buffers,
        report: &mut Report,
    ) -> Result<()> {
        if together.records > existing && self.fills_records() {
            // Only one rank alone can know that it writes all of a record.
            let covered = match self.base.comm.size() {
                1 => covered(puts, existing, together.records),
                _ => None,
            };
            let filled = self.fill_share(existing, together.records, covered);
            self.base.agree(filled)?;
        }
        let (file, hints) = (&*self.file, &self.base.hints);
        if !strategy::exchanges_write(together, hints, self.base.comm.size()) {
            report.write_strategy = Strategy::Direct;
            return direct::write(file, plan, puts, hints, report);
        }
        report.write_strategy = Strategy::Exchanged;
        self.exchange(together)?.write(plan, puts, buffers, report)
    }

    fn read_together(
        &self,
        together: &Together,
        plan: &Plan<'_>,
        gets: &mut [Request<'_>],
        buffers: &mut Buffers,
        report: &mut Report,
    ) -> Result<()> {
        let (file, hints) = (&*self.file, &self.base.hints);
        let short = if strategy::exchanges_read(together, hints, self.base.comm.size()) {
            report.read_strategy = Strategy::Exchanged;
            self.exchange(together)?.read(plan, gets, buffers, report)?
        } else {
            report.read_strategy = Strategy::Direct;
            direct::read(file, plan, gets, hints, report)?
        };
        match short {
            None => Ok(()),
            Some(end) => Err(self.short_at(end)),
        }
    }

    fn exchange(&self, together: &Together) -> Result<Exchange<'_>> {
        let (comm, file, hints) = (&*self.base.comm, &*self.file, &self.base.hints);
        let ranks = comm.size();
        let aggregators = strategy::aggregators(ranks, self.machine()?, hints);
        let windows = Windows::new(together, hints, aggregators as u64);
        Ok(Exchange { comm, file, hints, windows })
    }

    fn require_current(&self, requests: &[Request<'_>]) -> Result<()> {
        match requests.iter().all(|r| r.epoch == self.epoch) {
            true => Ok(()),
            false => Err(Error::Redefined { path: self.base.path.clone() }),
        }
    }

    fn outcomes(&self, requests: Vec<Request<'_>>) -> Outcomes {
        let mut outcomes: Outcomes = requests
            .into_iter()
            .map(|request| {
                let outcome = if request.range.all_fit() {
                    Ok(())
                } else {
                    let var = self.header.schema.variable(request.var).map_or("", |v| &*v.name);
                    let (path, var) = (self.base.path.clone(), var.to_string());
                    Err(Error::Range { path, var, report: request.range })
                };
                (request.id, outcome)
            })
            .collect();
        outcomes.sort_by_key(|(id, _)| *id);
        outcomes
    }

    fn convert(&self, var: VarId, source: ConvertError) -> Error {
        let name = self.schema().variable(var).map_or("", |v| &*v.name);
        Error::Convert { path: self.base.path.clone(), var: name.to_string(), source }
    }

    fn short(&self, var: VarId, needed: u64, file_len: u64) -> Error {
        let name = self.header.schema.variable(var).map_or("", |v| &*v.name);
        Error::ShortFile { path: self.base.path.clone(), var: name.to_string(), needed, file_len }
    }

    /// The error of a read that needed the file up to `end`.
    fn short_at(&self, end: u64) -> Error {
        let layout = &self.header.layout;
        let holds =
            |(_, var, place): &(VarId, &esker_format::Variable, &esker_format::Placement)| {
                let mut at = end.saturating_sub(1);
                if self.header.schema.is_record(var) && layout.record_size > 0 && at >= place.begin
                {
                    at = place.begin + (at - place.begin) % layout.record_size;
                }
                (place.begin..place.begin + place.bytes).contains(&at)
            };
        let var = self.header.vars().find(holds).map_or(VarId(0), |(id, _, _)| id);
        self.short(var, end, self.file.len().unwrap_or(0))
    }
}

/// Takes the requests to be moved out of the queue.
fn take<'b>(queue: &mut Requests<'b>, ids: Option<&[RequestId]>) -> Vec<Request<'b>> {
    match ids {
        None => std::mem::take(&mut queue.queue),
        Some(ids) => queue.remove(&ids.iter().copied().collect::<HashSet<_>>()),
    }
}

/// Takes the reads out of `requests`.
fn split_gets<'b>(requests: &mut Vec<Request<'b>>) -> Vec<Request<'b>> {
    // Mostly they are of one kind, and many: they stay where they are.
    let is_get = |r: &Request<'_>| r.direction == Direction::Get;
    if !requests.iter().any(is_get) {
        return Vec::new();
    }
    if requests.iter().all(is_get) {
        return std::mem::take(requests);
    }
    let (puts, gets) = requests.drain(..).partition(|r| r.direction == Direction::Put);
    *requests = puts;
    gets
}

/// Puts the reads back behind the writes.
fn join<'b>(puts: &mut Vec<Request<'b>>, mut gets: Vec<Request<'b>>) {
    match puts.is_empty() {
        true => *puts = gets,
        false => puts.append(&mut gets),
    }
}

/// The requests' extents, apart from their memory, which is changed while these are read.
fn detach_extents(requests: &mut [Request<'_>]) -> Vec<crate::plan::Extent> {
    requests.iter_mut().map(|r| std::mem::take(&mut r.extent)).collect()
}

/// The variable that the requests write whole in the records `from..to`, if there is one.
fn covered(puts: &[Request<'_>], from: u64, to: u64) -> Option<VarId> {
    let whole =
        |r: &Request<'_>| r.whole_records.as_ref().is_some_and(|w| w.start <= from && w.end >= to);
    puts.iter().find(|r| whole(r)).map(|r| r.var)
}

fn count(report: &mut Report, plan: &Plan<'_>, requests: usize) {
    let Summary { runs, bytes, .. } = plan.summary;
    report.requests += requests as u64;
    report.runs += runs;
    report.bytes += bytes;
}

fn first_error(outcomes: Outcomes) -> Result<()> {
    outcomes.into_iter().find_map(|(_, outcome)| outcome.err()).map_or(Ok(()), Err)
}
