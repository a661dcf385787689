//! A file whose decomposed variables are ordinary ones.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use esker::{
    Communicator, CreateOptions, Dataset, Decomposition, Define, DimId, DimLen, Error, FillMode,
    MemoryLayout, OpenOptions, Owner, Requests, Schema, Selection, Values, VarId,
};
use esker_format::chunked::{FILTERS, SHAPE};
use esker_store::Draft;

use super::arrays::{BUFFERS, together};
use super::error::tell;
use super::{
    Copied, CopyError, CopyOptions, begin, chunks, history, name_together, target, with_one_history,
};
use crate::blocks::{Block, blocks};
use crate::boxes::{boxes, unit};
use crate::progress::Progress;

/// Copies `input` to `output` with every decomposed variable as the array it stands for, and
/// without the maps. Collective: the ranks share the work, each with a buffer of its own (eight for
/// variables with chunks, which are read and written whole).
///
/// Of the options, those that choose variables, ranges and types have no effect.
///
/// ```
/// use std::sync::Arc;
/// use esker::{CreateOptions, Dataset, DimLen, ExternalType, Selection, SelfComm};
/// use esker_tools::copy::{CopyOptions, canonical};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let dir = tempfile::tempdir()?;
/// # let (input, output) = (dir.path().join("in.nc"), dir.path().join("out.nc"));
/// let mut def = Dataset::create(&input, CreateOptions::new())?;
/// let x = def.add_dim("x", DimLen::Fixed(4))?;
/// let map = def.add_decomposition(&[x], &Selection::list(1, vec![3, 0], vec![1, 2]))?;
/// let t = def.add_decomposed_var("t", ExternalType::Short, &[], map)?;
/// let mut ds = def.enddef()?;
/// ds.put_all(t, &Selection::blob(&[], &[]), &[30i16, 0, 10])?;
/// ds.close()?;
///
/// let alone = Arc::new(SelfComm::new());
/// canonical(&input, &output, &CopyOptions::default(), alone, &mut esker_tools::Unseen)?;
/// let ds = Dataset::open(&output)?;
/// assert_eq!(ds.get::<i16>(ds.var("t")?, &Selection::all())?, [0, 10, -32767, 30]);
/// assert_eq!(ds.schema().vars.len(), 1);
/// # Ok(()) }
/// ```
pub fn canonical(
    input: &Path,
    output: &Path,
    options: &CopyOptions,
    comm: Arc<dyn Communicator>,
    progress: &mut dyn Progress,
) -> Result<Copied, CopyError> {
    let options = &with_one_history(options, &*comm)?;
    let store = &options.store;
    let open = OpenOptions::new().store(store.clone()).comm(comm.clone());
    let mut source = Dataset::open_with(input, open)?;
    let output = target(source.path(), output, options)?;
    let draft = begin(&source, &output, options)?;
    let create = CreateOptions::new()
        .version(options.version.unwrap_or(source.schema().version))
        .align(options.align)
        .fill(FillMode::NoFill)
        .store(store.clone())
        .comm(comm.clone());
    let mut define = Dataset::create(draft.as_ref().map_or(&*output, Draft::path), create)?;
    let done = define_canonical(&source, &mut define, options)
        .and_then(|pairs| Ok((pairs, define.enddef().map_err(Error::from)?)))
        .and_then(|(pairs, mut target)| {
            let bytes = transfer(&mut source, &mut target, &pairs, options, progress)?;
            if options.sync {
                target.sync()?;
            }
            let (records, file_len) = (target.numrecs(), target.file_len()?);
            target.close()?;
            let (variables, converted) = (pairs.len(), Vec::new());
            Ok(Copied { variables, records, bytes, file_len, converted })
        });
    name_together(&source, draft, done, options)
}

/// Defines what the output has; gives the variables of both files that belong together.
fn define_canonical(
    source: &Dataset,
    define: &mut Define,
    options: &CopyOptions,
) -> Result<Vec<(VarId, VarId)>, CopyError> {
    let schema = source.schema();
    let maps = source.decompositions();
    let of_maps: HashSet<String> = maps.iter().flat_map(Decomposition::variables).collect();
    let dims = dims_of_maps(schema, &maps, &of_maps);
    let mut numbers = vec![None; schema.dims.len()];
    for (i, dim) in schema.dims.iter().enumerate().filter(|(i, _)| !dims.contains(i)) {
        numbers[i] = Some(define.add_dim(&dim.name, dim.len)?);
    }
    for attr in schema.attrs.iter() {
        define.put_attr(Owner::Global, &attr.name, attr.values.clone())?;
    }
    if let Some(text) = options.history.as_ref().and_then(|line| history(schema, line)) {
        define.put_attr(Owner::Global, "history", text)?;
    }
    let mut pairs = Vec::new();
    for (i, var) in schema.vars.iter().enumerate().filter(|(_, v)| !of_maps.contains(&*v.name)) {
        let map = source.decomposition(VarId(i))?;
        let mut own = var.dims.clone();
        if map.is_some() {
            own.pop();
        }
        let mut ids: Vec<DimId> = own.iter().filter_map(|d| numbers[d.0]).collect();
        for (name, len) in map.iter().flat_map(|map| map.dims.iter().zip(&map.shape)) {
            ids.push(dim_of(define, name, *len)?);
        }
        let id = define.add_var(&var.name, var.ty, &ids)?;
        let is_map = |name: &str| map.is_some() && name == Decomposition::ATTRIBUTE;
        for attr in var.attrs.iter().filter(|a| !is_map(&a.name)) {
            define.put_attr(id, &attr.name, attr.values.clone())?;
        }
        // Every value is written, but for what fills up the last four bytes.
        let elements = source.shape(VarId(i))?;
        let skip = usize::from(schema.is_record(var));
        let bytes = elements[skip..].iter().product::<u64>() * var.ty.size();
        if !bytes.is_multiple_of(4) {
            define.set_fill(id, FillMode::Fill)?;
        }
        pairs.push((VarId(i), id));
    }
    settle_chunks(source, define, options)?;
    Ok(pairs)
}

