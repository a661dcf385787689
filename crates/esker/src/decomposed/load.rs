//! Reading a map, in bounded memory, believing nothing.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use esker_format::VarId;

use super::error::DecompositionError;
use super::grid::Block;
use super::index::{Index, Piece, SlabList, settle};
use super::maps::{Decomposition, Elsewhere, Head, Map, Own};
use super::{BLOB_COUNT, BLOB_START, BLOCKS_OF, FIRST_BLOCK, LENGTHS, OFFSETS, part};
use crate::dataset::Dataset;
use crate::error::{Error, Result};
use crate::selection::Selection;

/// Blocks read at a time.
const SECTION: u64 = 64 << 10;

impl Dataset {
    /// The map of a decomposed variable; `None` for any other.
    pub fn decomposition(&self, var: VarId) -> Result<Option<Decomposition>> {
        let var = self.file_var(var)?;
        let Some(map) = self.maps.of_var(var) else { return Ok(None) };
        self.head(map, Some(var))?;
        Ok(map.describe())
    }

    /// Elements of this rank's blob of a decomposed variable, for each index of the dimensions before the map's.
    pub fn blob_elements(&self, var: VarId) -> Result<u64> {
        let var = self.file_var(var)?;
        let Some(map) = self.maps.of_var(var) else { return Err(self.not_decomposed(var)) };
        let head = self.head(map, Some(var))?;
        self.require_ranks(var, map, head)?;
        let blob = self.own_blob(map, head)?;
        Ok(blob.end - blob.start)
    }

    /// The maps that decomposed variables of this dataset have, but for damaged ones.
    pub fn decompositions(&self) -> Vec<Decomposition> {
        self.maps.iter().filter_map(Map::describe).collect()
    }

