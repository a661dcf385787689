//! From elements to stored bytes.

use esker_format::values::swap_in_place;

use crate::chunk::Chunk;
use crate::elements::Elements;
use crate::error::Result;
use crate::filters::{Place, Site};
use crate::pipeline::{Pipeline, Step};
use crate::scratch::{Scratch, Tools};

/// Which filters were left out for a chunk: bit i for filter i. Zero when all were used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct FilterMask(pub u16);

impl FilterMask {
    /// No filter was used: the chunk is stored as elements of a classic file.
    pub const RAW: FilterMask = FilterMask(u16::MAX);

    /// Whether no filter of the pipeline was used.
    pub fn is_raw(self, pipeline: &Pipeline) -> bool {
        (0..pipeline.filters().len()).all(|i| self.skips(i))
    }

    pub(crate) fn skips(self, filter: usize) -> bool {
        filter < 16 && self.0 >> filter & 1 == 1
    }

    pub(crate) fn skip(&mut self, filter: usize) {
        self.0 |= 1 << filter.min(15);
    }
}

/// What a chunk table keeps of an encoded chunk beside its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Encoded {
    /// The filters that were left out. [`Pipeline::decode`] needs it.
    pub mask: FilterMask,
    /// The [`checksum`] of the stored bytes.
    pub crc32c: u32,
}

/// crc32c of stored bytes, for the chunk table.
pub fn checksum(stored: &[u8]) -> u32 {
    crc32c::crc32c(stored)
}

impl Pipeline {
    /// Appends the stored form of the elements to `out`.
    ///
    /// A pipeline that Zarr knows uses all its filters for every chunk, but for `f32` where the
    /// chunk holds what no `f32` can hold. Another one leaves out what does not make the chunk
    /// smaller, and never stores more bytes than the elements have.
    pub fn encode(
        &self,
        chunk: &Chunk<'_>,
        elements: &[u8],
        out: &mut Vec<u8>,
        scratch: &mut Scratch,
    ) -> Result<Encoded> {
        self.encode_without(FilterMask::default(), chunk, elements, out, scratch)
    }

    /// The same without the filters that do not settle: for elements some of which have been
    /// through them before, and must not get a second error.
    pub fn encode_exactly(
        &self,
        chunk: &Chunk<'_>,
        elements: &[u8],
        out: &mut Vec<u8>,
        scratch: &mut Scratch,
    ) -> Result<Encoded> {
        self.encode_without(self.unsettled(), chunk, elements, out, scratch)
    }

    /// The same without the checksums that the pipeline ends with, which the mask tells: for those who keep the [`checksum`] of what is stored
    /// apart from it. What ends with its own crc32c has always the same crc32c, and could not be told from another that was put in its place.
    pub fn encode_unsummed(
        &self,
        chunk: &Chunk<'_>,
        elements: &[u8],
        out: &mut Vec<u8>,
        scratch: &mut Scratch,
    ) -> Result<Encoded> {
        let all = self.filters();
        let sums = all.iter().rev().take_while(|filter| filter.is_checksum()).count();
        if sums == 0 {
            return self.encode(chunk, elements, out, scratch);
        }
        // The whole of it has to be right all the same.
        self.steps(chunk)?;
        let kept = all.len() - sums;
        let mut encoded =
            Pipeline::new(all[..kept].to_vec()).encode(chunk, elements, out, scratch)?;
        (kept..all.len()).for_each(|i| encoded.mask.skip(i));
        Ok(encoded)
    }

    fn encode_without(
        &self,
        without: FilterMask,
        chunk: &Chunk<'_>,
        elements: &[u8],
        out: &mut Vec<u8>,
        scratch: &mut Scratch,
    ) -> Result<Encoded> {
        let raw = chunk.expect_bytes(elements.len())?;
        let steps = self.steps(chunk)?;
        let start = out.len();
        let mask = run(&steps, without, chunk, elements, out, scratch)
            .inspect_err(|_| out.truncate(start))?;
        if out.len() - start >= raw && !steps.is_empty() && !self.in_zarr() {
            out.truncate(start);
            append_external(chunk, elements, out);
            return Ok(Encoded { mask: FilterMask::RAW, crc32c: checksum(&out[start..]) });
        }
        Ok(Encoded { mask, crc32c: checksum(&out[start..]) })
    }
}

fn run(
    steps: &[Step<'_>],
    without: FilterMask,
    chunk: &Chunk<'_>,
    elements: &[u8],
    out: &mut Vec<u8>,
    scratch: &mut Scratch,
) -> Result<FilterMask> {
    // A pipeline's order has been checked: filters of bytes stand after all others.
    let of_numbers = steps.iter().take_while(|step| step.place.bytes().is_none()).count();
    let (numbers, bytes) = steps.split_at(of_numbers);
    let Scratch { elements: values, spare, tools } = scratch;
    let [from, to] = spare;
    from.clear();

    let mut mask = FilterMask::default();
    if let [Step { place: Place::Values(only), .. }] = steps
        && !without.skips(0)
        && only.encode_straight(chunk, elements, out)
    {
        return Ok(mask);
    }
    let mut width = chunk.ty.size() as usize;
    // The caller's memory itself is the input as long as nothing has to be changed in it.
    let mut input = None;
    let first = if bytes.is_empty() { &mut *out } else { &mut *from };
    if !numbers.is_empty() {
        values.load(chunk, elements);
        mask = encode_numbers(numbers, without, values, first, tools)?;
        width = values.ty().size() as usize;
    } else if bytes.is_empty() || chunk.swaps() {
        append_external(chunk, elements, first);
    } else {
        input = Some(elements);
    }
    for (i, step) in bytes.iter().enumerate() {
        let Some(filter) = step.place.bytes() else { continue };
        let source = input.take().unwrap_or(from);
        if i + 1 == bytes.len() {
            filter.encode(step.params, width, source, out, tools)?;
        } else {
            to.clear();
            filter.encode(step.params, width, source, to, tools)?;
            std::mem::swap(from, to);
        }
    }
    Ok(mask)
}

/// The filters that see numbers, to bytes.
fn encode_numbers(
    steps: &[Step<'_>],
    without: FilterMask,
    values: &mut Elements,
    out: &mut Vec<u8>,
    tools: &mut Tools,
) -> Result<FilterMask> {
    let (mut mask, start, mut packed) = (FilterMask::default(), out.len(), false);
    for (i, step) in steps.iter().enumerate() {
        // An earlier filter that was left out did not change the type.
        let site = Site { ty: values.ty(), ..step.site };
        let used = match step.place {
            // Filters that do not settle see numbers: none of them is among the bytes'.
            _ if without.skips(i) => false,
            Place::Values(filter) => filter.encode(step.params, &site, values, tools)?,
            Place::Packing(filter) => {
                packed = filter.encode(step.params, &site, values, out, tools)?
                    && out.len() - start < values.bytes().len();
                packed
            }
            Place::Order(_) | Place::Bytes(_) => true,
        };
        if !used {
            mask.skip(i);
        }
    }
    if !packed {
        out.truncate(start);
        values.append_external(out);
    }
    Ok(mask)
}

fn append_external(chunk: &Chunk<'_>, elements: &[u8], out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(elements);
    if chunk.swaps() {
        swap_in_place(&mut out[start..], chunk.ty.size() as usize);
    }
}
