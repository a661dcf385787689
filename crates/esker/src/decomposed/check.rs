//! Selections of decomposed variables, as places in the file.

use std::sync::Arc;

use esker_format::VarId;
use esker_format::runs::{Run, advance};

use super::index::{Piece, SlabList, gaps, settle};
use super::maps::{Elsewhere, Head, Map};
use crate::error::{DecompositionError, Error, MemoryError, Result, SelectionError};
use crate::ground::Ground;
use crate::layout::Asked;
use crate::plan::{Extent, Shift, Single};
use crate::request::Gaps;
use crate::selection::{
    Blob, Checked, LogSpace, Purpose, Selection, Slabs, Space, file_steps, log_steps, whole_records,
};

/// Gaps are not read into new memory when they are more than this, and this many times what is
/// stored: so that a few bytes of a file cannot ask for much memory.
const GAPS: u64 = 1 << 20;
const SPARSE: u64 = 256;

/// Indices of the dimensions before the map's that are placed without a second look.
const MANY: u64 = 1 << 16;

/// A part of a selection: indices of the dimensions before the map's, and the elements of the
/// question that each of them has. Hyperslabs that follow each other at one index are one part.
#[derive(Debug)]
struct OuterSlab {
    outer: Outer,
    base: u64,
    elements: u64,
}

/// A hyperslab of the dimensions before the map's.
#[derive(Debug, PartialEq, Eq)]
struct Outer {
    start: Vec<u64>,
    count: Vec<u64>,
    stride: Vec<u64>,
}

/// Why a selection was refused, before the variable is named.
enum Refused {
    Selection(SelectionError),
    Error(Error),
}

impl From<SelectionError> for Refused {
    fn from(error: SelectionError) -> Refused {
        Refused::Selection(error)
    }
}

impl From<Error> for Refused {
    fn from(error: Error) -> Refused {
        Refused::Error(error)
    }
}

impl Map {
    /// The shape of the array that a decomposed variable stands for.
    pub(super) fn shape(&self, ground: &Ground, var: VarId) -> Result<Vec<u64>> {
        let head = self.head(ground, Some(var))?;
        let variable = ground.header.schema.variable(var).ok_or(Error::Garbled)?;
        let mut shape = ground.header.schema.shape(variable, ground.records);
        shape.pop();
        shape.extend(head.grid.lens());
        Ok(shape)
    }

    /// Fails if what is to be read into new memory is nearly all gaps.
    pub(super) fn require_dense(
        &self,
        ground: &Ground,
        var: VarId,
        checked: &Checked,
    ) -> Result<()> {
        let gaps: u64 = checked.gaps.iter().map(Gaps::elements).sum();
        if gaps <= GAPS {
            return Ok(());
        }
        let stored = self.head(ground, Some(var))?.stored;
        if gaps / SPARSE <= stored {
            return Ok(());
        }
        let source = DecompositionError::Sparse { gaps, elements: checked.elements };
        Err(self.error(ground, Some(var), source))
    }

    /// Checks a selection of the decomposed variable that the file has under this number.
    pub(super) fn check(&self, ground: &Ground, asked: Asked<'_>) -> Result<Checked> {
        let Asked { var, selection, space, .. } = asked;
        let head = self.head(ground, Some(var))?;
        let mut placing = Placing::new(ground, head, asked);
        let placed = match selection.as_blob() {
            Some(blob) => self.place_blob(&mut placing, blob),
            None => self.place_slabs(&mut placing, selection),
        };
        placed.map_err(|refused| match refused {
            Refused::Error(error) => error,
            Refused::Selection(source) => {
                let (path, var) = (ground.base.path.clone(), ground.name(var));
                Error::Selection { path, var, source }
            }
        })?;
        let Placing { mut extent, gaps, elements, records, .. } = placing;
        extent.finish();
        Ok(Checked { elements, records, extent, whole_records: None, parts: None, gaps, space })
    }

