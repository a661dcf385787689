//! A walk over a plan, stretch by stretch of the file.

use esker_format::runs::{Pattern, Run};

use super::extent::What;
use super::piece::{CombPiece, Piece, later_wins};
use super::{Entry, Plan, sort_by_offset};
use crate::comb::Comb;
use crate::taken::Taken;

/// Runs of at most this many bytes are short: a list entry and a call cost more than their bytes.
const SHORT: u64 = 256;

/// So many runs at equal distances are a comb.
const TEETH: u64 = 4;

impl What<'_> {
    /// Its pattern, if its rows are combs of short runs with at most `hole` bytes between them, whose
    /// elements, of `size` bytes, are one behind the other.
    fn combs(&self, hole: u64, size: u64) -> Option<&Pattern> {
        let pattern = match self {
            What::Singles(..) => return None,
            What::Pattern(pattern, _) => pattern,
            What::Box(pattern, elements) => {
                let dense = elements.steps.last().is_some_and(|s| s * size == pattern.run_len());
                dense.then_some(*pattern)?
            }
        };
        let (count, step) = pattern.levels().last()?;
        let regular = *count >= TEETH && pattern.run_len() <= SHORT;
        (regular && step - pattern.run_len() <= hole).then_some(pattern)
    }
}

/// What overlapping pieces mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Overlap {
    /// Writing: the later request wins, so the earlier is trimmed.
    LaterWins,
    /// Reading: everyone gets the bytes.
    Shared,
}

/// A sweep over a plan from the lowest byte to the highest.
pub(crate) struct Sweep<'p, 'a> {
    plan: &'p Plan<'a>,
    /// The first entry that was not reached yet.
    next: usize,
    /// Entries reached and not finished, with the place in their list of single runs.
    active: Vec<(usize, usize)>,
    pieces: Vec<Piece>,
    combs: Vec<CombPiece>,
}

impl<'p, 'a> Sweep<'p, 'a> {
    pub(super) fn new(plan: &'p Plan<'a>) -> Sweep<'p, 'a> {
        Sweep { plan, next: 0, active: Vec::new(), pieces: Vec::new(), combs: Vec::new() }
    }

    /// Bytes that the list of pieces takes.
    pub(crate) fn memory(&self) -> u64 {
        let combs = self.combs.capacity() * size_of::<CombPiece>();
        (self.pieces.capacity() * size_of::<Piece>() + combs) as u64
    }

    /// The offset of the next byte at or after `from` that is in the plan, or none. May be
    /// before the first byte of an entry's hole: never later than the true one.
    pub(crate) fn next_offset(&self, from: u64) -> Option<u64> {
        let reached = self.active.iter().map(|(entry, at)| {
            let entry = &self.plan.entries[*entry];
            match entry.what {
                What::Singles(list, shift) => {
                    list.get(*at).map_or(entry.end, |s| s.offset + shift.offset).max(from)
                }
                What::Pattern(pattern, _) | What::Box(pattern, _) => {
                    let run = pattern.runs_after(from).next();
                    run.map_or(entry.end, |(_, run)| run.offset.max(from))
                }
            }
        });
        let waiting = self.plan.entries.get(self.next).map(|e| e.first.max(from));
        reached.chain(waiting).min()
    }

    /// The end of a stretch from `start` on with at most about `most` runs, or one of each entry; `last` is how
    /// long the one before it was.
    pub(crate) fn stretch(&self, start: u64, last: &mut u64, most: u64) -> u64 {
        *last = last.saturating_mul(2).min(self.plan.summary.end - start);
        while *last > 1 && self.runs_within(start, start + *last) > most {
            *last /= 2;
        }
        start + *last
    }

