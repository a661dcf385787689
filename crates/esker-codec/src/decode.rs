//! From stored bytes to elements.

use esker_format::values::swap_in_place;

use crate::chunk::Chunk;
use crate::encode::FilterMask;
use crate::error::{CodecError, Result};
use crate::filters::{Place, Site};
use crate::pipeline::{Pipeline, Step};
use crate::scratch::Scratch;

impl Pipeline {
    /// Fills `out`, which has the chunk's bytes, from what [`encode`](Pipeline::encode) stored.
    ///
    /// The stored bytes may be anything: the result is an error or elements, and no buffer grows
    /// beyond the chunk's size and what its filters may add to it. Compare the
    /// [`checksum`](crate::checksum) first: not every damage is visible to every filter.
    pub fn decode(
        &self,
        chunk: &Chunk<'_>,
        mask: FilterMask,
        stored: &[u8],
        out: &mut [u8],
        scratch: &mut Scratch,
    ) -> Result<()> {
        chunk.expect_bytes(out.len())?;
        // The fill value matters to encoders alone.
        let chunk = &Chunk { fill: None, ..*chunk };
        let steps = self.steps(chunk)?;
        let (mut used, mut ty) = (Vec::with_capacity(steps.len()), chunk.ty);
        for (i, step) in steps.iter().enumerate() {
            if !mask.skips(i) {
                used.push(Step { site: Site { ty, ..step.site }, ..*step });
                ty = step.place.described().stored_type(ty);
            }
        }
        let of_numbers = used.iter().take_while(|step| step.place.bytes().is_none()).count();
        let (numbers, bytes) = used.split_at(of_numbers);
        let (width, count) = (ty.size() as usize, chunk.elements()?);

        if numbers.is_empty() {
            decode_bytes(bytes, width, out.len(), stored, Target::Whole(out), scratch)?;
            if chunk.swaps() {
                swap_in_place(out, width);
            }
            return Ok(());
        }
        let Some(last) = numbers.last() else { return Ok(()) };
        if let ([Step { place: Place::Values(only), .. }], []) = (numbers, bytes)
            && stored.len() == count * width
            && only.decode_straight(chunk, stored, out)
        {
            return Ok(());
        }
        if let Place::Packing(filter) = last.place {
            // What packed them, decoded from the bytes filters, stands in a spare buffer.
            let kept = (!bytes.is_empty())
                .then(|| decode_bytes(bytes, width, count * width, stored, Target::Spare, scratch));
            let kept = kept.transpose()?;
            let Scratch { elements, spare, tools } = scratch;
            let packed = kept.map_or(stored, |len| &spare[0][..len]);
            elements.reset(last.site.ty, count);
            filter.decode(last.params, &last.site, packed, elements, tools)?;
        } else {
            let mut elements = std::mem::take(&mut scratch.elements);
            elements.reset(ty, count);
            let done = decode_bytes(
                bytes,
                width,
                count * width,
                stored,
                Target::Whole(elements.bytes_mut()),
                scratch,
            );
            if cfg!(target_endian = "little") {
                swap_in_place(elements.bytes_mut(), width);
            }
            scratch.elements = elements;
            done?;
        }
        for step in numbers.iter().rev() {
            if let Place::Values(filter) = step.place {
                filter.decode(step.site.ty, &mut scratch.elements, &mut scratch.tools)?;
            }
        }
        scratch.elements.store(chunk, out);
        Ok(())
    }
}

/// Where the result of the bytes filters goes.
enum Target<'a> {
    /// It must fill this memory exactly.
    Whole(&'a mut [u8]),
    /// It may be shorter than expected, and stays in the first spare buffer.
    Spare,
}

/// Undoes the bytes filters; gives the length of the result.
fn decode_bytes(
    steps: &[Step<'_>],
    width: usize,
    expected: usize,
    stored: &[u8],
    mut target: Target<'_>,
    scratch: &mut Scratch,
) -> Result<usize> {
    // How long the input of each filter can have been when it was encoded.
    let mut limits = [expected; Pipeline::MOST + 1];
    for (i, step) in steps.iter().enumerate() {
        limits[i + 1] = step.place.bytes().map_or(limits[i], |filter| filter.bound(limits[i]));
    }
    let Scratch { spare, tools, .. } = scratch;
    let [from, to] = spare;
    let mut held = None;
    for (i, step) in steps.iter().enumerate().rev() {
        let Some(filter) = step.place.bytes() else { continue };
        let source = held.map_or(stored, |len| &from[..len]);
        held = match &mut target {
            Target::Whole(out) if i == 0 => {
                let len = filter.decode(width, source, out, tools)?;
                return whole(step.place.described().name(), len, expected);
            }
            _ => {
                if to.len() < limits[i] {
                    to.resize(limits[i], 0);
                }
                Some(filter.decode(width, source, &mut to[..limits[i]], tools)?)
            }
        };
        std::mem::swap(from, to);
    }
    match target {
        Target::Whole(out) => {
            whole("no filter", stored.len(), expected)?;
            out.copy_from_slice(stored);
            Ok(expected)
        }
        Target::Spare => Ok(held.unwrap_or(0)),
    }
}

fn whole(filter: &'static str, found: usize, expected: usize) -> Result<usize> {
    if found == expected {
        return Ok(found);
    }
    let why = format!("{found} bytes came out where the chunk has {expected}");
    Err(CodecError::damaged(filter, why))
}
