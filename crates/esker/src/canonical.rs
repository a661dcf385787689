//! Ordinary variables: values in the places that the header gives them.
//!
//! Everything is planned in bytes of the file, and ends in `direct` or `windows`.

use std::sync::Arc;
use std::time::Instant;

use esker_comm::CommunicatorExt;
use esker_format::{Native, VarId};

use crate::direct;
use crate::error::{Error, Result};
use crate::fill::fill_range;
use crate::ground::Ground;
use crate::layout::{Announced, Asked, Layout, Noted, Over, Wait};
use crate::lists::{Frame, common_record, is_worth};
use crate::memory::{Memory, MemoryLayout};
use crate::plan::{Extent, Plan, Summary};
use crate::reach::Cut;
use crate::report::{Report, Strategy};
use crate::request::{Direction, Request, RequestId};
use crate::selection::{Checked, LogSpace, Purpose, Selection, Slabs, Space};
use crate::strategy::{self, Mine, Together, Windows};
use crate::windows::{Buffers, InWindows};

/// The layout of ordinary variables.
#[derive(Debug)]
pub(crate) struct Canonical;

impl Layout for Canonical {
    fn has(&self, _: VarId) -> bool {
        true
    }

    fn check(&self, ground: &Ground, asked: Asked<'_>) -> Result<Checked> {
        let Asked { var, selection, purpose, space } = asked;
        if selection.as_blob().is_some() {
            return Err(ground.not_decomposed(var));
        }
        let list = selection.slabs().filter(|slabs| space == Space::File && is_worth(slabs));
        let list = list.map(|slabs| (slabs, frame(ground, var)));
        if let Some((slabs, frame)) = &list
            && let Some(checked) = met_before(ground, var, purpose, (slabs, frame))
        {
            return Ok(checked);
        }
        let checked = selection.check(&ground.header, var, ground.records, purpose, space);
        let mut checked = checked.map_err(|source| {
            let (path, var) = (ground.base.path.clone(), ground.name(var));
            Error::Selection { path, var, source }
        })?;
        if let Some((slabs, frame)) = &list {
            remember(ground, var, (slabs, frame), &mut checked.extent);
        }
        Ok(checked)
    }

    fn require_present(
        &self,
        ground: &Ground,
        var: VarId,
        checked: &Checked,
        in_logs: bool,
    ) -> Result<()> {
        // What is in logs, or nowhere, takes no room in the file.
        if in_logs {
            return Ok(());
        }
        let end = checked.extent.end();
        let end = match checked.space {
            Space::Log => LogSpace::of(&ground.header, var).end(end),
            Space::File | Space::Own => end,
        };
        let file_len = ground.file.len()?;
        if end > file_len { Err(ground.short(var, end, file_len)) } else { Ok(()) }
    }

    fn write_alone(
        &mut self,
        ground: &mut Ground,
        puts: &mut Vec<Request<'_>>,
        report: &mut Report,
    ) -> Result<()> {
        let records = puts.iter().map(|r| r.records).max().unwrap_or(0);
        // With several ranks, others may be writing the same records now.
        let alone = ground.base.comm.size() == 1;
        if records > ground.records && alone {
            ground.fill_share(ground.records, records, covered(puts, ground.records, records))?;
        }
        let clock = Instant::now();
        let extents = detach_extents(puts);
        let plan = Plan::new(extents.iter());
        count(report, &plan, puts.len());
        report.phases.plan += clock.elapsed();
        let (file, hints) = (&*ground.file, &ground.base.hints);
        let summary = Together::alone(plan.summary, file.block_size());
        if alone && !summary.is_empty() && strategy::exchanges_write(&summary, hints, 1) {
            // Nobody else writes to the file, so that short runs can be gathered in a window.
            report.write_strategy = Strategy::Exchanged;
            let windows = Windows::new(&summary, hints, 1);
            let comm = &*ground.base.comm;
            let cut = Cut { comm, hints, windows, machine: ground.machine()? };
            let (mail, header) = (ground.base.mail(), &ground.header);
            let exchange = InWindows { cut, mail, file, header, met: None };
            exchange.write(&plan, puts, &mut ground.buffers, report)?;
        } else {
            report.write_strategy = Strategy::Direct;
            direct::write(file, &plan, puts, hints, report)?;
        }
        ground.grow_alone(records)
    }

    fn read_alone(
        &self,
        ground: &Ground,
        gets: &mut Vec<Request<'_>>,
        over: Option<&Arc<dyn Over>>,
        report: &mut Report,
    ) -> Result<()> {
        if let Some(over) = over {
            return over.read(ground, gets, report);
        }
        let extents = detach_extents(gets);
        let extents = ground.in_file(gets, extents);
        let plan = Plan::new(extents.iter());
        count(report, &plan, gets.len());
        match direct::read(&*ground.file, &plan, gets, &ground.base.hints, report)? {
            Some(end) if !ground.base.short_file => Err(ground.short_at(end)),
            _ => Ok(()),
        }
    }

