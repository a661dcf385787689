//! Numeric constants: what a literal means before it is known what for.

use esker_format::ExternalType;

/// A constant with the type that its spelling gives it.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Constant {
    /// An integer. The type is that of its suffix, or the first of int, uint, int64, uint64
    /// that holds it.
    Integer(i128, ExternalType),
    /// With the suffix `f`.
    Float(f32),
    /// Any other number with a point or an exponent.
    Double(f64),
    /// A string.
    Text(Vec<u8>),
    /// A character constant. It is a byte where a number is wanted.
    Char(u8),
    /// `_`.
    Fill,
}

/// Why a literal is no constant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NotConstant {
    /// It is not a number at all.
    Spelling,
    /// No type of its suffix's size holds it.
    Range(&'static str),
}

/// The constant that a number or a word such as `NaN` spells.
pub(super) fn number(literal: &[u8]) -> Result<Constant, NotConstant> {
    if let Some(special) = special(literal) {
        return Ok(special);
    }
    let (negative, digits) = match literal {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, literal),
    };
    if !digits.first().is_some_and(|b| b.is_ascii_digit() || *b == b'.') {
        return Err(NotConstant::Spelling);
    }
    let hex = digits.len() > 2 && digits[0] == b'0' && matches!(digits[1], b'x' | b'X');
    if !hex && digits.iter().any(|b| matches!(b, b'.' | b'e' | b'E' | b'f' | b'F' | b'd' | b'D')) {
        return floating(literal);
    }
    let (magnitude, suffix) = if hex {
        // Hexadecimal digits include b, so that the suffixes of bytes need a `u` before them.
        let end = digits[2..].iter().position(|b| !b.is_ascii_hexdigit());
        let (body, suffix) = digits[2..].split_at(end.unwrap_or(digits.len() - 2));
        (radix(body, 16)?, suffix)
    } else {
        let end = digits.iter().position(|b| !b.is_ascii_digit()).unwrap_or(digits.len());
        let (body, suffix) = digits.split_at(end);
        let octal = body.len() > 1 && body[0] == b'0' && body.iter().all(|b| *b < b'8');
        (radix(body, if octal { 8 } else { 10 })?, suffix)
    };
    let value = if negative { -magnitude } else { magnitude };
    integer(value, suffix)
}

fn special(literal: &[u8]) -> Option<Constant> {
    let (negative, word) = match literal {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, literal),
    };
    let single = |v: f32| Constant::Float(if negative { -v } else { v });
    let double = |v: f64| Constant::Double(if negative { -v } else { v });
    Some(match word {
        b"NaN" | b"nan" => Constant::Double(f64::NAN),
        b"NaNf" | b"nanf" => Constant::Float(f32::NAN),
        b"Infinity" | b"infinity" | b"Inf" | b"inf" | b"DoubleInf" => double(f64::INFINITY),
        b"Infinityf" | b"infinityf" | b"Inff" | b"inff" | b"FloatInf" => single(f32::INFINITY),
        _ => return None,
    })
}

fn floating(literal: &[u8]) -> Result<Constant, NotConstant> {
    let (body, single) = match literal {
        [body @ .., b'f' | b'F'] => (body, true),
        [body @ .., b'd' | b'D' | b'l' | b'L'] => (body, false),
        body => (body, false),
    };
    if single { float(body).map(Constant::Float) } else { double(body).map(Constant::Double) }
}

/// A decimal number without suffix as a float, rounded once.
pub(super) fn float(body: &[u8]) -> Result<f32, NotConstant> {
    let value: f32 = plain(body)?.parse().map_err(|_| NotConstant::Spelling)?;
    if value.is_finite() { Ok(value) } else { Err(NotConstant::Range("float")) }
}

/// A decimal number without suffix as a double.
pub(super) fn double(body: &[u8]) -> Result<f64, NotConstant> {
    let value: f64 = plain(body)?.parse().map_err(|_| NotConstant::Spelling)?;
    if value.is_finite() { Ok(value) } else { Err(NotConstant::Range("double")) }
}

/// The text, when it can only be a decimal number (`parse` would also take words).
fn plain(body: &[u8]) -> Result<&str, NotConstant> {
    let unsigned = body.strip_prefix(b"-").or(body.strip_prefix(b"+")).unwrap_or(body);
    if !unsigned.first().is_some_and(|b| b.is_ascii_digit() || *b == b'.') {
        return Err(NotConstant::Spelling);
    }
    std::str::from_utf8(body).map_err(|_| NotConstant::Spelling)
}

fn radix(digits: &[u8], radix: u32) -> Result<i128, NotConstant> {
    let mut value = 0i128;
    for &digit in digits {
        let digit = char::from(digit).to_digit(radix).ok_or(NotConstant::Spelling)?;
        value = value * i128::from(radix) + i128::from(digit);
        if value > i128::from(u64::MAX) {
            return Err(NotConstant::Range("uint64"));
        }
    }
    if digits.is_empty() { Err(NotConstant::Spelling) } else { Ok(value) }
}

