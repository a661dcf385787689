//! The header: a schema, the number of records, and where each variable's bytes are.
//!
//! [`Header::decode`] reads one from the first bytes of a file, [`Header::encode`] writes it
//! back byte for byte as the specification says, and [`DataLayout::place`] decides where the
//! variables of a new or changed schema go.

mod cursor;
mod decode;
mod encode;
mod order;
mod parts;
mod place;

use crate::schema::{DimLen, Schema, VarId, Variable};
use crate::types::Version;

pub use decode::{Decoded, VarFields};
pub use order::{At, FileOrder};
pub use parts::{HeaderPart, HeaderSums};
pub use place::Alignment;

/// How many records the header says there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NumRecs {
    /// This many.
    Count(u64),
    /// As many as the file's length has room for: the writer streamed and never came back.
    Streaming,
}

/// Where one variable's bytes are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Placement {
    /// Offset of the variable's first byte; for a record variable, in record 0.
    pub begin: u64,
    /// Bytes of the variable's values, for a record variable in one record, not padded.
    pub bytes: u64,
    /// `vsize`: the same, padded to a multiple of four, computed from the shape.
    pub vsize: u64,
}

impl Placement {
    /// `vsize` as the header stores it: values that 32 bits cannot hold become 2³²-1
    /// (the specification's note on `vsize`; readers compute it from the shape).
    pub fn stored_vsize(&self, version: Version) -> u64 {
        match version {
            Version::Cdf5 => self.vsize,
            Version::Cdf1 | Version::Cdf2 => self.vsize.min(u32::MAX as u64),
        }
    }
}

/// Where everything is: the header's length, each variable's place, and the record section.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataLayout {
    /// Bytes of the encoded header.
    pub header_len: u64,
    /// Each variable's place, by [`VarId`].
    pub places: Vec<Placement>,
    /// Where record 0 begins; `None` without record variables.
    pub record_begin: Option<u64>,
    /// Bytes from one record to the next; 0 without record variables.
    pub record_size: u64,
}

/// A classic netCDF header.
#[derive(Debug, Clone, PartialEq)]
pub struct Header {
    /// Dimensions, attributes, variables.
    pub schema: Schema,
    /// How many records there are.
    pub numrecs: NumRecs,
    /// Where their bytes are.
    pub layout: DataLayout,
}

impl Header {
    /// The number of records, which for a streamed file follows from the file's length.
    pub fn records(&self, file_len: u64) -> u64 {
        match (self.numrecs, self.layout.record_begin) {
            (NumRecs::Count(count), _) => count,
            (NumRecs::Streaming, Some(begin)) if self.layout.record_size > 0 => {
                file_len.saturating_sub(begin) / self.layout.record_size
            }
            (NumRecs::Streaming, _) => 0,
        }
    }

    /// Where the data end when there are `records` records: the length of a complete file.
    /// Saturates instead of overflowing.
    pub fn data_end(&self, records: u64) -> u64 {
        self.fixed_end().max(self.records_end(records).unwrap_or(0))
    }

    /// Whether data that end behind so many records have offsets. Placing and decoding have seen
    /// to that for everything else, so that in the usual case no variable is looked at.
    pub fn can_hold(&self, records: u64) -> bool {
        const MOST: u64 = i64::MAX as u64;
        let begin = self.layout.record_begin.unwrap_or(0);
        let size = records.saturating_mul(self.layout.record_size.max(1));
        begin.saturating_add(size) <= MOST || self.data_end(records) <= MOST
    }

    /// Where the record section ends when there are `records` records; `None` when it is
    /// empty. Saturates instead of overflowing.
    pub fn records_end(&self, records: u64) -> Option<u64> {
        let begin = self.layout.record_begin?;
        let before = records.checked_sub(1)?.saturating_mul(self.layout.record_size);
        Some(begin.saturating_add(before).saturating_add(self.last_record_len()))
    }

