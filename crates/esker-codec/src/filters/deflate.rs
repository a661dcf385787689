//! deflate: a zlib stream, by libdeflate.

use super::{BytesFilter, Described, Site, is_one_integer, one_integer};
use crate::error::{CodecError, Result};
use crate::scratch::Tools;

const NAME: &str = "deflate";
const WHAT: &str = "a level";

pub(crate) struct Deflate;

#[derive(Default)]
struct Contexts {
    compressor: Option<(i32, libdeflater::Compressor)>,
    decompressor: Option<libdeflater::Decompressor>,
    /// Room for the longest stream so far: to clear as much behind every chunk's would cost more than
    /// copying what is in it.
    room: Vec<u8>,
}

impl Described for Deflate {
    fn name(&self) -> &'static str {
        NAME
    }

    fn parse(&self, words: &[&str]) -> std::result::Result<Vec<u64>, String> {
        one_integer(words, Some(6), 0..=12, WHAT)
    }

    fn show(&self, params: &[u64]) -> String {
        params.iter().map(|level| format!(",{level}")).collect()
    }

    fn check(&self, params: &[u64], _site: &Site<'_>) -> std::result::Result<(), String> {
        is_one_integer(params, 0..=12, WHAT)
    }

    fn in_zarr(&self) -> bool {
        true
    }

    fn zarr(&self, params: &[u64], _site: &Site<'_>) -> Option<String> {
        let level = (*params.first()?).min(9);
        Some(format!(r#"{{"id":"zlib","level":{level}}}"#))
    }
}

impl BytesFilter for Deflate {
    fn bound(&self, len: usize) -> usize {
        // zlib's own bound for its worst settings, which another writer may have used.
        len + (len >> 3) + (len >> 6) + 64
    }

    fn encode(
        &self,
        params: &[u64],
        _width: usize,
        input: &[u8],
        out: &mut Vec<u8>,
        tools: &mut Tools,
    ) -> Result<()> {
        let level = params.first().map_or(6, |&level| level as i32);
        tools.with(|contexts: &mut Contexts, _| {
            if contexts.compressor.as_ref().is_none_or(|(kept, _)| *kept != level) {
                let kind = libdeflater::CompressionLvl::new(level)
                    .map_err(|error| CodecError::failed(NAME, format!("{error:?}")))?;
                contexts.compressor = Some((level, libdeflater::Compressor::new(kind)));
            }
            let Some((_, compressor)) = &mut contexts.compressor else { return Ok(()) };
            let room = &mut contexts.room;
            let bound = compressor.zlib_compress_bound(input.len());
            room.resize(room.len().max(bound), 0);
            let written = compressor
                .zlib_compress(input, room)
                .map_err(|error| CodecError::failed(NAME, error))?;
            out.extend_from_slice(room.get(..written).unwrap_or_default());
            Ok(())
        })
    }

    fn decode(
        &self,
        _width: usize,
        input: &[u8],
        out: &mut [u8],
        tools: &mut Tools,
    ) -> Result<usize> {
        tools.with(|contexts: &mut Contexts, _| {
            contexts
                .decompressor
                .get_or_insert_with(libdeflater::Decompressor::new)
                .zlib_decompress(input, out)
                .map_err(|error| CodecError::damaged(NAME, error))
        })
    }
}
