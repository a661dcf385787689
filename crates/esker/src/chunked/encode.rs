//! What an owner makes of its chunks: pieces laid into one after the other, and filters.
//!
//! Pieces of other ranks stay in the messages that they came in until their chunk's turn, so that a
//! thread needs memory for one chunk, which is in the cache when it is encoded.

use std::mem;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use esker_codec::Scratch;
use esker_format::chunked::Entry;

use super::heap::room_for;
use super::once::Treat;
use super::tables::{HeapFile, Trouble};
use super::{ChunkId, Chunked};
use crate::error::Error;
use crate::exchange::Came;
use crate::gathered::Gathered;
use crate::notes::Notes;
use crate::plan::{Overlap, Piece, Plan};
use crate::request::Request;
use crate::wire;

/// A chunk that was encoded.
#[derive(Debug)]
pub(super) struct Encoded {
    pub(super) id: ChunkId,
    /// What the table says of it until now.
    pub(super) old: Option<Entry>,
    /// Its bytes: which of the memories of a round, and where there.
    pub(super) memory: usize,
    pub(super) range: Range<usize>,
    pub(super) mask: u16,
    pub(super) crc32c: u32,
    pub(super) tail: u32,
    /// Whether values of it have been through a filter that does not settle.
    pub(super) changed: bool,
}

/// Why a chunk was not encoded.
#[derive(Debug)]
pub(super) enum Failed {
    Chunk(ChunkId, Trouble),
    Call(Error),
}

impl From<Error> for Failed {
    fn from(error: Error) -> Failed {
        Failed::Call(error)
    }
}

/// The chunks of a round that this rank owns, by address, and what other ranks have of them, in the
/// order of ranks.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    pub(crate) owned: Vec<u64>,
    pub(crate) messages: Came,
}

/// What a round has made of its chunks.
#[derive(Debug, Default)]
pub(super) struct Round {
    /// In the order of their addresses.
    pub(super) encoded: Vec<Encoded>,
    /// What was encoded, each chunk at a multiple of its alignment.
    pub(super) memories: Vec<Vec<u8>>,
    pub(super) failed: Option<Failed>,
    pub(super) notes: Notes,
    pub(super) copied: u64,
}

/// What a thread uses from chunk to chunk.
#[derive(Debug, Default)]
pub(crate) struct Bench {
    scratch: Scratch,
    gathered: Gathered,
    stored: Vec<u8>,
    there: Vec<u8>,
}

impl Bench {
    fn memory(&self) -> usize {
        self.gathered.memory() as usize + self.stored.capacity() + self.there.capacity()
    }
}

impl Chunked {
    fn take_bench(&self) -> Bench {
        let mut pool = self.benches.lock().unwrap_or_else(PoisonError::into_inner);
        pool.pop().unwrap_or_default()
    }

    fn give_bench(&self, bench: Bench) {
        const MOST: usize = 16 << 20;
        let mut pool = self.benches.lock().unwrap_or_else(PoisonError::into_inner);
        if pool.iter().map(Bench::memory).sum::<usize>() + bench.memory() <= MOST {
            pool.push(bench);
        }
    }
}

/// Where the messages have something of each chunk: its number among those owned, the message, and
/// the place in it, sorted.
pub(crate) fn sections(batch: &Batch) -> Option<Vec<(usize, usize, Range<usize>)>> {
    let mut found = Vec::new();
    for (number, (_, message)) in batch.messages.iter().enumerate() {
        let mut chunk = 0;
        for section in wire::sections(message) {
            let (address, place) = section?;
            chunk += batch.owned.get(chunk..)?.partition_point(|owned| *owned < address);
            batch.owned.get(chunk).filter(|owned| **owned == address)?;
            found.push((chunk, number, place));
        }
    }
    found.sort_unstable_by_key(|(chunk, message, _)| (*chunk, *message));
    Some(found)
}

