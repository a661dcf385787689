//! Names and text with the escapes of CDL and of XML.

/// A name up to its first zero: some old files have zeros in names, which C does not see.
pub(super) fn c_name(name: &str) -> &str {
    name.split('\0').next().unwrap_or_default()
}

/// Appends a name with a backslash before each character that means something in CDL.
pub(super) fn put_name(out: &mut Vec<u8>, name: &str) {
    if name.starts_with(|c: char| c.is_ascii_digit()) {
        out.push(b'\\');
    }
    for byte in c_name(name).bytes() {
        if byte.is_ascii_control() {
            out.extend_from_slice(b"\\%");
            out.push(HEX[usize::from(byte >> 4)]);
            out.push(HEX[usize::from(byte & 15)]);
            continue;
        }
        if b" !\"#$&'()*,:;<=>?[\\]^`{|}~".contains(&byte) {
            out.push(b'\\');
        }
        out.push(byte);
    }
}

const HEX: [u8; 16] = *b"0123456789abcdef";

/// The text of an attribute between quotes. Zeros at the end are not shown; after a newline the
/// string is broken and goes on in the next line.
pub(super) fn put_attribute_text(out: &mut Vec<u8>, text: &[u8]) {
    let shown = text.iter().rposition(|&b| b != 0).map_or(0, |p| p + 1);
    out.push(b'"');
    for &byte in &text[..shown] {
        match byte {
            b'\n' => out.extend_from_slice(b"\\n\",\n\t\t\t\""),
            _ if put_escape(out, byte) => {}
            _ if byte.is_ascii_control() => put_octal(out, byte),
            _ => out.push(byte),
        }
    }
    out.push(b'"');
}

/// One byte of a row of a character variable. Other than in attributes, bytes that are not
/// ASCII are shown in octal.
pub(super) fn put_row_byte(out: &mut Vec<u8>, byte: u8) {
    match byte {
        b'\n' => out.extend_from_slice(b"\\n\",\n    \""),
        _ if put_escape(out, byte) => {}
        b' '..=b'~' => out.push(byte),
        _ => put_octal(out, byte),
    }
}

/// Appends the escape of a byte that has one of its own.
fn put_escape(out: &mut Vec<u8>, byte: u8) -> bool {
    let letter = match byte {
        8 => b'b',
        12 => b'f',
        b'\r' => b'r',
        b'\t' => b't',
        11 => b'v',
        b'\\' | b'\'' | b'"' => byte,
        _ => return false,
    };
    out.extend_from_slice(&[b'\\', letter]);
    true
}

fn put_octal(out: &mut Vec<u8>, byte: u8) {
    let digit = |shift: u8| b'0' + (byte >> shift & 7);
    out.extend_from_slice(&[b'\\', digit(6), digit(3), digit(0)]);
}

/// The text of an attribute for XML, between quotes.
pub(super) fn put_xml_text(out: &mut Vec<u8>, text: &[u8]) {
    let shown = text.iter().rposition(|&b| b != 0).map_or(0, |p| p + 1);
    out.push(b'"');
    for &byte in &text[..shown] {
        match byte {
            b'"' => out.extend_from_slice(b"&quot;"),
            b'<' => out.extend_from_slice(b"&lt;"),
            b'>' => out.extend_from_slice(b"&gt;"),
            b'&' => out.extend_from_slice(b"&amp;"),
            b'\n' => out.extend_from_slice(b"&#xA;"),
            b'\r' => out.extend_from_slice(b"&#xD;"),
            b'\t' => out.extend_from_slice(b"&#x9;"),
            _ if byte.is_ascii_control() => {
                out.extend_from_slice(b"&#");
                super::decimal::put_u64(out, u64::from(byte));
                out.push(b';');
            }
            _ => out.push(byte),
        }
    }
    out.push(b'"');
}
