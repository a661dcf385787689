//! Classic netCDF: bytes to structs and back.
#![forbid(unsafe_code)]

mod error;
mod header;
mod journal;
pub mod name;
mod schema;
mod types;
pub mod values;

pub use error::{DecodeError, Fault, SchemaError};
pub use header::{Alignment, DataLayout, Decoded, Header, NumRecs, Placement};
pub use journal::{HeaderJournal, HeaderState};
pub use schema::{
    Attribute, DimId, DimLen, Dimension, Named, NamedList, Owner, Schema, VarId, Variable,
};
pub use types::{ExternalType, MemoryType, Version};
pub use values::{
    Char, ConversionRules, ConvertError, Native, OutOfRange, RangeReport, Scalar, Values,
};
