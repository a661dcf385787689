//! The scalar that lies where the chunks end, so that a file ends with a variable.
//!
//! Without it, chunks would lie behind the last variable, where strict readers want the end of the file
//! (PnetCDF's ncvalidator). It is the last variable of its file and has no meaning; programs do not see it.

use super::END;
use crate::error::SchemaError;
use crate::header::Header;
use crate::schema::{Owner, Schema, VarId, Variable};
use crate::types::{ExternalType, Version};
use crate::values::Values;

/// Bytes of the scalar.
const BYTES: u64 = 4;

/// Whether the last variable of a file is the one where its chunks end.
fn is_end(variable: &Variable) -> bool {
    &*variable.name == END && variable.dims.is_empty() && variable.ty == ExternalType::Int
}

/// The variable of a file where its chunks end, if it has one.
pub fn end_of(schema: &Schema) -> Option<VarId> {
    let last = schema.vars.len().checked_sub(1)?;
    schema.vars.at(last).filter(|variable| is_end(variable)).map(|_| VarId(last))
}

/// Adds the variable where chunks end, behind all others.
pub fn add_end(schema: &mut Schema) -> Result<VarId, SchemaError> {
    let var = schema.add_var(END, ExternalType::Int, &[])?;
    let why = "The chunks of this file end here.";
    schema.put_attr(Owner::Var(var), "long_name", Values::from(why))?;
    Ok(var)
}

/// The header without the variable where chunks end: what stays the same in a redefinition.
pub fn without_end(header: &Header) -> Header {
    let mut header = header.clone();
    if let Some(var) = end_of(&header.schema) {
        header.schema.vars.remove(var.0);
        header.layout.places.truncate(var.0);
    }
    header
}

/// Where in a file the end variable is told to begin, and the bytes that tell this. It is the last number of
/// the header, so that it can be changed by itself. `None` if the version has no such offsets.
pub fn end_field(header: &Header, begin: u64) -> Option<(u64, Vec<u8>)> {
    let version = header.schema.version;
    if begin > version.max_offset() {
        return None;
    }
    let bytes = match version {
        Version::Cdf1 => (begin as u32).to_be_bytes().to_vec(),
        _ => begin.to_be_bytes().to_vec(),
    };
    Some((header.layout.header_len.checked_sub(bytes.len() as u64)?, bytes))
}

/// Where the end variable begins that ends with the heap.
pub fn end_begin(heap_end: u64) -> u64 {
    heap_end.saturating_sub(BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::header::{Alignment, DataLayout, NumRecs};
    use crate::schema::DimLen;

    fn header(version: Version) -> Header {
        let mut schema = Schema::new(version);
        let x = schema.add_dim("x", DimLen::Fixed(5)).unwrap();
        schema.add_var("a", ExternalType::Short, &[x]).unwrap();
        add_end(&mut schema).unwrap();
        let layout = DataLayout::place(&schema, &Alignment::default()).unwrap();
        Header { schema, numrecs: NumRecs::Count(0), layout }
    }

    #[test]
    fn the_place_of_the_end_is_the_last_number_of_a_header() {
        for version in [Version::Cdf1, Version::Cdf2, Version::Cdf5] {
            let mut header = header(version);
            let begin = 0x1234_5678;
            let (at, bytes) = end_field(&header, begin).unwrap();
            let mut patched = header.encode();
            patched[at as usize..].copy_from_slice(&bytes);
            header.layout.places[1].begin = begin;
            assert_eq!(patched, header.encode());
        }
        let far = 1 << 31;
        assert!(end_field(&header(Version::Cdf1), far).is_none());
        assert!(end_field(&header(Version::Cdf2), far).is_some());
    }

    #[test]
    fn only_the_last_variable_can_be_the_end() {
        let mut header = header(Version::Cdf5);
        assert_eq!(end_of(&header.schema), Some(VarId(1)));
        assert_eq!(without_end(&header).schema.vars.len(), 1);
        header.schema.add_var("b", ExternalType::Int, &[]).unwrap();
        assert_eq!(end_of(&header.schema), None);
    }
}
