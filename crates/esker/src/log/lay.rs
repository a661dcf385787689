//! Laying out: pieces of the entries' payloads go to where a reader wants them.
//!
//! Entries lie over each other like layers, the oldest lowest. What is wanted is made a window at
//! a time, so that it stays in the cache until the last layer is on it; every block of a payload
//! is compared with its checksum before anything of it is handed out.

use std::sync::Arc;

use esker_format::log::BLOCK;
use esker_format::{VarId, Variable, values};
use esker_store::StoreError;

use super::copying::copy;
use super::filtered::Filtered;
use super::holes::Holes;
use super::index::{Found, Index};
use super::layers::{Layer, Loaded};
use super::view::{State, View};
use crate::plan::{Piece, later_wins, sort_by_offset};

/// Payload between two pieces that is read along.
pub(super) const HOLE: u64 = 16 * 1024;

/// How often elements were written over, on average, before it is worth finding the newest first.
pub(super) const OVERWRITTEN: f64 = 4.0;

/// Pieces that are sorted at once to find the newest, at most about.
const NEWEST: f64 = 1e6;

/// Payload that is read at once, so that it stays in the cache until it is laid out.
pub(super) const SPAN: u64 = 64 * 1024;

/// What is laid out at once of each layer, and at least of all together.
const WINDOW: u64 = 128 * 1024;
const LEAST_WINDOW: u64 = 256 * 1024;

/// What spans more than this is cut in two, if more entries touch it than there is room for.
pub(super) const LONG: u64 = 1 << 20;

/// Layers that keep what was read of their payloads from window to window.
const FEW: usize = 16;

/// A stretch of one record of one variable.
pub(super) struct Stretch<'h> {
    pub(super) var: VarId,
    pub(super) variable: &'h Variable,
    pub(super) record: u64,
    /// Where the variable's record begins in the file, and how many bytes it has.
    pub(super) begin: u64,
    pub(super) len: u64,
}

/// Elements of a stretch that are wanted, and where in the reader's memory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Want {
    pub(crate) from: u64,
    pub(crate) to: u64,
    pub(crate) at: u64,
}

/// A piece of a payload and where it goes, in bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Part {
    pub(super) from: u64,
    pub(super) at: u64,
    pub(super) len: u64,
}

/// What is to be laid out, and how.
#[derive(Clone, Copy)]
pub(super) struct Laying<'a> {
    pub(super) view: &'a View,
    pub(super) state: &'a State,
    pub(super) index: &'a Index,
    pub(super) stretch: &'a Stretch<'a>,
    /// Whether elements are wanted as this machine has them, not as the file has.
    pub(super) native: bool,
    /// Whether what is there already stays where there is no entry.
    pub(super) over: bool,
}

