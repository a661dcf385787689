//! Who wrote to a file with chunks last.
//!
//! Two programs that look for room in one file find the same room. A lock keeps the second away where
//! there are locks; everywhere, whoever writes puts a text of its own into the header first, and looks
//! whether it is still there before it changes a table.

use super::WRITER;
use crate::error::SchemaError;
use crate::header::Header;
use crate::schema::{Owner, Schema};
use crate::values::Values;

/// Bytes of the text, which is always as long.
pub const WRITER_LEN: usize = 64;

/// Who wrote last; `None` where files do not say.
pub fn writer_of(schema: &Schema) -> Option<[u8; WRITER_LEN]> {
    match schema.attr(Owner::Global, WRITER)? {
        Values::Char(text) => <[u8; WRITER_LEN]>::try_from(&text[..]).ok(),
        _ => None,
    }
}

/// Notes who writes.
pub fn put_writer(schema: &mut Schema, writer: &[u8; WRITER_LEN]) -> Result<(), SchemaError> {
    schema.put_attr(Owner::Global, WRITER, Values::Char(writer.to_vec()))
}

/// Where in the header the text is.
pub fn writer_field(header: &Header) -> Option<u64> {
    let mut other = writer_of(&header.schema)?;
    other.iter_mut().for_each(|byte| *byte ^= 1);
    let mut changed = header.clone();
    put_writer(&mut changed.schema, &other).ok()?;
    let (old, new) = (header.encode(), changed.encode());
    old.iter().zip(&new).position(|(a, b)| a != b).map(|at| at as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::header::{Alignment, DataLayout, NumRecs};
    use crate::types::Version;

    #[test]
    fn the_writer_is_one_stretch_of_every_header() {
        for version in [Version::Cdf1, Version::Cdf2, Version::Cdf5] {
            let mut schema = Schema::new(version);
            schema.put_attr(Owner::Global, "before", Values::from("text")).unwrap();
            put_writer(&mut schema, &[b' '; WRITER_LEN]).unwrap();
            schema.put_attr(Owner::Global, "behind", Values::from("text")).unwrap();
            let layout = DataLayout::place(&schema, &Alignment::default()).unwrap();
            let mut header = Header { schema, numrecs: NumRecs::Count(0), layout };
            let mut bytes = header.encode();
            let at = writer_field(&header).unwrap() as usize;
            let writer: [u8; WRITER_LEN] = std::array::from_fn(|i| b'a' + i as u8 % 26);
            bytes[at..at + WRITER_LEN].copy_from_slice(&writer);
            put_writer(&mut header.schema, &writer).unwrap();
            assert_eq!(bytes, header.encode());
            assert_eq!(writer_of(&header.schema), Some(writer));
        }
    }
}
