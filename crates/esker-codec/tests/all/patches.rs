//! Patches beside a plain reference: shapes, samples, means, wavelets, and the bound at every level and layer.

use crate::common::is_real;
use esker_codec::{Bound, Chunk, Coarse, Packing, PatchStream, Patches, Scratch, level_shape};
use esker_format::ExternalType;
use proptest::prelude::*;

const TYPES: [ExternalType; 11] = [
    ExternalType::Byte,
    ExternalType::Char,
    ExternalType::Short,
    ExternalType::Int,
    ExternalType::Float,
    ExternalType::Double,
    ExternalType::UByte,
    ExternalType::UShort,
    ExternalType::UInt,
    ExternalType::Int64,
    ExternalType::UInt64,
];

/// A level of the reference: lengths, and big-endian elements as bits.
#[derive(Clone, Debug)]
struct Plain {
    ty: ExternalType,
    shape: Vec<usize>,
    bits: Vec<u64>,
}

fn signed(ty: ExternalType) -> bool {
    use ExternalType::{Byte, Int, Int64, Short};
    matches!(ty, Byte | Short | Int | Int64)
}

/// An integer from its bits.
fn whole(ty: ExternalType, bits: u64) -> i128 {
    let width = 8 * ty.size() as u32;
    let value = i128::from(bits);
    if signed(ty) && bits >> (width - 1) & 1 == 1 { value - (1i128 << width) } else { value }
}

fn real(ty: ExternalType, bits: u64) -> f64 {
    match ty {
        ExternalType::Float => f32::from_bits(bits as u32).into(),
        ExternalType::Double => f64::from_bits(bits),
        _ => whole(ty, bits) as f64,
    }
}

fn bits_of(ty: ExternalType, value: f64) -> u64 {
    match ty {
        ExternalType::Float => u64::from((value as f32).to_bits()),
        ExternalType::Double => value.to_bits(),
        _ => {
            let width = 8 * ty.size() as u32;
            let (low, high) = if signed(ty) {
                (-(1i128 << (width - 1)), (1i128 << (width - 1)) - 1)
            } else {
                (0, (1i128 << width) - 1)
            };
            let rounded = value.round_ties_even();
            let value = if rounded >= high as f64 { high } else { (rounded as i128).max(low) };
            (value as u64) & (u64::MAX >> (64 - width))
        }
    }
}

/// What was computed is not a missing value: then the lowest bits differ.
fn avoid(bits: u64, missing: &[u64]) -> u64 {
    (0..).map(|flip| bits ^ flip).find(|bits| !missing.contains(bits)).expect("one")
}

impl Plain {
    fn at(&self, index: &[usize]) -> u64 {
        let place = index.iter().zip(&self.shape).fold(0, |place, (i, len)| place * len + i);
        self.bits[place]
    }

    /// All indices of a shape, in C order.
    fn indices(shape: &[usize]) -> Vec<Vec<usize>> {
        let mut all = vec![vec![]];
        for &len in shape {
            all = all
                .into_iter()
                .flat_map(|index| (0..len).map(move |i| [index.clone(), vec![i]].concat()))
                .collect();
        }
        all
    }

    fn halved(&self) -> Vec<usize> {
        self.shape.iter().map(|len| len.div_ceil(2)).collect()
    }

    fn is_missing(&self, bits: u64, missing: &[u64]) -> bool {
        missing.contains(&bits) || (is_real(self.ty) && real(self.ty, bits).is_nan())
    }

    fn sample(&self) -> Plain {
        let shape = self.halved();
        let twice = |index: Vec<usize>| index.into_iter().map(|i| 2 * i).collect::<Vec<_>>();
        let bits = Plain::indices(&shape).into_iter().map(|i| self.at(&twice(i))).collect();
        Plain { shape, bits, ..*self }
    }

