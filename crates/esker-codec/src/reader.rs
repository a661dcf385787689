//! Varints and parts of stored bytes that may be anything.

use crate::error::{CodecError, Result};

/// Appends a LEB128 number.
pub(crate) fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Takes parts off the front; what is not there is an error that names the filter.
pub(crate) struct Reader<'a> {
    filter: &'static str,
    left: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(crate) fn new(filter: &'static str, bytes: &'a [u8]) -> Reader<'a> {
        Reader { filter, left: bytes }
    }

    pub(crate) fn damaged(&self, why: impl ToString) -> CodecError {
        CodecError::damaged(self.filter, why)
    }

    pub(crate) fn varint(&mut self) -> Result<u64> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.take(1)?[0];
            let bits = u64::from(byte & 0x7F);
            if shift == 63 && bits > 1 {
                break;
            }
            value |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(self.damaged("a number has more than 64 bits"))
    }

    /// A varint that is at most `most`.
    pub(crate) fn count(&mut self, most: usize, what: &str) -> Result<usize> {
        let value = self.varint()?;
        usize::try_from(value)
            .ok()
            .filter(|&count| count <= most)
            .ok_or_else(|| self.damaged(format!("{value} {what} where at most {most} can be")))
    }

    pub(crate) fn take(&mut self, bytes: usize) -> Result<&'a [u8]> {
        let (part, left) = self.left.split_at_checked(bytes).ok_or_else(|| {
            let why = format!("it ends {} bytes too early", bytes - self.left.len());
            self.damaged(why)
        })?;
        self.left = left;
        Ok(part)
    }

    pub(crate) fn byte(&mut self) -> Result<u8> {
        Ok(self.take(1)?[0])
    }

    /// Big-endian.
    pub(crate) fn u64(&mut self) -> Result<u64> {
        Ok(self.take(8)?.iter().fold(0, |value, &byte| value << 8 | u64::from(byte)))
    }

    /// A part whose length stands before it.
    pub(crate) fn part(&mut self) -> Result<&'a [u8]> {
        let length = self.count(self.left.len(), "bytes")?;
        self.take(length)
    }

    pub(crate) fn left(&self) -> usize {
        self.left.len()
    }

    /// An error unless everything has been taken.
    pub(crate) fn end(&self) -> Result<()> {
        match self.left.len() {
            0 => Ok(()),
            more => Err(self.damaged(format!("{more} bytes follow its end"))),
        }
    }
}
