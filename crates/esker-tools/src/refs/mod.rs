//! References: plain xarray and Zarr read the file, compressed chunks included, without Esker.
//!
//! A reference says at which offset of which file a chunk of a Zarr array lies. A classic file is
//! full of such chunks: an ordinary variable is one that is not compressed, a record of a record
//! variable is one, and the chunks of a chunked variable were stored so that numcodecs decodes
//! them. [`write()`] writes the references and Zarr's metadata (version 2) beside the file, as one
//! JSON document or, for many chunks, as a directory of Parquet files; both are Kerchunk's.
//!
//! What Zarr cannot read is left out, and told: a variable with a filter that numcodecs does not
//! know, or one that lies beyond the end of a file that was cut.
//!
//! `grid` counts chunks, `array` finds them, `metadata` describes them, and a `sink` takes them:
//! a `json` document or a `directory` of `parquet` files, whose headers are `thrift`.
//!
//! ```
//! use esker_tools::Unseen;
//! use esker_tools::cdl;
//! use esker_tools::refs::{self, RefsOptions};
//!
//! # let dir = tempfile::tempdir()?;
//! # let path = dir.path().join("run.nc");
//! let text = b"netcdf run { dimensions: n = 2 ; variables: short v(n) ; data: v = 1, 2 ; }";
//! cdl::generate(text, &path, &cdl::GenerateOptions::default())?;
//! let written = refs::write(&path, None, &RefsOptions::default(), &mut Unseen)?;
//! assert_eq!(written.path, dir.path().join("run.nc.json"));
//! assert_eq!(written.variables[0].chunks, 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod array;
mod closing;
mod directory;
mod grid;
mod json;
mod location;
mod metadata;
mod parquet;
mod sink;
mod thrift;

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use esker::{Dataset, OpenOptions};
use esker_store::{Draft, LocalStore, Store, shown_path};
use esker_text::sentence;

use crate::progress::Progress;
use array::Array;
use directory::Directory;
use json::Document;
use location::Urls;
use sink::{Growing, Sink, failed};

pub use closing::close;
pub use location::Location;

/// The form of references.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// One JSON document.
    Json,
    /// A directory of Parquet files, of which a reader loads what it needs.
    Parquet,
}

impl Form {
    /// The form that a name asks for, if it does.
    pub fn of_name(path: &Path) -> Option<Form> {
        match path.extension()?.to_str()?.to_ascii_lowercase().as_str() {
            "json" => Some(Form::Json),
            "parq" | "parquet" => Some(Form::Parquet),
            _ => None,
        }
    }
}

/// How references are written.
#[derive(Debug, Clone)]
pub struct RefsOptions {
    /// Where a reader will find the file.
    pub location: Location,
    /// The variables; all if there are none.
    pub vars: Vec<String>,
    /// The form. By default that of the output's name, and if that says nothing or there is none,
    /// Parquet for more than [`RefsOptions::json_chunks`] chunks and JSON otherwise.
    pub form: Option<Form>,
    /// Most chunks of a JSON document, which a reader must read whole.
    pub json_chunks: u64,
    /// Record variables that have at most so many bytes in a record are copied into the
    /// references, many records to a chunk. By default what is not longer than its reference.
    pub inline: u64,
    /// Rows of a Parquet file.
    pub rows: usize,
    /// Whether references of the same name are replaced.
    pub overwrite: bool,
    /// Where the files are.
    pub store: Arc<dyn Store>,
}

impl Default for RefsOptions {
    fn default() -> RefsOptions {
        RefsOptions {
            location: Location::default(),
            vars: Vec::new(),
            form: None,
            json_chunks: 1_000_000,
            inline: 32,
            rows: 100_000,
            overwrite: true,
            store: Arc::new(LocalStore),
        }
    }
}

/// References that were written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// Where they are; empty if they went to a stream.
    pub path: PathBuf,
    /// Their form.
    pub form: Form,
    /// Where they say that the file is.
    pub url: String,
    /// The variables that can be read.
    pub variables: Vec<Referenced>,
    /// The variables that cannot.
    pub left_out: Vec<LeftOut>,
}