    fn announce(&self, ground: &mut Ground, wait: &mut Wait<'_>) -> Announced {
        let clock = Instant::now();
        let Wait { puts, gets, .. } = wait;
        put_in_file(ground, gets);
        let (writes, reads) = (plan_of(puts), plan_of(gets));
        let report = &mut ground.report;
        count(report, &writes, puts.len());
        count(report, &reads, gets.len());
        let waste = reads.sieved(ground.base.hints.sieve_hole) / reads.summary.bytes.max(1);
        let needed = puts.iter().map(|r| r.records).max().unwrap_or(0).max(ground.records);
        let block = ground.file.block_size();
        let mine = [
            Mine { summary: writes.summary, waste: 0, records: needed, block },
            Mine { summary: reads.summary, waste, records: ground.records, block },
        ];
        let numbers = mine.iter().flat_map(Mine::fields).collect();
        report.phases.plan += clock.elapsed();
        (Ok(()), numbers, Box::new(()))
    }

    fn act(
        &mut self,
        ground: &mut Ground,
        wait: &mut Wait<'_>,
        agreed: &[u64],
        _: Noted,
    ) -> Result<()> {
        let [write, read] = Together::of_all(agreed).ok_or(Error::Garbled)?;
        let Wait { puts, gets, .. } = wait;
        let mut report = ground.report;
        let mut outcome = Ok(());
        if !write.is_empty() {
            let extents = detach_extents(puts);
            let plan = Plan::new(extents.iter());
            // Records that any rank has made already, perhaps alone, are not made again.
            let existing = read.records;
            let mut buffers = std::mem::take(&mut ground.buffers);
            outcome =
                write_together(ground, (&write, existing), &plan, puts, &mut buffers, &mut report);
            ground.buffers = buffers;
        }
        let clock = Instant::now();
        if !write.is_empty() {
            outcome = ground.base.agree(outcome);
        }
        if outcome.is_ok() && ground.base.writable {
            // A log that was flushed since has made more.
            outcome = ground.grow_together(write.records.max(ground.records));
        }
        report.phases.agree += clock.elapsed();
        if outcome.is_ok() && !read.is_empty() {
            let extents = detach_extents(gets);
            let plan = Plan::new(extents.iter());
            let mut buffers = std::mem::take(&mut ground.buffers);
            outcome = ground.read_together(&read, &plan, gets, &mut buffers, &mut report);
            ground.buffers = buffers;
            let clock = Instant::now();
            outcome = ground.base.agree(outcome);
            report.phases.agree += clock.elapsed();
        }
        ground.report = report;
        outcome
    }

    fn fill_record(&mut self, ground: &mut Ground, var: VarId, record: u64) -> Result<()> {
        let (Some(variable), Some(place)) =
            (ground.header.schema.variable(var), ground.header.place(var))
        else {
            return Err(Error::Garbled);
        };
        let mine = ground.base.share().of(place.bytes);
        let at = place.begin + record * ground.header.layout.record_size + mine.start;
        let fill = esker_format::values::fill_bytes(variable);
        let filled = fill_range(&*ground.file, at, mine.end - mine.start, &fill);
        ground.base.agree(filled)?;
        let records = ground.base.comm.max_u64(ground.records.max(record + 1))?;
        ground.grow_together(records)
    }
}

/// What lists of blocks mean the same in: the shape without records, and the size of an element.
fn frame(ground: &Ground, var: VarId) -> Frame {
    let schema = &ground.header.schema;
    let Some(variable) = schema.variable(var) else { return (Vec::new(), false) };
    let is_record = schema.is_record(variable);
    let mut numbers = schema.shape(variable, 0);
    numbers.push(variable.ty.size());
    (numbers, is_record)
}

/// Where this record of a variable begins; `None` where it has no offset.
fn begin(ground: &Ground, var: VarId, record: u64) -> Option<u64> {
    let place = ground.header.place(var)?;
    record.checked_mul(ground.header.layout.record_size)?.checked_add(place.begin)
}

/// What a selection is whose list of blocks was checked before, for this variable or one like it; `None` if it has
/// to be looked at, because it is new or beyond what there is.
fn met_before(
    ground: &Ground,
    var: VarId,
    purpose: Purpose,
    (slabs, frame): (&Arc<Slabs>, &Frame),
) -> Option<Checked> {
    let (shared, record) = ground.lists().find(slabs, frame, ground.base.hints.cache)?;
    let most = match purpose {
        Purpose::Read => ground.records,
        Purpose::Write { .. } => ground.header.schema.version.max_count(),
    };
    let records = match frame.1 {
        false => 0,
        true => record.checked_add(1).filter(|n| *n <= most && ground.header.can_hold(*n))?,
    };
    let base = begin(ground, var, record)?;
    base.checked_add(shared.end())?;
    let size = *frame.0.last()?;
    let (elements, extent) = (shared.bytes() / size, Extent::of_shared(shared, base, size));
    let (whole_records, parts, gaps, space) = (None, None, Vec::new(), Space::File);
    Some(Checked { elements, records, extent, whole_records, parts, gaps, space })
}

