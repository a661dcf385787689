//! What is meant: hyperslabs of a variable.
//!
//! A [`Selection`] is a list of hyperslabs, kept as flat arrays so that a list of a million
//! short runs costs a million small entries and nothing more. Most have one.

use std::ops::Range;
use std::sync::Arc;

use esker_format::runs::{Pattern, Run};
use esker_format::{DimLen, Header, Schema, VarId, Variable};

use crate::error::SelectionError;
use crate::plan::Extent;
use crate::request::{Gaps, Opaque};

/// Which elements of a variable: everything, or a list of hyperslabs (start, count, stride).
///
/// The elements are in the order of the list and, within a hyperslab, with the last dimension
/// fastest.
///
/// ```
/// use esker::Selection;
/// let plane = Selection::slab(&[0, 10, 0], &[1, 1, 360]);
/// let every_other = Selection::strided(&[0, 0, 0], &[1, 90, 180], &[1, 2, 2]);
/// let point = Selection::element(&[0, 45, 90]);
/// # let _ = (plane, every_other, point);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selection {
    /// Shared, so that a list which is used again is known.
    slabs: Option<Arc<Slabs>>,
    /// Set for the blobs of decomposed variables, which are not hyperslabs.
    blob: Option<Box<Blob>>,
}

/// What a rank has of a decomposition map, at indices of the dimensions before the map's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Blob {
    pub(crate) start: Vec<u64>,
    pub(crate) count: Vec<u64>,
    /// The numbers of its blocks, in the order of the data; `None` for all.
    pub(crate) blocks: Option<Vec<u64>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Slabs {
    pub(crate) rank: usize,
    /// How many there are (start and count are empty for scalars).
    pub(crate) len: usize,
    pub(crate) start: Vec<u64>,
    pub(crate) count: Vec<u64>,
    /// Empty when every stride is 1.
    pub(crate) stride: Vec<u64>,
}

impl Selection {
    /// The whole variable. Writing one to a record variable writes as many records as the
    /// data have, from record 0.
    pub fn all() -> Selection {
        Selection { slabs: None, blob: None }
    }

    /// A block of `count` elements from `start` in each dimension.
    pub fn slab(start: &[u64], count: &[u64]) -> Selection {
        Selection::strided(start, count, &[])
    }

    /// `count` elements from `start` in steps of `stride` in each dimension. An empty
    /// `stride` means 1 everywhere.
    pub fn strided(start: &[u64], count: &[u64], stride: &[u64]) -> Selection {
        let (start, count, stride) = (start.to_vec(), count.to_vec(), stride.to_vec());
        Selection::of(Slabs { rank: start.len(), len: 1, start, count, stride })
    }

    /// A list of blocks (`varn`): `starts` and `counts` have `rank` numbers for each. An empty
    /// `counts` means single elements.
    ///
    /// ```
    /// use esker::Selection;
    /// // Two runs of a 2-D variable: (0, 4..6) and (3, 0..1).
    /// let runs = Selection::list(2, vec![0, 4, 3, 0], vec![1, 2, 1, 1]);
    /// # let _ = runs;
    /// ```
    pub fn list(rank: usize, starts: Vec<u64>, counts: Vec<u64>) -> Selection {
        let len = starts.len().checked_div(rank).unwrap_or(1);
        let count = if counts.is_empty() { vec![1; starts.len()] } else { counts };
        let (start, stride) = (starts, Vec::new());
        Selection::of(Slabs { rank, len, start, count, stride })
    }

    /// No elements: what a rank passes to a collective call that it has nothing for.
    pub fn none() -> Selection {
        let (start, count, stride) = (Vec::new(), Vec::new(), Vec::new());
        Selection::of(Slabs { rank: 0, len: 0, start, count, stride })
    }

    /// One element.
    pub fn element(index: &[u64]) -> Selection {
        Selection::slab(index, &vec![1; index.len()])
    }

