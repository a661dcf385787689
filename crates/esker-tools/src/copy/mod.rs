//! `esker copy`: a file, or chosen variables and ranges of it, into a file of any version.
//!
//! ```
//! use esker::{CreateOptions, Dataset, DimLen, ExternalType, Selection, Version};
//! use esker_tools::copy::{CopyOptions, DimRange, copy};
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let dir = tempfile::tempdir()?;
//! # let (input, output) = (dir.path().join("in.nc"), dir.path().join("out.nc"));
//! let mut def = Dataset::create(&input, CreateOptions::new())?;
//! let x = def.add_dim("x", DimLen::Fixed(5))?;
//! let t = def.add_var("t", ExternalType::Short, &[x])?;
//! let mut ds = def.enddef()?;
//! ds.put(t, &Selection::all(), &[0i16, 1, 2, 3, 4])?;
//! ds.close()?;
//!
//! let mut options = CopyOptions::default();
//! options.version = Some(Version::Cdf1);
//! options.ranges = vec![DimRange::new("x", Some(1), None, 2)];
//! copy(&input, &output, &options, &mut esker_tools::Unseen)?;
//! let ds = Dataset::open(&output)?;
//! assert_eq!(ds.get::<i16>(ds.var("t")?, &Selection::all())?, [1, 3]);
//! # Ok(()) }
//! ```
//!
//! The road: `choose` says what is kept, `convert` finds types for what the target version
//! lacks, and `transfer` moves the values in bounded memory: it reads through one window and
//! writes the output from beginning to end. Where one of the files has chunks, `chunks` chooses
//! theirs and `arrays` moves the values, in `boxes`.

mod arrays;
mod canonical;
mod choose;
mod chunks;
mod container;
mod convert;
mod error;
mod range;
mod sink;
mod transfer;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use esker::{
    Alignment, Communicator, DataLayout, Dataset, Error, Header, Hints, Layout, NumRecs, Schema,
    SelfComm, Values, VarId, Version,
};
use esker_format::chunked::{FILTERS, SHAPE};
use esker_format::sealed::decomposed::{Counts, counts_of, put_counts};
use esker_store::{Draft, LocalStore, Store};

use crate::progress::Progress;
use crate::source::Source;
use crate::whole;
use choose::Plan;
use convert::Reader;

pub use arrays::copy_together;
pub use canonical::canonical;
pub use chunks::{ChunkOptions, DEFAULT_FILTERS, FilterWish, ShapeWish};
pub use error::CopyError;
pub use range::DimRange;

/// What to copy, and how.
#[derive(Debug, Clone)]
pub struct CopyOptions {
    /// The version of the output; none for the input's.
    pub version: Option<Version>,
    /// The variables to copy; empty for all. Their dimensions come along, and the coordinate
    /// variables of these.
    pub variables: Vec<String>,
    /// Variables not to copy, coordinate variables included.
    pub exclude: Vec<String>,
    /// Ranges of dimensions; a dimension without one is copied whole.
    pub ranges: Vec<DimRange>,
    /// Whether the unlimited dimension becomes a fixed one.
    pub fix_unlimited: bool,
    /// What the output is: a classic file or a container of logs.
    pub layout: Layout,
    /// Which variables are chunked and filtered in the output.
    pub chunks: ChunkOptions,
    /// Which version of a container is copied; none for the newest.
    pub container_version: Option<u64>,
    /// How the output's data section is aligned.
    pub align: Alignment,
    /// A line for the global attribute `history`, which goes before those that are there.
    pub history: Option<String>,
    /// Whether types that the output's version lacks become the smallest that holds the
    /// values; otherwise they are an error.
    pub convert_types: bool,
    /// Whether a file that has the output's name is replaced.
    pub overwrite: bool,
    /// Whether the output is safe from power loss before it takes its name.
    pub sync: bool,
    /// Bytes of memory for the data, whatever the shapes.
    pub buffer: usize,
    /// Where both files are.
    pub store: Arc<dyn Store>,
}

