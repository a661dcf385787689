//! Entries of chunked variables, as addresses of the space that chunks are planned in.
//!
//! An entry numbers the elements of a record in C order. Here it becomes hyperslabs again, which are
//! cut at the borders of chunks as those of a caller are.

use std::ops::Range;

use esker_format::log::{Entry, Footprint};

use crate::chunked::{ChunkId, Chunked, ChunkedVar};
use crate::plan::Extent;
use crate::slabs::{Array, Levels};

/// What the variable of an entry is, as the entry numbers its elements.
pub(super) struct Shape<'c> {
    chunked: &'c Chunked,
    var: &'c ChunkedVar,
    id: esker_format::VarId,
    array: Array,
    /// The part of the space that is looked at.
    within: &'c Range<u64>,
}

impl<'c> Shape<'c> {
    /// Of a variable and an entry that is within it; fails where the entry makes no sense.
    pub(super) fn new(
        chunked: &'c Chunked,
        (id, var): (esker_format::VarId, &'c ChunkedVar),
        entry: &Entry,
        within: &'c Range<u64>,
    ) -> Result<Shape<'c>, &'static str> {
        const OUTSIDE: &str = "it lies outside of the variable";
        let grid = var.grid();
        let mut lens = grid.dims.clone();
        let records = entry.write.records.end().ok_or(OUTSIDE)?;
        if grid.has_records {
            lens[0] = records;
            let last = grid.chunks(records).checked_sub(1).ok_or(OUTSIDE)?;
            chunked.space.address(ChunkId { var: id, number: last }).ok_or(OUTSIDE)?;
        }
        let array = Array::new(lens).ok_or(OUTSIDE)?;
        Ok(Shape { chunked, var, id, array, within })
    }

    /// Elements from one record to the next; 0 without records.
    pub(super) fn record(&self) -> u64 {
        if self.var.grid().has_records { self.array.steps[0] } else { 0 }
    }

    /// Adds elements to an extent; the first is number `element` of the portion. Gives whether any of
    /// them is in the part of the space that is looked at.
    pub(super) fn add(
        &self,
        first: u64,
        levels: &Levels,
        element: u64,
        extent: &mut Extent,
    ) -> Result<bool, &'static str> {
        let (mut any, mut placed) = (false, Some(()));
        let mut at = element;
        self.array.slabs(first, levels, &mut |slab| {
            let grid = self.var.grid();
            let cut = self.chunked.space.cut_within(self.id, grid, slab, at, self.within, extent);
            match cut {
                Some(found) => any |= found,
                None => placed = None,
            }
            at += slab.count.iter().product::<u64>();
        });
        placed.map(|()| any).ok_or("it lies outside of the variable")
    }
}

/// The levels of a block: records, the levels of the footprint, and the run.
pub(super) fn levels_of(entry: &Entry, footprint: &Footprint, record: u64) -> Vec<(u64, u64)> {
    let records = &entry.write.records;
    let mut levels = vec![(records.count, records.step.saturating_mul(record))];
    if let Footprint::Block { run, levels: inner } = footprint {
        levels.extend(inner.iter().copied());
        levels.push((*run, 1));
    }
    levels
}
