//! Records that a call has begun to write and never counted.
//!
//! Entries of new records are in the tables before the records are counted. When the call dies in between, they
//! mean nothing, until somebody else counts records: then values would appear that nobody has written. So the
//! header says how many records there will be before anything else does (`__chunk_begun`). Whoever finds
//! that there are fewer takes away what lies behind them, before records are counted again.

use std::ops::Range;

use esker_comm::CommunicatorExt;
use esker_format::chunked::{begun_field, put_begun};
use esker_format::{NumRecs, Values, VarId};

use super::ChunkedVar;
use super::commit::forget_behind;
use super::tables::{HeapFile, Trouble};
use crate::dataset::Dataset;
use crate::error::{Error, Result};
use crate::memory::MemoryLayout;
use crate::request::Requests;
use crate::selection::Selection;

impl Dataset {
    /// The records that the file counts.
    pub(super) fn counted(&self) -> u64 {
        match self.header.numrecs {
            NumRecs::Count(records) => records,
            NumRecs::Streaming => self.records,
        }
    }

    /// Says that a call will make so many records, if these are more than there are. On every rank, before ranks
    /// agree that entries can be written.
    pub(super) fn begin_records(&mut self, records: u64) -> Result<()> {
        if records <= self.counted() {
            return Ok(());
        }
        self.note_begun(records)
    }

    /// The same before records are counted that no chunked variable has, so that there are never more than
    /// were begun: a number of records that is damaged is known by that. On every rank.
    pub(crate) fn begin_counting(&mut self, records: u64) -> Result<()> {
        self.begin_decomposed(records)?;
        match self.chunked.as_ref().is_some_and(|chunked| chunked.begun() < records) {
            true => self.begin_records(records),
            false => Ok(()),
        }
    }

    fn note_begun(&mut self, records: u64) -> Result<()> {
        let Some(chunked) = &mut self.chunked else { return Ok(()) };
        chunked.begun = records;
        let header = &self.header;
        let Some(at) = *chunked.begun_at.get_or_init(|| begun_field(header)) else {
            // A file from before there was such an attribute.
            return Ok(());
        };
        let beside = chunked.files.is_some();
        put_begun(&mut self.header.schema, records).map_err(|e| self.base.schema_error(e))?;
        if !self.base.is_root() {
            return Ok(());
        }
        self.file.write_at(at, &records.to_be_bytes())?;
        let more = records > self.counted();
        // Tables in another file may reach the disk before the header does: once after a sync it has
        // to be there before them.
        let Some(chunked) = &mut self.chunked else { return Ok(()) };
        if beside && more && !chunked.begun_is_safe {
            self.file.sync()?;
        }
        chunked.begun_is_safe = more;
        Ok(())
    }

    /// The header that counts all records is about to be on the disk.
    pub(crate) fn begun_is_counted(&mut self) {
        if let Some(chunked) = &mut self.chunked {
            chunked.begun_is_safe = false;
        }
    }

    /// Takes away what a call has left that was to make more records than there are. Collective.
    pub(crate) fn forget_uncounted(&mut self) -> Result<()> {
        let counted = self.counted();
        let Some(chunked) = &mut self.chunked else { return Ok(()) };
        if chunked.begun <= counted || chunked.mending || !self.base.writable {
            return Ok(());
        }
        let of_records = chunked.sound().filter(|(_, var)| var.grid().has_records);
        let shared = |var: &ChunkedVar| !counted.is_multiple_of(var.grid().group_records());
        let straddled = of_records.filter(|(_, var)| shared(var));
        let straddled: Vec<VarId> = straddled.map(|(id, _)| id).collect();
        self.claim_writing()?;
        let Some(chunked) = &mut self.chunked else { return Ok(()) };
        chunked.mending = true;
        // To the file itself, and not to a log before it.
        let burst = self.burst.take();
        let mended = self.mend_records(counted, &straddled);
        self.rejoin(burst);
        if let Some(chunked) = &mut self.chunked {
            chunked.mending = false;
        }
        mended?;
        // Not before everything is away.
        let noted = self.note_begun(counted);
        self.base.agree(noted)
    }

