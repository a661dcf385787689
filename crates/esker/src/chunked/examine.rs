//! Looking at everything that a file's chunked variables are made of.

use std::collections::HashMap;
use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use esker_format::VarId;
use esker_format::chunked::{ALIGN, Block, Entry, Seal};

use super::files::is_absent;
use super::tables::{HeapFile, Known, Trouble, lost};
use super::{Chunked, ChunkedVar, too_large};
use crate::dataset::Dataset;
use crate::error::{Error, Result};
use crate::ground::Ground;

/// What is wrong with something that a chunked variable is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ChunkFaultKind {
    /// The attributes of the scalar that stands for it.
    Anchor,
    /// A block of its table, or an entry of one.
    Table,
    /// A chunk or a block that lies where none can.
    Place,
    /// Two things that lie in the same bytes.
    Overlap,
    /// Bytes of a chunk, which do not match their checksum or cannot be decoded.
    Data,
}

/// Something that is wrong with a chunked variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChunkFault {
    /// What kind of thing.
    pub kind: ChunkFaultKind,
    /// The variable.
    pub var: String,
    /// The chunk's index in each dimension, when it is one chunk.
    pub chunk: Option<Vec<u64>>,
    /// The file that it is in, as [`Dataset::chunk_file`] counts.
    pub file: u32,
    /// The byte of the file.
    pub offset: Option<u64>,
    /// What is wrong, as a clause.
    pub what: String,
}

impl fmt::Display for ChunkFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "variable {:?}: {}", self.var, self.what)
    }
}

/// A block of a chunk table in its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TableBlock {
    /// Where it begins.
    pub offset: u64,
    /// Its bytes.
    pub bytes: u64,
    /// The number of the first chunk that it has an entry for.
    pub first: u64,
    /// Chunks that it has entries for.
    pub entries: u64,
}

/// A chunk or a block, in the heap.
struct Occupied {
    var: VarId,
    file: u32,
    place: u64,
    end: u64,
    /// The chunk's number and entry; `None` for a block.
    chunk: Option<(u64, Entry)>,
}

struct Examination<'d> {
    ground: &'d Ground,
    chunked: &'d Chunked,
    heap: HeapFile<'d>,
    /// Where the heap ends, from its beginning.
    end: u64,
    faults: Vec<ChunkFault>,
    pieces: Vec<Occupied>,
    /// Of data files, as far as they are known.
    lengths: HashMap<u32, u64>,
}

/// Bytes of a table that are read at once.
const AT_ONCE: u64 = 1 << 20;

impl Dataset {
    /// The bytes of the file that chunks and their tables lie in, if it has chunked variables; in the
    /// sub-filed form, those of the file of tables.
    pub fn heap(&self) -> Result<Option<Range<u64>>> {
        let Some(chunked) = self.layout.get::<Chunked>() else { return Ok(None) };
        let begin = chunked.heap.begin;
        let file_end = chunked.tables_file(&self.ground)?.len()?.max(begin);
        let end = chunked.heap.limit.map_or(file_end, |limit| begin.saturating_add(limit));
        Ok(Some(begin..end.min(file_end)))
    }

    /// The blocks of a chunked variable's table, in the order of their chunks. Independent.
    pub fn table_blocks(&self, var: VarId) -> Result<Vec<TableBlock>> {
        let id = self.file_var(var)?;
        let Some(chunked) = self.layout.get::<Chunked>() else { return Ok(Vec::new()) };
        let Some(found) = chunked.found(&self.ground, id)? else { return Ok(Vec::new()) };
        let tables = chunked.tables_of(&self.ground, id)?;
        let heap = chunked.heap_in(&*tables);
        let (blocks, trouble) = found.blocks(heap, self.ground.records);
        let block = |known: &Known| TableBlock {
            offset: heap.begin.saturating_add(known.at),
            bytes: Block::bytes(known.block.count),
            first: known.block.first,
            entries: known.block.count,
        };
        match trouble {
            Some((_, trouble)) => Err(self.ground.trouble(id, trouble)),
            None => Ok(blocks.iter().map(block).collect()),
        }
    }

