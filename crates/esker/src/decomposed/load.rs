//! Reading a map, in bounded memory, believing nothing.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use esker_format::VarId;

use super::grid::Block;
use super::index::{Index, Piece, SlabList, settle};
use super::maps::{Decomposition, Elsewhere, Head, Map, Mapped, Own};
use super::rows::{Row, Walk};
use super::{BLOCKS_OF, part};
use crate::canonical;
use crate::dataset::Dataset;
use crate::error::{DecompositionError, Error, Result};
use crate::ground::Ground;
use crate::selection::Selection;

/// Blocks that are looked at in one go by who wants to know whether they are sound.
const AT_ONCE: u64 = 64 << 10;

impl Dataset {
    /// The map of a decomposed variable; `None` for any other.
    pub fn decomposition(&self, var: VarId) -> Result<Option<Decomposition>> {
        let var = self.file_var(var)?;
        let Some(map) = self.map_of(var) else { return Ok(None) };
        map.head(&self.ground, Some(var))?;
        Ok(map.describe())
    }

    /// Elements of this rank's blob of a decomposed variable, for each index of the dimensions before the map's.
    pub fn blob_elements(&self, var: VarId) -> Result<u64> {
        let (var, ground) = (self.file_var(var)?, &self.ground);
        let Some(map) = self.map_of(var) else { return Err(ground.not_decomposed(var)) };
        let head = map.head(ground, Some(var))?;
        map.require_ranks(ground, var, head)?;
        let blob = map.own_blob(ground, head)?;
        Ok(blob.end - blob.start)
    }

    /// The maps that decomposed variables of this dataset have, but for damaged ones.
    pub fn decompositions(&self) -> Vec<Decomposition> {
        self.maps().filter_map(Map::describe).collect()
    }

    /// What is wrong with maps that variables have, by name; all of each is read, and compared with its checksums.
    pub fn decomposition_faults(&self) -> Vec<(String, String)> {
        let ground = &self.ground;
        let fault = |map: &Map| {
            let walked = map.head(ground, None).and_then(|head| {
                let mut walk = Walk::new(ground, map, head);
                while !walk.next(AT_ONCE)?.is_empty() {}
                match walk.position == head.stored {
                    true => Ok(()),
                    false => Err(map.wrong_total(ground, head)),
                }
            });
            match walked {
                Ok(()) => None,
                Err(Error::Decomposition { source, .. }) => Some(source.to_string()),
                Err(error) => Some(error.to_string()),
            }
        };
        self.maps().filter_map(|map| Some((map.name.clone(), fault(map)?))).collect()
    }

    fn maps(&self) -> impl Iterator<Item = &Map> {
        self.layout.get::<Mapped>().into_iter().flat_map(Mapped::iter)
    }

    fn map_of(&self, var: VarId) -> Option<&Map> {
        self.layout.get::<Mapped>()?.of_var(var)
    }
}

impl Map {
    pub(super) fn head(&self, ground: &Ground, var: Option<VarId>) -> Result<&Head> {
        if !ground.broken.is_empty() {
            // The seal of a map is that of its first variable.
            ground.require_unbroken(ground.var(&part(&self.name, BLOCKS_OF))?)?;
        }
        let damaged = |why: &String| DecompositionError::Damaged(why.clone());
        self.head.as_ref().map_err(|why| self.error(ground, var, damaged(why)))
    }

    pub(super) fn error(
        &self,
        ground: &Ground,
        var: Option<VarId>,
        source: DecompositionError,
    ) -> Error {
        let name = var.and_then(|var| ground.header.schema.variable(var)).map(|v| &*v.name);
        let what = match name {
            Some(var) => format!("variable \"{var}\" (map {})", self.name),
            None => format!("map {}", self.name),
        };
        Error::Decomposition { path: ground.base.path.clone(), what, source }
    }

    pub(super) fn damaged(&self, ground: &Ground, why: String) -> Error {
        self.error(ground, None, DecompositionError::Damaged(why))
    }

