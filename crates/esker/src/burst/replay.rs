//! From logs to the classic file, in rounds that all ranks agree on.
//!
//! A round has at most so many bytes of each rank, read back from its log in order, and only
//! entries up to an epoch that no rank has left unread: what comes in a later round is later.
//! Within a round a rank's own order is kept by its plan. Between ranks order matters only where
//! they write the same bytes, which the owners of windows see for nothing: then the epochs of
//! the round are halved, and both halves written again in their order.

use std::cell::Cell;
use std::time::Instant;

use esker_format::{ConversionRules, RangeReport, values};

use super::portion::Portion;
use super::reader::{Reader, Unusable};
use crate::conflict;
use crate::dataset::Dataset;
use crate::direct;
use crate::engine::count;
use crate::error::{Error, Result};
use crate::memory::{FillBytes, Lent, Memory, MemoryLayout, Sides};
use crate::plan::{Extent, Plan, Summary};
use crate::report::{Report, Strategy};
use crate::request::{Direction, Request, RequestId};
use crate::strategy::{self, Mine, Together};

/// What to do about entries that cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Damaged {
    /// Nothing is given up: it is an error.
    Fails,
    /// They are noted, and left out.
    IsLeftOut,
}

impl Dataset {
    /// Writes the entries that `reader` has to the file, which has `existing` records and will have
    /// `records`. Collective.
    pub(crate) fn replay(
        &mut self,
        reader: &mut Reader,
        (existing, records): (u64, u64),
        damaged: Damaged,
    ) -> Result<()> {
        let mut report = self.report;
        if records > existing && self.fills_records() {
            let filled = self.fill_share(existing, records, None);
            self.base.agree(filled)?;
        }
        let mut payload = Vec::new();
        loop {
            let loaded = self.load(reader, &mut payload, damaged, &mut report);
            let (count, more) = *loaded.as_ref().unwrap_or(&(0, false));
            let epochs: Vec<u64> = reader.queue().iter().map(|p| p.epoch).collect();
            let (first, last) = (epochs.first().copied(), count.checked_sub(1).map(|i| epochs[i]));
            // A rank that has more in its log has not shown all of its last epoch yet.
            let until = if more { last.unwrap_or(0) } else { u64::MAX };
            let mine = [!first.unwrap_or(u64::MAX), last.unwrap_or(0), !until, more.into()];
            let [low, high, until, more] = self.agree_with(loaded.map(drop), mine)?;
            let (low, until) = (!low, !until);
            if low == u64::MAX {
                break;
            }
            let count = epochs[..count].partition_point(|epoch| *epoch <= until);
            let high = high.min(until);
            let outcome = self.write_portions(
                &mut reader.queue()[..count],
                &payload,
                (low, high),
                &mut report,
            );
            self.report = report;
            outcome?;
            reader.done(count);
            if more == 0 && until == u64::MAX {
                break;
            }
        }
        self.report = report;
        self.grow_together(records)
    }

    /// Reads the payloads of the next portions. Gives how many there are, and whether there are
    /// more behind them.
    fn load(
        &self,
        reader: &mut Reader,
        payload: &mut Vec<u8>,
        damaged: Damaged,
        report: &mut Report,
    ) -> Result<(usize, bool)> {
        let clock = Instant::now();
        let most = self.base.hints.flush_at_once();
        let mut count = reader.select(&self.header, most)?;
        // Its memory is used again from round to round as it is: fresh memory costs more than
        // what is read into it.
        let mut filled = 0;
        let mut at = 0;
        while at < count {
            // Portions whose payloads lie side by side are one read.
            let first = reader.peek(at);
            let (from, to) = first.checked();
            let (start, mut end) = (first.place + from, first.place + to);
            let mut together = 1;
            while at + together < count {
                let next = reader.peek(at + together);
                let whole = |p: &Portion| p.from == 0 && p.to == p.whole;
                if !whole(first) || !whole(next) || next.log != first.log || next.place != end {
                    break;
                }
                end += next.whole;
                together += 1;
            }
            let old = filled;
            filled += (end - start) as usize;
            if payload.len() < filled {
                payload.resize(filled, 0);
            }
            let file = reader.data(reader.peek(at)).clone();
            let n = file.read_at(start, &mut payload[old..filled])?;
            report.reads += 1;
            report.bytes_read += n as u64;
            let mut within = old;
            let mut bad = Vec::new();
            for i in at..at + together {
                let portion = reader.peek(i);
                let (from, to) = portion.checked();
                let len = (to - from) as usize;
                let bytes = &mut payload[within..within + len];
                if !portion.is_sound(bytes) || within + len > old + n {
                    bad.push(i);
                } else if portion.little != cfg!(target_endian = "little") && portion.width > 1 {
                    bytes.chunks_exact_mut(portion.width.into()).for_each(<[u8]>::reverse);
                }
                reader.at(i).at = within + (portion.from - from) as usize;
                within += len;
            }
            for i in bad.iter().rev() {
                let what = reader.is_damaged(&self.header, reader.peek(*i));
                reader.unusable.push(what);
                reader.remove(*i);
                count -= 1;
            }
            at += together - bad.len();
        }
        report.phases.read += clock.elapsed();
        report.peak_memory = report.peak_memory.max(filled as u64);
        if damaged == Damaged::Fails
            && let Some(Unusable { rank, what }) = reader.unusable.first()
        {
            let why = format!(
                "the log of rank {rank} is damaged: {what}; `esker recover` replays what can be read"
            );
            return Err(Error::BurstBuffer { path: self.base.path.clone(), why });
        }
        let more = reader.has_more(count)?;
        Ok((count, more))
    }

