//! Addresses for planning: the chunks of all variables one behind the other.
//!
//! The chunks of variables without records come first, then, group by group, those of the variables
//! with records. A selection is cut at the borders of chunks into boxes of this space, so that plans,
//! sweeps and messages are those of the canonical road.

use std::ops::Range;

use esker_format::VarId;
use esker_format::chunked::Grid;
use esker_format::runs::{Pattern, Run, advance};

use crate::plan::{Elements, Extent};
use crate::selection::Slab;

/// A chunk: a variable by the file's number, and the number of the chunk in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct ChunkId {
    pub(crate) var: VarId,
    pub(crate) number: u64,
}

/// Where the chunks of each variable are.
#[derive(Debug, Default)]
pub(crate) struct Space {
    /// Variables without records: where each begins.
    fixed: Vec<(u64, VarId)>,
    fixed_end: u64,
    /// Variables with records: where each begins in a group.
    records: Vec<(u64, VarId)>,
    /// Bytes of a group of all of them.
    group: u64,
    /// By variable: where it begins, bytes of a chunk, chunks of a group.
    of_var: Vec<Option<Place>>,
}

#[derive(Debug, Clone, Copy)]
struct Place {
    base: u64,
    bytes: u64,
    per_group: u64,
    has_records: bool,
}

impl Space {
    /// The space of these variables, by the file's numbers.
    pub(crate) fn new<'g>(grids: impl Iterator<Item = Option<&'g Grid>> + Clone) -> Space {
        let mut space = Space::default();
        let all = || grids.clone().enumerate().filter_map(|(n, g)| Some((VarId(n), g?)));
        space.of_var = vec![None; grids.clone().count()];
        for has_records in [false, true] {
            for (var, grid) in all().filter(|(_, g)| g.has_records == has_records) {
                let Grid { bytes, per_group, .. } = *grid;
                let len = bytes.saturating_mul(per_group);
                let (list, end) = match has_records {
                    false => (&mut space.fixed, &mut space.fixed_end),
                    true => (&mut space.records, &mut space.group),
                };
                let base = *end;
                list.push((base, var));
                *end = end.saturating_add(len);
                space.of_var[var.0] = Some(Place { base, bytes, per_group, has_records });
            }
        }
        space
    }

    /// The address of a chunk; `None` beyond all addresses.
    pub(crate) fn address(&self, ChunkId { var, number }: ChunkId) -> Option<u64> {
        let place = (*self.of_var.get(var.0)?)?;
        let (group, within) = match place.has_records {
            false => (0, number),
            true => {
                let group = number.checked_div(place.per_group)?;
                let start = group.checked_mul(self.group)?.checked_add(self.fixed_end)?;
                (start, number % place.per_group)
            }
        };
        let within = within.checked_mul(place.bytes)?;
        let address = group.checked_add(place.base)?.checked_add(within)?;
        // What lies within the chunk has addresses too.
        (address <= i64::MAX as u64).then_some(address)
    }

    /// The address of the first chunk of a variable's record, if it has records.
    pub(crate) fn begin(&self, var: VarId, grid: &Grid, record: u64) -> Option<u64> {
        self.address(ChunkId { var, number: record.checked_mul(grid.per_group)? })
    }

    /// The chunk that has an address, where it begins and how many bytes it has.
    pub(crate) fn chunk_at(&self, address: u64) -> Option<(ChunkId, u64, u64)> {
        let find = |list: &[(u64, VarId)], at: u64| {
            let after = list.partition_point(|(base, _)| *base <= at);
            // Variables without chunks begin where the next one does.
            list[..after].last().copied()
        };
        let (group, at, start) = match address.checked_sub(self.fixed_end) {
            None => (0, address, 0),
            Some(at) => {
                let group = at.checked_div(self.group)?;
                (group, at % self.group, self.fixed_end + group * self.group)
            }
        };
        let list = if address < self.fixed_end { &self.fixed } else { &self.records };
        let (base, var) = find(list, at)?;
        let place = (*self.of_var.get(var.0)?)?;
        let within = (at - base) / place.bytes;
        let number = group * place.per_group + within;
        Some((ChunkId { var, number }, start + base + within * place.bytes, place.bytes))
    }

    /// Adds a hyperslab of a variable, whose first element is number `element` of the request, to
    /// an extent. `None` if it has no addresses.
    pub(crate) fn cut(
        &self,
        var: VarId,
        grid: &Grid,
        slab: &Slab<'_>,
        element: u64,
        extent: &mut Extent,
    ) -> Option<()> {
        self.cut_within(var, grid, slab, element, &(0..u64::MAX), extent).map(drop)
    }

    /// The same for chunks that begin in a part of the space; gives whether there is one.
    pub(crate) fn cut_within(
        &self,
        var: VarId,
        grid: &Grid,
        slab: &Slab<'_>,
        element: u64,
        within: &Range<u64>,
        extent: &mut Extent,
    ) -> Option<bool> {
        let steps = grid.steps();
        if let Some((index, at)) = within_one(grid, slab, &steps) {
            let address = self.address(ChunkId { var, number: grid.number(&index) })?;
            if !within.contains(&address) {
                return Some(false);
            }
            let address = address + at;
            match slab.only_run(&steps, grid.size) {
                Some(len) => extent.push_run(Run { offset: address, len }, element),
                None => {
                    let dims = steps.iter().enumerate();
                    let levels = dims.map(|(d, step)| (slab.count[d], step * slab.stride_of(d)));
                    extent.push(Pattern::new(address, grid.size, levels), element);
                }
            }
            return Some(true);
        }
        // Elements of the request from one index of each dimension to the next.
        let mut element_steps = vec![1; slab.count.len()];
        for d in (1..slab.count.len()).rev() {
            element_steps[d - 1] = element_steps[d] * slab.count[d];
        }
        let parts: Vec<Vec<Along>> = (0..slab.count.len()).map(|d| parts(grid, slab, d)).collect();
        let lens: Vec<u64> = parts.iter().map(|list| list.len() as u64).collect();
        let mut at = vec![0; parts.len()];
        let mut any = false;
        loop {
            let now = || parts.iter().zip(&at).map(|(list, i)| &list[*i as usize]);
            let index: Vec<u64> = now().map(|p| p.chunk).collect();
            let mut address = self.address(ChunkId { var, number: grid.number(&index) })?;
            let is_within = within.contains(&address);
            let mut first = element;
            let mut run = grid.size;
            let mut levels: Vec<(u64, u64, u64)> = Vec::new();
            for (d, part) in now().enumerate() {
                address += part.from * steps[d];
                first += part.skipped * element_steps[d];
            }
            for (d, part) in now().enumerate().rev().filter(|(_, part)| part.count != 1) {
                let (step, jump) = (steps[d] * slab.stride_of(d), element_steps[d]);
                match levels.last_mut() {
                    None if step == run && jump * grid.size == run => run *= part.count,
                    Some((count, inner, inner_jump))
                        if step == *count * *inner && jump == *count * *inner_jump =>
                    {
                        *count *= part.count;
                    }
                    _ => levels.push((part.count, step, jump)),
                }
            }
            levels.reverse();
            let pattern_levels = levels.iter().map(|(count, step, _)| (*count, *step)).collect();
            let elements = Elements { first, steps: levels.iter().map(|l| l.2).collect() };
            if is_within {
                any = true;
                extent.push_box(Pattern::of_levels(address, run, pattern_levels), elements);
            }
            if advance(&mut at, &lens).is_none() {
                return Some(any);
            }
        }
    }
}

