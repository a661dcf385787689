//! Selections of chunked variables, as addresses of the space that is planned in.

use std::sync::{Arc, MutexGuard, PoisonError};

use esker_format::VarId;
use esker_format::chunked::Grid;

use super::{ChunkId, Chunked, ChunkedVar};
use crate::dataset::Dataset;
use crate::error::{Error, Result, SelectionError};
use crate::log::Memo;
use crate::plan::{Extent, SharedRuns};
use crate::selection::{Checked, Purpose, Selection, whole_records};

impl Dataset {
    /// Checks a selection of a chunked variable and finds its addresses.
    pub(crate) fn check_chunked(
        &self,
        id: VarId,
        var: &ChunkedVar,
        selection: &Selection,
        purpose: Purpose,
    ) -> Result<Checked> {
        self.require_chunk_memory(id, var)?;
        let grid = var.grid();
        let Some(chunked) = &self.chunked else { return Err(Error::Garbled) };
        if purpose != Purpose::Read && self.appends() {
            return self.check_chunked_for_log(chunked, id, grid, selection, purpose);
        }
        // With several records in a chunk, what a list is depends on its record.
        let alike = !grid.has_records || grid.group_records() == 1;
        let list = selection.slabs().filter(|slabs| alike && Memo::is_for(slabs));
        let list = list.map(|slabs| (slabs, frame(grid)));
        if let Some((slabs, frame)) = &list
            && let Some(found) = chunked.cuts().find(slabs, frame, self.base.hints.cache)
            && let Some(checked) = self.cut_before(chunked, id, grid, purpose, found)
        {
            self.require_begun_for(id, var, checked.records, purpose)?;
            return Ok(checked);
        }
        let name = || self.header.schema.variable(id).map_or("", |v| &*v.name).to_string();
        let refuse =
            |source| Error::Selection { path: self.base.path.clone(), var: name(), source };
        let mut shape = grid.dims.clone();
        let mut records = self.numrecs();
        if let (true, Purpose::Write { elements }) = (grid.has_records, purpose) {
            records = match selection.is_all() {
                true => whole_records(&shape[1..], elements).map_err(refuse)?,
                false => self.header.schema.version.max_count(),
            };
        }
        if grid.has_records {
            shape[0] = records;
        }
        let dim_name = |d: usize| {
            let dim = var.anchor.dims.get(d).and_then(|id| self.header.schema.dims.at(id.0));
            dim.map_or(String::new(), |dim| dim.name.to_string())
        };
        let mut extent = Extent::new(grid.size);
        let (mut elements, mut needed) = (0u64, 0);
        let is_read = matches!(purpose, Purpose::Read);
        let begun = match self.has_logs() {
            // What is in logs alone is begun by a flush.
            true => chunked.begun().max(self.numrecs()),
            false => chunked.begun(),
        };
        let cut = selection.each_within(&shape, dim_name, |slab, product| {
            if grid.has_records {
                let last = slab.start[0] + (slab.count[0] - 1) * slab.stride_of(0);
                needed = needed.max(last + 1);
            }
            if is_read && needed > begun {
                // Before so many chunks are looked at one by one.
                return Err(SelectionError::TooLarge);
            }
            let placed = chunked.space.cut(id, grid, &slab, elements, &mut extent);
            placed.ok_or(SelectionError::TooLarge)?;
            elements = elements.checked_add(product).ok_or(SelectionError::TooLarge)?;
            Ok(())
        });
        self.require_begun_for(id, var, needed, purpose)?;
        cut.map_err(|source| {
            refuse(match source {
                // What there is of records, not what there may be.
                SelectionError::OutOfBounds { dim, start, count, stride, .. }
                    if grid.has_records && dim == dim_name(0) =>
                {
                    let len = self.numrecs();
                    SelectionError::OutOfBounds { dim, len, start, count, stride }
                }
                other => other,
            })
        })?;
        if elements.checked_mul(grid.size).is_none_or(|bytes| bytes > i64::MAX as u64) {
            return Err(refuse(SelectionError::TooLarge));
        }
        extent.finish();
        if let Some((slabs, frame)) = &list
            && let Some(record) = Memo::record_of(slabs, frame)
            && let Some(base) = chunked.space.begin(id, grid, record)
            && let Some(shared) = extent.share(base, grid.bytes)
        {
            let memory = (shared.memory(), self.base.hints.cache);
            chunked.cuts().keep(slabs, frame, &shared, memory);
        }
        let (parts, gaps, whole_records) = (None, Vec::new(), None);
        Ok(Checked { elements, records: needed, extent, whole_records, parts, gaps })
    }

    /// Checks what is to be appended to a log, which numbers elements as if there were no chunks.
    fn check_chunked_for_log(
        &self,
        chunked: &Chunked,
        id: VarId,
        grid: &Grid,
        selection: &Selection,
        purpose: Purpose,
    ) -> Result<Checked> {
        let variable = chunked.schema.variable(id).ok_or(Error::Garbled)?;
        let checked = selection.check_for_log(&self.header, variable, self.records, purpose);
        // What is flushed needs addresses.
        let last = |checked: &Checked| {
            let number = grid.chunks(checked.records).saturating_sub(1);
            chunked.space.address(ChunkId { var: id, number }).is_some()
                && checked.elements <= i64::MAX as u64 / grid.size
        };
        let checked = checked.and_then(|checked| match checked.elements == 0 || last(&checked) {
            true => Ok(checked),
            false => Err(SelectionError::TooLarge),
        });
        checked.map_err(|source| {
            let var = variable.name.to_string();
            Error::Selection { path: self.base.path.clone(), var, source }
        })
    }

    /// Fails for a read of records that nobody has begun to write.
    fn require_begun_for(
        &self,
        id: VarId,
        var: &ChunkedVar,
        records: u64,
        purpose: Purpose,
    ) -> Result<()> {
        match purpose {
            Purpose::Read => self.require_begun(id, var, records),
            Purpose::Write { .. } => Ok(()),
        }
    }

    /// What a selection is whose list of blocks was cut before, for this variable or one like it;
    /// `None` if it has to be looked at because it is beyond what there is.
    fn cut_before(
        &self,
        chunked: &Chunked,
        id: VarId,
        grid: &Grid,
        purpose: Purpose,
        (shared, record): (Arc<SharedRuns>, u64),
    ) -> Option<Checked> {
        let most = match purpose {
            Purpose::Read => self.numrecs(),
            Purpose::Write { .. } => self.header.schema.version.max_count(),
        };
        let records = match grid.has_records {
            false => 0,
            true => record.checked_add(1).filter(|records| *records <= most)?,
        };
        let base = chunked.space.begin(id, grid, record)?;
        base.checked_add(shared.end()).filter(|end| *end <= i64::MAX as u64)?;
        let elements = shared.bytes() / grid.size;
        let extent = Extent::of_shared(shared, base, grid.size);
        let (parts, gaps, whole_records) = (None, Vec::new(), None);
        Some(Checked { elements, records, extent, whole_records, parts, gaps })
    }
}

impl Chunked {
    fn cuts(&self) -> MutexGuard<'_, Memo<SharedRuns>> {
        self.cuts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What lists of blocks are cut alike in: shape, chunks and size of an element.
fn frame(grid: &Grid) -> (Vec<u64>, bool) {
    let numbers = grid.dims.iter().chain(&grid.chunk).chain([&grid.size]);
    (numbers.copied().collect(), grid.has_records)
}
