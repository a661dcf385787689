//! A bound that the user gave holds at every element, whatever the elements are.

use crate::common::{pipeline, there_and_back};
use esker_codec::{Chunk, FilterMask, Scratch};
use esker_format::ExternalType;
use proptest::prelude::*;

/// Values that break codecs, among smooth ones.
const AWKWARD: &[f64] = &[
    f64::NAN,
    f64::INFINITY,
    f64::NEG_INFINITY,
    0.0,
    -0.0,
    1e-310,
    -5e-324,
    1e-40,
    f32::MIN_POSITIVE as f64,
    f64::MAX,
    f64::MIN,
    f32::MAX as f64,
    1e36,
    9.969_209_968_386_869e36,
    -1e34,
    1e20,
    -9999.0,
    1e10,
];

/// A field: waves of some size around some level, with awkward values and noise.
fn field(seed: u64, elements: usize, awkward: usize, noise: f64) -> Vec<f64> {
    let mut state = seed | 1;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let size = 10f64.powi((random() % 13) as i32 - 6);
    let (level, one) = (size * (random() % 100) as f64, AWKWARD[random() as usize % AWKWARD.len()]);
    let mut values = Vec::new();
    for i in 0..elements {
        let smooth =
            level + size * (i as f64 / 11.0).sin() + noise * size * (random() % 1000) as f64;
        values.push(match random() as usize % 100 {
            n if n < awkward && seed.is_multiple_of(2) => one,
            n if n < awkward => AWKWARD[random() as usize % AWKWARD.len()],
            _ => smooth,
        });
    }
    values
}

/// Both types of reals.
trait Element: Copy + std::fmt::Debug {
    const TYPE: ExternalType;
    fn from(value: f64) -> Self;
    fn wide(self) -> f64;
    fn be(self) -> Vec<u8>;
    fn of(bytes: &[u8]) -> Self;
}

impl Element for f32 {
    const TYPE: ExternalType = ExternalType::Float;
    fn from(value: f64) -> f32 {
        value as f32
    }
    fn wide(self) -> f64 {
        self.into()
    }
    fn be(self) -> Vec<u8> {
        self.to_be_bytes().to_vec()
    }
    fn of(bytes: &[u8]) -> f32 {
        f32::from_be_bytes(bytes.try_into().expect("four bytes"))
    }
}

impl Element for f64 {
    const TYPE: ExternalType = ExternalType::Double;
    fn from(value: f64) -> f64 {
        value
    }
    fn wide(self) -> f64 {
        self
    }
    fn be(self) -> Vec<u8> {
        self.to_be_bytes().to_vec()
    }
    fn of(bytes: &[u8]) -> f64 {
        f64::from_be_bytes(bytes.try_into().expect("eight bytes"))
    }
}

/// Sends values through and checks each with `keeps(before, after)`; non-finite ones and the
/// fill value come back bit by bit, and nothing else becomes the fill value.
fn check<T: Element>(
    text: &str,
    values: &[f64],
    shape: &[usize],
    fill: Option<f64>,
    keeps: impl Fn(f64, f64) -> bool,
) -> Result<(), TestCaseError> {
    let values: Vec<T> = values.iter().map(|&x| T::from(x)).collect();
    let bytes: Vec<u8> = values.iter().flat_map(|x| x.be()).collect();
    let fill = fill.map(|fill| T::from(fill).be());
    let chunk = Chunk { fill: fill.as_deref(), ..Chunk::new(T::TYPE, shape) };
    let (_, stored, back) = there_and_back(&pipeline(text), &chunk, &bytes, &mut Scratch::new())?;
    prop_assert!(stored.len() <= bytes.len() + 64, "{} of {}", stored.len(), bytes.len());
    for (i, x) in values.iter().enumerate() {
        let size = size_of::<T>();
        let y = &back[i * size..][..size];
        if !x.wide().is_finite() || fill.as_ref() == Some(&x.be()) {
            prop_assert_eq!(&x.be(), y, "element {}, {:?}", i, x);
        } else {
            let y = T::of(y);
            prop_assert!(keeps(x.wide(), y.wide()), "element {i}: {x:?} became {y:?}");
            prop_assert!(x.be() == y.be() || fill.as_ref() != Some(&y.be()), "{x:?} became fill");
        }
    }
    Ok(())
}

fn shapes() -> impl Strategy<Value = Vec<usize>> {
    prop::collection::vec(1usize..17, 1..4)
}

