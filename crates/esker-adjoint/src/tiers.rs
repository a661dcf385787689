//! Checkpoints in memory and on disk, as encoded bytes.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::sync::Arc;

use esker_store::CreateMode;

use crate::arena::Arena;
use crate::error::{AdjointError, Result};
use crate::folder::{Folder, read_segment, write_segment};
use crate::journal::{Event, Record};
use crate::lane::{Lane, Promise};
use crate::names::segment_path;
use crate::schedule::Place;
use crate::segment::{Kind, Title};
use crate::stopwatch::Stopwatch;
use crate::times::Transfers;

/// Bytes that take no longer than none.
const FEW: usize = 4096;

/// Which checkpoint.
pub(crate) type Key = (u64, Kind);

#[derive(Debug)]
struct OnDisk {
    number: u64,
    bytes: u64,
}

/// A segment that is being written. Its bytes stay until it is known to be whole.
#[derive(Debug)]
struct Writing {
    key: Key,
    record: Record,
    bytes: Arc<Vec<u8>>,
    done: Promise<(Result<()>, f64)>,
}

/// A segment that is being read before it is asked for.
#[derive(Debug)]
struct Reading {
    number: u64,
    done: Promise<Result<Vec<u8>>>,
}

/// Both tiers of one rank.
#[derive(Debug)]
pub(crate) struct Tiers {
    pub(crate) folder: Option<Folder>,
    pub(crate) limits: [u64; 2],
    /// Whose buffers the checkpoints in memory are.
    pub(crate) arena: Arena,
    memory: BTreeMap<Key, Arc<Vec<u8>>>,
    disk: BTreeMap<Key, OnDisk>,
    /// Checkpoints that did not reach the disk and stay in memory until they are given up everywhere.
    stranded: BTreeMap<Key, Arc<Vec<u8>>>,
    writing: Option<Writing>,
    reading: Option<Reading>,
    lane: Lane,
    pub(crate) writes: Transfers,
    pub(crate) reads: Transfers,
    pub(crate) peak: [u64; 2],
    /// Bytes written to disk and read.
    pub(crate) moved: [u64; 2],
    pub(crate) notes: Vec<String>,
    pub(crate) disk_is_full: bool,
    /// Whether it has become so since somebody asked.
    newly_full: bool,
}

fn is_full(error: &AdjointError) -> bool {
    let full = [ErrorKind::StorageFull, ErrorKind::QuotaExceeded, ErrorKind::FileTooLarge];
    matches!(error, AdjointError::Store(error) if full.contains(&error.source.kind()))
}

impl Tiers {
    /// Both tiers, of so many bytes each. What goes to disk is written beside the model, or while it waits.
    pub(crate) fn new(folder: Option<Folder>, limits: [u64; 2], beside: bool) -> Tiers {
        Tiers {
            folder,
            limits,
            arena: Arena::new(limits[0]),
            memory: BTreeMap::new(),
            disk: BTreeMap::new(),
            stranded: BTreeMap::new(),
            writing: None,
            reading: None,
            lane: Lane::start("esker checkpoints", beside),
            writes: Transfers::default(),
            reads: Transfers::default(),
            peak: [0; 2],
            moved: [0; 2],
            notes: Vec::new(),
            disk_is_full: false,
            newly_full: false,
        }
    }

    /// A checkpoint that a run before this one left.
    pub(crate) fn adopt(&mut self, record: &Record) {
        let on_disk = OnDisk { number: record.number, bytes: record.bytes };
        self.disk.insert((record.step, record.kind), on_disk);
    }

    pub(crate) fn used(&self) -> [u64; 2] {
        let memory = self.memory.values().map(|bytes| bytes.len() as u64).sum();
        [memory, self.disk.values().map(|segment| segment.bytes).sum()]
    }

    pub(crate) fn place_of(&self, key: &Key) -> Option<Place> {
        if self.memory.contains_key(key) || self.stranded.contains_key(key) {
            return Some(Place::Memory);
        }
        self.disk.contains_key(key).then_some(Place::Disk)
    }

    /// Restart data below a step, newest first.
    pub(crate) fn below(&self, step: u64) -> Vec<Key> {
        let all = self.memory.keys().chain(self.disk.keys()).chain(self.stranded.keys());
        let mut found: Vec<Key> =
            all.filter(|key| key.0 < step && key.1 == Kind::Restart).copied().collect();
        found.sort_unstable();
        found.dedup();
        found.reverse();
        found
    }

