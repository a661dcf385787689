//! Which entries touch these elements: answered by a logarithm and the answer.
//!
//! Entries are kept by variable and record; those of one record in an interval tree over the
//! elements that they span. Footprints stay encoded in the metadata logs and are decoded when
//! they are asked for, into a cache of bounded size. When there are more entries than the budget
//! has room for, only the frames are kept, each with the variables and records that it touches,
//! and a question reads the frames that may have an answer.

mod boxes;

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use esker_format::log::{Definition, Entry, Footprint, Frame, FrameKind, Records};

use super::SortedRuns;
use super::source::LogSource;
use super::tree::{Interval, Tree};
use crate::error::{Error, Result};

/// One entry of one log, ready to be asked.
#[derive(Debug, Clone)]
pub(crate) struct Found {
    /// Orders entries: session and epoch, rank, place in the log.
    pub(crate) order: (u64, u32, u64),
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
    pub(crate) sums: Arc<[u32]>,
}

impl Interval for Found {
    fn from(&self) -> u64 {
        self.first
    }

    fn to(&self) -> u64 {
        self.end
    }
}

/// An entry that touches several records, by these.
#[derive(Debug, Clone)]
struct Spread(Found);

impl Interval for Spread {
    fn from(&self) -> u64 {
        self.0.records.first
    }

    fn to(&self) -> u64 {
        self.0.records.end().unwrap_or(u64::MAX)
    }
}

/// What is known of a footprint without its definition.
#[derive(Debug, Clone, Copy)]
struct Outline {
    at: u64,
    len: u32,
    span: u64,
    elements: u64,
}

/// A frame in a log, and what it touches.
#[derive(Debug, Clone)]
struct Section {
    log: u32,
    at: u64,
    end: u64,
    vars: Range<u64>,
    records: Range<u64>,
    /// The number of the frame's first entry in its log.
    number: u64,
}

/// Where something in a log could not be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogDamage {
    /// The rank whose log it is.
    pub rank: u32,
    /// What is wrong, with its place.
    pub what: String,
}

#[derive(Debug, Default)]
struct OfVariable {
    by_record: BTreeMap<u64, Tree<Found>>,
    spread: Tree<Spread>,
}

/// The index of all logs of a dataset.
#[derive(Debug)]
pub(crate) struct Index {
    pub(crate) logs: Vec<LogSource>,
    /// For each log its footprints, by number; `None` where a definition was lost.
    outlines: Vec<Vec<Option<Outline>>>,
    /// Entries seen so far in each log.
    counts: Vec<u64>,
    sections: Vec<Section>,
    /// Empty when the entries were too many.
    vars: HashMap<u64, OfVariable>,
    /// Variables, and records of them if it is one, that entries were put into.
    unsettled: Vec<(u64, Option<u64>)>,
    entries: usize,
    scanning: bool,
    budget: usize,
    cache: Mutex<Cache>,
    /// What other ranks have read, in an index of their answers.
    given: Option<Definitions>,
    pub(crate) damages: Vec<LogDamage>,
}

/// Encoded footprints by log and number.
type Definitions = HashMap<(u32, u64), Box<[u8]>>;

#[derive(Debug, Default)]
struct Cache {
    runs: HashMap<(u32, u64), Arc<SortedRuns>>,
    memory: usize,
}

