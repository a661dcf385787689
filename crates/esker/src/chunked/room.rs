//! More room for chunks before the records of traditional variables.

use esker_comm::CommunicatorExt;
use esker_format::{Header, NumRecs};

use super::define::physical;
use super::{Chunked, Fresh, Placing};
use crate::commit::{self, New};
use crate::define::Before;
use crate::error::{Error, Result};
use crate::ground::Ground;

impl Chunked {
    /// Moves the records of traditional variables away so that the heap can become `needed` bytes
    /// long, and half as long again as it could until now: then all moves together cost what the data
    /// do. A new file takes the place of the old one, which is whole until then. Collective.
    pub(super) fn make_room(&mut self, ground: &mut Ground, needed: u64) -> Result<()> {
        self.agree_on_records(ground)?;
        // What is being read may move.
        ground.io.drain();
        self.settle_end(ground)?;
        let mut base = ground.base.clone();
        let records = ground.records;
        let mut before = Before::new(ground.file.clone(), &ground.header, records);
        before.lock = ground.lock.take();
        before.heap = (self.heap.begin, self.heap.end.unwrap_or(0));
        let room = self.heap.limit.map_or(needed, |limit| needed.max(limit + limit / 2));
        base.hints.chunk_room = Some(room);
        let known = (&before.header, Some(&*self), records);
        let moved = physical(&base, &self.schema, Some(known), Fresh::default());
        let moved = moved.and_then(|placing| {
            let placing = placing.ok_or(Error::Garbled)?;
            let Placing { schema, layout, .. } = &placing;
            let (schema, layout) = (schema.clone(), layout.clone());
            let header = Header { schema, numrecs: NumRecs::Count(records), layout };
            // Nothing is new, so that nothing is filled.
            let (fills, maps) = (&[], &[]);
            let placed = Some(&placing);
            let (contents, groups, part) = (&[][..], None, None);
            let new = New { header: &header, fills, maps, contents, placing: placed, groups, part };
            let committed = commit::update(&base, &before, &new)?;
            Ok((committed, header, placing.heap))
        });
        let (committed, header, heap) = match moved {
            Ok(moved) => moved,
            Err(error) => {
                ground.lock = before.lock;
                return Err(error);
            }
        };
        ground.lock = committed.lock.or(before.lock);
        ground.file_moved(committed.file, committed.renamed, header);
        let Some(anew) = Chunked::of(&ground.header, &ground.base) else { return Ok(()) };
        ground.shown = Some(anew.schema.clone());
        let old = std::mem::replace(self, *anew);
        (self.heap, self.grown) = (heap, old.grown);
        (self.mending, self.claimed) = (old.mending, old.claimed);
        self.keep_records(&old);
        Ok(())
    }

    /// Makes the records that any rank has made everyone's. Collective.
    fn agree_on_records(&mut self, ground: &mut Ground) -> Result<()> {
        if ground.base.comm.size() == 1 {
            return Ok(());
        }
        let records = ground.base.comm.max_u64(ground.records)?;
        if NumRecs::Count(records) != ground.header.numrecs {
            self.forget_uncounted(ground)?;
        }
        ground.grow_together(records)
    }
}