    /// Fails unless as many ranks have the dataset as the map was made by.
    pub(super) fn require_ranks(&self, ground: &Ground, var: VarId, head: &Head) -> Result<()> {
        let ranks = ground.base.comm.size() as u64;
        if ranks == head.ranks {
            return Ok(());
        }
        let source = DecompositionError::Ranks { map: head.ranks, ranks };
        Err(self.error(ground, Some(var), source))
    }

    fn place_blob(&self, placing: &mut Placing<'_>, blob: &Blob) -> Result<(), Refused> {
        let (ground, var, head) = (placing.ground, placing.var, placing.head);
        self.require_ranks(ground, var, head)?;
        let whole = self.own_blob(ground, head)?;
        // What is elsewhere is asked for only where there may be any.
        let own = match head.repeats || blob.blocks.is_some() {
            true => Some(self.own_part(ground, head)?),
            false => None,
        };
        let mut pieces = Vec::new();
        let mut elements = 0;
        let mut add = |position: u64, len: u64| {
            if len > 0 {
                pieces.push(Piece { element: elements, len, position });
                elements += len;
            }
        };
        match (&blob.blocks, &own) {
            (Some(numbers), Some(own)) => {
                for number in numbers {
                    let i = *number as usize;
                    let Some(block) = own.blocks.get(i) else {
                        let (rank, blocks) =
                            (ground.base.comm.rank() as u64, own.blocks.len() as u64);
                        let block = *number;
                        let source = DecompositionError::NoSuchBlock { block, rank, blocks };
                        return Err(self.error(ground, Some(var), source).into());
                    };
                    let end = own.blocks.get(i + 1).map_or(own.blob.end, |next| next.position);
                    add(block.position, end - block.position);
                }
            }
            _ => add(whole.start, whole.end - whole.start),
        }
        let elsewhere = own.as_ref().map_or(&[][..], |own| &own.elsewhere);
        let pieces = placing.with_homes(pieces, elsewhere);
        let outer_shape = &placing.shape[..placing.outer];
        let names = |d: usize| placing.dim_name(d);
        let mut outers = Vec::new();
        Selection::slab(&blob.start, &blob.count).each_within::<Refused>(
            outer_shape,
            names,
            |slab, _| {
                outers.push(Outer {
                    start: slab.start.to_vec(),
                    count: slab.count.to_vec(),
                    stride: vec![1; slab.start.len()],
                });
                Ok(())
            },
        )?;
        for outer in outers.iter().filter(|_| elements > 0) {
            placing.place(outer, &pieces, 0, elements)?;
        }
        Ok(())
    }

    fn place_slabs(&self, placing: &mut Placing<'_>, selection: &Selection) -> Result<(), Refused> {
        let (ground, var, head) = (placing.ground, placing.var, placing.head);
        if let (true, true, Purpose::Write { elements }) =
            (selection.is_all(), placing.is_record, placing.purpose)
        {
            placing.shape[0] = whole_records(&placing.shape[1..], elements)?;
        }
        if let Some(known) = self.known(selection, placing) {
            return placing.place_all(&known);
        }
        let (parts, slabs) = placing.parts(selection)?;
        let Some(last) = parts.last() else { return Ok(()) };
        let asked = last.base + last.elements;
        let pieces = match placing.purpose {
            Purpose::Read => split(self.ask(ground, head, &slabs)?, &parts),
            Purpose::Write { .. } => {
                self.require_ranks(ground, var, head)?;
                let own = self.own_part(ground, head)?;
                let mut pieces = Vec::new();
                own.index.ask(&head.grid, &slabs, &mut pieces);
                settle(&mut pieces);
                let mut missing = None;
                gaps(&pieces, 0, asked, |element, _| missing = missing.or(Some(element)));
                if let Some(element) = missing {
                    let part = slabs.iter().rev().find(|slab| slab.base <= element);
                    let source = DecompositionError::Outside {
                        index: part.map(|slab| slab.coordinates(element)).unwrap_or_default(),
                        rank: ground.base.comm.rank() as u64,
                        elements: own.blob.end - own.blob.start,
                        blocks: own.blocks.len() as u64,
                    };
                    return Err(self.error(ground, Some(var), source).into());
                }
                placing.with_homes(split(pieces, &parts), &own.elsewhere)
            }
        };
        let answer = Arc::new(Answer { parts, pieces, slabs: slabs.len() });
        self.keep(selection, placing, &answer);
        placing.place_all(&answer)
    }
}