impl Default for CopyOptions {
    fn default() -> Self {
        CopyOptions {
            version: None,
            variables: Vec::new(),
            exclude: Vec::new(),
            ranges: Vec::new(),
            fix_unlimited: false,
            layout: Layout::Classic,
            chunks: ChunkOptions::default(),
            container_version: None,
            align: Alignment::default(),
            history: None,
            convert_types: false,
            overwrite: true,
            sync: true,
            buffer: 8 << 20,
            store: Arc::new(LocalStore),
        }
    }
}

/// What was copied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Copied {
    /// Variables in the output.
    pub variables: usize,
    /// Records in the output.
    pub records: u64,
    /// Bytes of values.
    pub bytes: u64,
    /// Length of the output file, or of the one that the container stands for.
    pub file_len: u64,
    /// Variables whose type changed: name, before, after.
    pub converted: Vec<(String, esker::ExternalType, esker::ExternalType)>,
}

/// Copies `input` to `output`, which appears when it is complete and not before.
pub fn copy(
    input: &Path,
    output: &Path,
    options: &CopyOptions,
    progress: &mut dyn Progress,
) -> Result<Copied, CopyError> {
    let store = &options.store;
    let mut source = Source::open(store.clone(), input, options.buffer as u64 / 2)?;
    let wishes = &options.chunks;
    let is_plain = options.container_version.is_none() && !wishes.is_asked();
    if !is_plain || source.is_chunked()? || has_filters(&source) {
        drop(source);
        return copy_together(input, output, options, Arc::new(SelfComm::new()), progress);
    }
    let output = target(source.dataset.path(), output, options)?;
    require_unwritten(&output, options)?;
    let mut plan = Plan::new(&source.dataset, options)?;
    let scanned =
        convert::settle_types(&mut Reader::Window(&mut source), &mut plan, options, progress)?;
    if let Some(line) = &options.history {
        add_history(&mut plan, line);
    }
    let header = place(&plan, &output, options)?;
    let task = transfer::Task { plan: &plan, header: &header, options, scanned };
    let draft = match options.layout {
        Layout::Log => Draft::folder(store, &output),
        Layout::Classic => Draft::whole(store, &output),
    };
    let draft = draft.map_err(Error::from)?;
    let bytes = match draft.file().cloned() {
        None => container::run(&task, &mut source, draft.path(), progress)?,
        Some(file) => {
            let bytes = task.run(&mut source, file.clone(), progress)?;
            if options.sync {
                file.sync().map_err(Error::from)?;
            }
            bytes
        }
    };
    name(draft, options)?;
    Ok(copied(&plan, &header, &source, bytes))
}

fn copied(plan: &Plan, header: &Header, source: &Source, bytes: u64) -> Copied {
    Copied {
        variables: plan.vars.len(),
        records: plan.records,
        bytes,
        file_len: header.data_end(plan.records),
        converted: plan.converted(source.dataset.schema()),
    }
}

/// Whether it is a container whose variables have chunks or filters, which are no part of the file that it
/// stands for.
fn has_filters(source: &Source) -> bool {
    let mut vars = source.dataset.schema().vars.iter();
    source.dataset.container_version().is_some()
        && vars.any(|var| [SHAPE, FILTERS].iter().any(|name| var.attrs.get(name).is_some()))
}

/// The output behind symbolic links, when it may be written.
fn target(source: &Path, output: &Path, options: &CopyOptions) -> Result<PathBuf, CopyError> {
    let store = &options.store;
    if !store.exists(output).map_err(Error::from)? {
        return Ok(output.to_path_buf());
    }
    let resolved = store.resolve(output).map_err(Error::from)?;
    if resolved == source {
        return Err(CopyError::SameFile { path: resolved });
    }
    if !options.overwrite {
        return Err(CopyError::Exists { path: output.to_path_buf() });
    }
    let is_container = esker::is_container(&**store, &resolved)?;
    if is_container != (options.layout == Layout::Log) {
        return Err(CopyError::OtherKind { path: resolved, is_container });
    }
    Ok(resolved)
}

/// Fails if somebody writes to what the output replaces. To look takes the file's lock for a moment: by one rank.
fn require_unwritten(output: &Path, options: &CopyOptions) -> esker::Result<()> {
    match options.layout {
        Layout::Classic => esker::require_unwritten(&*options.store, output),
        Layout::Log => Ok(()),
    }
}

