//! zstd: one frame with its content size.

use super::{BytesFilter, Described, Site, is_one_integer, one_integer};
use crate::error::{CodecError, Result};
use crate::scratch::Tools;

const NAME: &str = "zstd";
const WHAT: &str = "a level";
const LEVELS: std::ops::RangeInclusive<i64> = -7..=22;

pub(crate) struct Zstd;

#[derive(Default)]
struct Contexts {
    compressor: Option<(i32, zstd::bulk::Compressor<'static>)>,
    decompressor: Option<zstd::bulk::Decompressor<'static>>,
}

/// Appends a frame; for filters that have something small beside their own stream, too.
pub(crate) fn compress(
    level: i32,
    input: &[u8],
    out: &mut Vec<u8>,
    tools: &mut Tools,
) -> Result<()> {
    tools.with(|contexts: &mut Contexts, _| {
        let failed = |error| CodecError::failed(NAME, error);
        let (kept, compressor) = match &mut contexts.compressor {
            Some(pair) => pair,
            none => none.insert((level, zstd::bulk::Compressor::new(level).map_err(failed)?)),
        };
        if *kept != level {
            compressor.set_compression_level(level).map_err(failed)?;
            *kept = level;
        }
        let start = out.len();
        out.resize(start + zstd::zstd_safe::compress_bound(input.len()), 0);
        let written = compressor.compress_to_buffer(input, &mut out[start..]).map_err(failed)?;
        out.truncate(start + written);
        Ok(())
    })
}

/// Decodes frames to the beginning of `out` in one pass, so that a hostile window size allocates
/// nothing.
pub(crate) fn decompress(input: &[u8], out: &mut [u8], tools: &mut Tools) -> Result<usize> {
    tools.with(|contexts: &mut Contexts, _| {
        let damaged = |error| CodecError::damaged(NAME, error);
        let decompressor = match &mut contexts.decompressor {
            Some(decompressor) => decompressor,
            none => none.insert(zstd::bulk::Decompressor::new().map_err(damaged)?),
        };
        decompressor.decompress_to_buffer(input, out).map_err(damaged)
    })
}

impl Described for Zstd {
    fn name(&self) -> &'static str {
        NAME
    }

    fn parse(&self, words: &[&str]) -> std::result::Result<Vec<u64>, String> {
        one_integer(words, Some(3), LEVELS, WHAT)
    }

    fn show(&self, params: &[u64]) -> String {
        params.iter().map(|&level| format!(",{}", level as i64)).collect()
    }

    fn check(&self, params: &[u64], _site: &Site<'_>) -> std::result::Result<(), String> {
        is_one_integer(params, LEVELS, WHAT)
    }

    fn in_zarr(&self) -> bool {
        true
    }

    fn zarr(&self, params: &[u64], _site: &Site<'_>) -> Option<String> {
        Some(format!(r#"{{"id":"zstd","level":{}}}"#, *params.first()? as i64))
    }
}

impl BytesFilter for Zstd {
    fn bound(&self, len: usize) -> usize {
        zstd::zstd_safe::compress_bound(len).max(len + 64)
    }

    fn encode(
        &self,
        params: &[u64],
        _width: usize,
        input: &[u8],
        out: &mut Vec<u8>,
        tools: &mut Tools,
    ) -> Result<()> {
        compress(params.first().map_or(3, |&level| level as i32), input, out, tools)
    }

    fn decode(
        &self,
        _width: usize,
        input: &[u8],
        out: &mut [u8],
        tools: &mut Tools,
    ) -> Result<usize> {
        decompress(input, out, tools)
    }
}
