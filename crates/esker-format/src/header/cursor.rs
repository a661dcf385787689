//! Reading numbers from a prefix of a file, with every length checked before it is used.

use crate::error::{DecodeError, Fault};
use crate::types::Version;

/// What is being read, told only when something is wrong.
#[derive(Debug, Clone, Copy)]
pub(super) enum Object<'a> {
    File,
    Records,
    List(&'static str),
    Dim(usize),
    NamedDim(&'a str),
    Var(usize),
    NamedVar(&'a str),
    Attr { of: Option<&'a str>, number: usize },
    NamedAttr { of: Option<&'a str>, name: &'a str },
}

impl<'a> Object<'a> {
    /// The same object, now that its name is known.
    pub(super) fn named(self, name: &'a str) -> Object<'a> {
        match self {
            Object::Dim(_) => Object::NamedDim(name),
            Object::Var(_) => Object::NamedVar(name),
            Object::Attr { of, .. } => Object::NamedAttr { of, name },
            other => other,
        }
    }

    fn describe(self) -> String {
        match self {
            Object::File => "the file".to_string(),
            Object::Records => "the number of records".to_string(),
            Object::List(list) => list.to_string(),
            Object::Dim(number) => format!("dimension number {number}"),
            Object::NamedDim(name) => format!("dimension {name:?}"),
            Object::Var(number) => format!("variable number {number}"),
            Object::NamedVar(name) => format!("variable {name:?}"),
            Object::Attr { of: None, number } => format!("global attribute number {number}"),
            Object::Attr { of: Some(var), number } => {
                format!("attribute number {number} of variable {var:?}")
            }
            Object::NamedAttr { of: None, name } => format!("global attribute {name:?}"),
            Object::NamedAttr { of: Some(var), name } => {
                format!("attribute {name:?} of variable {var:?}")
            }
        }
    }

    pub(super) fn error(self, offset: u64, fault: Fault) -> DecodeError {
        DecodeError { offset, object: self.describe(), fault }
    }
}

/// A place in the prefix of a file of `file_len` bytes.
pub(super) struct Cursor<'a> {
    bytes: &'a [u8],
    pos: usize,
    file_len: u64,
    pub(super) version: Version,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(bytes: &'a [u8], file_len: u64) -> Cursor<'a> {
        // A caller's prefix can be no longer than the file.
        let usable = bytes.len().min(usize::try_from(file_len).unwrap_or(usize::MAX));
        Cursor { bytes: &bytes[..usable], pos: 0, file_len, version: Version::Cdf1 }
    }

    pub(super) fn offset(&self) -> u64 {
        self.pos as u64
    }

    pub(super) fn left(&self) -> u64 {
        self.file_len.saturating_sub(self.pos as u64)
    }

    /// The next `n` bytes.
    pub(super) fn take(
        &mut self,
        n: u64,
        what: &'static str,
        object: Object<'_>,
    ) -> Result<&'a [u8], DecodeError> {
        if n > self.left() {
            let fault = Fault::Truncated { file_len: self.file_len, needed: n - self.left(), what };
            return Err(object.error(self.offset(), fault));
        }
        let end = usize::try_from(n).ok().and_then(|n| self.pos.checked_add(n));
        match end.and_then(|end| self.bytes.get(self.pos..end).map(|found| (found, end))) {
            Some((found, end)) => {
                self.pos = end;
                Ok(found)
            }
            None => {
                let at_least = self.offset() + n;
                Err(object.error(self.offset(), Fault::NeedMore { at_least }))
            }
        }
    }

    pub(super) fn u32(
        &mut self,
        what: &'static str,
        object: Object<'_>,
    ) -> Result<u32, DecodeError> {
        let bytes = self.take(4, what, object)?;
        Ok(bytes.iter().fold(0, |n, b| n << 8 | u32::from(*b)))
    }

    fn wide(
        &mut self,
        width: usize,
        what: &'static str,
        object: Object<'_>,
    ) -> Result<u64, DecodeError> {
        let bytes = self.take(width as u64, what, object)?;
        Ok(bytes.iter().fold(0, |n, b| n << 8 | u64::from(*b)))
    }

    /// A number as wide as the version's counts, as it is.
    pub(super) fn raw_count(
        &mut self,
        what: &'static str,
        object: Object<'_>,
    ) -> Result<u64, DecodeError> {
        self.wide(self.version.count_width(), what, object)
    }

    /// NON_NEG: a count that must not be negative.
    pub(super) fn count(
        &mut self,
        what: &'static str,
        object: Object<'_>,
    ) -> Result<u64, DecodeError> {
        let offset = self.offset();
        let value = self.raw_count(what, object)?;
        let signed = match self.version {
            Version::Cdf5 => value as i64,
            _ => i64::from(value as u32 as i32),
        };
        if signed < 0 {
            return Err(object.error(offset, Fault::Negative { what, value: signed }));
        }
        Ok(value)
    }

    /// A dimension's length. The specification's NON_NEG is signed, but netCDF-C writes (and
    /// every reader takes) lengths of up to 2³²-4 in CDF-2.
    pub(super) fn dim_len(&mut self, object: Object<'_>) -> Result<u64, DecodeError> {
        const WHAT: &str = "the dimension's length";
        match self.version {
            Version::Cdf2 => self.raw_count(WHAT, object),
            _ => self.count(WHAT, object),
        }
    }

    /// A count of things that take at least `least` bytes each, which the rest of the file
    /// must have room for.
    pub(super) fn count_of(
        &mut self,
        what: &'static str,
        least: u64,
        object: Object<'_>,
    ) -> Result<u64, DecodeError> {
        let offset = self.offset();
        let count = self.count(what, object)?;
        let needed = count.saturating_mul(least);
        if needed > self.left() {
            let fault = Fault::Count { what, count, needed, left: self.left() };
            return Err(object.error(offset, fault));
        }
        Ok(count)
    }

    /// OFFSET: a variable's begin.
    pub(super) fn file_offset(&mut self, object: Object<'_>) -> Result<u64, DecodeError> {
        let offset = self.offset();
        let value = self.wide(self.version.offset_width(), "the offset of the data", object)?;
        // CDF-1 offsets are signed in the specification, but readers have always taken the
        // upper half as large offsets cannot occur in a file under 2 GiB: reject them.
        let signed = match self.version {
            Version::Cdf1 => i64::from(value as u32 as i32),
            _ => value as i64,
        };
        if signed < 0 {
            let fault = Fault::Negative { what: "the offset of the data", value: signed };
            return Err(object.error(offset, fault));
        }
        Ok(value)
    }
}
