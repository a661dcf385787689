//! Tables: what was written becomes what is read.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::PoisonError;

use esker_comm::{CommunicatorExt, Message, ReduceOp, Reduction};
use esker_format::VarId;
use esker_format::chunked::{Block, Entry, Seal, TableHead, put_records};

use super::define::NewTable;
use super::heap::{Heap, holes_between, room_for};
use super::tables::{Chain, HeapFile, Known, Trouble};
use super::write::Placed;
use super::{ChunkId, Chunked, ChunkedVar};
use crate::base::broadcast_parts;
use crate::error::{Error, Result};
use crate::ground::Ground;
use crate::hints::Rewrite;

/// Holes that ranks are told of, at most.
const HOLES: usize = 16 * 1024;

impl ChunkedVar {
    pub(super) fn chain(&self) -> std::sync::MutexGuard<'_, Chain> {
        self.chain.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Chunked {
    /// So many records of a variable were written.
    pub(super) fn note_records(&mut self, var: VarId, records: u64) {
        if let Some(Some(Ok(found))) = self.vars.get_mut(var.0)
            && records > found.anchor.records
        {
            found.anchor.records = records;
            self.grown = true;
        }
    }
}

impl Chunked {
    /// Finds out where the heap ends and what is free in it. Collective.
    pub(crate) fn know_heap(&mut self, ground: &mut Ground) -> Result<()> {
        if self.heap.end.is_some() {
            return Ok(());
        }
        self.claim_writing(ground)?;
        let found = ground.base.by_root(|| self.look_for_holes(ground))?;
        let parts: Vec<Vec<u8>> = match found {
            Some(numbers) => {
                let bytes = Message::from_u64s(&numbers);
                broadcast_parts(&*ground.base.comm, &[&bytes])?
            }
            None => broadcast_parts(&*ground.base.comm, &[])?,
        };
        let numbers = parts.into_iter().next().map(|bytes| Message::from(bytes).to_u64s());
        let (rank, ranks) = (ground.base.comm.rank(), ground.base.comm.size());
        let numbers = numbers.ok_or(Error::Garbled)?;
        let (end, holes) = numbers.split_first().ok_or(Error::Garbled)?;
        self.heap.end = Some(*end);
        // Between tables there is no room for chunks.
        let holes = if self.files.is_some() { &[] } else { holes };
        // Each rank has holes of its own, so that using them needs no message.
        for [place, len] in holes.as_chunks::<2>().0.iter().skip(rank).step_by(ranks) {
            self.heap.add_hole(*place, *len);
        }
        Ok(())
    }

    /// The end of the heap, then places and lengths of holes.
    fn look_for_holes(&self, ground: &Ground) -> Result<Vec<u64>> {
        let tables = self.tables_file(ground)?;
        let heap = self.heap_in(&*tables);
        let len = tables.len()?.saturating_sub(heap.begin);
        let mut used: Vec<(u64, u64)> = Vec::new();
        // (After a loss of power the end may be told to be behind that of the file.)
        let variables = self.variables_in_heap(&ground.header);
        used.extend(variables.filter(|(at, room)| at + room <= room_for(len)));
        for (id, var) in self.sound() {
            let mut chain = var.chain();
            chain.reach(heap, u64::MAX).map_err(|t| ground.trouble(id, t))?;
            let (head, bytes) = chain.head();
            used.push((head, room_for(bytes)));
            for Known { block, at } in chain.blocks() {
                used.push((*at, room_for(Block::bytes(block.count))));
            }
            let exist = var.grid().chunks(ground.records).min(chain.covers());
            // A call that was killed, or failed, before the records were counted; or a disk that had not
            // written all of a new block when it lost its power.
            forget_behind(&chain, heap, exist).map_err(|t| ground.trouble(id, t))?;
            drop(chain);
            const AT_ONCE: u64 = 16 * 1024;
            let mut first = 0;
            while first < exist {
                let numbers: Vec<u64> = (first..exist.min(first + AT_ONCE)).collect();
                first += numbers.len() as u64;
                let entries = var.entries(heap, &numbers).map_err(|t| ground.trouble(id, t))?;
                for entry in entries.into_iter().flatten() {
                    let end = entry.place.checked_add(entry.size);
                    if entry.file == 0 && end.is_some_and(|end| end <= len) {
                        // (What a damaged table says to be behind the end of the file is nothing.)
                        used.push((entry.place, room_for(entry.size)));
                    }
                }
            }
        }
        let (mut holes, end) = holes_between(used);
        if holes.len() > HOLES {
            holes.sort_unstable_by_key(|(_, len)| std::cmp::Reverse(*len));
            holes.truncate(HOLES);
        }
        let list = holes.into_iter().flat_map(|(place, len)| [place, len]);
        Ok([end].into_iter().chain(list).collect())
    }

