//! A stretch of the file in the hands of its owner: bytes, and which of them are known.

use esker_store::File;

use crate::comb::Comb;
use crate::error::{Error, Result};
use crate::report::Tally;
use crate::wire;

/// A buffer for a stretch of the file with one bit for each byte that was laid into it.
#[derive(Debug, Default)]
pub(crate) struct Window {
    start: u64,
    bytes: Vec<u8>,
    known: Vec<u64>,
    /// Bytes below the first and above the last known one are not part of the stretch yet.
    first: usize,
    end: usize,
    /// What the file has where something was laid, kept for the next time.
    there: Vec<u8>,
}

/// A store that takes a window this fast (bytes a second) copies it into memory; then a thread
/// to wait for it would only compete with the ranks for the cores.
pub(crate) const AT_ONCE: f64 = 500e6;

/// A window reaches this far beyond its nominal end, for an element that begins in it.
pub(crate) const SLACK: usize = 8;

/// When the covered runs are at least this long on average, each is written for itself;
/// otherwise the holes are read and the whole is one write.
const WRITE_APART: usize = 64 * 1024;

impl Window {
    /// Makes it the empty window of `len` bytes from `start` on.
    pub(crate) fn reset(&mut self, start: u64, len: u64) {
        let len = len as usize + SLACK;
        self.start = start;
        // What the bytes hold does not matter until they are known.
        self.bytes.resize(len, 0);
        self.known.clear();
        self.known.resize(len.div_ceil(64), 0);
        (self.first, self.end) = (len, 0);
    }

    /// The place for `len` bytes of the file at `offset`, which count as known from now on.
    pub(crate) fn lay(&mut self, offset: u64, len: u64) -> &mut [u8] {
        let at = (offset - self.start) as usize;
        let end = at + len as usize;
        self.first = self.first.min(at);
        self.end = self.end.max(end);
        mark(&mut self.known, at, end);
        &mut self.bytes[at..end]
    }

    /// The place from the first of these runs to the end of the last; they count as known from now on.
    pub(crate) fn lay_comb(&mut self, comb: &Comb) -> &mut [u8] {
        let at = (comb.offset - self.start) as usize;
        let end = at + comb.span() as usize;
        self.first = self.first.min(at);
        self.end = self.end.max(end);
        let (mut from, len, step) = (at, comb.len as usize, comb.step as usize);
        for _ in 0..comb.runs {
            mark(&mut self.known, from, from + len);
            from += step;
        }
        &mut self.bytes[at..end]
    }

    /// Lays these runs to be fetched, with what is between them if that is at most `sieve` bytes.
    pub(crate) fn want(&mut self, comb: &Comb, sieve: u64) {
        match comb.hole() <= sieve {
            true => self.lay(comb.offset, comb.span()),
            false => self.lay_comb(comb),
        };
    }

    /// Whether any of `len` bytes of the file at `offset` is known.
    pub(crate) fn has_any(&self, offset: u64, len: u64) -> bool {
        let at = (offset - self.start) as usize;
        let end = at + len as usize;
        let covered = Covered { known: &self.known, at, end };
        covered.border(at, true) < end
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

    /// All of its bytes, whatever they are.
    pub(crate) fn all(&self) -> &[u8] {
        &self.bytes
    }

    /// Its first `len` bytes, whatever they are.
    pub(crate) fn front(&self, len: u64) -> &[u8] {
        &self.bytes[..len as usize]
    }

    /// Lays the values of a section of a message for it, if they are within it; gives their bytes.
    pub(crate) fn lay_section(&mut self, section: &[u8]) -> Result<u64> {
        let (combs, values) = wire::open(section, self.start).ok_or(Error::Garbled)?;
        let (mut rest, limit) = (values, self.start + self.bytes.len() as u64);
        for comb in combs {
            let (now, later) =
                rest.split_at_checked(comb.bytes() as usize).ok_or(Error::Garbled)?;
            if comb.end() > limit {
                return Err(Error::Garbled);
            }
            comb.scatter(now, self.lay_comb(&comb));
            rest = later;
        }
        Ok(values.len() as u64)
    }

    /// Whether all of its first `len` bytes are known.
    pub(crate) fn is_covered(&self, len: u64) -> bool {
        let len = len as usize;
        self.first == 0 && (Covered { known: &self.known, at: 0, end: len }).border(0, false) == len
    }

    /// Puts `there` where nothing was laid.
    pub(crate) fn complete(&mut self, there: &[u8]) {
        put_unknown(&mut self.bytes, &self.known, there);
    }

    /// Bytes that it takes.
    pub(crate) fn memory(&self) -> u64 {
        (self.bytes.len() + self.known.len() * 8 + self.there.len()) as u64
    }

    /// What is known of it, to be written or fetched.
    fn view(&mut self) -> View<'_> {
        let Window { start, bytes, known, first, end, there } = self;
        View { start: *start, bytes, known, first: *first, end: *end, there }
    }

