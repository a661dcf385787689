//! pco: lossless for numbers; a standalone pco file.

use esker_format::ExternalType;
use pco::ChunkConfig;
use pco::data_types::Number;
use pco::standalone::{DecompressorItem, FileDecompressor, simple_compress_into};

use super::{Described, PackingFilter, Site, is_one_integer, one_integer};
use crate::elements::Elements;
use crate::error::{CodecError, Result};
use crate::scratch::Tools;

const NAME: &str = "pco";
const WHAT: &str = "a level";

pub(crate) struct Pco;

impl Described for Pco {
    fn name(&self) -> &'static str {
        NAME
    }

    fn parse(&self, words: &[&str]) -> std::result::Result<Vec<u64>, String> {
        one_integer(words, Some(8), 0..=12, WHAT)
    }

    fn show(&self, params: &[u64]) -> String {
        params.iter().map(|level| format!(",{level}")).collect()
    }

    fn check(&self, params: &[u64], site: &Site<'_>) -> std::result::Result<(), String> {
        if site.ty == ExternalType::Char {
            return Err("it packs numbers, and char is text; use zstd".into());
        }
        is_one_integer(params, 0..=12, WHAT)
    }
}

/// Appends a pco file; for codecs that have numbers beside their own stream, too.
pub(crate) fn pack<T: Number>(numbers: &[T], level: usize, out: &mut Vec<u8>) -> Result<()> {
    let config = ChunkConfig::default().with_compression_level(level).with_enable_8_bit(true);
    simple_compress_into(numbers, &config, out)
        .map(drop)
        .map_err(|error| CodecError::failed(NAME, error))
}

/// Fills `numbers` from a pco file.
pub(crate) fn unpack<T: Number>(input: &[u8], numbers: &mut [T]) -> Result<()> {
    let damaged = |error| CodecError::damaged(NAME, error);
    let (file, mut left) = FileDecompressor::new(input).map_err(damaged)?;
    let (expected, mut done) = (numbers.len(), 0);
    loop {
        check_claims::<T>(left)?;
        match file.chunk_decompressor::<T, _>(left).map_err(damaged)? {
            DecompressorItem::Chunk(mut chunk) => {
                let count = chunk.n();
                let Some(part) = numbers[done..].get_mut(..count) else {
                    let found = done + count;
                    let why = format!("{found} numbers or more where {expected} should be");
                    return Err(CodecError::damaged(NAME, why));
                };
                chunk.read(part).map_err(damaged)?;
                done += count;
                left = chunk.into_src();
            }
            DecompressorItem::EndOfData(_) if done == expected => return Ok(()),
            DecompressorItem::EndOfData(_) => {
                let why = format!("{done} numbers where {expected} should be");
                return Err(CodecError::damaged(NAME, why));
            }
        }
    }
}

/// The largest window for repetitions, as a power of two; pco 1.0 writes at most 15.
const WINDOW: u64 = 16;

/// Looks at what a chunk of pco's claims before pco allocates for it: the length of a dictionary
/// and of the window for repetitions. The place of these in the bits is that of pco's format 3
/// and 4: type (8 bits), count (24), mode (4), what the mode needs, delta encoding (4), window (5).
fn check_claims<T: Number>(chunk: &[u8]) -> Result<()> {
    let bits = |at: usize, count: usize| {
        (0..count).fold(0, |value, i| {
            let byte = chunk.get((at + i) / 8).copied().unwrap_or(0);
            value | u64::from(byte >> ((at + i) % 8) & 1) << i
        })
    };
    let width = 8 * size_of::<T>();
    let delta = match bits(32, 4) {
        1 | 2 => 36 + width,
        3 => 36 + 8,
        4 => {
            let entries = bits(36, 25) as usize;
            let end = 64 + entries * width;
            if end > chunk.len() * 8 {
                let why = format!("a dictionary of {entries} numbers is longer than the chunk");
                return Err(CodecError::damaged(NAME, why));
            }
            end
        }
        _ => 36,
    };
    if bits(delta, 4) == 2 && bits(delta + 4, 5) + 1 > WINDOW {
        let why = format!("a window of 2^{} numbers", bits(delta + 4, 5) + 1);
        return Err(CodecError::damaged(NAME, why));
    }
    Ok(())
}

impl PackingFilter for Pco {
    fn encode(
        &self,
        params: &[u64],
        _site: &Site<'_>,
        elements: &Elements,
        out: &mut Vec<u8>,
        _tools: &mut Tools,
    ) -> Result<bool> {
        let level = params.first().map_or(8, |&level| level as usize);
        match elements.ty() {
            ExternalType::Byte => pack(elements.typed::<i8>(), level, out)?,
            ExternalType::UByte | ExternalType::Char => pack(elements.typed::<u8>(), level, out)?,
            ExternalType::Short => pack(elements.typed::<i16>(), level, out)?,
            ExternalType::UShort => pack(elements.typed::<u16>(), level, out)?,
            ExternalType::Int => pack(elements.typed::<i32>(), level, out)?,
            ExternalType::UInt => pack(elements.typed::<u32>(), level, out)?,
            ExternalType::Int64 => pack(elements.typed::<i64>(), level, out)?,
            ExternalType::UInt64 => pack(elements.typed::<u64>(), level, out)?,
            ExternalType::Float => pack(elements.typed::<f32>(), level, out)?,
            ExternalType::Double => pack(elements.typed::<f64>(), level, out)?,
        }
        Ok(true)
    }

    fn decode(
        &self,
        _params: &[u64],
        _site: &Site<'_>,
        input: &[u8],
        elements: &mut Elements,
        _tools: &mut Tools,
    ) -> Result<()> {
        match elements.ty() {
            ExternalType::Byte => unpack(input, elements.typed_mut::<i8>()),
            ExternalType::UByte | ExternalType::Char => unpack(input, elements.typed_mut::<u8>()),
            ExternalType::Short => unpack(input, elements.typed_mut::<i16>()),
            ExternalType::UShort => unpack(input, elements.typed_mut::<u16>()),
            ExternalType::Int => unpack(input, elements.typed_mut::<i32>()),
            ExternalType::UInt => unpack(input, elements.typed_mut::<u32>()),
            ExternalType::Int64 => unpack(input, elements.typed_mut::<i64>()),
            ExternalType::UInt64 => unpack(input, elements.typed_mut::<u64>()),
            ExternalType::Float => unpack(input, elements.typed_mut::<f32>()),
            ExternalType::Double => unpack(input, elements.typed_mut::<f64>()),
        }
    }
}
