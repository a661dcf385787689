//! What pieces look like between ranks: the runs as small numbers, then their bytes.
//!
//! Runs come as triples of variable-length integers: the distance from the end of the run
//! before, the length, and how often the same distance and length repeat. A regular pattern is
//! one triple, whatever its length; an irregular one costs three bytes or a few more a run.

use std::ops::Range;

use esker_format::runs::Run;
use esker_format::varint;

use crate::comb::Comb;
use crate::mail::SUM;

/// Collects runs in ascending order; neighbours become one.
#[derive(Debug)]
pub(crate) struct RunList {
    bytes: Vec<u8>,
    /// Where the runs so far end.
    at: u64,
    open: Option<Run>,
    triple: Option<Triple>,
    total: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Triple {
    gap: u64,
    len: u64,
    repeat: u64,
}

impl RunList {
    /// Runs at or after `base`.
    pub(crate) fn new(base: u64) -> RunList {
        RunList { bytes: Vec::new(), at: base, open: None, triple: None, total: 0 }
    }

    /// Adds a run that begins at or after the last one's begin. What it shares with that one
    /// counts once.
    pub(crate) fn push(&mut self, run: Run) {
        match &mut self.open {
            Some(open) if run.offset <= open.end() => {
                let end = open.end().max(run.end());
                open.len = end - open.offset;
            }
            _ => {
                self.close();
                self.open = Some(run);
            }
        }
    }

    /// Adds runs at equal distances.
    pub(crate) fn push_comb(&mut self, comb: &Comb) {
        self.push(comb.run(0));
        if comb.runs > 2 {
            self.close();
            self.add(Triple { gap: comb.hole(), len: comb.len, repeat: comb.runs - 2 });
        }
        if comb.runs > 1 {
            self.push(comb.run(comb.runs - 1));
        }
    }

    fn close(&mut self) {
        let Some(run) = self.open.take() else { return };
        self.add(Triple { gap: run.offset - self.at, len: run.len, repeat: 1 });
    }

    fn add(&mut self, new: Triple) {
        self.at += (new.gap + new.len) * new.repeat;
        self.total += new.len * new.repeat;
        match &mut self.triple {
            Some(t) if t.gap == new.gap && t.len == new.len => t.repeat += new.repeat,
            _ => {
                self.flush();
                self.triple = Some(new);
            }
        }
    }

    fn flush(&mut self) {
        if let Some(t) = self.triple.take() {
            varint::put(&mut self.bytes, t.gap);
            varint::put(&mut self.bytes, t.len);
            varint::put(&mut self.bytes, t.repeat);
        }
    }

    /// The list, and how many bytes its runs have.
    fn finish(mut self) -> (Vec<u8>, usize) {
        self.close();
        self.flush();
        (self.bytes, self.total as usize)
    }
}

/// A message of sections, one for each unit that it has runs of: the unit's address, the runs from there on, and
/// their values.
#[derive(Debug, Default)]
pub(crate) struct Packet {
    bytes: Vec<u8>,
    /// Behind it is memory that was used before.
    used: usize,
}

/// Bytes before the runs of a section: its address, and how long the rest of it is.
const HEAD: usize = 16;

impl Packet {
    /// In memory that may hold anything, with room for so many bytes and a checksum.
    pub(crate) fn new(mut memory: Vec<u8>, room: usize) -> Packet {
        memory.reserve_exact((room + SUM).saturating_sub(memory.len()));
        Packet { bytes: memory, used: 0 }
    }

    /// Adds a section without values.
    pub(crate) fn ask(&mut self, address: u64, runs: RunList) {
        self.add(address, runs, false);
    }

    /// Adds a section; gives the place for its values.
    pub(crate) fn add_runs(&mut self, address: u64, runs: RunList) -> &mut [u8] {
        self.add(address, runs, true)
    }

    fn add(&mut self, address: u64, runs: RunList, values: bool) -> &mut [u8] {
        let (list, total) = runs.finish();
        let total = if values { total } else { 0 };
        let list_at = self.used + HEAD + 8;
        let values_at = list_at + list.len();
        let end = values_at + total;
        // What was there before is written over, so that only new memory is cleared.
        if self.bytes.len() < end {
            self.bytes.resize(end, 0);
        }
        let numbers = [address, (end - self.used - HEAD) as u64, list.len() as u64];
        let (heads, _) = self.bytes[self.used..list_at].as_chunks_mut::<8>();
        heads.iter_mut().zip(numbers).for_each(|(to, number)| *to = number.to_le_bytes());
        self.bytes[list_at..values_at].copy_from_slice(&list);
        self.used = end;
        &mut self.bytes[values_at..end]
    }

    /// Bytes in it so far.
    pub(crate) fn len(&self) -> usize {
        self.used
    }

