//! Classic netCDF (CDF-1, CDF-2 and CDF-5): bytes to structs and back.
//!
//! This crate knows the format and nothing else: it opens no files, starts no threads and
//! asks no clock. Three things matter:
//!
//! - [`Schema`]: the dimensions, attributes and variables of a dataset, by name and number;
//! - [`Header`]: a schema, the number of records and where each variable's bytes are.
//!   [`Header::decode`] takes hostile input: no length is believed before the file is known
//!   to be long enough for it, and every error says at which byte, in which object, and what
//!   was found there;
//! - [`Values`] and [`values`]: numbers between the file's big-endian form and memory, at
//!   memory speed, by netCDF's conversion rules.
//!
//! ```
//! use esker_format::*;
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut schema = Schema::new(Version::Cdf5);
//! let time = schema.add_dim("time", DimLen::Unlimited)?;
//! let lat = schema.add_dim("lat", DimLen::Fixed(180))?;
//! let t = schema.add_var("t", ExternalType::Float, &[time, lat])?;
//! schema.put_attr(t.into(), "units", Values::from("K"))?;
//! let layout = DataLayout::place(&schema, &Alignment::default())?;
//! let header = Header { schema, numrecs: NumRecs::Count(2), layout };
//! let bytes = header.encode();
//! let file_len = header.data_end(2);
//! assert_eq!(Header::decode(&bytes, file_len)?, header);
//! # Ok(()) }
//! ```
//!
//! Read on in `header/decode.rs` and `header/place.rs`.
#![forbid(unsafe_code)]

pub mod chunked;
mod error;
pub mod graph;
mod header;
pub mod history;
pub mod inside;
mod journal;
pub mod log;
pub mod name;
pub mod runs;
mod schema;
pub mod sealed;
mod types;
pub mod values;
pub mod varint;

pub use error::{DecodeError, Fault, SchemaError};
pub use header::{
    Alignment, At, DataLayout, Decoded, FileOrder, Header, HeaderPart, HeaderSums, NumRecs,
    Placement, VarFields,
};
pub use journal::{HeaderJournal, HeaderState};
pub use schema::{
    Attribute, DimId, DimLen, Dimension, Named, NamedList, Owner, Schema, VarId, Variable,
};
pub use types::{ExternalType, MemoryType, Version};
pub use values::{
    Char, ConversionRules, ConvertError, Native, OutOfRange, RangeReport, Scalar, Values,
};
