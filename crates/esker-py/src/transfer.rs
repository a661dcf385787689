//! Data between a file and arrays: in pieces, without the GIL.

use esker::{Selection, VarId};
use pyo3::prelude::*;

use crate::index::Slab;
use crate::memory::{Block, Lent};
use crate::state::{Failure, Shared};

/// What one process moves before it looks whether it is interrupted: a tenth of a second of a slow disk.
const PIECE: u64 = 32 << 20;

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
    if shared.is_collective() {
        let whole = lent.whole();
        let selection = what.selection(&whole);
        return shared.change(true, |dataset| {
            let (bytes, layout) = lent.bytes_mut(&whole);
            dataset.get_bytes_all(var, &selection, (bytes, ty), layout)
        });
    }
    let chunk = shared.chunk(var)?;
    in_pieces(what, chunk.as_deref(), lent.whole(), ty.size() as u64, watcher, |block| {
        let selection = what.selection(block);
        shared.read(|dataset| {
            let (bytes, layout) = lent.bytes_mut(block);
            dataset.get_bytes(var, &selection, (bytes, ty), layout)
        })
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
    let together = shared.is_collective();
    if together {
        let whole = lent.whole();
        let selection = what.selection(&whole);
        let (bytes, layout) = lent.bytes(&whole);
        return shared
            .change(true, |dataset| dataset.put_bytes_all(var, &selection, (bytes, ty), layout));
    }
    let chunk = shared.chunk(var)?;
    in_pieces(what, chunk.as_deref(), lent.whole(), ty.size() as u64, watcher, |block| {
        let selection = what.selection(block);
        let (bytes, layout) = lent.bytes(block);
        shared.change(false, |dataset| {
            let mut queue = esker::Requests::new();
            dataset.iput_bytes(&mut queue, var, &selection, (bytes, ty), layout)?;
            dataset.wait(&mut queue)
        })
    })
}

/// Calls `each` with one block after the other, each spanning at most about [`PIECE`] bytes of the
/// file, whole in all dimensions behind the first that it is longer than 1 in. Pieces of a chunked
/// variable end where chunks do, or a chunk would be decoded, and written, more than once.
fn in_pieces(
    what: &What,
    chunk: Option<&[u64]>,
    whole: Block,
    size: u64,
    watcher: &Watcher,
    mut each: impl FnMut(&Block) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let bytes = |count: &[u64]| count.iter().product::<u64>().saturating_mul(size);
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
        if span > PIECE && dim <= first {
            break;
        }
    }
    let total = bytes(&whole.count);
    // Scattered parts of chunks go together.
    let scattered = chunk.is_some() && matches!(what, What::List { .. });
    if span <= PIECE || total == 0 || scattered {
        each(&whole)?;
        return if watcher.progress.is_some() { watcher.look(total, total) } else { Ok(()) };
    }
    let length = (PIECE / inner.saturating_mul(step(cut))).max(1);
    let mut at = vec![0; rank];
    let mut done = 0;
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
        each(&block)?;
        done += bytes(&block.count);
        watcher.look(done, total)?;
        at[cut] += block.count[cut];
        // Carry to the dimensions before.
        let mut dim = cut;
        while at[dim] >= whole.count[dim] {
            if dim == 0 {
                return Ok(());
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
