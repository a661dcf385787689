//! A filter that loses something sees every value once.
//!
//! `sz` and the lossy modes of `zfp` add an error of up to the user's bound whenever they encode: a
//! chunk that is changed in part, decoded and encoded again would drift away from what was
//! written. So what has been through such a filter is stored without it from then on, until all of
//! it is written anew.

use esker_format::chunked::{Entry, Grid};
use esker_format::runs::advance;

use super::Chunking;
use crate::gathered::Gathered;

/// How the filters are to treat a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Treat {
    /// All filters.
    Whole,
    /// Values that were changed by filters are kept beside new ones.
    Keep,
    /// Nothing was lost yet, and more records are to come: they are encoded together, at the end.
    Wait,
}

impl Chunking {
    /// How to encode a chunk of which `gathered` holds what is written now, in a dataset of `existing`
    /// records.
    pub(super) fn treat(
        &self,
        number: u64,
        gathered: &Gathered,
        old: Option<&Entry>,
        existing: u64,
    ) -> Treat {
        let grid = &self.grid;
        if self.pipeline.settles() || gathered.is_covered(grid.bytes) {
            return Treat::Whole;
        }
        let kept = old.is_some() && !covers(grid, number, gathered, existing);
        match kept && old.is_some_and(|old| old.changed) {
            true => Treat::Keep,
            false if is_growing(grid, gathered) => Treat::Wait,
            false => Treat::Whole,
        }
    }
}

/// Whether everything in the chunk that could be a value of somebody is written now: what is outside
/// of the variable, or in records that do not exist, is fill, and fill values stay as they are.
fn covers(grid: &Grid, number: u64, gathered: &Gathered, existing: u64) -> bool {
    let index = grid.index(number);
    let mut lengths: Vec<u64> = (0..index.len())
        .map(|d| {
            let dim = if d == 0 && grid.has_records { existing } else { grid.dims[d] };
            dim.saturating_sub(index[d].saturating_mul(grid.chunk[d])).min(grid.chunk[d])
        })
        .collect();
    if lengths.contains(&0) {
        return true;
    }
    let steps = grid.steps();
    let row = lengths.pop().map_or(0, |n| n * grid.size);
    let mut at = vec![0; lengths.len()];
    loop {
        let offset: u64 = at.iter().zip(&steps).map(|(i, step)| i * step).sum();
        if !gathered.has_all(gathered.start() + offset, row) {
            return false;
        }
        if advance(&mut at, &lengths).is_none() {
            return true;
        }
    }
}

/// Whether the chunk holds several records, and nothing is written of its last one.
fn is_growing(grid: &Grid, gathered: &Gathered) -> bool {
    let records = grid.group_records();
    let record = grid.bytes / records.max(1);
    records > 1 && !gathered.has_any(gathered.start() + grid.bytes - record, record)
}
