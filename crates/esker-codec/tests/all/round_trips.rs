//! What goes in comes out: every type, filter and shape.

use crate::common::{LOSSLESS, LOSSY, SHAPES, is_real, pipeline, there_and_back};
use esker_codec::{ByteOrder, Chunk, FilterMask, Pipeline, Scratch};
use esker_format::ExternalType;
use proptest::prelude::*;

/// Bytes of elements: noise, smooth, constant, or sparse.
fn contents(kind: u8, seed: u64, ty: ExternalType, elements: usize) -> Vec<u8> {
    let width = ty.size() as usize;
    let mut state = seed | 1;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let mut bytes = Vec::new();
    for i in 0..elements {
        let smooth = (i as f64 / 9.0).sin() * 40.0 + seed as f64 % 100.0;
        let word = match kind {
            0 => random().to_be_bytes(),
            1 if ty == ExternalType::Float => {
                (u64::from((smooth as f32).to_bits()) << 32).to_be_bytes()
            }
            1 if ty == ExternalType::Double => smooth.to_bits().to_be_bytes(),
            1 => ((smooth as i64 as u64) << (64 - 8 * width)).to_be_bytes(),
            2 => seed.to_be_bytes(),
            _ if random() % 10 == 0 => random().to_be_bytes(),
            _ => [0; 8],
        };
        bytes.extend_from_slice(&word[..width]);
    }
    bytes
}

fn chunk<'a>(ty: ExternalType, shape: &'a [usize], order: ByteOrder) -> Chunk<'a> {
    Chunk { order, ..Chunk::new(ty, shape) }
}

fn types() -> impl Strategy<Value = ExternalType> {
    prop::sample::select(ExternalType::ALL.to_vec())
}

fn orders() -> impl Strategy<Value = ByteOrder> {
    prop::sample::select(vec![ByteOrder::External, ByteOrder::Native])
}

