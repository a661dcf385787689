//! Chunked variables of a container: what ranks put together goes to the owners of chunks, which append it to their logs.
//!
//! Only writing knows of it. An entry is read as any other, whoever appended it; so what a rank puts alone, and what a chunk
//! has only a part of, is appended as it is, and nothing is read in order to be written.

use std::sync::Arc;

use esker_comm::{Communicator, Message};
use esker_format::chunked::{Grid, SHAPE};
use esker_format::log::{Footprint, Records};
use esker_format::runs::advance;
use esker_format::values::swap_in_place;
use esker_format::{Schema, VarId, Variable};

use super::Container;
use crate::chunked::{
    Batch, ChunkId, Chunking, Chunks, Space, asked_for, assign, sections, too_large, touched,
};
use crate::error::{Error, Result, SelectionError};
use crate::exchange::{self, Came, Sink, Unit, Units, With};
use crate::gathered::Gathered;
use crate::ground::Ground;
use crate::layout::{Asked, Layout};
use crate::log::{Part, Shape, each_part_of, record_step};
use crate::memory::{Lent, MemoryLayout};
use crate::notes::Notes;
use crate::plan::{Extent, Overlap, Plan, Sweep};
use crate::report::{Report, Strategy};
use crate::request::{Direction, Request, RequestId};
use crate::selection::{self, Purpose, Selection};
use crate::slabs::{Array, Levels};

/// Boxes of a chunk that is written in part are entries of their own, if they are so few. More are one entry with a list.
const FEW: usize = 8;

/// The variables of a container that are cut into chunks.
#[derive(Debug)]
pub(super) struct Gridded {
    /// By number; an error says why an attribute says nothing.
    vars: Vec<Option<std::result::Result<Chunking, String>>>,
    space: Space,
}

/// What a rank puts into chunks in a wait.
#[derive(Debug, Default)]
pub(super) struct Planned {
    /// Where the elements of each put are in chunks.
    extents: Vec<Extent>,
    /// The chunks that they touch, by address, with the bytes that they have of each.
    units: Vec<(u64, u64)>,
}

impl Planned {
    /// How many chunks it touches.
    pub(super) fn chunks(&self) -> u64 {
        self.units.len() as u64
    }
}

impl Gridded {
    /// Those of a schema, if it has any.
    pub(super) fn of(schema: &Schema) -> Option<Arc<Gridded>> {
        let has = |var: &Variable| !var.dims.is_empty() && var.attrs.get(SHAPE).is_some();
        if !schema.vars.iter().any(has) {
            return None;
        }
        let of_var = |var: &Variable| has(var).then(|| asked_for(schema, var));
        let vars: Vec<_> = schema.vars.iter().map(of_var).collect();
        let grids = vars.iter().map(|var| Some(&var.as_ref()?.as_ref().ok()?.grid));
        let space = Space::new(grids);
        Some(Arc::new(Gridded { vars, space }))
    }

    /// Whether a variable is one of them.
    pub(super) fn has(&self, var: VarId) -> bool {
        self.vars.get(var.0).is_some_and(Option::is_some)
    }

    /// Lengths of a variable's chunks.
    pub(super) fn chunk(&self, var: VarId) -> Option<&[u64]> {
        match self.vars.get(var.0)? {
            Some(Ok(chunking)) => Some(&chunking.chunk),
            _ => None,
        }
    }

    /// How a variable is cut into chunks that can be held in memory.
    fn chunking(&self, ground: &Ground, var: VarId) -> Result<&Chunking> {
        let fail = |why: String| Err(ground.chunk_error(var, why));
        match self.vars.get(var.0) {
            Some(Some(Ok(chunking))) => match too_large(chunking, ground.base.hints.chunk_max) {
                None => Ok(chunking),
                Some(why) => fail(why),
            },
            Some(Some(Err(why))) => fail(why.clone()),
            _ => Err(Error::Garbled),
        }
    }

