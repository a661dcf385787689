//! Chunks that an earlier version stored stay readable, to the bit.
//!
//! `tests/golden/NAME.bin` was made by `make_golden_chunks` (ignored; it writes only files that
//! are not there) and is never made anew. Its first bytes are the mask and the crc32c of the
//! elements that must come out.

use std::path::PathBuf;

use crate::common::pipeline;
use esker_codec::{Chunk, FilterMask, Scratch, checksum};
use esker_format::ExternalType;

const SHAPE: [usize; 4] = [3, 7, 10, 13];

const PIPELINES: &[&str] = &[
    "shuffle deflate,6",
    "shuffle zstd,3 crc32c",
    "lz4",
    "bitshuffle zstd,3",
    "bitround,9 shuffle zstd,3",
    "f32 shuffle deflate,6",
    "pco,8",
    "zfp,reversible",
    "zfp,accuracy=0.01",
    "zfp,rate=9",
    "zfp,precision=20",
    "sz,abs=0.01",
    "sz,rel=1e-5 crc32c",
];

/// Integers divided by powers of two, the same on every machine, and special values.
fn elements(ty: ExternalType) -> Vec<u8> {
    let mut bytes = Vec::new();
    for i in 0..SHAPE.iter().product::<usize>() {
        let (x, y, z) = (i % 13, i / 13 % 10, i / 130);
        let field = (x * x * 3 + y * z * 5 + (i * 7919) % 11) as f64 / 64.0 - 20.0;
        let value = match i {
            77 | 78 | 300..330 => f64::from(-1e34f32),
            500 => f64::NAN,
            501 => f64::NEG_INFINITY,
            _ => field,
        };
        match ty {
            ExternalType::Float => bytes.extend((value as f32).to_be_bytes()),
            ExternalType::Double => bytes.extend(value.to_be_bytes()),
            _ => bytes.extend(((field * 64.0) as i32).to_be_bytes()),
        }
    }
    bytes
}

fn path(text: &str, ty: ExternalType) -> PathBuf {
    let name = format!("{text} {ty}").replace([' ', ',', '='], "-");
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("tests/golden/{name}.bin"))
}

fn cases() -> impl Iterator<Item = (&'static str, ExternalType)> {
    let types = [ExternalType::Float, ExternalType::Double, ExternalType::Int];
    PIPELINES
        .iter()
        .flat_map(move |text| types.map(|ty| (*text, ty)))
        .filter(|(text, ty)| pipeline(text).check(&Chunk::new(*ty, &SHAPE)).is_ok())
}

#[test]
fn golden_chunks_stay_readable() {
    let mut scratch = Scratch::new();
    for (text, ty) in cases() {
        let file = path(text, ty);
        let bytes =
            std::fs::read(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let (mask, rest) = bytes.split_first_chunk::<2>().expect("a mask");
        let (sum, stored) = rest.split_first_chunk::<4>().expect("a checksum");
        let mut out = elements(ty);
        out.fill(0);
        pipeline(text)
            .decode(
                &Chunk::new(ty, &SHAPE),
                FilterMask(u16::from_be_bytes(*mask)),
                stored,
                &mut out,
                &mut scratch,
            )
            .unwrap_or_else(|error| panic!("{text} {ty}: {error}"));
        assert_eq!(checksum(&out), u32::from_be_bytes(*sum), "{text} {ty}");
        let loses = ["bitround", "f32 ", "accuracy", "rate", "precision", "sz"];
        if !loses.iter().any(|part| text.contains(part)) {
            assert_eq!(out, elements(ty), "{text} {ty}");
        }
    }
}

#[test]
#[ignore = "makes golden chunks that are not there yet"]
fn make_golden_chunks() {
    let mut scratch = Scratch::new();
    for (text, ty) in cases() {
        let (file, elements) = (path(text, ty), elements(ty));
        if file.exists() {
            continue;
        }
        let chunk = Chunk::new(ty, &SHAPE);
        let (mut stored, mut out) = (Vec::new(), elements.clone());
        let encoded = pipeline(text)
            .encode(&chunk, &elements, &mut stored, &mut scratch)
            .expect("it encodes");
        pipeline(text)
            .decode(&chunk, encoded.mask, &stored, &mut out, &mut scratch)
            .expect("it decodes");
        let head = [&encoded.mask.0.to_be_bytes()[..], &checksum(&out).to_be_bytes()].concat();
        std::fs::write(file, [head, stored].concat()).expect("it is written");
    }
}

#[test]
fn bitshuffle_is_what_its_page_says() {
    for ty in [ExternalType::UByte, ExternalType::Short, ExternalType::Float, ExternalType::Double]
    {
        for count in [3, 8, 64, 72, 133, 1000] {
            let width = ty.size() as usize;
            let bytes: Vec<u8> = (0..count * width).map(|i| (i * i * 31 + i / 7) as u8).collect();
            let (shape, mut stored) = ([count], Vec::new());
            let encoded = pipeline("bitshuffle")
                .encode(&Chunk::new(ty, &shape), &bytes, &mut stored, &mut Scratch::new())
                .expect("it encodes");
            // Alone it saves nothing, so that it is left out; what it reads is what it writes elsewhere.
            assert!(encoded.mask.is_raw(&pipeline("bitshuffle")));
            let groups = count / 8;
            let mut expected = vec![0u8; bytes.len()];
            for element in 0..groups * 8 {
                for bit in 0..8 * width {
                    let set = bytes[element * width + bit / 8] >> (bit % 8) & 1;
                    expected[bit * groups + element / 8] |= set << (element % 8);
                }
            }
            expected[groups * 8 * width..].copy_from_slice(&bytes[groups * 8 * width..]);
            let mut back = vec![0; bytes.len()];
            pipeline("bitshuffle")
                .decode(
                    &Chunk::new(ty, &shape),
                    FilterMask(0),
                    &expected,
                    &mut back,
                    &mut Scratch::new(),
                )
                .expect("it decodes");
            assert_eq!(back, bytes, "{count} {ty}");
        }
    }
}
