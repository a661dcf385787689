//! Names in a history, exactly as writers make them.

use std::fmt;

use crate::inside;

/// A branch or a tag: 1 to 64 letters, digits, `_`, `-` and `.`, of which the first is a letter.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Branch(String);

impl Branch {
    /// The branch that every container has.
    pub fn main() -> Branch {
        Branch("main".to_string())
    }

    /// The branch or tag of this name, if it may be one.
    pub fn new(name: &str) -> Option<Branch> {
        let is_plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.');
        let begins = name.bytes().next().is_some_and(|b| b.is_ascii_alphabetic());
        (begins && name.len() <= 64 && name.bytes().all(is_plain)).then(|| Branch(name.to_string()))
    }

    /// Its name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Branch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// An attempt to commit: random, so that whoever finds a decision knows whether it is his own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct WriteId(pub u128);

impl fmt::Display for WriteId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// A run: whose it is, and a random number, so that two are never the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct RunId {
    /// The writer that made it, which a fence names.
    pub writer: u64,
    /// Its number.
    pub number: u64,
}

impl RunId {
    /// The run of this name: 32 hexadecimal digits in lower case.
    pub fn parse(name: &str) -> Option<RunId> {
        let (writer, number) = name.split_at_checked(16)?;
        Some(RunId { writer: inside::identity(writer)?, number: inside::identity(number)? })
    }

    pub(super) fn to_bytes(self) -> [u8; 16] {
        (u128::from(self.writer) << 64 | u128::from(self.number)).to_le_bytes()
    }

    pub(super) fn from_bytes(bytes: [u8; 16]) -> RunId {
        let both = u128::from_le_bytes(bytes);
        RunId { writer: (both >> 64) as u64, number: both as u64 }
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}{:016x}", self.writer, self.number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_that_writers_make_are_names() {
        for name in ["main", "v3", "a", "run-2.1_b", &"x".repeat(64)] {
            assert_eq!(Branch::new(name).unwrap().as_str(), name);
        }
        for name in ["", ".", "..", "3", "-a", "a/b", "a b", "ä", "a\0", "../main", &"x".repeat(65)]
        {
            assert_eq!(Branch::new(name), None, "{name:?}");
        }
        let id = RunId { writer: 0xbee, number: 0xfeed };
        assert_eq!(RunId::parse(&id.to_string()), Some(id));
        for name in
            ["feed", "", "0000000000000000000000000000FEED", "+000000000000000000000000000feed"]
        {
            assert_eq!(RunId::parse(name), None, "{name:?}");
        }
    }
}