    fn mean(&self, missing: &[u64]) -> Plain {
        let shape = self.halved();
        let corners = Plain::indices(&vec![2; shape.len()]);
        let mean = |index: Vec<usize>| {
            let inside = corners.iter().filter_map(|corner| {
                let at: Vec<usize> = index.iter().zip(corner).map(|(i, c)| 2 * i + c).collect();
                at.iter().zip(&self.shape).all(|(i, len)| i < len).then(|| self.at(&at))
            });
            let inside: Vec<u64> = inside.collect();
            let there: Vec<u64> =
                inside.iter().copied().filter(|&x| !self.is_missing(x, missing)).collect();
            if there.is_empty() {
                return inside[0];
            }
            let count = there.len();
            let mean = if is_real(self.ty) {
                let sum = there.iter().fold(0.0, |sum, &x| sum + real(self.ty, x));
                // The mean of both infinities is a NaN, and it is the positive quiet one.
                let mean = sum / count as f64;
                bits_of(self.ty, if mean.is_nan() { f64::from_bits(0x7FF8 << 48) } else { mean })
            } else {
                let sum: i128 = there.iter().map(|&x| whole(self.ty, x)).sum();
                let (below, count) = (sum.div_euclid(count as i128), count as i128);
                let left = sum - below * count;
                let up = 2 * left > count || (2 * left == count && below.rem_euclid(2) == 1);
                (below + i128::from(up)) as u64 & (u64::MAX >> (64 - 8 * self.ty.size()))
            };
            avoid(mean, missing)
        };
        Plain { bits: Plain::indices(&shape).into_iter().map(mean).collect(), shape, ..*self }
    }

    /// The filter (-1 2 6 2 -1) / 8 with mirrored ends, dimension after dimension.
    fn spline(&self, missing: &[u64]) -> Plain {
        let usable = |&bits: &u64| {
            let x = real(self.ty, bits);
            (x.is_finite() && !self.is_missing(bits, missing)).then_some(x)
        };
        let mut field: Vec<Option<f64>> = self.bits.iter().map(usable).collect();
        let mut shape = self.shape.clone();
        for dim in (0..shape.len()).rev() {
            let len = shape[dim];
            let now = shape.clone();
            shape[dim] = len.div_ceil(2);
            let place = |index: &[usize]| index.iter().zip(&now).fold(0, |p, (i, len)| p * len + i);
            let filtered = Plain::indices(&shape).into_iter().map(|index| {
                let tap = |offset: isize| {
                    let last = len as isize - 1;
                    let at = (2 * index[dim] as isize + offset).abs();
                    let at = if at > last { 2 * last - at } else { at };
                    let mut near = index.clone();
                    near[dim] = at.max(0) as usize;
                    field[place(&near)]
                };
                let here = tap(0);
                if len == 1 {
                    return here;
                }
                let weights = [(-2, -0.125), (-1, 0.25), (0, 0.75), (1, 0.25), (2, -0.125)];
                let all = weights.iter().map(|&(o, w)| tap(o).map(|x| x * w)).sum::<Option<f64>>();
                here.map(|here| all.unwrap_or(here))
            });
            field = filtered.collect();
        }
        let sample = self.sample();
        let bits = field
            .iter()
            .zip(&sample.bits)
            .map(|(x, &sample)| {
                // What no float holds is not taken for an infinity.
                let value = x.map(|x| bits_of(self.ty, x));
                let value = value.filter(|&bits| real(self.ty, bits).is_finite());
                value.map_or(sample, |bits| avoid(bits, missing))
            })
            .collect();
        Plain { shape, bits, ..*self }
    }

    fn bytes(&self) -> Vec<u8> {
        let width = self.ty.size() as usize;
        self.bits.iter().flat_map(|bits| bits.to_be_bytes()[8 - width..].to_vec()).collect()
    }

    fn of(ty: ExternalType, shape: &[usize], bytes: &[u8]) -> Plain {
        let element = |x: &[u8]| x.iter().fold(0, |bits, &byte| bits << 8 | u64::from(byte));
        let bits = bytes.chunks(ty.size() as usize).map(element).collect();
        Plain { ty, shape: shape.to_vec(), bits }
    }
}

