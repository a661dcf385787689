//! The attribute `C_format`: a printf format that a variable wants its values printed with.
//!
//! ncdump hands it to printf as it is, whatever it says. Here it is parsed: one conversion that
//! suits the variable's type, with text around it; anything else is not a format, and the
//! variable is printed as if it had none.

use super::decimal::{put_general, put_i64, put_u64};

/// One conversion with the text around it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct CFormat {
    before: Vec<u8>,
    after: Vec<u8>,
    left: bool,
    plus: bool,
    space: bool,
    alternate: bool,
    zero: bool,
    width: usize,
    precision: Option<usize>,
    conversion: u8,
}

/// A value to print.
#[derive(Debug, Clone, Copy)]
pub(super) enum Number {
    Signed(i64),
    Unsigned(u64),
    Float(f64),
}

/// printf's output for one value is at most this long in ncdump.
const MOST: usize = 100;

impl CFormat {
    /// The format, when it is one for floats (`float`) or for integers.
    pub(super) fn parse(text: &[u8], float: bool) -> Option<CFormat> {
        let (before, rest) = literal(text);
        let mut rest = rest.strip_prefix(b"%")?;
        let mut format = CFormat {
            before,
            after: Vec::new(),
            left: false,
            plus: false,
            space: false,
            alternate: false,
            zero: false,
            width: 0,
            precision: None,
            conversion: 0,
        };
        while let [flag, tail @ ..] = rest {
            match flag {
                b'-' => format.left = true,
                b'+' => format.plus = true,
                b' ' => format.space = true,
                b'#' => format.alternate = true,
                b'0' => format.zero = true,
                _ => break,
            }
            rest = tail;
        }
        (format.width, rest) = digits(rest)?;
        if let [b'.', tail @ ..] = rest {
            let (precision, tail) = digits(tail)?;
            format.precision = Some(precision);
            rest = tail;
        }
        while let [b'h' | b'l' | b'L' | b'q' | b'j' | b'z' | b't', tail @ ..] = rest {
            rest = tail;
        }
        let (&conversion, rest) = rest.split_first()?;
        let suits = if float {
            matches!(conversion, b'f' | b'F' | b'e' | b'E' | b'g' | b'G')
        } else {
            matches!(conversion, b'd' | b'i' | b'u' | b'x' | b'X' | b'o' | b'c')
        };
        let (after, rest) = literal(rest);
        if !suits || !rest.is_empty() {
            return None;
        }
        format.conversion = conversion;
        format.after = after;
        Some(format)
    }

    /// Appends the value.
    pub(super) fn put(&self, out: &mut Vec<u8>, number: Number) {
        out.extend_from_slice(&self.before);
        let (negative, mut body) = match number {
            Number::Signed(v) => (v < 0, self.integer(v.unsigned_abs(), v as u64)),
            Number::Unsigned(v) => (false, self.integer(v, v)),
            Number::Float(v) => (v.is_sign_negative(), self.float(v.abs())),
        };
        let signed = matches!(self.conversion, b'd' | b'i') || matches!(number, Number::Float(_));
        let sign: &[u8] = match () {
            _ if signed && negative => b"-",
            _ if signed && self.plus => b"+",
            _ if signed && self.space => b" ",
            _ => b"",
        };
        let pad = self.width.saturating_sub(sign.len() + body.len());
        let zeros = self.zero
            && !self.left
            && (matches!(number, Number::Float(_)) || self.precision.is_none());
        if zeros {
            out.extend_from_slice(sign);
            out.resize(out.len() + pad, b'0');
            out.append(&mut body);
        } else if self.left {
            out.extend_from_slice(sign);
            out.append(&mut body);
            out.resize(out.len() + pad, b' ');
        } else {
            out.resize(out.len() + pad, b' ');
            out.extend_from_slice(sign);
            out.append(&mut body);
        }
        out.extend_from_slice(&self.after);
    }

    fn integer(&self, magnitude: u64, bits: u64) -> Vec<u8> {
        // ncdump passes bytes, shorts and ints as C's int: 32 bits of it are seen.
        let narrow =
            if i64::from(bits as i32) == bits as i64 { u64::from(bits as u32) } else { bits };
        let mut body = match self.conversion {
            b'c' => return vec![bits as u8],
            b'x' => format!("{narrow:x}").into_bytes(),
            b'X' => format!("{narrow:X}").into_bytes(),
            b'o' => format!("{narrow:o}").into_bytes(),
            b'u' => narrow.to_string().into_bytes(),
            _ => magnitude.to_string().into_bytes(),
        };
        if let Some(least) = self.precision
            && body.len() < least
        {
            let mut padded = vec![b'0'; least - body.len()];
            padded.append(&mut body);
            body = padded;
        }
        if self.alternate && narrow != 0 {
            let prefix: &[u8] = match self.conversion {
                b'x' => b"0x",
                b'X' => b"0X",
                b'o' => b"0",
                _ => b"",
            };
            body.splice(..0, prefix.iter().copied());
        }
        body
    }

