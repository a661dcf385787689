//! What pieces look like between ranks: the runs as small numbers, then their bytes.
//!
//! Runs come as triples of variable-length integers: the distance from the end of the run
//! before, the length, and how often the same distance and length repeat. A regular pattern is
//! one triple, whatever its length; an irregular one costs three bytes or a few more a run.

use esker_format::runs::Run;
use esker_format::varint;

use crate::comb::Comb;

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

    /// Appends the list to a message, with room for the bytes of the runs behind it; gives where they
    /// begin.
    pub(crate) fn append(mut self, message: &mut Vec<u8>) -> usize {
        self.close();
        self.flush();
        message.extend_from_slice(&(self.bytes.len() as u64).to_le_bytes());
        message.extend_from_slice(&self.bytes);
        let start = message.len();
        message.resize(start + self.total as usize, 0);
        start
    }

    /// The message: the list, with room for the bytes of the runs behind it if `payload`. Gives
    /// it and where the payload begins. `message` is memory to use, whatever it holds.
    pub(crate) fn finish(mut self, payload: bool, mut message: Vec<u8>) -> (Vec<u8>, usize) {
        self.close();
        self.flush();
        let total = if payload { self.total as usize } else { 0 };
        let start = 8 + self.bytes.len();
        // What was there before is written over, so that only new memory is cleared.
        message.resize(start + total, 0);
        message[..8].copy_from_slice(&(self.bytes.len() as u64).to_le_bytes());
        message[8..start].copy_from_slice(&self.bytes);
        (message, start)
    }
}

/// The runs of a message made by [`RunList::finish`], those at equal distances together, and its
/// payload.
pub(crate) fn open(message: &[u8], base: u64) -> Option<(Combs<'_>, &[u8])> {
    let (len, rest) = message.split_first_chunk::<8>()?;
    let (list, payload) = rest.split_at_checked(u64::from_le_bytes(*len) as usize)?;
    Some((Combs { list, at: base }, payload))
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
            let (message, start) = list.finish(true, vec![7; 20]);
            let (runs, payload) = open(&message, base).unwrap();
            prop_assert_eq!(payload.len() as u64, total);
            prop_assert_eq!(message.len() - start, payload.len());
            prop_assert_eq!(runs.runs().collect::<Vec<_>>(), expected);
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
            let (whole, single) = (whole.finish(true, Vec::new()), single.finish(true, Vec::new()));
            let runs = |message: &[u8]| open(message, 5).unwrap().0.runs().collect::<Vec<_>>();
            prop_assert_eq!(whole.0.len() - whole.1, single.0.len() - single.1);
            prop_assert_eq!(runs(&whole.0), runs(&single.0));
        }
    }

    #[test]
    fn a_regular_pattern_is_a_few_bytes() {
        let mut list = RunList::new(0);
        for i in 0..100_000 {
            list.push(Run { offset: 64 + i * 128, len: 64 });
        }
        assert!(list.finish(false, Vec::new()).0.len() < 20);
    }
}
