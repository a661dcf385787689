//! Numbers as decimal digits: exactly what C's `%d`, `%u` and `%.Ng` give, without formatting
//! machinery in the way.
//!
//! Floats take a fast road: the value times a power of ten as a 128-bit product with a known
//! error. Its integer part is the digits; only when the rest lies too near one half to decide
//! (once in thousands of values at 15 digits, practically never at 7) the exact formatter of
//! the standard library decides.

use std::sync::OnceLock;

/// The most digits that the fast road serves: 10^17 and the fraction fit 64 bits with room.
const FAST_DIGITS: usize = 17;

/// Appends an unsigned integer.
pub(super) fn put_u64(out: &mut Vec<u8>, value: u64) {
    let mut digits = [0u8; 20];
    let n = digits_of(value, &mut digits);
    out.extend_from_slice(&digits[20 - n..]);
}

/// Appends a signed integer.
pub(super) fn put_i64(out: &mut Vec<u8>, value: i64) {
    if value < 0 {
        out.push(b'-');
    }
    put_u64(out, value.unsigned_abs());
}

/// Writes the digits to the end of `buf` and gives their number.
fn digits_of(mut value: u64, buf: &mut [u8; 20]) -> usize {
    let mut at = 20;
    while value >= 100 {
        let pair = (value % 100) as usize * 2;
        value /= 100;
        at -= 2;
        buf[at] = PAIRS[pair];
        buf[at + 1] = PAIRS[pair + 1];
    }
    if value >= 10 {
        let pair = value as usize * 2;
        at -= 2;
        buf[at] = PAIRS[pair];
        buf[at + 1] = PAIRS[pair + 1];
    } else {
        at -= 1;
        buf[at] = b'0' + value as u8;
    }
    20 - at
}

const PAIRS: [u8; 200] = {
    let mut pairs = [0u8; 200];
    let mut i = 0;
    while i < 100 {
        pairs[2 * i] = b'0' + (i / 10) as u8;
        pairs[2 * i + 1] = b'0' + (i % 10) as u8;
        i += 1;
    }
    pairs
};

const POW10: [u64; 20] = {
    let mut powers = [1u64; 20];
    let mut i = 1;
    while i < 20 {
        powers[i] = powers[i - 1] * 10;
        i += 1;
    }
    powers
};

/// Appends a finite value as `%.{precision}g` does; with `point`, the decimal point stays even
/// when no digit follows it (`%#g` with the zeros after it removed).
pub(super) fn put_general(out: &mut Vec<u8>, value: f64, precision: usize, point: bool) {
    let precision = precision.max(1);
    if value.is_sign_negative() {
        out.push(b'-');
    }
    let value = value.abs();
    if value == 0.0 {
        out.push(b'0');
        if point {
            out.push(b'.');
        }
        return;
    }
    if precision <= FAST_DIGITS {
        let (n, exponent) = round_fast(value, precision).unwrap_or_else(|| {
            let (digits, exponent) = round_exact(value, precision);
            (digits.iter().fold(0, |n, d| n * 10 + u64::from(d - b'0')), exponent)
        });
        let mut buf = [0u8; 20];
        let len = digits_of(n, &mut buf);
        place(out, &buf[20 - len..], exponent, precision, point);
    } else {
        let (digits, exponent) = round_exact(value, precision);
        place(out, &digits, exponent, precision, point);
    }
}

/// Sets the digits (first one not zero) as `%g` does: plain, or with an exponent when that is
/// below -4 or not below the precision; zeros at the end of the fraction go.
fn place(out: &mut Vec<u8>, digits: &[u8], exponent: i32, precision: usize, point: bool) {
    let used = digits.iter().rposition(|&d| d != b'0').map_or(1, |p| p + 1);
    if exponent < -4 || exponent >= precision as i32 {
        out.push(digits[0]);
        if used > 1 || point {
            out.push(b'.');
        }
        out.extend_from_slice(&digits[1..used]);
        out.push(b'e');
        out.push(if exponent < 0 { b'-' } else { b'+' });
        let size = exponent.unsigned_abs();
        if size < 10 {
            out.push(b'0');
        }
        put_u64(out, u64::from(size));
    } else if exponent < 0 {
        out.extend_from_slice(b"0.");
        out.resize(out.len() + (-exponent - 1) as usize, b'0');
        out.extend_from_slice(&digits[..used]);
    } else {
        let whole = exponent as usize + 1;
        out.extend_from_slice(&digits[..whole.min(digits.len())]);
        if used > whole {
            out.push(b'.');
            out.extend_from_slice(&digits[whole..used]);
        } else if point {
            out.push(b'.');
        }
    }
}

