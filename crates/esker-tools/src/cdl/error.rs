//! Errors of CDL text: where, in what, and why.

use esker_text::sentence;
use std::fmt;

/// CDL text that cannot be understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CdlError {
    /// The line, from 1.
    pub line: usize,
    /// The column in bytes, from 1.
    pub column: usize,
    /// The line's text as far as it helps: at most some eighty bytes around the place.
    pub text: String,
    /// What is wrong.
    pub fault: Box<CdlFault>,
}

/// What is wrong with CDL text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CdlFault {
    /// Something else was expected here.
    #[error("expected {expected}, found {found}", expected = sentence(expected), found = sentence(found))]
    Syntax {
        /// What could stand here.
        expected: String,
        /// What stands here.
        found: String,
    },
    /// A string, a character constant or a comment that does not end.
    #[error("{} is not closed", sentence(.0))]
    Unclosed(&'static str),
    /// An escape or character that has no meaning.
    #[error("{}", sentence(.0))]
    BadText(String),
    /// A name that is not declared.
    #[error("there is no {kind} \"{name}\"", name = sentence(name))]
    Undeclared {
        /// "variable" or "dimension".
        kind: &'static str,
        /// The name.
        name: String,
    },
    /// Groups, user-defined types and the like.
    #[error("{} cannot be in a classic file: only netCDF-4 has it", sentence(.0))]
    NotClassic(String),
    /// A constant that the type cannot hold.
    #[error("{constant} does not fit the type {ty}", constant = sentence(constant))]
    OutOfRange {
        /// The constant as written.
        constant: String,
        /// The type.
        ty: String,
    },
    /// A constant of the wrong kind.
    #[error("{constant} cannot be a value of {owner}", constant = sentence(constant), owner = sentence(owner))]
    WrongKind {
        /// The constant as written.
        constant: String,
        /// What it was to be a value of.
        owner: String,
    },
    /// More values than the variable holds.
    #[error("variable \"{var}\" holds {room} values, but more are given", var = sentence(var))]
    TooManyValues {
        /// The variable.
        var: String,
        /// How many it holds.
        room: u64,
    },
    /// A definition that the format does not allow.
    #[error("{}", sentence(.0))]
    Schema(#[from] esker_format::SchemaError),
    /// A value of a special attribute that has no meaning.
    #[error("{attribute} cannot be {value}", attribute = sentence(attribute), value = sentence(value))]
    Special {
        /// The attribute.
        attribute: String,
        /// The value.
        value: String,
    },
}

impl CdlError {
    /// The fault at a byte offset of `text`. Lines are counted here and only here, so that
    /// reading costs nothing for them.
    pub(crate) fn at(text: &[u8], offset: usize, fault: CdlFault) -> CdlError {
        let before = text.get(..offset).unwrap_or(text);
        let line = before.iter().filter(|&&b| b == b'\n').count() + 1;
        let line_start = before.iter().rposition(|&b| b == b'\n').map_or(0, |p| p + 1);
        let rest = text.get(line_start..).unwrap_or_default();
        let line_len = rest.iter().position(|&b| b == b'\n').unwrap_or(rest.len());
        let from = line_start.max(offset.saturating_sub(60));
        let to = (line_start + line_len).min(offset.saturating_add(20)).max(from);
        let shown = String::from_utf8_lossy(text.get(from..to).unwrap_or_default());
        CdlError {
            line,
            column: before.len() - line_start + 1,
            text: shown.trim().to_string(),
            fault: Box::new(fault),
        }
    }
}

impl fmt::Display for CdlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}: {}", self.line, self.column, self.fault)?;
        if !self.text.is_empty() {
            write!(f, ", at `{}`", self.text)?;
        }
        Ok(())
    }
}

impl std::error::Error for CdlError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&*self.fault)
    }
}
