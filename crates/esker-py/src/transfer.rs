//! Data between a file and arrays: in pieces, without the GIL.

use esker::long::{self, LONGEST, Whole};
use esker::{MemoryLayout, Selection, VarId};
use pyo3::prelude::*;

use crate::index::Slab;
use crate::memory::{Block, Lent};
use crate::state::{Failure, Shared};

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
    let total = whole.bytes(size);
    // Chunks are decoded by threads of their own, but laid into the array by the reader.
    let (threads, most) = match shared.size {
        1 => long::shares(shared.read_threads()?, total),
        _ => (1, LONGEST),
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
        let work = |(block, bytes): (&Block, &mut [u8])| {
            let len = bytes.len() as u64;
            read(block, bytes, MemoryLayout::dense()).map(|()| len)
        };
        // This thread, which alone may look at signals, is one of them.
        let parts = blocks.iter().zip(parts).collect();
        long::by_threads(threads, parts, work, |done| watcher.look(done, total))?;
        return watcher.look(total, total);
    }
    one_by_one(&blocks, size, watcher, |block| {
        let (bytes, layout) = lent.bytes_mut(block);
        read(block, bytes, layout)
    })
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
    let blocks = pieces(what, chunk.as_deref(), &lent.whole(), size, LONGEST);
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
    let total = blocks.iter().map(|block| block.bytes(size)).sum();
    let mut done = 0;
    for block in blocks {
        each(block)?;
        done += block.bytes(size);
        if blocks.len() > 1 || watcher.progress.is_some() {
            watcher.look(done, total)?;
        }
    }
    Ok(())
}

/// The blocks that this is moved in.
fn pieces(what: &What, chunk: Option<&[u64]>, whole: &Block, size: u64, most: u64) -> Vec<Block> {
    let count = &whole.count[..];
    match (what, chunk) {
        (What::Slab(slab), chunk) => {
            let chunks = chunk.map(|chunk| (&slab.start[..], chunk));
            long::blocks(Whole { count, stride: &slab.stride, chunks }, size, most)
        }
        // Scattered parts of chunks go together.
        (What::List { .. }, Some(_)) => vec![whole.clone()],
        (What::List { .. }, None) => {
            long::blocks(Whole { count, stride: &[], chunks: None }, size, most)
        }
    }
}