    /// Makes written chunks the variables' values. Collective.
    pub(super) fn commit_chunks(&mut self, ground: &Ground, placed: &[Placed]) -> Result<()> {
        let mut heap = std::mem::take(&mut self.heap);
        let outcome = self.write_tables(ground, &mut heap, placed);
        if outcome.is_ok() {
            for chunk in placed {
                // Of other files others know what is free.
                let own = |old: &Entry| old.file == chunk.entry.file;
                let moved = |old: &Entry| old.place != chunk.entry.place;
                let end = match self.files.as_ref().and_then(|files| files.own.as_ref()) {
                    Some(own) => own.end,
                    None => heap.end.unwrap_or(0),
                };
                // A damaged table may say anything.
                let there =
                    |old: &Entry| old.place.checked_add(old.size).is_some_and(|at| at <= end);
                let free = chunk.old.filter(|old| own(old) && moved(old) && there(old));
                if let Some(old) = free {
                    heap.free(old.place, old.size);
                }
            }
        }
        self.heap = heap;
        outcome
    }

    fn write_tables(&self, ground: &Ground, heap: &mut Heap, placed: &[Placed]) -> Result<()> {
        let tables = self.tables_file(ground)?;
        let file = HeapFile::new(&*tables, heap.begin);
        let mut list: Vec<(u64, [u8; Entry::LEN as usize])> = Vec::with_capacity(placed.len());
        let mut lost = None;
        for chunk in placed {
            let var = self.of_chunk(chunk.id)?;
            let chain = var.chain();
            match chain.place(chunk.id.number) {
                Some(at) => list.push((at, chunk.entry.encode(chain.seal(), chunk.id.number))),
                None => lost = Some(chunk.id),
            }
        }
        let written = match lost {
            Some(id) => {
                let why = format!("its chunk table has no place for chunk {}", id.number);
                Err(ground.chunk_error(id.var, why))
            }
            None => write_entries(file, list),
        };
        ground.base.agree(written)
    }

    /// Makes the tables as long as these chunks need. Collective. Gives how long a heap must be that
    /// has room for them, if this one has not.
    pub(super) fn lengthen_tables(
        &self,
        ground: &Ground,
        heap: &mut Heap,
        mut chunks: impl Iterator<Item = ChunkId>,
    ) -> Result<Option<u64>> {
        let comm = &*ground.base.comm;
        let tables = self.tables_file(ground)?;
        let file = HeapFile::new(&*tables, heap.begin);
        let mut missing: BTreeMap<usize, u64> = BTreeMap::new();
        let looked = chunks.try_for_each(|id| {
            let var = self.of_chunk(id)?;
            let mut chain = var.chain();
            chain.reach(file, id.number).map_err(|t| ground.trouble(id.var, t))?;
            if chain.covers() <= id.number {
                let most = missing.entry(id.var.0).or_default();
                *most = id.number.max(*most);
            }
            Ok(())
        });
        let [is_short] = ground.base.agree_with(looked, [u64::from(!missing.is_empty())])?;
        if is_short == 0 {
            return Ok(None);
        }
        let list: Vec<u64> = missing.iter().flat_map(|(var, most)| [*var as u64, *most]).collect();
        let gathered = comm.gather(0, Message::from_u64s(&list))?;
        let end = heap.end.unwrap_or(0);
        let added = ground.base.by_root(|| {
            let mut wanted: BTreeMap<u64, u64> = BTreeMap::new();
            for message in gathered.unwrap_or_default() {
                for [var, most] in message.to_u64s().as_chunks::<2>().0 {
                    let known = wanted.entry(*var).or_default();
                    *known = (*known).max(*most);
                }
            }
            self.plan_blocks(ground, file, end, &wanted)
        })?;
        let parts = match &added {
            Some(numbers) => broadcast_parts(comm, &[&Message::from_u64s(numbers)])?,
            None => broadcast_parts(comm, &[])?,
        };
        let numbers = parts.into_iter().next().map(|bytes| Message::from(bytes).to_u64s());
        let numbers = numbers.ok_or(Error::Garbled)?;
        let (end, blocks) = numbers.split_first().ok_or(Error::Garbled)?;
        if heap.limit.is_some_and(|limit| *end > limit) {
            return Ok(Some(*end));
        }
        // Theirs from now on: when the writing of one fails, another may be linked already.
        heap.end = Some(*end);
        let (blocks, _) = blocks.as_chunks::<4>();
        ground.base.by_root(|| self.add_blocks(ground, file, blocks))?;
        for [var, first, count, at] in blocks {
            let Some(Ok(var)) = self.var(VarId(*var as usize)) else { continue };
            let mut chain = var.chain();
            // Ranks that do not know the block before will read about both.
            if chain.covers() == *first && *first > 0 {
                let block = Block { first: *first, count: *count, next: 0 };
                chain.push(Known { block, at: *at });
            }
        }
        Ok(None)
    }