    /// Keeps a checkpoint. To disk it is written beside the model.
    pub(crate) fn keep(
        &mut self,
        key: Key,
        place: Place,
        bytes: Vec<u8>,
        sync: bool,
    ) -> Result<()> {
        match place {
            Place::Memory => self.keep_in_memory(key, bytes),
            Place::Disk => {
                self.settle()?;
                let Some(folder) = &mut self.folder else {
                    return Err(AdjointError::NotKept { step: key.0, place });
                };
                let number = folder.number();
                let path = segment_path(&folder.path, folder.rank, number);
                let (store, bytes) = (folder.store.clone(), Arc::new(bytes));
                let length = bytes.len() as u64;
                let record = Record { step: key.0, kind: key.1, number, bytes: length };
                let data = bytes.clone();
                let done = self.lane.submit(move |_| {
                    let watch = Stopwatch::start(None);
                    (write_segment(&*store, &path, &data, sync), watch.seconds())
                });
                self.writing = Some(Writing { key, record, bytes, done });
                self.disk.insert(key, OnDisk { number, bytes: length });
                if !self.lane.is_beside() {
                    self.settle()?;
                }
            }
            Place::Work | Place::Nowhere => {}
        }
        let used = self.used();
        for (peak, used) in self.peak.iter_mut().zip(used) {
            *peak = (*peak).max(used);
        }
        Ok(())
    }

    fn keep_in_memory(&mut self, key: Key, mut bytes: Vec<u8>) {
        self.arena.keep(&mut bytes);
        if let Some(old) = self.memory.insert(key, Arc::new(bytes)) {
            self.free(old);
        }
        for buffer in self.memory.values_mut().filter_map(Arc::get_mut) {
            if self.arena.excess() == 0 {
                break;
            }
            let before = buffer.capacity();
            buffer.shrink_to_fit();
            self.arena.shortened((before - buffer.capacity()) as u64);
        }
    }

    /// The buffer of a checkpoint in memory that is given up.
    fn free(&mut self, buffer: Arc<Vec<u8>>) {
        match Arc::try_unwrap(buffer) {
            Ok(buffer) => self.arena.give_up(buffer),
            // Somebody still reads it, and frees it then.
            Err(shared) => self.arena.shortened(shared.capacity() as u64),
        }
    }

