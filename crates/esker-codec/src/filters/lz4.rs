//! lz4: the length, then one block, as numcodecs frames it.

use lz4_flex::block;

use super::{BytesFilter, Described, Site, no_params};
use crate::error::{CodecError, Result};
use crate::scratch::Tools;

const NAME: &str = "lz4";

/// LZ4's own limit for one block.
const LARGEST: usize = 0x7E00_0000;

pub(crate) struct Lz4;

impl Described for Lz4 {
    fn name(&self) -> &'static str {
        NAME
    }

    fn check(&self, params: &[u64], site: &Site<'_>) -> std::result::Result<(), String> {
        let bytes = site.shape.iter().try_fold(site.width(), |n, &len| n.checked_mul(len));
        if bytes.is_none_or(|bytes| bytes >= LARGEST) {
            return Err(format!("a block has at most {LARGEST} bytes; make the chunks smaller"));
        }
        no_params(params)
    }

    fn in_zarr(&self) -> bool {
        true
    }

    fn zarr(&self, _params: &[u64], _site: &Site<'_>) -> Option<String> {
        Some(r#"{"id":"lz4","acceleration":1}"#.into())
    }
}

impl BytesFilter for Lz4 {
    fn bound(&self, len: usize) -> usize {
        4 + block::get_maximum_output_size(len)
    }

    fn encode(
        &self,
        _params: &[u64],
        _width: usize,
        input: &[u8],
        out: &mut Vec<u8>,
        _tools: &mut Tools,
    ) -> Result<()> {
        let length = u32::try_from(input.len()).map_err(|error| CodecError::failed(NAME, error))?;
        out.extend_from_slice(&length.to_le_bytes());
        let start = out.len();
        out.resize(start + block::get_maximum_output_size(input.len()), 0);
        let written = block::compress_into(input, &mut out[start..])
            .map_err(|error| CodecError::failed(NAME, error))?;
        out.truncate(start + written);
        Ok(())
    }

    fn decode(
        &self,
        _width: usize,
        input: &[u8],
        out: &mut [u8],
        _tools: &mut Tools,
    ) -> Result<usize> {
        let (length, data) = input
            .split_first_chunk::<4>()
            .ok_or_else(|| CodecError::damaged(NAME, "it ends within its length"))?;
        let length = u32::from_le_bytes(*length) as usize;
        let room = out.len();
        let out = out.get_mut(..length).ok_or_else(|| {
            CodecError::damaged(NAME, format!("it claims {length} bytes where {room} fit"))
        })?;
        match block::decompress_into(data, out) {
            Ok(written) if written == length => Ok(length),
            Ok(written) => {
                Err(CodecError::damaged(NAME, format!("{written} bytes instead of {length}")))
            }
            Err(error) => Err(CodecError::damaged(NAME, error)),
        }
    }
}
