//! What a log says of chunks that are read before it is flushed.

use std::any::Any;
use std::ops::Range;

use super::{ChunkId, Chunked};
use crate::error::{Error, Result};
use crate::layout::Over;
use crate::log::{View, Want};

/// Decoded chunks with the entries of logs over them.
pub(super) struct Overlay<'v> {
    view: &'v View,
    /// Records that the dataset has, with those of the logs.
    records: u64,
}

impl<'v> Overlay<'v> {
    /// What lies over the chunks that a rank reads alone.
    pub(super) fn new(over: &'v dyn Over, records: u64) -> Option<Overlay<'v>> {
        let over: &dyn Any = over;
        Some(Overlay { view: over.downcast_ref()?, records })
    }

    /// A chunk as its reader sees it.
    pub(super) fn over(&self, chunked: &Chunked, id: ChunkId, values: &[u8]) -> Result<Vec<u8>> {
        let var = chunked.of_chunk(id)?;
        let variable = chunked.schema.variable(id.var).ok_or(Error::Garbled)?;
        let (grid, mut values) = (var.grid(), values.to_vec());
        // A flush that failed may have left some of what is in the logs still.
        let counted = self.view.state().under_records;
        var.chunking.forget_records(id.number, counted, &mut values);
        let mut sides: Vec<Range<u64>> = Vec::new();
        for (d, index) in grid.index(id.number).into_iter().enumerate() {
            let len = if d == 0 && grid.has_records { self.records } else { grid.dims[d] };
            let start = index.saturating_mul(grid.chunk[d]).min(len);
            sides.push(start..len.min(start + grid.chunk[d]));
        }
        let steps = grid.steps();
        let (records, sides, steps, lens) = match grid.has_records {
            true => (sides[0].clone(), &sides[1..], &steps[1..], &grid.dims[1..]),
            false => (0..1, &sides[..], &steps[..], &grid.dims[..]),
        };
        let record_bytes = grid.bytes / grid.group_records().max(1);
        for (number, record) in records.enumerate() {
            let at = number as u64 * record_bytes;
            let wants = rows(sides, lens, steps, at);
            self.view.lay_over((id.var, variable), record, &wants, &mut values)?;
        }
        Ok(values)
    }
}

/// The rows of a box of an array: which elements of the array, and where in a chunk they are.
fn rows(sides: &[Range<u64>], lens: &[u64], steps: &[u64], at: u64) -> Vec<Want> {
    if sides.iter().any(|side| side.is_empty()) {
        return Vec::new();
    }
    // The first element of each row, and its place.
    let mut firsts = vec![(0u64, at)];
    let mut row = 1;
    for (d, side) in sides.iter().enumerate() {
        let is_last = d + 1 == sides.len();
        let indices = if is_last { side.start..side.start + 1 } else { side.clone() };
        let inner = |(element, at): &(u64, u64)| {
            let (element, at) = (*element, *at);
            let place = move |i: u64| (element * lens[d] + i, at + (i - side.start) * steps[d]);
            indices.clone().map(place)
        };
        firsts = firsts.iter().flat_map(inner).collect();
        if is_last {
            row = side.end - side.start;
        }
    }
    firsts.into_iter().map(|(from, at)| Want { from, to: from + row, at }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_those_of_the_box() {
        // Elements (1..3, 2..4) of an array of 5 by 6, in a chunk whose rows have 4 elements of 2 bytes.
        let found = rows(&[1..3, 2..4], &[5, 6], &[8, 2], 100);
        let found: Vec<_> = found.iter().map(|want| (want.from, want.to, want.at)).collect();
        assert_eq!(found, [(8, 10, 100), (14, 16, 108)]);
        let scalar = rows(&[], &[], &[], 7);
        assert_eq!((scalar[0].from, scalar[0].to, scalar[0].at), (0, 1, 7));
    }
}