    /// What it is, for a sentence.
    pub(crate) fn in_words(&self) -> String {
        if let Some(blob) = &self.blob {
            return format!("the blob from {:?} on, {:?} of them", blob.start, blob.count);
        }
        let Some(slabs) = &self.slabs else { return "everything".to_string() };
        let Slabs { rank, len, start, count, stride } = &**slabs;
        let first = |numbers: &[u64]| format!("{:?}", numbers.get(..*rank).unwrap_or_default());
        let one = match stride.is_empty() {
            true => format!("start {}, count {}", first(start), first(count)),
            false => {
                format!("start {}, count {}, stride {}", first(start), first(count), first(stride))
            }
        };
        match len {
            0 => "nothing".to_string(),
            1 => one,
            many => format!("{many} blocks, the first at {one}"),
        }
    }

    /// What this rank has of a decomposed variable, in the order in which it said so when the map
    /// was defined: its blob, once for each index of the dimensions before the map's, from `start`
    /// on, `count` in each. Both are empty if there are no such dimensions.
    ///
    /// ```
    /// use esker::Selection;
    /// // All that this rank has, of record 7.
    /// let mine = Selection::blob(&[7], &[1]);
    /// # let _ = mine;
    /// ```
    pub fn blob(start: &[u64], count: &[u64]) -> Selection {
        let (start, count) = (start.to_vec(), count.to_vec());
        Selection { slabs: None, blob: Some(Box::new(Blob { start, count, blocks: None })) }
    }

    /// Like [`Selection::blob`], but only these of the rank's blocks, by their numbers in the map
    /// from 0 on.
    pub fn blocks(start: &[u64], count: &[u64], blocks: &[u64]) -> Selection {
        let (start, count, blocks) = (start.to_vec(), count.to_vec(), Some(blocks.to_vec()));
        Selection { slabs: None, blob: Some(Box::new(Blob { start, count, blocks })) }
    }

    /// The starts and counts of a list of blocks without strides, as [`Selection::list`] takes them.
    pub fn as_list(&self) -> Option<(&[u64], &[u64])> {
        let slabs = self.slabs.as_ref().filter(|slabs| slabs.stride.is_empty())?;
        Some((&slabs.start, &slabs.count))
    }

    fn of(slabs: Slabs) -> Selection {
        Selection { slabs: Some(Arc::new(slabs)), blob: None }
    }

    /// The blob that this is, if it is one.
    pub(crate) fn as_blob(&self) -> Option<&Blob> {
        self.blob.as_deref()
    }

    /// Whether this is everything, whatever the variable's shape.
    pub(crate) fn is_all(&self) -> bool {
        self.slabs.is_none() && self.blob.is_none()
    }

    /// Calls `each` with every hyperslab that is not empty, and its elements; the first that is
    /// not within `shape` is an error.
    pub(crate) fn each_within<E: From<SelectionError>>(
        &self,
        shape: &[u64],
        dim_name: impl Fn(usize) -> String,
        mut each: impl FnMut(Slab<'_>, u64) -> Result<(), E>,
    ) -> Result<(), E> {
        let whole;
        let slabs = match &self.slabs {
            Some(slabs) => slabs,
            None => {
                let (start, count) = (vec![0; shape.len()], shape.to_vec());
                whole = Slabs { rank: shape.len(), len: 1, start, count, stride: vec![] };
                &whole
            }
        };
        slabs.check_rank(shape.len())?;
        for slab in slabs.iter() {
            match slab.elements_within(shape) {
                Some(0) => {}
                Some(elements) => each(slab, elements)?,
                None => return Err(slab.fault(shape, dim_name).into()),
            }
        }
        Ok(())
    }
}

impl Selection {
    /// The list of hyperslabs, if it is one.
    pub(crate) fn slabs(&self) -> Option<&Arc<Slabs>> {
        self.slabs.as_ref()
    }
}

/// A selection that was checked against a variable, as places in the file.
#[derive(Debug)]
pub(crate) struct Checked {
    /// Elements selected.
    pub(crate) elements: u64,
    /// Records that the variable has at least when all of this is written.
    pub(crate) records: u64,
    /// Where they are.
    pub(crate) extent: Extent,
    /// The records that are selected whole and without gaps, if that is all there is.
    pub(crate) whole_records: Option<Range<u64>>,
    /// Elements that no rank has of a decomposed variable, which read as fill values.
    pub(crate) gaps: Vec<Gaps>,
    /// What it is in a log, when that is known already; then the extent is empty.
    pub(crate) parts: Option<(Opaque, u64)>,
    /// What the extent is in.
    pub(crate) space: Space,
}

/// What a selection is for: reading stops at the last record, writing may go beyond it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    Read,
    /// With this many elements at hand, from which the records of a whole variable follow.
    Write {
        elements: u64,
    },
}

