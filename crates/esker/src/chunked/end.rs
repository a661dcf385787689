//! The variable that a file with chunks ends with follows the chunks.
//!
//! It has the last bytes of a place of its own in the heap, and moves as chunks do: to a new place, and the old
//! one is a hole after the next sync. Its value means nothing, so that it does not matter in which order a loss
//! of power leaves value and header.

use esker_comm::CommunicatorExt;
use esker_format::chunked::{ALIGN, end_begin, end_field, end_of};
use esker_format::values::default_fill_bytes;
use esker_format::{ExternalType, Header, Placement};
use esker_store::File;

use super::Chunked;
use super::heap::room_for;
use crate::error::Result;
use crate::ground::Ground;

impl Chunked {
    /// Places in the heap, with their lengths, that variables of the file have: the one that ends it, and those
    /// that other programs may have added behind it.
    pub(super) fn variables_in_heap<'h>(
        &self,
        header: &'h Header,
    ) -> impl Iterator<Item = (u64, u64)> + use<'h> {
        let begin = self.heap.begin;
        // In the sub-filed form the heap is no part of the file.
        let end = match (&self.files, self.heap.limit) {
            (Some(_), _) => 0,
            (None, None) => u64::MAX,
            (None, Some(limit)) => begin.saturating_add(limit),
        };
        let fixed = header.vars().filter(|(_, variable, _)| !header.schema.is_record(variable));
        fixed.filter(move |(_, _, p)| p.begin < end).filter_map(move |(_, _, p)| room_of(p, begin))
    }

    /// The place in the heap that the variable has which ends it.
    fn end_room(&self, header: &Header) -> Option<(u64, u64)> {
        room_of(header.place(end_of(&header.schema)?)?, self.heap.begin)
    }
}

/// The places of a heap that a variable has, in whole.
fn room_of(place: &Placement, begin: u64) -> Option<(u64, u64)> {
    let at = place.begin.checked_sub(begin)?;
    let end = room_for(at.checked_add(place.vsize)?);
    let at = at / ALIGN * ALIGN;
    end.checked_add(begin)?;
    Some((at, end - at))
}

impl Chunked {
    /// Moves the variable that ends the heap behind what was written. Collective.
    pub(crate) fn settle_end(&mut self, ground: &mut Ground) -> Result<()> {
        let Some(var) = end_of(&ground.header.schema) else { return Ok(()) };
        // Before records it stays where it is.
        let (None, None, Some(end)) = (&self.files, self.heap.limit, self.heap.end) else {
            return Ok(());
        };
        let begin = self.heap.begin;
        let moved = ground.base.by_root(|| self.move_end(ground, begin, end))?;
        let moved = ground.base.comm.max_u64(moved.unwrap_or(0))?;
        if moved == 0 {
            return Ok(());
        }
        let root = ground.base.is_root();
        let old = self.end_room(&ground.header);
        if let Some(place) = ground.header.layout.places.get_mut(var.0) {
            place.begin = end_begin(begin + moved);
        }
        self.heap.end = Some(moved);
        if root {
            // What a failed call has left behind the end, and the old place.
            self.heap.add_hole(end, (moved - ALIGN).saturating_sub(end));
            self.heap.put(moved - ALIGN);
            if let Some((place, room)) = old.filter(|(place, _)| *place < end) {
                self.heap.free(place, room);
            }
        }
        Ok(())
    }

    /// Writes the end variable behind the heap, which ends at `end`, and all that the file has; gives where the
    /// heap ends then, or 0 if nothing has moved.
    fn move_end(&self, ground: &Ground, begin: u64, end: u64) -> Result<u64> {
        let file_len = ground.file.len()?;
        if file_len <= ground.header.fixed_end() {
            return Ok(0);
        }
        let moved = end.max(room_for(file_len.saturating_sub(begin))) + ALIGN;
        let place = end_begin(begin + moved);
        // CDF-1 has no offsets beyond 2 GiB: there the variable stays where it was.
        let Some((at, field)) = end_field(&ground.header, place) else { return Ok(0) };
        self.require_sole(ground)?;
        write_end(&*ground.file, place)?;
        ground.file.write_at(at, &field)?;
        Ok(moved)
    }
}

/// Writes the value of an end variable that begins there.
pub(crate) fn write_end(file: &dyn File, begin: u64) -> Result<()> {
    Ok(file.write_at(begin, &default_fill_bytes(ExternalType::Int))?)
}
