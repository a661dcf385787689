//! Chunks as they are stored: fetched, checked and decoded.

use std::path::PathBuf;
use std::sync::Arc;

use esker_codec::{FilterMask, Scratch, checksum};
use esker_format::VarId;
use esker_format::chunked::Entry;
use esker_store::File;

use super::files::is_absent;
use super::tables::{self, HeapFile, Trouble};
use super::{Chunked, ChunkedVar};
use crate::dataset::Dataset;
use crate::error::{Error, Result};
use crate::ground::Ground;
use crate::selection::Space;

/// Where a chunk is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoredChunk {
    /// Where it begins in its file.
    pub offset: u64,
    /// Bytes that are stored.
    pub size: u64,
    /// The filters that were left out for it.
    pub mask: FilterMask,
    /// The checksum of the stored bytes.
    pub crc32c: u32,
    /// The file that it is in; 0 for the dataset's own.
    pub file: u32,
}

impl ChunkedVar {
    /// The entries of these chunks, whose numbers ascend.
    pub(super) fn entries(
        &self,
        heap: HeapFile<'_>,
        numbers: &[u64],
    ) -> std::result::Result<Vec<Option<Entry>>, Trouble> {
        let mut chain = self.chain.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        tables::entries(heap, &mut chain, numbers)
    }

    /// Reads a stored chunk into `stored` and compares it with its checksum.
    pub(super) fn fetch(
        &self,
        heap: HeapFile<'_>,
        number: u64,
        entry: &Entry,
        stored: &mut Vec<u8>,
    ) -> std::result::Result<(), Trouble> {
        let at = heap.byte(entry);
        // What filters add to a chunk is little, so that a table cannot make us allocate much.
        let most = self.grid().bytes.saturating_mul(2).saturating_add(1 << 16);
        if entry.size > most {
            return Err(Trouble::Damage(format!(
                "chunk {number} at byte {at} is said to have {} bytes, though its values have {}",
                entry.size,
                self.grid().bytes
            )));
        }
        let what = format!("chunk {number}");
        match (entry.file, heap.others) {
            (0, None) => heap.read_into(entry.place, entry.size, stored, &what)?,
            (1.., Some(others)) => {
                others.read(entry.file, (entry.place, entry.size), stored, &what)?
            }
            (file, _) => {
                let what =
                    format!("chunk {number} is said to be in file {file}, which is not here");
                return Err(Trouble::Damage(what));
            }
        }
        if checksum(stored) != entry.crc32c || Entry::tail_of(stored) != entry.tail {
            return Err(Trouble::Damage(format!(
                "chunk {number} ({} bytes at byte {at}{}) does not match its checksum",
                entry.size,
                heap.of_file(entry)
            )));
        }
        Ok(())
    }

    /// The values of a stored chunk, in external form.
    pub(super) fn decode(
        &self,
        heap: HeapFile<'_>,
        number: u64,
        entry: &Entry,
        out: &mut Vec<u8>,
        (stored, scratch): (&mut Vec<u8>, &mut Scratch),
    ) -> std::result::Result<(), Trouble> {
        self.fetch(heap, number, entry, stored)?;
        out.resize(self.grid().bytes as usize, 0);
        let chunking = &self.chunking;
        let mask = FilterMask(entry.mask);
        let decoded = chunking.pipeline.decode(&chunking.of_chunk(), mask, stored, out, scratch);
        decoded.map_err(|error| {
            let (size, at, file) = (entry.size, heap.byte(entry), heap.of_file(entry));
            Trouble::Damage(format!(
                "chunk {number} ({size} bytes at byte {at}{file}) cannot be decoded: {error}"
            ))
        })
    }
}

impl Chunked {
    /// The heap in the file with the tables.
    pub(crate) fn heap_in<'f>(&'f self, tables: &'f dyn File) -> HeapFile<'f> {
        HeapFile { file: tables, begin: self.heap.begin, others: self.files.as_deref() }
    }

    /// Chunks of a variable that may have been written, with so many records.
    fn chunks(&self, var: &ChunkedVar, records: u64) -> u64 {
        var.grid().chunks(records)
    }
}

impl Chunked {
    /// The file that the tables are in.
    pub(crate) fn tables_file(&self, ground: &Ground) -> Result<Arc<dyn File>> {
        match &self.files {
            None => Ok(ground.file.clone()),
            Some(files) => files.tables(),
        }
    }