/// What the places of a checked selection are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Space {
    /// Bytes of the classic file.
    File,
    /// Elements of the variable, with records [`log_record_step`] apart.
    Log,
    /// Places of a space that a layout has of its own.
    Own,
}

/// The distance of records in [`Space::Log`] for a record of so many elements: so large that
/// no pattern within a record meets the next one, nor looks as if it did.
pub(crate) fn log_record_step(elements: u64) -> u64 {
    elements.saturating_mul(2).saturating_add(1)
}

/// A variable's places in [`Space::Log`], and where the classic file has them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LogSpace {
    /// The distance of records; 0 for a variable without.
    pub(crate) step: u64,
    /// Bytes of an element.
    pub(crate) width: u64,
    begin: u64,
    record_size: u64,
}

impl LogSpace {
    pub(crate) fn of(header: &Header, var: VarId) -> LogSpace {
        let variable = &header.schema.vars.as_slice()[var.0];
        let is_record = header.schema.is_record(variable);
        let step = if is_record { log_steps(&header.schema, variable)[0] } else { 0 };
        let begin = header.layout.places[var.0].begin;
        let (width, record_size) = (variable.ty.size(), header.layout.record_size);
        LogSpace { step, width, begin, record_size }
    }

    /// The same where somebody else has the variable, from `begin` on, and its records so far apart.
    #[cfg_attr(
        not(test),
        expect(dead_code, reason = "for layouts that are added: tests/layouts/unequal.rs is one")
    )]
    pub(crate) fn placed(self, begin: u64, record_size: u64) -> LogSpace {
        LogSpace { begin, record_size, ..self }
    }

    /// The record of a place, and the element in it.
    pub(crate) fn split(&self, place: u64) -> (u64, u64) {
        match place.checked_div(self.step) {
            Some(record) => (record, place - record * self.step),
            None => (0, place),
        }
    }

    /// The byte of the classic file that a place is.
    pub(crate) fn byte(&self, place: u64) -> u64 {
        self.begin + self.bytes(place)
    }

    /// The same for a distance, of records or of elements in one.
    fn bytes(&self, distance: u64) -> u64 {
        let (records, elements) = self.split(distance);
        records * self.record_size + elements * self.width
    }

    /// The byte after the last place before `end`.
    pub(crate) fn end(&self, end: u64) -> u64 {
        end.checked_sub(1).map_or(0, |last| self.byte(last) + self.width)
    }

    /// The same hyperslab in the classic file, where records may lie densely.
    pub(crate) fn pattern(&self, pattern: &Pattern) -> Pattern {
        let levels = pattern.levels().iter().map(|(count, step)| (*count, self.bytes(*step)));
        Pattern::new(self.byte(pattern.first()), pattern.run_len() * self.width, levels)
    }
}

impl Selection {
    /// Checks every hyperslab against the variable's shape and finds its place in the file.
    pub(crate) fn check(
        &self,
        header: &Header,
        var: VarId,
        records: u64,
        purpose: Purpose,
        space: Space,
    ) -> Result<Checked, SelectionError> {
        let variable = &header.schema.vars.as_slice()[var.0];
        let steps = match space {
            Space::File | Space::Own => file_steps(header, var),
            Space::Log => log_steps(&header.schema, variable),
        };
        let place = match space {
            Space::File | Space::Own => (header.layout.places[var.0].begin, variable.ty.size()),
            Space::Log => (0, 1),
        };
        self.check_at(header, variable, records, purpose, (steps, place, space))
    }

