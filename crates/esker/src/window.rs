//! A stretch of the file in the hands of its owner: bytes, and which of them are known.

use esker_store::File;

use crate::error::Result;
use crate::gathered::{Covered, put_unknown};
use crate::report::Tally;

/// A store that takes a window this fast (bytes a second) copies it into memory; then a thread
/// to wait for it would only compete with the ranks for the cores.
pub(crate) const AT_ONCE: f64 = 500e6;

/// When the covered runs are at least this long on average, each is written for itself;
/// otherwise the holes are read and the whole is one write.
const WRITE_APART: usize = 64 * 1024;

/// Bytes of the file with one bit for each that is known.
pub(crate) struct Window<'v> {
    start: u64,
    bytes: &'v mut [u8],
    known: &'v mut [u64],
    /// The first known byte, and the first after the last.
    first: usize,
    end: usize,
    there: &'v mut Vec<u8>,
}

impl<'v> Window<'v> {
    /// Those from `start` on. `there` is memory for what the file has.
    pub(crate) fn new(
        start: u64,
        bytes: &'v mut [u8],
        known: &'v mut [u64],
        there: &'v mut Vec<u8>,
    ) -> Window<'v> {
        let set = |word: &u64| *word != 0;
        let first = known
            .iter()
            .position(set)
            .map_or(bytes.len(), |word| word * 64 + known[word].trailing_zeros() as usize);
        let end = known
            .iter()
            .rposition(set)
            .map_or(0, |word| (word + 1) * 64 - known[word].leading_zeros() as usize);
        Window { start, bytes, known, first, end, there }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gathered;
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
            let (mut bytes, mut bits) = (vec![0; 600 + 8], vec![0; 10]);
            for (i, (offset, len)) in runs.iter().enumerate() {
                let value = 2 * (i as u8 + 1);
                let place = *offset as usize..(offset + len) as usize;
                gathered::mark(&mut bits, place.start, place.end);
                bytes[place].fill(value);
                let (from, to) = (100 + *offset as usize, (100 + offset + len) as usize);
                expected.resize(expected.len().max(to), 0);
                expected[from..to].fill(value);
            }
            let mut known = vec![false; 1200];
            for (offset, len) in &runs {
                known[(100 + offset) as usize..(100 + offset + len) as usize].fill(true);
            }
            for from in (100..700).step_by(37) {
                let any = known[from..from + 30].iter().any(|k| *k);
                prop_assert_eq!(gathered::has_any(&bits, from - 100, 30), any);
            }
            let mut there = Vec::new();
            let mut window = Window::new(100, &mut bytes, &mut bits, &mut there);
            let from_runs: usize = window.covered().map(|(from, to)| to - from).sum();
            prop_assert_eq!(from_runs, known.iter().filter(|k| **k).count());
            window.write(&*file, sieve, &mut Tally::default()).unwrap();
            prop_assert_eq!(store.bytes("f".as_ref()).unwrap(), expected);
        }
    }
}