#[test]
fn every_lossless_pipeline_gives_back_every_bit_of_every_type_and_awkward_shape() {
    let mut scratch = Scratch::new();
    for text in LOSSLESS {
        let pipeline = pipeline(text);
        for ty in ExternalType::ALL {
            for shape in SHAPES {
                for kind in 0..4 {
                    let chunk = chunk(ty, shape, ByteOrder::External);
                    if pipeline.check(&chunk).is_err() {
                        continue;
                    }
                    let bytes = contents(kind, 42, ty, chunk.elements().expect("small"));
                    let (_, stored, back) = there_and_back(&pipeline, &chunk, &bytes, &mut scratch)
                        .unwrap_or_else(|error| panic!("{text} {ty} {shape:?}: {error}"));
                    assert_eq!(back, bytes, "{text} {ty} {shape:?} {kind} as {stored:02x?}");
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn lossless_pipelines_give_back_every_bit(
        text in prop::sample::select(LOSSLESS.to_vec()),
        ty in types(),
        order in orders(),
        shape in prop::collection::vec(1usize..9, 0..5),
        (kind, seed) in (0u8..4, any::<u64>()),
    ) {
        let pipeline = pipeline(text);
        let chunk = chunk(ty, &shape, order);
        prop_assume!(pipeline.check(&chunk).is_ok());
        let bytes = contents(kind, seed, ty, chunk.elements()?);
        let (_, _, back) = there_and_back(&pipeline, &chunk, &bytes, &mut Scratch::new())?;
        prop_assert_eq!(back, bytes);
    }

    #[test]
    fn what_is_stored_does_not_depend_on_the_order_in_memory(
        text in prop::sample::select([LOSSLESS, LOSSY].concat()),
        ty in types(),
        shape in prop::collection::vec(1usize..9, 1..4),
        seed in any::<u64>(),
    ) {
        let pipeline = pipeline(text);
        let external = chunk(ty, &shape, ByteOrder::External);
        prop_assume!(pipeline.check(&external).is_ok());
        let bytes = contents(1, seed, ty, external.elements()?);
        let mut native = bytes.clone();
        if cfg!(target_endian = "little") {
            native.chunks_exact_mut(ty.size() as usize).for_each(<[u8]>::reverse);
        }
        let (mut one, mut two) = (Vec::new(), Vec::new());
        let mut scratch = Scratch::new();
        let a = pipeline.encode(&external, &bytes, &mut one, &mut scratch)?;
        let b = pipeline.encode(&external.native(), &native, &mut two, &mut scratch)?;
        prop_assert_eq!((a, one), (b, two));
    }

    #[test]
    fn a_used_scratch_changes_nothing(
        texts in prop::collection::vec(prop::sample::select([LOSSLESS, LOSSY].concat()), 1..6),
        seed in any::<u64>(),
    ) {
        let mut used = Scratch::new();
        for (i, text) in texts.iter().enumerate() {
            let pipeline = pipeline(text);
            let shape = [3 + i, 5, 7];
            let chunk = chunk(ExternalType::Double, &shape, ByteOrder::External);
            let bytes = contents(1, seed, ExternalType::Double, chunk.elements()?);
            let a = there_and_back(&pipeline, &chunk, &bytes, &mut used)?;
            let b = there_and_back(&pipeline, &chunk, &bytes, &mut Scratch::new())?;
            prop_assert_eq!(a, b);
        }
    }

    #[test]
    fn text_and_numbers_name_the_same_pipeline(
        texts in prop::collection::vec(prop::sample::select([LOSSLESS, LOSSY].concat()), 0..4),
    ) {
        let pipeline: Pipeline = texts.join(" ").parse()?;
        prop_assert_eq!(&pipeline.to_string().parse::<Pipeline>()?, &pipeline);
        if pipeline.filters().len() <= Pipeline::MOST {
            prop_assert_eq!(&Pipeline::from_words(&pipeline.to_words())?, &pipeline);
        }
    }

    #[test]
    fn numbers_that_are_no_pipeline_are_refused_or_a_pipeline(
        words in prop::collection::vec(prop_oneof![0u64..40, any::<u64>()], 0..12),
    ) {
        if let Ok(pipeline) = Pipeline::from_words(&words) {
            prop_assert_eq!(pipeline.to_words(), words);
            let _ = (pipeline.to_string(), pipeline.check(&Chunk::new(ExternalType::Float, &[4, 4])));
        }
    }
}

#[test]
fn noise_is_stored_raw_by_pipelines_that_zarr_does_not_know() {
    let bytes = contents(0, 7, ExternalType::Double, 512);
    for text in ["pco", "bitshuffle zstd", "zfp,reversible", "pco lz4 crc32c"] {
        let (pipeline, chunk) = (pipeline(text), Chunk::new(ExternalType::Double, &[512]));
        let (encoded, stored, _) =
            there_and_back(&pipeline, &chunk, &bytes, &mut Scratch::new()).expect("it works");
        assert!(encoded.mask.is_raw(&pipeline), "{text}");
        assert_eq!(stored, bytes, "{text}");
    }
}

#[test]
fn pipelines_that_zarr_knows_use_every_filter_for_every_chunk() {
    for (kind, shape) in [(0, [512]), (1, [512]), (2, [1])] {
        let bytes = contents(kind, 7, ExternalType::Double, shape[0]);
        for text in ["deflate", "shuffle zstd,3", "lz4 crc32c", "shuffle"] {
            let chunk = Chunk::new(ExternalType::Double, &shape);
            let (encoded, ..) =
                there_and_back(&pipeline(text), &chunk, &bytes, &mut Scratch::new())
                    .expect("it works");
            assert_eq!(encoded.mask, FilterMask(0), "{text}");
        }
    }
}

#[test]
fn constant_chunks_are_tiny() {
    for ty in ExternalType::ALL {
        for text in
            ["deflate", "zstd", "pco", "zfp,reversible", "sz,abs=0.1", "sz,rel=0.1", "zfp,rel=0.1"]
        {
            let (pipeline, chunk) = (pipeline(text), Chunk::new(ty, &[64, 64]));
            if pipeline.check(&chunk).is_err() {
                continue;
            }
            let element = &1.5f64.to_be_bytes()[..ty.size() as usize];
            let bytes = element.repeat(64 * 64);
            let (_, stored, back) =
                there_and_back(&pipeline, &chunk, &bytes, &mut Scratch::new()).expect("it works");
            assert!(stored.len() * 12 <= bytes.len(), "{text} {ty}: {} bytes", stored.len());
            assert!(back == bytes || is_real(ty), "{text} {ty}");
        }
    }
}

#[test]
fn a_scratch_may_go_to_another_thread() {
    let mut scratch = Scratch::new();
    let chunk = Chunk::new(ExternalType::Float, &[64]);
    let bytes = contents(1, 3, ExternalType::Float, 64);
    for text in ["deflate", "zstd", "pco", "sz,abs=1", "zfp,accuracy=1"] {
        there_and_back(&pipeline(text), &chunk, &bytes, &mut scratch).expect("it works");
        scratch = std::thread::spawn(move || scratch).join().expect("it comes back");
    }
}