    /// The same for a variable that may have other dimensions than the header knows of, in the space
    /// of a log.
    pub(crate) fn check_for_log(
        &self,
        header: &Header,
        variable: &Variable,
        records: u64,
        purpose: Purpose,
    ) -> Result<Checked, SelectionError> {
        let steps = log_steps(&header.schema, variable);
        self.check_at(header, variable, records, purpose, (steps, (0, 1), Space::Log))
    }

    fn check_at(
        &self,
        header: &Header,
        variable: &Variable,
        records: u64,
        purpose: Purpose,
        (steps, (begin, size), space): (Vec<u64>, (u64, u64), Space),
    ) -> Result<Checked, SelectionError> {
        let is_record = header.schema.is_record(variable);
        let mut shape = header.schema.shape(variable, records);
        let whole;
        let slabs = match &self.slabs {
            Some(slabs) => {
                let slabs = &**slabs;
                if is_record && purpose != Purpose::Read {
                    shape[0] = header.schema.version.max_count();
                }
                slabs
            }
            None => {
                if let (true, Purpose::Write { elements }) = (is_record, purpose) {
                    shape[0] = whole_records(&shape[1..], elements)?;
                }
                let (start, count) = (vec![0; shape.len()], shape.clone());
                whole = Slabs { rank: shape.len(), len: 1, start, count, stride: vec![] };
                &whole
            }
        };
        slabs.check_rank(shape.len())?;
        let dim_name = |d: usize| {
            let dim = variable.dims.get(d).and_then(|id| header.schema.dims.at(id.0));
            dim.map_or(String::new(), |dim| dim.name.to_string())
        };
        let mut extent = Extent::new(size);
        let mut elements: u64 = 0;
        let mut needed = 0;
        for slab in slabs.iter() {
            let product = match slab.elements_within(&shape) {
                Some(product) => product,
                None => {
                    let refused = slab.fault(&shape, dim_name);
                    return Err(match refused {
                        // What there is of records, not what there may be.
                        SelectionError::OutOfBounds { dim, start, count, stride, .. }
                            if is_record && dim == dim_name(0) =>
                        {
                            let len = records;
                            SelectionError::OutOfBounds { dim, len, start, count, stride }
                        }
                        other => other,
                    });
                }
            };
            if product == 0 {
                continue;
            }
            if is_record {
                let last = slab.start[0] + (slab.count[0] - 1) * slab.stride_of(0);
                // Its bytes must have offsets, before they are computed.
                if last >= needed {
                    needed = last + 1;
                    let last = needed.checked_mul(steps[0]);
                    if !header.can_hold(needed) || last.is_none() {
                        return Err(SelectionError::TooLarge);
                    }
                }
            }
            let offset =
                begin + slab.start.iter().zip(&steps).map(|(i, step)| i * step).sum::<u64>();
            match slab.only_run(&steps, size) {
                Some(len) => extent.push_run(Run { offset, len }, elements),
                None => {
                    let dims = steps.iter().enumerate();
                    let levels = dims.map(|(d, step)| (slab.count[d], step * slab.stride_of(d)));
                    extent.push(Pattern::new(offset, size, levels), elements);
                }
            }
            elements = elements.checked_add(product).ok_or(SelectionError::TooLarge)?;
        }
        if elements > i64::MAX as u64 {
            return Err(SelectionError::TooLarge);
        }
        extent.finish();
        let whole_records = if is_record { slabs.whole_records(&shape) } else { None };
        let (parts, gaps) = (None, Vec::new());
        Ok(Checked { elements, records: needed, extent, whole_records, parts, gaps, space })
    }
}

/// How many records `elements` elements make up.
pub(crate) fn whole_records(record_shape: &[u64], elements: u64) -> Result<u64, SelectionError> {
    let record = record_shape.iter().try_fold(1u64, |n, len| n.checked_mul(*len));
    let record = record.ok_or(SelectionError::TooLarge)?;
    if record == 0 || !elements.is_multiple_of(record) {
        return Err(SelectionError::NotWholeRecords { given: elements, record });
    }
    Ok(elements / record)
}

/// One hyperslab of a list.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Slab<'a> {
    pub(crate) start: &'a [u64],
    pub(crate) count: &'a [u64],
    pub(crate) stride: &'a [u64],
}

