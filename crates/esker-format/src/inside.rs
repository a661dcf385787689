//! Names of files inside a dataset, exactly as writers make them.
//!
//! Manifests, attributes and heads of logs carry parts of file names. They may come from anybody, so
//! that a reader takes none that it would not have written itself: digits and lower-case
//! hexadecimal digits of a known number, and nothing that a path could be made of.
//!
//! ```
//! use esker_format::inside;
//! assert_eq!(inside::session("7-000000000000001f"), Some((7, 0x1f)));
//! assert_eq!(inside::session("../../x"), None);
//! assert_eq!(inside::version("00000012"), Some(12));
//! assert_eq!(inside::version("+12"), None);
//! ```

/// The identity of a dataset or session: sixteen hexadecimal digits.
pub fn identity(text: &str) -> Option<u64> {
    let number = hexadecimal(text)?;
    (text.len() == 16).then_some(number)
}

/// What the names of a session's logs begin with, as text: [`session`] is the way back.
pub fn session_stem(version: u64, identity: u64) -> String {
    format!("{version}-{identity:016x}")
}

/// What the names of a session's logs begin with: the version that it was the first to write, and
/// its identity.
pub fn session(stem: &str) -> Option<(u64, u64)> {
    let (version, id) = stem.split_once('-')?;
    Some((decimal(version)?, identity(id)?))
}

/// A metadata log: the stem of its session, its number, and how often it was written anew.
pub fn metadata_log(name: &str) -> Option<(&str, u32, u32)> {
    let rest = name.strip_suffix(".meta")?;
    let (stem, numbers) = rest.split_once('.')?;
    session(stem)?;
    let number = |text: &str| u32::try_from(decimal(text)?).ok();
    match numbers.split_once('.') {
        None => Some((stem, number(numbers)?, 0)),
        // One that was never written anew has no number for that.
        Some((file, revision)) => {
            Some((stem, number(file)?, number(revision).filter(|revision| *revision > 0)?))
        }
    }
}

/// A data log: the stem of its session, and its number.
pub fn data_log(name: &str) -> Option<(&str, u32)> {
    let (stem, number) = name.strip_suffix(".data")?.split_once('.')?;
    session(stem)?;
    Some((stem, u32::try_from(decimal(number)?).ok()?))
}

/// The note that a session was aborted: the session's stem.
pub fn aborted_note(name: &str) -> Option<&str> {
    name.strip_suffix(".aborted").filter(|stem| session(stem).is_some())
}

/// A decision that has not got its name: a random number.
pub fn draft(name: &str) -> Option<u64> {
    identity(name.strip_prefix("draft-")?)
}

/// The manifest of a version: its number in at least eight digits.
pub fn version(name: &str) -> Option<u64> {
    let number = name.bytes().all(|b| b.is_ascii_digit()).then(|| name.parse().ok())??;
    (name == format!("{number:08}")).then_some(number)
}

/// Whether this is what the names of chunk files have in the middle: at most sixteen hexadecimal
/// digits.
pub fn is_chunk_stem(text: &str) -> bool {
    hexadecimal(text).is_some_and(|number| text == format!("{number:x}"))
}

/// A number without signs, blanks and leading zeros.
fn decimal(text: &str) -> Option<u64> {
    let number: u64 = text.parse().ok()?;
    (text == number.to_string()).then_some(number)
}

fn hexadecimal(text: &str) -> Option<u64> {
    let digits = text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    (digits && text.len() <= 16).then(|| u64::from_str_radix(text, 16).ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_that_writers_make_are_names() {
        let stem = session_stem(7, 0xfeed);
        assert_eq!(data_log(&format!("{stem}.4.data")), Some((&stem[..], 4)));
        assert_eq!(aborted_note(&format!("{stem}.aborted")), Some(&stem[..]));
        assert_eq!(draft("draft-00000000000000ff"), Some(0xff));
        for other in ["7-x.4.data", "7-000000000000feed.04.data", "x.aborted", ".data", "draft-1"] {
            assert_eq!((data_log(other), aborted_note(other), draft(other)), (None, None, None));
        }
        assert_eq!(session(&stem), Some((7, 0xfeed)));
        for wrong in [
            "",
            "-",
            "7",
            "7-",
            "7-1f",
            "07-000000000000feed",
            "7-000000000000FEED",
            "7-000000000000feed/",
            "../7-000000000000feed",
            "/7-000000000000feed",
            "+7-000000000000feed",
            "7-000000000000feed\0",
            "7-+00000000000feed",
            "18446744073709551616-000000000000feed",
        ] {
            assert_eq!(session(wrong), None, "{wrong:?}");
        }
        assert_eq!(metadata_log(&format!("{stem}.3.meta")), Some((&*stem, 3, 0)));
        assert_eq!(metadata_log(&format!("{stem}.3.2.meta")), Some((&*stem, 3, 2)));
        for wrong in
            ["3.0.meta", "03.meta", "meta", "3.meta.meta", "3.2.1.meta", "-3.meta", "3.data"]
        {
            assert_eq!(metadata_log(&format!("{stem}.{wrong}")), None, "{wrong:?}");
        }
        assert_eq!(version("00000007"), Some(7));
        assert_eq!(version("123456789"), Some(123_456_789));
        for wrong in ["7", "0000007", "000000007", "+0000007", " 0000007", "draft-7", "", "1e7"] {
            assert_eq!(version(wrong), None, "{wrong:?}");
        }
        assert!(is_chunk_stem("18f3a") && is_chunk_stem("0"));
        for wrong in ["", "..", "a/b", "A", "0a", "10000000000000000", "a.1", "/"] {
            assert!(!is_chunk_stem(wrong), "{wrong:?}");
        }
    }
}