/// What a hyperslab has of the chunks with one index in one dimension.
struct Along {
    chunk: u64,
    /// The first index within the chunk.
    from: u64,
    count: u64,
    /// Indices of the hyperslab before it.
    skipped: u64,
}

fn parts(grid: &Grid, slab: &Slab<'_>, d: usize) -> Vec<Along> {
    let (len, stride) = (grid.chunk[d], slab.stride_of(d));
    let mut parts = Vec::new();
    let mut skipped = 0;
    while skipped < slab.count[d] {
        let index = slab.start[d] + skipped * stride;
        let chunk = index / len;
        let room = ((chunk + 1) * len - index).div_ceil(stride);
        let count = room.min(slab.count[d] - skipped);
        parts.push(Along { chunk, from: index - chunk * len, count, skipped });
        skipped += count;
    }
    parts
}

/// The chunk that has all of a hyperslab, and where in it the first element is.
fn within_one(grid: &Grid, slab: &Slab<'_>, steps: &[u64]) -> Option<(Vec<u64>, u64)> {
    let mut at = 0;
    for (d, len) in grid.chunk.iter().enumerate() {
        let first = slab.start[d];
        let last = first + (slab.count[d] - 1) * slab.stride_of(d);
        if first / len != last / len {
            return None;
        }
        at += first % len * steps[d];
    }
    let index = grid.chunk.iter().zip(slab.start).map(|(len, start)| start / len).collect();
    Some((index, at))
}
