//! Pieces of a stretch: runs, and combs of short ones.

use esker_format::runs::Run;

use crate::comb::Comb;
use crate::intervals::{self, Interval};

/// A run of the file and the elements of a request that belong there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) offset: u64,
    pub(crate) len: u64,
    pub(crate) request: u32,
    pub(crate) element: u64,
}

impl Piece {
    pub(crate) fn end(&self) -> u64 {
        self.offset + self.len
    }

    /// The order in which overlapping pieces were asked for.
    pub(super) fn order(&self) -> (u32, u64) {
        (self.request, self.element)
    }

    /// The first border of an element at or after `at`, or the nearer end of the piece.
    pub(super) fn cut(&self, at: u64, size: u64) -> u64 {
        let skipped = at.saturating_sub(self.offset).next_multiple_of(size);
        self.offset + skipped.min(self.len)
    }

    /// The part from `start` to `end`, which are borders of elements within it. `size` is an element's.
    pub(super) fn part(&self, start: u64, end: u64, size: u64) -> Piece {
        let skipped = (start - self.offset) / size;
        Piece { offset: start, len: end - start, element: self.element + skipped, ..*self }
    }
}

/// Short runs of the file at equal distances, and the elements of a request that belong there, one behind
/// the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CombPiece {
    pub(crate) comb: Comb,
    pub(crate) request: u32,
    pub(crate) element: u64,
}

impl CombPiece {
    /// Calls `each` with what begins in `start..end`, cut there between elements of `size` bytes, if it
    /// begins before `end`.
    pub(super) fn within(&self, start: u64, end: u64, size: u64, mut each: impl FnMut(CombPiece)) {
        let Comb { offset, len, step, runs } = self.comb;
        // The first run that ends after the start, and the first that begins at or after the end.
        let mut from = match start.checked_sub(offset + len) {
            Some(before) => before / step + 1,
            None => 0,
        };
        let mut to = ((end - 1 - offset) / step + 1).min(runs);
        let run = |number: u64| {
            let Run { offset, len } = self.comb.run(number);
            Piece { offset, len, request: self.request, element: self.element_of(number, size) }
        };
        let cut = |piece: Piece| {
            let (from, to) = (piece.cut(start, size), piece.cut(end, size));
            (from < to).then(|| {
                let Piece { offset, len, request, element } = piece.part(from, to, size);
                CombPiece { comb: Comb::single(Run { offset, len }), request, element }
            })
        };
        if from < to && run(from).offset < start {
            cut(run(from)).into_iter().for_each(&mut each);
            from += 1;
        }
        let last = (from < to && run(to - 1).end() > end).then(|| {
            to -= 1;
            cut(run(to))
        });
        if from < to {
            let (comb, element) = (self.comb.part(from, to - from), self.element_of(from, size));
            each(CombPiece { comb, element, ..*self });
        }
        last.flatten().into_iter().for_each(each);
    }

    /// The first element of the run of this number.
    pub(super) fn element_of(&self, number: u64, size: u64) -> u64 {
        self.element + number * (self.comb.len / size)
    }
}

/// Sorted pieces without overlaps: where several have a byte, the one asked for last has it.
pub(crate) fn later_wins(sorted: &[Piece], sizes: &[u64]) -> Vec<Piece> {
    let size = |piece: &Piece| sizes[piece.request as usize];
    let part = |piece: &Piece, from, to| piece.part(from, to, size(piece));
    let grow = |last: &mut Piece, next: &Piece| {
        let after = (last.end(), last.request, last.element + last.len / size(next));
        let continues = after == (next.offset, next.request, next.element);
        last.len += if continues { next.len } else { 0 };
        continues
    };
    intervals::later_wins(sorted, Piece::order, part, grow)
}

impl Interval for Piece {
    fn from(&self) -> u64 {
        self.offset
    }

    fn to(&self) -> u64 {
        self.end()
    }
}