impl Slab<'_> {
    /// How many elements there are, if all of them are within `shape` and can be counted.
    fn elements_within(&self, shape: &[u64]) -> Option<u64> {
        let mut product: u64 = 1;
        for (d, len) in shape.iter().enumerate() {
            let (start, count, stride) = (self.start[d], self.count[d], self.stride_of(d));
            let reach = match (count, stride) {
                (_, 0) => return None,
                (_, 1) => count,
                // A count of 0 may start at the end, as in netCDF.
                (0, _) => 0,
                _ => (count - 1).checked_mul(stride)?.checked_add(1)?,
            };
            if start.checked_add(reach)? > *len {
                return None;
            }
            product = product.checked_mul(count)?;
        }
        Some(product)
    }

    /// Why [`Slab::elements_within`] has no answer.
    fn fault(&self, shape: &[u64], dim_name: impl Fn(usize) -> String) -> SelectionError {
        for (d, len) in shape.iter().enumerate() {
            let (start, count, stride) = (self.start[d], self.count[d], self.stride_of(d));
            if stride == 0 {
                return SelectionError::ZeroStride { dim: dim_name(d) };
            }
            let last = count.saturating_sub(1).checked_mul(stride);
            let end = last.and_then(|n| n.checked_add(start)?.checked_add(count.min(1)));
            if end.is_none_or(|end| end > *len) {
                let (dim, len) = (dim_name(d), *len);
                return SelectionError::OutOfBounds { dim, len, start, count, stride };
            }
        }
        SelectionError::TooLarge
    }

    /// The length of the only run of the file that this is, if it is one: what the hyperslabs
    /// of long lists are.
    pub(crate) fn only_run(&self, steps: &[u64], size: u64) -> Option<u64> {
        let mut run = size;
        for d in (0..steps.len()).rev().filter(|d| self.count[*d] != 1) {
            if steps[d] * self.stride_of(d) != run {
                return None;
            }
            run *= self.count[d];
        }
        Some(run)
    }

    pub(crate) fn stride_of(&self, d: usize) -> u64 {
        self.stride.get(d).copied().unwrap_or(1)
    }
}

impl Slabs {
    fn check_rank(&self, rank: usize) -> Result<(), SelectionError> {
        if self.len == 0 {
            return Ok(());
        }
        let refuse = |given| Err(SelectionError::Rank { expected: rank, given });
        if self.rank != rank {
            return refuse(self.rank);
        }
        let strides = self.stride.len();
        let lists = [self.start.len(), self.count.len(), strides];
        let whole = rank * self.len;
        match lists.into_iter().find(|n| *n != whole && !(strides == 0 && *n == 0)) {
            Some(given) => refuse(given),
            None => Ok(()),
        }
    }

    /// The records, if this is one hyperslab of whole ones without gaps.
    fn whole_records(&self, shape: &[u64]) -> Option<Range<u64>> {
        let slab = match (self.len, self.iter().next()) {
            (1, Some(slab)) => slab,
            _ => return None,
        };
        let whole = (1..shape.len()).all(|d| slab.start[d] == 0 && slab.count[d] == shape[d]);
        let dense = slab.stride_of(0) == 1 || slab.count[0] == 1;
        (whole && dense).then(|| slab.start[0]..slab.start[0] + slab.count[0])
    }

    fn iter(&self) -> impl Iterator<Item = Slab<'_>> {
        (0..self.len).map(|i| {
            let at = i * self.rank..(i + 1) * self.rank;
            let stride = if self.stride.is_empty() { &[][..] } else { &self.stride[at.clone()] };
            Slab { start: &self.start[at.clone()], count: &self.count[at], stride }
        })
    }
}

/// Bytes in the file from one index of a dimension to the next.
pub(crate) fn file_steps(header: &Header, var: VarId) -> Vec<u64> {
    let variable = &header.schema.vars.as_slice()[var.0];
    steps(&header.schema, variable, variable.ty.size(), |_| header.layout.record_size)
}

/// Elements from one index of a dimension to the next.
pub(crate) fn log_steps(schema: &Schema, variable: &Variable) -> Vec<u64> {
    steps(schema, variable, 1, log_record_step)
}