impl Index {
    /// An index that takes about `budget` bytes.
    pub(crate) fn new(budget: usize) -> Index {
        Index {
            logs: Vec::new(),
            outlines: Vec::new(),
            counts: Vec::new(),
            sections: Vec::new(),
            vars: HashMap::new(),
            unsettled: Vec::new(),
            entries: 0,
            scanning: false,
            budget,
            cache: Mutex::default(),
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
        self.outlines.push(Vec::new());
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
        if !self.scanning {
            return Ok(self.vars.contains_key(&var));
        }
        for section in self.sections.iter().filter(|section| section.vars.contains(&var)) {
            let mut has = false;
            self.read_section(section, |of, _| has |= of == var)?;
            if has {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Makes what was put in be found.
    pub(crate) fn settle(&mut self) {
        for (var, record) in self.unsettled.drain(..) {
            let Some(of_var) = self.vars.get_mut(&var) else { continue };
            match record {
                Some(record) => of_var.by_record.entry(record).or_default().settle(),
                None => of_var.spread.settle(),
            }
        }
    }

    /// Puts in an entry, which is found after [`Index::settle`].
    pub(crate) fn insert(&mut self, var: u64, found: Found) {
        let of_var = self.vars.entry(var).or_default();
        let record = (found.records.count == 1).then_some(found.records.first);
        let first = match record {
            Some(record) => of_var.by_record.entry(record).or_default().push(found),
            None => of_var.spread.push(Spread(found)),
        };
        if first {
            self.unsettled.push((var, record));
        }
    }

    fn take_in(&mut self, log: u32, at: u64, frame: Frame) -> Result<()> {
        if frame.kind != FrameKind::Entries {
            return Ok(());
        }
        self.outline(log, &frame);
        let of = |get: fn(&Entry) -> Range<u64>| {
            let all = frame.entries.iter().map(get);
            all.reduce(|a, b| a.start.min(b.start)..a.end.max(b.end)).unwrap_or(0..0)
        };
        let number = self.counts[log as usize];
        self.counts[log as usize] += frame.entries.len() as u64;
        self.sections.push(Section {
            log,
            at,
            end: frame.end,
            vars: of(|e| e.write.var..e.write.var + 1),
            records: of(|e| e.write.records.first..e.write.records.end().unwrap_or(u64::MAX)),
            number,
        });
        self.entries += frame.entries.len();
        // Entries that cannot be used are told now, also if they are looked up later.
        let mut damages = Vec::new();
        let usable = self.found(log, &frame, number, &mut damages);
        self.damages.append(&mut damages);
        if self.entries.saturating_mul(size_of::<Found>() + 40) > self.budget {
            self.scanning = true;
            self.vars.clear();
        }
        if self.scanning {
            return Ok(());
        }
        for (found, var) in usable {
            self.insert(var, found);
        }
        Ok(())
    }

    /// Notes where the frame's footprints are.
    fn outline(&mut self, log: u32, frame: &Frame) {
        for definition in &frame.footprints {
            let outlines = &mut self.outlines[log as usize];
            // Numbers that were lost with a damaged frame leave a gap; absurd ones are lost too.
            let number = usize::try_from(definition.number).ok();
            let Some(index) = number.filter(|n| *n < outlines.len() + (1 << 20)) else { continue };
            if outlines.len() <= index {
                outlines.resize(index + 1, None);
            }
            let Definition { place, elements, span, .. } = definition;
            let len = u32::try_from(place.end - place.start);
            outlines[index] = len.ok().map(|len| {
                let (at, elements, span) = (place.start, *elements, *span);
                Outline { at, len, span, elements }
            });
        }
    }

    /// The frame's entries, each with its variable; those that make no sense are damages.
    fn found(
        &self,
        log: u32,
        frame: &Frame,
        number: u64,
        damages: &mut Vec<LogDamage>,
    ) -> Vec<(Found, u64)> {
        let source = &self.logs[log as usize];
        let mut out = Vec::with_capacity(frame.entries.len());
        for (i, entry) in frame.entries.iter().enumerate() {
            let Some(found) = self.one(log, frame, entry, number + i as u64) else {
                let what = format!(
                    "an entry of variable number {} at byte {} of the data log cannot be used: \
                     its footprint {} is lost or does not fit its {} bytes",
                    entry.write.var, entry.place, entry.footprint, entry.len
                );
                damages.push(LogDamage { rank: source.rank, what });
                continue;
            };
            out.push((found, entry.write.var));
        }
        out
    }

    fn one(&self, log: u32, frame: &Frame, entry: &Entry, number: u64) -> Option<Found> {
        let source = &self.logs[log as usize];
        let outlines = &self.outlines[log as usize];
        let outline = (*outlines.get(usize::try_from(entry.footprint).ok()?)?)?;
        let write = &entry.write;
        let all = outline.elements.checked_mul(write.records.count)?;
        let fits = entry.encoded || all.checked_mul(write.width.into())? == entry.len;
        let end = write.first.checked_add(outline.span)?;
        let session = u64::from(source.session) << 48;
        fits.then(|| Found {
            order: (session | write.epoch.min((1 << 48) - 1), source.rank, number),
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
            sums: frame.sums[entry.sums.clone()].into(),
        })
    }

    /// Calls `each` with every entry that may touch elements `from..to` of a record of a variable.
    pub(crate) fn ask(
        &self,
        var: u64,
        record: u64,
        (from, to): (u64, u64),
        mut each: impl FnMut(&Found),
    ) -> Result<()> {
        let mut meets = |found: &Found| {
            let records = &found.records;
            let in_record = record >= records.first
                && (record - records.first).is_multiple_of(records.step)
                && (record - records.first) / records.step < records.count;
            if in_record && found.first < to && found.end > from {
                each(found);
            }
        };
        if !self.scanning {
            if let Some(of_var) = self.vars.get(&var) {
                if let Some(tree) = of_var.by_record.get(&record) {
                    tree.overlapping(from, to, &mut meets);
                }
                of_var.spread.overlapping(record, record + 1, |Spread(found)| meets(found));
            }
            return Ok(());
        }
        for section in &self.sections {
            if !section.vars.contains(&var) || !section.records.contains(&record) {
                continue;
            }
            self.read_section(section, |v, found| {
                if v == var {
                    meets(found);
                }
            })?;
        }
        Ok(())
    }

    /// Calls `each` with the variable and every entry of a frame.
    fn read_section(&self, section: &Section, mut each: impl FnMut(u64, &Found)) -> Result<()> {
        let mut log = self.logs[section.log as usize].clone();
        (log.read, log.meta_len) = (section.at, Some(section.end));
        log.read_on(|frame| {
            if let Ok(frame) = frame {
                let mut ignored = Vec::new();
                let all = self.found(section.log, &frame, section.number, &mut ignored);
                all.iter().for_each(|(found, var)| each(*var, found));
            }
            Ok(())
        })
    }

    /// The runs of an entry's footprint.
    pub(crate) fn runs(&self, found: &Found) -> Result<Option<Arc<SortedRuns>>> {
        let key = (found.log, found.footprint);
        if let Some(runs) = self.cache().runs.get(&key) {
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
        let mut cache = self.cache();
        cache.memory += runs.memory();
        if cache.memory > self.budget {
            cache.runs.clear();
            cache.memory = runs.memory();
        }
        cache.runs.insert(key, runs.clone());
    }

    fn cache(&self) -> std::sync::MutexGuard<'_, Cache> {
        // A cache that a panicking thread left behind is still a cache.
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
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
