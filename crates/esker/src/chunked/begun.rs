//! Records that a call has begun to write and never counted.
//!
//! Entries of new records are in the tables before the records are counted. When the call dies in between, they
//! mean nothing, until somebody else counts records: then values would appear that nobody has written. So the
//! header says how many records there will be before anything else does (`__chunk_begun`). Whoever finds
//! that there are fewer takes away what lies behind them, before records are counted again.

use std::ops::Range;

use esker_comm::CommunicatorExt;
use esker_format::VarId;

use super::commit::forget_behind;
use super::tables::{HeapFile, Trouble};
use super::{Chunked, ChunkedVar};
use crate::error::{Error, Result};
use crate::ground::Ground;
use crate::selection::Selection;

impl Chunked {
    /// Takes away what a call has left that was to make more records than there are. Collective.
    pub(crate) fn forget_uncounted(&mut self, ground: &mut Ground) -> Result<()> {
        let counted = ground.counted();
        if ground.begun() <= counted || self.mending || !ground.base.writable {
            return Ok(());
        }
        let of_records = self.sound().filter(|(_, var)| var.grid().has_records);
        let shared = |var: &ChunkedVar| !counted.is_multiple_of(var.grid().group_records());
        let straddled = of_records.filter(|(_, var)| shared(var));
        let straddled: Vec<VarId> = straddled.map(|(id, _)| id).collect();
        self.claim_writing(ground)?;
        self.mending = true;
        let mended = self.mend_records(ground, counted, &straddled);
        self.mending = false;
        mended?;
        // Not before everything is away.
        let noted = ground.note_begun(counted);
        ground.base.agree(noted)
    }

    fn mend_records(
        &mut self,
        ground: &mut Ground,
        counted: u64,
        straddled: &[VarId],
    ) -> Result<()> {
        ground.base.by_root(|| self.forget_entries(ground, counted))?;
        self.forget_chunks(ground);
        for id in straddled {
            let shared = ground.base.by_root(|| self.shared_chunks(ground, *id, counted))?;
            let shared = shared.unwrap_or_default();
            let Err(error) = self.fill_behind(ground, *id, counted, &shared) else { continue };
            require_damage(ground, error)?;
            // The others one by one: in a chunk that cannot be read nobody sees anything.
            for i in 0..ground.base.comm.max_u64(shared.len() as u64)? {
                let one = shared.get(i as usize).map_or(&[][..], std::slice::from_ref);
                if let Err(error) = self.fill_behind(ground, *id, counted, one) {
                    require_damage(ground, error)?;
                }
            }
        }
        Ok(())
    }

    /// The chunks of a variable that were written and have records before `counted` and behind.
    fn shared_chunks(&self, ground: &Ground, id: VarId, counted: u64) -> Result<Vec<u64>> {
        let Some(var) = self.found(ground, id)? else { return Ok(Vec::new()) };
        let end = var.grid().chunks(counted);
        let tables = self.tables_file(ground)?;
        let numbers = end - var.grid().per_group..end;
        written(ground, (id, var), self.heap_in(&*tables), numbers)
    }

    /// Makes chunks that have only records from `counted` on what they were before anybody wrote them.
    fn forget_entries(&self, ground: &Ground, counted: u64) -> Result<()> {
        let tables = self.tables_file(ground)?;
        let heap = self.heap_in(&*tables);
        for (id, var) in self.sound().filter(|(_, var)| var.grid().has_records) {
            let mut chain = var.chain();
            match chain.reach(heap, u64::MAX) {
                // What is behind a damaged block nobody can read.
                Ok(()) | Err(Trouble::Damage(_)) => {}
                Err(trouble) => return Err(ground.trouble(id, trouble)),
            }
            let forgotten = forget_behind(&chain, heap, var.grid().chunks(counted));
            forgotten.map_err(|trouble| ground.trouble(id, trouble))?;
        }
        Ok(())
    }

    /// Writes these chunks of a variable, each with one element of the record `record` that is the fill
    /// value: the rest is what is stored, without records that do not exist. Collective.
    fn fill_behind(
        &mut self,
        ground: &mut Ground,
        id: VarId,
        record: u64,
        numbers: &[u64],
    ) -> Result<()> {
        let Some(var) = self.found(ground, id)? else { return Ok(()) };
        let (selection, elements) = (one_of_each(var, record, numbers), numbers.len());
        let values = var.chunking.fill.repeat(elements);
        self.write_own(ground, id, &selection, &values)
    }
}

/// The numbers of chunks among these that were written, as far as the table can be read.
fn written(
    ground: &Ground,
    (id, var): (VarId, &ChunkedVar),
    heap: HeapFile<'_>,
    mut numbers: Range<u64>,
) -> Result<Vec<u64>> {
    const AT_ONCE: u64 = 16 * 1024;
    let mut written = Vec::new();
    let mut chain = var.chain();
    let reached = chain.reach(heap, numbers.end.saturating_sub(1));
    numbers.end = numbers.end.min(chain.covers());
    drop(chain);
    let mut outcome = reached;
    while outcome.is_ok() && !numbers.is_empty() {
        let now: Vec<u64> = numbers.clone().take(AT_ONCE as usize).collect();
        numbers.start += now.len() as u64;
        outcome = var.entries(heap, &now).map(|entries| {
            let found = now.iter().zip(entries).filter(|(_, entry)| entry.is_some());
            written.extend(found.map(|(number, _)| *number));
        });
    }
    match outcome {
        Err(Trouble::Store(error)) => Err(ground.trouble(id, Trouble::Store(error))),
        Ok(()) | Err(Trouble::Damage(_)) => Ok(written),
    }
}

/// Fails with an error that is not about the chunks of a file. Collective: every rank has one.
fn require_damage(ground: &Ground, error: Error) -> Result<()> {
    let about_chunks = matches!(error, Error::Chunked { .. } | Error::OtherRank { .. });
    match ground.base.comm.any(!about_chunks)? {
        true => Err(error),
        false => Ok(()),
    }
}

/// A selection of one element of this record in each of these chunks.
fn one_of_each(var: &ChunkedVar, record: u64, numbers: &[u64]) -> Selection {
    let grid = var.grid();
    let mut starts = Vec::with_capacity(numbers.len() * grid.counts.len());
    for number in numbers {
        let inner = grid.index(*number).into_iter().zip(&grid.chunk).skip(1);
        starts.push(record);
        starts.extend(inner.map(|(index, len)| index * len));
    }
    let counts = vec![1; starts.len()];
    Selection::list(grid.counts.len(), starts, counts)
}
