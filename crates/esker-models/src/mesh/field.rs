//! Fields through parts: one collective call for all that a rank has of one.

use std::ops::Range;

use esker::{Dataset, MemoryLayout, MemoryType, Native, Selection, VarId};

use super::labels::runs;
use super::part::Part;
use crate::error::{ModelError, Result, agree};

/// What is taken of a field: some of its other dimensions, and of the mesh's what a part has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldSlab {
    /// The field.
    pub var: VarId,
    /// Which of its dimensions is the mesh's.
    pub place: usize,
    /// A range of each dimension; that of the mesh's is not looked at.
    pub ranges: Vec<Range<u64>>,
}

impl FieldSlab {
    /// One index of each dimension before the mesh's, and all of those behind it.
    pub fn at(ds: &Dataset, var: VarId, place: usize, before: &[u64]) -> Result<FieldSlab> {
        let shape = ds.shape(var)?;
        if before.len() != place || place >= shape.len() {
            let name = &ds.variable(var)?.name;
            let given = before.len();
            let what = format!(
                "its shape is {shape:?}: {given} indices were given for what is before dimension {place}, the mesh's"
            );
            return Err(ModelError::stored(ds.path(), format!("variable \"{name}\""), what));
        }
        let index = |at: &u64| *at..at.saturating_add(1);
        let mut ranges: Vec<Range<u64>> = before.iter().map(index).collect();
        ranges.extend(shape[place..].iter().map(|len| 0..*len));
        Ok(FieldSlab { var, place, ranges })
    }

    /// Fails unless the field is one of the part's elements.
    fn check(&self, ds: &Dataset, count: u64) -> Result<()> {
        let shape = ds.shape(self.var)?;
        if self.ranges.len() == shape.len() && shape.get(self.place) == Some(&count) {
            return Ok(());
        }
        let (name, place, given) = (&ds.variable(self.var)?.name, self.place, self.ranges.len());
        let what = format!(
            "its shape is {shape:?}: dimension {place} is not the {count} elements of the mesh, or {given} ranges \
             do not fit it"
        );
        Err(ModelError::stored(ds.path(), format!("variable \"{name}\""), what))
    }

    fn len(&self, dim: usize) -> u64 {
        self.ranges.get(dim).map_or(1, |range| range.end.saturating_sub(range.start))
    }

    /// Times that all elements are there, and values that an element has each time.
    fn sizes(&self) -> Option<(usize, usize)> {
        let product = |dims: Range<usize>| {
            let all = dims.map(|dim| self.len(dim)).try_fold(1u64, u64::checked_mul)?;
            usize::try_from(all).ok()
        };
        Some((product(0..self.place)?, product(self.place + 1..self.ranges.len())?))
    }

    /// The bytes of so many elements, if memory can have them.
    fn bytes(&self, elements: usize, ty: MemoryType) -> Result<usize> {
        let (outer, inner) = self.sizes().unwrap_or((usize::MAX, usize::MAX));
        let bytes = outer.checked_mul(inner).and_then(|n| n.checked_mul(elements));
        bytes
            .and_then(|n| n.checked_mul(ty.size()))
            .filter(|n| *n <= isize::MAX as usize)
            .ok_or_else(|| {
                ModelError::Asked(format!(
                    "{elements} elements of {:?}: no memory has so many",
                    self.ranges
                ))
            })
    }

    /// Runs of elements, each with all of the ranges.
    fn selection(&self, starts: &[u64], counts: &[u64]) -> Selection {
        let is_empty = (0..self.ranges.len()).any(|dim| dim != self.place && self.len(dim) == 0);
        if starts.is_empty() || is_empty {
            return Selection::none();
        }
        let rank = self.ranges.len();
        let (mut all_starts, mut all_counts) = (Vec::new(), Vec::new());
        for (start, count) in starts.iter().zip(counts) {
            for dim in 0..rank {
                let of_mesh = dim == self.place;
                all_starts.push(if of_mesh { *start } else { self.ranges[dim].start });
                all_counts.push(if of_mesh { *count } else { self.len(dim) });
            }
        }
        match starts.len() {
            1 => Selection::slab(&all_starts, &all_counts),
            _ => Selection::list(rank, all_starts, all_counts),
        }
    }

    /// Moves values between the order of a file's runs (run by run; in each the outer dimensions, the elements, the inner ones) and
    /// that of the part (the outer dimensions, local numbers, the inner ones). `order` has the local number of each element of
    /// the runs, `local` is how many the part's side has; `step` is called with the places of both sides, in bytes, and the length.
    fn each_piece(
        &self,
        (counts, order, local): (&[u64], &[usize], usize),
        size: usize,
        mut step: impl FnMut(usize, usize, usize),
    ) {
        let Some((outer, inner)) = self.sizes() else { return };
        let each = inner * size;
        let (mut first, mut from) = (0, 0);
        for count in counts {
            let count = *count as usize;
            for turn in 0..outer {
                for at in &order[first..first + count] {
                    step(from, (turn * local + at) * each, each);
                    from += each;
                }
            }
            first += count;
        }
    }
}

