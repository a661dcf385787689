//! Decoding: chunks that a read wants, out of a cache or the file, on several threads.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, PoisonError};
use std::time::Instant;

use esker_format::chunked::Entry;

use super::tables::{HeapFile, Trouble};
use super::{ChunkId, Chunked};
use crate::bounded::Bounded;
use crate::error::{Error, Result};
use crate::ground::Ground;
use crate::report::Report;

/// The values of a chunk, in external form.
pub(super) type Decoded = Arc<Vec<u8>>;

/// Chunks that were decoded lately, each with what the table said then: one that was written since
/// is another one. (It may be in the same place and have the same checksum, which for data that end
/// with their own is a constant, so that whoever writes forgets all.)
pub(crate) type Cache = Bounded<ChunkId, (Entry, Decoded)>;

/// What the memory of a shared vector takes beside its bytes: two allocations.
const SHARED: u64 = 96;

/// A chunk that a read wants, and what the table says of it.
type Wanted = (ChunkId, Option<Entry>);

impl Chunked {
    /// Decodes these chunks, by address, all in memory; `keep` puts them into the cache.
    pub(super) fn decode_all(
        &self,
        ground: &Ground,
        units: &[u64],
        (threads, keep): (usize, bool),
        report: &mut Report,
    ) -> Result<Vec<Decoded>> {
        let clock = Instant::now();
        let id_of = |unit: &u64| Ok(self.space.chunk_at(*unit).ok_or(Error::Garbled)?.0);
        let ids = units.iter().map(id_of).collect::<Result<Vec<ChunkId>>>()?;
        let Some(first) = ids.first() else { return Ok(Vec::new()) };
        let tables = self.tables_of(ground, first.var)?;
        let heap = self.heap_in(&*tables);
        let wanted = self.look_up(ground, heap, ids)?;
        let mut out = self.known(&wanted)?;
        let todo: Vec<usize> = (0..wanted.len()).filter(|i| out[*i].is_none()).collect();
        let decoded = self.decode(heap, &wanted, &todo, threads);
        let decoded = decoded.map_err(|(id, trouble)| ground.trouble(id.var, trouble))?;
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        let mut gone = Vec::new();
        for (i, values) in todo.iter().zip(decoded) {
            let (id, Some(entry)) = wanted[*i] else { return Err(Error::Garbled) };
            // With the allocations of a shared vector. One that would push out most of the others is not kept.
            let (bytes, most) = (values.len() as u64 + SHARED, ground.base.hints.chunk_cache);
            if keep && bytes <= most / 2 {
                let put = cache.put(id, (entry, values.clone()), bytes, most);
                gone.extend(put.into_iter().map(|(_, old)| old));
            }
            report.reads += 1;
            report.bytes_read += entry.size;
            out[*i] = Some(values);
        }
        drop(cache);
        gone.into_iter().for_each(|values| self.give_buffer(values));
        report.phases.read += clock.elapsed();
        out.into_iter().map(|values| values.ok_or(Error::Garbled)).collect()
    }

    /// What the tables say of chunks, variable by variable.
    fn look_up(
        &self,
        ground: &Ground,
        heap: HeapFile<'_>,
        ids: Vec<ChunkId>,
    ) -> Result<Vec<Wanted>> {
        let mut order: Vec<usize> = (0..ids.len()).collect();
        order.sort_by_key(|i| ids[*i]);
        let mut wanted: Vec<Wanted> = ids.iter().map(|id| (*id, None)).collect();
        for group in order.chunk_by(|a, b| ids[*a].var == ids[*b].var) {
            let Some(first) = group.first() else { continue };
            let numbers: Vec<u64> = group.iter().map(|i| ids[*i].number).collect();
            let found = self.of_chunk(ids[*first])?.entries(heap, &numbers);
            let found = found.map_err(|t| ground.trouble(ids[*first].var, t))?;
            group.iter().zip(found).for_each(|(i, entry)| wanted[*i].1 = entry);
        }
        Ok(wanted)
    }

    /// Those that need not be decoded: fill values where nothing was written, and what the cache has.
    fn known(&self, wanted: &[Wanted]) -> Result<Vec<Option<Decoded>>> {
        let mut fills: HashMap<usize, Decoded> = HashMap::new();
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        let mut out = Vec::with_capacity(wanted.len());
        for (id, entry) in wanted {
            out.push(match (entry, fills.get(&id.var.0)) {
                (Some(entry), _) => {
                    let kept = cache.get(id).filter(|(then, _)| then == entry);
                    kept.map(|(_, values)| values.clone())
                }
                (None, Some(fill)) => Some(fill.clone()),
                (None, None) => {
                    let mut values = Vec::new();
                    self.of_chunk(*id)?.chunking.fill_chunk(&mut values);
                    let fill = Arc::new(values);
                    fills.insert(id.var.0, fill.clone());
                    Some(fill)
                }
            });
        }
        Ok(out)
    }

    /// Decodes those of the numbers `todo`, on several threads; the first in order that cannot be, if there is one.
    fn decode(
        &self,
        heap: HeapFile<'_>,
        wanted: &[Wanted],
        todo: &[usize],
        threads: usize,
    ) -> std::result::Result<Vec<Decoded>, (ChunkId, Trouble)> {
        let next = AtomicUsize::new(0);
        let decoded: Vec<OnceLock<std::result::Result<Decoded, Trouble>>> =
            todo.iter().map(|_| OnceLock::new()).collect();
        let work = || {
            let mut scratch = self.take_scratch();
            let mut stored = Vec::new();
            loop {
                let n = next.fetch_add(1, Ordering::Relaxed);
                let Some((id, Some(entry))) = todo.get(n).map(|i| &wanted[*i]) else { break };
                let Ok(var) = self.of_chunk(*id) else { break };
                let mut values = self.take_buffer();
                let memory = (&mut stored, &mut scratch);
                let outcome = var.decode(heap, id.number, entry, &mut values, memory);
                drop(decoded[n].set(outcome.map(|()| Arc::new(values))));
            }
            self.give_scratch(scratch);
        };
        match threads.min(todo.len()) {
            0 => {}
            1 => work(),
            threads => std::thread::scope(|scope| {
                (1..threads).for_each(|_| drop(scope.spawn(work)));
                work();
            }),
        }
        let lost = || Err(Trouble::Damage("a chunk of it was not decoded".to_string()));
        let outcomes = todo.iter().zip(decoded);
        let outcome = |(i, outcome): (&usize, OnceLock<_>)| {
            outcome.into_inner().unwrap_or_else(lost).map_err(|trouble| (wanted[*i].0, trouble))
        };
        outcomes.map(outcome).collect()
    }
}
