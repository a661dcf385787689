//! Reading a map, in bounded memory, believing nothing.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use esker_format::VarId;

use super::error::DecompositionError;
use super::grid::Block;
use super::index::{Index, Piece, SlabList, settle};
use super::maps::{Decomposition, Elsewhere, Head, Map, Own};
use super::rows::{Row, Walk};
use super::{BLOCKS_OF, part};
use crate::dataset::Dataset;
use crate::error::{Error, Result};
use crate::selection::Selection;

/// Blocks that are looked at in one go by who wants to know whether they are sound.
const AT_ONCE: u64 = 64 << 10;

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

    /// What is wrong with maps that variables have, by name; all of each is read, and compared with its checksums.
    pub fn decomposition_faults(&self) -> Vec<(String, String)> {
        let fault = |map: &Map| {
            let walked = self.head(map, None).and_then(|head| {
                let mut walk = Walk::new(self, map, head);
                while !walk.next(AT_ONCE)?.is_empty() {}
                match walk.position == head.stored {
                    true => Ok(()),
                    false => Err(self.wrong_total(map, head)),
                }
            });
            match walked {
                Ok(()) => None,
                Err(Error::Decomposition { source, .. }) => Some(source.to_string()),
                Err(error) => Some(error.to_string()),
            }
        };
        self.maps.iter().filter_map(|map| Some((map.name.clone(), fault(map)?))).collect()
    }

    pub(super) fn head<'m>(&self, map: &'m Map, var: Option<VarId>) -> Result<&'m Head> {
        if !self.broken.is_empty() {
            // The seal of a map is that of its first variable.
            self.file_var(self.var(&part(&map.name, BLOCKS_OF))?)?;
        }
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

    pub(super) fn damaged(&self, map: &Map, why: String) -> Error {
        self.map_error(map, None, DecompositionError::Damaged(why))
    }

    /// Numbers of one of the map's variables.
    pub(super) fn map_numbers(&self, map: &Map, what: &str, at: Range<u64>) -> Result<Vec<u64>> {
        let var = self.var(&part(&map.name, what))?;
        let selection = Selection::slab(&[at.start], &[at.end - at.start]);
        let numbers: Vec<i64> = self.get(var, &selection)?;
        let number = |n: &i64| {
            let negative = |_| self.damaged(map, format!("{what} has the number {n}"));
            u64::try_from(*n).map_err(negative)
        };
        numbers.iter().map(number).collect()
    }

    pub(super) fn wrong_total(&self, map: &Map, head: &Head) -> Error {
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
            let mut walk = Walk::new(self, map, head);
            loop {
                let blocks = walk.next(section)?;
                if blocks.is_empty() {
                    break;
                }
                ask(&Index::new(blocks));
            }
            if walk.position != head.stored {
                return Err(self.wrong_total(map, head));
            }
        }
        settle(&mut pieces);
        Ok(pieces)
    }

    fn whole_index(&self, map: &Map, head: &Head) -> Result<Arc<Index>> {
        kept(&map.index, || {
            let mut walk = Walk::new(self, map, head);
            let blocks = walk.rest()?;
            if walk.position != head.stored {
                return Err(self.wrong_total(map, head));
            }
            Ok(Arc::new(Index::new(blocks)))
        })
    }

    /// The places of this rank's blob. The map has as many ranks as the dataset.
    pub(super) fn own_blob(&self, map: &Map, head: &Head) -> Result<Range<u64>> {
        kept(&map.blob, || {
            let Row { start, elements: count, .. } = self.own_row(map, head)?;
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

    fn own_row(&self, map: &Map, head: &Head) -> Result<Row> {
        let rank = self.base.comm.rank() as u64;
        let rows = self.map_rows(map, head, rank..rank + 1)?;
        rows.first().copied().ok_or_else(|| self.wrong_total(map, head))
    }

    /// This rank's part of the map. The map has as many ranks as the dataset.
    pub(super) fn own_part(&self, map: &Map, head: &Head) -> Result<Arc<Own>> {
        kept(&map.own, || {
            let blob = self.own_blob(map, head)?;
            let (rank, row) = (self.base.comm.rank() as u64, self.own_row(map, head)?);
            let blocks = Walk::of(self, map, head, (rank, row)).rest()?;
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
