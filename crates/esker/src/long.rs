//! Long transfers of one process: cut into blocks at borders of chunks, which threads share.
//!
//! [`Dataset::get`] and its relatives do this by themselves when a dataset has one rank and the
//! hint `esker_read_threads` allows it. A front end that must look at something between two
//! blocks (signals, progress) uses the parts: [`blocks`] and [`by_threads`].

use std::num::NonZero;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use esker_format::{MemoryType, RangeReport, VarId};

use crate::dataset::Dataset;
use crate::error::{Error, Result};
use crate::memory::{Lent, MemoryLayout};
use crate::selection::{Checked, Purpose, Selection};

/// Threads read together from this many bytes on, in blocks of at least `SMALL`. More than
/// `READERS` are not faster, since they wait for memory.
const WORTH_THREADS: u64 = 32 << 20;
const SMALL: u64 = 4 << 20;
const READERS: u64 = 4;

/// More than so many are not started, whatever the hint says.
const MOST: u64 = 64;

/// The longest block: what one process moves before it looks around, a tenth of a second of a slow
/// disk.
pub const LONGEST: u64 = 32 << 20;

/// A block of a selection: from `start`, `count` in each dimension, both as indices of the selection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// The first index.
    pub start: Vec<u64>,
    /// How many.
    pub count: Vec<u64>,
}

impl Block {
    /// Bytes of its elements, of `size` bytes each.
    pub fn bytes(&self, size: u64) -> u64 {
        self.count.iter().fold(size, |bytes, count| bytes.saturating_mul(*count))
    }
}

/// A selection that is to be cut: how many indices it has in each dimension, how far it is from one
/// to the next, and, of a chunked variable, where it starts and how long chunks are.
#[derive(Debug, Clone, Copy)]
pub struct Whole<'a> {
    /// Indices in each dimension.
    pub count: &'a [u64],
    /// Steps between them in the variable.
    pub stride: &'a [u64],
    /// The first index in the variable, and the lengths of chunks.
    pub chunks: Option<(&'a [u64], &'a [u64])>,
}

/// How many threads read so many bytes, and how long their blocks are. `hint` is the number that
/// the user wants, 0 for as many as pay.
pub fn shares(hint: u64, bytes: u64) -> (u64, u64) {
    let cores = || std::thread::available_parallelism().map_or(1, NonZero::get) as u64;
    let threads = match (hint, bytes >= WORTH_THREADS) {
        (0, true) => cores().min(READERS),
        (0, false) => 1,
        (wanted, _) => wanted.min(MOST),
    };
    match threads {
        0 | 1 => (1, LONGEST),
        // Several for each, so that none has much to do when the others are done.
        _ => (threads, (bytes / (4 * threads)).clamp(SMALL, LONGEST)),
    }
}

/// The blocks, in order, of which each spans at most about `most` bytes of the file and is whole in all
/// dimensions behind the first that it is longer than 1 in: so that in dense memory they lie one
/// behind the other. Blocks of a chunked variable end where chunks do, or a chunk would be decoded,
/// and written, more than once.
pub fn blocks(whole: Whole<'_>, size: u64, most: u64) -> Vec<Block> {
    let Whole { count, stride, chunks } = whole;
    let rank = count.len();
    let all = Block { start: vec![0; rank], count: count.to_vec() };
    // What lies between elements is often read too, and takes as long.
    let step = |dim: usize| stride.get(dim).copied().unwrap_or(1).max(1);
    // The dimension that is cut, and the bytes of one index of it.
    let (mut cut, mut inner, mut span) = (0, size, size);
    // Before a dimension that is cut every index is a block: not where chunks are longer.
    let first = match chunks {
        Some((_, chunk)) => {
            let alone = |dim: &usize| count[*dim] == 1 || chunk[*dim] <= step(*dim);
            (0..rank.saturating_sub(1)).take_while(alone).count()
        }
        None => rank.saturating_sub(1),
    };
    for (dim, count) in count.iter().enumerate().rev() {
        (cut, inner) = (dim, span);
        span = span.saturating_mul(count.saturating_mul(step(dim)));
        if span > most && dim <= first {
            break;
        }
    }
    // (A scalar cannot be cut.)
    if rank == 0 || span <= most || all.bytes(size) == 0 {
        return vec![all];
    }
    let mut blocks = Vec::new();
    let length = (most / inner.saturating_mul(step(cut))).max(1);
    let mut at = vec![0; rank];
    loop {
        let mut block = Block { start: at.clone(), count: vec![1; rank] };
        block.count[cut + 1..].copy_from_slice(&count[cut + 1..]);
        let length = match chunks {
            Some((start, chunk)) => to_border(start[cut], step(cut), chunk[cut], at[cut], length),
            None => length,
        };
        block.count[cut] = length.min(count[cut] - at[cut]);
        at[cut] += block.count[cut];
        blocks.push(block);
        // Carry to the dimensions before.
        let mut dim = cut;
        while at[dim] >= count[dim] {
            if dim == 0 {
                return blocks;
            }
            at[dim] = 0;
            dim -= 1;
            at[dim] += 1;
        }
    }
}