/// A field with waves, noise, and among reals awkward values.
fn field(ty: ExternalType, shape: &[usize], seed: u64, kind: u8, missing: &[u64]) -> Plain {
    let mut state = seed | 1;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let awkward = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0, 1e30, -1e-40, 3e38, 0.0];
    let bits = Plain::indices(shape).into_iter().map(|index| {
        let wave: f64 =
            index.iter().enumerate().map(|(d, &i)| (i as f64 / (3.0 + d as f64)).sin()).sum();
        let n = random();
        match kind {
            0 => bits_of(ty, 40.0 * wave + 50.0),
            1 => bits_of(ty, 40.0 * wave + 50.0 + (n % 100) as f64 / 10.0),
            2 if n % 5 == 0 && !missing.is_empty() => missing[n as usize / 8 % missing.len()],
            2 if n % 7 == 0 && is_real(ty) => bits_of(ty, awkward[n as usize / 8 % awkward.len()]),
            2 => bits_of(ty, 40.0 * wave),
            3 => bits_of(ty, 7.0),
            _ => n & (u64::MAX >> (64 - 8 * ty.size())),
        }
    });
    Plain { bits: bits.collect(), ty, shape: shape.to_vec() }
}

/// All levels by the reference.
fn reference(plain: &Plain, coarse: Coarse, levels: u32, missing: &[u64]) -> Vec<Plain> {
    let mut all = vec![plain.clone()];
    for _ in 1..levels {
        let finer = all.last().expect("one");
        all.push(match coarse {
            Coarse::Sample => finer.sample(),
            Coarse::Mean => finer.mean(missing),
            Coarse::Spline => finer.spline(missing),
        });
    }
    all
}

/// Streams as a caller keeps them.
struct Stored {
    streams: Vec<PatchStream>,
    bytes: Vec<Vec<u8>>,
}

impl Stored {
    fn new(
        patches: &Patches,
        plain: &Plain,
        missing: &[u64],
        range: Option<f64>,
        scratch: &mut Scratch,
    ) -> Stored {
        let chunk = Chunk::new(plain.ty, &plain.shape);
        let missing = Plain { ty: plain.ty, shape: vec![], bits: missing.to_vec() }.bytes();
        let mut out = vec![0xAA; 3];
        let streams = patches
            .encode(&chunk, &missing, range, &plain.bytes(), &mut out, scratch)
            .expect("it encodes");
        assert_eq!(out[..3], [0xAA; 3], "what was there stays");
        let (mut at, mut bytes) = (3, Vec::new());
        for stream in &streams {
            bytes.push(out[at..at + stream.bytes].to_vec());
            at += stream.bytes;
        }
        assert_eq!(at, out.len());
        Stored { streams, bytes }
    }

    /// A level from just the streams that it needs.
    fn read(
        &self,
        patches: &Patches,
        plain: &Plain,
        level: u32,
        layer: u32,
        scratch: &mut Scratch,
    ) -> Plain {
        let find = |(level, layer)| {
            let at = self.streams.iter().position(|s| (s.level, s.layer) == (level, layer));
            self.bytes[at.expect("the stream")].as_slice()
        };
        let needed: Vec<&[u8]> = patches.needed(level, layer).map(find).collect();
        let shape = level_shape(&plain.shape, level);
        let mut out = vec![0x55; shape.iter().product::<usize>() * plain.ty.size() as usize];
        let chunk = Chunk::new(plain.ty, &plain.shape);
        patches.decode(&chunk, level, layer, &needed, &mut out, scratch).expect("it decodes");
        Plain::of(plain.ty, &shape, &out)
    }
}

#[allow(clippy::too_many_arguments)]
fn judge(
    patches: &Patches,
    coarse: Coarse,
    (levels, layers): (u32, u32),
    plain: &Plain,
    missing: &[u64],
    bound: Option<f64>,
    stored: &Stored,
    scratch: &mut Scratch,
) -> Result<(), TestCaseError> {
    let expected = reference(plain, coarse, levels, missing);
    for stream in &stored.streams {
        let (level, layer) = (stream.level, stream.layer);
        let back = stored.read(patches, plain, level, layer, scratch);
        let exact = &expected[level as usize];
        prop_assert_eq!(&back.shape, &exact.shape);
        let allowed =
            bound.map_or(0.0, |b| b * 10f64.powi((layers - 1 - layer) as i32) * (1.0 + 1e-12));
        prop_assert!(stream.error <= allowed, "level {level}: {} > {allowed}", stream.error);
        for (i, (&x, &y)) in exact.bits.iter().zip(&back.bits).enumerate() {
            let (wide, stored) = (real(plain.ty, x), real(plain.ty, y));
            if !is_real(plain.ty) || exact.is_missing(x, missing) || !wide.is_finite() {
                prop_assert_eq!(x, y, "level {}, element {}", level, i);
                continue;
            }
            // Two ways to sum five products differ in the last bits; a bit of the type may round otherwise.
            let slack = if coarse == Coarse::Spline && level > 0 {
                let unit = if plain.ty == ExternalType::Float { 2e-7 } else { 1e-14 };
                unit * 64.0 * wide.abs().max(1e-30).max(reach(plain))
            } else {
                0.0
            };
            let error = (wide - stored).abs();
            if slack == 0.0 && bound.is_none() {
                prop_assert_eq!(x, y, "level {}, element {}", level, i);
            }
            prop_assert!(
                error <= allowed + slack,
                "level {level}.{layer}, element {i}: {wide} became {stored}"
            );
            prop_assert!(!missing.contains(&y) || x == y, "{wide} became a missing value");
            prop_assert!(error <= stream.error + slack, "the error said is {}", stream.error);
            prop_assert!(stored.abs() > 1e29 || (stream.min <= stored && stored <= stream.max));
        }
    }
    Ok(())
}

