//! One variable as a Zarr array: its shape, its chunks, and where they lie.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use esker::{
    Chunking, Dataset, ExternalType, Result, Schema, StoredChunk, Values, VarId, Variable, values,
};
use esker_codec::{Chunk, Filter, Pipeline, ZarrCodecs};
use esker_format::chunked::Anchor;
use esker_store::File;

use super::LeftOut;
use super::grid::{CUT_ABOVE, Grid, cut};
use super::metadata::own_fill;

/// A variable that Zarr can read.
#[derive(Debug, Clone)]
pub(super) struct Array {
    pub(super) var: VarId,
    pub(super) name: String,
    pub(super) ty: ExternalType,
    pub(super) shape: Vec<u64>,
    pub(super) chunk: Vec<u64>,
    pub(super) codecs: ZarrCodecs,
    /// What stands for a chunk that is not there, and what xarray takes for missing.
    pub(super) fill: Option<Values>,
    /// Chunks that have a place.
    pub(super) chunks: u64,
    pub(super) note: Option<String>,
    source: Source,
}

/// A chunk: where it lies, or its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Content<'a> {
    /// In the file of this number; 0 is the classic one.
    At {
        file: u32,
        offset: u64,
        size: u64,
    },
    Inline(&'a [u8]),
}

/// How the places are known.
#[derive(Debug, Clone)]
enum Source {
    /// `in_record` chunks of `size` bytes one behind the other, from `begin` on and again after
    /// each `stride` bytes.
    Regular { begin: u64, size: u64, in_record: u64, stride: u64 },
    /// Small records, which are copied: `together` of them, of `size` bytes each, are a chunk.
    Records { begin: u64, size: u64, together: u64, stride: u64 },
    /// The tables of a chunked variable.
    Tables,
}

impl Array {
    /// The variable as an array, or why it cannot be one.
    pub(super) fn of(
        dataset: &Dataset,
        var: VarId,
        inline: u64,
    ) -> Result<std::result::Result<Array, LeftOut>> {
        let variable = dataset.variable(var)?;
        let left_out = |why| Ok(Err(LeftOut { name: variable.name.to_string(), why }));
        // Zarr takes names for paths, and its own files begin with a full stop.
        if variable.name.starts_with('.') || variable.name.contains(['/', '\\']) {
            return left_out("Zarr cannot have its name".into());
        }
        let array = match dataset.chunking(var) {
            Some(chunking) => Array::chunked(dataset, var, variable, chunking)?,
            None if is_anchor(dataset, var) => {
                Err(match dataset.stored_chunks(var, false, |_, _| Ok(())) {
                    Err(esker::Error::Chunked { why, .. }) => why,
                    _ => "what the file says of its chunks is wrong (`esker check` tells more)"
                        .into(),
                })
            }
            None => Array::regular(dataset, var, variable, inline)?,
        };
        match array {
            Ok(array) => Ok(Ok(array)),
            Err(why) => left_out(why),
        }
    }

    /// A variable whose elements lie as a classic file has them.
    fn regular(
        dataset: &Dataset,
        var: VarId,
        variable: &Variable,
        inline: u64,
    ) -> Result<std::result::Result<Array, String>> {
        let header = dataset.header();
        let Some(place) = header.place(var) else { return Ok(Err("it has no place".into())) };
        let shape = dataset.schema().shape(variable, dataset.numrecs());
        let stride = header.layout.record_size;
        let width = variable.ty.size();
        let is_record = dataset.schema().is_record(variable);
        // The records of a lone record variable lie one behind the other.
        let (chunk, records) = match is_record && stride != place.bytes {
            true => {
                let within = cut(shape.get(1..).unwrap_or_default(), width, CUT_ABOVE);
                (std::iter::once(1).chain(within).collect(), dataset.numrecs())
            }
            false => (cut(&shape, width, CUT_ABOVE), 1),
        };
        let size = chunk.iter().fold(width, |bytes, &len| bytes.saturating_mul(len));
        let chunks = Grid::of(&shape, &chunk).len();
        let in_record = chunks.checked_div(records).unwrap_or(0);
        // Where the last chunk ends, which a hostile header may put anywhere.
        let end = records.checked_sub(1).and_then(|before| {
            let before = before.checked_mul(stride)?;
            place.begin.checked_add(before)?.checked_add(in_record.checked_mul(size)?)
        });
        let file_len = dataset.file_len()?;
        if chunks > 0 && end.is_none_or(|end| end > file_len) {
            return Ok(Err(format!(
                "the file ends before it, after {file_len} bytes (`esker check` tells more)"
            )));
        }
        let mut source = Source::Regular { begin: place.begin, size, in_record, stride };
        let mut chunk: Vec<u64> = chunk;
        let mut chunks = chunks;
        let small = place.bytes <= inline && records.saturating_mul(place.bytes) <= INLINE_MOST;
        if let (true, Some(first)) = (records > 1 && small, chunk.first_mut()) {
            let together = (INLINE_CHUNK / place.bytes.max(1)).clamp(1, records);
            *first = together;
            chunks = records.div_ceil(together);
            source = Source::Records { begin: place.begin, size: place.bytes, together, stride };
        }
        Ok(Ok(Array {
            var,
            name: variable.name.to_string(),
            ty: variable.ty,
            shape,
            chunk,
            codecs: ZarrCodecs { filters: "null".into(), compressor: "null".into() },
            fill: own_fill(variable).cloned(),
            chunks,
            note: decomposed(dataset, var)?,
            source,
        }))
    }

