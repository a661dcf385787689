//! Data between a file and arrays: in pieces, without the GIL.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use esker::{MemoryLayout, Selection, VarId};
use pyo3::prelude::*;

use crate::index::Slab;
use crate::memory::{Block, Lent};
use crate::state::{Failure, Shared};

/// What one process moves before it looks whether it is interrupted: a tenth of a second of a slow disk.
const PIECE: u64 = 32 << 20;

/// Threads read together from this many bytes on, in pieces of at least `SMALL_PIECE`. More than
/// `READERS` are not faster, since they wait for memory.
const WORTH_THREADS: u64 = 32 << 20;
const SMALL_PIECE: u64 = 4 << 20;
const READERS: u64 = 4;

/// What is read or written.
pub(crate) enum What {
    Slab(Slab),
    /// Hyperslabs of one shape, one behind the other in memory.
    List {
        rank: usize,
        starts: Vec<u64>,
        count: Vec<u64>,
    },
}

impl What {
    /// All of it.
    pub(crate) fn whole_selection(&self) -> Selection {
        let count = match self {
            What::Slab(slab) => slab.count.clone(),
            What::List { rank, starts, .. } => vec![(starts.len() / (*rank).max(1)) as u64],
        };
        self.selection(&Block { start: vec![0; count.len()], count })
    }

    pub(crate) fn selection(&self, block: &Block) -> Selection {
        match self {
            What::Slab(slab) => {
                let dims = 0..slab.start.len();
                let start: Vec<u64> =
                    dims.map(|d| slab.start[d] + block.start[d] * slab.stride[d]).collect();
                if slab.stride.iter().all(|stride| *stride == 1) {
                    Selection::slab(&start, &block.count)
                } else {
                    Selection::strided(&start, &block.count, &slab.stride)
                }
            }
            What::List { rank, starts, count } => {
                let (first, slabs) = match (block.start.first(), block.count.first()) {
                    (Some(first), Some(slabs)) => (*first as usize, *slabs as usize),
                    _ => (0, 1),
                };
                if slabs == 0 {
                    return Selection::none();
                }
                let starts = starts[first * rank..(first + slabs) * rank].to_vec();
                Selection::list(*rank, starts, count.repeat(slabs))
            }
        }
    }
}

/// Somebody who is told how far a transfer is, with the GIL.
pub(crate) struct Watcher {
    pub(crate) progress: Option<Py<PyAny>>,
}

impl Watcher {
    /// Between two pieces: Ctrl-C, and progress.
    fn look(&self, done: u64, total: u64) -> Result<(), Failure> {
        Python::attach(|py| {
            py.check_signals()?;
            if let Some(progress) = &self.progress {
                progress.call1(py, (done, total))?;
            }
            Ok(())
        })
    }
}

/// Reads into lent memory. Without the GIL.
pub(crate) fn read(
    shared: &Shared,
    var: VarId,
    what: &What,
    lent: &mut Lent,
    watcher: &Watcher,
) -> Result<(), Failure> {
    let ty = lent.memory_type();
    if shared.is_together() {
        let whole = lent.whole();
        let selection = what.selection(&whole);
        return shared.change(true, |dataset| {
            let (bytes, layout) = lent.bytes_mut(&whole);
            dataset.get_bytes_all(var, &selection, (bytes, ty), layout)
        });
    }
    let chunk = shared.chunk(var)?;
    let (whole, size) = (lent.whole(), ty.size() as u64);
    let total = bytes_of(&whole.count, size);
    // Chunks are decoded by threads of their own, but laid into the array by the reader.
    let threads = match (shared.size, total >= WORTH_THREADS) {
        (1, true) => std::thread::available_parallelism().map_or(1, |n| n.get() as u64),
        _ => 1,
    };
    let threads = threads.min(READERS);
    let most = match threads {
        1 => PIECE,
        // Several for each, so that none has much to do when the others are done.
        _ => (total / (4 * threads)).clamp(SMALL_PIECE, PIECE),
    };
    let blocks = pieces(what, chunk.as_deref(), &whole, size, most);
    let read = |block: &Block, bytes: &mut [u8], layout: MemoryLayout| {
        let selection = what.selection(block);
        shared.read(|dataset| dataset.get_bytes(var, &selection, (bytes, ty), layout))
    };
    if threads > 1
        && blocks.len() > 1
        && let Some(parts) = lent.parts_mut(&blocks)
    {
        return read_by_threads(threads, &blocks, parts, total, watcher, read);
    }
    one_by_one(&blocks, size, watcher, |block| {
        let (bytes, layout) = lent.bytes_mut(block);
        read(block, bytes, layout)
    })
}

