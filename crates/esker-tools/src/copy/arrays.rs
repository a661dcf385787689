//! Copying by arrays: where one of the two files has chunks, the values are read and written as
//! hyperslabs that hold whole chunks, so that each chunk is decoded and encoded once.

use std::path::Path;
use std::sync::Arc;

use esker::{
    Communicator, CreateOptions, Dataset, Error, FillMode, Hints, Layout, MemoryLayout,
    OpenOptions, Owner, Requests, Selection, Values, VarId,
};

use esker_store::Draft;

use super::choose::{Kept, Plan};
use super::convert::Reader;
use super::error::tell;
use super::{
    Copied, CopyError, CopyOptions, add_history, begin, chunks, convert, name_together,
    with_one_history,
};
use crate::blocks::Block;
use crate::boxes::{boxes, unit};
use crate::progress::Progress;

/// How many of the options' buffers a rank has here: chunks of a box are encoded side by side.
pub(super) const BUFFERS: u64 = 8;

/// Copies `input` to `output` as [`copy`](super::copy()) does, by arrays. Collective: the ranks share
/// the work, each with eight buffers of its own, or as many chunks as fit into that.
pub fn copy_together(
    input: &Path,
    output: &Path,
    options: &CopyOptions,
    comm: Arc<dyn Communicator>,
    progress: &mut dyn Progress,
) -> Result<Copied, CopyError> {
    let options = &with_one_history(options, &*comm)?;
    let store = &options.store;
    let open = OpenOptions::new().store(store.clone()).comm(comm.clone()).blobs(true);
    let open = match options.container_version {
        Some(version) => open.container_version(version),
        None => open,
    };
    let mut source = Dataset::open_with(input, open)?;
    let output = super::target(source.path(), output, options)?;
    let mut plan = Plan::new(&source, options)?;
    // What cannot be read is an error before the output is made, which a damaged length could make very long.
    plan.vars.iter().try_for_each(|kept| source.shape(kept.from).map(drop))?;
    let scanned =
        convert::settle_types(&mut Reader::Arrays(&source), &mut plan, options, progress)?;
    if let Some(line) = &options.history {
        add_history(&mut plan, line);
    }
    let is_container = options.layout == Layout::Log;
    let was_container = source.container_version().is_some();
    let (records, wishes) = (plan.records, &options.chunks);
    chunks::settle(&mut plan.schema, records, wishes, is_container, was_container)?;
    let draft = begin(&source, &output, options)?;
    let name = draft.as_ref().map_or(&*output, Draft::path);
    let mut target = create(&source, &plan, name, options, &comm)?;
    let job = Job { plan: &plan, options, scanned };
    let done = job.transfer(&mut source, &mut target, progress).and_then(|bytes| {
        if options.sync {
            target.sync()?;
        }
        let (variables, converted) = (plan.vars.len(), plan.converted(source.schema()));
        let (records, file_len) = (target.numrecs(), target.file_len()?);
        target.close()?;
        Ok(Copied { variables, records, bytes, file_len, converted })
    });
    name_together(&source, draft, done, options)
}

/// The output under a name of its own (rank 0's), defined.
fn create(
    source: &Dataset,
    plan: &Plan,
    name: &Path,
    options: &CopyOptions,
    comm: &Arc<dyn Communicator>,
) -> Result<Dataset, CopyError> {
    let mut hints = Hints::default();
    if let Some(heap) = source.heap()? {
        // Chunks that stay as they are find the room that they had, before traditional records.
        hints.set("esker_chunk_room", &(heap.end - heap.start).to_string());
    }
    let create = CreateOptions::new()
        .hints(hints)
        .layout(options.layout)
        .version(plan.schema.version)
        .align(options.align)
        .fill(FillMode::NoFill)
        .blobs(true)
        .store(options.store.clone())
        .comm(comm.clone());
    let mut define = Dataset::create(name, create)?;
    for dim in &plan.schema.dims {
        define.add_dim(&dim.name, dim.len)?;
    }
    for attr in plan.schema.attrs.iter() {
        define.put_attr(Owner::Global, &attr.name, attr.values.clone())?;
    }
    for var in &plan.schema.vars {
        let id = define.add_var(&var.name, var.ty, &var.dims)?;
        for attr in var.attrs.iter() {
            define.put_attr(id, &attr.name, attr.values.clone())?;
        }
        // Every value is written, but for what fills up the last four bytes.
        let skip = usize::from(plan.schema.is_record(var));
        let shape = plan.schema.shape(var, 1);
        let bytes = shape[skip..].iter().product::<u64>() * var.ty.size();
        if !bytes.is_multiple_of(4) {
            define.set_fill(id, FillMode::Fill)?;
        }
    }
    Ok(define.enddef().map_err(Error::from)?)
}

