//! shuffle: the first bytes of all elements, then the second ones, and so on.

use super::{BytesFilter, Described, Site};
use crate::error::{CodecError, Result};
use crate::scratch::Tools;

const NAME: &str = "shuffle";

pub(crate) struct Shuffle;

impl Described for Shuffle {
    fn name(&self) -> &'static str {
        NAME
    }

    fn in_zarr(&self) -> bool {
        true
    }

    fn zarr(&self, _params: &[u64], site: &Site<'_>) -> Option<String> {
        Some(format!(r#"{{"id":"shuffle","elementsize":{}}}"#, site.width()))
    }
}

/// Elements that are handled together, so that both sides stay in the first-level cache.
const BLOCK: usize = 512;

fn spread<const W: usize>(input: &[u8], out: &mut [u8]) {
    let elements = input.len() / W;
    for start in (0..elements).step_by(BLOCK) {
        let end = (start + BLOCK).min(elements);
        let block = &input[start * W..end * W];
        for byte in 0..W {
            let plane = &mut out[byte * elements + start..byte * elements + end];
            for (to, element) in plane.iter_mut().zip(block.as_chunks::<W>().0) {
                *to = element[byte];
            }
        }
    }
}

fn gather<const W: usize>(input: &[u8], out: &mut [u8]) {
    let elements = out.len() / W;
    for start in (0..elements).step_by(BLOCK) {
        let end = (start + BLOCK).min(elements);
        let block = &mut out[start * W..end * W];
        for byte in 0..W {
            let plane = &input[byte * elements + start..byte * elements + end];
            for (element, &from) in block.as_chunks_mut::<W>().0.iter_mut().zip(plane) {
                element[byte] = from;
            }
        }
    }
}

impl BytesFilter for Shuffle {
    fn bound(&self, len: usize) -> usize {
        len
    }

    fn encode(
        &self,
        _params: &[u64],
        width: usize,
        input: &[u8],
        out: &mut Vec<u8>,
        _tools: &mut Tools,
    ) -> Result<()> {
        let start = out.len();
        out.resize(start + input.len(), 0);
        let out = &mut out[start..];
        match width {
            2 => spread::<2>(input, out),
            4 => spread::<4>(input, out),
            8 => spread::<8>(input, out),
            _ => out.copy_from_slice(input),
        }
        Ok(())
    }

    fn decode(
        &self,
        width: usize,
        input: &[u8],
        out: &mut [u8],
        _tools: &mut Tools,
    ) -> Result<usize> {
        let room = out.len();
        let out = whole_elements(NAME, width, input, out, room)?;
        match width {
            2 => gather::<2>(input, out),
            4 => gather::<4>(input, out),
            8 => gather::<8>(input, out),
            _ => out.copy_from_slice(input),
        }
        Ok(input.len())
    }
}

/// The part of `out` that is as long as `input`, which must be whole elements.
pub(super) fn whole_elements<'a>(
    name: &'static str,
    width: usize,
    input: &[u8],
    out: &'a mut [u8],
    room: usize,
) -> Result<&'a mut [u8]> {
    let whole = input.len().is_multiple_of(width.max(1));
    out.get_mut(..input.len()).filter(|_| whole).ok_or_else(|| {
        let found = input.len();
        let why = format!("{found} bytes where whole elements, {room} bytes, were expected");
        CodecError::damaged(name, why)
    })
}
