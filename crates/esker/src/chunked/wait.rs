//! Waits in a dataset with chunked variables: what is for them is planned before ranks agree, and moved after the
//! others' requests were.

use super::Chunked;
use super::read::touched;
use crate::dataset::Dataset;
use crate::engine::{count, detach_extents, join, split_gets};
use crate::error::Result;
use crate::plan::{Extent, Plan};
use crate::report::{Report, Strategy};
use crate::request::Request;
use crate::strategy::ForUnits;

/// Requests of one direction, planned.
pub(super) struct Planned<'e> {
    pub(super) plan: Plan<'e>,
    /// The chunks that they touch, by address, with the bytes that they have of each.
    pub(super) units: Vec<(u64, u64)>,
    requests: usize,
}

impl Chunked {
    pub(super) fn plan<'e>(&self, extents: &'e [Extent]) -> Planned<'e> {
        let (plan, units) = (Plan::new(extents.iter()), touched(self, extents));
        Planned { plan, units, requests: extents.len() }
    }
}

impl Planned<'_> {
    pub(super) fn count(&self, report: &mut Report) {
        count(report, &self.plan, self.requests);
    }

    /// Bytes of the chunks, and how many of these are wanted.
    pub(super) fn whole_and_wanted(&self, chunked: &Chunked) -> (u64, u64) {
        let bytes_of = |unit: u64| chunked.space.chunk_at(unit).map_or(0, |(_, _, bytes)| bytes);
        let of_one =
            |(whole, wanted), (unit, bytes): &(u64, u64)| (whole + bytes_of(*unit), wanted + bytes);
        self.units.iter().fold((0, 0), of_one)
    }

    /// What a rank has to write.
    pub(super) fn to_write(&self, puts: &[Request<'_>]) -> ForUnits {
        let records = puts.iter().map(|put| put.records).max().unwrap_or(0);
        ForUnits { records, written: self.units.len() as u64, ..ForUnits::default() }
    }
}

impl Dataset {
    /// The collective road in a dataset with chunked variables. Collective.
    pub(crate) fn move_together_mixed(
        &mut self,
        requests: &mut Vec<Request<'_>>,
        ready: Result<()>,
    ) -> Result<()> {
        let buffered = self.burst.is_some();
        if !buffered {
            self.forget_uncounted()?;
        }
        let mut puts = self.take_chunked(requests);
        let mut gets = split_gets(&mut puts);
        if buffered {
            // A log takes them as it takes all others.
            requests.append(&mut puts);
        }
        // What this rank has put alone comes before what it puts now.
        let own = puts.len();
        let writes = self.base.writable && !buffered;
        let alone = self.chunked.as_mut().filter(|_| writes);
        let mut all: Vec<Request<'_>> = alone.map_or(Vec::new(), |c| c.deferred.take());
        all.append(&mut puts);
        let outcome = self.move_chunks(requests, &mut all, &mut gets, ready);
        puts = all.split_off(all.len() - own);
        if let (Err(_), Some(chunked)) = (&outcome, &mut self.chunked) {
            chunked.deferred.give_back(all);
        }
        join(&mut puts, gets);
        requests.append(&mut puts);
        outcome.and_then(|read| read)
    }

    /// Moves `others`, then these. A wrong argument of any rank is known to all before anything moves. Gives how
    /// reading went after everything was written.
    fn move_chunks(
        &mut self,
        others: &mut Vec<Request<'_>>,
        puts: &mut [Request<'_>],
        gets: &mut [Request<'_>],
        ready: Result<()>,
    ) -> Result<Result<()>> {
        let Some(chunked) = &self.chunked else { return Ok(Ok(())) };
        let (put_extents, get_extents) = (detach_extents(puts), detach_extents(gets));
        let (writes, reads) = (chunked.plan(&put_extents), chunked.plan(&get_extents));
        let (whole, wanted) = reads.whole_and_wanted(chunked);
        // Before anything is written.
        let is_root = self.base.is_root() && self.base.writable;
        let sole = if is_root { self.require_sole() } else { Ok(()) };
        let refused = sole.is_err().into();
        // A read of nothing is one, too: what ranks have in logs has to be in the file afterwards.
        let read = (reads.units.len() as u64).max(u64::from(!gets.is_empty()));
        let vain = whole.saturating_sub(wanted.saturating_add(wanted / 2));
        let mine = ForUnits { refused, read, wanted, vain, ..writes.to_write(puts) };
        let moved = self.move_together_classic(others, mine, ready).and_then(|together| {
            let mut report = self.report;
            writes.count(&mut report);
            reads.count(&mut report);
            let written = match (together.written > 0, together.refused > 0) {
                (false, _) => Ok(()),
                (true, true) => self.base.agree(sole),
                (true, false) => self.write_chunked(puts, &writes, &together, &mut report),
            };
            let moved = written.map(|()| self.read_shared(&reads, gets, &together, &mut report));
            self.report = report;
            moved
        });
        // What has failed may be tried again.
        puts.iter_mut().zip(put_extents).for_each(|(put, extent)| put.extent = extent);
        moved
    }

    /// The road of one rank in a dataset with chunked variables.
    pub(crate) fn move_alone_mixed(&mut self, requests: &mut Vec<Request<'_>>) -> Result<()> {
        let buffered = self.burst.is_some();
        if self.base.comm.size() == 1 && !buffered {
            self.forget_uncounted()?;
        }
        let mut puts = self.take_chunked(requests);
        let mut gets = split_gets(&mut puts);
        if buffered {
            requests.append(&mut puts);
        }
        let mut outcome = match (puts.first(), self.base.comm.size()) {
            (None, _) => Ok(()),
            (Some(_), 1) => self.write_alone_chunked(&mut puts),
            (Some(_), _) => self.defer(&mut puts),
        };
        // Room for chunks may have moved the records that these are for.
        self.follow_moves(requests);
        if outcome.is_ok() {
            outcome = self.move_alone_classic(requests);
        }
        if outcome.is_ok() && !gets.is_empty() {
            let mut report = self.report;
            report.read_strategy = Strategy::Direct;
            outcome = self.read_chunked(&mut gets, &mut report);
            self.report = report;
        }
        join(&mut puts, gets);
        requests.append(&mut puts);
        outcome
    }

    /// Writes where there is no other rank.
    fn write_alone_chunked(&mut self, puts: &mut [Request<'_>]) -> Result<()> {
        self.require_sole()?;
        let Some(chunked) = &self.chunked else { return Ok(()) };
        let extents = detach_extents(puts);
        let writes = chunked.plan(&extents);
        let mut report = self.report;
        writes.count(&mut report);
        let together = writes.to_write(puts);
        let written = self.write_chunked(puts, &writes, &together, &mut report);
        self.report = report;
        // What has failed may be tried again.
        puts.iter_mut().zip(extents).for_each(|(put, extent)| put.extent = extent);
        written
    }

    /// Takes the requests of chunked variables out.
    fn take_chunked<'b>(&self, requests: &mut Vec<Request<'b>>) -> Vec<Request<'b>> {
        if requests.iter().all(|r| self.is_chunked(r.var)) {
            return std::mem::take(requests);
        }
        let (chunked, others) = requests.drain(..).partition(|r| self.is_chunked(r.var));
        *requests = others;
        chunked
    }
}
