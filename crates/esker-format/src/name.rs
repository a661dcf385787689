//! The rules for names: UTF-8 in normal form C, no reserved characters, a bounded length.

use std::borrow::Cow;
use std::sync::Arc;

use unicode_normalization::{UnicodeNormalization, is_nfc};

use crate::error::SchemaError;

/// NC_MAX_NAME: the longest name in bytes, after normalisation.
pub const MAX_NAME: usize = 256;

/// The name in normal form C, as it is stored and compared.
pub fn normalise(name: &str) -> Cow<'_, str> {
    if name.is_ascii() || is_nfc(name) {
        Cow::Borrowed(name)
    } else {
        Cow::Owned(name.nfc().collect())
    }
}

/// What is wrong with a name, if anything is: the rules of the specification's `name` token.
pub fn fault(name: &str) -> Option<&'static str> {
    let Some(first) = name.chars().next() else { return Some("it is empty") };
    if name.len() > MAX_NAME {
        return Some("it is longer than 256 bytes");
    }
    if !(first.is_ascii_alphanumeric() || first == '_' || !first.is_ascii()) {
        return Some(
            "it must begin with a letter, a digit, an underscore or a non-ASCII character",
        );
    }
    if name.contains('/') {
        return Some("it contains '/', which is reserved");
    }
    if name.chars().any(|c| c.is_ascii_control()) {
        return Some("it contains a control character");
    }
    if name.ends_with(|c: char| c.is_ascii_whitespace()) {
        return Some("it ends with white space");
    }
    None
}

/// The normalised name, or the error that says what is wrong with it.
pub(crate) fn check(name: &str, kind: &'static str) -> Result<Arc<str>, SchemaError> {
    let normal = normalise(name);
    // Headers get theirs when they are encoded.
    let is_seal = kind == "attribute" && *normal == *crate::sealed::SEAL;
    let own =
        is_seal.then_some("it is kept for checksums of variables that Esker stores in its own way");
    match fault(&normal).or(own) {
        None => Ok(Arc::from(&*normal)),
        Some(fault) => Err(SchemaError::BadName { kind, name: name.to_string(), fault }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_the_specification() {
        for good in ["t", "2m_temp", "_FillValue", "Größe", "a b", "x+y-z@w.(1)", "温度"] {
            assert_eq!(fault(good), None, "{good}");
        }
        for bad in ["", "a/b", " a", "a ", "a\n", "-x", "\u{7f}a", &"x".repeat(257)] {
            assert!(fault(bad).is_some(), "{bad:?}");
        }
    }

    #[test]
    fn decomposed_letters_are_composed() {
        assert_eq!(normalise("e\u{301}"), "\u{e9}");
    }
}
