//! Every pair of types converts as netCDF says, judged by a slow oracle that works with exact
//! integers and reals and knows nothing of blocks, bytes or carriers.

use esker_format::values::{self, default_fill, default_fill_bytes};
use esker_format::{ConversionRules, ConvertError, ExternalType, MemoryType, Scalar, Values};
use esker_format::{RangeReport, Version};
use proptest::prelude::*;

/// A number as the oracle sees it.
#[derive(Debug, Clone, Copy)]
enum Exact {
    Integer(i128),
    Real(f64),
}

/// Reads one number from big-endian bytes.
fn read(ty: MemoryType, b: &[u8]) -> Exact {
    let unsigned = b.iter().fold(0i128, |n, &x| n * 256 + i128::from(x));
    let bits = 8 * b.len() as u32;
    let signed = if b[0] >= 128 { unsigned - (1i128 << bits) } else { unsigned };
    match ty {
        MemoryType::F32 => Exact::Real(f32::from_bits(unsigned as u32).into()),
        MemoryType::F64 => Exact::Real(f64::from_bits(unsigned as u64)),
        MemoryType::I8 | MemoryType::I16 | MemoryType::I32 | MemoryType::I64 => {
            Exact::Integer(signed)
        }
        _ => Exact::Integer(unsigned),
    }
}

fn limits(ty: MemoryType) -> Option<(i128, i128)> {
    let bits = 8 * ty.size() as u32;
    match ty {
        MemoryType::F32 | MemoryType::F64 => None,
        MemoryType::I8 | MemoryType::I16 | MemoryType::I32 | MemoryType::I64 => {
            Some((-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1))
        }
        _ => Some((0, (1i128 << bits) - 1)),
    }
}

/// The big-endian bytes of `x` as a `ty`; none if it does not fit.
fn oracle(x: Exact, ty: MemoryType) -> Option<Vec<u8>> {
    let width = ty.size();
    match (x, limits(ty)) {
        (Exact::Integer(n), Some((min, max))) => {
            (min <= n && n <= max).then(|| n.to_be_bytes()[16 - width..].to_vec())
        }
        (Exact::Real(r), Some((min, max))) => {
            // Exact: i128 holds the whole part of every real that could fit.
            if r.is_nan() || r.abs() > 1e30 {
                return None;
            }
            let (low, high) = (r.floor() as i128, r.ceil() as i128);
            (min <= low && high <= max)
                .then(|| (r.trunc() as i128).to_be_bytes()[16 - width..].to_vec())
        }
        (Exact::Integer(n), None) if width == 4 => Some((n as f32).to_be_bytes().to_vec()),
        (Exact::Integer(n), None) => Some((n as f64).to_be_bytes().to_vec()),
        (Exact::Real(r), None) if width == 4 => {
            let fits = !r.is_finite() || r.abs() <= f64::from(f32::MAX);
            fits.then(|| (r as f32).to_be_bytes().to_vec())
        }
        (Exact::Real(r), None) => Some(r.to_be_bytes().to_vec()),
    }
}

fn is_nan(ty: MemoryType, big_endian: &[u8]) -> bool {
    matches!(read(ty, big_endian), Exact::Real(r) if r.is_nan())
}

fn native(mut big_endian: Vec<u8>) -> Vec<u8> {
    if cfg!(target_endian = "little") {
        big_endian.reverse();
    }
    big_endian
}

/// Bit patterns where types end, beside random ones, as eight big-endian bytes of an `f64`,
/// an `f32` or an integer.
fn pattern() -> impl Strategy<Value = u64> {
    let edge = prop_oneof![Just(7u32), Just(8), Just(15), Just(16), Just(31), Just(32), Just(63)];
    let near = (edge, -2i64..=2).prop_map(|(bit, d)| (1i64.wrapping_shl(bit)).wrapping_add(d));
    let signed =
        (near, any::<bool>()).prop_map(|(n, minus)| if minus { n.wrapping_neg() } else { n });
    let fraction = prop_oneof![Just(0.0), Just(0.5), Just(-0.5), Just(0.9), Just(-0.9)];
    let real = (signed.clone(), fraction).prop_map(|(n, f)| n as f64 + f);
    let special = prop_oneof![
        Just(f64::INFINITY),
        Just(f64::NEG_INFINITY),
        Just(f64::NAN),
        Just(-0.0),
        Just(18446744073709551616.0),
        Just(18446744073709549568.0),
        Just(9223372036854774784.0),
        Just(f64::from(f32::MAX)),
        Just(f64::from(f32::MAX).next_up()),
        Just(-f64::from(f32::MAX).next_up()),
        Just(f64::MAX),
        Just(5e-324),
    ];
    prop_oneof![
        any::<u64>(),
        (0u64..64, any::<u64>()).prop_map(|(s, n)| n >> s),
        signed.prop_map(|n| n as u64),
        real.prop_map(f64::to_bits),
        special.prop_map(f64::to_bits),
    ]
}