    /// Where the first variable begins: the header's extent, with the room that was left behind it.
    pub fn data_begin(&self) -> u64 {
        let mut fixed = self.vars().filter(|(_, var, _)| !self.schema.is_record(var));
        let first = fixed.next().map(|(_, _, place)| place.begin);
        first.or(self.layout.record_begin).unwrap_or(self.layout.header_len)
    }

    /// Where the fixed-size variables end (the header's end without any), padding included.
    pub fn fixed_end(&self) -> u64 {
        let ends = self.vars().filter(|(_, v, _)| !self.schema.is_record(v));
        ends.map(|(_, _, p)| p.begin + p.vsize).fold(self.layout.header_len, u64::max)
    }

    // Variables of one record need not lie in the order of definition.
    fn last_record_len(&self) -> u64 {
        let begin = self.layout.record_begin.unwrap_or(0);
        let packed = self.layout.record_size;
        let records = self.vars().filter(|(_, v, _)| self.schema.is_record(v));
        // A lone record variable of a small type is not padded, so the record's size rules.
        records.map(|(_, _, p)| p.begin - begin + p.vsize).fold(0, u64::max).min(packed.max(1))
    }

    /// Every variable with its number and place.
    pub fn vars(&self) -> impl Iterator<Item = (VarId, &Variable, &Placement)> {
        let pairs = self.schema.vars.iter().zip(&self.layout.places);
        pairs.enumerate().map(|(i, (var, place))| (VarId(i), var, place))
    }

    /// The place of `var`.
    pub fn place(&self, var: VarId) -> Option<&Placement> {
        self.layout.places.get(var.0)
    }

    /// Offset of the `numrecs` field, the one number of a header that changes without a
    /// redefinition.
    pub const NUMRECS_OFFSET: u64 = 4;

    /// The bytes of the `numrecs` field.
    pub fn numrecs_bytes(version: Version, numrecs: NumRecs) -> Vec<u8> {
        let value = match numrecs {
            NumRecs::Count(count) => count,
            NumRecs::Streaming => u64::MAX,
        };
        match version {
            Version::Cdf5 => value.to_be_bytes().to_vec(),
            _ => (value as u32).to_be_bytes().to_vec(),
        }
    }
}

/// Rounds up to a multiple of `align`, or gives `None` on overflow. 0 and 1 change nothing.
pub(crate) fn round_up(value: u64, align: u64) -> Option<u64> {
    if align <= 1 { Some(value) } else { value.checked_next_multiple_of(align) }
}

/// Bytes of the variable's values (in one record, for a record variable) and their padded
/// length, or `None` when they do not fit 63 bits.
pub(crate) fn sizes(schema: &Schema, var: &Variable) -> Option<(u64, u64)> {
    let mut bytes = var.ty.size();
    for dim in &var.dims {
        if let Some(DimLen::Fixed(len)) = schema.dims.at(dim.0).map(|d| d.len) {
            bytes = bytes.checked_mul(len)?;
        }
    }
    let padded = round_up(bytes, 4)?;
    (padded <= i64::MAX as u64).then_some((bytes, padded))
}

/// The record section that follows from the places: where it begins and its record size.
pub(crate) fn record_section(schema: &Schema, places: &[Placement]) -> Option<(Option<u64>, u64)> {
    let mut begin: Option<u64> = None;
    let mut size: u64 = 0;
    let mut count = 0;
    let mut unpadded = 0;
    for (var, place) in schema.vars.iter().zip(places) {
        if schema.is_record(var) {
            begin = Some(begin.map_or(place.begin, |b| b.min(place.begin)));
            size = size.checked_add(place.vsize)?;
            unpadded = place.bytes;
            count += 1;
        }
    }
    // A single record variable is not padded (specification, "Note on padding").
    let size = if count == 1 { unpadded } else { size };
    (size <= i64::MAX as u64).then_some((begin, size))
}
