//! JSON for other programs: one document on standard output.

use std::io::{self, Write};

use esker::{Scalar, Values};
use serde::Serialize;
use serde_json::{Number, Value};

use crate::failure::Failure;

/// Writes one document, indented, with a newline at its end.
pub(crate) fn write(out: &mut impl Write, document: &impl Serialize) -> Result<(), Failure> {
    serde_json::to_writer_pretty(Escaping(&mut *out), document)?;
    writeln!(out)?;
    Ok(())
}

/// Writes what a terminal would obey and JSON leaves as it is (C1, marks of direction) as `\u009b`, which means
/// the same to every reader.
struct Escaping<W>(W);

impl<W: Write> Write for Escaping<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // The line breaks of the document itself are no part of a string.
        let is_obeyed = |c: char| !c.is_ascii() && esker_text::is_obeyed(c);
        // serde_json writes strings in whole characters.
        let Some(text) = str::from_utf8(bytes).ok().filter(|text| text.contains(is_obeyed)) else {
            self.0.write_all(bytes)?;
            return Ok(bytes.len());
        };
        let mut escaped = String::with_capacity(text.len() + 16);
        for c in text.chars() {
            match is_obeyed(c) {
                true => c.encode_utf16(&mut [0; 2]).iter().for_each(|unit| {
                    escaped.push_str(&format!("\\u{unit:04x}"));
                }),
                false => escaped.push(c),
            }
        }
        self.0.write_all(escaped.as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// A number; JSON has no NaN and no infinity, so these are strings.
pub(crate) fn float(value: f64) -> Value {
    match Number::from_f64(value) {
        Some(number) => Value::Number(number),
        None if value.is_nan() => Value::from("NaN"),
        None if value > 0.0 => Value::from("Infinity"),
        None => Value::from("-Infinity"),
    }
}

/// A single-precision number with the few digits that tell it from its neighbours.
pub(crate) fn single(value: f32) -> Value {
    float(value.to_string().parse().unwrap_or(f64::from(value)))
}

/// One value.
pub(crate) fn scalar(value: Scalar) -> Value {
    match value {
        Scalar::I(x) => Value::from(x),
        Scalar::U(x) => Value::from(x),
        Scalar::F32(x) => single(x),
        Scalar::F64(x) => float(x),
        Scalar::Char(byte) => Value::from(char::from(byte).to_string()),
    }
}

/// An attribute's values: text as a string, one number as itself, several as a list.
pub(crate) fn values(values: &Values) -> Value {
    if let Values::Char(text) = values {
        // C programs often store the zero at the end of their strings.
        let text = text.strip_suffix(&[0]).unwrap_or(text);
        return Value::from(String::from_utf8_lossy(text));
    }
    let list: Vec<Value> = (0..values.len()).filter_map(|i| values.get(i)).map(scalar).collect();
    match <[Value; 1]>::try_from(list) {
        Ok([one]) => one,
        Err(list) => Value::Array(list),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_hold_nothing_that_a_terminal_obeys_and_mean_the_same() {
        let text = "a\u{9b}31m\u{202e}\u{e0001}\u{1b}\nä";
        let mut out = Vec::new();
        write(&mut out, &text).ok().unwrap();
        let written = String::from_utf8(out).unwrap();
        assert!(!written.trim_end().contains(esker_text::is_obeyed), "{written:?}");
        assert_eq!(serde_json::from_str::<String>(&written).unwrap(), text);
    }

    #[test]
    fn numbers_keep_their_digits() {
        assert_eq!(single(0.1).to_string(), "0.1");
        assert_eq!(float(f64::NAN).to_string(), "\"NaN\"");
        assert_eq!(float(f64::NEG_INFINITY).to_string(), "\"-Infinity\"");
        assert_eq!(values(&Values::Int64(vec![i64::MAX])).to_string(), "9223372036854775807");
        assert_eq!(values(&Values::Short(vec![1, 2])).to_string(), "[1,2]");
        assert_eq!(values(&Values::Char(b"K\0".to_vec())).to_string(), "\"K\"");
    }
}