/// The value rounded to `precision` digits, by the exact formatter.
fn round_exact(value: f64, precision: usize) -> (Vec<u8>, i32) {
    let text = format!("{:.*e}", precision - 1, value);
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let digits = mantissa.bytes().filter(|b| *b != b'.').collect();
    (digits, exponent.parse().unwrap_or(0))
}

/// The value rounded to `precision` digits as an integer of that many digits, and the decimal
/// exponent of its first digit; nothing when the product is too near one half to tell.
fn round_fast(value: f64, precision: usize) -> Option<(u64, i32)> {
    let bits = value.to_bits();
    let biased = (bits >> 52) as i32;
    let fraction = bits & ((1 << 52) - 1);
    let (mantissa, e2) =
        if biased == 0 { (fraction, -1074) } else { (fraction | 1 << 52, biased - 1075) };
    let shift = mantissa.leading_zeros();
    let mantissa = mantissa << shift;
    let e2 = e2 - shift as i32;
    // value lies in [2^(e2+63), 2^(e2+64)): the guess of its decimal exponent is right or one low.
    let mut e10 = ((i64::from(e2 + 63) * 1_292_913_986) >> 32) as i32;
    let limit = POW10[precision];
    loop {
        let power = power_of_ten(precision as i32 - 1 - e10);
        let product = u128::from(mantissa) * u128::from(power.mantissa);
        // The scaled value is product * 2^-drop, too small by less than mantissa * 2^-drop.
        let drop = -(e2 + power.exponent);
        if !(1..=127).contains(&drop) {
            return None;
        }
        let whole = (product >> drop) as u64;
        if whole >= limit {
            e10 += 1;
            continue;
        }
        let rest = product & ((1u128 << drop) - 1);
        let half = 1u128 << (drop - 1);
        let up = if power.exact {
            rest > half || (rest == half && whole & 1 == 1)
        } else if rest >= half {
            // True rest is above this one, so surely above half, unless exactly on it.
            if rest == half {
                return None;
            }
            true
        } else if rest + u128::from(mantissa) < half {
            false
        } else {
            return None;
        };
        let n = whole + u64::from(up);
        if n == limit {
            return Some((limit / 10, e10 + 1));
        }
        if n < limit / 10 {
            return None;
        }
        return Some((n, e10));
    }
}

/// 10^k as mantissa * 2^exponent, the mantissa rounded down to 64 bits.
#[derive(Clone, Copy)]
struct Power {
    mantissa: u64,
    exponent: i32,
    exact: bool,
}

/// Powers from 10^-LOW to 10^HIGH serve every double and every precision.
const LOW: i32 = 310;
const HIGH: i32 = 345;

fn power_of_ten(k: i32) -> Power {
    static POWERS: OnceLock<Vec<Power>> = OnceLock::new();
    let powers = POWERS.get_or_init(all_powers);
    let index = (k.clamp(-LOW, HIGH) + LOW) as usize;
    powers[index]
}

fn all_powers() -> Vec<Power> {
    // 2^2048 / 10^j: rounding down at each step is rounding down once.
    const BITS: i32 = 2048;
    let mut number = vec![0u32; BITS as usize / 32 + 1];
    if let Some(top) = number.last_mut() {
        *top = 1;
    }
    let mut powers = Vec::new();
    for _ in 0..LOW {
        let mut carry = 0u64;
        for limb in number.iter_mut().rev() {
            let part = carry << 32 | u64::from(*limb);
            *limb = (part / 10) as u32;
            carry = part % 10;
        }
        powers.push(top_bits(&number, -BITS, false));
    }
    powers.reverse();
    let mut number = vec![0u32; 40];
    number[0] = 1;
    for k in 0..=HIGH {
        // 10^27 = 2^27 * 5^27 is the last whose mantissa fits 64 bits.
        powers.push(top_bits(&number, 0, k <= 27));
        let mut carry = 0u64;
        for limb in number.iter_mut() {
            let part = u64::from(*limb) * 10 + carry;
            *limb = part as u32;
            carry = part >> 32;
        }
    }
    powers
}