    fn mend_records(&mut self, counted: u64, straddled: &[VarId]) -> Result<()> {
        self.base.by_root(|| self.forget_entries(counted))?;
        self.forget_chunks();
        for id in straddled {
            let shared = self.base.by_root(|| self.shared_chunks(*id, counted))?;
            let shared = shared.unwrap_or_default();
            let Err(error) = self.fill_behind(*id, counted, &shared) else { continue };
            self.require_damage(error)?;
            // The others one by one: in a chunk that cannot be read nobody sees anything.
            for i in 0..self.base.comm.max_u64(shared.len() as u64)? {
                let one = shared.get(i as usize).map_or(&[][..], std::slice::from_ref);
                if let Err(error) = self.fill_behind(*id, counted, one) {
                    self.require_damage(error)?;
                }
            }
        }
        Ok(())
    }

    /// The chunks of a variable that were written and have records before `counted` and behind.
    fn shared_chunks(&self, id: VarId, counted: u64) -> Result<Vec<u64>> {
        let (Some(var), Some(chunked)) = (self.chunked_var(id)?, &self.chunked) else {
            return Ok(Vec::new());
        };
        let end = var.grid().chunks(counted);
        let tables = self.tables_file(chunked)?;
        self.written(id, var, chunked.heap_in(&*tables), end - var.grid().per_group..end)
    }

    /// The numbers of chunks among these that were written, as far as the table can be read.
    fn written(
        &self,
        id: VarId,
        var: &ChunkedVar,
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
            Err(Trouble::Store(error)) => Err(self.trouble(id, Trouble::Store(error))),
            Ok(()) | Err(Trouble::Damage(_)) => Ok(written),
        }
    }

    /// Fails with an error that is not about the chunks of a file. Collective: every rank has one.
    fn require_damage(&self, error: Error) -> Result<()> {
        let about_chunks = matches!(error, Error::Chunked { .. } | Error::OtherRank { .. });
        match self.base.comm.any(!about_chunks)? {
            true => Err(error),
            false => Ok(()),
        }
    }

    /// Makes chunks that have only records from `counted` on what they were before anybody wrote them.
    fn forget_entries(&self, counted: u64) -> Result<()> {
        let Some(chunked) = &self.chunked else { return Ok(()) };
        let tables = self.tables_file(chunked)?;
        let heap = chunked.heap_in(&*tables);
        for (id, var) in chunked.sound().filter(|(_, var)| var.grid().has_records) {
            let mut chain = var.chain();
            match chain.reach(heap, u64::MAX) {
                // What is behind a damaged block nobody can read.
                Ok(()) | Err(Trouble::Damage(_)) => {}
                Err(trouble) => return Err(self.trouble(id, trouble)),
            }
            let forgotten = forget_behind(&chain, heap, var.grid().chunks(counted));
            forgotten.map_err(|trouble| self.trouble(id, trouble))?;
        }
        Ok(())
    }

    /// Writes these chunks of a variable, each with one element of the record `record` that is the fill
    /// value: the rest is what is stored, without records that do not exist. Collective.
    fn fill_behind(&mut self, id: VarId, record: u64, numbers: &[u64]) -> Result<()> {
        let Some(var) = self.chunked_var(id)? else { return Ok(()) };
        let (selection, elements) = (one_of_each(var, record, numbers), numbers.len());
        let (fill, ty) = (var.chunking.fill.clone(), var.chunking.ty);
        let values = Values::decode(ty, elements, &fill.repeat(elements));
        let own = match &self.numbering {
            None => Some(id),
            Some(numbering) => numbering.vars.iter().position(|var| *var == id).map(VarId),
        };
        let mut queue = Requests::new();
        let queued = match (&values, own) {
            _ if numbers.is_empty() => Ok(()),
            (Some(values), Some(own)) => {
                let memory = (values.native_bytes(), values.ty().natural());
                self.iput_bytes(&mut queue, own, &selection, memory, MemoryLayout::dense())
                    .map(drop)
            }
            _ => Err(Error::Garbled),
        };
        self.base.agree(queued)?;
        self.wait_all(&mut queue)
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