impl Laying<'_> {
    /// Puts the wanted elements, which are sorted, to their places in `out`: as many entries at a
    /// time as the index has room for, later ones over earlier ones.
    pub(super) fn lay(&self, wants: &[Want], out: &mut [u8]) -> esker_store::Result<()> {
        let (Some(first), Some(last)) = (wants.first(), wants.last()) else { return Ok(()) };
        let is_long = (last.to - first.from) * self.width() > LONG;
        let mut laying = *self;
        let mut after = None;
        loop {
            let Some((layers, newest)) = self.layers(wants, after, is_long)? else {
                return self.lay_halves(wants, out);
            };
            laying.lay_layers(layers, wants, out)?;
            if newest.is_none() {
                return Ok(());
            }
            (after, laying.over) = (newest, true);
        }
    }

    /// Lays the one half and then the other, each of which fewer entries touch.
    fn lay_halves(&self, wants: &[Want], out: &mut [u8]) -> esker_store::Result<()> {
        let (one, other) = match wants {
            [want] => {
                let half = (want.to - want.from) / 2;
                let (mid, at) = (want.from + half, want.at + half * self.width());
                ([Want { to: mid, ..*want }], [Want { from: mid, at, ..*want }])
            }
            _ => {
                let (one, other) = wants.split_at(wants.len() / 2);
                self.lay(one, out)?;
                return self.lay(other, out);
            }
        };
        self.lay(&one, out)?;
        self.lay(&other, out)
    }

    fn lay_layers(
        &self,
        mut layers: Vec<Layer>,
        wants: &[Want],
        out: &mut [u8],
    ) -> esker_store::Result<()> {
        let (Some(first), Some(last)) = (wants.first(), wants.last()) else { return Ok(()) };
        let shares = layers.iter().map(|layer| {
            let Found { first: low, end, elements, .. } = layer.found;
            let shared = end.min(last.to).saturating_sub(low.max(first.from));
            elements as f64 * shared as f64 / (end - low).max(1) as f64
        });
        let over = shares.sum::<f64>() / (last.to - first.from) as f64;
        if over > OVERWRITTEN {
            let most = (NEWEST / over).max(1.0) as u64;
            return each_window(wants, self.width(), most, |wants| {
                self.lay_newest(&mut layers, wants, out)
            });
        }
        let (mut parts, mut holes) = (Vec::new(), Holes::default());
        let few = layers.len() <= FEW;
        let mut most = (WINDOW * layers.len() as u64).max(LEAST_WINDOW) / self.width();
        let mut weaves = self.is_for_weaving(&layers, wants);
        if weaves {
            most = LEAST_WINDOW / self.width();
        }
        each_window(wants, self.width(), most, |wants| {
            weaves = weaves && self.weave(&mut layers, wants, out)?;
            if weaves {
                return Ok(());
            }
            // What lies under an entry that has everything is not seen.
            let lowest = layers.iter().rposition(|layer| layer.covers(wants));
            // What is not a hole in the end is not filled.
            let fills =
                lowest.is_none() && !self.over && !self.view.has_under() && !layers.is_empty();
            if fills {
                holes.reset(wants);
            } else if lowest.is_none() {
                self.lay_rest(wants, out)?;
            }
            for layer in &mut layers[lowest.unwrap_or(0)..] {
                let runs = self.runs_of(layer)?;
                match fills {
                    true => layer.parts_and(&runs, wants, &mut parts, |want, start, len| {
                        holes.lay(want, start, len);
                    }),
                    false => layer.parts(&runs, wants, &mut parts),
                }
                self.lay_parts(layer, &parts, out)?;
                if !few {
                    self.unload(layer);
                }
            }
            if fills {
                let mut rest = Vec::new();
                holes.each(wants, self.width(), |hole| rest.push(hole));
                self.lay_rest(&rest, out)?;
            }
            Ok(())
        })?;
        layers.iter_mut().for_each(|layer| self.unload(layer));
        Ok(())
    }

    /// Whether the bytes of an entry's elements are to be turned round.
    pub(super) fn is_reversed(&self, found: &Found) -> bool {
        found.little != (self.native && cfg!(target_endian = "little"))
    }

    pub(super) fn width(&self) -> u64 {
        self.stretch.variable.ty.size()
    }

    pub(super) fn unload(&self, layer: &mut Layer) {
        if let Some(loaded) = layer.loaded.take() {
            self.view.give_scratch(loaded.bytes);
        }
    }

    /// Lays out what was much written over: only what the newest left is read.
    fn lay_newest(
        &self,
        layers: &mut [Layer],
        wants: &[Want],
        out: &mut [u8],
    ) -> esker_store::Result<()> {
        let width = self.width();
        let mut pieces: Vec<Piece> = Vec::new();
        let mut parts = Vec::new();
        for (number, layer) in layers.iter_mut().enumerate() {
            let runs = self.runs_of(layer)?;
            layer.parts(&runs, wants, &mut parts);
            pieces.extend(parts.iter().map(|part| Piece {
                offset: part.at,
                len: part.len,
                request: number as u32,
                element: part.from / width,
            }));
        }
        sort_by_offset(&mut pieces, |p| p.offset);
        pieces = later_wins(&pieces, &vec![width; layers.len()]);
        pieces.sort_unstable_by_key(|p| (p.request, p.element));
        self.lay_rest(wants, out)?;
        for pieces in pieces.chunk_by(|a, b| a.request == b.request) {
            let layer = &mut layers[pieces[0].request as usize];
            parts.clear();
            parts.extend(pieces.iter().map(|p| Part {
                from: p.element * width,
                at: p.offset,
                len: p.len,
            }));
            self.lay_parts(layer, &parts, out)?;
            self.unload(layer);
        }
        Ok(())
    }

    /// Lays what is there where no entry is.
    pub(super) fn lay_rest(&self, wants: &[Want], out: &mut [u8]) -> esker_store::Result<()> {
        let Stretch { variable, record, begin, .. } = *self.stretch;
        let width = self.width();
        let target =
            |want: &Want| want.at as usize..(want.at + (want.to - want.from) * width) as usize;
        if wants.is_empty() || self.over {
            return Ok(());
        }
        let is_record = self.state.header.schema.is_record(variable);
        let is_there = !is_record || record < self.state.under_records;
        if let Some(file) = self.view.under.as_ref().filter(|_| is_there) {
            for want in wants {
                let out = &mut out[target(want)];
                let n = file.read_at(begin + want.from * width, out)?;
                out[n..].fill(0);
                if self.native {
                    values::swap_in_place(out, width as usize);
                }
            }
            return Ok(());
        }
        let fill = self.fill();
        // A multiple of every width, long enough to be copied fast.
        let fill = fill.repeat(64 / fill.len().max(1));
        for want in wants {
            for part in out[target(want)].chunks_mut(fill.len().max(1)) {
                part.copy_from_slice(&fill[..part.len()]);
            }
        }
        Ok(())
    }

    /// The variable's fill value, in the order that is wanted.
    pub(super) fn fill(&self) -> Vec<u8> {
        let mut fill = values::fill_bytes(self.stretch.variable);
        if self.native {
            values::swap_in_place(&mut fill, self.width() as usize);
        }
        fill
    }

    /// Lays these parts of a layer, which are in the order of the payload.
    pub(super) fn lay_parts(
        &self,
        layer: &mut Layer,
        parts: &[Part],
        out: &mut [u8],
    ) -> esker_store::Result<()> {
        if layer.found.encoded {
            return self.lay_decoded(layer, parts, out);
        }
        let width = self.width() as usize;
        let reversed = self.is_reversed(&layer.found);
        let mut rest = parts;
        while let Some(first) = rest.first() {
            let start = first.from;
            let limit = start / BLOCK as u64 * BLOCK as u64 + SPAN;
            let (mut end, mut count) = (start, 0);
            for part in rest {
                let to = part.from + part.len;
                if part.from > end + HOLE || to > limit {
                    break;
                }
                end = end.max(to);
                count += 1;
            }
            if count == 0 {
                self.lay_long(layer, first, reversed, out)?;
                rest = &rest[1..];
                continue;
            }
            let (now, later) = rest.split_at(count);
            rest = later;
            let (bytes, from) = self.load(layer, start, end)?;
            for part in now {
                let at = (part.from - from) as usize;
                let source = &bytes[at..at + part.len as usize];
                let target = &mut out[part.at as usize..(part.at + part.len) as usize];
                match reversed {
                    true => values::copy_reversed(source, target, width),
                    false => copy(source, target),
                }
            }
        }
        Ok(())
    }

    /// Lays a part that is longer than what is read at once. Whole blocks go straight to where
    /// they are wanted, and are checked there while they are in the cache.
    pub(super) fn lay_long(
        &self,
        layer: &mut Layer,
        part: &Part,
        reversed: bool,
        out: &mut [u8],
    ) -> esker_store::Result<()> {
        let width = self.width() as usize;
        let (mut from, end) = (part.from, part.from + part.len);
        let block = BLOCK as u64;
        while from < end {
            let at = (part.at + (from - part.from)) as usize;
            let aligned = from.is_multiple_of(block) && (!reversed || width == 1);
            let mut to = end.min(from / block * block + SPAN);
            if aligned && to < layer.found.len {
                to = to / block * block;
            }
            if aligned && to > from {
                let target = &mut out[at..at + (to - from) as usize];
                self.read_checked(&layer.found, from, target)?;
            } else {
                // Up to the next block, if that can go straight to its place.
                let next = from.next_multiple_of(block);
                if (!reversed || width == 1) && next > from {
                    to = end.min(next);
                } else {
                    to = end.min(from / block * block + SPAN);
                }
                let (bytes, start) = self.load(layer, from, to)?;
                let source = &bytes[(from - start) as usize..(to - start) as usize];
                let target = &mut out[at..at + source.len()];
                match reversed {
                    true => values::copy_reversed(source, target, width),
                    false => target.copy_from_slice(source),
                }
            }
            from = to;
        }
        Ok(())
    }

    /// Lays parts of an entry that went through filters.
    fn lay_decoded(
        &self,
        layer: &Layer,
        parts: &[Part],
        out: &mut [u8],
    ) -> esker_store::Result<()> {
        if parts.is_empty() {
            return Ok(());
        }
        let elements = self.decoded(layer)?;
        let width = self.width() as usize;
        for part in parts {
            let at = part.from as usize;
            let source = &elements[at..at + part.len as usize];
            let target = &mut out[part.at as usize..(part.at + part.len) as usize];
            match self.native && cfg!(target_endian = "little") {
                true => values::copy_reversed(source, target, width),
                false => target.copy_from_slice(source),
            }
        }
        Ok(())
    }

    /// The elements of an entry that went through filters, in external form.
    pub(super) fn decoded(&self, layer: &Layer) -> esker_store::Result<Arc<Vec<u8>>> {
        let found = &layer.found;
        let failed = |why: String| {
            let rank = self.index.logs[found.log as usize].rank;
            let why = format!(
                "the payload at byte {} of the data log of rank {rank} cannot be decoded: {why}",
                found.place
            );
            self.view.failed(self.action(), why)
        };
        let Some(filters) = self.state.filters.get(&self.stretch.var) else {
            return Err(failed("the variable has no filters, or unknown ones".to_string()));
        };
        if !Filtered::may_store(found.len) {
            return Err(failed(format!("its {} bytes are more than filters make", found.len)));
        }
        let shape = self.runs_of(layer)?.payload_shape(found.records.count, found.elements);
        let key = (found.log, found.place);
        let read = || {
            let mut payload = vec![0; found.len as usize];
            self.read_checked(found, 0, &mut payload)?;
            Ok(payload)
        };
        let budget = self.index.decoded_budget();
        self.view.decoded.get((key, budget), filters, &shape, read, failed)
    }

    /// The blocks of a layer's payload that hold `start..end`, checked, and where the first of
    /// them begins. Blocks that the layer has from before are not read again.
    pub(super) fn load<'l>(
        &self,
        layer: &'l mut Layer,
        start: u64,
        end: u64,
    ) -> esker_store::Result<(&'l [u8], u64)> {
        let block = BLOCK as u64;
        let from = start / block * block;
        let to = end.next_multiple_of(block).min(layer.found.len);
        let loaded = match layer.loaded.take() {
            Some(loaded) if loaded.from <= from && to <= loaded.to => loaded,
            Some(Loaded { mut bytes, from: old, to: kept }) if old <= from && from < kept => {
                bytes.keep((from - old) as usize..(kept - old) as usize, (to - from) as usize);
                self.read_checked(&layer.found, kept, &mut bytes[(kept - from) as usize..])?;
                Loaded { bytes, from, to }
            }
            old => {
                if let Some(old) = old {
                    self.view.give_scratch(old.bytes);
                }
                let mut bytes = self.view.take_scratch((to - from) as usize);
                self.read_checked(&layer.found, from, &mut bytes)?;
                Loaded { bytes, from, to }
            }
        };
        let loaded = layer.loaded.insert(loaded);
        Ok((&loaded.bytes, loaded.from))
    }

    /// Reads whole blocks of a payload from `from` on, and compares their checksums.
    pub(super) fn read_checked(
        &self,
        found: &Found,
        from: u64,
        bytes: &mut [u8],
    ) -> esker_store::Result<()> {
        let source = &self.index.logs[found.log as usize];
        let n = source.data.read_at(found.place + from, bytes)?;
        let sums = match self.view.compares {
            true => found.sums.get((from / BLOCK as u64) as usize..).unwrap_or_default(),
            false => &[],
        };
        let whole = n == bytes.len();
        let bad = bytes.chunks(BLOCK).zip(sums).position(|(b, sum)| crc32c::crc32c(b) != *sum);
        let Some(bad) = bad.or((!whole).then_some(0)) else { return Ok(()) };
        let at = found.place + from + (bad * BLOCK) as u64;
        let why = format!(
            "the payload at byte {at} of the data log of rank {} does not match its checksum",
            source.rank
        );
        Err(self.view.failed(self.action(), why))
    }

    fn action(&self) -> String {
        let Stretch { variable, record, .. } = self.stretch;
        format!("read of variable {:?}, record {record}", variable.name)
    }
}