struct Job<'a> {
    plan: &'a Plan,
    options: &'a CopyOptions,
    scanned: u64,
}

impl Job<'_> {
    /// Moves all values, a box for each rank at a time; gives the number of bytes.
    fn transfer(
        &self,
        source: &mut Dataset,
        target: &mut Dataset,
        progress: &mut dyn Progress,
    ) -> Result<u64, CopyError> {
        let size = |kept: &Kept| {
            let elements = kept.along.iter().fold(1u64, |n, a| n.saturating_mul(a.count));
            elements.saturating_mul(kept.ty.size())
        };
        let bytes = self.plan.vars.iter().map(size).fold(0, u64::saturating_add);
        let total = self.scanned.saturating_add(bytes);
        let mut done = self.scanned;
        progress.progress(done, total);
        let (rank, ranks) = (source.comm().rank(), source.comm().size());
        for (number, kept) in self.plan.vars.iter().enumerate() {
            let to = VarId(number);
            let shape: Vec<u64> = kept.along.iter().map(|along| along.count).collect();
            let chunk = |of: &Dataset, var| of.chunk_shape(var).map(<[u64]>::to_vec);
            let (was, will) = (chunk(source, kept.from), chunk(target, to));
            let most = self.options.buffer as u64 * BUFFERS / kept.ty.size();
            let unit = unit(&shape, was.as_deref(), will.as_deref(), most);
            let mut cut = boxes(&shape, &unit, most).peekable();
            while cut.peek().is_some() {
                let round: Vec<Block> = cut.by_ref().take(ranks).collect();
                self.round(source, target, (kept, to), round.get(rank))?;
                done += round.iter().map(Block::len).sum::<u64>() * kept.ty.size();
                // One rank alone: the others would wait.
                match ranks {
                    1 => tell(progress, done, total)?,
                    _ => progress.progress(done, total),
                }
            }
        }
        Ok(bytes)
    }

    /// One box of this rank, if it has one.
    fn round(
        &self,
        source: &mut Dataset,
        target: &mut Dataset,
        (kept, to): (&Kept, VarId),
        mine: Option<&Block>,
    ) -> Result<(), CopyError> {
        let (from, into) = match mine {
            Some(block) => (selected(kept, block), Selection::slab(&block.start, &block.count)),
            None => (Selection::none(), Selection::none()),
        };
        let mut values = Values::zeros(kept.ty, mine.map_or(0, |b| b.len() as usize));
        let (dense, native) = (MemoryLayout::dense(), kept.ty.natural());
        let mut queue = Requests::new();
        let memory = (values.native_bytes_mut(), native);
        let queued = source.iget_bytes(&mut queue, kept.from, &from, memory, dense.clone());
        together(source, &mut queue, queued.map(drop))?;
        drop(queue);
        if let Some(refill) = &kept.refill {
            let mut bytes = Vec::new();
            let applied = refill.apply(&values.external_bytes(), &mut bytes);
            let applied = applied.map_err(|e| super::convert_error(source, kept.from, e));
            source.agree(applied)?;
            let ty = refill.target();
            let count = bytes.len() / ty.size() as usize;
            values = Values::decode(ty, count, &bytes).unwrap_or_else(|| Values::zeros(ty, count));
        }
        let mut queue = Requests::new();
        let memory = (values.native_bytes(), values.ty().natural());
        let queued = target.iput_bytes(&mut queue, to, &into, memory, dense);
        together(target, &mut queue, queued.map(drop))
    }
}

/// What a box of the output is in the input.
pub(super) fn selected(kept: &Kept, block: &Block) -> Selection {
    let start = kept.along.iter().zip(&block.start).map(|(a, s)| a.start + s * a.stride);
    let stride = kept.along.iter().map(|a| a.stride.max(1));
    let (start, stride): (Vec<u64>, Vec<u64>) = (start.collect(), stride.collect());
    Selection::strided(&start, &block.count, &stride)
}

/// Waits for what is queued, on every rank; a rank that could not queue it makes all fail.
pub(super) fn together(
    dataset: &mut Dataset,
    queue: &mut Requests<'_>,
    queued: Result<(), Error>,
) -> Result<(), CopyError> {
    dataset.agree(queued)?;
    Ok(dataset.wait_all(queue)?)
}
