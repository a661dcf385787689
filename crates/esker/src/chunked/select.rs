//! Selections of chunked variables, as addresses of the space that is planned in.

use std::sync::{Arc, MutexGuard, PoisonError};

use esker_format::VarId;
use esker_format::chunked::Grid;

use super::{ChunkId, Chunked, ChunkedVar};
use crate::error::{Error, Result, SelectionError};
use crate::ground::Ground;
use crate::layout::Asked;
use crate::lists::{Memo, common_record, is_worth};
use crate::plan::{Extent, SharedRuns};
use crate::selection::{Checked, Purpose, Space, whole_records};

impl Chunked {
    /// Checks a selection of a chunked variable and finds its addresses.
    pub(super) fn check_in_chunks(&self, ground: &Ground, asked: Asked<'_>) -> Result<Checked> {
        let Asked { var: id, selection, purpose, space } = asked;
        let Some(var) = self.found(ground, id)? else { return Err(Error::Garbled) };
        self.require_chunk_memory(ground, (id, var))?;
        let grid = var.grid();
        let in_logs = space == Space::Log;
        if purpose != Purpose::Read && in_logs {
            return self.check_for_log(ground, grid, asked);
        }
        // With several records in a chunk, what a list is depends on its record.
        let alike = !grid.has_records || grid.group_records() == 1;
        let list = selection.slabs().filter(|slabs| alike && is_worth(slabs));
        let list = list.map(|slabs| (slabs, frame(grid)));
        if let Some((slabs, frame)) = &list
            && let Some(found) = self.cuts().find(slabs, frame, ground.base.hints.cache)
            && let Some(checked) = self.cut_before(ground, (id, grid), purpose, found)
        {
            self.require_begun_for(ground, (id, var), checked.records, (purpose, in_logs))?;
            return Ok(checked);
        }
        let refuse = |source| {
            let (path, var) = (ground.base.path.clone(), ground.name(id));
            Error::Selection { path, var, source }
        };
        let mut shape = grid.dims.clone();
        let known = self.records_known(ground);
        let mut records = known;
        if let (true, Purpose::Write { elements }) = (grid.has_records, purpose) {
            records = match selection.is_all() {
                true => whole_records(&shape[1..], elements).map_err(refuse)?,
                false => ground.header.schema.version.max_count(),
            };
        }
        if grid.has_records {
            shape[0] = records;
        }
        let dim_name = |d: usize| {
            let dim = var.anchor.dims.get(d).and_then(|id| ground.header.schema.dims.at(id.0));
            dim.map_or(String::new(), |dim| dim.name.to_string())
        };
        let mut extent = Extent::new(grid.size);
        let (mut elements, mut needed) = (0u64, 0);
        let is_read = matches!(purpose, Purpose::Read);
        let begun = match in_logs || self.deferred_records() > 0 {
            // What is in logs alone is begun by a flush.
            true => ground.begun().max(known),
            false => ground.begun(),
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
            let placed = self.space.cut(id, grid, &slab, elements, &mut extent);
            placed.ok_or(SelectionError::TooLarge)?;
            elements = elements.checked_add(product).ok_or(SelectionError::TooLarge)?;
            Ok(())
        });
        self.require_begun_for(ground, (id, var), needed, (purpose, in_logs))?;
        cut.map_err(|source| {
            refuse(match source {
                // What there is of records, not what there may be.
                SelectionError::OutOfBounds { dim, start, count, stride, .. }
                    if grid.has_records && dim == dim_name(0) =>
                {
                    let len = known;
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
            && let Some(record) = common_record(slabs, frame)
            && let Some(base) = self.space.begin(id, grid, record)
            && let Some(shared) = extent.share(base, grid.bytes)
        {
            let memory = (shared.memory(), ground.base.hints.cache);
            self.cuts().keep(slabs, frame, &shared, memory);
        }
        let (parts, gaps, whole_records) = (None, Vec::new(), None);
        let space = Space::Own;
        Ok(Checked { elements, records: needed, extent, whole_records, parts, gaps, space })
    }

    /// Checks what is to be appended to a log, which numbers elements as if there were no chunks.
    fn check_for_log(&self, ground: &Ground, grid: &Grid, asked: Asked<'_>) -> Result<Checked> {
        let Asked { var: id, selection, purpose, .. } = asked;
        let variable = self.schema.variable(id).ok_or(Error::Garbled)?;
        let checked = selection.check_for_log(&ground.header, variable, ground.records, purpose);
        // What is flushed needs addresses.
        let last = |checked: &Checked| {
            let number = grid.chunks(checked.records).saturating_sub(1);
            self.space.address(ChunkId { var: id, number }).is_some()
                && checked.elements <= i64::MAX as u64 / grid.size
        };
        let checked = checked.and_then(|checked| match checked.elements == 0 || last(&checked) {
            true => Ok(checked),
            false => Err(SelectionError::TooLarge),
        });
        checked.map_err(|source| {
            let var = variable.name.to_string();
            Error::Selection { path: ground.base.path.clone(), var, source }
        })
    }

    /// Fails for a read of records that nobody has begun to write.
    fn require_begun_for(
        &self,
        ground: &Ground,
        var: (VarId, &ChunkedVar),
        records: u64,
        (purpose, in_logs): (Purpose, bool),
    ) -> Result<()> {
        match purpose {
            Purpose::Read => self.require_begun(ground, var, records, in_logs),
            Purpose::Write { .. } => Ok(()),
        }
    }

    /// What a selection is whose list of blocks was cut before, for this variable or one like it;
    /// `None` if it has to be looked at because it is beyond what there is.
    fn cut_before(
        &self,
        ground: &Ground,
        (id, grid): (VarId, &Grid),
        purpose: Purpose,
        (shared, record): (Arc<SharedRuns>, u64),
    ) -> Option<Checked> {
        let most = match purpose {
            Purpose::Read => self.records_known(ground),
            Purpose::Write { .. } => ground.header.schema.version.max_count(),
        };
        let records = match grid.has_records {
            false => 0,
            true => record.checked_add(1).filter(|records| *records <= most)?,
        };
        let base = self.space.begin(id, grid, record)?;
        base.checked_add(shared.end()).filter(|end| *end <= i64::MAX as u64)?;
        let elements = shared.bytes() / grid.size;
        let extent = Extent::of_shared(shared, base, grid.size);
        let (parts, gaps, whole_records) = (None, Vec::new(), None);
        let space = Space::Own;
        Some(Checked { elements, records, extent, whole_records, parts, gaps, space })
    }
}

impl Chunked {
    /// Records that there are, with those that this rank alone knows of.
    pub(super) fn records_known(&self, ground: &Ground) -> u64 {
        ground.records.max(self.deferred_records())
    }

    fn cuts(&self) -> MutexGuard<'_, Memo<SharedRuns>> {
        self.cuts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What lists of blocks are cut alike in: shape, chunks and size of an element.
fn frame(grid: &Grid) -> (Vec<u64>, bool) {
    let numbers = grid.dims.iter().chain(&grid.chunk).chain([&grid.size]);
    (numbers.copied().collect(), grid.has_records)
}