    /// The same for a variable, which an error names.
    pub(super) fn tables_of(&self, ground: &Ground, var: VarId) -> Result<Arc<dyn File>> {
        self.tables_file(ground).map_err(|error| match error {
            Error::Store(error) if !is_absent(&error) => ground.trouble(var, Trouble::Store(error)),
            error => ground.chunk_error(var, format!("its chunk table cannot be read: {error}")),
        })
    }
}

impl Ground {
    /// An error of the heap as one of a variable.
    pub(super) fn trouble(&self, var: VarId, trouble: Trouble) -> Error {
        match trouble {
            Trouble::Store(mut error) => {
                error.action = format!("{} of chunked variable {:?}", error.action, self.name(var));
                error.into()
            }
            Trouble::Damage(why) => self.chunk_error(var, why),
        }
    }
}

impl Dataset {
    /// Where the file of this number is that [`StoredChunk`]s may be in.
    pub fn chunk_file(&self, number: u32) -> Option<PathBuf> {
        match (number, &self.layout.get::<Chunked>()?.files) {
            (0, _) => Some(self.ground.base.path.clone()),
            (_, Some(files)) => Some(files.data_path(number)),
            (_, None) => None,
        }
    }

    /// The length of the file of this number that chunks of the variable are said to be in.
    pub fn chunk_file_len(&self, var: VarId, number: u32) -> Result<u64> {
        let id = self.file_var(var)?;
        let files = self.layout.get::<Chunked>().and_then(|chunked| chunked.files.as_ref());
        match (number, files) {
            (0, _) => self.file_len(),
            (_, Some(files)) => {
                files.data_len(number, "a chunk").map_err(|t| self.ground.trouble(id, t))
            }
            (_, None) => {
                let why = format!("a chunk is said to be in file {number}, which is not here");
                Err(self.ground.chunk_error(id, why))
            }
        }
    }

    /// Whether any variable is a chunked one.
    pub fn has_chunked_variables(&self) -> bool {
        self.layout.get::<Chunked>().is_some()
    }

    /// Calls `each` with the index (in each dimension) and the place of every chunk of a variable
    /// that was written, in C order. Independent.
    ///
    /// With `verify` every chunk is read, compared with its checksum and decoded.
    pub fn stored_chunks(
        &self,
        var: VarId,
        verify: bool,
        mut each: impl FnMut(&[u64], StoredChunk) -> Result<()>,
    ) -> Result<()> {
        let id = self.file_var(var)?;
        let ground = &self.ground;
        let chunked = self.layout.get::<Chunked>();
        let found = chunked.map_or(Ok(None), |chunked| chunked.found(ground, id))?;
        let (Some(found), Some(chunked)) = (found, chunked) else {
            return Err(ground.chunk_error(id, "it has no chunks".to_string()));
        };
        const AT_ONCE: u64 = 16 * 1024;
        let in_logs = self.layout.space() == Space::Log;
        chunked.require_begun(ground, (id, found), ground.records, in_logs)?;
        let tables = chunked.tables_of(ground, id)?;
        let heap = chunked.heap_in(&*tables);
        let all = chunked.chunks(found, ground.records);
        let (mut stored, mut values) = (Vec::new(), Vec::new());
        let mut scratch = chunked.take_scratch();
        let mut first = 0;
        while first < all {
            let numbers: Vec<u64> = (first..all.min(first + AT_ONCE)).collect();
            first += numbers.len() as u64;
            let entries = found.entries(heap, &numbers).map_err(|t| ground.trouble(id, t))?;
            for (number, entry) in numbers.iter().zip(&entries) {
                let Some(entry) = entry else { continue };
                if verify {
                    let memory = (&mut stored, &mut scratch);
                    let decoded = found.decode(heap, *number, entry, &mut values, memory);
                    decoded.map_err(|t| ground.trouble(id, t))?;
                }
                let Entry { size, crc32c, mask, file, .. } = *entry;
                let offset = heap.byte(entry);
                let mask = FilterMask(mask);
                each(
                    &found.grid().index(*number),
                    StoredChunk { offset, size, mask, crc32c, file },
                )?;
            }
            // Tables end where nothing was written yet; what is behind need not be asked for.
            let reached = found.chain.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            if reached.covers() <= first && reached.covers() < all {
                break;
            }
        }
        chunked.give_scratch(scratch);
        Ok(())
    }
}