/// How many indices from `at` on go to the last border of chunks within `most` of them, or to the
/// first border if none is; indices are `start`, `start + stride`, and so on.
fn to_border(start: u64, stride: u64, chunk: u64, at: u64, most: u64) -> u64 {
    let (chunk, stride) = (chunk.max(1), stride.max(1));
    let here = start.saturating_add(at.saturating_mul(stride));
    let reach = here.saturating_add(most.saturating_mul(stride));
    let last = reach / chunk * chunk;
    let border = if last > here { last } else { (here / chunk + 1).saturating_mul(chunk) };
    (border - here).div_ceil(stride).max(1)
}

/// Lets `threads` threads take one part after the other; `work` gives how much it did. This thread is
/// one of them, and alone calls `look` after each of its parts with what all have done so far.
/// The failure of the first part in order counts, whichever thread was faster; none is begun after it.
pub fn by_threads<P: Send, E: Send>(
    threads: u64,
    parts: Vec<P>,
    work: impl Fn(P) -> Result<u64, E> + Sync,
    mut look: impl FnMut(u64) -> Result<(), E>,
) -> Result<(), E> {
    let todo = Mutex::new(parts.into_iter().enumerate());
    let failed: Mutex<Option<(usize, E)>> = Mutex::new(None);
    let done = AtomicU64::new(0);
    let fail = |number: usize, failure: E| {
        let mut failed = failed.lock().unwrap_or_else(PoisonError::into_inner);
        if failed.as_ref().is_none_or(|(first, _)| number < *first) {
            *failed = Some((number, failure));
        }
    };
    let next = || {
        if failed.lock().unwrap_or_else(PoisonError::into_inner).is_some() {
            return None;
        }
        todo.lock().unwrap_or_else(PoisonError::into_inner).next()
    };
    let one = |(number, part): (usize, P)| match work(part) {
        Ok(did) => done.fetch_add(did, Ordering::Relaxed) + did,
        Err(failure) => {
            fail(number, failure);
            done.load(Ordering::Relaxed)
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads {
            let work = || while next().map(one).is_some() {};
            // A thread that cannot be had is one less.
            if std::thread::Builder::new().spawn_scoped(scope, work).is_err() {
                break;
            }
        }
        while let Some(part) = next() {
            if let Err(interrupted) = look(one(part)) {
                fail(0, interrupted);
            }
        }
    });
    match failed.into_inner().unwrap_or_else(PoisonError::into_inner) {
        Some((_, failure)) => Err(failure),
        None => Ok(()),
    }
}