/// Gives the variables that are defined the chunks and filters that they are to have.
fn settle_chunks(
    source: &Dataset,
    define: &mut Define,
    options: &CopyOptions,
) -> Result<(), CopyError> {
    let mut schema = define.schema().clone();
    let was_container = source.container_version().is_some();
    chunks::settle(&mut schema, source.numrecs(), &options.chunks, false, was_container)?;
    for (number, var) in schema.vars.iter().enumerate() {
        for name in [SHAPE, FILTERS] {
            let defined = define.schema().vars.at(number).and_then(|var| var.attrs.get(name));
            match (var.attrs.get(name), defined.is_some()) {
                (Some(attr), _) => define.put_attr(VarId(number), name, attr.values.clone())?,
                (None, true) => drop(define.del_attr(VarId(number), name)?),
                (None, false) => {}
            }
        }
    }
    Ok(())
}

/// The dimensions that only the maps use.
fn dims_of_maps(schema: &Schema, maps: &[Decomposition], vars: &HashSet<String>) -> HashSet<usize> {
    let mut dims: HashSet<usize> =
        maps.iter().filter_map(|m| Some(schema.dim(&m.stored_dim())?.0)).collect();
    let (of_maps, others): (Vec<_>, Vec<_>) =
        schema.vars.iter().partition(|v| vars.contains(&*v.name));
    let used: HashSet<usize> = others.iter().flat_map(|v| v.dims.iter().map(|d| d.0)).collect();
    let theirs = of_maps.iter().flat_map(|v| v.dims.iter().map(|d| d.0));
    dims.extend(theirs.filter(|dim| !used.contains(dim)));
    dims
}

/// The dimension of this name and length, which a renamed one is made for.
fn dim_of(define: &mut Define, name: &str, len: u64) -> Result<DimId, CopyError> {
    let mut name = name.to_string();
    loop {
        let known = define.schema().dim(&name);
        match known.map(|id| (id, define.schema().dims.as_slice()[id.0].len)) {
            None => return Ok(define.add_dim(&name, DimLen::Fixed(len))?),
            Some((id, DimLen::Fixed(found))) if found == len => return Ok(id),
            Some(_) => name = format!("{name}.{len}"),
        }
    }
}

/// Moves all values, a block for each rank at a time; gives the number of bytes.
fn transfer(
    source: &mut Dataset,
    target: &mut Dataset,
    pairs: &[(VarId, VarId)],
    options: &CopyOptions,
    progress: &mut dyn Progress,
) -> Result<u64, CopyError> {
    let (rank, ranks) = (source.comm().rank(), source.comm().size());
    let mut total = 0u64;
    for (from, _) in pairs {
        let elements = source.shape(*from)?.iter().product::<u64>();
        total = total.saturating_add(elements.saturating_mul(source.variable(*from)?.ty.size()));
    }
    let mut done = 0;
    progress.progress(done, total);
    for (from, to) in pairs {
        let (shape, ty) = (source.shape(*from)?, source.variable(*from)?.ty);
        let chunk = |of: &Dataset, var| of.chunk_shape(var).map(<[u64]>::to_vec);
        let most = options.buffer as u64 / ty.size();
        let mut cut: Box<dyn Iterator<Item = Block>> =
            match (chunk(source, *from), chunk(target, *to)) {
                (None, None) => Box::new(blocks(&shape, most)),
                // Whole chunks: a filter that is not lossless has each value once.
                (was, will) => {
                    let most = most * BUFFERS;
                    let unit = unit(&shape, was.as_deref(), will.as_deref(), most);
                    Box::new(boxes(&shape, &unit, most))
                }
            };
        let mut cut = cut.by_ref().peekable();
        while cut.peek().is_some() {
            let round: Vec<Block> = cut.by_ref().take(ranks).collect();
            let mine = round.get(rank);
            let selection = match mine {
                Some(block) => Selection::slab(&block.start, &block.count),
                None => Selection::none(),
            };
            let mut values = Values::zeros(ty, mine.map_or(0, |b| b.len() as usize));
            let (dense, native) = (MemoryLayout::dense(), ty.natural());
            let mut queue = Requests::new();
            let memory = (values.native_bytes_mut(), native);
            let queued = source.iget_bytes(&mut queue, *from, &selection, memory, dense.clone());
            together(source, &mut queue, queued.map(drop))?;
            drop(queue);
            let mut queue = Requests::new();
            let memory = (values.native_bytes(), native);
            let queued = target.iput_bytes(&mut queue, *to, &selection, memory, dense);
            together(target, &mut queue, queued.map(drop))?;
            done += round.iter().map(Block::len).sum::<u64>() * ty.size();
            // One rank alone: the others would wait.
            match ranks {
                1 => tell(progress, done, total)?,
                _ => progress.progress(done, total),
            }
        }
    }
    Ok(done)
}
