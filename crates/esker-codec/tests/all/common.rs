//! What the tests share: pipelines, chunks of every kind, one way through.

use esker_codec::{Chunk, CodecError, Encoded, Pipeline, Scratch};
use esker_format::ExternalType;

/// Pipelines that give back every bit.
pub(crate) const LOSSLESS: &[&str] = &[
    "",
    "shuffle",
    "bitshuffle",
    "crc32c",
    "deflate",
    "deflate,0",
    "deflate,12",
    "zstd,3",
    "zstd,-5",
    "lz4",
    "pco",
    "zfp,reversible",
    "shuffle deflate,1",
    "shuffle zstd,1 crc32c",
    "bitshuffle lz4",
    "bitshuffle zstd crc32c",
    "pco zstd,1 crc32c",
    "zfp,reversible deflate,1",
    "lz4 zstd deflate crc32c crc32c",
];

/// Pipelines that lose precision.
pub(crate) const LOSSY: &[&str] = &[
    "bitround,8",
    "bitround,3 shuffle zstd",
    "bitround,0 deflate,1 crc32c",
    "f32",
    "f32 shuffle lz4",
    "f32 bitround,9 pco",
    "bitround,20 f32 pco crc32c",
    "zfp,accuracy=0.01",
    "zfp,rel=0.001 zstd",
    "zfp,rate=8",
    "zfp,precision=12 crc32c",
    "sz,abs=0.01",
    "sz,rel=0.001",
    "sz,rel=0.0001 zstd,1 crc32c",
    "f32 sz,abs=0.5",
];

pub(crate) fn pipeline(text: &str) -> Pipeline {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// Encodes, decodes, and gives both.
pub(crate) fn there_and_back(
    pipeline: &Pipeline,
    chunk: &Chunk<'_>,
    elements: &[u8],
    scratch: &mut Scratch,
) -> Result<(Encoded, Vec<u8>, Vec<u8>), CodecError> {
    let mut stored = vec![0xAA; 3];
    let encoded = pipeline.encode(chunk, elements, &mut stored, scratch)?;
    assert_eq!(stored[..3], [0xAA; 3], "what was there stays");
    let stored = stored.split_off(3);
    assert_eq!(encoded.crc32c, esker_codec::checksum(&stored));
    let mut back = vec![0x55; elements.len()];
    // Decoding needs no fill value.
    let chunk = Chunk { fill: None, ..*chunk };
    pipeline.decode(&chunk, encoded.mask, &stored, &mut back, scratch)?;
    Ok((encoded, stored, back))
}

/// The smallest and most awkward shapes.
pub(crate) const SHAPES: &[&[usize]] = &[
    &[],
    &[0],
    &[1],
    &[2],
    &[7],
    &[3, 0, 2],
    &[1, 1, 1, 1, 1],
    &[64],
    &[257],
    &[5, 6],
    &[1, 33],
    &[17, 1],
    &[4, 5, 6],
    &[2, 3, 4, 5],
    &[2, 2, 3, 2, 4],
    &[2, 1, 2, 2, 2, 3],
];

pub(crate) fn is_real(ty: ExternalType) -> bool {
    matches!(ty, ExternalType::Float | ExternalType::Double)
}
