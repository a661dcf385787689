//! More room for chunks before the records of traditional variables.

use esker_format::{Header, NumRecs};

use super::define::physical;
use super::{Chunked, Fresh, Placing};
use crate::commit::{self, New};
use crate::dataset::Dataset;
use crate::define::Before;
use crate::error::{Error, Result};

impl Dataset {
    /// Moves the records of traditional variables away so that the heap can become `needed` bytes
    /// long, and half as long again as it could until now: then all moves together cost what the data
    /// do. A new file takes the place of the old one, which is whole until then. Collective.
    pub(super) fn make_room(&mut self, needed: u64) -> Result<()> {
        self.sync_records()?;
        // What is being read may move.
        self.io.drain();
        self.settle_end()?;
        let mut base = self.base.clone();
        let records = self.records;
        let mut before = Before::new(self.file.clone(), &self.header, records);
        let Some(chunked) = self.chunked.take() else { return Ok(()) };
        before.lock = self.lock.take();
        let room = chunked.heap.limit.map_or(needed, |limit| needed.max(limit + limit / 2));
        base.hints.chunk_room = Some(room);
        before.chunked = Some(chunked);
        let moved = before.chunked.as_deref().map_or(Err(Error::Garbled), |chunked| {
            let known = (&before.header, Some(chunked), records);
            let placing = physical(&base, &chunked.schema, Some(known), Fresh::default())?;
            let placing = placing.ok_or(Error::Garbled)?;
            let Placing { schema, layout, .. } = &placing;
            let (schema, layout) = (schema.clone(), layout.clone());
            let header = Header { schema, numrecs: NumRecs::Count(records), layout };
            // Nothing is new, so that nothing is filled.
            let (fills, maps) = (&[], &[]);
            let placed = Some(&placing);
            let (contents, groups) = (&[][..], None);
            let new = New { header: &header, fills, maps, contents, placing: placed, groups };
            let committed = commit::update(&base, &before, &new)?;
            Ok((committed, header, placing.heap))
        });
        let (committed, header, heap) = match moved {
            Ok(moved) => moved,
            Err(error) => {
                (self.chunked, self.lock) = (before.chunked, before.lock);
                return Err(error);
            }
        };
        self.lock = committed.lock.or(before.lock);
        self.file_moved(committed.file, committed.renamed, header);
        let (mending, claimed) =
            before.chunked.map_or((false, false), |chunked| (chunked.mending, chunked.claimed));
        self.chunked = Chunked::of(&self.header, &self.base);
        if let Some(chunked) = &mut self.chunked {
            (chunked.heap, chunked.mending, chunked.claimed) = (heap, mending, claimed);
        }
        Ok(())
    }
}
