//! Copying the data of one layout into another, in bounded memory, by all ranks together.

use esker_format::{Header, VarId, values};
use esker_store::File;

use crate::define::Before;
use crate::error::Result;
use crate::fill::fill_records;
use crate::share::Share;

/// Which part of a move is a rank's, and how many bytes it holds at a time.
#[derive(Clone, Copy)]
pub(crate) struct Turn {
    pub(crate) share: Share,
    pub(crate) at_once: u64,
}

/// Copies this rank's share of the data of `before` to where `header` has them in `to`, with fill values in the
/// records of variables that are new and filled.
pub(crate) fn copy_data(
    before: &Before,
    header: &Header,
    fills: &[bool],
    to: &dyn File,
    turn: Turn,
) -> Result<()> {
    let (old, share) = (&before.header, turn.share);
    let copy = |from: u64, place: u64, len: u64| {
        copy_part(&*before.file, from, to, place, share.of(len), turn.at_once)
    };
    for Stretch { from, to, len } in fixed(old, header) {
        copy(from, to, len)?;
    }
    if before.records == 0 {
        return Ok(());
    }
    if old.layout.record_begin.is_none() {
        // Only chunked variables had records until now.
        let mine = share.items(before.records);
        let filled = |id: VarId| fills.get(id.0).copied().unwrap_or(false);
        return fill_records(to, header, mine.start, mine.end, filled);
    }
    if same_records(old, header) {
        // One long copy when the records themselves did not change.
        let (from, place) = (old.layout.record_begin, header.layout.record_begin);
        let (from, place) = (from.unwrap_or(0), place.unwrap_or(0));
        let len = old.data_end(before.records) - from;
        return copy(from, place, len);
    }
    copy_records(before, header, fills, to, turn)
}

/// Bytes that move as one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stretch {
    from: u64,
    to: u64,
    len: u64,
}

impl Stretch {
    /// Whether another one goes on behind this one in both files, with no more than a variable's padding between them.
    fn goes_on(&self, next: &Stretch) -> bool {
        const PADDING: u64 = 3;
        let between = next.from.checked_sub(self.from + self.len);
        between.is_some_and(|n| n <= PADDING)
            && next.to.checked_sub(self.to) == Some(next.from - self.from)
    }
}

/// The fixed-size variables, as few stretches: a file may have thousands of small ones.
fn fixed(old: &Header, new: &Header) -> Vec<Stretch> {
    let variables = old.vars().filter(|(_, var, _)| !old.schema.is_record(var));
    let mut each: Vec<Stretch> = variables
        .map(|(id, _, place)| {
            let (from, to) = (place.begin, new.layout.places[id.0].begin);
            Stretch { from, to, len: place.bytes }
        })
        .collect();
    each.sort_by_key(|stretch| stretch.from);
    let mut joined: Vec<Stretch> = Vec::new();
    for next in each {
        match joined.last_mut() {
            Some(last) if last.goes_on(&next) => last.len = next.from + next.len - last.from,
            _ => joined.push(next),
        }
    }
    joined
}

/// Copies this part of what begins at `at` in one file and at `place` in the other.
pub(crate) fn copy_part(
    from: &dyn File,
    at: u64,
    to: &dyn File,
    place: u64,
    part: std::ops::Range<u64>,
    at_once: u64,
) -> Result<()> {
    copy_range(from, at + part.start, to, place + part.start, part.end - part.start, at_once)
}

/// Whether a record has the same bytes in both layouts.
fn same_records(old: &Header, new: &Header) -> bool {
    let base = |h: &Header| h.layout.record_begin.unwrap_or(0);
    let pairs = old.vars().zip(&new.layout.places);
    old.layout.record_size == new.layout.record_size
        && pairs
            .filter(|((_, var, _), _)| old.schema.is_record(var))
            .all(|((_, _, from), to)| from.begin - base(old) == to.begin - base(new))
}