impl Written {
    /// Chunks of all variables.
    pub fn chunks(&self) -> u64 {
        self.variables.iter().fold(0, |sum, variable| sum.saturating_add(variable.chunks))
    }
}

/// A variable that can be read through references.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Referenced {
    /// Its name.
    pub name: String,
    /// References.
    pub chunks: u64,
    /// Chunks that were never written, which are fill values.
    pub missing: u64,
    /// What a reader should know.
    pub note: Option<String>,
}

/// A variable that cannot be read through references.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOut {
    /// Its name.
    pub name: String,
    /// Why.
    pub why: String,
}

/// Why there are no references. What was there before is as it was.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RefsError {
    /// The file cannot be read.
    #[error(transparent)]
    Dataset(Box<esker::Error>),

    /// The references cannot be written; the error names the file.
    #[error(transparent)]
    Write(io::Error),

    /// The input is a container.
    #[error(
        "{}: it is a container, whose values lie in logs in the order in which they were written \
         (`esker replay` makes a file that references can describe)",
        shown_path(path)
    )]
    Container {
        /// The input.
        path: PathBuf,
    },

    /// The dataset is closed, and all that was written is in it; its references are not there.
    #[error("{}: it is closed and whole, but has no new references: {why}", shown_path(path), why = sentence(why))]
    Closed {
        /// The dataset.
        path: PathBuf,
        /// What went wrong with them.
        why: String,
    },

    /// There is something of the output's name.
    #[error("{}: it exists already, and is not to be replaced", shown_path(path))]
    Exists {
        /// The output.
        path: PathBuf,
    },

    /// A directory of the output's name has something else in it.
    #[error("{}: it is a directory of something else than references", shown_path(path))]
    NotReferences {
        /// The output.
        path: PathBuf,
    },
}

impl From<esker::Error> for RefsError {
    fn from(error: esker::Error) -> RefsError {
        RefsError::Dataset(Box::new(error))
    }
}

impl From<io::Error> for RefsError {
    fn from(error: io::Error) -> RefsError {
        RefsError::Write(error)
    }
}

type Result<T> = std::result::Result<T, RefsError>;

/// What will be written.
struct Survey {
    dataset: Dataset,
    arrays: Vec<Array>,
    left_out: Vec<LeftOut>,
}

/// Writes the references of the file `input` to `output`, or beside the file: `run.nc.json` or
/// `run.nc.parq`. They appear when they are complete. Progress is counted in chunks.
pub fn write(
    input: &Path,
    output: Option<&Path>,
    options: &RefsOptions,
    progress: &mut dyn Progress,
) -> Result<Written> {
    let survey = Survey::of(input, options)?;
    let asked = options.form.or_else(|| output.and_then(Form::of_name));
    let form = asked.unwrap_or(match survey.chunks() > options.json_chunks {
        true => Form::Parquet,
        false => Form::Json,
    });
    let output = output.map_or_else(|| beside(input, form), Path::to_path_buf);
    let store = &options.store;
    let urls = options.location.urls(&survey.dataset, &directory_of(&**store, &output)?);
    if !options.overwrite && store.exists(&output).map_err(failed)? {
        return Err(RefsError::Exists { path: output });
    }
    match form {
        Form::Json => survey.json_file(&output, &urls, options, progress)?,
        Form::Parquet => survey.parquet(&output, &urls, options, progress)?,
    }
    Ok(survey.written(output, form, urls.dataset))
}

/// Writes the references of the file `input` to a stream, as JSON.
pub fn write_to(
    input: &Path,
    out: impl Write,
    options: &RefsOptions,
    progress: &mut dyn Progress,
) -> Result<Written> {
    let survey = Survey::of(input, options)?;
    let here = options.store.resolve(Path::new(".")).map_err(failed)?;
    let urls = options.location.urls(&survey.dataset, &here);
    let mut document = Document::begin(out, &urls)?;
    survey.write(&mut document, progress)?;
    document.end()?;
    Ok(survey.written(PathBuf::new(), Form::Json, urls.dataset))
}