/// The highest 64 bits of a number of little-endian limbs, times 2^scale.
fn top_bits(number: &[u32], scale: i32, exact: bool) -> Power {
    let top = number.iter().rposition(|&limb| limb != 0).unwrap_or(0);
    let limb = |i: usize| u128::from(number.get(i).copied().unwrap_or(0));
    let low = |back: usize| top.checked_sub(back).map_or(0, limb);
    let three = limb(top) << 64 | low(1) << 32 | low(2);
    let shift = 96 - (128 - three.leading_zeros());
    let window = three << 32 | low(3);
    let mantissa = (window << shift >> 64) as u64;
    Power { mantissa, exponent: scale + 32 * (top as i32 + 1) - 64 - shift as i32, exact }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn general(value: f64, precision: usize, point: bool) -> String {
        let mut out = Vec::new();
        put_general(&mut out, value, precision, point);
        String::from_utf8(out).unwrap()
    }

    /// `%.{precision}g` from the exact formatter alone.
    fn slow(value: f64, precision: usize) -> String {
        let mut out = Vec::new();
        if value.is_sign_negative() {
            out.push(b'-');
        }
        let (digits, exponent) = round_exact(value.abs(), precision);
        place(&mut out, &digits, exponent, precision, false);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn values_look_as_printf_makes_them() {
        // From printf(3) of glibc.
        for (value, precision, text) in [
            (0.0, 7, "0"),
            (-0.0, 7, "-0"),
            (1.0, 7, "1"),
            (100000.0, 7, "100000"),
            (1e7, 7, "1e+07"),
            (1234567.0, 7, "1234567"),
            (12345678.0, 7, "1.234568e+07"),
            (0.0001, 7, "0.0001"),
            (0.00001, 7, "1e-05"),
            (0.1f32 as f64, 7, "0.1"),
            (9999999.5, 7, "1e+07"),
            (9.969209968386869e36, 7, "9.96921e+36"),
            (2.5, 1, "2"),
            (3.5, 1, "4"),
            (1.2345665e17, 7, "1.234566e+17"),
            (1.2345675e17, 7, "1.234568e+17"),
            (5e-324, 15, "4.94065645841247e-324"),
            (f64::MAX, 15, "1.79769313486232e+308"),
            (0.1, 17, "0.10000000000000001"),
            (0.1, 20, "0.10000000000000000555"),
            (1e22, 20, "1e+22"),
        ] {
            assert_eq!(general(value, precision, false), text);
        }
        assert_eq!(general(1.0, 7, true), "1.");
        assert_eq!(general(0.0, 7, true), "0.");
        assert_eq!(general(1e10, 7, true), "1.e+10");
        assert_eq!(general(1.5e10, 7, true), "1.5e+10");
        assert_eq!(general(0.25, 7, true), "0.25");
    }

    #[test]
    fn integers_have_all_their_digits() {
        for value in [0, 9, 10, 99, 100, 12345, i64::MAX, i64::MIN, -1] {
            let mut out = Vec::new();
            put_i64(&mut out, value);
            assert_eq!(out, value.to_string().as_bytes());
        }
        let mut out = Vec::new();
        put_u64(&mut out, u64::MAX);
        assert_eq!(out, b"18446744073709551615");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20_000))]
        #[test]
        fn the_fast_road_ends_where_the_exact_one_does(bits: u64, precision in 1usize..=17) {
            let value = f64::from_bits(bits);
            prop_assume!(value.is_finite() && value != 0.0);
            prop_assert_eq!(general(value, precision, false), slow(value, precision));
        }

        #[test]
        fn floats_too(bits: u32, precision in 1usize..=9) {
            let value = f64::from(f32::from_bits(bits));
            prop_assume!(value.is_finite() && value != 0.0);
            prop_assert_eq!(general(value, precision, false), slow(value, precision));
        }

        #[test]
        fn short_decimals_too(n in 1u64..10_000_000_000, scale in -30i32..30, p in 1usize..=17) {
            let value: f64 = format!("{n}e{scale}").parse().unwrap();
            prop_assert_eq!(general(value, p, false), slow(value, p));
        }
    }
}