    fn float(&self, value: f64) -> Vec<u8> {
        let precision = self.precision.unwrap_or(6);
        let mut body = match self.conversion {
            b'f' | b'F' => {
                let mut text = format!("{value:.precision$}");
                if self.alternate && precision == 0 {
                    text.push('.');
                }
                text.into_bytes()
            }
            b'e' | b'E' => {
                let text = format!("{value:.precision$e}");
                let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
                let exponent: i32 = exponent.parse().unwrap_or(0);
                let dot = if self.alternate && precision == 0 { "." } else { "" };
                let sign = if exponent < 0 { '-' } else { '+' };
                format!("{mantissa}{dot}e{sign}{:02}", exponent.unsigned_abs()).into_bytes()
            }
            _ if self.alternate => alternate_general(value, precision.max(1)),
            _ => {
                let mut body = Vec::new();
                put_general(&mut body, value, precision, false);
                body
            }
        };
        if self.conversion.is_ascii_uppercase() {
            body.make_ascii_uppercase();
        }
        body
    }
}

/// `%#g`, which keeps its zeros.
fn alternate_general(value: f64, precision: usize) -> Vec<u8> {
    let mut body = Vec::new();
    put_general(&mut body, value, precision, true);
    let (mantissa, exponent) = match body.iter().position(|&b| b == b'e') {
        Some(at) => body.split_at(at),
        None => (&body[..], &[][..]),
    };
    let leading = mantissa.iter().take_while(|b| matches!(b, b'0' | b'.')).count();
    let shown = mantissa[leading..].iter().filter(|b| b.is_ascii_digit()).count();
    let missing = if value == 0.0 { precision - 1 } else { precision.saturating_sub(shown) };
    let mut padded = mantissa.to_vec();
    padded.resize(padded.len() + missing, b'0');
    padded.extend_from_slice(exponent);
    padded
}

/// Text up to a conversion, `%%` as one sign, and what follows.
fn literal(text: &[u8]) -> (Vec<u8>, &[u8]) {
    let mut out = Vec::new();
    let mut rest = text;
    loop {
        match rest {
            [b'%', b'%', tail @ ..] => {
                out.push(b'%');
                rest = tail;
            }
            [b'%', ..] | [] => return (out, rest),
            // A zero ends the format for printf.
            [0, ..] => return (out, &[]),
            [byte, tail @ ..] => {
                out.push(*byte);
                rest = tail;
            }
        }
    }
}

fn digits(text: &[u8]) -> Option<(usize, &[u8])> {
    let end = text.iter().position(|b| !b.is_ascii_digit()).unwrap_or(text.len());
    let (number, rest) = text.split_at(end);
    let mut value = 0usize;
    for digit in number {
        value = value * 10 + usize::from(digit - b'0');
        if value > MOST {
            return None;
        }
    }
    Some((value, rest))
}

/// Appends the value as it is printed without a format of its own.
pub(super) fn put_plain(out: &mut Vec<u8>, number: Number, precision: usize) {
    match number {
        Number::Signed(v) => put_i64(out, v),
        Number::Unsigned(v) => put_u64(out, v),
        Number::Float(v) => put_general(out, v, precision, false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(format: &str, number: Number) -> Option<String> {
        let float = matches!(number, Number::Float(_));
        let mut out = Vec::new();
        CFormat::parse(format.as_bytes(), float)?.put(&mut out, number);
        Some(String::from_utf8(out).unwrap())
    }

    #[test]
    fn conversions_do_what_printf_does() {
        // From printf(3) of glibc.
        for (format, number, text) in [
            ("%6.2f", Number::Float(3.1459), "  3.15"),
            ("%-8.1f|", Number::Float(-2.25), "-2.2    |"),
            ("%08.3e", Number::Float(12345.678), "1.235e+04"),
            ("%+g", Number::Float(0.5), "+0.5"),
            ("%#.4g", Number::Float(1.0), "1.000"),
            ("%#.4g", Number::Float(0.25), "0.2500"),
            ("%.0f", Number::Float(2.5), "2"),
            ("%5d", Number::Signed(-42), "  -42"),
            ("%05d", Number::Signed(-42), "-0042"),
            ("%x", Number::Signed(-1), "ffffffff"),
            ("%#o", Number::Signed(8), "010"),
            ("%.3d m%%", Number::Signed(7), "007 m%"),
            ("%ld", Number::Signed(7), "7"),
        ] {
            assert_eq!(shown(format, number).as_deref(), Some(text), "{format}");
        }
    }

    #[test]
    fn what_is_not_one_suitable_conversion_is_no_format() {
        for format in ["", "%", "%s", "%d", "%f %f", "%*f", "%999f", "f8.2"] {
            assert_eq!(shown(format, Number::Float(1.0)), None, "{format}");
        }
    }
}