/// What a selection is in a map.
#[derive(Debug)]
pub(crate) struct Answer {
    parts: Vec<OuterSlab>,
    /// Cut where the parts are.
    pieces: Vec<Piece>,
    /// How many hyperslabs the selection has.
    slabs: usize,
}

/// The last long list that was read, and its answer: programs read variable after variable by
/// the same list.
#[derive(Debug)]
pub(crate) struct LastAsked {
    slabs: Arc<Slabs>,
    shape: Vec<u64>,
    answer: Arc<Answer>,
}

/// Shorter lists are asked for again.
const LONG: usize = 64;

impl Map {
    fn known(&self, selection: &Selection, placing: &Placing<'_>) -> Option<Arc<Answer>> {
        let slabs = selection.slabs().filter(|_| placing.purpose == Purpose::Read)?;
        let last = self.last.lock().ok()?;
        let known =
            |last: &&LastAsked| Arc::ptr_eq(&last.slabs, slabs) && last.shape == placing.shape;
        last.as_ref().filter(known).map(|last| last.answer.clone())
    }

    fn keep(&self, selection: &Selection, placing: &Placing<'_>, answer: &Arc<Answer>) {
        let Some(slabs) = selection.slabs().filter(|_| answer.slabs >= LONG) else { return };
        if let (Purpose::Read, Ok(mut last)) = (placing.purpose, self.last.lock()) {
            let (slabs, shape, answer) = (slabs.clone(), placing.shape.clone(), answer.clone());
            *last = Some(LastAsked { slabs, shape, answer });
        }
    }
}

/// A selection on its way into the file.
struct Placing<'a> {
    ground: &'a Ground,
    var: VarId,
    head: &'a Head,
    purpose: Purpose,
    is_record: bool,
    /// Dimensions before the map's.
    outer: usize,
    /// Of the array.
    shape: Vec<u64>,
    steps: Vec<u64>,
    begin: u64,
    size: u64,
    /// Whether places are elements of the variable, with records as a log has them.
    for_log: bool,
    extent: Extent,
    gaps: Vec<Gaps>,
    elements: u64,
    records: u64,
}

