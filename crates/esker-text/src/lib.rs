//! Names, paths and text that others have chosen, as people may see them.
//!
//! A file's name, an attribute or an argument may hold characters that a terminal obeys: escape
//! sequences that clear the screen or change its title, and marks that turn the direction of writing, so
//! that a name reads as another. [`shown`] gives them as escapes and leaves all else alone. What it
//! gives, it gives again, so that a sentence may pass through it more than once.
//!
//! ```
//! use esker_text::shown;
//! assert_eq!(shown("höhe_\u{1b}[2J\u{202e}x").to_string(), r"höhe_\u{1b}[2J\u{202e}x");
//! assert_eq!(shown(shown("a\nb").to_string().as_str()).to_string(), r"a\nb");
//! ```
#![forbid(unsafe_code)]

use std::fmt::{self, Display, Formatter, Write};
use std::path::Path;

/// Whether a terminal would obey the character rather than show it: control characters (C0, DEL, C1),
/// the separators of lines and paragraphs, marks of direction, and others that have no shape.
pub fn is_obeyed(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{061c}'
                | '\u{200e}'
                | '\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2066}'..='\u{206f}'
                | '\u{feff}'
                | '\u{fff9}'..='\u{fffb}'
                | '\u{e0000}'..='\u{e0fff}'
        )
}

/// Text for people.
pub fn shown(text: &str) -> Shown<'_> {
    Shown(text)
}

/// Lines for people: as [`shown`], but lines stay lines.
pub fn shown_lines(text: &str) -> String {
    let lines: Vec<String> = text.split('\n').map(|line| shown(line).to_string()).collect();
    lines.join("\n")
}

/// Bytes that should be text. What is not UTF-8 is shown as `\x9b`.
pub fn shown_bytes(bytes: &[u8]) -> String {
    let mut text = String::new();
    for chunk in bytes.utf8_chunks() {
        text.extend([shown(chunk.valid()).to_string()]);
        for byte in chunk.invalid() {
            text.push_str(&format!("\\x{byte:02x}"));
        }
    }
    text
}

/// A path for people. What is not UTF-8 is shown as `\x9b`.
pub fn shown_path(path: &Path) -> String {
    shown_bytes(path.as_os_str().as_encoded_bytes())
}

/// Text in which what a terminal would obey is an escape: `\n`, `\t`, `\u{1b}`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shown<'t>(&'t str);

impl Display for Shown<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mut rest = self.0;
        while let Some(at) = rest.find(is_obeyed) {
            f.write_str(&rest[..at])?;
            let mut after = rest[at..].chars();
            if let Some(c) = after.next() {
                match c {
                    '\n' | '\r' | '\t' => write!(f, "{}", c.escape_default())?,
                    _ => write!(f, "{}", c.escape_unicode())?,
                }
            }
            rest = after.as_str();
        }
        f.write_str(rest)
    }
}

/// A sentence that went through [`shown`]: for errors whose words hold names.
pub fn sentence(words: impl Display) -> String {
    let mut text = String::new();
    // Writing to a string does not fail.
    let _ = write!(text, "{words}");
    match text.contains(is_obeyed) {
        true => shown(&text).to_string(),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_a_terminal_obeys_is_left() {
        for c in (0..=0x10_ffff).filter_map(char::from_u32) {
            let text = shown(&format!("a{c}b")).to_string();
            assert!(!text.contains(is_obeyed), "{:x}", u32::from(c));
            assert_eq!(text.contains('\\'), is_obeyed(c) || c == '\\');
        }
        // The Unicode standard's list of Bidi_Control, and what ends lines.
        let listed = [
            0x061c, 0x200e, 0x200f, 0x2028, 0x2029, 0x202a, 0x202b, 0x202c, 0x202d, 0x202e, 0x2066,
            0x2067, 0x2068, 0x2069, 0x85, 0x9b, 0x1b, 0x07, 0x7f, 0x0a, 0x0d,
        ];
        assert!(listed.into_iter().filter_map(char::from_u32).all(is_obeyed));
    }

    #[test]
    fn letters_of_all_scripts_stay() {
        for text in ["température", "温度", "درجة", "высота", "नमी", "a\u{200d}b", "C:\\dir"]
        {
            assert_eq!(shown(text).to_string(), text);
        }
    }

    #[test]
    fn bytes_that_are_no_text_are_told() {
        assert_eq!(shown_bytes(b"a\x9b31m\xff"), r"a\x9b31m\xff");
        assert_eq!(shown_bytes("ä\u{9b}".as_bytes()), r"ä\u{9b}");
    }
}