    /// Looks at every anchor, table block and entry of the file's chunked variables, reads every
    /// chunk, compares it with its checksum and decodes it. `progress` hears of bytes. Independent.
    ///
    /// An error means that the file could not be read; what is wrong with it is in the list.
    pub fn examine_chunks(&self, progress: &mut dyn FnMut(u64, u64)) -> Result<Vec<ChunkFault>> {
        let Some(chunked) = self.layout.get::<Chunked>() else { return Ok(Vec::new()) };
        let tables = match chunked.tables_file(&self.ground) {
            Ok(tables) => tables,
            Err(error) if is_damage(&error) => {
                return Ok(without_tables(&self.ground, chunked, &error));
            }
            Err(error) => return Err(error),
        };
        let Some(heap) = self.heap()? else { return Ok(Vec::new()) };
        let mut look = Examination {
            ground: &self.ground,
            chunked,
            heap: chunked.heap_in(&*tables),
            end: heap.end - heap.start,
            faults: Vec::new(),
            pieces: Vec::new(),
            lengths: HashMap::new(),
        };
        for (number, var) in chunked.vars.iter().enumerate() {
            match var {
                None => {}
                Some(Err(why)) => {
                    look.add(ChunkFaultKind::Anchor, VarId(number), None, (0, None), why.clone());
                }
                Some(Ok(found)) => {
                    match too_large(&found.chunking, self.ground.base.hints.chunk_max) {
                        Some(why) => {
                            look.add(ChunkFaultKind::Anchor, VarId(number), None, (0, None), why);
                        }
                        None => look.tables(VarId(number), found)?,
                    }
                }
            }
        }
        look.overlaps();
        look.decode(progress)?;
        Ok(look.faults)
    }
}

/// What is wrong with every chunked variable when the file of their tables is not there.
fn without_tables(ground: &Ground, chunked: &Chunked, error: &Error) -> Vec<ChunkFault> {
    let fault = |(id, _): (VarId, &ChunkedVar)| ChunkFault {
        kind: ChunkFaultKind::Table,
        var: ground.name(id),
        chunk: None,
        file: 0,
        offset: None,
        what: format!("its chunk table cannot be read: {error}"),
    };
    chunked.sound().map(fault).collect()
}

/// Whether a file is missing, or is another one, and not that the system refused.
fn is_damage(error: &Error) -> bool {
    match error {
        Error::Container { .. } => true,
        Error::Store(error) => is_absent(error),
        _ => false,
    }
}

impl ChunkedVar {
    /// The blocks of the table as far as chunks of so many records are; what stopped the search, and
    /// where in the heap, if something did.
    fn blocks(&self, heap: HeapFile<'_>, records: u64) -> (Vec<Known>, Option<(u64, Trouble)>) {
        let mut chain = self.chain.lock().unwrap_or_else(PoisonError::into_inner).clone();
        // A variable without records has its one block even if it has no chunks.
        let last = self.grid().chunks(records).saturating_sub(1);
        let trouble = chain.reach(heap, last).err();
        let begin = chain.first().unwrap_or(self.anchor.refs);
        let next = chain.blocks().last().map_or(begin, |known| known.block.next);
        (chain.blocks().to_vec(), trouble.map(|trouble| (next, trouble)))
    }
}