    /// Where puts of these variables have their elements in chunks.
    pub(super) fn plan<'p, 'b: 'p>(
        &self,
        ground: &Ground,
        puts: impl Iterator<Item = &'p mut Request<'b>>,
    ) -> Result<Planned> {
        let extents = puts.map(|put| self.in_chunks(ground, put)).collect::<Result<Vec<_>>>()?;
        let units = touched(&self.space, extents.iter());
        Ok(Planned { extents, units })
    }

    /// Where one has them.
    fn in_chunks(&self, ground: &Ground, put: &mut Request<'_>) -> Result<Extent> {
        let var = put.var;
        let grid = &self.chunking(ground, var)?.grid;
        let variable = ground.header.schema.variable(var).ok_or(Error::Garbled)?;
        let step = record_step(&ground.header, variable);
        let beyond = || {
            let (path, var) = (ground.base.path.clone(), ground.name(var));
            Error::Selection { path, var, source: SelectionError::TooLarge }
        };
        let mut lens = grid.dims.clone();
        if grid.has_records {
            lens[0] = put.records;
        }
        let mut extent = Extent::new(grid.size);
        if lens.contains(&0) {
            return Ok(extent);
        }
        let array = Array::new(lens).ok_or_else(beyond)?;
        let record = if grid.has_records { array.steps[0] } else { 0 };
        each_part_of(put, step, |_, part| {
            let mut element = part.elements.start;
            each_level(&part, record, &mut |first, levels| {
                let mut placed = Some(());
                array.slabs(first, levels, &mut |slab| {
                    placed =
                        placed.and_then(|()| self.space.cut(var, grid, slab, element, &mut extent));
                    element += slab.count.iter().product::<u64>();
                });
                placed.ok_or_else(beyond)
            })
        })?;
        extent.finish();
        Ok(extent)
    }
}

/// Calls `each` with the elements of a part as levels of the whole array, of which a record has so many, in their order.
fn each_level(
    part: &Part<'_>,
    record: u64,
    each: &mut impl FnMut(u64, &Levels) -> Result<()>,
) -> Result<()> {
    let Records { first, count, step } = part.records;
    let first = first.saturating_mul(record).saturating_add(part.first);
    let outer = (count, step.saturating_mul(record));
    let mut block = |run: u64, levels: &Levels| {
        let all: Vec<(u64, u64)> =
            [outer].into_iter().chain(levels.iter().copied()).chain([(run, 1)]).collect();
        each(first, &all)
    };
    match &part.shape {
        Shape::Block { run, levels } => return block(*run, levels),
        Shape::Shared(footprint) => {
            if let Footprint::Block { run, levels } = &***footprint {
                return block(*run, levels);
            }
        }
        Shape::Runs { .. } => {}
    }
    let mut one = |start: u64, len: u64| each(first.saturating_add(start), &[(len, 1)]);
    match &part.shape {
        Shape::Shared(footprint) => match &***footprint {
            Footprint::Runs(runs) => runs.iter().try_for_each(|run| one(run.start, run.len)),
            Footprint::Block { .. } => Ok(()),
        },
        shape => shape.runs().into_iter().flatten().try_for_each(|run| one(run.start, run.len)),
    }
}