/// Begins the output on rank 0, which all ranks write to. Collective.
fn begin(
    source: &Dataset,
    output: &Path,
    options: &CopyOptions,
) -> Result<Option<Draft>, CopyError> {
    let begun = match source.comm().rank() {
        0 => require_unwritten(output, options)
            .and_then(|()| whole::begin(&options.store, output, options.layout, &Hints::default()))
            .map(Some),
        _ => Ok(None),
    };
    Ok(source.agree(begun)?)
}

/// Gives an output that is complete its name, by rank 0. Collective.
fn name_together(
    source: &Dataset,
    draft: Option<Draft>,
    copied: Result<Copied, CopyError>,
    options: &CopyOptions,
) -> Result<Copied, CopyError> {
    let named = copied.and_then(|copied| match draft {
        Some(draft) => name(draft, options).map(|()| copied),
        None => Ok(copied),
    });
    source.comm().barrier().map_err(Error::from)?;
    named
}

/// Gives the output its name.
fn name(draft: Draft, options: &CopyOptions) -> Result<(), CopyError> {
    let output = draft.target().to_path_buf();
    let named = whole::name(&options.store, draft, options.overwrite, options.sync);
    named.map_err(|error| match error {
        Error::Store(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            CopyError::Exists { path: output }
        }
        other => other.into(),
    })
}

/// The error of values that could not be converted.
fn convert_error(source: &Dataset, var: VarId, error: esker_format::ConvertError) -> Error {
    let name = source.schema().variable(var).map_or(String::new(), |v| v.name.to_string());
    Error::Convert { path: source.path().to_path_buf(), var: name, source: error }
}

/// The options with rank 0's line of history for all: it has a time in it, and not all ranks start in the same second. Collective.
fn with_one_history(
    options: &CopyOptions,
    comm: &dyn Communicator,
) -> Result<CopyOptions, CopyError> {
    let line = options.history.clone().unwrap_or_default();
    let told = comm.broadcast(0, line.into()).map_err(Error::from)?;
    let history = std::str::from_utf8(&told).ok().filter(|line| !line.is_empty());
    Ok(CopyOptions { history: history.map(str::to_string), ..options.clone() })
}

/// Puts `line` before the history there is, as NCO and CDO do. An attribute of that name that
/// is not text is somebody's data, and stays.
fn add_history(plan: &mut Plan, line: &str) {
    if let Some(text) = history(&plan.schema, line) {
        // The name is good and text exists in every version, so this does not fail.
        let _ = plan.schema.put_attr(esker::Owner::Global, "history", text);
    }
}

/// The history with `line` before it; none where it is not text.
fn history(schema: &Schema, line: &str) -> Option<Values> {
    match schema.attr(esker::Owner::Global, "history") {
        None => Some(Values::from(line)),
        Some(Values::Char(old)) if old.is_empty() => Some(Values::from(line)),
        Some(Values::Char(old)) => {
            let mut text = line.as_bytes().to_vec();
            text.push(b'\n');
            text.extend(old);
            Some(Values::Char(text))
        }
        Some(_) => None,
    }
}

fn place(plan: &Plan, output: &Path, options: &CopyOptions) -> Result<Header, CopyError> {
    let layout = DataLayout::place(&plan.schema, &options.align)
        .map_err(|source| Error::Schema { path: output.to_path_buf(), source })?;
    let numrecs = NumRecs::Count(plan.records);
    let mut schema = plan.schema.clone();
    if counts_of(&schema).is_some() {
        // A map says how many records there are, of which some may have been left out.
        let counts = Counts { begun: plan.records, counted: plan.records };
        put_counts(&mut schema, None, counts)
            .map_err(|source| Error::Schema { path: output.to_path_buf(), source })?;
    }
    let header = Header { schema, numrecs, layout };
    let version = plan.schema.version;
    if plan.records > version.max_count() || header.data_end(plan.records) > i64::MAX as u64 {
        let (path, records, max) = (output.to_path_buf(), plan.records, version.max_count());
        return Err(Error::TooManyRecords { path, records, version, max }.into());
    }
    Ok(header)
}
