//! What Zarr's metadata (version 2) say of a group, an array and its attributes.

use std::io::{self, Write};

use esker::{Attribute, ExternalType, Scalar, Schema, Values, Variable};
use esker_format::chunked;

use super::array::Array;

/// A group of format 2.
pub(super) const GROUP: &str = r#"{"zarr_format":2}"#;

/// The attribute by which xarray knows the names of dimensions.
const DIMENSIONS: &str = "_ARRAY_DIMENSIONS";
const FILL_VALUE: &str = "_FillValue";

/// Text between quotes.
pub(super) fn quoted(text: &str) -> String {
    let text = serde_json::Value::from(text).to_string();
    // C1 and marks of direction, which a terminal would obey, mean the same as escapes.
    if !text.contains(esker_text::is_obeyed) {
        return text;
    }
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match esker_text::is_obeyed(c) {
            true => c.encode_utf16(&mut [0; 2]).iter().for_each(|unit| {
                escaped.push_str(&format!("\\u{unit:04x}"));
            }),
            false => escaped.push(c),
        }
    }
    escaped
}

/// The text of `.zarray`.
pub(super) fn array(array: &Array) -> String {
    let Array { shape, chunk, ty, codecs, .. } = array;
    let (filters, compressor) = (&codecs.filters, &codecs.compressor);
    let (dtype, fill) = (dtype(*ty), fill_value(array.fill.as_ref()));
    format!(
        "{{\"shape\":{shape:?},\"chunks\":{chunk:?},\"dtype\":\"{dtype}\",\"fill_value\":{fill},\
         \"order\":\"C\",\"filters\":{filters},\"compressor\":{compressor},\
         \"dimension_separator\":\".\",\"zarr_format\":2}}"
    )
}

/// The text of the `.zattrs` of a variable.
pub(super) fn variable_attributes(
    schema: &Schema,
    variable: &Variable,
    is_chunked: bool,
) -> String {
    let names = variable.dims.iter().filter_map(|dim| schema.dims.at(dim.0));
    let names: Vec<String> = names.map(|dim| quoted(&dim.name)).collect();
    let dimensions = (quoted(DIMENSIONS), format!("[{}]", names.join(",")));
    let fill = own_fill(variable).is_some();
    let others = variable.attrs.iter().filter(|attribute| match &*attribute.name {
        // xarray has it from the array's own fill value.
        FILL_VALUE => !fill,
        // Said by the array's own metadata.
        chunked::SHAPE | chunked::FILTERS => !is_chunked,
        name => name != DIMENSIONS,
    });
    object(std::iter::once(dimensions).chain(others.map(pair)))
}

/// The text of the `.zattrs` of the group.
pub(super) fn group_attributes(schema: &Schema) -> String {
    object(schema.attrs.iter().map(pair))
}

/// The fill value that the variable says it has, by the rules of netCDF.
pub(super) fn own_fill(variable: &Variable) -> Option<&Values> {
    let values = &variable.attrs.get(FILL_VALUE)?.values;
    (values.ty() == variable.ty && values.len() == 1).then_some(values)
}

fn object(pairs: impl Iterator<Item = (String, String)>) -> String {
    let pairs: Vec<String> = pairs.map(|(name, value)| format!("{name}:{value}")).collect();
    format!("{{{}}}", pairs.join(","))
}

fn pair(attribute: &Attribute) -> (String, String) {
    (quoted(&attribute.name), attribute_value(&attribute.values))
}

/// Text as a string, one number as itself, several as a list.
fn attribute_value(values: &Values) -> String {
    if let Values::Char(text) = values {
        // C programs often store the zero at the end of their strings.
        let end = text.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
        return quoted(&String::from_utf8_lossy(&text[..end]));
    }
    let list: Vec<String> =
        (0..values.len()).filter_map(|i| values.get(i)).map(|value| number(value, "")).collect();
    match <[String; 1]>::try_from(list) {
        Ok([one]) => one,
        Err(list) => format!("[{}]", list.join(",")),
    }
}

/// The value of `fill_value`: NaN and infinities are strings, bytes are base64.
fn fill_value(fill: Option<&Values>) -> String {
    match fill {
        None => "null".into(),
        Some(Values::Char(bytes)) => {
            let mut text = Vec::new();
            // Memory takes everything.
            let _ = base64(&mut text, bytes);
            quoted(&String::from_utf8_lossy(&text))
        }
        Some(values) => values.get(0).map_or("null".into(), |value| number(value, "\"")),
    }
}

