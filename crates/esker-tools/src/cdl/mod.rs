//! CDL, the text form of a netCDF file.
//!
//! [`parse`] reads what `ncgen` reads, as far as the classic model goes, into a [`CdlFile`]:
//! a schema and the values of every variable. [`print()`] writes what `ncdump` 4.9.0 writes,
//! byte for byte, of anything that is a [`CdlSource`]; a `CdlFile` is one. The few deliberate
//! differences from the two programs are listed in `docs/cdl.md`.
//!
//! Text is read in one pass and values go straight into typed vectors; printing reads the
//! source in blocks of bounded size. Neither keeps a second copy of the data.

mod error;
mod fill;
mod generate;
mod options;
mod parse;
mod print;
mod source;
mod time;

pub use error::{CdlError, CdlFault};
pub use generate::{GenerateError, GenerateOptions, Generated, generate, write};
pub use options::{Annotation, DumpOptions, IndexStyle};
pub use parse::{CdlFile, parse, parse_bytes, parse_header};
pub use print::{PrintError, dump, print};
pub use source::{CdlSource, SourceError, name_of};