    /// How many runs have something in `start..end`, but for one of each entry.
    fn runs_within(&self, start: u64, end: u64) -> u64 {
        let entries = &self.plan.entries;
        let active = self.active.iter().map(|(number, _)| &entries[*number]);
        let coming = entries[self.next..].iter().take_while(|entry| entry.first < end);
        let before = |entry: &Entry<'_>, place: u64| match entry.what {
            What::Singles(list, shift) => {
                list.partition_point(|s| s.offset + shift.offset < place) as u64
            }
            What::Pattern(pattern, _) | What::Box(pattern, _) => {
                let first = pattern.runs_after(place).next();
                first.map_or(pattern.run_count(), |(number, _)| number)
            }
        };
        active.chain(coming).map(|entry| before(entry, end) - before(entry, start)).sum()
    }

    /// What begins in `start..end`, as [`Sweep::combs`] gives it or else [`Sweep::take`].
    pub(crate) fn take_together(&mut self, start: u64, end: u64, overlap: Overlap) -> Taken<'_> {
        match self.take_combs(start, end, u64::MAX) {
            true => Taken::Combs((&self.combs[..]).into()),
            false => Taken::Pieces(self.take(start, end, overlap).into()),
        }
    }

    /// The pieces in `start..end` as combs, if all of them are in rows of short runs with at most `hole`
    /// bytes between them, which do not interleave with others. Otherwise nothing is taken.
    pub(crate) fn combs(&mut self, start: u64, end: u64, hole: u64) -> Option<&[CombPiece]> {
        self.take_combs(start, end, hole).then_some(&self.combs)
    }

    fn take_combs(&mut self, start: u64, end: u64, hole: u64) -> bool {
        self.reach(end);
        let Plan { entries, sizes, .. } = self.plan;
        let combs = &mut self.combs;
        combs.clear();
        for (number, _) in &self.active {
            let Entry { request, what, .. } = &entries[*number];
            let (request, size) = (*request, sizes[*request as usize]);
            let Some(pattern) = what.combs(hole, size) else { return false };
            let Some((rows, (runs, step))) = pattern.rows() else { return false };
            let len = pattern.run_len();
            for (row, Run { offset, .. }) in
                rows.runs_after(start).take_while(|(_, row)| row.offset < end)
            {
                let element = match what {
                    What::Singles(..) => return false,
                    What::Pattern(_, first) => first + row * runs * (len / size),
                    What::Box(_, elements) => elements.of_run(pattern, row * runs),
                };
                let comb = Comb { offset, len, step, runs };
                let piece = CombPiece { comb, request, element };
                piece.within(start, end, size, |part| combs.push(part));
            }
        }
        let apart = combs.windows(2).all(|w| w[0].comb.end() <= w[1].comb.offset);
        let some = apart && !self.active.is_empty();
        if some {
            self.active.retain(|(number, _)| entries[*number].end > end);
        }
        some
    }

    /// Entries that begin before `end` are active from now on.
    fn reach(&mut self, end: u64) {
        let entries = &self.plan.entries;
        while entries.get(self.next).is_some_and(|e| e.first < end) {
            self.active.push((self.next, 0));
            self.next += 1;
        }
    }

    /// The pieces in `start..end`, sorted and cut there; the last may reach beyond `end` by less
    /// than an element. Each call begins where the one before it ended, or later.
    pub(crate) fn take(&mut self, start: u64, end: u64, overlap: Overlap) -> &[Piece] {
        self.reach(end);
        let entries = &self.plan.entries;
        self.pieces.clear();
        let pieces = &mut self.pieces;
        self.active.retain_mut(|(number, at)| {
            let entry = &entries[*number];
            let size = self.plan.sizes[entry.request as usize];
            let mut add = |piece: Piece| {
                // Most lie within, and dividing by the size costs more than the rest.
                if piece.offset >= start && piece.end() <= end {
                    pieces.push(piece);
                    return;
                }
                if piece.end() <= start {
                    return;
                }
                let (from, to) = (piece.cut(start, size), piece.cut(end, size));
                if from < to {
                    pieces.push(piece.part(from, to, size));
                }
            };
            match entry.what {
                What::Singles(list, shift) => {
                    let mut here = *at;
                    while let Some(s) = list.get(here).filter(|s| s.offset + shift.offset < end) {
                        let (offset, len) = (s.offset + shift.offset, s.len);
                        let (request, element) = (entry.request, s.element + shift.element);
                        add(Piece { offset, len, request, element });
                        here += 1;
                    }
                    // A run that goes on after the end is looked at again.
                    while *at < here && shift.offset + list[*at].offset + list[*at].len <= end {
                        *at += 1;
                    }
                    *at < list.len()
                }
                What::Pattern(pattern, first) => {
                    let per_run = pattern.run_len() / size;
                    let runs = pattern.runs_after(start);
                    for (number, run) in runs.take_while(|(_, run)| run.offset < end) {
                        let element = first + number * per_run;
                        let request = entry.request;
                        add(Piece { offset: run.offset, len: run.len, request, element });
                    }
                    entry.end > end
                }
                What::Box(pattern, elements) => {
                    let runs = pattern.runs_after(start);
                    for (number, run) in runs.take_while(|(_, run)| run.offset < end) {
                        let element = elements.of_run(pattern, number);
                        let request = entry.request;
                        add(Piece { offset: run.offset, len: run.len, request, element });
                    }
                    entry.end > end
                }
            }
        });
        if !pieces.is_sorted_by_key(|p| p.offset) {
            sort_by_offset(pieces, |p| p.offset);
        }
        if overlap == Overlap::LaterWins && pieces.windows(2).any(|w| w[0].end() > w[1].offset) {
            *pieces = later_wins(pieces, &self.plan.sizes);
        }
        pieces
    }
}
