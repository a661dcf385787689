//! `esker diff`: what two files differ in, definitions and values.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let dir = tempfile::tempdir()?;
//! # let (a, b) = (dir.path().join("a.nc"), dir.path().join("b.nc"));
//! # for (path, value) in [(&a, 1.0f32), (&b, 1.5)] {
//! #     let mut def = esker::Dataset::create(path, esker::CreateOptions::new())?;
//! #     let t = def.add_var("t", esker::ExternalType::Float, &[])?;
//! #     def.enddef()?.put(t, &esker::Selection::all(), &[value])?;
//! # }
//! use esker_tools::diff::{DiffOptions, diff};
//!
//! let report = diff(&a, &b, &DiffOptions::default(), &mut esker_tools::Unseen)?;
//! assert!(!report.same());
//! assert_eq!(report.values[0].first[0].to_string(), "t: 1.0 and 1.5");
//!
//! let loose = DiffOptions { rtol: 0.5, ..DiffOptions::default() };
//! assert!(diff(&a, &b, &loose, &mut esker_tools::Unseen)?.same());
//! # Ok(()) }
//! ```
//!
//! Memory is bounded: values stream through two windows, records in batches, or in boxes of whole
//! chunks. Of two versions of one container only those records are read that one of them has changed.

mod arrays;
mod compare;
mod graphs;
mod report;
mod structure;
mod values;

use std::path::Path;
use std::sync::Arc;

use esker_store::{LocalStore, Store};
use esker_text::sentence;

use crate::progress::Progress;
use crate::source::Source;

pub use report::{Aspect, Difference, Report, ValueDifferences, ValuePair};

/// What to compare, and how closely.
#[derive(Debug, Clone)]
pub struct DiffOptions {
    /// How far numbers may lie apart: they are the same when
    /// `|a - b| <= atol + rtol * |b|`.
    pub atol: f64,
    /// The same, as a share of the second number's size.
    pub rtol: f64,
    /// Whether a NaN is the same as a NaN.
    pub nan_equal: bool,
    /// The variables to compare; empty for all. A chosen variable must be in one of the files.
    /// With a choice, dimensions and global attributes are not compared.
    pub variables: Vec<String>,
    /// Attributes that may differ, wherever they are.
    pub ignore_attributes: Vec<String>,
    /// Whether files of different versions are different; otherwise it is noted.
    pub strict_version: bool,
    /// How many differing values of each variable to report.
    pub most: usize,
    /// Whether the values are left alone.
    pub header_only: bool,
    /// Bytes of memory for the data.
    pub buffer: usize,
    /// Where both files are.
    pub store: Arc<dyn Store>,
}

impl Default for DiffOptions {
    fn default() -> Self {
        DiffOptions {
            atol: 0.0,
            rtol: 0.0,
            nan_equal: true,
            variables: Vec::new(),
            ignore_attributes: Vec::new(),
            strict_version: false,
            most: 10,
            header_only: false,
            buffer: 8 << 20,
            store: Arc::new(LocalStore),
        }
    }
}

/// Why two files could not be compared.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DiffError {
    /// A file cannot be read.
    #[error(transparent)]
    Dataset(Box<esker::Error>),
    /// A variable that neither file has.
    #[error("neither file has a variable {name:?}{hint}", hint = sentence(hint))]
    NoSuchVariable {
        /// The name.
        name: String,
        /// The nearest names.
        hint: String,
    },
}

impl From<esker::Error> for DiffError {
    fn from(error: esker::Error) -> DiffError {
        DiffError::Dataset(Box::new(error))
    }
}

/// Compares two files. A difference is not an error: it is in the report.
pub fn diff(
    first: &Path,
    second: &Path,
    options: &DiffOptions,
    progress: &mut dyn Progress,
) -> Result<Report, DiffError> {
    let window = options.buffer as u64 / 2;
    let mut first = Source::open(options.store.clone(), first, window)?;
    let mut second = Source::open(options.store.clone(), second, window)?;
    let mut report = Report::default();
    let pairs = structure::compare(&first.dataset, &second.dataset, options, &mut report)?;
    if !options.header_only {
        // A NaN that is not the same as itself differs though nobody has changed it; and who compares a version with itself wants it read.
        let is_another = first.dataset.container_version() != second.dataset.container_version();
        let changes = match options.nan_equal && is_another {
            true => second.dataset.changes_since(&first.dataset)?,
            false => None,
        };
        match first.is_chunked()? || second.is_chunked()? {
            true => arrays::compare(&first, &second, &pairs, options, progress, &mut report)?,
            false => {
                let (sides, changes) = ((&mut first, &mut second), changes.as_ref());
                values::compare(sides, changes, &pairs, options, progress, &mut report)?;
            }
        }
    }
    Ok(report)
}