impl Container {
    /// Brings what ranks put into chunks to the owners of these, who append it; all ranks together have at most so many
    /// accesses. Collective.
    pub(super) fn gather(
        &mut self,
        ground: &mut Ground,
        puts: &mut [Request<'_>],
        planned: &Planned,
        accesses: u64,
        report: &mut Report,
    ) -> Result<()> {
        let Some(gridded) = self.gridded.clone() else { return Ok(()) };
        let comm = ground.base.comm.clone();
        let weights = (ground.base.hints.chunk_buffer, ground.penalty());
        let assigned = assign(&*comm, &gridded.space, &planned.units, accesses, weights)?;
        report.requests += puts.len() as u64;
        report.rounds += assigned.rounds;
        report.write_strategy =
            if comm.size() == 1 { Strategy::Appended } else { Strategy::Exchanged };
        let plan = Plan::new(planned.extents.iter());
        let mut notes = Notes::default();
        let shared: &[Request<'_>] = puts;
        let mut sink = Appending {
            container: self,
            ground,
            gridded: &gridded,
            chunks: Chunks::new(&gridded.space, &assigned, &planned.units),
            plan: &plan,
            puts: shared,
            gathered: Gathered::default(),
            values: Vec::new(),
            notes: Notes::default(),
            failed: None,
        };
        let mut with = With { puts: shared, notes: &mut notes, report };
        exchange::write(&*comm, &plan, &mut sink, &mut Vec::new(), &mut with)?;
        let Appending { notes: own, failed, .. } = sink;
        notes.append(own);
        notes.tell(puts);
        failed.map_or(Ok(()), Err)
    }
}

/// Chunks that are put together, a few at a time, and appended.
struct Appending<'a> {
    container: &'a mut Container,
    ground: &'a mut Ground,
    gridded: &'a Gridded,
    chunks: Chunks<'a>,
    plan: &'a Plan<'a>,
    puts: &'a [Request<'a>],
    gathered: Gathered,
    /// What is appended, as the machine has it.
    values: Vec<u8>,
    notes: Notes,
    /// The first failure: nothing is appended after it.
    failed: Option<Error>,
}

impl Units for Appending<'_> {
    const ASCEND: bool = false;

    fn next_round(&mut self, _: &dyn Communicator, _: &Sweep<'_, '_>) -> Result<Option<u64>> {
        Ok(self.chunks.next_round())
    }

    fn of_round(&mut self, round: u64) -> Vec<Unit> {
        self.chunks.of_round(round)
    }

    fn memory(&self) -> u64 {
        self.gathered.memory() + self.values.capacity() as u64
    }
}

impl Sink for Appending<'_> {
    /// They are laid into their chunk when it is its turn, between those of the ranks below and above.
    fn own(&mut self, _: &Unit, _: &mut Sweep<'_, '_>, _: &mut With<'_, '_>) -> Result<()> {
        Ok(())
    }

    fn put(&mut self, round: u64, came: Came, report: &mut Report) -> Result<Vec<Message>> {
        let batch = Batch { owned: self.chunks.owned(round).to_vec(), messages: came };
        if self.failed.is_none() {
            self.failed = self.append_all(&batch, report).err();
        }
        Ok(batch.messages.into_iter().map(|(_, message)| message).collect())
    }
}