/// Lets threads read blocks, each into its own part of the memory, in order. This thread, which alone
/// may look at signals, is one of them.
fn read_by_threads(
    threads: u64,
    blocks: &[Block],
    parts: Vec<&mut [u8]>,
    total: u64,
    watcher: &Watcher,
    read: impl Fn(&Block, &mut [u8], MemoryLayout) -> Result<(), Failure> + Sync,
) -> Result<(), Failure> {
    let todo = Mutex::new(blocks.iter().zip(parts).enumerate());
    // The failure of the first block in order, whichever thread was faster.
    let failed: Mutex<Option<(usize, Failure)>> = Mutex::new(None);
    let done = AtomicU64::new(0);
    let fail = |number: usize, failure: Failure| {
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
    let one = |(number, (block, bytes)): (usize, (&Block, &mut [u8]))| {
        let len = bytes.len() as u64;
        match read(block, bytes, MemoryLayout::dense()) {
            Ok(()) => done.fetch_add(len, Ordering::Relaxed) + len,
            Err(failure) => {
                fail(number, failure);
                done.load(Ordering::Relaxed)
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads {
            scope.spawn(|| {
                while let Some(part) = next() {
                    one(part);
                }
            });
        }
        while let Some(part) = next() {
            let so_far = one(part);
            if let Err(interrupted) = watcher.look(so_far, total) {
                fail(0, interrupted);
            }
        }
    });
    let failed = failed.into_inner().unwrap_or_else(PoisonError::into_inner);
    match failed {
        Some((_, failure)) => Err(failure),
        None => watcher.look(total, total),
    }
}

/// Writes from lent memory. Without the GIL.
pub(crate) fn write(
    shared: &Shared,
    var: VarId,
    what: &What,
    lent: &Lent,
    watcher: &Watcher,
) -> Result<(), Failure> {
    let ty = lent.memory_type();
    if shared.is_together() {
        let whole = lent.whole();
        let selection = what.selection(&whole);
        let (bytes, layout) = lent.bytes(&whole);
        return shared
            .change(true, |dataset| dataset.put_bytes_all(var, &selection, (bytes, ty), layout));
    }
    let chunk = shared.chunk(var)?;
    let size = ty.size() as u64;
    let blocks = pieces(what, chunk.as_deref(), &lent.whole(), size, PIECE);
    one_by_one(&blocks, size, watcher, |block| {
        let selection = what.selection(block);
        let (bytes, layout) = lent.bytes(block);
        shared.change(false, |dataset| {
            let mut queue = esker::Requests::new();
            dataset.iput_bytes(&mut queue, var, &selection, (bytes, ty), layout)?;
            dataset.wait(&mut queue)
        })
    })
}

/// Calls `each` with one block after the other, and looks at signals between them.
fn one_by_one(
    blocks: &[Block],
    size: u64,
    watcher: &Watcher,
    mut each: impl FnMut(&Block) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let total = blocks.iter().map(|block| bytes_of(&block.count, size)).sum();
    let mut done = 0;
    for block in blocks {
        each(block)?;
        done += bytes_of(&block.count, size);
        if blocks.len() > 1 || watcher.progress.is_some() {
            watcher.look(done, total)?;
        }
    }
    Ok(())
}

fn bytes_of(count: &[u64], size: u64) -> u64 {
    count.iter().product::<u64>().saturating_mul(size)
}

/// The blocks, in order, of which each spans at most about `most` bytes of the file and is whole in all
/// dimensions behind the first that it is longer than 1 in. Pieces of a chunked variable end where
/// chunks do, or a chunk would be decoded, and written, more than once.
fn pieces(what: &What, chunk: Option<&[u64]>, whole: &Block, size: u64, most: u64) -> Vec<Block> {
    // What lies between elements is often read too, and takes as long.
    let step = |dim: usize| match what {
        What::Slab(slab) => slab.stride[dim],
        What::List { .. } => 1,
    };
    let rank = whole.count.len();
    // The dimension that is cut, and the bytes of one index of it.
    let (mut cut, mut inner, mut span) = (0, size, size);
    // Before a dimension that is cut every index is a piece: not where chunks are longer.
    let first = match (chunk, what) {
        (Some(chunk), What::Slab(slab)) => {
            let alone = |dim: &usize| slab.count[*dim] == 1 || chunk[*dim] <= slab.stride[*dim];
            (0..rank.saturating_sub(1)).take_while(alone).count()
        }
        _ => rank.saturating_sub(1),
    };
    for (dim, count) in whole.count.iter().enumerate().rev() {
        (cut, inner) = (dim, span);
        span = span.saturating_mul(count.saturating_mul(step(dim)));
        if span > most && dim <= first {
            break;
        }
    }
    let total = bytes_of(&whole.count, size);
    // Scattered parts of chunks go together.
    let scattered = chunk.is_some() && matches!(what, What::List { .. });
    if span <= most || total == 0 || scattered {
        return vec![whole.clone()];
    }
    let mut blocks = Vec::new();
    let length = (most / inner.saturating_mul(step(cut))).max(1);
    let mut at = vec![0; rank];
    loop {
        let mut block = Block { start: at.clone(), count: vec![1; rank] };
        block.count[cut + 1..].copy_from_slice(&whole.count[cut + 1..]);
        let length = match (chunk, what) {
            (Some(chunk), What::Slab(slab)) => {
                to_border(slab.start[cut], slab.stride[cut], chunk[cut], at[cut], length)
            }
            _ => length,
        };
        block.count[cut] = length.min(whole.count[cut] - at[cut]);
        at[cut] += block.count[cut];
        blocks.push(block);
        // Carry to the dimensions before.
        let mut dim = cut;
        while at[dim] >= whole.count[dim] {
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
