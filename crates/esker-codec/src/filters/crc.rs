//! crc32c: the bytes, then their checksum.

use super::{BytesFilter, Described, Site};
use crate::error::{CodecError, Result};
use crate::scratch::Tools;

const NAME: &str = "crc32c";

pub(crate) struct Crc32c;

impl Described for Crc32c {
    fn name(&self) -> &'static str {
        NAME
    }

    fn in_zarr(&self) -> bool {
        true
    }

    fn zarr(&self, _params: &[u64], _site: &Site<'_>) -> Option<String> {
        Some(r#"{"id":"crc32c","location":"end"}"#.into())
    }
}

impl BytesFilter for Crc32c {
    fn bound(&self, len: usize) -> usize {
        len + 4
    }

    fn encode(
        &self,
        _params: &[u64],
        _width: usize,
        input: &[u8],
        out: &mut Vec<u8>,
        _tools: &mut Tools,
    ) -> Result<()> {
        out.extend_from_slice(input);
        out.extend_from_slice(&crc32c::crc32c(input).to_le_bytes());
        Ok(())
    }

    fn decode(
        &self,
        _width: usize,
        input: &[u8],
        out: &mut [u8],
        _tools: &mut Tools,
    ) -> Result<usize> {
        let (data, stored) = input
            .split_last_chunk::<4>()
            .ok_or_else(|| CodecError::damaged(NAME, "there is no room for a checksum"))?;
        let (stored, found) = (u32::from_le_bytes(*stored), crc32c::crc32c(data));
        if stored != found {
            let why = format!("the checksum is {found:08x}, but {stored:08x} was stored");
            return Err(CodecError::damaged(NAME, why));
        }
        let room = out.len();
        let out = out.get_mut(..data.len()).ok_or_else(|| {
            CodecError::damaged(NAME, format!("{} bytes where {room} fit", data.len()))
        })?;
        out.copy_from_slice(data);
        Ok(data.len())
    }
}