    /// Finds places for new blocks behind the tables of these variables, up to these chunks. Gives the
    /// end of the heap, then variable, first chunk, chunks and place of each block.
    fn plan_blocks(
        &self,
        ground: &Ground,
        file: HeapFile<'_>,
        mut end: u64,
        wanted: &BTreeMap<u64, u64>,
    ) -> Result<Vec<u64>> {
        let mut numbers = vec![0];
        for (number, most) in wanted {
            let id = VarId(*number as usize);
            let Some(Ok(var)) = self.var(id) else { return Err(Error::Garbled) };
            // A copy: the chain itself gets them when all of it went well.
            let mut chain = var.chain().clone();
            chain.reach(file, *most).map_err(|t| ground.trouble(id, t))?;
            while chain.covers() <= *most {
                let count = Block::entries(chain.blocks().len(), var.grid().per_group);
                let first = chain.covers();
                chain.push(Known { block: Block { first, count, next: 0 }, at: end });
                numbers.extend([*number, first, count, end]);
                end += room_for(Block::bytes(count));
            }
        }
        numbers[0] = end;
        Ok(numbers)
    }

    /// Writes new blocks, and links each to the one before it.
    fn add_blocks(&self, ground: &Ground, file: HeapFile<'_>, blocks: &[[u64; 4]]) -> Result<()> {
        // Blocks are there before anything says so.
        for [number, first, count, at] in blocks {
            let Some(Ok(var)) = self.var(VarId(*number as usize)) else {
                return Err(Error::Garbled);
            };
            let seal = var.chain().seal();
            write_block(file, (seal, *at), &Block { first: *first, count: *count, next: 0 })?;
        }
        if ground.base.hints.chunk_rewrite == Rewrite::Ordered {
            file.file.sync()?;
        }
        for of_var in blocks.chunk_by(|a, b| a[0] == b[0]) {
            let [number, first, ..] = of_var[0];
            let id = VarId(number as usize);
            let Some(Ok(var)) = self.var(id) else { return Err(Error::Garbled) };
            let mut chain = var.chain();
            chain.reach(file, first).map_err(|t| ground.trouble(id, t))?;
            let (mut last, seal) = (chain.blocks().last().copied(), chain.seal());
            drop(chain);
            for [_, first, count, at] in of_var {
                if let Some(Known { block, at: before }) = last {
                    let linked = Block { next: *at, ..block };
                    file.file.write_at(file.begin + before, &linked.encode(seal, before))?;
                }
                let block = Block { first: *first, count: *count, next: 0 };
                last = Some(Known { block, at: *at });
            }
        }
        Ok(())
    }

