//! The entries of logs, in the order in which they were written, as portions to be replayed.

use std::collections::{HashMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use esker_format::log::{Footprint, Frame, FrameKind};
use esker_store::File;

use super::portion::{Pass, Portion, Target, portions};
use crate::bounded::Bounded;
use crate::error::Result;
use crate::log::{LogSource, definition};

/// Where something in a log could not be replayed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unusable {
    /// The rank whose log it is.
    pub(crate) rank: u32,
    pub(crate) what: String,
}

/// One log and how far it was read.
#[derive(Debug)]
struct OneLog {
    source: LogSource,
    meta_len: u64,
    data_len: u64,
    frames: VecDeque<Frame>,
    /// The next entry of the first frame.
    next: usize,
    at_end: bool,
    /// Where the footprints are defined.
    places: HashMap<u64, Range<u64>>,
    footprints: Bounded<u64, Arc<Footprint>>,
    /// Bytes of footprints that are kept.
    budget: u64,
    /// Damages since something was last said to have been replayed.
    damages: Vec<Unusable>,
}

/// Reads logs side by side, in the order of (epoch, rank, slot, sequence).
#[derive(Debug)]
pub(crate) struct Reader {
    logs: Vec<OneLog>,
    /// Entries up to this epoch have been replayed before.
    applied: Option<u64>,
    /// Which entries are queued.
    pass: Pass,
    queue: VecDeque<Portion>,
    queued: u64,
    /// What could not be replayed.
    pub(crate) unusable: Vec<Unusable>,
    /// Entries that were taken.
    pub(crate) entries: u64,
}

impl Reader {
    /// For logs in the order of their slots.
    pub(crate) fn new(
        sources: Vec<LogSource>,
        applied: Option<u64>,
        pass: Pass,
        budget: u64,
    ) -> Result<Reader> {
        let mut logs = Vec::new();
        for mut source in sources {
            source.skip_head()?;
            let (meta_len, data_len) = (source.meta.len()?, source.data.len()?);
            logs.push(OneLog {
                source,
                meta_len,
                data_len,
                frames: VecDeque::new(),
                next: 0,
                at_end: false,
                places: HashMap::new(),
                footprints: Bounded::default(),
                budget,
                damages: Vec::new(),
            });
        }
        let (queue, unusable) = (VecDeque::new(), Vec::new());
        Ok(Reader { logs, applied, pass, queue, queued: 0, unusable, entries: 0 })
    }

    /// Queues portions until they have `most` bytes, and gives how many those are: at least one, if
    /// there is one.
    pub(crate) fn select(&mut self, target: Target<'_>, most: u64) -> Result<usize> {
        while self.queued < most && self.read_entry(target, most)? {}
        let mut bytes = 0;
        let fits = self.queue.iter().take_while(|portion| {
            bytes += portion.len();
            bytes <= most
        });
        Ok(fits.count().max(usize::from(!self.queue.is_empty())))
    }

    /// The portions that are queued.
    pub(crate) fn queue(&mut self) -> &mut [Portion] {
        self.queue.make_contiguous()
    }

    /// A queued portion.
    pub(crate) fn peek(&self, number: usize) -> &Portion {
        &self.queue[number]
    }

    /// A queued portion, to be changed.
    pub(crate) fn at(&mut self, number: usize) -> &mut Portion {
        &mut self.queue[number]
    }

    /// Leaves a queued portion out.
    pub(crate) fn remove(&mut self, number: usize) {
        if let Some(portion) = self.queue.remove(number) {
            self.queued -= portion.len();
        }
    }