    pub(crate) fn finish(mut self) -> Vec<u8> {
        self.bytes.truncate(self.used);
        self.bytes
    }
}

/// The sections of a message: the address of each, and where its runs and values are. `None` where the message is
/// not one of these.
pub(crate) fn sections(message: &[u8]) -> impl Iterator<Item = Option<(u64, Range<usize>)>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let rest = message.get(at..).filter(|rest| !rest.is_empty())?;
        let found = || {
            let (address, rest) = rest.split_first_chunk::<8>()?;
            let (len, rest) = rest.split_first_chunk::<8>()?;
            let len = usize::try_from(u64::from_le_bytes(*len)).ok()?;
            rest.get(..len)?;
            Some((u64::from_le_bytes(*address), at + HEAD..at + HEAD + len))
        };
        let found = found();
        at = found.as_ref().map_or(message.len(), |(_, place)| place.end);
        Some(found)
    })
}

/// The runs of a section, those at equal distances together, and their values.
pub(crate) fn open(section: &[u8], base: u64) -> Option<(Combs<'_>, &[u8])> {
    let (len, rest) = section.split_first_chunk::<8>()?;
    let (list, values) = rest.split_at_checked(u64::from_le_bytes(*len) as usize)?;
    Some((Combs { list, at: base }, values))
}

/// Iterator over the runs of a message, those at equal distances together.
#[derive(Debug, Clone)]
pub(crate) struct Combs<'m> {
    list: &'m [u8],
    at: u64,
}

impl<'m> Combs<'m> {
    /// The runs one by one.
    pub(crate) fn runs(self) -> RunsOf<'m> {
        RunsOf { combs: self, comb: Comb::single(Run { offset: 0, len: 0 }), next: 1 }
    }
}

/// Iterator over the runs of a message, one by one.
#[derive(Debug, Clone)]
pub(crate) struct RunsOf<'m> {
    combs: Combs<'m>,
    comb: Comb,
    /// Runs of the comb that were given already.
    next: u64,
}

impl Iterator for RunsOf<'_> {
    type Item = Run;

    fn next(&mut self) -> Option<Run> {
        if self.next == self.comb.runs {
            (self.comb, self.next) = (self.combs.next()?, 0);
        }
        self.next += 1;
        Some(self.comb.run(self.next - 1))
    }
}

impl Iterator for Combs<'_> {
    type Item = Comb;

    fn next(&mut self) -> Option<Comb> {
        let mut take = || varint::take(&mut self.list);
        let Triple { gap, len, repeat: runs } =
            Triple { gap: take()?, len: take()?, repeat: take()? };
        if len == 0 || runs == 0 {
            return None;
        }
        let comb = Comb { offset: self.at + gap, len, step: gap + len, runs };
        self.at = comb.end();
        Some(comb)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn runs_come_back_merged(
            base in 0u64..1000,
            steps in proptest::collection::vec((0u64..300, 1u64..200), 0..50),
        ) {
            let mut list = RunList::new(base);
            let mut expected: Vec<Run> = Vec::new();
            let mut at = base;
            for (gap, len) in steps {
                let run = Run { offset: at + gap, len };
                at = run.end();
                list.push(run);
                match expected.last_mut() {
                    Some(last) if last.end() == run.offset => last.len += run.len,
                    _ => expected.push(run),
                }
            }
            let total: u64 = expected.iter().map(|r| r.len).sum();
            let mut packet = Packet::new(vec![7; 20], 40);
            packet.ask(3, RunList::new(3));
            let room = packet.add_runs(base, list);
            room.fill(9);
            let message = packet.finish();
            let found: Vec<_> = sections(&message).map(Option::unwrap).collect();
            prop_assert_eq!(found.len(), 2);
            prop_assert_eq!((found[0].0, found[1].0), (3, base));
            let (runs, values) = open(&message[found[1].1.clone()], base).unwrap();
            prop_assert_eq!(values, &vec![9; total as usize][..]);
            prop_assert_eq!(runs.runs().collect::<Vec<_>>(), expected);
            // What is cut short is not taken for a message.
            for end in 1..message.len() {
                let whole = sections(&message[..end]).all(|section| section.is_some());
                prop_assert_eq!(whole, end == found[0].1.end);
            }
        }

        #[test]
        fn a_comb_is_its_runs(
            combs in proptest::collection::vec((0u64..50, 1u64..20, 1u64..30, 1u64..9), 0..8),
        ) {
            let (mut whole, mut single) = (RunList::new(5), RunList::new(5));
            let mut at = 5;
            for (gap, len, hole, runs) in combs {
                let comb = Comb { offset: at + gap, len, step: len + hole, runs };
                at = comb.end();
                whole.push_comb(&comb);
                comb.each().for_each(|run| single.push(run));
            }
            let runs = |(list, total): (Vec<u8>, usize)| {
                (Combs { list: &list, at: 5 }.runs().collect::<Vec<_>>(), total)
            };
            prop_assert_eq!(runs(whole.finish()), runs(single.finish()));
        }
    }

    #[test]
    fn a_regular_pattern_is_a_few_bytes() {
        let mut list = RunList::new(0);
        for i in 0..100_000 {
            list.push(Run { offset: 64 + i * 128, len: 64 });
        }
        assert!(list.finish().0.len() < 12);
    }
}