fn steps(schema: &Schema, variable: &Variable, size: u64, record: impl Fn(u64) -> u64) -> Vec<u64> {
    let mut step = size;
    let mut steps = vec![0; variable.dims.len()];
    for (d, dim) in variable.dims.iter().enumerate().rev() {
        match schema.dims.as_slice()[dim.0].len {
            DimLen::Fixed(len) => {
                steps[d] = step;
                // The product is the variable's size, which was checked to fit.
                step = step.saturating_mul(len);
            }
            DimLen::Unlimited => steps[d] = record(step),
        }
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Overlap, Plan};
    use crate::{CreateOptions, Dataset, ExternalType};
    use proptest::prelude::*;

    const RECORDS: u64 = 5;

    /// (t, 3, 4) of shorts alone in its records, or beside a (t) of doubles; and (3, 4) of ints.
    fn header(alone: bool) -> Header {
        let dir = tempfile::tempdir().unwrap();
        let mut def = Dataset::create(dir.path().join("x.nc"), CreateOptions::new()).unwrap();
        let t = def.add_dim("t", DimLen::Unlimited).unwrap();
        let y = def.add_dim("y", DimLen::Fixed(3)).unwrap();
        let x = def.add_dim("x", DimLen::Fixed(4)).unwrap();
        def.add_var("a", ExternalType::Short, &[t, y, x]).unwrap();
        def.add_var("c", ExternalType::Int, &[y, x]).unwrap();
        if !alone {
            def.add_var("b", ExternalType::Double, &[t]).unwrap();
        }
        let ds = def.enddef().unwrap();
        ds.header().clone()
    }

    /// The byte of each element.
    fn bytes(extent: &Extent, size: u64) -> Vec<(u64, u64)> {
        let plan = Plan::new([extent].into_iter());
        let mut sweep = plan.sweep();
        let pieces = sweep.take(0, plan.summary.end, Overlap::Shared).iter();
        let each = |p: &crate::plan::Piece| {
            let (element, offset) = (p.element, p.offset);
            (0..p.len / size).map(move |i| (element + i, offset + i * size))
        };
        let mut all: Vec<(u64, u64)> = pieces.flat_map(each).collect();
        all.sort_unstable();
        all
    }

    proptest! {
        #[test]
        fn places_in_a_log_are_those_in_the_file(
            alone: bool, scalar: bool, fixed: bool,
            slabs in prop::collection::vec(
                [(0u64..5, 1u64..5, 1u64..4), (0..3, 1..3, 1..3), (0..4, 1..4, 1..4)], 1..5),
        ) {
            let header = header(alone);
            let var = VarId(if fixed { 1 } else if scalar && !alone { 2 } else { 0 });
            let variable = &header.schema.vars.as_slice()[var.0];
            let shape = header.schema.shape(variable, RECORDS);
            let size = variable.ty.size();
            let dims = if fixed { 1..3 } else { 0..shape.len() };
            let mut list = [Vec::new(), Vec::new(), Vec::new()];
            for slab in &slabs {
                for (d, (start, count, stride)) in dims.clone().map(|d| slab[d]).enumerate() {
                    let most = (shape[d] - 1 - start.min(shape[d] - 1)) / stride + 1;
                    list[0].push(start.min(shape[d] - 1));
                    list[1].push(count.min(most));
                    list[2].push(stride);
                }
            }
            let [start, count, stride] = list;
            let (rank, len) = (shape.len(), slabs.len());
            let selection = Selection::of(Slabs { rank, len, start, count, stride });
            let check = |space| {
                selection.check(&header, var, RECORDS, Purpose::Read, space).unwrap().extent
            };
            let (in_file, in_log) = (check(Space::File), check(Space::Log));
            let mapped = in_log.in_file(&LogSpace::of(&header, var));
            prop_assert_eq!(bytes(&mapped, size), bytes(&in_file, size));
            prop_assert_eq!(mapped.end(), in_file.end());
            prop_assert_eq!(LogSpace::of(&header, var).end(in_log.end()), in_file.end());
        }
    }
}
