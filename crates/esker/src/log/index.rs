//! Which entries touch these elements: answered by a logarithm and the answer.
//!
//! Entries are kept by variable, as boxes of records and the dimensions of a record ([`super::grid`]): one that was written as
//! a hyperslab is one, of others it is what is around them.
//! Footprints stay encoded in the metadata logs and are decoded when they are asked for, into a
//! cache of bounded size. When there are more entries than the budget has room for, only stretches
//! of the logs are kept, each with the variables and records that it touches; a question reads
//! those that may have an answer, and is answered a section at a time, in the order of the entries.

mod boxes;
mod loading;
mod lowest;
mod trees;

pub(crate) use lowest::Cost;
pub(crate) use trees::Grids;

use std::collections::HashMap;
use std::fmt;
use std::ops::{Deref, Range};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use esker_format::log::{Definition, Entry, Footprint, Frame, FrameKind, Records};

use super::SortedRuns;
use super::grid::{BoxSeen, Grid, Slab};
use super::source::LogSource;
use super::weave::Weaves;
use crate::bounded::Bounded;
use crate::error::{Error, Result};
use trees::Trees;

/// Bytes of tables that are kept for reads that follow.
const MOST_WEAVES: usize = 4 << 20;

/// Place of its version, epoch, rank, place in the log: later entries are greater.
pub(crate) type Order = (u64, u64, u32, u64);

/// One entry of one log, ready to be asked.
#[derive(Debug, Clone)]
pub(crate) struct Found {
    pub(crate) order: Order,
    /// The number of its log.
    pub(crate) log: u32,
    pub(crate) records: Records,
    /// The elements of a record that it spans.
    pub(crate) first: u64,
    pub(crate) end: u64,
    pub(crate) footprint: u64,
    /// Elements in each record.
    pub(crate) elements: u64,
    pub(crate) place: u64,
    pub(crate) len: u64,
    pub(crate) width: u8,
    pub(crate) little: bool,
    pub(crate) encoded: bool,
    pub(crate) sums: Sums,
}

impl Found {
    /// Bytes that it takes.
    pub(crate) fn memory(&self) -> usize {
        size_of::<(u64, Found)>() + size_of_val(&self.sums[..])
    }

    /// The same without what belongs to others.
    fn alone(&self) -> Found {
        Found { sums: Sums::from(&self.sums[..]), ..self.clone() }
    }
}

/// Checksums of an entry, among those of its frame.
#[derive(Clone)]
pub(crate) struct Sums {
    all: Arc<[u32]>,
    range: Range<usize>,
}

impl Deref for Sums {
    type Target = [u32];

    fn deref(&self) -> &[u32] {
        self.all.get(self.range.clone()).unwrap_or_default()
    }
}

impl From<&[u32]> for Sums {
    fn from(sums: &[u32]) -> Sums {
        Sums { all: sums.into(), range: 0..sums.len() }
    }
}

impl fmt::Debug for Sums {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// What is known of a footprint without its definition.
#[derive(Debug, Clone)]
struct Outline {
    at: u64,
    len: u32,
    span: u64,
    elements: u64,
    sum: u32,
    /// Those of a block.
    block: Option<BlockLevels>,
}

/// Count and step of each level of a block, the slowest first and its run as the last.
type BlockLevels = Box<[(u64, u64)]>;

/// Definitions that are longer are of no block that is worth knowing.
const LONGEST_BLOCK: u32 = 200;

/// Frames of a log, one behind the other, and what they touch.
#[derive(Debug, Clone)]
struct Section {
    log: u32,
    at: u64,
    end: u64,
    vars: Range<u64>,
    records: Range<u64>,
    /// The number of the first entry in its log.
    number: u64,
    first: Order,
    last: Order,
}

/// Frames of fewer bytes are one section with those behind them.
const LEAST_SECTION: u64 = 64 << 10;

/// Where something in a log could not be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogDamage {
    /// The rank whose log it is.
    pub rank: u32,
    /// What is wrong, with its place.
    pub what: String,
}

/// The index of all logs of a dataset.
#[derive(Debug)]
pub(crate) struct Index {
    pub(crate) logs: Vec<LogSource>,
    /// For each log its footprints, by number, as far as it was read.
    outlines: Vec<Outlines>,
    /// Entries seen so far in each log.
    counts: Vec<u64>,
    sections: Vec<Section>,
    /// Empty when the entries were too many.
    trees: Trees,
    entries: usize,
    /// Bytes of the entries.
    memory: usize,
    scanning: bool,
    budget: usize,
    /// The most bytes that were held at once.
    peak: AtomicUsize,
    cache: Mutex<Cache>,
    weaves: Mutex<Weaves>,
    /// What other ranks have read, in an index of their answers.
    given: Option<Definitions>,
    pub(crate) damages: Vec<LogDamage>,
}