    /// Numbers of one of the map's variables.
    pub(super) fn numbers(&self, ground: &Ground, what: &str, at: Range<u64>) -> Result<Vec<u64>> {
        let var = ground.var(&part(&self.name, what))?;
        let selection = Selection::slab(&[at.start], &[at.end - at.start]);
        let numbers: Vec<i64> = canonical::get(ground, var, &selection)?;
        let number = |n: &i64| {
            let negative = |_| self.damaged(ground, format!("{what} has the number {n}"));
            u64::try_from(*n).map_err(negative)
        };
        numbers.iter().map(number).collect()
    }

    pub(super) fn wrong_total(&self, ground: &Ground, head: &Head) -> Error {
        let (blocks, stored) = (head.blocks, head.stored);
        let why = format!("its {blocks} blocks do not have the {stored} elements that are stored");
        self.damaged(ground, why)
    }

    /// The pieces of hyperslabs that any rank has, settled. Their bases are disjoint.
    pub(super) fn ask(&self, ground: &Ground, head: &Head, slabs: &SlabList) -> Result<Vec<Piece>> {
        let mut pieces = Vec::new();
        let mut ask = |index: &Index| index.ask(&head.grid, slabs, &mut pieces);
        let budget = ground.base.hints.index_memory;
        if Index::memory(head.blocks) <= budget {
            ask(&*self.whole_index(ground, head)?);
        } else {
            // A section at a time, in the order in which they are stored.
            let section = (budget / Index::memory(1)).max(1024);
            let mut walk = Walk::new(ground, self, head);
            loop {
                let blocks = walk.next(section)?;
                if blocks.is_empty() {
                    break;
                }
                ask(&Index::new(blocks));
            }
            if walk.position != head.stored {
                return Err(self.wrong_total(ground, head));
            }
        }
        settle(&mut pieces);
        Ok(pieces)
    }

    fn whole_index(&self, ground: &Ground, head: &Head) -> Result<Arc<Index>> {
        kept(&self.index, || {
            let mut walk = Walk::new(ground, self, head);
            let blocks = walk.rest()?;
            if walk.position != head.stored {
                return Err(self.wrong_total(ground, head));
            }
            Ok(Arc::new(Index::new(blocks)))
        })
    }

    /// The places of this rank's blob. The map has as many ranks as the dataset.
    pub(super) fn own_blob(&self, ground: &Ground, head: &Head) -> Result<Range<u64>> {
        kept(&self.blob, || {
            let Row { start, elements: count, .. } = self.own_row(ground, head)?;
            match start.checked_add(count).filter(|end| *end <= head.stored) {
                Some(end) => Ok(start..end),
                None => {
                    let rank = ground.base.comm.rank();
                    let why = format!(
                        "the blob of rank {rank} ({count} elements from {start}) is beyond the {} that are stored",
                        head.stored
                    );
                    Err(self.damaged(ground, why))
                }
            }
        })
    }

    fn own_row(&self, ground: &Ground, head: &Head) -> Result<Row> {
        let rank = ground.base.comm.rank() as u64;
        let rows = self.rows(ground, head, rank..rank + 1)?;
        rows.first().copied().ok_or_else(|| self.wrong_total(ground, head))
    }

    /// This rank's part of the self. The map has as many ranks as the dataset.
    pub(super) fn own_part(&self, ground: &Ground, head: &Head) -> Result<Arc<Own>> {
        kept(&self.own, || {
            let blob = self.own_blob(ground, head)?;
            let (rank, row) = (ground.base.comm.rank() as u64, self.own_row(ground, head)?);
            let blocks = Walk::of(ground, self, head, (rank, row)).rest()?;
            let elsewhere = self.elsewhere(ground, head, &blob, &blocks)?;
            let index = Index::new(blocks.clone());
            Ok(Arc::new(Own { blob, blocks, index, elsewhere }))
        })
    }

    /// Which of this rank's elements a higher rank has too.
    fn elsewhere(
        &self,
        ground: &Ground,
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
        let pieces = self.ask(ground, head, &slabs)?;
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