/// The integer with its suffix. `b` and `s` are signed but may spell the bits of the unsigned
/// type of their size, as 200b for -56.
fn integer(value: i128, suffix: &[u8]) -> Result<Constant, NotConstant> {
    let within = |low: i128, high: i128, ty: ExternalType| {
        if (low..=high).contains(&value) {
            Ok(Constant::Integer(value, ty))
        } else {
            Err(NotConstant::Range(ty.cdl_name()))
        }
    };
    let signed = |bits: u32, ty: ExternalType| {
        let size = 1i128 << bits;
        let value = if (size / 2..size).contains(&value) { value - size } else { value };
        if (-size / 2..size / 2).contains(&value) {
            Ok(Constant::Integer(value, ty))
        } else {
            Err(NotConstant::Range(ty.cdl_name()))
        }
    };
    match suffix.to_ascii_lowercase().as_slice() {
        b"" => {
            let ty = match value {
                _ if i32::try_from(value).is_ok() => ExternalType::Int,
                _ if u32::try_from(value).is_ok() => ExternalType::UInt,
                _ if i64::try_from(value).is_ok() => ExternalType::Int64,
                _ if u64::try_from(value).is_ok() => ExternalType::UInt64,
                _ => return Err(NotConstant::Range("int64")),
            };
            Ok(Constant::Integer(value, ty))
        }
        b"b" => signed(8, ExternalType::Byte),
        b"s" => signed(16, ExternalType::Short),
        b"l" => within(i32::MIN.into(), i32::MAX.into(), ExternalType::Int),
        b"ll" => within(i64::MIN.into(), i64::MAX.into(), ExternalType::Int64),
        b"ub" => within(0, u8::MAX.into(), ExternalType::UByte),
        b"us" => within(0, u16::MAX.into(), ExternalType::UShort),
        b"u" | b"ul" => within(0, u32::MAX.into(), ExternalType::UInt),
        b"ull" => within(0, u64::MAX.into(), ExternalType::UInt64),
        _ => Err(NotConstant::Spelling),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ExternalType::*;

    #[test]
    fn integers_are_exact_and_typed_by_suffix_and_size() {
        for (text, value, ty) in [
            ("0", 0, Int),
            ("-2147483648", -2147483648, Int),
            ("3000000000", 3000000000, UInt),
            ("-3000000000", -3000000000, Int64),
            ("9223372036854775807", 9223372036854775807, Int64),
            ("18446744073709551615", 18446744073709551615, UInt64),
            ("-9223372036854775808LL", -9223372036854775808, Int64),
            ("1b", 1, Byte),
            ("200b", -56, Byte),
            ("40000s", -25536, Short),
            ("7L", 7, Int),
            ("255UB", 255, UByte),
            ("1us", 1, UShort),
            ("4294967295u", 4294967295, UInt),
            ("18446744073709551615ULL", 18446744073709551615, UInt64),
            ("0x10", 16, Int),
            ("0XffL", 255, Int),
            ("010", 8, Int),
            ("-010", -8, Int),
            ("089", 89, Int),
            ("+5", 5, Int),
        ] {
            assert_eq!(number(text.as_bytes()), Ok(Constant::Integer(value, ty)), "{text}");
        }
    }

    #[test]
    fn numbers_with_a_point_are_double_or_float() {
        for (text, value) in
            [("1.", 1.0), (".5", 0.5), ("-.5e-3", -0.0005), ("1e3", 1e3), ("2.5D", 2.5)]
        {
            assert_eq!(number(text.as_bytes()), Ok(Constant::Double(value)), "{text}");
        }
        for (text, value) in [("1.f", 1.0f32), ("1e3f", 1e3), ("1f", 1.0), ("0.1F", 0.1)] {
            assert_eq!(number(text.as_bytes()), Ok(Constant::Float(value)), "{text}");
        }
        assert_eq!(number(b"-Infinity"), Ok(Constant::Double(f64::NEG_INFINITY)));
        assert_eq!(number(b"-Inff"), Ok(Constant::Float(f32::NEG_INFINITY)));
        assert!(matches!(number(b"NaNf"), Ok(Constant::Float(v)) if v.is_nan()));
    }

    #[test]
    fn what_does_not_fit_is_not_bent() {
        for text in [
            "300b",
            "-129b",
            "70000s",
            "3000000000L",
            "18446744073709551616",
            "1e400",
            "1e39f",
            "9223372036854775808LL",
            "256ub",
        ] {
            assert!(matches!(number(text.as_bytes()), Err(NotConstant::Range(_))), "{text}");
        }
        for text in ["1e", "1x", "--1", "", ".", "1.2.3", "1bb", "0x", "-", "infx", "1_000"] {
            assert_eq!(number(text.as_bytes()), Err(NotConstant::Spelling), "{text}");
        }
    }
}