    /// Brings the attributes that count records up to date, of which a loss of power leaves no more than the file counts:
    /// only after a sync of that number. Collective.
    pub(crate) fn settle_records(&mut self, ground: &mut Ground) -> Result<()> {
        if !self.has_records() || !ground.base.comm.any(self.grown)? {
            return Ok(());
        }
        let mut counts: Vec<u64> = self.sound().map(|(_, var)| var.anchor.records).collect();
        ground.base.comm.all_reduce(Reduction::U64(&mut counts), ReduceOp::Max)?;
        let ids: Vec<VarId> = self.sound().map(|(id, _)| id).collect();
        for (id, count) in ids.iter().zip(&counts) {
            self.note_records(*id, *count);
        }
        self.grown = false;
        let counted = ground.counted();
        let mut header = ground.header.clone();
        for (id, var) in self.sound().filter(|(_, var)| var.grid().has_records) {
            // Never more than the file counts, which would be taken for damage.
            let records = var.anchor.records.min(counted);
            let put = put_records(&mut header.schema, id, records);
            put.map_err(|e| ground.base.schema_error(e))?;
        }
        ground.base.by_root(|| {
            self.require_sole(ground)?;
            let (old, new) = (ground.header.encode(), header.encode());
            if old.len() != new.len() {
                // Attributes that count are as long as ever.
                return Err(Error::Garbled);
            }
            // Numbers within eight bytes: a reader sees the old one or the new one.
            let words = old.chunks(4).zip(new.chunks(4)).enumerate();
            for (word, (_, new)) in words.filter(|(_, (old, new))| old != new) {
                ground.file.write_at(4 * word as u64, new)?;
            }
            Ok(())
        })?;
        ground.header = header;
        Ok(())
    }
}

/// Makes the chunks from number `from` on ones that were never written, where the table says something else
/// or nothing that can be read: nobody has counted them.
pub(super) fn forget_behind(
    chain: &Chain,
    heap: HeapFile<'_>,
    from: u64,
) -> std::result::Result<(), Trouble> {
    const AT_ONCE: u64 = 32 * 1024;
    let seal = chain.seal();
    let mut bytes = Vec::new();
    // Before anything is added: what a forged table says to be behind it is not.
    let len = heap.file.len()?;
    for Known { block, at } in chain.blocks() {
        let end = block.first + block.count;
        let mut first = block.first.max(from);
        while first < end {
            let count = (end - first).min(AT_ONCE);
            let place = at + Block::LEN + (first - block.first) * Entry::LEN;
            let wanted = (place, count * Entry::LEN);
            heap.read_what_is_there(wanted, len, &mut bytes, "its chunk table")?;
            let (entries, _) = bytes.as_chunks();
            let is_never = |(number, entry)| matches!(Entry::decode(entry, seal, number), Ok(None));
            let written: Vec<u64> = (first..)
                .zip(entries)
                .filter(|entry| !is_never(*entry))
                .map(|(number, _)| number)
                .collect();
            for run in written.chunk_by(|a, b| a + 1 == *b) {
                let (Some(start), Some(last)) = (run.first(), run.last()) else { continue };
                let place = at + Block::LEN + (start - block.first) * Entry::LEN;
                write_never(heap, (seal, place), *start..last + 1)?;
            }
            first += count;
        }
    }
    Ok(())
}

/// Writes the tables of new variables.
pub(crate) fn write_tables(file: HeapFile<'_>, tables: &[NewTable]) -> Result<()> {
    for NewTable { seal, head, block, .. } in tables {
        write_block(file, (*seal, head.first), block)?;
    }
    let heads = tables.chunk_by(|a, b| a.at + room_for(TableHead::bytes(&a.head.made_for)) == b.at);
    for side_by_side in heads {
        let mut bytes: Vec<u8> = Vec::new();
        for NewTable { seal, at, head, .. } in side_by_side {
            bytes.resize(room_for(bytes.len() as u64) as usize, 0);
            bytes.extend(head.encode(*seal, *at));
        }
        if let Some(first) = side_by_side.first() {
            file.file.write_at(file.begin + first.at, &bytes)?;
        }
    }
    Ok(())
}

/// Writes a block of chunks that were never written, its head with the last of them.
fn write_block(file: HeapFile<'_>, (seal, at): (Seal, u64), block: &Block) -> Result<()> {
    write_never(file, (seal, at + Block::LEN), block.first..block.first + block.count)?;
    Ok(file.file.write_at(file.begin + at, &block.encode(seal, at))?)
}

/// Makes chunks, whose entries begin at a place of the heap, ones that were never written.
fn write_never(
    file: HeapFile<'_>,
    (seal, at): (Seal, u64),
    numbers: Range<u64>,
) -> esker_store::Result<()> {
    const AT_ONCE: usize = (1 << 20) / Entry::LEN as usize;
    let mut bytes: Vec<u8> = Vec::new();
    let first = numbers.start;
    for start in numbers.clone().step_by(AT_ONCE) {
        let now = start..numbers.end.min(start + AT_ONCE as u64);
        bytes.clear();
        now.for_each(|number| bytes.extend(Entry::never(seal, number)));
        file.file.write_at(file.begin + at + (start - first) * Entry::LEN, &bytes)?;
    }
    Ok(())
}

/// Writes entries to their places in tables; neighbours together.
fn write_entries(
    file: HeapFile<'_>,
    mut list: Vec<(u64, [u8; Entry::LEN as usize])>,
) -> Result<()> {
    list.sort_unstable_by_key(|(at, _)| *at);
    for group in list.chunk_by(|a, b| a.0 + Entry::LEN == b.0) {
        let bytes: Vec<u8> = group.iter().flat_map(|(_, bytes)| bytes).copied().collect();
        if let Some((at, _)) = group.first() {
            file.file.write_at(file.begin + at, &bytes)?;
        }
    }
    Ok(())
}