/// The pattern as an element of `ty`, big-endian: its `f64` rounded for an `f32` half of the
/// time, else its lowest bytes.
fn element(ty: MemoryType, pattern: u64, rounded: bool) -> Vec<u8> {
    if ty == MemoryType::F32 && rounded {
        return (f64::from_bits(pattern) as f32).to_be_bytes().to_vec();
    }
    pattern.to_be_bytes()[8 - ty.size()..].to_vec()
}

fn numeric() -> impl Iterator<Item = (MemoryType, ExternalType)> {
    let numbers = || MemoryType::ALL.into_iter().filter(|m| *m != MemoryType::Text);
    numbers().flat_map(move |m| numbers().map(move |e| (m, e.natural())))
}

/// Pairs that exchange their bits: the same type (every NaN keeps its payload), and the
/// exception for bytes.
fn same_bits(mem: MemoryType, ext: ExternalType, rules: ConversionRules) -> bool {
    let byte_as_u8 = mem == MemoryType::U8 && ext == ExternalType::Byte;
    mem == ext.natural() || (byte_as_u8 && rules.byte_is_unsigned_ok)
}

fn check_report(report: RangeReport, fits: &[bool]) {
    assert_eq!(report.elements, fits.len() as u64);
    assert_eq!(report.out_of_range, fits.iter().filter(|f| !**f).count() as u64);
    assert_eq!(report.first.map(|f| f.index), fits.iter().position(|f| !f).map(|i| i as u64));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn every_pair_agrees_with_exact_arithmetic(
        patterns in prop::collection::vec((pattern(), any::<bool>()), 0..40),
        before in 0usize..600,
        shift in 0usize..8,
        version in prop::sample::select(Version::ALL.to_vec()),
    ) {
        let rules = ConversionRules::of(version);
        // Zeros before the values move them across the borders of blocks.
        let zeros = std::iter::repeat_n((0u64, false), before);
        let all: Vec<_> = zeros.chain(patterns).collect();
        for (mem, ext) in numeric() {
            let fill: Vec<u8> = (1..=ext.size() as u8).collect();
            let memory_fill = native(default_fill_bytes(mem.natural()));
            let mut fits_out = Vec::new();
            let mut fits_in = Vec::new();
            // `shift` bytes in front make the buffers unaligned.
            let mut memory = vec![0u8; shift];
            let mut external = vec![0u8; shift];
            let mut want_external = Vec::new();
            let mut want_memory = Vec::new();
            for &(pattern, rounded) in &all {
                let m = element(mem, pattern, rounded);
                let out = if same_bits(mem, ext, rules) { Some(m.clone()) }
                    else { oracle(read(mem, &m), ext.natural()) };
                fits_out.push(out.is_some());
                want_external.push(out.unwrap_or_else(|| fill.clone()));
                memory.extend(native(m));
                let e = element(ext.natural(), pattern, rounded);
                let back = if same_bits(mem, ext, rules) { Some(e.clone()) }
                    else { oracle(read(ext.natural(), &e), mem) };
                fits_in.push(back.is_some());
                want_memory.push(back.map(native).unwrap_or_else(|| memory_fill.clone()));
                external.extend(e);
            }
            let mut got = vec![0xEEu8; shift + all.len() * ext.size() as usize];
            let report =
                values::encode(mem, &memory[shift..], ext, &mut got[shift..], &fill, rules).unwrap();
            check_report(report, &fits_out);
            for (i, (g, w)) in got[shift..].chunks(ext.size() as usize).zip(&want_external).enumerate() {
                let both_nan = mem != ext.natural() && is_nan(ext.natural(), g) && is_nan(ext.natural(), w);
                prop_assert!(g == w || both_nan, "{mem} to {ext}, {i}: {g:?}, not {w:?}");
            }
            let mut got = vec![0xEEu8; shift + all.len() * mem.size()];
            let report =
                values::decode(ext, &external[shift..], mem, &mut got[shift..], rules).unwrap();
            check_report(report, &fits_in);
            for (i, (g, w)) in got[shift..].chunks(mem.size()).zip(&want_memory).enumerate() {
                let both_nan = mem != ext.natural()
                    && is_nan(mem, &native(g.to_vec())) && is_nan(mem, &native(w.clone()));
                prop_assert!(g == w || both_nan, "{ext} to {mem}, {i}: {g:?}, not {w:?}");
            }
            prop_assert!(got[..shift].iter().all(|b| *b == 0xEE));
        }
    }

    #[test]
    fn values_survive_the_file(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
        for ty in ExternalType::ALL {
            let width = ty.size() as usize;
            let whole = &bytes[..bytes.len() / width * width];
            let values = Values::decode(ty, whole.len() / width, whole).unwrap();
            prop_assert_eq!(values.ty(), ty);
            prop_assert_eq!(values.bytes_len(), whole.len());
            prop_assert_eq!(values.external_bytes(), whole);
        }
    }
}

