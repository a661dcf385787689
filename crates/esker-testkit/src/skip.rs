//! A test that is not carried out says so, and is counted.
//!
//! A skip is printed, and written to the file that `$ESKER_SKIPS` names: a line with the test's
//! name and the reason. `./test` sums those lines up. Where nothing may be left out
//! (`CI=true`, or `ESKER_SKIPS_FAIL=1`) a skip is a failed test.

use std::io::Write;

/// Says that the test, or a part of it, is not carried out, with the reason as in `format!`.
#[macro_export]
macro_rules! skip {
    ($($reason:tt)*) => { $crate::skip::record(&format!($($reason)*)) };
}

/// What [`skip!`](crate::skip!) does.
///
/// # Panics
/// Where nothing may be skipped.
pub fn record(reason: &str) {
    let thread = std::thread::current();
    // Cargo tells a test program which package it is of.
    let package = std::env::var("CARGO_PKG_NAME").unwrap_or_default();
    let test = format!("{package} {}", thread.name().unwrap_or("a thread without a name"));
    println!("skipped: {test}: {reason}");
    if let Some(path) = std::env::var_os("ESKER_SKIPS") {
        // One write for a line: tests of several processes append to one file.
        let line = format!("{test}\t{}\n", reason.replace(['\n', '\t'], " "));
        let file = std::fs::OpenOptions::new().append(true).create(true).open(&path);
        let written = file.and_then(|mut file| file.write_all(line.as_bytes()));
        assert!(written.is_ok(), "the skip cannot be counted in {path:?}: {written:?}");
    }
    assert!(!forbidden(|name| std::env::var(name).ok()), "skipped, and CI skips nothing: {reason}");
}

/// Whether these variables forbid to skip.
fn forbidden(variable: impl Fn(&str) -> Option<String>) -> bool {
    match variable("ESKER_SKIPS_FAIL").as_deref() {
        Some("1") => true,
        Some("0") => false,
        _ => variable("CI").is_some_and(|value| value == "true" || value == "1"),
    }
}

#[cfg(test)]
mod tests {
    use super::forbidden;

    #[test]
    fn ci_forbids_skips_unless_told_otherwise() {
        let with = |variables: &'static [(&str, &str)]| {
            forbidden(|name| {
                let found = variables.iter().find(|(n, _)| *n == name);
                found.map(|(_, value)| value.to_string())
            })
        };
        assert!(!with(&[]));
        assert!(with(&[("CI", "true")]));
        assert!(with(&[("ESKER_SKIPS_FAIL", "1")]));
        assert!(!with(&[("CI", "true"), ("ESKER_SKIPS_FAIL", "0")]));
        assert!(!with(&[("CI", "false")]));
    }
}