/// Encoded footprints by log and number.
#[derive(Debug, Default)]
struct Definitions {
    by_number: HashMap<(u32, u64), Box<[u8]>>,
    /// The levels of those that are blocks.
    blocks: HashMap<(u32, u64), BlockLevels>,
    memory: usize,
}

/// Footprints of a log, by number.
type Outlines = HashMap<u64, Outline>;

/// Decoded footprints, by log and number.
type Cache = Bounded<(u32, u64), Arc<SortedRuns>>;

impl Index {
    /// An index that takes about `budget` bytes.
    pub(crate) fn new(budget: usize) -> Index {
        Index {
            logs: Vec::new(),
            outlines: Vec::new(),
            counts: Vec::new(),
            sections: Vec::new(),
            trees: Trees::default(),
            entries: 0,
            memory: 0,
            scanning: false,
            budget,
            peak: AtomicUsize::new(0),
            cache: Mutex::default(),
            weaves: Mutex::default(),
            given: None,
            damages: Vec::new(),
        }
    }

    /// The bytes that it takes about.
    pub(crate) fn budget(&self) -> usize {
        self.budget
    }

    /// Adds a log and gives its number; what it holds comes with [`Index::catch_up`].
    pub(crate) fn add(&mut self, log: LogSource) -> usize {
        self.logs.push(log);
        self.outlines.push(Outlines::default());
        self.counts.push(0);
        self.logs.len() - 1
    }

    /// Takes in what these logs have grown by.
    pub(crate) fn catch_up(&mut self, logs: impl IntoIterator<Item = usize>) -> Result<()> {
        for number in logs {
            let mut log = self.logs[number].clone();
            if log.read == 0
                && let Some(what) = log.skip_head()?
            {
                self.damages.push(LogDamage { rank: log.rank, what });
                continue;
            }
            let mut at = log.read;
            let outcome = log.read_on(|frame| match frame {
                Ok(frame) => {
                    let from = at;
                    at = frame.end;
                    self.take_in(number as u32, from, frame)
                }
                Err(damage) => {
                    at = damage.to;
                    let rank = self.logs[number].rank;
                    self.damages.push(LogDamage { rank, what: damage.to_string() });
                    Ok(())
                }
            });
            // Also after a failure: what was taken in is not taken in again.
            self.logs[number].read = if outcome.is_ok() { log.read } else { at };
            outcome?;
            if let Some(len) = log.meta_len.filter(|len| log.read < *len) {
                let what = format!(
                    "the metadata log has no whole frame at byte {}, though {len} bytes of it \
                     were committed",
                    log.read
                );
                self.damages.push(LogDamage { rank: log.rank, what });
            }
        }
        self.settle();
        Ok(())
    }