impl<'a> Placing<'a> {
    fn new(ground: &'a Ground, head: &'a Head, asked: Asked<'_>) -> Placing<'a> {
        let Asked { var, purpose, space, .. } = asked;
        let header = &ground.header;
        let variable = &header.schema.vars.as_slice()[var.0];
        let is_record = header.schema.is_record(variable);
        let mut shape = header.schema.shape(variable, ground.records);
        shape.pop();
        let outer = shape.len();
        if is_record && purpose != Purpose::Read {
            shape[0] = header.schema.version.max_count();
        }
        shape.extend(head.grid.lens());
        // What is in a log is described in elements of the variable.
        let for_log = space == Space::Log;
        let (steps, begin, size) = match for_log {
            true => (log_steps(&header.schema, variable), 0, 1),
            false => {
                (file_steps(header, var), header.layout.places[var.0].begin, variable.ty.size())
            }
        };
        let extent = Extent::new(size);
        let (gaps, elements, records) = (Vec::new(), 0, 0);
        Placing {
            ground,
            var,
            head,
            purpose,
            is_record,
            outer,
            shape,
            steps,
            begin,
            size,
            for_log,
            extent,
            gaps,
            elements,
            records,
        }
    }

    fn dim_name(&self, d: usize) -> String {
        if let Some(inner) = d.checked_sub(self.outer) {
            return self.head.dims.get(inner).cloned().unwrap_or_default();
        }
        let schema = &self.ground.header.schema;
        let dim = schema.variable(self.var).and_then(|v| v.dims.get(d));
        let dim = dim.and_then(|id| schema.dims.at(id.0));
        dim.map_or(String::new(), |dim| dim.name.to_string())
    }

    /// Adds every part of a selection.
    fn place_all(&mut self, answer: &Answer) -> Result<(), Refused> {
        let mut rest = &answer.pieces[..];
        for part in &answer.parts {
            let OuterSlab { base, elements, .. } = *part;
            let end = rest.partition_point(|piece| piece.element < base + elements);
            let (here, later) = rest.split_at(end);
            rest = later;
            self.place(&part.outer, here, base, elements)?;
        }
        Ok(())
    }

    /// The hyperslabs of a selection, each in two: before the map's dimensions, and in them.
    fn parts(&self, selection: &Selection) -> Result<(Vec<OuterSlab>, SlabList), SelectionError> {
        let mut parts: Vec<OuterSlab> = Vec::new();
        let mut slabs = SlabList::new(self.shape.len() - self.outer);
        let mut base = 0u64;
        selection.each_within::<SelectionError>(
            &self.shape,
            |d| self.dim_name(d),
            |slab, _| {
                let (outer_start, start) = slab.start.split_at(self.outer);
                let (outer_count, count) = slab.count.split_at(self.outer);
                let stride = |from: usize| (from..slab.start.len()).map(|d| slab.stride_of(d));
                slabs.push(start, count, stride(self.outer), base);
                let elements = count.iter().product::<u64>();
                let end = base.checked_add(elements).ok_or(SelectionError::TooLarge)?;
                let is_one = outer_count.iter().all(|count| *count == 1);
                match parts.last_mut() {
                    Some(last)
                        if is_one
                            && last.outer.start == outer_start
                            && last.outer.count == outer_count =>
                    {
                        last.elements += elements;
                    }
                    _ => {
                        let outer = Outer {
                            start: outer_start.to_vec(),
                            count: outer_count.to_vec(),
                            stride: stride(0).take(self.outer).collect(),
                        };
                        parts.push(OuterSlab { outer, base, elements });
                    }
                }
                base = end;
                Ok(())
            },
        )?;
        Ok((parts, slabs))
    }

    /// Pieces of a rank's own part, with what is elsewhere: writes go to both places, so that the
    /// latest is where it is read; reads go there.
    fn with_homes(&self, pieces: Vec<Piece>, elsewhere: &[Elsewhere]) -> Vec<Piece> {
        if elsewhere.is_empty() {
            return pieces;
        }
        let mut out = Vec::with_capacity(pieces.len());
        for piece in pieces {
            let (mut at, end) = (piece.position, piece.position + piece.len);
            let element = |position: u64| piece.element + (position - piece.position);
            let first = elsewhere.partition_point(|e| e.position + e.len <= at);
            if self.purpose != Purpose::Read {
                out.push(piece);
            }
            for other in elsewhere[first..].iter().take_while(|e| e.position < end) {
                let (from, to) = (other.position.max(at), (other.position + other.len).min(end));
                if self.purpose == Purpose::Read && at < from {
                    out.push(piece.part(element(at), element(from)));
                }
                let position = other.home + (from - other.position);
                out.push(Piece { element: element(from), len: to - from, position });
                at = to;
            }
            if self.purpose == Purpose::Read && at < end {
                out.push(piece.part(element(at), element(end)));
            }
        }
        out
    }

    /// Refuses what is repeated so often that the file does not have it, or the caller no data
    /// for it, before every repetition is placed.
    fn require_real(&self, outer: &Outer, elements: u64, times: u64) -> Result<()> {
        if times < MANY {
            return Ok(());
        }
        let last = |d: usize| outer.start[d] + (outer.count[d] - 1) * outer.stride[d];
        match self.purpose {
            Purpose::Read => {
                let at = (0..self.outer).map(|d| last(d) * self.steps[d]).sum::<u64>();
                let needed = match self.for_log {
                    true => LogSpace::of(&self.ground.header, self.var).byte(at),
                    false => self.begin + at,
                };
                let file_len = self.ground.file.len()?;
                match needed > file_len {
                    true => Err(self.ground.short(self.var, needed, file_len)),
                    false => Ok(()),
                }
            }
            Purpose::Write { elements: given } if elements > given => {
                let schema = &self.ground.header.schema;
                let var = schema.variable(self.var).map_or("", |v| &*v.name).to_string();
                let source = MemoryError::Length { selected: elements, given };
                Err(Error::Memory { path: self.ground.base.path.clone(), var, source })
            }
            Purpose::Write { .. } => Ok(()),
        }
    }

    /// Adds a part: the pieces within `base..base + elements`, once for each index of `outer`.
    fn place(
        &mut self,
        outer: &Outer,
        pieces: &[Piece],
        base: u64,
        elements: u64,
    ) -> Result<(), Refused> {
        if self.is_record {
            let last = outer.start[0] + (outer.count[0] - 1) * outer.stride[0];
            self.records = self.records.max(last + 1);
            let header = &self.ground.header;
            if !header.can_hold(self.records) {
                return Err(SelectionError::TooLarge.into());
            }
        }
        let times = outer.count.iter().try_fold(1u64, |n, count| n.checked_mul(*count));
        let all = times.and_then(|n| n.checked_mul(elements)?.checked_add(self.elements));
        let all = all.filter(|n| *n <= i64::MAX as u64).ok_or(SelectionError::TooLarge)?;
        self.require_real(outer, all, times.unwrap_or(0))?;
        let mut holes = Vec::new();
        if self.purpose == Purpose::Read {
            gaps(pieces, base, base + elements, |first, len| holes.push((first - base, len)));
        }
        let runs = pieces.iter().map(|piece| Single {
            offset: self.begin + piece.position * self.size,
            len: piece.len * self.size,
            element: piece.element - base,
        });
        let places = self.places(outer, elements);
        let is_logged = self.for_log && self.purpose != Purpose::Read;
        match places.len() < 2 || is_logged {
            // (A log describes every run.)
            true => {
                for Shift { offset, element } in &places {
                    for run in runs.clone() {
                        let (offset, len) = (run.offset + offset, run.len);
                        self.extent.push_run(Run { offset, len }, run.element + element);
                    }
                }
            }
            false => {
                let runs = runs.collect();
                self.extent.push_repeated(runs, places.clone());
            }
        }
        if !holes.is_empty() {
            let firsts = places.iter().map(|place| place.element).collect();
            self.gaps.push(Gaps { holes, firsts });
        }
        self.elements = all;
        Ok(())
    }

    /// Where each index of `outer` is in the file, and its first element.
    fn places(&self, outer: &Outer, elements: u64) -> Vec<Shift> {
        let mut places = Vec::new();
        let mut index = vec![0; self.outer];
        loop {
            let place = |d: usize| (outer.start[d] + index[d] * outer.stride[d]) * self.steps[d];
            let offset = (0..self.outer).map(place).sum::<u64>();
            let element = self.elements + places.len() as u64 * elements;
            places.push(Shift { offset, element });
            if advance(&mut index, &outer.count[..self.outer]).is_none() {
                return places;
            }
        }
    }
}

/// Cuts settled pieces where one part ends and the next begins.
fn split(pieces: Vec<Piece>, parts: &[OuterSlab]) -> Vec<Piece> {
    let mut borders = parts.iter().skip(1).map(|part| part.base).peekable();
    if borders.peek().is_none() {
        return pieces;
    }
    let mut out = Vec::with_capacity(pieces.len());
    for mut piece in pieces {
        while let Some(border) = borders.peek().copied() {
            let end = piece.element + piece.len;
            if border <= piece.element {
                borders.next();
            } else if border < end {
                out.push(piece.part(piece.element, border));
                piece = piece.part(border, end);
            } else {
                break;
            }
        }
        out.push(piece);
    }
    out
}