    /// Writes what is known. May read what lies between, if that makes it one write and
    /// `sieve` allows it; nobody else writes within the window.
    pub(crate) fn write(&mut self, file: &dyn File, sieve: bool, tally: &mut Tally) -> Result<()> {
        self.view().write(file, sieve, tally)
    }

    /// Reads the bytes of the runs that were laid, and those between them where that is
    /// cheaper. The runs are then in the buffer. Gives where the file ended too early, if so.
    pub(crate) fn fetch(
        &mut self,
        file: &dyn File,
        sieve: u64,
        tally: &mut Tally,
    ) -> Result<Option<u64>> {
        self.view().fetch(file, sieve, tally)
    }

    /// The stretches of known bytes, in order, as places in the buffer.
    #[cfg(test)]
    fn covered(&mut self) -> Vec<(usize, usize)> {
        self.view().covered().collect()
    }
}

/// Bytes of the file with one bit for each that is known, wherever they are.
pub(crate) struct View<'v> {
    start: u64,
    bytes: &'v mut [u8],
    known: &'v mut [u64],
    /// The first known byte, and the first after the last.
    first: usize,
    end: usize,
    there: &'v mut Vec<u8>,
}

impl<'v> View<'v> {
    /// Those from `start` on. `there` is memory for what the file has.
    pub(crate) fn new(
        start: u64,
        bytes: &'v mut [u8],
        known: &'v mut [u64],
        there: &'v mut Vec<u8>,
    ) -> View<'v> {
        let set = |word: &u64| *word != 0;
        let first = known
            .iter()
            .position(set)
            .map_or(bytes.len(), |word| word * 64 + known[word].trailing_zeros() as usize);
        let end = known
            .iter()
            .rposition(set)
            .map_or(0, |word| (word + 1) * 64 - known[word].leading_zeros() as usize);
        View { start, bytes, known, first, end, there }
    }

    /// The stretches of known bytes, in order, as places in the buffer.
    fn covered(&self) -> Covered<'_> {
        Covered { known: &*self.known, at: self.first, end: self.end }
    }

    /// Writes what is known. May read what lies between, if that makes it one write and
    /// `sieve` allows it; nobody else writes within the window.
    pub(crate) fn write(&mut self, file: &dyn File, sieve: bool, tally: &mut Tally) -> Result<()> {
        if self.end == 0 {
            return Ok(());
        }
        let (mut runs, covered) = count(self.known);
        if runs > 1 && sieve && covered / runs < WRITE_APART {
            self.read_holes(file, tally)?;
            runs = 1;
        }
        if runs == 1 {
            let bytes = &self.bytes[self.first..self.end];
            file.write_at(self.start + self.first as u64, bytes)?;
            tally.wrote(1, bytes.len() as u64);
            return Ok(());
        }
        for (from, to) in self.covered() {
            file.write_at(self.start + from as u64, &self.bytes[from..to])?;
            tally.wrote(1, (to - from) as u64);
        }
        Ok(())
    }

    /// Fetches what the file has where nothing was laid.
    fn read_holes(&mut self, file: &dyn File, tally: &mut Tally) -> Result<()> {
        // From where a word of the bits begins.
        let base = self.first - self.first % 64;
        let len = self.end - base;
        if self.there.len() < len {
            self.there.resize(len, 0);
        }
        let there = &mut self.there[..len];
        let n = file.read_at(self.start + self.first as u64, &mut there[self.first - base..])?;
        tally.read(1, n as u64);
        // Beyond the end of the file there are zeros to be.
        there[self.first - base + n..].fill(0);
        put_unknown(&mut self.bytes[base..], &self.known[base / 64..], there);
        Ok(())
    }

    /// Reads the bytes of the runs that were laid, and those between them where that is
    /// cheaper. The runs are then in the buffer. Gives where the file ended too early, if so.
    pub(crate) fn fetch(
        &mut self,
        file: &dyn File,
        sieve: u64,
        tally: &mut Tally,
    ) -> Result<Option<u64>> {
        let mut groups: Vec<(usize, usize)> = Vec::new();
        for (from, to) in self.covered() {
            match groups.last_mut() {
                Some((_, end)) if from - *end <= sieve as usize => *end = to,
                _ => groups.push((from, to)),
            }
        }
        for (from, to) in groups {
            let offset = self.start + from as u64;
            let n = file.read_at(offset, &mut self.bytes[from..to])?;
            tally.read(1, n as u64);
            if n < to - from {
                self.bytes[from + n..to].fill(0);
                return Ok(Some(offset + (to - from) as u64));
            }
        }
        Ok(None)
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

/// How many stretches of set bits there are, and how many bits are set.
fn count(bits: &[u64]) -> (usize, usize) {
    let (mut runs, mut set, mut before) = (0, 0, 0);
    for word in bits {
        // A stretch begins at each bit with none before it.
        runs += (word & !(word << 1 | before)).count_ones() as usize;
        set += word.count_ones() as usize;
        before = word >> 63;
    }
    (runs, set)
}

/// Puts `there` where bits are not set. Eight bytes at a time, for runs may be as short as one.
fn put_unknown(bytes: &mut [u8], known: &[u64], there: &[u8]) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use esker_store::{CreateMode, MemoryStore, Store};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_window_writes_what_was_laid_and_nothing_else(
            runs in proptest::collection::vec((0u64..500, 1u64..80), 0..30),
            sieve: bool,
            before in 0usize..700,
        ) {
            let store = MemoryStore::default();
            let file = store.create("f".as_ref(), CreateMode::New).unwrap();
            let mut expected: Vec<u8> = (0..before).map(|i| i as u8 | 1).collect();
            file.write_at(0, &expected).unwrap();
            let mut window = Window::default();
            window.reset(100, 600);
            for (i, (offset, len)) in runs.iter().enumerate() {
                let value = 2 * (i as u8 + 1);
                window.lay(100 + offset, *len).fill(value);
                let (from, to) = (100 + *offset as usize, (100 + offset + len) as usize);
                expected.resize(expected.len().max(to), 0);
                expected[from..to].fill(value);
            }
            let mut known = vec![false; 1200];
            for (offset, len) in &runs {
                known[(100 + offset) as usize..(100 + offset + len) as usize].fill(true);
            }
            let from_runs: usize = window.covered().into_iter().map(|(from, to)| to - from).sum();
            prop_assert_eq!(from_runs, known.iter().filter(|k| **k).count());
            for from in (100..700).step_by(37) {
                let any = known[from..from + 30].iter().any(|k| *k);
                prop_assert_eq!(window.has_any(from as u64, 30), any);
            }
            window.write(&*file, sieve, &mut Tally::default()).unwrap();
            prop_assert_eq!(store.bytes("f".as_ref()).unwrap(), expected);
        }
    }
}
