//! From logs to the classic file, in rounds that all ranks agree on.
//!
//! A round has at most so many bytes of each rank, read back from its log in order, and only
//! entries up to an epoch that no rank has left unread: what comes in a later round is later.
//! Within a round a rank's own order is kept by its plan. Between ranks order matters only where
//! they write the same bytes, which the owners of windows see for nothing: then the epochs of
//! the round are halved, and both halves written again in their order.
//!
//! Chunked variables come first, because room for their chunks may move everything else. A round
//! encodes each chunk that it touches, so that rounds are parts of the space of chunks, as long as
//! what every rank has for them fits its memory: then a chunk is encoded once however many entries
//! it was written by.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::time::Instant;

use esker_comm::{ReduceOp, Reduction};
use esker_format::{ConversionRules, RangeReport, VarId, values};

use super::portion::{Pass, Portion, Target};
use super::reader::{Reader, Unusable};
use crate::canonical::count;
use crate::chunked::Chunked;
use crate::conflict;
use crate::dataset::Dataset;
use crate::direct;
use crate::error::{Error, Result};
use crate::ground::Ground;
use crate::hints::Hints;
use crate::log::LogSource;
use crate::memory::{FillBytes, Lent, Memory, MemoryLayout, Sides};
use crate::plan::{Extent, Plan, Summary};
use crate::report::{Report, Strategy};
use crate::request::{Direction, Request, RequestId};
use crate::selection::Space;
use crate::strategy::{self, Mine, Together};

/// What to do about entries that cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Damaged {
    /// Nothing is given up: it is an error.
    Fails,
    /// They are noted, and left out.
    IsLeftOut,
}

/// The logs of a session, to be replayed.
#[derive(Debug)]
pub(crate) struct Logs {
    /// In the order of their slots.
    pub(crate) sources: Vec<LogSource>,
    /// Entries up to this epoch have been replayed before.
    pub(crate) applied: Option<u64>,
    /// What could not be replayed.
    pub(crate) unusable: Vec<Unusable>,
    /// Entries that were taken.
    pub(crate) entries: u64,
    /// Records of chunked variables that were written.
    written: BTreeMap<VarId, u64>,
    /// Bytes of footprints that are kept of each log.
    budget: u64,
}

/// Logs on their way into the file, and into its chunked variables.
#[derive(Debug)]
pub(crate) struct Replaying<'d> {
    pub(crate) ground: &'d mut Ground,
    pub(crate) chunked: Option<&'d mut Chunked>,
}

impl Dataset {
    /// To replay logs into it.
    pub(crate) fn replaying(&mut self) -> Replaying<'_> {
        let chunked = self.layout.get_mut();
        Replaying { ground: &mut self.ground, chunked }
    }
}

impl Logs {
    pub(crate) fn new(sources: Vec<LogSource>, applied: Option<u64>, hints: &Hints) -> Logs {
        let (unusable, written) = (Vec::new(), BTreeMap::new());
        Logs { sources, applied, unusable, entries: 0, written, budget: hints.cache }
    }

    fn reader(&self, pass: Pass) -> Result<Reader> {
        Reader::new(self.sources.clone(), self.applied, pass, self.budget)
    }

    /// Takes over what a reader has met. Every pass meets the same damages.
    fn note(&mut self, reader: Reader) {
        for unusable in reader.unusable {
            if !self.unusable.contains(&unusable) {
                self.unusable.push(unusable);
            }
        }
        self.entries = reader.entries;
    }

    /// Looks at everything without replaying it.
    pub(crate) fn look(&mut self, target: Target<'_>) -> Result<()> {
        let all = Pass::Chunks(0..u64::MAX);
        for pass in [Some(Pass::Places), target.chunked.map(|_| all)].into_iter().flatten() {
            let mut reader = self.reader(pass)?;
            reader.drain(target, |_| {})?;
            self.note(reader);
        }
        Ok(())
    }
}