#[test]
fn text_never_converts_to_a_number() {
    let rules = ConversionRules::default();
    for number in MemoryType::ALL.into_iter().filter(|m| *m != MemoryType::Text) {
        let mut dst = [0u8; 8];
        let dst = &mut dst[..number.size()];
        let wanted = ConvertError::TextAndNumber { external: ExternalType::Char, memory: number };
        assert_eq!(values::decode(ExternalType::Char, b"7", number, dst, rules), Err(wanted));
        let src = vec![0u8; number.size()];
        let fill = [0u8];
        let mut text = [1u8];
        let got = values::encode(number, &src, ExternalType::Char, &mut text, &fill, rules);
        assert_eq!(got, Err(wanted));
        assert_eq!(text, [1]);
        let ext = number.natural();
        let wanted = ConvertError::TextAndNumber { external: ext, memory: MemoryType::Text };
        assert_eq!(values::decode(ext, &src, MemoryType::Text, &mut text, rules), Err(wanted));
    }
    assert!(Values::from("12").convert_to::<i32>().is_err());
}

#[test]
fn text_meets_text() {
    let mut dst = [0u8; 3];
    let rules = ConversionRules::default();
    let report = values::encode(
        MemoryType::Text,
        &[b'a', 0, 255],
        ExternalType::Char,
        &mut dst,
        &[0],
        rules,
    );
    assert!(report.unwrap().all_fit());
    assert_eq!(dst, [b'a', 0, 255]);
    assert_eq!(Values::from("é").text().unwrap(), "é");
    assert_eq!(Values::Char(vec![b'a', 255]).text().unwrap(), "a\u{fffd}");
    assert_eq!(Values::from(1i32).text(), None);
}

#[test]
fn buffers_of_different_counts_are_refused_and_untouched() {
    let rules = ConversionRules::default();
    for (from, to) in [(8, 4), (7, 4), (8, 3), (0, 2)] {
        let src = vec![0u8; from];
        let mut dst = vec![9u8; to];
        let got = values::decode(ExternalType::Int, &src, MemoryType::I16, &mut dst, rules);
        assert_eq!(got.is_ok(), from * 2 == to * 4, "{from} {to}");
        if got.is_err() {
            assert!(dst.iter().all(|b| *b == 9));
        }
    }
    let mut dst = [0u8; 2];
    let got = values::encode(MemoryType::I8, &[1], ExternalType::Short, &mut dst, &[0], rules);
    assert_eq!(got, Err(ConvertError::FillLength { external: ExternalType::Short, found: 1 }));
    assert_eq!(Values::decode(ExternalType::Double, usize::MAX / 2, &[0; 8]), None);
}