    /// Whether there are entries of a variable.
    pub(crate) fn has_entries(&self, var: u64) -> Result<bool> {
        let mut has = false;
        if !self.scanning {
            return Ok(self.trees.has(var));
        }
        for section in self.sections.iter().filter(|section| section.vars.contains(&var)) {
            self.read_section(section, |of, _| has |= of == var)?;
            if has {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Calls `each` with the variable and every entry, by what is in the logs.
    pub(crate) fn each(&self, mut each: impl FnMut(u64, &Found)) -> Result<()> {
        self.sections.iter().try_for_each(|section| self.read_section(section, &mut each))
    }

    /// Calls `each` with every entry of a variable and the box that it is in.
    pub(crate) fn each_of(&self, var: u64, mut each: impl FnMut(&Found, BoxSeen)) -> Result<()> {
        let grid = *self.grid(var);
        let mut one = |found: &Found| {
            let (slab, whole) = self.hull(var, found);
            each(found, BoxSeen { grid, slab, whole });
        };
        if !self.scanning {
            self.trees.each_of(var, one);
            return Ok(());
        }
        for section in self.sections.iter().filter(|section| section.vars.contains(&var)) {
            self.read_section(section, |of, found| {
                if of == var {
                    one(found);
                }
            })?;
        }
        Ok(())
    }

    /// Makes what was put in be found.
    pub(crate) fn settle(&mut self) {
        self.trees.settle();
        self.note(0);
    }

    /// Puts in an entry, which is found after [`Index::settle`].
    pub(crate) fn insert(&mut self, var: u64, found: Found) {
        self.memory += self.memory_of(var, &found);
        let (hull, _) = self.hull(var, &found);
        self.trees.push(var, found, &hull);
    }

    /// Bytes that an entry takes here.
    pub(crate) fn memory_of(&self, var: u64, found: &Found) -> usize {
        found.memory() + self.trees.memory(var)
    }

    /// Variables are seen in these grids from now on.
    pub(crate) fn see_in(&mut self, grids: Arc<Grids>) {
        let again = self.trees.see_in(grids);
        if !again.is_empty() {
            self.memory = 0;
        }
        again.into_iter().for_each(|(var, found)| self.insert(var, found));
        self.trees.settle();
    }

    /// The grids in which variables are seen.
    pub(crate) fn grids(&self) -> &Arc<Grids> {
        self.trees.grids()
    }

    /// The grid in which a variable is seen.
    pub(crate) fn grid(&self, var: u64) -> &Grid {
        self.trees.grid(var)
    }

    /// The box around an entry, and whether it is all of it, in the order of the payload.
    pub(crate) fn hull(&self, var: u64, found: &Found) -> (Slab, bool) {
        let grid = self.trees.grid(var);
        let outline = self.outlines.get(found.log as usize).and_then(|of| of.get(&found.footprint));
        let given = || self.given_block(found);
        match outline.and_then(|outline| outline.block.as_deref()).or_else(given) {
            Some(levels) => grid.hull(found.records, found.first, levels.iter().copied()),
            None => {
                let end = found.records.end().unwrap_or(u64::MAX);
                (grid.around(found.records.first..end, found.first..found.end), false)
            }
        }
    }

    /// What entries may take of the budget; the rest is for what a read needs beside them.
    fn room(&self) -> usize {
        self.budget / 8 * 5
    }

    /// What a section of an answer may take.
    pub(crate) fn section_room(&self) -> usize {
        self.budget / 8
    }

    /// What decoded footprints may take, beside the one in use.
    pub(super) fn runs_room(&self) -> usize {
        self.budget / 16
    }

    /// Notes that so many bytes are held, beside what the index has.
    pub(crate) fn note(&self, beside: usize) {
        let given = self.given.as_ref().map_or(0, |given| given.memory);
        let kept = self.cached() as usize;
        self.peak.fetch_max(self.memory + given + kept + beside, Ordering::Relaxed);
    }

    /// The most bytes that were held at once since the last time that this was asked.
    pub(crate) fn take_peak(&self) -> usize {
        self.peak.swap(0, Ordering::Relaxed)
    }

    fn take_in(&mut self, log: u32, at: u64, frame: Frame) -> Result<()> {
        self.outline(log, &frame);
        if frame.kind != FrameKind::Entries {
            return Ok(());
        }
        let of = |get: fn(&Entry) -> Range<u64>| {
            let all = frame.entries.iter().map(get);
            all.reduce(|a, b| a.start.min(b.start)..a.end.max(b.end)).unwrap_or(0..0)
        };
        let number = self.counts[log as usize];
        self.counts[log as usize] += frame.entries.len() as u64;
        let source = &self.logs[log as usize];
        // Not only of the first and last: nobody promises that a log's epochs ascend.
        let epochs = frame.entries.iter().map(|entry| entry.write.epoch);
        let epochs = (epochs.clone().min().unwrap_or(0), epochs.max().unwrap_or(0));
        let place = source.place_at(frame.end);
        let first = (place, epochs.0, source.rank, 0);
        let last = (place, epochs.1, source.rank, u64::MAX);
        self.add_section(Section {
            log,
            at,
            end: frame.end,
            vars: of(|e| e.write.var..e.write.var + 1),
            records: of(|e| e.write.records.first..e.write.records.end().unwrap_or(u64::MAX)),
            number,
            first,
            last,
        });
        self.entries += frame.entries.len();
        // Entries that cannot be used are told now, also if they are looked up later.
        let Index { logs, outlines, .. } = self;
        let of = OfLog { log, source: &logs[log as usize], outlines: &outlines[log as usize] };
        let (mut damages, mut entries) = (Vec::new(), Vec::new());
        let scanning = self.scanning;
        if !scanning {
            entries.reserve(frame.entries.len());
        }
        of.found(&frame, number, &mut damages, |var, found| {
            if !scanning {
                entries.push((var, found));
            }
        });
        self.damages.append(&mut damages);
        self.trees.reserve(entries.len());
        entries.into_iter().for_each(|(var, found)| self.insert(var, found));
        if self.memory > self.room() {
            self.scanning = true;
            self.memory = 0;
            self.trees.clear();
        }
        Ok(())
    }

    /// Adds frames to the log's last section, if that is short.
    fn add_section(&mut self, new: Section) {
        let around = |a: &Range<u64>, b: &Range<u64>| a.start.min(b.start)..a.end.max(b.end);
        if let Some(last) = self.sections.last_mut()
            && (last.log, last.end) == (new.log, new.at)
            && last.end - last.at < LEAST_SECTION
        {
            last.end = new.end;
            last.vars = around(&last.vars, &new.vars);
            last.records = around(&last.records, &new.records);
            last.first = last.first.min(new.first);
            last.last = last.last.max(new.last);
            return;
        }
        self.sections.push(new);
    }

    /// Notes where the frame's footprints are.
    fn outline(&mut self, log: u32, frame: &Frame) {
        for (definition, block) in frame.footprints.iter().zip(&frame.blocks) {
            let Definition { number, place, elements, span, sum } = definition;
            let (at, elements, span, sum) = (place.start, *elements, *span, *sum);
            if let Ok(len) = u32::try_from(place.end - place.start) {
                let known = self.outlines[log as usize].get(number);
                let known = known.is_some_and(|known| known.block.is_some() && known.sum == sum);
                let block = match (block, frame.kind) {
                    _ if known => continue,
                    (None, FrameKind::Known) if len <= LONGEST_BLOCK => {
                        self.block_at(log, place, sum)
                    }
                    (block, _) => block.as_ref().and_then(levels_of),
                };
                let outline = Outline { at, len, span, elements, sum, block };
                self.outlines[log as usize].insert(*number, outline);
            }
        }
    }

    /// The levels of a block whose definition is there. What cannot be read is no block: whoever needs it tells.
    fn block_at(&self, log: u32, place: &Range<u64>, sum: u32) -> Option<BlockLevels> {
        let bytes = bytes_of(self.logs.get(log as usize)?, place.clone()).ok()?;
        let is_it = crc32c::crc32c(&bytes) == sum;
        Footprint::decode_block(&bytes).filter(|_| is_it).as_ref().and_then(levels_of)
    }

    /// Calls `each` with every entry that may touch elements `from..to` of a record of a variable.
    /// Not where entries are too many to be kept: gives whether it has.
    pub(crate) fn ask(
        &self,
        var: u64,
        record: u64,
        (from, to): (u64, u64),
        mut each: impl FnMut(&Found),
    ) -> bool {
        let hull = self.grid(var).around(record..record.saturating_add(1), from..to);
        self.ask_slab(var, &hull, |found| {
            let Records { first, step, .. } = found.records;
            let in_record = record >= first && (record - first).is_multiple_of(step);
            if in_record && found.first < to && found.end > from {
                each(found);
            }
        })
    }

    /// The same for a box in the variable's grid.
    pub(crate) fn ask_slab(&self, var: u64, slab: &Slab, each: impl FnMut(&Found)) -> bool {
        if !self.scanning {
            self.trees.meeting(var, slab, each);
        }
        !self.scanning
    }

    /// Calls `each` with the variable and every entry of a section.
    fn read_section(&self, section: &Section, mut each: impl FnMut(u64, &Found)) -> Result<()> {
        let mut log = self.logs[section.log as usize].clone();
        (log.read, log.meta_len) = (section.at, Some(section.end));
        let mut number = section.number;
        let (source, outlines) =
            (&self.logs[section.log as usize], &self.outlines[section.log as usize]);
        let of_log = OfLog { log: section.log, source, outlines };
        log.read_on(|frame| {
            if let Ok(frame) = frame {
                let mut ignored = Vec::new();
                of_log.found(&frame, number, &mut ignored, |var, found| {
                    each(var, &found);
                });
                number += frame.entries.len() as u64;
            }
            Ok(())
        })
    }

    /// The runs of an entry's footprint.
    pub(crate) fn runs(&self, found: &Found) -> Result<Option<Arc<SortedRuns>>> {
        let key = (found.log, found.footprint);
        if let Some(runs) = self.cache().get(&key) {
            return Ok(Some(runs.clone()));
        }
        let bytes = self.definition(found)?;
        let footprint = bytes.and_then(|bytes| Footprint::decode(&bytes, found.elements));
        if footprint.is_none() && self.given.is_some() {
            return Err(Error::Garbled);
        }
        Ok(footprint.map(|footprint| {
            let runs = Arc::new(SortedRuns::new(&footprint));
            self.keep(key, &runs);
            runs
        }))
    }

    fn keep(&self, key: (u32, u64), runs: &Arc<SortedRuns>) {
        let budget = self.runs_room() as u64;
        self.cache().put(key, runs.clone(), runs.memory() as u64, budget);
        self.note(0);
    }

    /// Tables for what is read again and again.
    pub(crate) fn weaves(&self) -> std::sync::MutexGuard<'_, Weaves> {
        self.weaves.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Bytes that they may take.
    pub(crate) fn weaves_budget(&self) -> u64 {
        (self.budget / 16).min(MOST_WEAVES) as u64
    }

    /// Bytes of payloads that were decoded through filters that may be kept.
    pub(crate) fn decoded_budget(&self) -> u64 {
        self.budget as u64 / 8
    }

    /// Bytes that footprints and tables take that are kept.
    pub(crate) fn cached(&self) -> u64 {
        self.cache().memory() + self.weaves().memory()
    }

    fn cache(&self) -> std::sync::MutexGuard<'_, Cache> {
        // A cache that a panicking thread left behind is still a cache.
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What is needed to make sense of a log's frames.
struct OfLog<'i> {
    log: u32,
    source: &'i LogSource,
    outlines: &'i Outlines,
}

impl OfLog<'_> {
    /// Calls `each` with the frame's entries and their variables; those that make no sense are
    /// damages.
    fn found(
        &self,
        frame: &Frame,
        number: u64,
        damages: &mut Vec<LogDamage>,
        mut each: impl FnMut(u64, Found),
    ) {
        let sums: Arc<[u32]> = frame.sums.as_slice().into();
        for (i, entry) in frame.entries.iter().enumerate() {
            let Some(found) = self.one(&sums, entry, (number + i as u64, frame.end)) else {
                let what = format!(
                    "an entry of variable number {} at byte {} of the data log cannot be used: \
                     its footprint {} is lost or does not fit its {} bytes",
                    entry.write.var, entry.place, entry.footprint, entry.len
                );
                let rank = self.source.rank;
                damages.push(LogDamage { rank, what });
                continue;
            };
            each(entry.write.var, found);
        }
    }

    fn one(
        &self,
        sums: &Arc<[u32]>,
        entry: &Entry,
        (number, end_of_frame): (u64, u64),
    ) -> Option<Found> {
        let OfLog { log, source, outlines } = *self;
        let outline = outlines.get(&entry.footprint)?;
        let write = &entry.write;
        let all = outline.elements.checked_mul(write.records.count)?;
        let fits = entry.encoded || all.checked_mul(write.width.into())? == entry.len;
        let end = write.first.checked_add(outline.span)?;
        fits.then(|| Found {
            order: (source.place_at(end_of_frame), write.epoch, source.rank, number),
            log,
            records: write.records,
            first: write.first,
            end,
            footprint: entry.footprint,
            elements: outline.elements,
            place: entry.place,
            len: entry.len,
            width: write.width,
            little: write.little,
            encoded: entry.encoded,
            sums: Sums { all: sums.clone(), range: entry.sums.clone() },
        })
    }
}

/// Count and step of each level of a block, the run as the last.
fn levels_of(footprint: &Footprint) -> Option<BlockLevels> {
    match footprint {
        Footprint::Block { run, levels } => {
            Some(levels.iter().copied().chain([(*run, 1)]).collect())
        }
        Footprint::Runs(_) => None,
    }
}

/// The footprint whose definition is there; `None` if it makes no sense.
pub(crate) fn definition(
    log: &LogSource,
    place: Range<u64>,
    most: u64,
) -> Result<Option<Footprint>> {
    Ok(Footprint::decode(&bytes_of(log, place)?, most))
}

/// What is there in a metadata log.
fn bytes_of(log: &LogSource, place: Range<u64>) -> Result<Vec<u8>> {
    let mut bytes = vec![0; (place.end - place.start) as usize];
    let n = log.meta.read_at(place.start, &mut bytes)?;
    bytes.truncate(n);
    Ok(bytes)
}