impl Replaying<'_> {
    pub(crate) fn target(&self) -> Target<'_> {
        Target { header: &self.ground.header, chunked: self.chunked.as_deref() }
    }

    /// Writes the entries of `logs` to the file, which has `existing` records and will have
    /// `records`. Collective.
    pub(crate) fn replay(
        &mut self,
        logs: &mut Logs,
        (existing, records): (u64, u64),
        damaged: Damaged,
    ) -> Result<()> {
        let known = std::mem::replace(&mut self.ground.records, existing);
        let replayed = self.replay_passes(logs, (existing, records), damaged);
        if replayed.is_err() {
            self.ground.records = known;
        }
        replayed
    }

    fn replay_passes(
        &mut self,
        logs: &mut Logs,
        (existing, records): (u64, u64),
        damaged: Damaged,
    ) -> Result<()> {
        if let Some(chunked) = &mut self.chunked {
            // What a flush before this one has left, which would seem to be written by it.
            chunked.forget_uncounted(self.ground)?;
            let weights = self.ground.base.agree(self.weigh(logs))?;
            let mut from = 0;
            while from < u64::MAX {
                // As far as every rank's memory reaches.
                let until = self.reach(&weights, from);
                let [until] = self.ground.base.agree_with(Ok(()), [!until])?;
                let part = from..!until;
                from = part.end;
                self.replay_pass(logs, Pass::Chunks(part), records, damaged)?;
            }
        }
        if records > existing && self.ground.fills_records() {
            let filled = self.ground.fill_share(existing, records, None);
            self.ground.base.agree(filled)?;
        }
        self.replay_pass(logs, Pass::Places, records, damaged)?;
        self.ground.grow_together(records)?;
        // Not before: a file that counts fewer records than a variable says to have is a damaged one.
        if let Some(chunked) = &mut self.chunked {
            chunked.note_records_of(&logs.written);
        }
        Ok(())
    }

    /// Bytes that this rank's logs have for each chunk, by address; nothing where all of it fits the
    /// memory of a round.
    fn weigh(&self, logs: &Logs) -> Result<BTreeMap<u64, u64>> {
        const MOST: usize = 1 << 16;
        let mut weights: BTreeMap<u64, u64> = BTreeMap::new();
        let mut reader = logs.reader(Pass::Chunks(0..u64::MAX))?;
        let Some(chunked) = &self.chunked else { return Ok(weights) };
        if reader.payload() <= self.ground.base.hints.flush_chunks_at_once() {
            return Ok(weights);
        }
        reader.drain(self.target(), |portion| {
            for (unit, bytes) in chunked.touched_by(std::slice::from_ref(&portion.extent)) {
                *weights.entry(unit).or_default() += bytes;
            }
            if weights.len() > MOST {
                // Neighbours together.
                let all: Vec<(u64, u64)> = std::mem::take(&mut weights).into_iter().collect();
                let pairs = all.chunks(2).filter_map(|pair| {
                    Some((pair.first()?.0, pair.iter().map(|(_, bytes)| bytes).sum()))
                });
                weights = pairs.collect();
            }
        })?;
        Ok(weights)
    }

    /// Up to which address this rank has as much as fits the memory of a round.
    fn reach(&self, weights: &BTreeMap<u64, u64>, from: u64) -> u64 {
        let most = self.ground.base.hints.flush_chunks_at_once();
        let mut held = 0;
        for (unit, bytes) in weights.range(from..) {
            held += bytes;
            if held > most && held > *bytes {
                return *unit;
            }
        }
        u64::MAX
    }

    fn replay_pass(
        &mut self,
        logs: &mut Logs,
        pass: Pass,
        records: u64,
        damaged: Damaged,
    ) -> Result<()> {
        let reader = logs.reader(pass.clone());
        let mut reader = self.ground.base.agree(reader)?;
        let written = &mut logs.written;
        let outcome = self.replay_rounds(&mut reader, (&pass, written), records, damaged);
        logs.note(reader);
        outcome
    }

    fn replay_rounds(
        &mut self,
        reader: &mut Reader,
        (pass, written): (&Pass, &mut BTreeMap<VarId, u64>),
        records: u64,
        damaged: Damaged,
    ) -> Result<()> {
        let mut report = self.ground.report;
        let most = match pass {
            Pass::Places => self.ground.base.hints.flush_at_once(),
            Pass::Chunks(_) => self.ground.base.hints.flush_chunks_at_once(),
        };
        let mut payload = Vec::new();
        loop {
            let loaded = self.load(reader, most, &mut payload, damaged, &mut report);
            let (count, more) = *loaded.as_ref().unwrap_or(&(0, false));
            let epochs: Vec<u64> = reader.queue().iter().map(|p| p.epoch).collect();
            let (first, last) = (epochs.first().copied(), count.checked_sub(1).map(|i| epochs[i]));
            // A rank that has more in its log has not shown all of its last epoch yet.
            let until = if more { last.unwrap_or(0) } else { u64::MAX };
            let mine = [!first.unwrap_or(u64::MAX), last.unwrap_or(0), !until, more.into()];
            let [low, high, until, more] = self.ground.base.agree_with(loaded.map(drop), mine)?;
            let (low, until) = (!low, !until);
            if low == u64::MAX {
                break;
            }
            let count = epochs[..count].partition_point(|epoch| *epoch <= until);
            let high = high.min(until);
            let outcome = self.write_portions(
                (&mut reader.queue()[..count], pass, records),
                &payload,
                (low, high),
                &mut report,
            );
            self.ground.report = report;
            outcome?;
            for portion in &reader.queue()[..count] {
                if let Pass::Chunks(_) = pass {
                    let known = written.entry(portion.var).or_default();
                    *known = portion.records.max(*known);
                }
            }
            reader.done(count);
            if more == 0 && until == u64::MAX {
                break;
            }
        }
        self.ground.report = report;
        Ok(())
    }

    /// Reads the payloads of the next portions. Gives how many there are, and whether there are
    /// more behind them.
    fn load(
        &self,
        reader: &mut Reader,
        most: u64,
        payload: &mut Vec<u8>,
        damaged: Damaged,
        report: &mut Report,
    ) -> Result<(usize, bool)> {
        let clock = Instant::now();
        let target = self.target();
        let mut count = reader.select(target, most)?;
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
                let what = reader.is_damaged(target, reader.peek(*i));
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
            return Err(Error::BurstBuffer { path: self.ground.base.path.clone(), why });
        }
        let more = reader.has_more(count)?;
        Ok((count, more))
    }

    /// Writes portions whose epochs are in `low..=high`, in the order of the epochs. Collective.
    fn write_portions(
        &mut self,
        (portions, pass, records): (&mut [Portion], &Pass, u64),
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
        match pass {
            Pass::Places => {
                self.write_epochs((&extents, &mut requests, &epochs), (low, high), report)
            }
            Pass::Chunks(_) => {
                for (request, extent) in requests.iter_mut().zip(extents) {
                    request.extent = extent;
                }
                self.write_chunk_epochs((&mut requests, &epochs), records, (low, high), report)
            }
        }
    }

    /// Writes requests of chunked variables whose epochs are in `low..=high`, in the order of the
    /// epochs. Collective.
    fn write_chunk_epochs(
        &mut self,
        (requests, epochs): (&mut [Request<'_>], &[u64]),
        records: u64,
        (low, high): (u64, u64),
        report: &mut Report,
    ) -> Result<()> {
        // An owner cannot tell what came first, so that ranks compare before anything is encoded.
        if self.ground.base.comm.size() > 1 && low < high && self.ranks_meet_in_chunks(requests)? {
            let middle = low + (high - low) / 2;
            let split = epochs.partition_point(|epoch| *epoch <= middle);
            let (early, late) = requests.split_at_mut(split);
            let early = (early, &epochs[..split]);
            self.write_chunk_epochs(early, records, (low, middle), report)?;
            let late = (late, &epochs[split..]);
            return self.write_chunk_epochs(late, records, (middle + 1, high), report);
        }
        match &mut self.chunked {
            Some(chunked) => chunked.replay(self.ground, requests, records, report),
            None => Ok(()),
        }
    }

    /// Whether two ranks write the same element of a chunk. Collective.
    fn ranks_meet_in_chunks(&self, requests: &[Request<'_>]) -> Result<bool> {
        let plan = Plan::new(requests.iter().map(|request| &request.extent));
        let Summary { first, end, bytes, .. } = plan.summary;
        let first = if bytes == 0 { u64::MAX } else { first };
        let [low, end] = self.ground.base.agree_with(Ok(()), [!first, end])?;
        let first = !low;
        match first < end {
            true => conflict::ranks_meet(self.ground.base.mail(), &plan, (first, end)),
            false => Ok(false),
        }
    }

    fn request<'b>(&self, portion: &Portion, payload: &'b [u8]) -> Option<Request<'b>> {
        let variable = self.target().variable(portion.var)?;
        let rules = ConversionRules::of(self.ground.header.schema.version);
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
            records: portion.records,
            whole_records: None,
            space: Space::File,
            epoch: self.ground.epoch,
            range: RangeReport::default(),
            expected: None,
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
        let block = self.ground.file.block_size();
        let mut mine = Mine { summary: plan.summary, waste: 0, records: 0, block }.fields();
        self.ground.base.comm.all_reduce(Reduction::U64(&mut mine), ReduceOp::Max)?;
        let Some([write]) = Together::of_all(&mine).filter(|[write]| !write.is_empty()) else {
            return Ok(());
        };
        let ranks = self.ground.base.comm.size();
        let (file, hints) = (&*self.ground.file, &self.ground.base.hints);
        let ordered = ranks > 1 && low < high;
        let met;
        let written = if strategy::exchanges_write(&write, hints, ranks) {
            report.write_strategy = Strategy::Exchanged;
            let seen = Cell::new(false);
            let mut buffers = std::mem::take(&mut self.ground.buffers);
            let written = self.ground.exchange(&write).and_then(|mut exchange| {
                exchange.met = ordered.then_some(&seen);
                exchange.write(&plan, requests, &mut buffers, report)
            });
            self.ground.buffers = buffers;
            met = seen.get();
            written
        } else {
            report.write_strategy = Strategy::Direct;
            met = ordered
                && conflict::ranks_meet(self.ground.base.mail(), &plan, (write.first, write.end))?;
            match met {
                // Halved before anything is written.
                true => Ok(()),
                false => direct::write(file, &plan, requests, hints, report),
            }
        };
        let [met] = self.ground.base.agree_with(written, [met.into()])?;
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
