//! What a sweep gives of a stretch of the file, and the ways between that and the requests' memory.

use std::borrow::Cow;

use esker_comm::Laying;
use esker_format::runs::Run;

use crate::comb::Comb;
use crate::error::{Error, Result};
use crate::notes::Notes;
use crate::plan::{CombPiece, Piece};
use crate::request::Request;
use crate::wire::RunList;

/// The pieces of a stretch, in file order: as combs where short runs lie regularly and for themselves,
/// otherwise one by one.
#[derive(Debug)]
pub(crate) enum Taken<'s> {
    Pieces(Cow<'s, [Piece]>),
    Combs(Cow<'s, [CombPiece]>),
}

/// Bytes that are gathered or scattered at a time: half of a first-level cache.
const AT_ONCE: usize = 8 << 10;

impl Taken<'_> {
    /// The same, not borrowed from the sweep.
    pub(crate) fn into_owned(self) -> Taken<'static> {
        match self {
            Taken::Pieces(pieces) => Taken::Pieces(Cow::Owned(pieces.into_owned())),
            Taken::Combs(combs) => Taken::Combs(Cow::Owned(combs.into_owned())),
        }
    }

    /// The same, borrowed from this.
    pub(crate) fn borrow(&self) -> Taken<'_> {
        match self {
            Taken::Pieces(pieces) => Taken::Pieces(Cow::Borrowed(pieces)),
            Taken::Combs(combs) => Taken::Combs(Cow::Borrowed(combs)),
        }
    }

    /// Whether there is nothing in the stretch.
    pub(crate) fn is_empty(&self) -> bool {
        match self {
            Taken::Pieces(pieces) => pieces.is_empty(),
            Taken::Combs(combs) => combs.is_empty(),
        }
    }

    /// Bytes of the file that it has, counted for each who wants them.
    pub(crate) fn bytes(&self) -> u64 {
        match self {
            Taken::Pieces(pieces) => pieces.iter().map(|p| p.len).sum(),
            Taken::Combs(combs) => combs.iter().map(|c| c.comb.bytes()).sum(),
        }
    }

    /// Bytes that the list takes.
    pub(crate) fn memory(&self) -> u64 {
        match self {
            Taken::Pieces(pieces) => size_of_val(&**pieces) as u64,
            Taken::Combs(combs) => size_of_val(&**combs) as u64,
        }
    }

    /// Bytes of the file that it has, each counted once.
    pub(crate) fn union_len(&self) -> u64 {
        match self {
            Taken::Pieces(pieces) => union_len(pieces),
            // They share none.
            Taken::Combs(_) => self.bytes(),
        }
    }

    /// Adds its runs to a list.
    pub(crate) fn list(&self, list: &mut RunList) {
        match self {
            Taken::Pieces(pieces) => {
                pieces.iter().for_each(|p| list.push(Run { offset: p.offset, len: p.len }));
            }
            Taken::Combs(combs) => combs.iter().for_each(|c| list.push_comb(&c.comb)),
        }
    }

    /// Calls `each` with its runs, those at equal distances together.
    pub(crate) fn each_comb(&self, mut each: impl FnMut(Comb)) {
        match self {
            Taken::Pieces(pieces) => {
                let runs = pieces.iter().map(|p| Run { offset: p.offset, len: p.len });
                runs.for_each(|run| each(Comb::single(run)));
            }
            Taken::Combs(combs) => combs.iter().for_each(|c| each(c.comb)),
        }
    }

    /// How many runs it has.
    pub(crate) fn runs(&self) -> u64 {
        match self {
            Taken::Pieces(pieces) => pieces.len() as u64,
            Taken::Combs(combs) => combs.iter().map(|c| c.comb.runs).sum(),
        }
    }

    /// Lays the requests' values into a window, which begins at `base`: what another rank has laid there stays. Values that go
    /// nowhere for that are converted all the same, because one that does not fit is an error of its rank.
    pub(crate) fn lay(
        &self,
        window: &mut Laying,
        base: u64,
        requests: &[Request<'_>],
        notes: &mut Notes,
    ) -> Result<()> {
        let size_of = |request: u32| requests[request as usize].memory.sides.external.size();
        let combs = match self {
            Taken::Pieces(pieces) => {
                for piece in pieces.iter() {
                    let size = size_of(piece.request) as usize;
                    let (at, len) = ((piece.offset - base) as usize, piece.len as usize);
                    let element = |from: usize| {
                        // Mostly nobody else is there.
                        let skipped = if from == 0 { 0 } else { (from / size) as u64 };
                        (piece.request, piece.element + skipped)
                    };
                    let mut done = 0;
                    window.try_claim(at, len, size, |from, target| {
                        notes.judge(requests, element(done), from - done)?;
                        done = from + target.len();
                        notes.pack(requests, element(from), target)
                    })?;
                    notes.judge(requests, element(done), len - done)?;
                }
                return Ok(());
            }
            Taken::Combs(combs) => combs,
        };
        let mut buffer = [0; AT_ONCE];
        for piece in combs.iter() {
            let size = size_of(piece.request);
            let mut element = piece.element;
            for part in parts(&piece.comb) {
                let values = &mut buffer[..part.bytes() as usize];
                notes.pack(requests, (piece.request, element), values)?;
                let runs = (part.len as usize, part.step as usize);
                window.lay_runs((part.offset - base) as usize, runs, size as usize, values);
                element += part.bytes() / size;
            }
        }
        Ok(())
    }

    /// Gives the requests what they want of `bytes`, those of the file from `base` on.
    pub(crate) fn take_out(
        &self,
        base: u64,
        bytes: &[u8],
        requests: &mut [Request<'_>],
    ) -> Result<()> {
        match self {
            Taken::Pieces(pieces) => {
                for piece in pieces.iter() {
                    let at = (piece.offset - base) as usize;
                    let source = bytes.get(at..at + piece.len as usize).ok_or(Error::Garbled)?;
                    requests[piece.request as usize].unpack(piece.element, source)?;
                }
                Ok(())
            }
            Taken::Combs(combs) => take_out_combs(combs, base, bytes, requests),
        }
    }

    /// Puts the requests' values one behind the other into `out`, which has room for just them.
    pub(crate) fn pack(
        &self,
        mut out: &mut [u8],
        requests: &[Request<'_>],
        notes: &mut Notes,
    ) -> Result<()> {
        let mut put = |len: u64, request: u32, element: u64| {
            let (target, later) = std::mem::take(&mut out).split_at_mut(len as usize);
            out = later;
            notes.pack(requests, (request, element), target)
        };
        match self {
            Taken::Pieces(pieces) => {
                pieces.iter().try_for_each(|p| put(p.len, p.request, p.element))
            }
            Taken::Combs(combs) => {
                combs.iter().try_for_each(|c| put(c.comb.bytes(), c.request, c.element))
            }
        }
    }

    /// Takes the requests' values out of the bytes of the union of its runs.
    pub(crate) fn unpack(&self, bytes: &[u8], requests: &mut [Request<'_>]) -> Result<()> {
        let combs = match self {
            Taken::Pieces(pieces) => return unpack(bytes, pieces, requests),
            Taken::Combs(combs) => combs,
        };
        let mut rest = bytes;
        for piece in combs.iter() {
            let len = piece.comb.bytes() as usize;
            let (now, later) = rest.split_at_checked(len).ok_or(Error::Garbled)?;
            requests[piece.request as usize].unpack(piece.element, now)?;
            rest = later;
        }
        Ok(())
    }
}

/// Gives the requests what combs have of `bytes`, those of the file from `base` on.
pub(crate) fn take_out_combs(
    combs: &[CombPiece],
    base: u64,
    bytes: &[u8],
    requests: &mut [Request<'_>],
) -> Result<()> {
    let mut buffer = [0; AT_ONCE];
    for piece in combs {
        let request = &mut requests[piece.request as usize];
        let mut element = piece.element;
        for part in parts(&piece.comb) {
            let at = (part.offset - base) as usize;
            let source = bytes.get(at..at + part.span() as usize).ok_or(Error::Garbled)?;
            let values = &mut buffer[..part.bytes() as usize];
            part.gather(source, values);
            request.unpack(element, values)?;
            element += part.bytes() / request.memory.sides.external.size();
        }
    }
    Ok(())
}

/// A comb in parts whose runs fit into a buffer.
fn parts(comb: &Comb) -> impl Iterator<Item = Comb> + use<> {
    let comb = *comb;
    let at_once = (AT_ONCE as u64 / comb.len).max(1);
    (0..comb.runs)
        .step_by(at_once as usize)
        .map(move |from| comb.part(from, at_once.min(comb.runs - from)))
}

/// Bytes that sorted pieces have together, each counted once.
pub(crate) fn union_len(pieces: &[Piece]) -> u64 {
    let mut end = 0;
    let mut total = 0;
    for piece in pieces {
        let from = piece.offset.max(end);
        total += piece.end().saturating_sub(from);
        end = end.max(piece.end());
    }
    total
}

/// Takes sorted pieces out of their union's bytes.
pub(crate) fn unpack(bytes: &[u8], pieces: &[Piece], requests: &mut [Request<'_>]) -> Result<()> {
    // The union's current run: where it begins in the file and in `bytes`.
    let (mut run, mut at) = (Run { offset: 0, len: 0 }, 0);
    for piece in pieces {
        if piece.offset > run.end() || run.len == 0 {
            at += run.len as usize;
            run = Run { offset: piece.offset, len: piece.len };
        } else {
            run.len = run.end().max(piece.end()) - run.offset;
        }
        let from = at + (piece.offset - run.offset) as usize;
        let source = bytes.get(from..from + piece.len as usize).ok_or(Error::Garbled)?;
        requests[piece.request as usize].unpack(piece.element, source)?;
    }
    Ok(())
}