    /// Waits until what is being written is whole, and says so in the journal.
    pub(crate) fn settle(&mut self) -> Result<()> {
        let Some(Writing { key, record, bytes, done }) = self.writing.take() else { return Ok(()) };
        let gone = || AdjointError::Model { call: "a thread".into(), message: "it ended".into() };
        let (outcome, time) = done.wait().ok_or_else(gone)?;
        let outcome = outcome.and_then(|()| match &mut self.folder {
            Some(folder) => folder.log(Event::Stored(record)),
            None => Ok(()),
        });
        match outcome {
            Ok(()) => {
                self.writes.add(record.bytes, time);
                self.moved[0] += record.bytes;
                self.give_back(bytes);
                Ok(())
            }
            Err(error) if is_full(&error) => {
                self.notes.push(format!(
                    "the disk is full ({error}): the checkpoint of step {} is not kept there, and no more than {} bytes will be",
                    key.0,
                    self.used()[1].saturating_sub(record.bytes),
                ));
                self.disk.remove(&key);
                self.stranded.insert(key, bytes);
                (self.disk_is_full, self.newly_full) = (true, true);
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// Measures the disk before anything is kept there: a few bytes, then more of them, into a segment that is given up. What
    /// goes wrong will go wrong again where it is told.
    pub(crate) fn measure_disk(&mut self, bytes: &[u8]) {
        let Some(folder) = &mut self.folder else { return };
        let number = folder.number();
        let path = segment_path(&folder.path, folder.rank, number);
        let few = bytes.len().min(FEW);
        let measured = || -> Result<[f64; 2]> {
            let watch = Stopwatch::start(None);
            let file = folder.store.create(&path, CreateMode::New)?;
            file.write_at(0, &bytes[..few])?;
            let first = watch.seconds();
            let watch = Stopwatch::start(None);
            file.write_at(few as u64, &bytes[few..])?;
            Ok([first, watch.seconds()])
        };
        if let Ok([first, second]) = measured() {
            // The second is nothing but bytes.
            let rest = bytes.len() - few;
            self.writes.add(rest as u64, second);
            self.writes.fixed = (first - second * few as f64 / rest.max(1) as f64).max(0.0);
        }
        // A file that nobody knows is removed when a run is resumed.
        let _ = folder.store.remove(&path);
    }

    /// Whether the disk has become full, told once.
    pub(crate) fn has_become_full(&mut self) -> bool {
        std::mem::take(&mut self.newly_full)
    }

    /// A checkpoint that is in memory only because the disk did not take it.
    pub(crate) fn stranded(&self) -> Option<Key> {
        self.stranded.keys().next().copied()
    }

    /// Moves a checkpoint that the disk did not take to memory, or from the disk of the other ranks.
    pub(crate) fn rescue(&mut self, key: &Key) -> Result<()> {
        let bytes = self.load(key)?;
        self.drop_key(key)?;
        let bytes = Arc::try_unwrap(bytes).unwrap_or_else(|shared| shared.to_vec());
        self.keep(*key, Place::Memory, bytes, false)
    }

    /// The bytes of a checkpoint.
    pub(crate) fn load(&mut self, key: &Key) -> Result<Arc<Vec<u8>>> {
        if let Some(bytes) = self.memory.get(key).or_else(|| self.stranded.get(key)) {
            return Ok(bytes.clone());
        }
        if let Some(writing) = self.writing.as_ref().filter(|writing| writing.key == *key) {
            return Ok(writing.bytes.clone());
        }
        let place = Place::Disk;
        let (Some(segment), Some(folder)) = (self.disk.get(key), &self.folder) else {
            return Err(AdjointError::NotKept { step: key.0, place });
        };
        let watch = Stopwatch::start(None);
        let read_ahead = self.reading.take().filter(|reading| reading.number == segment.number);
        let found = match read_ahead.and_then(|reading| reading.done.wait()) {
            Some(found) => found,
            None => {
                let path = segment_path(&folder.path, folder.rank, segment.number);
                let buffer = self.arena.take(segment.bytes as usize);
                let found = read_segment(&*folder.store, &path, segment.bytes, buffer);
                self.reads.add(segment.bytes, watch.seconds());
                found
            }
        };
        let damaged = |why: String| AdjointError::Damaged { step: key.0, place, array: None, why };
        self.moved[1] += segment.bytes;
        let bytes = found.map_err(|error| damaged(error.to_string()))?;
        Ok(Arc::new(bytes))
    }

    /// What [`Tiers::load`] gave is of no more use: the memory of what came from disk is used again.
    pub(crate) fn give_back(&mut self, bytes: Arc<Vec<u8>>) {
        Arc::try_unwrap(bytes).into_iter().for_each(|bytes| self.arena.give_back(bytes));
    }

    /// Begins to read the newest checkpoint below a step, which is what will be asked for next.
    pub(crate) fn read_ahead(&mut self, step: u64) {
        if !self.lane.is_beside() {
            return;
        }
        let newest = self.disk.range(..(step, Kind::Restart)).next_back();
        let in_memory = self.memory.range(..(step, Kind::Restart)).next_back();
        let Some((key, segment)) = newest.filter(|(key, _)| in_memory.is_none_or(|m| m.0 < *key))
        else {
            return;
        };
        let writing = self.writing.as_ref().is_some_and(|writing| writing.key == *key);
        let reading = self.reading.as_ref().is_some_and(|reading| reading.number == segment.number);
        let Some(folder) = self.folder.as_ref().filter(|_| !writing && !reading) else { return };
        let path = segment_path(&folder.path, folder.rank, segment.number);
        let (store, number, bytes) = (folder.store.clone(), segment.number, segment.bytes);
        let buffer = self.arena.take(bytes as usize);
        let done = self.lane.submit(move |_| read_segment(&*store, &path, bytes, buffer));
        self.reading = Some(Reading { number, done });
    }

    /// Gives a checkpoint up.
    pub(crate) fn drop_key(&mut self, key: &Key) -> Result<()> {
        if let Some(buffer) = self.memory.remove(key) {
            self.free(buffer);
        }
        self.stranded.remove(key);
        if self.disk.contains_key(key) {
            if self.writing.as_ref().is_some_and(|writing| writing.key == *key) {
                self.settle()?;
                self.stranded.remove(key);
            }
            if let (Some(segment), Some(folder)) = (self.disk.remove(key), &mut self.folder) {
                folder.drop_segment(segment.number)?;
            }
        }
        Ok(())
    }

    /// All keys, for the end of a run.
    pub(crate) fn keys(&self) -> Vec<Key> {
        self.memory.keys().chain(self.disk.keys()).chain(self.stranded.keys()).copied().collect()
    }

    /// The title that a segment of this rank must have.
    pub(crate) fn title(&self, key: &Key) -> Title {
        let (identity, rank) = self.folder.as_ref().map_or((0, 0), |f| (f.identity, f.rank));
        Title { identity, rank, kind: key.1, step: key.0 }
    }
}