fn fills() -> impl Strategy<Value = Option<f64>> {
    let values = vec![None, Some(-9999.0), Some(0.0), Some(1e36), Some(f64::NAN), Some(-1e34)];
    prop::sample::select(values)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn an_absolute_bound_holds_everywhere(
        filter in prop::sample::select(vec!["sz,abs=", "zfp,accuracy="]),
        exponent in -9i32..5,
        (shape, fill) in (shapes(), fills()),
        (seed, awkward) in (any::<u64>(), prop::sample::select(vec![0usize, 2, 30, 100])),
        noise in prop::sample::select(vec![0.0, 1e-4, 1.0]),
    ) {
        let bound = 10f64.powi(exponent);
        let values = field(seed, shape.iter().product(), awkward, noise);
        let text = format!("{filter}{bound:e}");
        check::<f32>(&text, &values, &shape, fill, |x, y| (x - y).abs() <= bound)?;
        check::<f64>(&text, &values, &shape, fill, |x, y| (x - y).abs() <= bound)?;
    }

    #[test]
    fn a_relative_bound_is_of_the_range_of_the_chunk(
        filter in prop::sample::select(vec!["sz,rel=", "zfp,rel="]),
        exponent in -7i32..1,
        (shape, seed) in (shapes(), any::<u64>()),
    ) {
        let values = field(seed, shape.iter().product(), 0, 1e-3);
        let text = format!("{filter}1e{exponent}");
        let range = |values: &[f64]| {
            let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            high - values.iter().copied().fold(f64::INFINITY, f64::min)
        };
        let bound = range(&values) * 10f64.powi(exponent) * (1.0 + 1e-12);
        check::<f64>(&text, &values, &shape, None, |x, y| (x - y).abs() <= bound)?;
        let narrow: Vec<f64> = values.iter().map(|&x| (x as f32).wide()).collect();
        let bound = range(&narrow) * 10f64.powi(exponent) * (1.0 + 1e-12);
        check::<f32>(&text, &values, &shape, None, |x, y| (x - y).abs() <= bound)?;
    }

    #[test]
    fn rounded_mantissas_keep_normal_numbers_and_leave_the_others_alone(
        bits in 0i32..24,
        (shape, fill) in (shapes(), fills()),
        (seed, awkward) in (any::<u64>(), prop::sample::select(vec![0usize, 2, 30])),
    ) {
        let values = field(seed, shape.iter().product(), awkward, 1e-3);
        let share = 2f64.powi(-bits - 1);
        let text = format!("bitround,{bits} shuffle lz4");
        let keeps = |least: f64| move |x: f64, y: f64| {
            (x - y).abs() <= share * x.abs() && (x == y || x.abs() >= least)
        };
        check::<f32>(&text, &values, &shape, fill, keeps(f32::MIN_POSITIVE.into()))?;
        check::<f64>(&text, &values, &shape, fill, keeps(f64::MIN_POSITIVE))?;
    }

    #[test]
    fn doubles_stored_as_floats_keep_half_a_unit_or_are_left_alone(
        (shape, seed) in (shapes(), any::<u64>()),
        awkward in prop::sample::select(vec![0usize, 2, 30]),
    ) {
        let values = field(seed, shape.iter().product(), awkward, 1e-3);
        let keeps = |x: f64, y: f64| (x - y).abs() <= x.abs() * 2f64.powi(-24);
        check::<f64>("f32 shuffle zstd", &values, &shape, Some(-9999.0), keeps)?;
    }

    #[test]
    fn what_has_no_bound_still_keeps_fill_values_and_what_is_not_finite(
        text in prop::sample::select(vec!["zfp,rate=4", "zfp,rate=16", "zfp,precision=3"]),
        (shape, fill) in (shapes(), fills()),
        (seed, awkward) in (any::<u64>(), prop::sample::select(vec![0usize, 2, 30])),
    ) {
        let values = field(seed, shape.iter().product(), awkward, 1e-3);
        check::<f32>(text, &values, &shape, fill, |_, y| y.is_finite())?;
        check::<f64>(text, &values, &shape, fill, |_, y| y.is_finite())?;
    }
}

#[test]
fn doubles_that_no_float_holds_leave_f32_out_of_their_chunk() {
    for odd in [1e300, 1e-60, f64::from_bits(0x7FF8_0000_0000_0001)] {
        let values = [1.0, 2.0, odd, 3.0];
        let bytes: Vec<u8> = values.iter().flat_map(|x: &f64| x.to_be_bytes()).collect();
        let chunk = Chunk::new(ExternalType::Double, &[4]);
        let (encoded, _, back) =
            there_and_back(&pipeline("f32 shuffle"), &chunk, &bytes, &mut Scratch::new())
                .expect("it works");
        assert_eq!((encoded.mask, back), (FilterMask(1), bytes));
    }
}

#[test]
fn a_field_with_a_coast_is_small_because_its_fill_values_are_not_predicted() {
    let (ny, nx) = (180, 360);
    let sea = |i: usize| {
        let (y, x) = ((i / nx) as f32 / 30.0, (i % nx) as f32 / 40.0);
        if (x + y.sin()).sin() > 0.3 { -1e10f32 } else { 15.0 + 10.0 * y.sin() * (x + y).cos() }
    };
    let bytes: Vec<u8> = (0..ny * nx).flat_map(|i| sea(i).to_be_bytes()).collect();
    for text in ["sz,abs=0.01", "zfp,accuracy=0.01"] {
        let chunk = Chunk::new(ExternalType::Float, &[180, 360]);
        let (_, stored, _) =
            there_and_back(&pipeline(text), &chunk, &bytes, &mut Scratch::new()).expect("it works");
        assert!(stored.len() * 5 < bytes.len(), "{text}: {} of {}", stored.len(), bytes.len());
    }
}
