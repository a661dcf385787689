//! Names and text with the escapes of CDL and of XML. Nothing that a terminal would obey is left in them: what
//! is ASCII has the escapes of ncdump, and other such characters (C1, marks of direction) are written
//! byte by byte, which ncgen reads in text. In names it does not; `esker gen` does.

use esker_text::is_obeyed;

/// Calls `put` with each byte, and whether a terminal would obey the character that it is of, which is not ASCII.
fn each_byte(text: &[u8], mut put: impl FnMut(u8, bool)) {
    for chunk in text.utf8_chunks() {
        for c in chunk.valid().chars() {
            let is_obeyed = !c.is_ascii() && is_obeyed(c);
            c.encode_utf8(&mut [0; 4]).bytes().for_each(|byte| put(byte, is_obeyed));
        }
        // A terminal of eight bits has C1 here.
        chunk.invalid().iter().for_each(|byte| put(*byte, (0x80..0xa0).contains(byte)));
    }
}

/// A name up to its first zero: some old files have zeros in names, which C does not see.
pub(super) fn c_name(name: &str) -> &str {
    name.split('\0').next().unwrap_or_default()
}

/// Appends a name with a backslash before each character that means something in CDL.
pub(super) fn put_name(out: &mut Vec<u8>, name: &str) {
    if name.starts_with(|c: char| c.is_ascii_digit()) {
        out.push(b'\\');
    }
    each_byte(c_name(name).as_bytes(), |byte, is_obeyed| {
        if byte.is_ascii_control() || is_obeyed {
            out.extend_from_slice(b"\\%");
            out.push(HEX[usize::from(byte >> 4)]);
            out.push(HEX[usize::from(byte & 15)]);
            return;
        }
        if b" !\"#$&'()*,:;<=>?[\\]^`{|}~".contains(&byte) {
            out.push(b'\\');
        }
        out.push(byte);
    });
}

const HEX: [u8; 16] = *b"0123456789abcdef";

/// The text of an attribute between quotes. Zeros at the end are not shown; after a newline the
/// string is broken and goes on in the next line.
pub(super) fn put_attribute_text(out: &mut Vec<u8>, text: &[u8]) {
    let shown = text.iter().rposition(|&b| b != 0).map_or(0, |p| p + 1);
    out.push(b'"');
    each_byte(&text[..shown], |byte, is_obeyed| match byte {
        b'\n' => out.extend_from_slice(b"\\n\",\n\t\t\t\""),
        _ if put_escape(out, byte) => {}
        _ if byte.is_ascii_control() || is_obeyed => put_octal(out, byte),
        _ => out.push(byte),
    });
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
    put_xml(out, &text[..shown]);
    out.push(b'"');
}

/// Text for XML, with references in place of what means something there or to a terminal.
pub(super) fn put_xml(out: &mut Vec<u8>, text: &[u8]) {
    let refer = |out: &mut Vec<u8>, number: u32| {
        out.extend_from_slice(b"&#");
        super::decimal::put_u64(out, u64::from(number));
        out.push(b';');
    };
    for chunk in text.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '"' => out.extend_from_slice(b"&quot;"),
                '<' => out.extend_from_slice(b"&lt;"),
                '>' => out.extend_from_slice(b"&gt;"),
                '&' => out.extend_from_slice(b"&amp;"),
                '\n' => out.extend_from_slice(b"&#xA;"),
                '\r' => out.extend_from_slice(b"&#xD;"),
                '\t' => out.extend_from_slice(b"&#x9;"),
                _ if is_obeyed(c) => refer(out, c.into()),
                _ => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
            }
        }
        for &byte in chunk.invalid() {
            match byte {
                // Latin-1, as the others are meant to be.
                0x80..0xa0 => refer(out, byte.into()),
                _ => out.push(byte),
            }
        }
    }
}
