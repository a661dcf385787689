//! The road: what a wait has is planned, a strategy is chosen, and the pieces move.
//!
//! [`Dataset::move_together`] is the collective road and [`Dataset::move_alone`] that of one
//! rank. Both end in `direct` or `exchange`.

use std::time::Instant;

use esker_format::{NumRecs, VarId};

use crate::dataset::Dataset;
use crate::direct;
use crate::error::{Error, Result};
use crate::plan::{Extent, Plan, Summary};
use crate::report::{Report, Strategy};
use crate::request::{Direction, Request};
use crate::strategy::{self, ForUnits, Mine, Together, Windows};
use crate::windows::{Buffers, InWindows};

impl Dataset {
    /// The way of an independent wait.
    pub(crate) fn move_alone(&mut self, requests: &mut Vec<Request<'_>>) -> Result<()> {
        self.require_current(requests)?;
        if self.chunked.is_some() {
            return self.move_alone_mixed(requests);
        }
        self.move_alone_classic(requests)
    }

    /// The same for variables that are not chunked.
    pub(crate) fn move_alone_classic(&mut self, requests: &mut Vec<Request<'_>>) -> Result<()> {
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
        if self.appends() {
            return self.append_to_log(puts, report);
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
            let exchange = InWindows { comm, file, hints, windows, met: None };
            exchange.write(&plan, puts, &mut self.buffers, report)?;
        } else {
            report.write_strategy = Strategy::Direct;
            direct::write(file, &plan, puts, hints, report)?;
        }
        if records > self.records {
            if alone {
                self.begin_counting(records)?;
                self.write_numrecs(records)?;
                self.header.numrecs = NumRecs::Count(records);
            }
            self.records = records;
        }
        Ok(())
    }

    /// The road of a collective call. `ready` is this rank's own outcome so far.
    pub(crate) fn move_together(
        &mut self,
        requests: &mut Vec<Request<'_>>,
        ready: Result<()>,
    ) -> Result<()> {
        let ready = ready.and_then(|()| self.require_current(requests));
        if self.chunked.is_some() {
            return self.move_together_mixed(requests, ready);
        }
        self.move_together_classic(requests, ForUnits::default(), ready).map(drop)
    }

    /// The same for variables that are not chunked, and all writes to a log. `units` is what this rank has
    /// besides; what any rank has comes back.
    pub(crate) fn move_together_classic(
        &mut self,
        requests: &mut Vec<Request<'_>>,
        units: ForUnits,
        ready: Result<()>,
    ) -> Result<ForUnits> {
        let clock = Instant::now();
        let mut gets = split_gets(requests);
        let puts = requests;
        if self.appends() {
            let moved = self.log_together(puts, &mut gets, units, ready);
            join(puts, gets);
            return moved;
        }
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
        let Some(([write, read], units, [])) = Together::reduce(&*self.base.comm, mine, units, [])?
        else {
            // Somebody's arguments are wrong. Nobody has acted yet, and everyone hears of it.
            return self.base.agree(ready).map(|()| units);
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
        outcome.map(|()| units)
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

    pub(crate) fn exchange(&self, together: &Together) -> Result<InWindows<'_>> {
        let (comm, file, hints) = (&*self.base.comm, &*self.file, &self.base.hints);
        let ranks = comm.size();
        let aggregators = strategy::aggregators(ranks, self.machine()?, hints);
        let windows = Windows::new(together, hints, aggregators as u64);
        Ok(InWindows { comm, file, hints, windows, met: None })
    }

    fn require_current(&self, requests: &mut [Request<'_>]) -> Result<()> {
        if requests.iter().any(|r| r.epoch != self.epoch) {
            self.follow_moves(requests);
        }
        match requests.iter().all(|r| r.epoch == self.epoch) {
            true => Ok(()),
            false => Err(Error::Redefined { path: self.base.path.clone() }),
        }
    }

    pub(crate) fn read_direct(
        &self,
        requests: &mut [Request<'_>],
        report: &mut Report,
    ) -> Result<()> {
        if self.read_log(requests, report)? {
            return Ok(());
        }
        let extents = self.places_in_file(requests);
        let plan = Plan::new(extents.iter());
        count(report, &plan, requests.len());
        let hints = &self.base.hints;
        match direct::read(&*self.file, &plan, requests, hints, report)? {
            Some(end) if !self.base.short_file => Err(self.short_at(end)),
            _ => Ok(()),
        }
    }

    /// The error of a read that needed the file up to `end`.
    pub(crate) fn short_at(&self, end: u64) -> Error {
        let var = self.header.at(end.saturating_sub(1)).map_or(VarId(0), |at| at.var);
        self.short(var, end, self.file.len().unwrap_or(0))
    }
}

/// Takes the reads out of `requests`.
pub(crate) fn split_gets<'b>(requests: &mut Vec<Request<'b>>) -> Vec<Request<'b>> {
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
pub(crate) fn join<'b>(puts: &mut Vec<Request<'b>>, mut gets: Vec<Request<'b>>) {
    match puts.is_empty() {
        true => *puts = gets,
        false => puts.append(&mut gets),
    }
}

/// The requests' extents, apart from their memory, which is changed while these are read.
pub(crate) fn detach_extents(requests: &mut [Request<'_>]) -> Vec<Extent> {
    requests.iter_mut().map(|r| std::mem::take(&mut r.extent)).collect()
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
