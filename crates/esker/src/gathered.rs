//! Bytes of a unit as pieces are laid into it, and which of them are known.

use std::ops::Range;

use crate::comb::Comb;
use crate::error::{Error, Result};
use crate::wire;

/// A buffer for a unit with one bit for each byte that was laid into it.
#[derive(Debug, Default)]
pub(crate) struct Gathered {
    start: u64,
    bytes: Vec<u8>,
    known: Vec<u64>,
}

/// A unit's bytes reach this far beyond its nominal end, for an element that begins in it.
pub(crate) const SLACK: usize = 8;

impl Gathered {
    /// Makes it the empty unit of `len` bytes from `start` on.
    pub(crate) fn reset(&mut self, start: u64, len: u64) {
        let len = len as usize + SLACK;
        self.start = start;
        // What the bytes hold does not matter until they are known.
        self.bytes.resize(len, 0);
        self.known.clear();
        self.known.resize(len.div_ceil(64), 0);
    }

    /// The place for `len` bytes of the file at `offset`, which count as known from now on.
    pub(crate) fn lay(&mut self, offset: u64, len: u64) -> &mut [u8] {
        let at = (offset - self.start) as usize;
        let end = at + len as usize;
        mark(&mut self.known, at, end);
        &mut self.bytes[at..end]
    }

    /// Whether any of `len` bytes of the file at `offset` is known.
    pub(crate) fn has_any(&self, offset: u64, len: u64) -> bool {
        has_any(&self.known, (offset - self.start) as usize, len as usize)
    }

    /// Whether all of `len` bytes of the file at `offset` are known.
    pub(crate) fn has_all(&self, offset: u64, len: u64) -> bool {
        let at = (offset - self.start) as usize;
        let end = at + len as usize;
        (Covered { known: &self.known, at, end }).border(at, false) == end
    }

    /// Where it begins in the file.
    pub(crate) fn start(&self) -> u64 {
        self.start
    }

    /// Its first `len` bytes, whatever they are.
    pub(crate) fn front(&self, len: u64) -> &[u8] {
        &self.bytes[..len as usize]
    }

    /// Lays the values of a section of a message for it, if they are within it; gives their bytes.
    pub(crate) fn lay_section(&mut self, section: &[u8]) -> Result<u64> {
        lay_section(self.start, &mut self.bytes, &mut self.known, section)
    }

    /// Whether all of its first `len` bytes are known.
    pub(crate) fn is_covered(&self, len: u64) -> bool {
        self.has_all(self.start, len)
    }

    /// The stretches of its bytes in `range`, from its beginning, that are known.
    pub(crate) fn covered(&self, range: Range<usize>) -> Covered<'_> {
        Covered { known: &self.known, at: range.start, end: range.end }
    }

    /// Puts `there` where nothing was laid.
    pub(crate) fn complete(&mut self, there: &[u8]) {
        put_unknown(&mut self.bytes, &self.known, there);
    }

    /// Bytes that it takes.
    pub(crate) fn memory(&self) -> u64 {
        (self.bytes.len() + self.known.len() * 8) as u64
    }
}

/// Lays the values of a section of a message into the bytes of the unit that begins at `start`, if they are within it; gives how many
/// bytes they are.
pub(crate) fn lay_section(
    start: u64,
    bytes: &mut [u8],
    known: &mut [u64],
    section: &[u8],
) -> Result<u64> {
    let (combs, values) = wire::open(section, start).ok_or(Error::Garbled)?;
    let mut rest = values;
    for comb in combs {
        let (now, later) = rest.split_at_checked(comb.bytes() as usize).ok_or(Error::Garbled)?;
        let at = usize::try_from(comb.offset - start).map_err(|_| Error::Garbled)?;
        let place = bytes.get_mut(at..).ok_or(Error::Garbled)?;
        let place = place.get_mut(..comb.span() as usize).ok_or(Error::Garbled)?;
        comb.scatter(now, place);
        mark_comb(known, at, &comb);
        rest = later;
    }
    Ok(values.len() as u64)
}

