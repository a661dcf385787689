//! Esker: arrays of simulations in classic netCDF files.
//!
//! A dataset has dimensions, variables over them, and attributes. It is created in define
//! mode ([`Define`]), where these come into being; [`Define::enddef`] makes it a [`Dataset`],
//! whose variables are written and read by [`Selection`]: hyperslabs with a start, a count
//! and a stride in each dimension. The file is a classic netCDF file (CDF-1, 2 or 5) that every
//! netCDF tool opens.
//!
//! ```
//! use esker::{CreateOptions, Dataset, DimLen, ExternalType, Owner, Selection};
//!
//! # fn main() -> esker::Result<()> {
//! # let dir = tempfile::tempdir().unwrap();
//! # let path = dir.path().join("run.nc");
//! let mut def = Dataset::create(&path, CreateOptions::new())?;
//! let time = def.add_dim("time", DimLen::Unlimited)?;
//! let x = def.add_dim("x", DimLen::Fixed(4))?;
//! let t = def.add_var("t", ExternalType::Float, &[time, x])?;
//! def.put_attr(t, "units", "K")?;
//! def.put_attr(Owner::Global, "title", "a first run")?;
//! let mut ds = def.enddef()?;
//! ds.append(t, &[280.0, 281.5, 283.0, 284.5])?;
//! ds.put(t, &Selection::slab(&[0, 1], &[1, 2]), &[0.0f32, 1.0])?;
//! let row: Vec<f64> = ds.get(t, &Selection::all())?;
//! assert_eq!(row, [280.0, 0.0, 1.0, 284.5]);
//! ds.close()
//! # }
//! ```
//!
//! The road of a write, which is also the order to read the modules in: [`Dataset::put`]
//! checks the selection (`selection`), which becomes regular byte patterns (`pattern`), whose
//! runs are converted and written (`transfer`). A header reaches the file in `commit`.
#![forbid(unsafe_code)]

mod base;
mod commit;
mod dataset;
mod define;
mod error;
mod fill;
mod moving;
pub mod nearest;
mod options;
mod pattern;
mod selection;
mod sound;
mod transfer;

pub use base::{journal_path, new_path, read_header_noting, read_journal};
pub use commit::{clear_journal, finish_redefinition, remove_journal, replace_header};
pub use dataset::Dataset;
pub use define::{Define, EnddefError};
pub use error::{Error, Result, SelectionError};
pub use esker_format::{
    Alignment, Attribute, Char, DataLayout, DimId, DimLen, Dimension, ExternalType, Header,
    HeaderState, MemoryType, Native, NumRecs, Owner, Placement, Scalar, Schema, SchemaError,
    Values, VarId, Variable, Version, values,
};
pub use options::{CreateOptions, FillMode, OpenOptions};
pub use selection::Selection;
pub use sound::overlap;
