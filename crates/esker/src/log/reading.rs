//! Reading as it was written: variable, record, elements.
//!
//! The places of what is read are in the space of a log, as those of a write are. Each request is
//! swept by itself, a batch of bounded length at a time; who lays a batch knows where entries are.

use std::ops::Range;
use std::time::Instant;

use esker_format::{Header, VarId, Variable};

use super::asking::Question;
use super::grid::{Grid, Slab};
use super::index::Index;
use super::lay::Want;
use super::parts::in_records;
use super::view::View;
use crate::canonical::detach_extents;
use crate::error::Result;
use crate::ground::Ground;
use crate::hints::Hints;
use crate::layout::Over;
use crate::plan::{Extent, Overlap, Piece, Plan, Summary};
use crate::report::{Report, Tally};
use crate::request::Request;
use crate::selection::{LogSpace, log_record_step};

/// The distance of the variable's records in a log's space; 0 for one without.
pub(crate) fn record_step(header: &Header, variable: &Variable) -> u64 {
    match header.schema.is_record(variable) {
        true => log_record_step(header.schema.shape(variable, 0)[1..].iter().product()),
        false => 0,
    }
}

impl Over for View {
    fn read(&self, ground: &Ground, gets: &mut [Request<'_>], report: &mut Report) -> Result<()> {
        let extents = detach_extents(gets);
        report.requests += gets.len() as u64;
        for (get, extent) in gets.iter().zip(&extents) {
            let Summary { runs, bytes, .. } = extent.summary();
            report.runs += runs;
            report.bytes += bytes * get.memory.sides.external.size();
        }
        read_from(ground, self, (gets, &extents), report)
    }
}

/// Reads what a view's index knows.
pub(crate) fn read_from(
    ground: &Ground,
    view: &View,
    requests: (&mut [Request<'_>], &[Extent]),
    report: &mut Report,
) -> Result<()> {
    let how = (&ground.header, &ground.base.hints);
    read(how, requests, report, |batch, out| {
        let state = view.state();
        Ok(view.lay_batch((&state, &state.index), batch, false, out)?)
    })
}

/// Runs that are looked at at once, about.
const RUNS: u64 = 64 * 1024;

/// Bytes of values that are laid at once: more would have more entries.
const LONGEST: u64 = 8 << 20;

/// Bytes and elements of a box that is laid at once into memory of the variable's type.
const LONGEST_BOX: u64 = 32 << 20;
const MOST_ELEMENTS: u64 = 8 << 20;

/// Boxes of a request that are laid as such; of more, or of others, the runs are.
const MOST_BOXES: usize = 256;

/// Some of the elements of a variable that a request reads.
#[derive(Debug)]
pub(crate) struct Batch {
    pub(crate) var: VarId,
    /// Whether elements are wanted as this machine has them, not as the file has.
    pub(crate) native: bool,
    /// By record, and sorted in each.
    wants: Vec<Want>,
    /// Each record, and which of the wants are of it.
    records: Vec<(u64, Range<usize>)>,
    /// The first element of the request that each want is.
    firsts: Vec<u64>,
    /// A box of it instead, and the first element of the request that it is.
    slab: Option<(Grid, Slab, u64)>,
    elements: u64,
}

impl Batch {
    /// The records, and what is wanted of each.
    pub(crate) fn records(&self) -> impl Iterator<Item = (u64, &[Want])> {
        self.records.iter().map(|(record, wants)| (*record, &self.wants[wants.clone()]))
    }

    /// The box that it is in a grid, and the byte at which its first element goes.
    pub(super) fn slab(&self, width: u64) -> Option<(&Grid, &Slab, u64)> {
        let (grid, slab, first) = self.slab.as_ref()?;
        Some((grid, slab, if self.native { first * width } else { 0 }))
    }

    /// What is around all of it; `None` if it has nothing.
    pub(crate) fn question(&self) -> Option<Question> {
        if let Some((grid, slab, _)) = &self.slab {
            let (var, records) = (self.var.0 as u64, slab.records());
            return Some(Question { var, records, elements: grid.pattern(slab) });
        }
        let (first, last) = (self.records.first()?.0, self.records.last()?.0);
        let from = self.wants.iter().map(|want| want.from).min()?;
        let to = self.wants.iter().map(|want| want.to).max()?;
        Some(Question::of_elements(self.var.0 as u64, first..last + 1, from..to))
    }

    /// Adds as much of a piece as there is room for, which begins at this element of a record; gives how much.
    /// Nothing, if what is there has it already or lies behind it.
    fn add(&mut self, piece: &Piece, (record, from): (u64, u64), at: u64, room: u64) -> u64 {
        let len = piece.len.min(room);
        let want = Want { from, to: from + len, at };
        let number = self.wants.len();
        match self.records.last_mut() {
            Some((last, wants)) if *last == record => {
                if self.wants.last().is_some_and(|w| w.to > from) {
                    return 0;
                }
                wants.end += 1;
            }
            _ => self.records.push((record, number..number + 1)),
        }
        self.wants.push(want);
        self.firsts.push(piece.element);
        self.elements += len;
        len
    }

    fn clear(&mut self) {
        self.wants.clear();
        self.records.clear();
        self.firsts.clear();
        self.slab = None;
        self.elements = 0;
    }
}

/// What requests read, in numbers of the classic file, and how much a read of it would read along if holes of
/// `hole` bytes were read.
pub(crate) fn summary<'e>(
    header: &Header,
    requests: impl Iterator<Item = (VarId, &'e Extent)>,
    hole: u64,
) -> (Summary, u64) {
    let (mut all, mut sieved) = (Summary::default(), 0);
    for (var, extent) in requests {
        let space = LogSpace::of(header, var);
        let plan = Plan::new([extent].into_iter());
        let Summary { first, end, runs, bytes } = plan.summary;
        if runs > 0 {
            let (first, end) = (space.byte(first), space.end(end));
            all.join(&Summary { first, end, runs, bytes: bytes * space.width });
            sieved += plan.sieved(hole / space.width) * space.width;
        }
    }
    (all, sieved)
}

/// Bytes that these requests want, and bytes of the logs' blocks that are read for them if every rank reads its own. `None` where the
/// index does not say, or where they are not boxes.
pub(crate) fn loaded<'e>(
    header: &Header,
    index: &Index,
    requests: impl Iterator<Item = (VarId, &'e Extent)>,
) -> Option<(u64, u64)> {
    let (mut wanted, mut loaded) = (0u64, 0u64);
    for (var, extent) in requests {
        let width = LogSpace::of(header, var).width;
        let (grid, boxes) = boxes_of(header, var, extent)?;
        for (slab, _) in &boxes {
            wanted = wanted.saturating_add(slab.volume().saturating_mul(width));
            let known = index.ask_slab(var.0 as u64, slab, |found| {
                loaded = loaded.saturating_add(index.loaded(var.0 as u64, found, slab, width));
            });
            if !known || *index.grid(var.0 as u64) != grid {
                return None;
            }
        }
    }
    Some((wanted, loaded))
}

/// Reads requests whose places are in the space of a log. `lay` puts the elements of a batch to their places.
pub(crate) fn read(
    (header, hints): (&Header, &Hints),
    (gets, extents): (&mut [Request<'_>], &[Extent]),
    report: &mut Report,
    mut lay: impl FnMut(&Batch, &mut [u8]) -> Result<()>,
) -> Result<()> {
    let most = hints.read_at_once(super::view::READ).min(LONGEST);
    let (wants, records, firsts) = (Vec::new(), Vec::new(), Vec::new());
    let var = VarId(0);
    let mut batch = Batch { var, native: false, wants, records, firsts, slab: None, elements: 0 };
    let mut reader = Reader { block: Vec::new(), tally: Tally::default(), report, lay: &mut lay };
    for (get, extent) in gets.iter_mut().zip(extents) {
        let space = LogSpace::of(header, get.var);
        let native = get.memory.native_target().is_some();
        let room = (if native { LONGEST } else { most } / space.width).max(1);
        (batch.var, batch.native) = (get.var, native);
        if let Some((grid, boxes)) = boxes_of(header, get.var, extent) {
            let room = if native { LONGEST_BOX / space.width } else { room }.min(MOST_ELEMENTS);
            for (slab, first) in boxes {
                let mut next = first;
                slab.pieces(room, &mut |piece| {
                    batch.elements = piece.volume();
                    batch.slab = Some((grid, *piece, next));
                    next += piece.volume();
                    reader.lay(&mut batch, get, space.width)
                })?;
            }
            continue;
        }
        let plan = Plan::new([extent].into_iter());
        let mut sweep = plan.sweep();
        let (mut at, mut length) = (plan.summary.first, u64::MAX);
        while let Some(start) = sweep.next_offset(at).filter(|s| *s < plan.summary.end) {
            at = sweep.stretch(start, &mut length, RUNS);
            for piece in sweep.take(start, at, Overlap::Shared) {
                let mut piece = *piece;
                while piece.len > 0 {
                    let to = if native { piece.element } else { batch.elements } * space.width;
                    let left = room - batch.elements;
                    let n = match left {
                        0 => 0,
                        _ => batch.add(&piece, space.split(piece.offset), to, left),
                    };
                    if n == 0 {
                        reader.lay(&mut batch, get, space.width)?;
                    }
                    (piece.offset, piece.element) = (piece.offset + n, piece.element + n);
                    piece.len -= n;
                }
            }
            reader.lay(&mut batch, get, space.width)?;
        }
    }
    let Reader { block, tally, report, .. } = reader;
    report.peak_memory = report.peak_memory.max(block.len() as u64);
    report.add(tally);
    Ok(())
}

/// The boxes that a request reads, each with its first element; `None` if it is anything else.
fn boxes_of(header: &Header, var: VarId, extent: &Extent) -> Option<(Grid, Vec<(Slab, u64)>)> {
    let grid = Grid::of(header, var);
    let step = LogSpace::of(header, var).step;
    let boxes = extent.hyperslabs(MOST_BOXES)?.into_iter().map(|(pattern, first)| {
        let (records, element, levels) = in_records(&pattern, step);
        let levels = levels.iter().copied().chain([(pattern.run_len(), 1)]);
        let (slab, whole) = grid.hull(records, element, levels);
        whole.then_some((slab, first))
    });
    let boxes: Option<Vec<(Slab, u64)>> = boxes.collect();
    Some((grid, boxes?))
}

struct Reader<'r, L> {
    block: Vec<u8>,
    tally: Tally,
    report: &'r mut Report,
    lay: &'r mut L,
}

impl<L: FnMut(&Batch, &mut [u8]) -> Result<()>> Reader<'_, L> {
    /// Lays a batch into the request's memory, or through the block, and empties it.
    fn lay(&mut self, batch: &mut Batch, get: &mut Request<'_>, width: u64) -> Result<()> {
        let bytes = batch.elements * width;
        if bytes == 0 {
            return Ok(());
        }
        let clock = Instant::now();
        match get.memory.native_target() {
            Some(target) => (self.lay)(batch, target)?,
            None => {
                if self.block.len() < bytes as usize {
                    self.block.resize(bytes as usize, 0);
                }
                (self.lay)(batch, &mut self.block[..bytes as usize])?;
            }
        }
        self.report.phases.read += clock.elapsed();
        self.report.copied += bytes;
        self.tally.read(1, bytes);
        if batch.native {
            get.range.elements += batch.elements;
        } else {
            let clock = Instant::now();
            if let Some((_, _, first)) = batch.slab {
                get.unpack(first, &self.block[..bytes as usize])?;
            }
            for (want, first) in batch.wants.iter().zip(&batch.firsts) {
                let end = want.at + (want.to - want.from) * width;
                get.unpack(*first, &self.block[want.at as usize..end as usize])?;
            }
            self.report.phases.convert += clock.elapsed();
        }
        batch.clear();
        Ok(())
    }
}