    /// Whether there is something behind the first `count` portions.
    pub(crate) fn has_more(&mut self, count: usize) -> Result<bool> {
        if self.queue.len() > count {
            return Ok(true);
        }
        for number in 0..self.logs.len() {
            self.settle(number)?;
            if !self.logs[number].frames.is_empty() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The first `count` portions have been replayed.
    pub(crate) fn done(&mut self, count: usize) {
        self.queued -= self.queue.drain(..count).map(|p| p.len()).sum::<u64>();
    }

    /// The data log of a portion.
    pub(crate) fn data(&self, portion: &Portion) -> &Arc<dyn File> {
        &self.logs[portion.log].source.data
    }

    /// Notes that a portion's payload is not what was written.
    pub(crate) fn is_damaged(&self, target: Target<'_>, portion: &Portion) -> Unusable {
        let name = target.variable(portion.var).map_or("", |v| &*v.name);
        let (at, end) = (portion.place + portion.from, portion.place + portion.to);
        let what = format!(
            "bytes {at} to {end} of the data log, for variable {name:?}, do not match their checksum"
        );
        Unusable { rank: self.logs[portion.log].source.rank, what }
    }

    /// Looks at everything without replaying it.
    pub(crate) fn drain(
        &mut self,
        target: Target<'_>,
        mut each: impl FnMut(&Portion),
    ) -> Result<()> {
        while self.select(target, 1 << 20)? > 0 {
            self.queue.iter().for_each(&mut each);
            self.done(self.queue.len());
        }
        Ok(())
    }

    /// Bytes of all payloads.
    pub(crate) fn payload(&self) -> u64 {
        self.logs.iter().map(|log| log.data_len).sum()
    }

    /// Queues the next entry; false if there is none.
    fn read_entry(&mut self, target: Target<'_>, most: u64) -> Result<bool> {
        let mut first: Option<(u64, u32, usize)> = None;
        for number in 0..self.logs.len() {
            self.settle(number)?;
            let log = &self.logs[number];
            if let Some(entry) = log.frames.front().and_then(|f| f.entries.get(log.next)) {
                let key = (entry.write.epoch, log.source.rank, number);
                first = Some(first.map_or(key, |least| least.min(key)));
            }
        }
        let Some((_, _, number)) = first else { return Ok(false) };
        let log = &mut self.logs[number];
        // Nobody else has anything earlier, so that this log goes on while its epoch lasts.
        let Some(frame) = log.frames.pop_front() else { return Ok(false) };
        let epoch = frame.entries.get(log.next).map(|e| e.write.epoch);
        while let Some(entry) = frame.entries.get(log.next) {
            if Some(entry.write.epoch) != epoch || self.queued >= most {
                break;
            }
            log.next += 1;
            self.entries += 1;
            let Some(footprint) = log.footprint(entry.footprint, frame.data_end)? else {
                self.unusable.push(log.unusable(target, entry, "its footprint is lost"));
                continue;
            };
            let (queue, queued) = (&mut self.queue, &mut self.queued);
            let one = (number, &frame, entry);
            let replayed = portions(target, &self.pass, one, &footprint, most, |portion| {
                *queued += portion.len();
                queue.push_back(portion);
            });
            if let Err(why) = replayed {
                self.unusable.push(log.unusable(target, entry, why));
            }
        }
        log.frames.push_front(frame);
        Ok(true)
    }

    /// Brings an entry that has not been replayed to the front of the log, if there is one.
    fn settle(&mut self, number: usize) -> Result<()> {
        let log = &mut self.logs[number];
        loop {
            match log.frames.front() {
                Some(frame) => {
                    let is_new = |epoch: u64| self.applied.is_none_or(|applied| epoch > applied);
                    let rest = frame.entries.get(log.next..).unwrap_or(&[]);
                    if let Some(skip) = rest.iter().position(|e| is_new(e.write.epoch)) {
                        log.next += skip;
                        return Ok(());
                    }
                    log.frames.pop_front();
                    log.next = 0;
                }
                None if log.at_end => {
                    self.unusable.append(&mut log.damages);
                    return Ok(());
                }
                None => log.read_on()?,
            }
        }
    }
}

impl OneLog {
    fn read_on(&mut self) -> Result<()> {
        let (found, all) = self.source.section(self.meta_len, self.data_len)?;
        self.at_end = all;
        for frame in found {
            match frame {
                Ok(frame) => {
                    if let FrameKind::Applied { .. } = frame.kind {
                        // Whatever was damaged before it is in the file.
                        self.damages.clear();
                    }
                    let definitions = frame.footprints.iter();
                    self.places.extend(definitions.map(|d| (d.number, d.place.clone())));
                    self.frames.push_back(frame);
                }
                Err(damage) => {
                    let (rank, what) = (self.source.rank, damage.to_string());
                    self.damages.push(Unusable { rank, what });
                }
            }
        }
        Ok(())
    }

    fn footprint(&mut self, number: u64, most: u64) -> Result<Option<Arc<Footprint>>> {
        if let Some(footprint) = self.footprints.get(&number) {
            return Ok(Some(footprint.clone()));
        }
        let Some(place) = self.places.get(&number) else { return Ok(None) };
        let Some(footprint) = definition(&self.source, place.clone(), most)? else {
            return Ok(None);
        };
        let (memory, footprint) = (footprint.memory() as u64, Arc::new(footprint));
        self.footprints.put(number, footprint.clone(), memory, self.budget);
        Ok(Some(footprint))
    }

    fn unusable(
        &self,
        target: Target<'_>,
        entry: &esker_format::log::Entry,
        why: &str,
    ) -> Unusable {
        let var = usize::try_from(entry.write.var).unwrap_or(usize::MAX);
        let variable = target.variable(esker_format::VarId(var));
        let name = variable.map_or_else(|| format!("number {var}"), |v| format!("{:?}", v.name));
        let what = format!(
            "the entry of variable {name} whose {} bytes are at byte {} of the data log cannot be \
             used: {why}",
            entry.len, entry.place
        );
        Unusable { rank: self.source.rank, what }
    }
}
