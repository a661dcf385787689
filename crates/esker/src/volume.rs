//! What the bytes of a dataset lie in, where that is more than one file.

use std::any::Any;
use std::sync::{Arc, MutexGuard};

use esker_format::{Header, Schema, SchemaError};
use esker_store::File;

use crate::base::Base;
use crate::error::Result;

/// Several files that are read and written as one. The header that is stored is another one than the dataset has.
pub(crate) trait Volume: File + Any {
    /// The file that has the header.
    fn main(&self) -> &Arc<dyn File>;

    /// The header that it has.
    fn disk(&self) -> MutexGuard<'_, Header>;

    /// The schema that is stored for this one.
    fn on_disk(&self, schema: &Schema) -> std::result::Result<Schema, SchemaError>;

    /// Makes all files what readers count on, with so many records.
    fn settle(&self, base: &Base, records: u64) -> Result<()>;

    /// Makes all files but the main one safe from power loss.
    fn sync_parts(&self, base: &Base) -> Result<()>;
}