    pub(super) fn head<'m>(&self, map: &'m Map, var: Option<VarId>) -> Result<&'m Head> {
        map.head
            .as_ref()
            .map_err(|why| self.map_error(map, var, DecompositionError::Damaged(why.clone())))
    }

    pub(super) fn map_error(
        &self,
        map: &Map,
        var: Option<VarId>,
        source: DecompositionError,
    ) -> Error {
        let name = var.and_then(|var| self.header.schema.variable(var)).map(|v| &*v.name);
        let what = match name {
            Some(var) => format!("variable \"{var}\" (map {})", map.name),
            None => format!("map {}", map.name),
        };
        Error::Decomposition { path: self.base.path.clone(), what, source }
    }

    fn damaged(&self, map: &Map, why: String) -> Error {
        self.map_error(map, None, DecompositionError::Damaged(why))
    }

    /// Numbers of one of the map's variables.
    fn map_numbers(&self, map: &Map, what: &str, at: Range<u64>) -> Result<Vec<u64>> {
        let var = self.var(&part(&map.name, what))?;
        let selection = Selection::slab(&[at.start], &[at.end - at.start]);
        let numbers: Vec<i64> = self.get(var, &selection)?;
        let number = |n: &i64| {
            let negative = |_| self.damaged(map, format!("{what} has the number {n}"));
            u64::try_from(*n).map_err(negative)
        };
        numbers.iter().map(number).collect()
    }

    /// The map's blocks `at`, the first of which is stored at `position`, which is moved on.
    fn map_blocks(
        &self,
        map: &Map,
        head: &Head,
        at: Range<u64>,
        position: &mut u64,
    ) -> Result<Vec<Block>> {
        let mut blocks: Vec<Block> = Vec::new();
        let mut from = at.start;
        while from < at.end {
            let to = (from + SECTION).min(at.end);
            let offsets = self.map_numbers(map, OFFSETS, from..to)?;
            let lengths = self.map_numbers(map, LENGTHS, from..to)?;
            blocks.reserve_exact(offsets.len());
            for (i, (first, len)) in offsets.into_iter().zip(lengths).enumerate() {
                let last = len.checked_sub(1).and_then(|n| first.checked_add(n));
                let elements = last.and_then(|last| head.grid.elements(first, last));
                let (Some(last), Some(elements)) = (last, elements) else {
                    let (block, shape) = (from + i as u64, head.grid.lens());
                    let why = format!(
                        "block {block} (offset {first}, length {len}) is none of {shape:?}"
                    );
                    return Err(self.damaged(map, why));
                };
                blocks.push(Block { first, last, position: *position });
                *position += elements;
                if *position > head.stored {
                    return Err(self.wrong_total(map, head));
                }
            }
            from = to;
        }
        Ok(blocks)
    }

    fn wrong_total(&self, map: &Map, head: &Head) -> Error {
        let (blocks, stored) = (head.blocks, head.stored);
        let why = format!("its {blocks} blocks do not have the {stored} elements that are stored");
        self.damaged(map, why)
    }

    /// The pieces of hyperslabs that any rank has, settled. Their bases are disjoint.
    pub(super) fn ask_map(&self, map: &Map, head: &Head, slabs: &SlabList) -> Result<Vec<Piece>> {
        let mut pieces = Vec::new();
        let mut ask = |index: &Index| index.ask(&head.grid, slabs, &mut pieces);
        let budget = self.base.hints.index_memory;
        if Index::memory(head.blocks) <= budget {
            ask(&*self.whole_index(map, head)?);
        } else {
            // A section at a time, in the order in which they are stored.
            let section = (budget / Index::memory(1)).max(1024);
            let (mut from, mut position) = (0, 0);
            while from < head.blocks {
                let to = (from + section).min(head.blocks);
                ask(&Index::new(self.map_blocks(map, head, from..to, &mut position)?));
                from = to;
            }
            if position != head.stored {
                return Err(self.wrong_total(map, head));
            }
        }
        settle(&mut pieces);
        Ok(pieces)
    }

    fn whole_index(&self, map: &Map, head: &Head) -> Result<Arc<Index>> {
        kept(&map.index, || {
            let mut position = 0;
            let blocks = self.map_blocks(map, head, 0..head.blocks, &mut position)?;
            if position != head.stored {
                return Err(self.wrong_total(map, head));
            }
            Ok(Arc::new(Index::new(blocks)))
        })
    }

    /// The places of this rank's blob. The map has as many ranks as the dataset.
    pub(super) fn own_blob(&self, map: &Map, head: &Head) -> Result<Range<u64>> {
        kept(&map.blob, || {
            let start = self.own_number(map, BLOB_START)?;
            let count = self.own_number(map, BLOB_COUNT)?;
            match start.checked_add(count).filter(|end| *end <= head.stored) {
                Some(end) => Ok(start..end),
                None => {
                    let rank = self.base.comm.rank();
                    let why = format!(
                        "the blob of rank {rank} ({count} elements from {start}) is beyond the {} that are stored",
                        head.stored
                    );
                    Err(self.damaged(map, why))
                }
            }
        })
    }

    fn own_number(&self, map: &Map, what: &str) -> Result<u64> {
        let rank = self.base.comm.rank() as u64;
        Ok(self.map_numbers(map, what, rank..rank + 1)?.first().copied().unwrap_or(0))
    }

    /// This rank's part of the map. The map has as many ranks as the dataset.
    pub(super) fn own_part(&self, map: &Map, head: &Head) -> Result<Arc<Own>> {
        kept(&map.own, || {
            let blob = self.own_blob(map, head)?;
            let first = self.own_number(map, FIRST_BLOCK)?;
            let count = self.own_number(map, BLOCKS_OF)?;
            let end = first.checked_add(count).filter(|end| *end <= head.blocks);
            let end = end.ok_or_else(|| self.wrong_total(map, head))?;
            let mut position = blob.start;
            let blocks = self.map_blocks(map, head, first..end, &mut position)?;
            if position != blob.end {
                return Err(self.wrong_total(map, head));
            }
            let elsewhere = self.elsewhere(map, head, &blob, &blocks)?;
            let index = Index::new(blocks.clone());
            Ok(Arc::new(Own { blob, blocks, index, elsewhere }))
        })
    }

    /// Which of this rank's elements a higher rank has too.
    fn elsewhere(
        &self,
        map: &Map,
        head: &Head,
        blob: &Range<u64>,
        blocks: &[Block],
    ) -> Result<Vec<Elsewhere>> {
        if !head.repeats {
            return Ok(Vec::new());
        }
        // The elements of the question are numbered as they are stored.
        let numbered = blocks.iter().map(|block| (block, block.position));
        let slabs = SlabList::of_blocks(&head.grid, numbered);
        let pieces = self.ask_map(map, head, &slabs)?;
        let other = pieces.iter().filter(|piece| !blob.contains(&piece.position));
        let elsewhere = other.map(|piece| Elsewhere {
            position: piece.element,
            len: piece.len,
            home: piece.position,
        });
        Ok(elsewhere.collect())
    }
}

/// What is there, or what `make` makes. An error is not kept.
fn kept<T: Clone>(place: &OnceLock<T>, make: impl FnOnce() -> Result<T>) -> Result<T> {
    if let Some(there) = place.get() {
        return Ok(there.clone());
    }
    let made = make()?;
    Ok(place.get_or_init(|| made).clone())
}
