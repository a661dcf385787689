//! What a check finds: a place, an object, a value and a sentence.

use std::fmt;

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Worth knowing; nothing is wrong.
    Note,
    /// Against the specification or unwise, but every reader gets the right data.
    Warning,
    /// The file is not valid.
    Error,
}

impl Severity {
    /// `note`, `warning` or `error`.
    pub fn name(self) -> &'static str {
        match self {
            Severity::Note => "note",
            Severity::Warning => "warning",
            Severity::Error => "error",
        }
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The offending value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// A number from the file, or a length.
    Number(i128),
    /// A name.
    Text(String),
}

macro_rules! numbers {
    ($($ty:ty)*) => {$(
        impl From<$ty> for Value {
            fn from(number: $ty) -> Value {
                Value::Number(number.into())
            }
        }
    )*};
}
numbers!(u8 u32 u64 i64 i128);

impl From<&str> for Value {
    fn from(text: &str) -> Value {
        Value::Text(text.to_string())
    }
}

/// One thing that a check found.
///
/// It prints as `[0x000000dc] variable "time": unknown data type 0: CDF-1 has 1 to 6`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// A short name that stays the same between versions, for programs: `padding`, `overlap`.
    pub code: &'static str,
    /// The byte of the file at which it is, where it is at one.
    pub offset: Option<u64>,
    /// What it is about: `variable "time"`, `the file`.
    pub object: String,
    /// The offending value, where there is one.
    pub value: Option<Value>,
    /// What is wrong, in words.
    pub sentence: String,
}

impl Finding {
    pub(super) fn new(
        severity: Severity,
        code: &'static str,
        object: impl Into<String>,
        sentence: impl Into<String>,
    ) -> Finding {
        let (object, sentence) = (object.into(), sentence.into());
        Finding { severity, code, offset: None, object, value: None, sentence }
    }

    pub(super) fn at(mut self, offset: u64) -> Finding {
        self.offset = Some(offset);
        self
    }

    pub(super) fn value(mut self, value: impl Into<Value>) -> Finding {
        self.value = Some(value.into());
        self
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(offset) = self.offset {
            write!(f, "[{offset:#010x}] ")?;
        }
        write!(f, "{}: {}", self.object, self.sentence)
    }
}

/// `1 byte`, `2 bytes`.
pub(super) fn counted(n: u64, what: &str) -> String {
    if n == 1 { format!("{n} {what}") } else { format!("{n} {what}s") }
}