impl Examination<'_> {
    fn add(
        &mut self,
        kind: ChunkFaultKind,
        var: VarId,
        chunk: Option<u64>,
        (file, place): (u32, Option<u64>),
        what: String,
    ) {
        let name = self.ground.name(var);
        let chunk = chunk.and_then(|number| match self.chunked.var(var) {
            Some(Ok(found)) => Some(found.grid().index(number)),
            _ => None,
        });
        let offset = place.map(|place| self.byte(file, place));
        self.faults.push(ChunkFault { kind, var: name, chunk, file, offset, what });
    }

    /// Where a place is in its file.
    fn byte(&self, file: u32, place: u64) -> u64 {
        if file == 0 { self.heap.begin.saturating_add(place) } else { place }
    }

    /// The table of a variable: its blocks and their entries.
    fn tables(&mut self, var: VarId, found: &ChunkedVar) -> Result<()> {
        let records = self.ground.records;
        if let Err(Error::Chunked { why, .. }) =
            self.chunked.require_begun(self.ground, (var, found), records, false)
        {
            self.add(ChunkFaultKind::Anchor, var, None, (0, None), why);
        }
        let (blocks, trouble) = found.blocks(self.heap, records);
        match trouble {
            None => {}
            Some((_, trouble @ Trouble::Store(_))) => {
                return Err(self.ground.trouble(var, trouble));
            }
            Some((at, Trouble::Damage(what))) => {
                self.add(ChunkFaultKind::Table, var, None, (0, Some(at)), what);
            }
        }
        let (chunks, seal) = (found.grid().chunks(records), found.chain().seal());
        let (place, len) = found.chain().head();
        let end = place.saturating_add(len);
        self.pieces.push(Occupied { var, file: 0, place, end, chunk: None });
        for known in &blocks {
            let end = known.at.saturating_add(Block::bytes(known.block.count));
            let place = (0, known.at, end);
            if self.lies_wrong(var, None, place, self.end, "a block of its chunk table") {
                continue;
            }
            self.pieces.push(Occupied { var, file: 0, place: known.at, end, chunk: None });
            self.entries(var, (known, seal), chunks)?;
        }
        Ok(())
    }

    /// Whether something is not where things of a heap are; says so.
    fn lies_wrong(
        &mut self,
        var: VarId,
        chunk: Option<u64>,
        (file, place, end): (u32, u64, u64),
        limit: u64,
        thing: &str,
    ) -> bool {
        let at = self.byte(file, place);
        let what = if !place.is_multiple_of(ALIGN) {
            format!("{thing} is said to be at byte {at}, where none can begin")
        } else if end > limit {
            let (bytes, heap_end) = (end - place, self.byte(file, limit));
            format!(
                "{thing} is said to be at byte {at}, {bytes} bytes, beyond the end of the part of \
                 the file that chunks lie in, {heap_end}"
            )
        } else {
            return false;
        };
        self.add(ChunkFaultKind::Place, var, chunk, (file, Some(place)), what);
        true
    }

    fn entries(&mut self, var: VarId, (known, seal): (&Known, Seal), chunks: u64) -> Result<()> {
        let mut number = known.block.first;
        let last = known.block.first + known.block.count;
        let mut bytes = Vec::new();
        while number < last {
            let count = (last - number).min(AT_ONCE / Entry::LEN);
            let at = known.at + Block::LEN + (number - known.block.first) * Entry::LEN;
            bytes.resize((count * Entry::LEN) as usize, 0);
            match self.heap.read(at, &mut bytes, "its chunk table") {
                Ok(()) => {}
                Err(trouble @ Trouble::Store(_)) => return Err(self.ground.trouble(var, trouble)),
                Err(Trouble::Damage(what)) => {
                    self.add(ChunkFaultKind::Table, var, None, (0, Some(at)), what);
                    return Ok(());
                }
            }
            for (i, entry) in bytes.as_chunks::<{ Entry::LEN as usize }>().0.iter().enumerate() {
                let (chunk, at) = (number + i as u64, at + i as u64 * Entry::LEN);
                match Entry::decode(entry, seal, chunk) {
                    Ok(None) => {}
                    // Chunks of records that were never counted mean nothing yet.
                    Ok(Some(_)) if chunk >= chunks => {}
                    Ok(Some(entry)) => self.entry(var, chunk, at, entry)?,
                    Err(why) => {
                        let what = lost(self.heap, chunk, at, why);
                        self.add(ChunkFaultKind::Table, var, Some(chunk), (0, Some(at)), what);
                    }
                }
            }
            number += count;
        }
        Ok(())
    }

    fn entry(&mut self, var: VarId, chunk: u64, at: u64, entry: Entry) -> Result<()> {
        let file = entry.file;
        let thing = format!("chunk {chunk}");
        let known = self.lengths.get(&file).copied();
        let limit = match (file, self.heap.others, known) {
            (0, None, _) => Ok(self.end),
            (1.., Some(_), Some(len)) => Ok(len),
            (1.., Some(others), None) => others.data_len(file, &thing),
            _ => {
                let what = format!("{thing} is said to be in file {file}, which is not here");
                Err(Trouble::Damage(what))
            }
        };
        let limit = match limit {
            Ok(limit) => limit,
            Err(Trouble::Damage(what)) => {
                self.add(ChunkFaultKind::Place, var, Some(chunk), (0, Some(at)), what);
                return Ok(());
            }
            Err(trouble) => return Err(self.ground.trouble(var, trouble)),
        };
        self.lengths.insert(file, limit);
        let end = entry.place.saturating_add(entry.size);
        if !self.lies_wrong(var, Some(chunk), (file, entry.place, end), limit, &thing) {
            let chunk = Some((chunk, entry));
            self.pieces.push(Occupied { var, file, place: entry.place, end, chunk });
        }
        Ok(())
    }

    /// Things that lie in the same bytes.
    fn overlaps(&mut self) {
        self.pieces.sort_by_key(|piece| (piece.file, piece.place, piece.end));
        let name = |piece: &Occupied| {
            let schema = &self.ground.header.schema;
            let var = schema.variable(piece.var).map_or("", |v| &*v.name);
            match piece.chunk {
                Some((chunk, _)) => format!("chunk {chunk} of variable {var:?}"),
                None => format!("the chunk table of variable {var:?}"),
            }
        };
        let mut found = Vec::new();
        let mut pieces = self.pieces.iter();
        let Some(mut before) = pieces.next() else { return };
        for piece in pieces {
            if piece.file != before.file {
                before = piece;
                continue;
            }
            if piece.place < before.end {
                let thing = match piece.chunk {
                    Some((chunk, _)) => format!("chunk {chunk}"),
                    None => "a block of its chunk table".to_string(),
                };
                let what = format!(
                    "{thing} begins at byte {}, inside {} (bytes {} to {})",
                    self.byte(piece.file, piece.place),
                    name(before),
                    self.byte(before.file, before.place),
                    self.byte(before.file, before.end)
                );
                let place = (piece.file, Some(piece.place));
                found.push((piece.var, piece.chunk.map(|(n, _)| n), place, what));
            }
            // A long one may reach over several others.
            if piece.end > before.end {
                before = piece;
            }
        }
        for (var, chunk, place, what) in found {
            self.add(ChunkFaultKind::Overlap, var, chunk, place, what);
        }
    }

    /// Reads and decodes every chunk, on all cores.
    fn decode(&mut self, progress: &mut dyn FnMut(u64, u64)) -> Result<()> {
        let chunks: Vec<(VarId, u64, Entry)> =
            self.pieces.iter().filter_map(|p| p.chunk.map(|(n, e)| (p.var, n, e))).collect();
        let total = chunks.iter().map(|(_, _, entry)| entry.size).fold(0, u64::saturating_add);
        let (next, done, stop) = (AtomicUsize::new(0), AtomicU64::new(0), AtomicBool::new(false));
        let failed: Mutex<Vec<(usize, Trouble)>> = Mutex::default();
        let (heap, chunked) = (self.heap, self.chunked);
        let work = |tell: &mut dyn FnMut(u64)| {
            let (mut stored, mut values) = (Vec::new(), Vec::new());
            let mut scratch = chunked.take_scratch();
            while !stop.load(Ordering::Relaxed) {
                let n = next.fetch_add(1, Ordering::Relaxed);
                let Some((var, number, entry)) = chunks.get(n) else { break };
                let Some(Ok(found)) = chunked.var(*var) else { continue };
                let memory = (&mut stored, &mut scratch);
                if let Err(trouble) = found.decode(heap, *number, entry, &mut values, memory) {
                    stop.fetch_or(matches!(trouble, Trouble::Store(_)), Ordering::Relaxed);
                    failed.lock().unwrap_or_else(PoisonError::into_inner).push((n, trouble));
                }
                tell(done.fetch_add(entry.size, Ordering::Relaxed) + entry.size);
            }
            chunked.give_scratch(scratch);
        };
        std::thread::scope(|scope| {
            let others = self.ground.chunk_threads().min(chunks.len());
            (1..others).for_each(|_| drop(scope.spawn(|| work(&mut |_| ()))));
            work(&mut |done| progress(done, total));
        });
        let mut failed = failed.into_inner().unwrap_or_else(PoisonError::into_inner);
        failed.sort_by_key(|(n, _)| *n);
        for (n, trouble) in failed {
            let (var, number, entry) = chunks[n];
            match trouble {
                Trouble::Store(_) => return Err(self.ground.trouble(var, trouble)),
                Trouble::Damage(what) => {
                    let place = (entry.file, Some(entry.place));
                    self.add(ChunkFaultKind::Data, var, Some(number), place, what);
                }
            }
        }
        Ok(())
    }
}