    /// Writes portions whose epochs are in `low..=high`, in the order of the epochs. Collective.
    fn write_portions(
        &mut self,
        portions: &mut [Portion],
        payload: &[u8],
        (low, high): (u64, u64),
        report: &mut Report,
    ) -> Result<()> {
        let extents: Vec<Extent> =
            portions.iter_mut().map(|p| std::mem::take(&mut p.extent)).collect();
        let mut requests: Vec<Request<'_>> =
            portions.iter().filter_map(|p| self.request(p, payload)).collect();
        if requests.len() != extents.len() {
            return Err(Error::Garbled);
        }
        let epochs: Vec<u64> = portions.iter().map(|p| p.epoch).collect();
        self.write_epochs((&extents, &mut requests, &epochs), (low, high), report)
    }

    fn request<'b>(&self, portion: &Portion, payload: &'b [u8]) -> Option<Request<'b>> {
        let variable = self.header.schema.variable(portion.var)?;
        let rules = ConversionRules::of(self.header.schema.version);
        let sides = Sides { external: variable.ty, memory: variable.ty.natural(), rules };
        let fill = FillBytes::new(&values::fill_bytes(variable));
        let bytes = payload.get(portion.at..portion.at + portion.len() as usize)?;
        let lent = Lent::Source(bytes);
        Some(Request {
            id: RequestId::REPLAYED,
            direction: Direction::Put,
            var: portion.var,
            memory: Memory { lent, layout: MemoryLayout::dense(), sides, fill },
            parts: None,
            extent: Extent::default(),
            records: 0,
            whole_records: None,
            epoch: self.epoch,
            range: RangeReport::default(),
        })
    }

    fn write_epochs(
        &mut self,
        (extents, requests, epochs): (&[Extent], &mut [Request<'_>], &[u64]),
        (low, high): (u64, u64),
        report: &mut Report,
    ) -> Result<()> {
        let plan = Plan::new(extents.iter());
        count(report, &plan, requests.len());
        let block = self.file.block_size();
        let nothing = Mine { summary: Summary::default(), waste: 0, records: 0, block };
        let mine = [Mine { summary: plan.summary, ..nothing }, nothing];
        let together = Together::reduce(&*self.base.comm, Some(mine))?;
        let Some([write, _]) = together.filter(|[write, _]| !write.is_empty()) else {
            return Ok(());
        };
        let ranks = self.base.comm.size();
        let (file, hints) = (&*self.file, &self.base.hints);
        let ordered = ranks > 1 && low < high;
        let met;
        let written = if strategy::exchanges_write(&write, hints, ranks) {
            report.write_strategy = Strategy::Exchanged;
            let seen = Cell::new(false);
            let mut buffers = std::mem::take(&mut self.buffers);
            let written = self.exchange(&write).and_then(|mut exchange| {
                exchange.met = ordered.then_some(&seen);
                exchange.write(&plan, requests, &mut buffers, report)
            });
            self.buffers = buffers;
            met = seen.get();
            written
        } else {
            report.write_strategy = Strategy::Direct;
            met =
                ordered && conflict::ranks_meet(&*self.base.comm, &plan, (write.first, write.end))?;
            match met {
                // Halved before anything is written.
                true => Ok(()),
                false => direct::write(file, &plan, requests, hints, report),
            }
        };
        let [met] = self.agree_with(written, [met.into()])?;
        if met == 0 {
            return Ok(());
        }
        let middle = low + (high - low) / 2;
        let split = epochs.partition_point(|epoch| *epoch <= middle);
        let (early, late) = requests.split_at_mut(split);
        self.write_epochs((&extents[..split], early, &epochs[..split]), (low, middle), report)?;
        let high = (middle + 1, high);
        self.write_epochs((&extents[split..], late, &epochs[split..]), high, report)
    }
}