impl Appending<'_> {
    /// Appends the chunks of a round.
    fn append_all(&mut self, batch: &Batch, report: &mut Report) -> Result<()> {
        let found = sections(batch).ok_or(Error::Garbled)?;
        let me = self.ground.base.comm.rank();
        let mut sweep = self.plan.sweep();
        let mut rest = &found[..];
        for (n, address) in batch.owned.iter().enumerate() {
            let (id, start, bytes) = self.gridded.space.chunk_at(*address).ok_or(Error::Garbled)?;
            let (now, later) = rest.split_at(rest.partition_point(|(chunk, _, _)| *chunk <= n));
            rest = later;
            let below = now.partition_point(|(_, m, _)| batch.messages[*m].0 < me);
            let (below, above) = now.split_at(below);
            self.gathered.reset(start, bytes);
            for (_, message, place) in below {
                report.copied +=
                    self.gathered.lay_section(&batch.messages[*message].1[place.clone()])?;
            }
            for piece in sweep.take(start, start + bytes, Overlap::LaterWins) {
                let place = self.gathered.lay(piece.offset, piece.len);
                self.notes.pack(self.puts, (piece.request, piece.element), place)?;
                report.copied += piece.len;
            }
            for (_, message, place) in above {
                report.copied +=
                    self.gathered.lay_section(&batch.messages[*message].1[place.clone()])?;
            }
            self.append_chunk(id, report)?;
        }
        Ok(())
    }

    /// Appends what is known of a chunk: one entry if that is a box.
    fn append_chunk(&mut self, id: ChunkId, report: &mut Report) -> Result<()> {
        let gridded = self.gridded;
        let grid = &gridded.chunking(self.ground, id.var)?.grid;
        let boxes = boxes(&self.gathered, grid);
        let index = grid.index(id.number);
        let origin: Vec<u64> = index.iter().zip(&grid.chunk).map(|(i, len)| i * len).collect();
        let at_once = if boxes.len() <= FEW { 1 } else { boxes.len() };
        for boxes in boxes.chunks(at_once) {
            self.values.clear();
            boxes.iter().for_each(|one| copy_box(&self.gathered, grid, one, &mut self.values));
            report.copied += self.values.len() as u64;
            swap_in_place(&mut self.values, grid.size as usize);
            let sides = boxes.iter().flatten().zip(origin.iter().cycle());
            let (starts, counts) = sides.map(|((from, n), at)| (from + at, *n)).unzip();
            let selection = Selection::list(grid.chunk.len(), starts, counts);
            self.append_values(id.var, &selection, report)?;
        }
        Ok(())
    }

    /// Appends the values to a selection.
    fn append_values(
        &mut self,
        var: VarId,
        selection: &Selection,
        report: &mut Report,
    ) -> Result<()> {
        let variable = self.ground.header.schema.variable(var).ok_or(Error::Garbled)?;
        let ty = variable.ty;
        let purpose = Purpose::Write { elements: self.values.len() as u64 / ty.size() };
        let asked = Asked { var, selection, purpose, space: selection::Space::Log };
        let checked = self.container.check(self.ground, asked)?;
        let values = std::mem::take(&mut self.values);
        let lent = Lent::Source(&values);
        let memory = self.ground.memory(var, lent, ty.natural(), MemoryLayout::dense())?;
        let what = (Direction::Put, var, checked);
        let mut put = Request::new(RequestId::REPLAYED, what, memory, self.ground.epoch);
        let appended = self.container.append_one(self.ground, &mut put, report);
        drop(put);
        self.values = values;
        appended
    }
}

/// A box of a chunk: first index and length in each dimension.
type Side = (u64, u64);

/// Boxes that have what is known of a chunk, and nothing else.
fn boxes(gathered: &Gathered, grid: &Grid) -> Vec<Vec<Side>> {
    let steps = grid.steps();
    let mut found = Vec::new();
    known(gathered, grid, &steps, (0, gathered.start()), &mut found);
    found
}

/// The same for the indices of a chunk from dimension `d` on whose elements begin at `at`.
fn known(
    gathered: &Gathered,
    grid: &Grid,
    steps: &[u64],
    (d, at): (usize, u64),
    found: &mut Vec<Vec<Side>>,
) {
    let (len, step) = (grid.chunk[d], steps[d]);
    if gathered.has_all(at, len * step) {
        return found.push(grid.chunk[d..].iter().map(|len| (0, *len)).collect());
    }
    if d + 1 == grid.chunk.len() {
        let begin = (at - gathered.start()) as usize;
        let stretches = gathered.covered(begin..begin + (len * step) as usize);
        let side =
            |(from, to): (usize, usize)| ((from - begin) as u64 / step, (to - from) as u64 / step);
        return found.extend(stretches.map(|stretch| vec![side(stretch)]));
    }
    // Indices that have the same are one box further.
    let mut same: (u64, u64, Vec<Vec<Side>>) = (0, 0, Vec::new());
    let mut end = |(first, count, inner): (u64, u64, Vec<Vec<Side>>)| {
        let with = |inner: Vec<Side>| [(first, count)].into_iter().chain(inner).collect();
        found.extend(inner.into_iter().map(with));
    };
    for i in 0..len {
        let begin = at + i * step;
        let mut inner = Vec::new();
        if gathered.has_any(begin, step) {
            known(gathered, grid, steps, (d + 1, begin), &mut inner);
        }
        match same.2 == inner {
            true => same.1 += 1,
            false => end(std::mem::replace(&mut same, (i, 1, inner))),
        }
    }
    end(same);
}