impl Part {
    /// Reads a field through the part: own elements, then the halo, in local numbers, at one index of the dimensions before the mesh's;
    /// dimensions behind it are whole. One collective call.
    pub fn read<T: Native + Default>(
        &self,
        ds: &mut Dataset,
        var: VarId,
        place: usize,
        before: &[u64],
    ) -> Result<Vec<T>> {
        let comm = ds.comm().clone();
        let slab = agree(&*comm, FieldSlab::at(ds, var, place, before))?;
        let bytes = self.read_bytes(ds, &slab, T::MEMORY)?;
        let mut values = vec![T::default(); bytes.len() / T::MEMORY.size()];
        bytemuck::cast_slice_mut::<T, u8>(&mut values).copy_from_slice(&bytes);
        Ok(values)
    }

    /// The same of any ranges of the other dimensions, and of a type that is known only when the program runs: the dimensions before the
    /// mesh's slowest, then local numbers, then those behind it. One collective call.
    pub fn read_bytes(
        &self,
        ds: &mut Dataset,
        slab: &FieldSlab,
        ty: MemoryType,
    ) -> Result<Vec<u8>> {
        let comm = ds.comm().clone();
        let room = slab.check(ds, self.count).and_then(|()| {
            let bytes = slab.bytes(self.len(), ty)?;
            let mut room = Vec::new();
            room.try_reserve_exact(bytes).map_err(|_| {
                ModelError::Asked(format!(
                    "there is no memory for {bytes} bytes: read fewer at once"
                ))
            })?;
            room.resize(bytes, 0u8);
            Ok(room)
        });
        let mut values = agree(&*comm, room)?;
        let globals = self.globals();
        let mut order: Vec<usize> = (0..globals.len()).collect();
        order.sort_unstable_by_key(|at| globals[*at]);
        let sorted: Vec<u64> = order.iter().map(|at| globals[*at]).collect();
        let (starts, counts) = runs(&sorted);
        let selection = slab.selection(&starts, &counts);
        ds.get_bytes_all(slab.var, &selection, (&mut values, ty), MemoryLayout::dense())?;
        // One run of elements that are in order is as the part has it.
        if counts.len() <= 1 && order.is_sorted() {
            return Ok(values);
        }
        let mut out = vec![0; values.len()];
        slab.each_piece((&counts, &order, self.len()), ty.size(), |from, to, len| {
            out[to..to + len].copy_from_slice(&values[from..from + len]);
        });
        Ok(out)
    }

    /// Writes own elements of a field through the part; values of the halo, if they are given, are not written. One
    /// collective call.
    pub fn write<T: Native + Default>(
        &self,
        ds: &mut Dataset,
        var: VarId,
        place: usize,
        before: &[u64],
        values: &[T],
    ) -> Result<()> {
        let comm = ds.comm().clone();
        let slab = agree(&*comm, FieldSlab::at(ds, var, place, before))?;
        self.write_bytes(ds, &slab, (bytemuck::cast_slice(values), T::MEMORY))
    }

    /// The same into any ranges of the other dimensions, as [`Part::read_bytes`] gives them: for own elements, or for own elements and halo, of which
    /// the first are written. One collective call.
    pub fn write_bytes(
        &self,
        ds: &mut Dataset,
        slab: &FieldSlab,
        (values, ty): (&[u8], MemoryType),
    ) -> Result<()> {
        let comm = ds.comm().clone();
        let given = slab.check(ds, self.count).and_then(|()| {
            let fits = |elements: usize| slab.bytes(elements, ty).is_ok_and(|n| n == values.len());
            match [self.len(), self.own.len()].into_iter().find(|elements| fits(*elements)) {
                Some(elements) => Ok(elements),
                None => {
                    let (outer, inner) = slab.sizes().unwrap_or_default();
                    let (got, each) = (values.len() / ty.size(), outer.saturating_mul(inner));
                    let (own, halo) = (self.own.len(), self.halo.len());
                    Err(ModelError::Asked(format!(
                        "{got} values for {own} own elements and a halo of {halo}, {each} each"
                    )))
                }
            }
        });
        let given = agree(&*comm, given)?;
        let (starts, counts) = runs(&self.own);
        let selection = slab.selection(&starts, &counts);
        let order: Vec<usize> = (0..self.own.len()).collect();
        let own = slab.bytes(order.len(), ty)?;
        let (outer, _) = slab.sizes().unwrap_or_default();
        if outer <= 1 || (counts.len() <= 1 && given == order.len()) {
            let data = (&values[..own], ty);
            return Ok(ds.put_bytes_all(slab.var, &selection, data, MemoryLayout::dense())?);
        }
        let mut sorted = vec![0; own];
        slab.each_piece((&counts, &order, given), ty.size(), |to, from, len| {
            sorted[to..to + len].copy_from_slice(&values[from..from + len]);
        });
        Ok(ds.put_bytes_all(slab.var, &selection, (&sorted, ty), MemoryLayout::dense())?)
    }
}