/// What a write is about, for all of its rounds.
pub(super) struct Encoder<'e> {
    pub(super) chunked: &'e Chunked,
    pub(super) heap: HeapFile<'e>,
    pub(super) plan: &'e Plan<'e>,
    pub(super) puts: &'e [Request<'e>],
    /// Records that there were before.
    pub(super) existing: u64,
    pub(super) threads: usize,
}

impl Encoder<'_> {
    /// Lays pieces into chunks, completes these with what is stored of them, or fill values, and
    /// encodes them, on several threads.
    pub(super) fn encode(&self, batch: &Batch) -> Round {
        let found = sections(batch).ok_or(Failed::Call(Error::Garbled));
        let found = found.and_then(|sections| Ok((sections, self.old_entries(&batch.owned)?)));
        let (sections, old) = match found {
            Ok(found) => found,
            Err(failed) => return Round { failed: Some(failed), ..Round::default() },
        };
        let next = AtomicUsize::new(0);
        let done: Mutex<Vec<(Round, Vec<u8>)>> = Mutex::default();
        let failed: Mutex<Option<(usize, Failed)>> = Mutex::new(None);
        let work = || {
            let mut bench = self.chunked.take_bench();
            let mut sweep = self.plan.sweep();
            let (mut round, mut memory) = (Round::default(), Vec::new());
            loop {
                let n = next.fetch_add(1, Ordering::Relaxed);
                let (Some(address), Some((id, old))) = (batch.owned.get(n), old.get(n)) else {
                    break;
                };
                let bytes = self.chunked.of_chunk(*id).map_or(0, |var| var.grid().bytes);
                let own = sweep.take(*address, address + bytes, Overlap::LaterWins);
                let from = sections.partition_point(|(chunk, _, _)| *chunk < n);
                let others = sections[from..].iter().take_while(|(chunk, _, _)| *chunk == n);
                let others = others.map(|(_, message, at)| &batch.messages[*message].1[at.clone()]);
                let chunk = (*address, *id, *old);
                match self.one(chunk, own, others, &mut bench, &mut memory, &mut round) {
                    Ok(encoded) => round.encoded.push(encoded),
                    Err(fault) => {
                        let mut failed = failed.lock().unwrap_or_else(PoisonError::into_inner);
                        if failed.as_ref().is_none_or(|(first, _)| n < *first) {
                            *failed = Some((n, fault));
                        }
                    }
                }
            }
            self.chunked.give_bench(bench);
            done.lock().unwrap_or_else(PoisonError::into_inner).push((round, memory));
        };
        match self.threads.min(batch.owned.len()) {
            0 | 1 => work(),
            threads => thread::scope(|scope| {
                (1..threads).for_each(|_| drop(scope.spawn(work)));
                work();
            }),
        }
        let mut all = Round::default();
        let done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
        for (number, (round, memory)) in done.into_iter().enumerate() {
            let of_thread = round.encoded.into_iter();
            all.encoded.extend(of_thread.map(|chunk| Encoded { memory: number, ..chunk }));
            all.memories.push(memory);
            all.notes.append(round.notes);
            all.copied += round.copied;
        }
        if all.memories.len() > 1 {
            let address = |chunk: &Encoded| self.chunked.space.address(chunk.id);
            all.encoded.sort_unstable_by_key(address);
        }
        let failed = failed.into_inner().unwrap_or_else(PoisonError::into_inner);
        Round { failed: failed.map(|(_, failed)| failed), ..all }
    }

    /// One chunk, of which these pieces are this rank's own.
    fn one<'m>(
        &self,
        (address, id, old): (u64, ChunkId, Option<Entry>),
        own: &[Piece],
        others: impl Iterator<Item = &'m [u8]>,
        bench: &mut Bench,
        memory: &mut Vec<u8>,
        round: &mut Round,
    ) -> std::result::Result<Encoded, Failed> {
        let var = self.chunked.of_chunk(id)?;
        let chunking = &var.chunking;
        let bytes = chunking.grid.bytes;
        let Bench { scratch, gathered, stored, there } = bench;
        gathered.reset(address, bytes);
        for piece in own {
            let place = gathered.lay(piece.offset, piece.len);
            round.notes.pack(self.puts, (piece.request, piece.element), place)?;
            round.copied += piece.len;
        }
        for section in others {
            round.copied += gathered.lay_section(section)?;
        }
        let trouble = |trouble| Failed::Chunk(id, trouble);
        let treat = chunking.treat(id.number, gathered, old.as_ref(), self.existing);
        if !gathered.is_covered(bytes) {
            match &old {
                None => chunking.fill_chunk(there),
                Some(entry) => {
                    let decoded = var.decode(self.heap, id.number, entry, there, (stored, scratch));
                    decoded.map_err(trouble)?;
                    chunking.forget_records(id.number, self.existing, there);
                }
            }
            gathered.complete(there);
        }
        memory.resize(room_for(memory.len() as u64) as usize, 0);
        let start = memory.len();
        let values = gathered.front(bytes);
        let (pipeline, chunk) = (&chunking.pipeline, chunking.of_chunk());
        let encoded = match treat {
            Treat::Whole => pipeline.encode(&chunk, values, memory, scratch),
            Treat::Keep | Treat::Wait => pipeline.encode_exactly(&chunk, values, memory, scratch),
        };
        let encoded = encoded.map_err(|error| {
            trouble(Trouble::Damage(format!("chunk {} cannot be encoded: {error}", id.number)))
        })?;
        let range = start..memory.len();
        let (mask, crc32c) = (encoded.mask.0, encoded.crc32c);
        let tail = Entry::tail_of(&memory[range.clone()]);
        let changed = treat == Treat::Keep || pipeline.unsettles(encoded.mask);
        Ok(Encoded { id, old, memory: 0, range, mask, crc32c, tail, changed })
    }

    /// What the tables say of these chunks.
    fn old_entries(
        &self,
        owned: &[u64],
    ) -> std::result::Result<Vec<(ChunkId, Option<Entry>)>, Failed> {
        let id_of = |address: &u64| self.chunked.space.chunk_at(*address).map(|(id, _, _)| id);
        let ids: Option<Vec<ChunkId>> = owned.iter().map(id_of).collect();
        let ids = ids.ok_or(Error::Garbled)?;
        let mut out: Vec<(ChunkId, Option<Entry>)> = ids.iter().map(|id| (*id, None)).collect();
        let mut order: Vec<usize> = (0..ids.len()).collect();
        order.sort_by_key(|i| ids[*i]);
        for group in order.chunk_by(|a, b| ids[*a].var == ids[*b].var) {
            let Some(id) = group.first().map(|i| ids[*i]) else { continue };
            let var = self.chunked.of_chunk(id)?;
            let numbers: Vec<u64> = group.iter().map(|i| ids[*i].number).collect();
            let found = var.entries(self.heap, &numbers).map_err(|t| Failed::Chunk(id, t))?;
            group.iter().zip(found).for_each(|(i, entry)| out[*i].1 = entry);
        }
        Ok(out)
    }
}

impl Round {
    /// Whether `next` lies behind the chunk in memory as it would in the file.
    pub(super) fn is_followed_by(&self, chunk: &Encoded, next: &Encoded) -> bool {
        let behind = room_for(chunk.range.end as u64) as usize;
        chunk.memory == next.memory && behind == next.range.start
    }

    /// The bytes from one chunk to the end of another behind it in the same memory.
    pub(super) fn stretch(&self, first: &Encoded, last: &Encoded) -> &[u8] {
        let memory = self.memories.get(first.memory);
        memory.and_then(|m| m.get(first.range.start..last.range.end)).unwrap_or(&[])
    }

    /// Takes everything out of it that would be stored.
    pub(super) fn clear(&mut self) {
        self.encoded.clear();
        drop(mem::take(&mut self.memories));
    }

    /// Bytes that it takes.
    pub(super) fn memory(&self) -> u64 {
        self.memories.iter().map(|m| m.capacity() as u64).sum()
    }
}