/// Calls `each` with what is wanted, of elements of `width` bytes, `most` of them at a time.
fn each_window(
    wants: &[Want],
    width: u64,
    most: u64,
    mut each: impl FnMut(&[Want]) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    if wants.iter().map(|want| want.to - want.from).sum::<u64>() <= most {
        return each(wants);
    }
    let mut window = Vec::new();
    let mut left = most;
    for want in wants {
        let mut from = want.from;
        while from < want.to {
            let to = want.to.min(from + left);
            window.push(Want { from, to, at: want.at + (from - want.from) * width });
            left -= to - from;
            from = to;
            if left == 0 {
                each(&window)?;
                window.clear();
                left = most;
            }
        }
    }
    match window.is_empty() {
        true => Ok(()),
        false => each(&window),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn windows_have_everything_that_is_wanted_once(
            list in prop::collection::vec((0u64..5, 1u64..30), 0..12),
            most in 1u64..40,
        ) {
            let (mut place, mut at) = (0, 0);
            let wants: Vec<Want> = list.into_iter().map(|(gap, len)| {
                let from = place + gap;
                let want = Want { from, to: from + len, at };
                (place, at) = (want.to, at + 4 * len + 8);
                want
            }).collect();
            let each = |want: &Want| {
                let (from, at) = (want.from, want.at);
                (from..want.to).map(move |i| (i, at + 4 * (i - from))).collect::<Vec<_>>()
            };
            let expected: Vec<(u64, u64)> = wants.iter().flat_map(each).collect();
            let mut found: Vec<(u64, u64)> = Vec::new();
            each_window(&wants, 4, most, |window| {
                let elements: u64 = window.iter().map(|want| want.to - want.from).sum();
                assert!(elements <= most);
                found.extend(window.iter().flat_map(each));
                Ok(())
            }).unwrap();
            prop_assert_eq!(found, expected);
        }
    }
}