/// Adds the elements of a box to `out`.
fn copy_box(gathered: &Gathered, grid: &Grid, sides: &[Side], out: &mut Vec<u8>) {
    let steps = grid.steps();
    // Dimensions from this one on are whole, so that they are one run.
    let whole = sides.iter().zip(&grid.chunk).rev().take_while(|((_, n), len)| n == *len).count();
    let outer = (sides.len() - whole).saturating_sub(1);
    let run = sides[outer].1 * steps[outer];
    let first: u64 = sides.iter().zip(&steps).map(|((from, _), step)| from * step).sum();
    let counts: Vec<u64> = sides[..outer].iter().map(|(_, count)| *count).collect();
    let mut at = vec![0; outer];
    loop {
        let from = first + at.iter().zip(&steps).map(|(i, step)| i * step).sum::<u64>();
        let bytes = gathered.front(from + run);
        out.extend_from_slice(&bytes[from as usize..]);
        if outer == 0 || advance(&mut at, &counts).is_none() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use esker_format::{DimLen, Dimension, ExternalType, Schema};
    use proptest::prelude::*;

    use super::*;

    fn grid(chunk: &[u64]) -> Grid {
        let mut schema = Schema::new(esker_format::Version::Cdf5);
        for (d, len) in chunk.iter().enumerate() {
            schema
                .dims
                .push(Dimension { name: format!("d{d}").into(), len: DimLen::Fixed(*len) })
                .unwrap();
        }
        let dims = (0..chunk.len()).map(esker_format::DimId).collect();
        let variable =
            Variable { name: "v".into(), dims, attrs: Default::default(), ty: ExternalType::Short };
        Grid::new(&schema, &variable, chunk).unwrap()
    }

    proptest! {
        #[test]
        fn boxes_of_a_chunk_have_each_known_element_once_and_no_other(
            chunk in prop::collection::vec(1u64..6, 1..5),
            laid in prop::collection::vec((0u64..1000, 1u64..40), 0..12),
        ) {
            let grid = grid(&chunk);
            let all = grid.bytes / grid.size;
            let mut gathered = Gathered::default();
            gathered.reset(0, grid.bytes);
            let mut known = vec![false; all as usize];
            for (from, len) in laid {
                for element in (from % all..all).take(len as usize) {
                    let value = (element as u16).to_be_bytes();
                    gathered.lay(element * 2, 2).copy_from_slice(&value);
                    known[element as usize] = true;
                }
            }
            let mut found = vec![false; all as usize];
            for one in boxes(&gathered, &grid) {
                let mut bytes = Vec::new();
                copy_box(&gathered, &grid, &one, &mut bytes);
                let mut values = bytes.chunks(2).map(|b| u16::from_be_bytes([b[0], b[1]]) as usize);
                let counts: Vec<u64> = one.iter().map(|(_, n)| *n).collect();
                let mut at = vec![0; counts.len()];
                loop {
                    let index = one.iter().zip(&at).map(|((from, _), i)| from + i);
                    let element = index.zip(&chunk).fold(0, |e, (i, len)| e * len + i) as usize;
                    prop_assert_eq!(values.next(), Some(element));
                    prop_assert!(!std::mem::replace(&mut found[element], true), "twice");
                    if advance(&mut at, &counts).is_none() {
                        break;
                    }
                }
                prop_assert_eq!(values.next(), None);
            }
            prop_assert_eq!(found, known);
        }
    }
}