/// The largest finite magnitude.
fn reach(plain: &Plain) -> f64 {
    plain
        .bits
        .iter()
        .map(|&x| real(plain.ty, x).abs())
        .filter(|x| x.is_finite())
        .fold(0.0, f64::max)
}

fn coarses() -> impl Strategy<Value = Coarse> {
    prop::sample::select(vec![Coarse::Sample, Coarse::Mean, Coarse::Spline])
}

fn packings() -> impl Strategy<Value = Packing> {
    prop::sample::select(vec![Packing::Small, Packing::Fast])
}

fn shapes() -> impl Strategy<Value = Vec<usize>> {
    prop_oneof![
        prop::collection::vec(1usize..20, 1..4),
        prop::collection::vec(1usize..7, 4..6),
        prop::collection::vec(1usize..4, 6..7),
        Just(vec![]),
        Just(vec![3, 0, 2]),
        Just(vec![1, 1, 1]),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn without_a_bound_every_level_of_every_type_is_exact(
        ty in prop::sample::select(TYPES.to_vec()),
        (coarse, packing) in (coarses(), packings()),
        (levels, shape) in (1u32..5, shapes()),
        (seed, kind) in (any::<u64>(), 0u8..5),
        with_missing in any::<bool>(),
    ) {
        // Random bits of reals are mostly not numbers that can be added; wavelets are computed in doubles.
        let wavelet_of_64_bits = coarse == Coarse::Spline && ty.size() == 8;
        let kind = if kind == 4 && (is_real(ty) || wavelet_of_64_bits) { 1 } else { kind };
        let missing = if with_missing { vec![bits_of(ty, 99.0), bits_of(ty, 3.0)] } else { vec![] };
        let plain = field(ty, &shape, seed, kind, &missing);
        let patches = Patches::new(levels).coarse(coarse).packing(packing);
        let mut scratch = Scratch::new();
        let stored = Stored::new(&patches, &plain, &missing, None, &mut scratch);
        judge(&patches, coarse, (levels, 1), &plain, &missing, None, &stored, &mut scratch)?;
    }

    #[test]
    fn a_bound_holds_at_every_level_and_layer(
        ty in prop::sample::select(vec![ExternalType::Float, ExternalType::Double]),
        (coarse, packing) in (coarses(), packings()),
        (levels, layers, shape) in (1u32..5, 1u32..5, shapes()),
        (seed, kind) in (any::<u64>(), 0u8..4),
        exponent in -7i32..3,
        with_missing in any::<bool>(),
    ) {
        let bound = 10f64.powi(exponent);
        let missing = if with_missing { vec![bits_of(ty, -9999.0), bits_of(ty, 0.0)] } else { vec![] };
        let plain = field(ty, &shape, seed, kind, &missing);
        let patches =
            Patches::new(levels).coarse(coarse).packing(packing).bound(Bound::Absolute(bound)).layers(layers);
        let mut scratch = Scratch::new();
        let stored = Stored::new(&patches, &plain, &missing, None, &mut scratch);
        judge(&patches, coarse, (levels, layers), &plain, &missing, Some(bound), &stored, &mut scratch)?;
    }
}

#[test]
fn a_relative_bound_is_of_the_range_that_the_caller_says() {
    let plain = field(ExternalType::Float, &[16, 16], 3, 1, &[]);
    let (share, range) = (1e-3, 5000.0);
    let patches = Patches::new(3).bound(Bound::Relative(share));
    let mut scratch = Scratch::new();
    let stored = Stored::new(&patches, &plain, &[], Some(range), &mut scratch);
    let errors: Vec<f64> = stored.streams.iter().map(|stream| stream.error).collect();
    // More than the patch's own range would allow, and no more than the record's.
    assert!(errors.iter().all(|&error| error <= share * range), "{errors:?}");
    assert!(errors.iter().any(|&error| error > share * 200.0), "{errors:?}");
    // A record whose values are all the same loses nothing.
    let stored = Stored::new(&patches, &plain, &[], Some(0.0), &mut scratch);
    assert!(stored.streams.iter().all(|stream| stream.error == 0.0));
}

#[test]
fn samples_and_means_of_a_patch_are_those_of_the_whole_variable() {
    let whole = field(ExternalType::Double, &[24, 20], 11, 1, &[]);
    let mut scratch = Scratch::new();
    for coarse in [Coarse::Sample, Coarse::Mean] {
        let expected = reference(&whole, coarse, 4, &[]);
        let patches = Patches::new(4).coarse(coarse);
        patches.check(whole.ty, &[16, 8]).expect("a patch");
        for (y, x) in [(0, 0), (0, 8), (0, 16), (16, 0), (16, 8), (16, 16)] {
            let shape = [(24 - y).min(16), (20 - x).min(8)];
            let bits =
                Plain::indices(&shape).iter().map(|i| whole.at(&[y + i[0], x + i[1]])).collect();
            let patch = Plain { ty: whole.ty, shape: shape.to_vec(), bits };
            let stored = Stored::new(&patches, &patch, &[], None, &mut scratch);
            for level in 0..4u32 {
                let back = stored.read(&patches, &patch, level, 0, &mut scratch);
                for index in Plain::indices(&back.shape) {
                    let there = [(y >> level) + index[0], (x >> level) + index[1]];
                    assert_eq!(
                        back.at(&index),
                        expected[level as usize].at(&there),
                        "{coarse:?} {level}"
                    );
                }
            }
        }
    }
}

#[test]
fn what_cannot_be_is_refused_with_a_reason() {
    let refused = |patches: Patches, lengths: &[usize]| {
        patches.check(ExternalType::Float, lengths).expect_err("refused").to_string()
    };
    assert!(refused(Patches::new(0), &[8]).contains("0 levels"));
    assert!(refused(Patches::new(33), &[8]).contains("33 levels"));
    let why = refused(Patches::new(4), &[1, 12]);
    assert!(why.contains("multiple of 8, not 12"), "{why}");
    assert!(refused(Patches::new(2).layers(3), &[8]).contains("set a bound"));
    let bad = [0.0, -1.0, f64::NAN, f64::INFINITY];
    for bound in bad.into_iter().flat_map(|b| [Bound::Absolute(b), Bound::Relative(b)]) {
        assert!(refused(Patches::new(2).bound(bound), &[8]).contains("positive number"));
    }
    assert!(
        refused(Patches::new(2).bound(Bound::Absolute(1.0)).layers(9), &[8]).contains("9 layers")
    );
    assert!(Patches::new(4).check(ExternalType::Char, &[1, 64, 8]).is_ok());
}

#[test]
fn a_looser_reader_takes_fewer_bytes_and_is_told_its_error() {
    let plain = field(ExternalType::Float, &[32, 32, 32], 5, 1, &[]);
    let mut scratch = Scratch::new();
    for packing in [Packing::Small, Packing::Fast] {
        let patches = Patches::new(4).packing(packing).bound(Bound::Absolute(0.01)).layers(3);
        let stored = Stored::new(&patches, &plain, &[], None, &mut scratch);
        let upto = |layer| -> usize {
            stored.streams.iter().filter(|s| s.layer <= layer).map(|s| s.bytes).sum()
        };
        assert!(upto(0) < upto(1) && upto(1) < upto(2), "{packing:?}");
        let finest: Vec<f64> =
            stored.streams.iter().filter(|s| s.level == 0).map(|s| s.error).collect();
        assert!(finest[0] > finest[1] && finest[1] > finest[2] && finest[2] > 0.0, "{finest:?}");
    }
}