impl Dataset {
    /// Reads what was checked, by several threads if it is long, one hyperslab and dense in memory.
    pub(crate) fn read_long(
        &self,
        var: VarId,
        selection: &Selection,
        checked: Checked,
        ty: MemoryType,
        (lent, layout): (Lent<'_>, MemoryLayout),
    ) -> Result<()> {
        let (size, hint) = (ty.size() as u64, self.ground.base.hints.read_threads);
        let alone = self.ground.base.comm.size() == 1 && layout.is_dense();
        let (threads, most) = match alone {
            true => shares(hint, checked.elements.saturating_mul(size)),
            false => (1, LONGEST),
        };
        let slab = (threads > 1).then(|| self.one_slab(var, selection)).flatten();
        let (bytes, (start, count, stride)) = match (lent, slab) {
            (Lent::Target(bytes), Some(slab)) => (bytes, slab),
            (lent, _) => return self.read_alone(var, checked, ty, lent, layout),
        };
        let chunk = self.chunk_shape(var);
        let chunks = chunk.map(|chunk| (&start[..], chunk));
        let blocks = blocks(Whole { count: &count, stride: &stride, chunks }, size, most);
        if blocks.len() < 2 {
            return self.read_alone(var, checked, ty, Lent::Target(bytes), layout);
        }
        drop(checked);
        let mut rest = bytes;
        let ranges: Vec<Mutex<RangeReport>> = blocks.iter().map(|_| Mutex::default()).collect();
        let mut parts = Vec::with_capacity(blocks.len());
        for (block, range) in blocks.iter().zip(&ranges) {
            let Some((part, later)) = rest.split_at_mut_checked(block.bytes(size) as usize) else {
                return Err(Error::Garbled);
            };
            rest = later;
            parts.push((block, part, range));
        }
        let work = |(block, part, range): (&Block, &mut [u8], &Mutex<RangeReport>)| -> Result<u64> {
            let did = part.len() as u64;
            let from = start.iter().zip(&block.start).zip(&stride);
            let from: Vec<u64> = from.map(|((start, at), stride)| start + at * stride).collect();
            let selection = Selection::strided(&from, &block.count, &stride);
            let checked = self.check(self.file_var(var)?, &selection, Purpose::Read)?;
            let layout = MemoryLayout::dense();
            match self.read_alone(var, checked, ty, Lent::Target(part), layout) {
                // Everything was read: what did not fit is told of all blocks together.
                Err(Error::Range { report, .. }) => {
                    *range.lock().unwrap_or_else(PoisonError::into_inner) = report;
                }
                other => other?,
            }
            Ok(did)
        };
        by_threads(threads, parts, work, |_| Ok(()))?;
        let mut report = RangeReport::default();
        for (block, range) in blocks.iter().zip(ranges) {
            let range = range.into_inner().unwrap_or_else(PoisonError::into_inner);
            report.append(RangeReport { elements: block.bytes(1), ..range });
        }
        match report.all_fit() {
            true => Ok(()),
            false => {
                let name = self.schema().variable(var).map_or("", |v| &*v.name).to_string();
                Err(Error::Range { path: self.ground.base.path.clone(), var: name, report })
            }
        }
    }

    /// How many threads share a long read, by the hint; 0 for as many as pay.
    pub fn read_threads(&self) -> u64 {
        self.ground.base.hints.read_threads
    }

    /// Start, count and stride, if the selection is one hyperslab of an array.
    fn one_slab(
        &self,
        var: VarId,
        selection: &Selection,
    ) -> Option<(Vec<u64>, Vec<u64>, Vec<u64>)> {
        if selection.is_all() {
            let shape = self.shape(var).ok()?;
            return (!shape.is_empty())
                .then(|| (vec![0; shape.len()], shape.clone(), vec![1; shape.len()]));
        }
        let slabs = selection.slabs().filter(|slabs| slabs.len == 1 && slabs.rank > 0)?;
        let stride = match slabs.stride.is_empty() {
            true => vec![1; slabs.rank],
            false => slabs.stride.clone(),
        };
        Some((slabs.start.clone(), slabs.count.clone(), stride))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    /// All indices of a block, the last dimension fastest.
    fn indices(block: &Block) -> Vec<Vec<u64>> {
        let mut all = vec![Vec::new()];
        for (start, count) in block.start.iter().zip(&block.count) {
            let longer = all.iter().flat_map(|index: &Vec<u64>| {
                (*start..start + count).map(move |i| [&index[..], &[i]].concat())
            });
            all = longer.collect();
        }
        all
    }

    proptest! {
        #[test]
        fn blocks_are_the_whole_in_order_and_share_no_chunk(
            dims in prop::collection::vec((1u64..9, 1u64..4, 0u64..7, 1u64..6), 0..4),
            chunked in any::<bool>(),
            most in 1u64..300,
        ) {
            let count: Vec<u64> = dims.iter().map(|d| d.0).collect();
            let stride: Vec<u64> = dims.iter().map(|d| d.1).collect();
            let start: Vec<u64> = dims.iter().map(|d| d.2).collect();
            let chunk: Vec<u64> = dims.iter().map(|d| d.3).collect();
            let chunks = chunked.then_some((&start[..], &chunk[..]));
            let blocks = blocks(Whole { count: &count, stride: &stride, chunks }, 4, most);
            let whole = Block { start: vec![0; count.len()], count };
            let all: Vec<Vec<u64>> = blocks.iter().flat_map(indices).collect();
            prop_assert_eq!(all, indices(&whole));
            let mut seen = HashSet::new();
            for block in blocks.iter().filter(|_| chunked) {
                let chunk_of = |index: Vec<u64>| -> Vec<u64> {
                    let at = index.iter().enumerate().map(|(d, i)| start[d] + i * stride[d]);
                    at.zip(&chunk).map(|(at, chunk)| at / chunk).collect()
                };
                let here: HashSet<Vec<u64>> = indices(block).into_iter().map(chunk_of).collect();
                for chunk in here {
                    prop_assert!(seen.insert(chunk.clone()), "chunk {chunk:?} is in two blocks");
                }
            }
        }
    }

    #[test]
    fn a_scalar_is_one_block_however_short_blocks_are() {
        let scalar = Whole { count: &[], stride: &[], chunks: None };
        assert_eq!(blocks(scalar, 8, 1), [Block { start: vec![], count: vec![] }]);
    }

    #[test]
    fn the_failure_of_the_first_part_counts_and_ends_the_rest() {
        let begun = AtomicU64::new(0);
        let work = |part: u64| {
            begun.fetch_add(1, Ordering::Relaxed);
            if part >= 10 { Err(part) } else { Ok(1) }
        };
        let failed = by_threads(3, (0..10_000).collect(), work, |_| Ok(()));
        assert!(failed.is_err_and(|part| (10..13).contains(&part)));
        assert!(begun.load(Ordering::Relaxed) < 10_000);
        let mut told = Vec::new();
        let look = |done| {
            told.push(done);
            Ok::<(), ()>(())
        };
        by_threads(1, vec![3, 4, 5], Ok, look).unwrap();
        assert_eq!(told, [3, 7, 12]);
    }

    #[test]
    fn threads_are_as_many_as_pay_or_as_are_wanted() {
        assert_eq!(shares(0, WORTH_THREADS - 1), (1, LONGEST));
        assert_eq!(shares(1, 1 << 40), (1, LONGEST));
        assert_eq!(shares(3, 24 << 20), (3, SMALL));
        assert_eq!(shares(2, 1 << 40), (2, LONGEST));
        assert_eq!(shares(1000, 1 << 40).0, MOST);
        assert!((1..=READERS).contains(&shares(0, 1 << 40).0));
    }
}