/// A number with all of its digits. What JSON has no number for stands as Python's json writes
/// and reads it, between `quotes`.
fn number(value: Scalar, quotes: &str) -> String {
    let real = |x: f64| match x {
        x if x.is_nan() => format!("{quotes}NaN{quotes}"),
        f64::INFINITY => format!("{quotes}Infinity{quotes}"),
        f64::NEG_INFINITY => format!("{quotes}-Infinity{quotes}"),
        x => serde_json::Value::from(x).to_string(),
    };
    match value {
        Scalar::I(x) => x.to_string(),
        Scalar::U(x) => x.to_string(),
        // The exact value: 0.1f is not 0.1.
        Scalar::F32(x) => real(x.into()),
        Scalar::F64(x) => real(x),
        Scalar::Char(byte) => byte.to_string(),
    }
}

/// Bytes as letters.
pub(super) fn base64(out: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for part in bytes.chunks(3) {
        let byte = |i: usize| u32::from(part.get(i).copied().unwrap_or(0));
        let word = byte(0) << 16 | byte(1) << 8 | byte(2);
        let mut digits = [18, 12, 6, 0].map(|shift| DIGITS[(word >> shift & 63) as usize]);
        digits[part.len() + 1..].fill(b'=');
        out.write_all(&digits)?;
    }
    Ok(())
}

/// numpy's name of a type as it stands in the file.
pub(super) fn dtype(ty: ExternalType) -> &'static str {
    match ty {
        ExternalType::Byte => "|i1",
        ExternalType::Char => "|S1",
        ExternalType::UByte => "|u1",
        ExternalType::Short => ">i2",
        ExternalType::UShort => ">u2",
        ExternalType::Int => ">i4",
        ExternalType::UInt => ">u4",
        ExternalType::Int64 => ">i8",
        ExternalType::UInt64 => ">u8",
        ExternalType::Float => ">f4",
        ExternalType::Double => ">f8",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_keep_all_of_their_digits() {
        let text = |values: Values| attribute_value(&values);
        assert_eq!(
            text(Values::Int64(vec![i64::MIN, i64::MAX])),
            format!("{:?}", [i64::MIN, i64::MAX]).replace(' ', "")
        );
        assert_eq!(text(Values::UInt64(vec![u64::MAX])), u64::MAX.to_string());
        assert_eq!(text(Values::Float(vec![0.1])), "0.10000000149011612");
        assert_eq!(text(Values::Double(vec![1.0])), "1.0");
        assert_eq!(text(Values::Double(vec![f64::NAN, -1e300])), "[NaN,-1e+300]");
        assert_eq!(text(Values::Char(b"a\"b\n\0".to_vec())), r#""a\"b\n""#);
        assert_eq!(text(Values::Short(vec![])), "[]");
    }

    #[test]
    fn fill_values_are_written_as_zarr_does() {
        // From zarr-python's encode_fill_value and from_json_scalar.
        let text = |values: Values| fill_value(Some(&values));
        assert_eq!(text(Values::Float(vec![f32::NAN])), "\"NaN\"");
        assert_eq!(text(Values::Double(vec![f64::NEG_INFINITY])), "\"-Infinity\"");
        assert_eq!(text(Values::Char(b"*".to_vec())), "\"Kg==\"");
        assert_eq!(text(Values::Char(vec![0xff])), "\"/w==\"");
        assert_eq!(text(Values::Char(vec![0])), "\"AA==\"");
        assert_eq!(text(Values::Byte(vec![-127])), "-127");
        assert_eq!(fill_value(None), "null");
    }

    #[test]
    fn base64_is_that_of_rfc_4648() {
        let text = |bytes: &[u8]| {
            let mut out = Vec::new();
            base64(&mut out, bytes).unwrap();
            String::from_utf8(out).unwrap()
        };
        assert_eq!(
            [b"".as_slice(), b"f", b"fo", b"foo", b"foob"].map(text),
            ["", "Zg==", "Zm8=", "Zm9v", "Zm9vYg=="]
        );
    }
}