    /// A variable whose chunks went through filters.
    fn chunked(
        dataset: &Dataset,
        var: VarId,
        variable: &Variable,
        chunking: &Chunking,
    ) -> Result<std::result::Result<Array, String>> {
        let Chunking { chunk, pipeline, .. } = chunking;
        let lengths: Option<Vec<usize>> = chunk.iter().map(|&n| n.try_into().ok()).collect();
        let Some(lengths) = lengths else { return Ok(Err("its chunks are too large".into())) };
        let fill = values::fill_bytes(variable);
        let of_chunk = Chunk::new(variable.ty, &lengths).with_fill(&fill);
        let Some(codecs) = pipeline.numcodecs(&of_chunk) else {
            return Ok(Err(unknown(pipeline, variable.ty)));
        };
        let (mut chunks, mut trouble) = (0, None);
        // Of the files that chunks are in.
        let mut lengths = HashMap::from([(0, dataset.file_len()?)]);
        let looked = dataset.stored_chunks(var, false, |index, stored| {
            chunks += 1;
            let file_len = match lengths.entry(stored.file) {
                Entry::Occupied(known) => *known.get(),
                Entry::Vacant(new) => *new.insert(dataset.chunk_file_len(var, stored.file)?),
            };
            trouble = trouble.take().or_else(|| unreadable(pipeline, index, &stored, file_len));
            Ok(())
        });
        match looked {
            Ok(()) => {}
            // Damage of one variable's tables is nothing to the others.
            Err(esker::Error::Chunked { why, .. }) => return Ok(Err(why)),
            Err(error) => return Err(error),
        }
        if let Some(why) = trouble {
            return Ok(Err(why));
        }
        let shape = dataset.schema().shape(variable, dataset.numrecs());
        let is_whole = Grid::of(&shape, chunk).len() <= chunks;
        let fill = match own_fill(variable) {
            // Zarr would take zeros for what was never written.
            None if !is_whole => Some(values::default_fill(variable.ty)),
            own => own.cloned(),
        };
        Ok(Ok(Array {
            var,
            name: variable.name.to_string(),
            ty: variable.ty,
            shape,
            chunk: chunk.clone(),
            codecs,
            fill,
            chunks,
            note: None,
            source: Source::Tables,
        }))
    }

    pub(super) fn grid(&self) -> Grid {
        Grid::of(&self.shape, &self.chunk)
    }

    /// Chunks that have no place, and are all fill values.
    pub(super) fn missing(&self) -> u64 {
        self.grid().len().saturating_sub(self.chunks)
    }

    /// Tells of every chunk that there is, in C order.
    pub(super) fn each<E: From<esker::Error>>(
        &self,
        dataset: &Dataset,
        mut tell: impl FnMut(&[u64], Content<'_>) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        let grid = self.grid();
        let mut index = vec![0; self.shape.len()];
        match self.source {
            Source::Regular { begin, size, in_record, stride } => {
                for number in 0..self.chunks {
                    let (record, within) = (number / in_record.max(1), number % in_record.max(1));
                    // `regular` has seen that the last one is in the file.
                    let offset = begin + record * stride + within * size;
                    tell(&index, Content::At { file: 0, offset, size })?;
                    grid.advance(&mut index);
                }
            }
            Source::Records { begin, size, together, stride } => {
                let file = dataset.classic_file()?;
                let mut window = Window::new(&*file);
                // A chunk is whole; behind the last record are zeros that nobody sees.
                let mut bytes = vec![0; (together * size) as usize];
                let records = self.shape.first().copied().unwrap_or(0);
                for first in (0..records).step_by(together.max(1) as usize) {
                    bytes.fill(0);
                    let here = first..records.min(first + together);
                    for (record, out) in here.zip(bytes.chunks_exact_mut(size.max(1) as usize)) {
                        window.read(begin + record * stride, out).map_err(esker::Error::from)?;
                    }
                    tell(&index, Content::Inline(&bytes))?;
                    grid.advance(&mut index);
                }
            }
            Source::Tables => self.each_stored(dataset, tell)?,
        }
        Ok(())
    }

    /// Tells of the chunks in the tables.
    fn each_stored<E: From<esker::Error>>(
        &self,
        dataset: &Dataset,
        mut tell: impl FnMut(&[u64], Content<'_>) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        let mut told = Ok(());
        let looked = dataset.stored_chunks(self.var, false, |index, stored| {
            let StoredChunk { file, offset, size, .. } = stored;
            told = tell(index, Content::At { file, offset, size });
            // Any error ends it; the one that counts is in `told`.
            told.as_ref().map_err(|_| esker::Error::Garbled).copied()
        });
        told.and_then(|()| Ok(looked?))
    }
}

/// Bytes of a chunk that is copied.
const INLINE_CHUNK: u64 = 1 << 20;
/// Most bytes of a variable that is copied.
const INLINE_MOST: u64 = 64 << 20;

/// Reads small pieces that come one behind the other by larger reads, where they are close.
struct Window<'a> {
    file: &'a dyn File,
    at: u64,
    bytes: Vec<u8>,
    last: u64,
}

impl<'a> Window<'a> {
    const LEN: usize = 1 << 20;
    /// A page costs as much as a byte of it.
    const CLOSE: u64 = 4096;