impl Survey {
    fn of(input: &Path, options: &RefsOptions) -> Result<Survey> {
        let open = OpenOptions::new().store(options.store.clone());
        let dataset = Dataset::open_with(input, open)?;
        if dataset.container_version().is_some() {
            return Err(RefsError::Container { path: input.to_path_buf() });
        }
        let (mut arrays, mut left_out) = (Vec::new(), Vec::new());
        for var in array::chosen(&dataset, &options.vars)? {
            match Array::of(&dataset, var, options.inline)? {
                Ok(array) => arrays.push(array),
                Err(why) => left_out.push(why),
            }
        }
        Ok(Survey { dataset, arrays, left_out })
    }

    fn chunks(&self) -> u64 {
        self.arrays.iter().fold(0, |sum, array| sum.saturating_add(array.chunks))
    }

    fn written(self, path: PathBuf, form: Form, url: String) -> Written {
        let variables = self.arrays.iter().map(|array| Referenced {
            name: array.name.clone(),
            chunks: array.chunks,
            missing: array.missing(),
            note: array.note.clone(),
        });
        let variables = variables.collect();
        Written { path, form, url, variables, left_out: self.left_out }
    }

    /// Everything, in the order of definition.
    fn write(&self, sink: &mut impl Sink, progress: &mut dyn Progress) -> Result<()> {
        let schema = self.dataset.schema();
        sink.metadata(".zgroup", metadata::GROUP)?;
        sink.metadata(".zattrs", &metadata::group_attributes(schema))?;
        let (mut done, total) = (0u64, self.chunks());
        for array in &self.arrays {
            let variable = self.dataset.variable(array.var)?;
            let is_chunked = self.dataset.chunking(array.var).is_some();
            let attributes = metadata::variable_attributes(schema, variable, is_chunked);
            sink.metadata(&format!("{}/.zarray", array.name), &metadata::array(array))?;
            sink.metadata(&format!("{}/.zattrs", array.name), &attributes)?;
            sink.begin(array)?;
            array.each(&self.dataset, |index, content| -> Result<()> {
                done += 1;
                if done.is_multiple_of(1 << 14) {
                    progress.progress(done, total);
                    if progress.is_cancelled() {
                        return Err(io::Error::from(io::ErrorKind::Interrupted).into());
                    }
                }
                Ok(sink.chunk(index, content)?)
            })?;
            sink.close()?;
        }
        progress.progress(done, total);
        Ok(())
    }

    fn json_file(
        &self,
        output: &Path,
        urls: &Urls,
        options: &RefsOptions,
        progress: &mut dyn Progress,
    ) -> Result<()> {
        let store = &options.store;
        let draft = Draft::whole(store, output).map_err(failed)?;
        let file = draft.file().cloned().ok_or(io::Error::from(io::ErrorKind::IsADirectory))?;
        let mut document =
            Document::begin(BufWriter::with_capacity(1 << 20, Growing::new(file)), urls)?;
        self.write(&mut document, progress)?;
        let file = document.end()?.into_inner().map_err(|error| error.into_error())?;
        file.sync()?;
        match options.overwrite {
            true => draft.take_name(),
            false => draft.publish(),
        }
        .map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => RefsError::Exists { path: output.into() },
            _ => failed(error).into(),
        })
    }

    fn parquet(
        &self,
        output: &Path,
        urls: &Urls,
        options: &RefsOptions,
        progress: &mut dyn Progress,
    ) -> Result<()> {
        let store = &options.store;
        let replaced = store.exists(output).map_err(failed)?;
        if replaced && !directory::is_references(&**store, output)? {
            return Err(RefsError::NotReferences { path: output.to_path_buf() });
        }
        let draft = Draft::folder(store, output).map_err(failed)?;
        let mut directory = Directory::begin(store, draft.path(), urls, options.rows)?;
        self.write(&mut directory, progress)?;
        directory.end()?;
        Ok(draft.take_name().map_err(failed)?)
    }
}

/// `run.nc.json` beside `run.nc`.
fn beside(input: &Path, form: Form) -> PathBuf {
    let mut name = input.file_name().unwrap_or_default().to_os_string();
    name.push(match form {
        Form::Json => ".json",
        Form::Parquet => ".parq",
    });
    input.with_file_name(name)
}

/// The directory that `path` is in, absolute.
fn directory_of(store: &dyn Store, path: &Path) -> io::Result<PathBuf> {
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    store.resolve(directory).map_err(failed)
}