/// Whether any of `len` bits from `at` on is set.
pub(crate) fn has_any(known: &[u64], at: usize, len: usize) -> bool {
    let end = at + len;
    (Covered { known, at, end }).border(at, true) < end
}

/// Sets the bits of these runs, the first of which begins at `at`.
fn mark_comb(known: &mut [u64], at: usize, comb: &Comb) {
    let (mut from, len, step) = (at, comb.len as usize, comb.step as usize);
    for _ in 0..comb.runs {
        mark(known, from, from + len);
        from += step;
    }
}

/// Sets the bits `from..to`.
pub(crate) fn mark(bits: &mut [u64], from: usize, to: usize) {
    if from == to {
        return;
    }
    let (first, last) = (from / 64, (to - 1) / 64);
    let low = !0u64 << (from % 64);
    let high = !0u64 >> (63 - (to - 1) % 64);
    if first == last {
        bits[first] |= low & high;
        return;
    }
    bits[first] |= low;
    bits[first + 1..last].fill(!0);
    bits[last] |= high;
}

/// Puts `there` where bits are not set. Eight bytes at a time, for runs may be as short as one.
pub(crate) fn put_unknown(bytes: &mut [u8], known: &[u64], there: &[u8]) {
    let len = bytes.len().min(there.len());
    let groups = bytes[..len].chunks_mut(64).zip(there[..len].chunks(64));
    for ((bytes, there), known) in groups.zip(known) {
        match known {
            0 => bytes.copy_from_slice(there),
            &u64::MAX => {}
            _ => {
                let known = known.to_le_bytes();
                for ((bytes, there), known) in bytes.chunks_mut(8).zip(there.chunks(8)).zip(known) {
                    blend(bytes, there, known);
                }
            }
        }
    }
}

/// Puts up to eight bytes of `there` where bits are not set.
fn blend(bytes: &mut [u8], there: &[u8], known: u8) {
    let (Some(own), Some(other)) = (bytes.first_chunk_mut(), there.first_chunk()) else {
        let holes = (0..bytes.len()).filter(|i| known >> i & 1 == 0);
        holes.for_each(|i| bytes[i] = there[i]);
        return;
    };
    // Each bit becomes a byte of its own, then all bits of that byte.
    const ONES: u64 = u64::from_le_bytes([1; 8]);
    let spread = (u64::from(known) * ONES) & 0x8040_2010_0804_0201;
    let mask = ((spread + 0x7f * ONES) >> 7 & ONES) * 0xff;
    let mixed = u64::from_le_bytes(*own) & mask | u64::from_le_bytes(*other) & !mask;
    *own = mixed.to_le_bytes();
}

/// The stretches of set bits.
pub(crate) struct Covered<'a> {
    pub(crate) known: &'a [u64],
    pub(crate) at: usize,
    pub(crate) end: usize,
}

impl Covered<'_> {
    /// The first place at or after `at` whose bit is `wanted`, or the end.
    fn border(&self, at: usize, wanted: bool) -> usize {
        let mut word = at / 64;
        let Some(bits) = self.known.get(word) else { return self.end };
        let flip = |bits: u64| if wanted { bits } else { !bits };
        let mut bits = flip(*bits) & (!0 << (at % 64));
        while bits == 0 {
            word += 1;
            match self.known.get(word) {
                Some(next) => bits = flip(*next),
                None => return self.end,
            }
        }
        (word * 64 + bits.trailing_zeros() as usize).min(self.end)
    }
}

impl Iterator for Covered<'_> {
    type Item = (usize, usize);

    fn next(&mut self) -> Option<(usize, usize)> {
        if self.at >= self.end {
            return None;
        }
        let from = self.border(self.at, true);
        let to = self.border(from, false);
        self.at = to;
        (from < to).then_some((from, to))
    }
}