/// Keeps what a list of blocks is, for other variables and records, if that is not too much.
fn remember(
    ground: &Ground,
    var: VarId,
    (slabs, frame): (&Arc<Slabs>, &Frame),
    extent: &mut Extent,
) {
    let budget = ground.base.hints.cache;
    let numbers = (slabs.start.len() + slabs.count.len()) * size_of::<u64>();
    if numbers as u64 > budget / 2 {
        return;
    }
    if let Some(record) = common_record(slabs, frame)
        && let Some(begin) = begin(ground, var, record)
        && let Some(shared) = extent.share(begin, u64::MAX)
    {
        ground.lists().keep(slabs, frame, &shared, (shared.memory(), budget));
    }
}

fn write_together(
    ground: &Ground,
    (together, existing): (&Together, u64),
    plan: &Plan<'_>,
    puts: &mut [Request<'_>],
    buffers: &mut Buffers,
    report: &mut Report,
) -> Result<()> {
    if together.records > existing && ground.fills_records() {
        // Only one rank alone can know that it writes all of a record.
        let covered = match ground.base.comm.size() {
            1 => covered(puts, existing, together.records),
            _ => None,
        };
        let filled = ground.fill_share(existing, together.records, covered);
        ground.base.agree(filled)?;
    }
    let (file, hints) = (&*ground.file, &ground.base.hints);
    if !strategy::exchanges_write(together, hints, ground.base.comm.size()) {
        report.write_strategy = Strategy::Direct;
        return direct::write(file, plan, puts, hints, report);
    }
    report.write_strategy = Strategy::Exchanged;
    ground.exchange(together)?.write(plan, puts, buffers, report)
}

impl Ground {
    /// Reads bytes of the file together with all other ranks. Collective.
    pub(crate) fn read_together(
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
            Some(end) if !self.base.short_file => Err(self.short_at(end)),
            _ => Ok(()),
        }
    }

    /// The windows of what all ranks have together. Collective the first time.
    pub(crate) fn exchange(&self, together: &Together) -> Result<InWindows<'_>> {
        let (comm, file, hints) = (&*self.base.comm, &*self.file, &self.base.hints);
        let ranks = comm.size();
        let machine = self.machine()?;
        let aggregators = strategy::aggregators(ranks, machine, hints);
        let windows = Windows::new(together, hints, aggregators as u64);
        let cut = Cut { comm, hints, windows, machine };
        let (mail, header) = (self.base.mail(), &self.header);
        Ok(InWindows { cut, mail, file, header, met: None })
    }
}

/// Reads a selection of an ordinary variable from the file, for whoever has to know it to read others.
pub(crate) fn get<T: Native>(ground: &Ground, var: VarId, selection: &Selection) -> Result<Vec<T>> {
    ground.require_unbroken(var)?;
    let asked = Asked { var, selection, purpose: Purpose::Read, space: Space::File };
    let checked = Canonical.check(ground, asked)?;
    // The file's own length bounds what is allocated.
    Canonical.require_present(ground, var, &checked, false)?;
    let mut out = vec![T::zeroed(); checked.elements as usize];
    let memory = ground.memory(var, Memory::target(&mut out), T::MEMORY, MemoryLayout::dense())?;
    let what = (Direction::Get, var, checked);
    let mut gets = vec![Request::new(RequestId::REPLAYED, what, memory, ground.epoch)];
    Canonical.read_alone(ground, &mut gets, None, &mut Report::default())?;
    match gets.pop().map(|get| get.range).filter(|range| !range.all_fit()) {
        None => Ok(out),
        Some(report) => {
            let (path, var) = (ground.base.path.clone(), ground.name(var));
            Err(Error::Range { path, var, report })
        }
    }
}

/// Gives requests of a log's space their places in the file.
fn put_in_file(ground: &Ground, requests: &mut [Request<'_>]) {
    for request in requests.iter_mut().filter(|request| request.space == Space::Log) {
        let space = LogSpace::of(&ground.header, request.var);
        request.extent = request.extent.in_file(&space);
        request.space = Space::File;
    }
}

/// The requests' extents, apart from their memory, which is changed while these are read.
pub(crate) fn detach_extents(requests: &mut [Request<'_>]) -> Vec<Extent> {
    requests.iter_mut().map(|r| std::mem::take(&mut r.extent)).collect()
}

fn plan_of<'r>(requests: &'r [Request<'_>]) -> Plan<'r> {
    Plan::new(requests.iter().map(|request| &request.extent))
}

/// The variable that the requests write whole in the records `from..to`, if there is one.
fn covered(puts: &[Request<'_>], from: u64, to: u64) -> Option<VarId> {
    let whole =
        |r: &Request<'_>| r.whole_records.as_ref().is_some_and(|w| w.start <= from && w.end >= to);
    puts.iter().find(|r| whole(r)).map(|r| r.var)
}

pub(crate) fn count(report: &mut Report, plan: &Plan<'_>, requests: usize) {
    let Summary { runs, bytes, .. } = plan.summary;
    report.requests += requests as u64;
    report.runs += runs;
    report.bytes += bytes;
}