/// Copies `len` bytes; what the source does not have any more stays as it is in `to`.
fn copy_range(
    from: &dyn File,
    mut at: u64,
    to: &dyn File,
    mut place: u64,
    len: u64,
    at_once: u64,
) -> Result<()> {
    let mut buffer = vec![0; len.min(at_once) as usize];
    let mut left = len;
    while left > 0 {
        let part = &mut buffer[..left.min(at_once) as usize];
        let n = from.read_at(at, part)?;
        to.write_at(place, &part[..n])?;
        if n < part.len() {
            break;
        }
        (at, place, left) = (at + n as u64, place + n as u64, left - n as u64);
    }
    Ok(())
}

/// A variable's bytes in a record of the old and of the new layout.
struct Moved {
    from: Option<u64>,
    to: u64,
    bytes: u64,
    fill: Option<Vec<u8>>,
}

/// Copies records whose shape changed: as many at a time as the buffers hold, or, when one
/// record is larger than a buffer, variable by variable.
fn copy_records(
    before: &Before,
    header: &Header,
    fills: &[bool],
    to: &dyn File,
    turn: Turn,
) -> Result<()> {
    let old = &before.header;
    let (old_begin, new_begin) = match (old.layout.record_begin, header.layout.record_begin) {
        (Some(old), Some(new)) => (old, new),
        _ => return Ok(()),
    };
    let (old_size, new_size) = (old.layout.record_size, header.layout.record_size);
    let pieces: Vec<Moved> = header
        .vars()
        .filter(|(_, var, _)| header.schema.is_record(var))
        .map(|(id, var, place)| {
            let from = old.layout.places.get(id.0).map(|p| p.begin - old_begin);
            let wanted = from.is_none() && fills.get(id.0).copied().unwrap_or(false);
            let fill = wanted.then(|| values::fill_bytes(var));
            Moved { from, to: place.begin - new_begin, bytes: place.bytes, fill }
        })
        .collect();
    if new_size.max(old_size) > turn.at_once {
        return copy_large_records(before, header, &pieces, to, turn);
    }
    let mine = turn.share.items(before.records);
    let batch = (turn.at_once / new_size.max(old_size).max(1)).max(1);
    let batch = batch.min(mine.end.saturating_sub(mine.start));
    let mut read = vec![0; (batch * old_size) as usize];
    let mut record = mine.start;
    while record < mine.end {
        let n = batch.min(mine.end - record);
        let source = &mut read[..(n * old_size) as usize];
        let got = before.file.read_at(old_begin + record * old_size, source)?;
        source[got..].fill(0);
        let mut write = vec![0; (n * new_size) as usize];
        for i in 0..n {
            for piece in &pieces {
                let start = (i * new_size + piece.to) as usize;
                let target = &mut write[start..start + piece.bytes as usize];
                match (piece.from, &piece.fill) {
                    (Some(from), _) => {
                        let start = (i * old_size + from) as usize;
                        target.copy_from_slice(&source[start..start + piece.bytes as usize]);
                    }
                    (None, Some(fill)) => {
                        target.chunks_mut(fill.len()).for_each(|c| c.copy_from_slice(fill));
                    }
                    (None, None) => {}
                }
            }
        }
        to.write_at(new_begin + record * new_size, &write)?;
        record += n;
    }
    Ok(())
}

fn copy_large_records(
    before: &Before,
    header: &Header,
    pieces: &[Moved],
    to: &dyn File,
    turn: Turn,
) -> Result<()> {
    let old = &before.header.layout;
    let new = &header.layout;
    let (old_begin, new_begin) = (old.record_begin.unwrap_or(0), new.record_begin.unwrap_or(0));
    for record in turn.share.items(before.records) {
        for piece in pieces {
            let place = new_begin + record * new.record_size + piece.to;
            match (piece.from, &piece.fill) {
                (Some(from), _) => {
                    let at = old_begin + record * old.record_size + from;
                    copy_range(&*before.file, at, to, place, piece.bytes, turn.at_once)?;
                }
                (None, Some(fill)) => crate::fill::fill_range(to, place, piece.bytes, fill)?,
                (None, None) => {}
            }
        }
    }
    Ok(())
}