/// The constants of the specification ("fill values" of the classic format).
#[test]
fn default_fill_values_are_those_of_the_specification() {
    let bytes = |ty| default_fill_bytes(ty);
    assert_eq!(bytes(ExternalType::Char), [0x00]);
    assert_eq!(bytes(ExternalType::Byte), [0x81]);
    assert_eq!(bytes(ExternalType::Short), [0x80, 0x01]);
    assert_eq!(bytes(ExternalType::Int), [0x80, 0x00, 0x00, 0x01]);
    assert_eq!(bytes(ExternalType::Float), [0x7C, 0xF0, 0x00, 0x00]);
    assert_eq!(bytes(ExternalType::Double), [0x47, 0x9E, 0, 0, 0, 0, 0, 0]);
    assert_eq!(bytes(ExternalType::UByte), [255]);
    assert_eq!(bytes(ExternalType::UShort), [255, 255]);
    assert_eq!(bytes(ExternalType::UInt), [255, 255, 255, 255]);
    assert_eq!(bytes(ExternalType::Int64), [0x80, 0, 0, 0, 0, 0, 0, 0x02]);
    assert_eq!(bytes(ExternalType::UInt64), [255, 255, 255, 255, 255, 255, 255, 254]);
    assert_eq!(default_fill(ExternalType::Double).get_f64(0), Some(9.969_209_968_386_869e36));
}

#[test]
fn a_fill_value_counts_only_as_one_value_of_the_variables_type() {
    let mut schema = esker_format::Schema::new(Version::Cdf1);
    let var = schema.add_var("t", ExternalType::Short, &[]).unwrap();
    let fill = |s: &esker_format::Schema| values::fill_value(s.variable(var).unwrap());
    assert_eq!(fill(&schema), Values::from(-32767i16));
    for (attr, wanted) in [
        (Values::from(-9i16), -9i16),
        (Values::from(-9i32), -32767),
        (Values::from([1i16, 2]), -32767),
    ] {
        schema.put_attr(var.into(), "_FillValue", attr).unwrap();
        assert_eq!(fill(&schema), Values::from(wanted));
    }
}

#[test]
fn a_report_names_the_first_value_that_does_not_fit() {
    let src: Vec<i32> = (0..2000).map(|i| if i >= 1500 { 70000 } else { i }).collect();
    let mut dst = vec![0u8; 4000];
    let mut report = values::encode(
        MemoryType::I32,
        bytemuck::cast_slice(&src),
        ExternalType::Short,
        &mut dst,
        &[0xAB, 0xCD],
        ConversionRules::default(),
    )
    .unwrap();
    assert_eq!(&dst[2998..3002], &[0x05, 0xDB, 0xAB, 0xCD]);
    let sentence = "500 of 2000 values are out of the range of short; \
                    the first is 70000, at index 1500";
    assert_eq!(report.to_string(), sentence);
    let mut whole = RangeReport { elements: 10, ..RangeReport::default() };
    whole.append(report);
    assert_eq!(whole.first.unwrap().index, 1510);
    report.append(whole);
    assert_eq!((report.elements, report.out_of_range), (4010, 1000));
    assert_eq!(report.first.unwrap().value, Scalar::I(70000));
}

#[test]
fn an_attribute_converts_or_says_why_not() {
    assert_eq!(Values::from([1i16, -2]).convert_to::<f64>().unwrap(), [1.0, -2.0]);
    let error = Values::from([1.0f64, 1e300]).convert_to::<f32>().unwrap_err();
    assert_eq!(
        error.to_string(),
        "1 of 2 values are out of the range of f32; the first is 1e300, at index 1"
    );
    let bits = Values::Byte(vec![-1]).convert_with::<u8>(ConversionRules::of(Version::Cdf2));
    assert_eq!(bits.unwrap().0, [255]);
    assert!(Values::Byte(vec![-1]).convert_to::<u8>().is_err());
}

#[test]
fn scalars_compare_exactly() {
    assert!(Scalar::I(-1) < Scalar::U(u64::MAX));
    assert!(Scalar::U(u64::MAX) < Scalar::F64(18446744073709551616.0));
    assert!(Scalar::I(i64::MAX) < Scalar::F64(9223372036854775808.0));
    assert!(Scalar::I(i64::MIN) == Scalar::F64(-9223372036854775808.0));
    assert!(Scalar::I(-1) > Scalar::F64(-1.5) && Scalar::I(-2) < Scalar::F64(-1.5));
    assert!(Scalar::U(0) < Scalar::F64(f64::INFINITY));
    assert!(Scalar::F32(0.1) > Scalar::F64(0.1));
    assert!(Scalar::F64(f64::NAN) != Scalar::F64(f64::NAN));
    assert!(Scalar::Char(b'1') != Scalar::I(49));
}