    fn new(file: &'a dyn File) -> Window<'a> {
        Window { file, at: 0, bytes: Vec::new(), last: 0 }
    }

    fn read(&mut self, offset: u64, out: &mut [u8]) -> esker_store::Result<()> {
        let begin = offset.checked_sub(self.at).and_then(|begin| usize::try_from(begin).ok());
        let held = |begin: usize| self.bytes.get(begin..begin.checked_add(out.len())?);
        if let Some(bytes) = begin.and_then(held) {
            out.copy_from_slice(bytes);
            return Ok(());
        }
        let close = offset.saturating_sub(self.last) <= Window::CLOSE;
        self.last = offset;
        if !close {
            // What lies beyond the end stays zero; `regular` has seen that nothing does.
            return self.file.read_at(offset, out).map(drop);
        }
        self.bytes.resize(Window::LEN.max(out.len()), 0);
        let n = self.file.read_at(offset, &mut self.bytes);
        self.at = offset;
        self.bytes.truncate(*n.as_ref().unwrap_or(&0));
        n?;
        let n = out.len().min(self.bytes.len());
        out[..n].copy_from_slice(&self.bytes[..n]);
        Ok(())
    }
}

/// Whether the file says that the variable is chunked, be it right or not.
fn is_anchor(dataset: &Dataset, var: VarId) -> bool {
    dataset.header().schema.variable(var).is_some_and(|variable| Anchor::of(variable).is_some())
}

/// Why Zarr cannot read a chunk, if it cannot.
fn unreadable(
    pipeline: &Pipeline,
    index: &[u64],
    stored: &StoredChunk,
    file_len: u64,
) -> Option<String> {
    let left_out = |(i, _): &(usize, _)| stored.mask.0 >> i & 1 == 1;
    if let Some((_, filter)) = pipeline.filters().iter().enumerate().find(left_out) {
        return Some(format!(
            "its filter {filter} was left out for chunk {index:?}, whose values it cannot keep, and \
             Zarr knows no such exceptions"
        ));
    }
    let end = stored.offset.checked_add(stored.size);
    end.is_none_or(|end| end > file_len).then(|| {
        let file =
            if stored.file == 0 { "the file".into() } else { format!("file {}", stored.file) };
        format!("chunk {index:?} lies beyond the end of {file}, after {file_len} bytes")
    })
}

/// Which filter it is that Zarr does not know.
fn unknown(pipeline: &Pipeline, ty: ExternalType) -> String {
    let known = |filter: &Filter| {
        let alone = Pipeline::new(vec![filter.clone()]);
        let stored = [ty, ExternalType::Float, ExternalType::Double];
        stored.iter().any(|ty| alone.numcodecs(&Chunk::new(*ty, &[1])).is_some())
    };
    match pipeline.filters().iter().find(|filter| !known(filter)) {
        Some(filter) => format!("Zarr does not know its filter {filter}"),
        None => format!("Zarr does not know its filters, {pipeline}"),
    }
}

/// What is to be said of a decomposed variable, which others see as it is stored.
fn decomposed(dataset: &Dataset, var: VarId) -> Result<Option<String>> {
    let map = dataset.decomposition(var)?;
    Ok(map.map(|map| {
        format!(
            "it is decomposed by {}, and others see it as it is stored (`esker copy --canonical` \
             makes an ordinary variable of it)",
            map.name
        )
    }))
}

/// All variables of these names, or all there are.
pub(super) fn chosen(dataset: &Dataset, names: &[String]) -> Result<Vec<VarId>> {
    let schema: &Schema = dataset.schema();
    if names.is_empty() {
        return Ok((0..schema.vars.len()).map(VarId).collect());
    }
    names.iter().map(|name| dataset.var(name)).collect()
}
