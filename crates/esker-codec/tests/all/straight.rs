//! `f32` alone goes from memory to stored bytes in one pass, and stores what it stores in a longer pipeline.

use esker_codec::{Chunk, FilterMask, Scratch};
use esker_format::ExternalType::Double;

use crate::common::{pipeline, there_and_back};

/// What may be in a field: each alone makes a chunk one that floats can hold, or not.
const AWKWARD: &[(f64, bool)] = &[
    (0.0, true),
    (-0.0, true),
    (1.0 / 3.0, true),
    (f64::INFINITY, true),
    (f64::NEG_INFINITY, true),
    (f64::NAN, true),
    (f32::MAX as f64, true),
    (f32::MIN_POSITIVE as f64, true),
    // The smallest float of all is one, though not a normal one; numbers between such are lost.
    (1.401_298_464_324_817e-45, true),
    (2e-45, false),
    (1e-300, false),
    (5e-324, false),
    (3.5e38, false),
    (-1e300, false),
];

/// As numbers: big-endian floats of the doubles.
fn floats(values: &[f64]) -> Vec<u8> {
    values.iter().flat_map(|value| (*value as f32).to_be_bytes()).collect()
}

fn bytes(values: &[f64], native: bool) -> Vec<u8> {
    let of = |value: &f64| if native { value.to_ne_bytes() } else { value.to_be_bytes() };
    values.iter().flat_map(of).collect()
}

#[test]
fn floats_alone_are_stored_as_in_a_longer_pipeline() {
    let (alone, longer) = (pipeline("f32"), pipeline("f32 crc32c"));
    let mut scratch = Scratch::new();
    // Around the length of a block, with what is awkward at the beginning, in the middle and at the end.
    for length in [0usize, 1, 2, 511, 512, 513, 1024, 5000] {
        for (case, &(value, fits)) in AWKWARD.iter().enumerate() {
            for at in [0, length / 2, length.saturating_sub(1)] {
                let mut values: Vec<f64> = (0..length).map(|i| (i as f64 * 0.37).sin()).collect();
                if let Some(place) = values.get_mut(at) {
                    *place = value;
                }
                let shape = [length];
                for native in [false, true] {
                    let chunk = Chunk::new(Double, &shape);
                    let chunk = if native { chunk.native() } else { chunk };
                    let input = bytes(&values, native);
                    let what = format!("case {case}, {length} values, native {native}");
                    let (found, stored, back) =
                        there_and_back(&alone, &chunk, &input, &mut scratch).unwrap();
                    let (_, with_sum, same) =
                        there_and_back(&longer, &chunk, &input, &mut scratch).unwrap();
                    assert_eq!(stored, with_sum[..with_sum.len() - 4], "{what}");
                    assert_eq!(back, same, "{what}");
                    let held = fits || length == 0;
                    let expected = if held { floats(&values) } else { bytes(&values, false) };
                    assert_eq!(stored, expected, "{what}");
                    assert_eq!(found.mask == FilterMask::default(), held, "{what}");
                    let widened =
                        |value: &f64| if held { f64::from(*value as f32) } else { *value };
                    let widened: Vec<f64> = values.iter().map(widened).collect();
                    assert_eq!(back, bytes(&widened, native), "{what}");
                }
            }
        }
    }
}

/// An ordinary number must not come back as the fill value, and the fill value must come back.
#[test]
fn floats_alone_keep_the_fill_value() {
    let fill = 0.5f64;
    let near = f64::from_bits(fill.to_bits() + 1);
    let external = fill.to_be_bytes();
    for (value, fits) in [(fill, true), (0.25, true), (near, false)] {
        let mut values = vec![0.1; 700];
        values[600] = value;
        let shape = [700];
        let chunk = Chunk::new(Double, &shape).native().with_fill(&external);
        let input = bytes(&values, true);
        let (found, stored, back) =
            there_and_back(&pipeline("f32"), &chunk, &input, &mut Scratch::new()).unwrap();
        assert_eq!(found.mask == FilterMask::default(), fits, "{value:?}");
        assert_eq!(stored.len(), if fits { 2800 } else { 5600 });
        assert_eq!(back[4800..4808], if fits { value } else { near }.to_ne_bytes());
    }
}

#[test]
fn floats_of_another_length_are_an_error() {
    let shape = [100];
    let chunk = Chunk::new(Double, &shape).native();
    for length in [0, 399, 401, 800] {
        let mut out = vec![0x55; 800];
        let mask = FilterMask::default();
        let done =
            pipeline("f32").decode(&chunk, mask, &vec![1; length], &mut out, &mut Scratch::new());
        assert!(done.is_err(), "{length}");
    }
}
