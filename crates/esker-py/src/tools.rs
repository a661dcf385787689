//! What people do with whole files, as in the command.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use esker::{ContainerRecoverOptions, Layout, RecoverOptions};
use esker_store::{LocalStore, Store};
use esker_tools::check::{self as checking, CheckOptions};
use esker_tools::copy::{ChunkOptions, CopyOptions, DimRange};
use esker_tools::refs::{self as referring, Form, Location, RefsOptions};
use esker_tools::replay::{self as replaying, ReplayError, ReplayOptions};
use esker_tools::{Progress, Unseen};
use numpy::PyUntypedArray;
use pyo3::exceptions::{PyFileExistsError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors::{copy_exception, exception, refs_exception};
use crate::handle::{layout_named, version_named};
use crate::memory::Lent;

/// A range of a dimension: name, start, stop, step.
type Range = (String, Option<i64>, Option<i64>, Option<i64>);

/// Copies a dataset into one of another version or layout.
#[pyfunction]
#[pyo3(signature = (source, target, *, format, layout, variables, exclude, ranges, chunks, filters, contiguous, fix_unlimited, convert_types, overwrite, canonical, history, progress))]
#[allow(clippy::too_many_arguments)]
pub(crate) fn convert<'py>(
    py: Python<'py>,
    source: PathBuf,
    target: PathBuf,
    format: Option<&str>,
    layout: &str,
    variables: Vec<String>,
    exclude: Vec<String>,
    ranges: Vec<Range>,
    chunks: Vec<String>,
    filters: Vec<String>,
    contiguous: bool,
    fix_unlimited: bool,
    convert_types: bool,
    overwrite: bool,
    canonical: bool,
    history: Option<String>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let range = |(name, start, stop, step): Range| {
        let step = u64::try_from(step.unwrap_or(1)).ok().filter(|step| *step > 0);
        let step =
            step.ok_or_else(|| PyValueError::new_err("the step of a range is at least 1"))?;
        Ok(DimRange::new(&name, start, stop, step))
    };
    let chunks = ChunkOptions {
        contiguous,
        shapes: chunks.iter().map(|text| wish(text)).collect::<PyResult<_>>()?,
        filters: filters.iter().map(|text| wish(text)).collect::<PyResult<_>>()?,
        ..ChunkOptions::default()
    };
    if contiguous && chunks.is_asked() {
        return Err(PyValueError::new_err("contiguous= excludes chunks= and filters="));
    }
    let options = CopyOptions {
        chunks,
        version: format.map(version_named).transpose()?,
        layout: layout_named(layout)?,
        variables,
        exclude,
        ranges: ranges.into_iter().map(range).collect::<PyResult<_>>()?,
        fix_unlimited,
        convert_types,
        overwrite,
        history,
        ..CopyOptions::default()
    };
    let mut observer = Observer { progress, raised: None };
    let copied = py.detach(|| {
        if canonical && options.layout == Layout::Classic {
            let alone = std::sync::Arc::new(esker::SelfComm::new());
            esker_tools::copy::canonical(&source, &target, &options, alone, &mut observer)
        } else {
            esker_tools::copy::copy(&source, &target, &options, &mut observer)
        }
    });
    let copied = observer.outcome(copied, |error| copy_exception(py, &error))?;
    let answer = PyDict::new(py);
    answer.set_item("variables", copied.variables)?;
    answer.set_item("records", copied.records)?;
    answer.set_item("bytes", copied.bytes)?;
    Ok(answer)
}

/// What is asked for in the command's words.
fn wish<T: FromStr<Err: std::fmt::Display>>(text: &str) -> PyResult<T> {
    text.parse().map_err(|why| PyValueError::new_err(format!("{text:?}: {why}")))
}

/// Tells a Python function how far it is, and looks at signals. What either raises is kept, and ends the
/// task.
struct Observer {
    progress: Option<Py<PyAny>>,
    raised: Option<PyErr>,
}

impl Progress for Observer {
    fn progress(&mut self, done: u64, total: u64) {
        if self.raised.is_some() {
            return;
        }
        let told = Python::attach(|py| {
            py.check_signals()?;
            match &self.progress {
                Some(progress) => progress.call1(py, (done, total)).map(drop),
                None => Ok(()),
            }
        });
        self.raised = told.err();
    }

    fn is_cancelled(&self) -> bool {
        self.raised.is_some()
    }
}

impl Observer {
    /// What came of the task; what was raised while it ran goes before its own error.
    fn outcome<T, E>(self, done: Result<T, E>, exception: impl FnOnce(E) -> PyErr) -> PyResult<T> {
        match self.raised {
            Some(raised) => Err(raised),
            None => done.map_err(exception),
        }
    }
}

/// Writes references; gives their path, form and URL, the variables as (name, chunks, missing,
/// note), and those left out as (name, why).
#[pyfunction]
#[pyo3(signature = (source, target, *, form, url, relative, variables, inline, overwrite, progress))]
#[allow(clippy::too_many_arguments, clippy::type_complexity)]
pub(crate) fn refs(
    py: Python<'_>,
    source: PathBuf,
    target: Option<PathBuf>,
    form: Option<&str>,
    url: Option<String>,
    relative: bool,
    variables: Vec<String>,
    inline: u64,
    overwrite: bool,
    progress: Option<Py<PyAny>>,
) -> PyResult<(
    PathBuf,
    &'static str,
    String,
    Vec<(String, u64, u64, Option<String>)>,
    Vec<(String, String)>,
)> {
    let form = match form {
        None => None,
        Some("json") => Some(Form::Json),
        Some("parquet") => Some(Form::Parquet),
        Some(name) => {
            let why = format!("form {name:?} is not one of json, parquet");
            return Err(PyValueError::new_err(why));
        }
    };
    let location = match url {
        Some(_) if relative => {
            return Err(PyValueError::new_err("url= and relative= exclude each other"));
        }
        Some(url) => Location::Url(url),
        None if relative => Location::Relative,
        None => Location::Here,
    };
    let options =
        RefsOptions { location, vars: variables, form, inline, overwrite, ..Default::default() };
    let mut observer = Observer { progress, raised: None };
    let written =
        py.detach(|| referring::write(&source, target.as_deref(), &options, &mut observer));
    let written = observer.outcome(written, |error| refs_exception(py, &error))?;
    let form = match written.form {
        Form::Json => "json",
        Form::Parquet => "parquet",
    };
    let variables = written.variables.into_iter().map(|v| (v.name, v.chunks, v.missing, v.note));
    let left_out = written.left_out.into_iter().map(|left| (left.name, left.why));
    Ok((written.path, form, written.url, variables.collect(), left_out.collect()))
}

/// What is wrong with a file: a list of (severity, code, offset, object, sentence), and its version.
/// The crc32c of bytes, one behind the other.
#[pyfunction]
pub(crate) fn crc32c(py: Python<'_>, values: &Bound<'_, PyUntypedArray>) -> PyResult<u32> {
    let lent = Lent::dense(values, false)?;
    Ok(py.detach(|| esker::crc32c(lent.bytes(&lent.whole()).0)))
}

#[pyfunction]
#[allow(clippy::type_complexity)]
pub(crate) fn check(
    py: Python<'_>,
    path: PathBuf,
    read_data: bool,
) -> PyResult<(
    Option<&'static str>,
    u64,
    Vec<(&'static str, &'static str, Option<u64>, String, String)>,
)> {
    let options = CheckOptions { read_data, ..CheckOptions::default() };
    let mut observer = Observer { progress: None, raised: None };
    let report = py.detach(|| checking::check(&path, &options, &mut observer));
    let report = observer.outcome(report, |error| exception(py, &error))?;
    let findings = report.findings.into_iter().map(|found| {
        (found.severity.name(), found.code, found.offset, found.object, found.sentence)
    });
    Ok((report.version.map(crate::handle::format_name), report.file_len, findings.collect()))
}

/// Replays what the logs of a program that died have: of a burst buffer, or of a container.
#[pyfunction]
#[pyo3(signature = (path, *, dirs, keep, dry_run, superseded))]
pub(crate) fn recover<'py>(
    py: Python<'py>,
    path: PathBuf,
    dirs: Vec<PathBuf>,
    keep: bool,
    dry_run: bool,
    superseded: bool,
) -> PyResult<Bound<'py, PyDict>> {
    let told = PyDict::new(py);
    let store: Arc<dyn Store> = Arc::new(LocalStore);
    if py.detach(|| esker::is_container(&*store, &path)).map_err(|e| exception(py, &e))? {
        let options = ContainerRecoverOptions { dry_run, superseded };
        let recovered =
            py.detach(|| esker::recover_container(&store, &path, options, &mut |_, _| {}));
        let recovery = recovered.map_err(|error| exception(py, &error))?;
        let writes: u64 = recovery.recovered.iter().map(|log| log.entries).sum();
        let lost = recovery.lost_versions.iter().filter_map(|version| version.lacks.as_ref());
        let faults: Vec<String> =
            recovery.faults.iter().map(ToString::to_string).chain(lost.cloned()).collect();
        told.set_item("version", recovery.made.unwrap_or(recovery.found))?;
        told.set_item("made_version", recovery.made)?;
        told.set_item("records", recovery.records.1)?;
        told.set_item("writes", writes)?;
        told.set_item("damages", faults)?;
        told.set_item("complete", !recovery.is_loss())?;
        return Ok(told);
    }
    let mut options = RecoverOptions::new().keep(keep).look_only(dry_run);
    for dir in dirs {
        options = options.dir(dir);
    }
    let recovered = py.detach(|| esker::recover(&path, &options));
    let recovery = recovered.map_err(|error| exception(py, &error))?;
    let missing = recovery.missing.iter().map(|rank| format!("the log of rank {rank} is missing"));
    let subfiles = recovery.subfiles.iter().map(|(path, why)| format!("{}: {why}", path.display()));
    let damages =
        recovery.damages.iter().map(|damage| format!("rank {}: {}", damage.rank, damage.what));
    told.set_item("logs", recovery.logs)?;
    told.set_item("ranks", recovery.ranks)?;
    told.set_item("records", recovery.records)?;
    told.set_item("writes", recovery.entries)?;
    told.set_item("damages", damages.chain(missing).chain(subfiles).collect::<Vec<_>>())?;
    told.set_item("complete", recovery.is_complete())?;
    Ok(told)
}

/// Makes a classic file of a container.
#[pyfunction]
#[pyo3(signature = (source, target, *, version, overwrite, sync, comm))]
pub(crate) fn replay<'py>(
    py: Python<'py>,
    source: PathBuf,
    target: PathBuf,
    version: Option<u64>,
    overwrite: bool,
    sync: bool,
    comm: Option<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let comm = crate::comm::ranks(comm.as_ref())?;
    let options = ReplayOptions { version, overwrite, sync, comm, ..ReplayOptions::default() };
    let replayed = py.detach(|| replaying::replay(&source, &target, &options, &mut Unseen));
    let replayed = replayed.map_err(|error| match error {
        ReplayError::Dataset(error) => exception(py, &error),
        ReplayError::Exists { .. } => PyFileExistsError::new_err(error.to_string()),
        other => PyValueError::new_err(other.to_string()),
    })?;
    let told = PyDict::new(py);
    told.set_item("version", replayed.version)?;
    told.set_item("variables", replayed.variables)?;
    told.set_item("records", replayed.records)?;
    told.set_item("bytes", replayed.file_len)?;
    Ok(told)
}

/// What somebody who reads this dataset has to know.
#[pyfunction]
pub(crate) fn reader_notes(py: Python<'_>, path: PathBuf) -> Vec<String> {
    py.detach(|| esker::reader_notes(&LocalStore, &path))
}

/// The versions of a container, newest first, as dictionaries.
#[pyfunction]
#[pyo3(signature = (path, most=None))]
pub(crate) fn versions<'py>(
    py: Python<'py>,
    path: PathBuf,
    most: Option<usize>,
) -> PyResult<Vec<Bound<'py, PyDict>>> {
    let found = py.detach(|| esker::versions(&LocalStore, &path, most));
    let found = found.map_err(|error| exception(py, &error))?;
    let each = |one: &esker::VersionFacts| {
        let (state, damage) = match &one.state {
            esker::VersionState::Open => ("open", None),
            esker::VersionState::Expired => ("expired", None),
            esker::VersionState::GivenUp => ("given up", None),
            esker::VersionState::Damaged(why) => ("damaged", Some(why)),
        };
        let told = PyDict::new(py);
        told.set_item("number", one.number)?;
        told.set_item("state", state)?;
        told.set_item("damage", damage)?;
        told.set_item("time", one.time)?;
        told.set_item("message", &one.message)?;
        told.set_item("tags", &one.tags)?;
        let gives = one.gives.iter().map(|tag| (&tag.name, tag.version));
        told.set_item("gives", gives.collect::<Vec<_>>())?;
        told.set_item("records", one.records)?;
        told.set_item("new_bytes", one.new_bytes)?;
        told.set_item("synced", one.durable)?;
        Ok(told)
    };
    found.iter().map(each).collect()
}

/// The tags of a container, as (name, version).
#[pyfunction]
pub(crate) fn tags(py: Python<'_>, path: PathBuf) -> PyResult<Vec<(String, u64)>> {
    let found = py.detach(|| esker::tags(&LocalStore, &path));
    let found = found.map_err(|error| exception(py, &error))?;
    Ok(found.into_iter().map(|tag| (tag.name, tag.version)).collect())
}

/// Gives a version of a container, a number or a tag, a name; gives the version's number.
#[pyfunction]
pub(crate) fn tag(
    py: Python<'_>,
    path: PathBuf,
    name: &str,
    version: Option<String>,
    message: &str,
) -> PyResult<u64> {
    let made = py.detach(|| {
        let version = version.map(|version| esker::version_named(&LocalStore, &path, &version));
        esker::tag(&LocalStore, &path, name, version.transpose()?, message)
    });
    Ok(made.map_err(|error| exception(py, &error))?.version)
}

/// Gives up a number of a container.
#[pyfunction]
pub(crate) fn skip(py: Python<'_>, path: PathBuf, number: u64, message: &str) -> PyResult<()> {
    let skipped = py.detach(|| esker::skip(&LocalStore, &path, number, message));
    skipped.map_err(|error| exception(py, &error))
}

/// What a number of a container has become.
#[pyfunction]
pub(crate) fn number_state(py: Python<'_>, path: PathBuf, number: u64) -> PyResult<&'static str> {
    let state = py.detach(|| esker::number_state(&LocalStore, &path, number));
    Ok(match state.map_err(|error| exception(py, &error))? {
        esker::NumberState::Open => "open",
        esker::NumberState::Prepared => "prepared",
        esker::NumberState::Version => "version",
        esker::NumberState::GivenUp => "given up",
    })
}

/// Lets versions of a container expire; gives which, as ranges.
#[pyfunction]
pub(crate) fn expire(
    py: Python<'_>,
    path: PathBuf,
    last: u64,
    since: Option<i64>,
    every: Option<u64>,
    dry_run: bool,
) -> PyResult<Vec<(u64, u64)>> {
    let keep = esker::Keep { last, since, every };
    let expired = py.detach(|| esker::expire(&LocalStore, &path, keep, dry_run));
    let expired = expired.map_err(|error| exception(py, &error))?;
    let ranges = expired.versions.iter().map(|range| (*range.start(), *range.end()));
    Ok(ranges.collect())
}

/// Removes what no version of a container needs; gives what was removed, how many bytes, who was given up, what was left, the fence's version, and
/// notes.
#[pyfunction]
pub(crate) fn gc<'py>(
    py: Python<'py>,
    path: PathBuf,
    abandoned: Vec<String>,
    all_idle: bool,
    dry_run: bool,
) -> PyResult<Bound<'py, PyDict>> {
    let options = esker::GcOptions { dry_run, abandoned, all_idle };
    let collected = py.detach(|| esker::gc(&LocalStore, &path, &options));
    let collected = collected.map_err(|error| exception(py, &error))?;
    let told = PyDict::new(py);
    let files = collected.files.iter().map(|file| file.display().to_string());
    told.set_item("removed", files.collect::<Vec<_>>())?;
    told.set_item("bytes", collected.bytes)?;
    told.set_item("given_up", collected.given_up)?;
    let left = collected.left.into_iter().map(|left| (left.session, left.bytes));
    told.set_item("left", left.collect::<Vec<_>>())?;
    told.set_item("version", collected.number)?;
    told.set_item("notes", collected.notes)?;
    Ok(told)
}

/// The number of the version that people call so.
#[pyfunction]
pub(crate) fn number_of_version(py: Python<'_>, path: PathBuf, name: &str) -> PyResult<u64> {
    let number = py.detach(|| esker::version_named(&LocalStore, &path, name));
    number.map_err(|error| exception(py, &error))
}

/// Whether a path is something that can be opened, by its content: a classic file, a container, or a
/// folder of the sub-filed form.
#[pyfunction]
pub(crate) fn is_dataset(py: Python<'_>, path: PathBuf) -> bool {
    py.detach(|| looks_like_one(&path).unwrap_or(false))
}

fn looks_like_one(path: &Path) -> std::io::Result<bool> {
    // A version that is not there is the error of who opens it.
    if !matches!(esker::version_in_path(&LocalStore, path), Ok(None)) {
        return Ok(true);
    }
    // In a folder of the sub-filed form, the classic file in it.
    let path = esker::classic_of(&LocalStore, path).unwrap_or_else(|_| path.to_path_buf());
    if path.is_dir() {
        return Ok(esker::is_container(&LocalStore, &path).unwrap_or(false));
    }
    let mut magic = [0; 4];
    let mut file = std::fs::File::open(&path)?;
    std::io::Read::read_exact(&mut file, &mut magic)?;
    Ok(magic.starts_with(b"CDF") && esker::Version::from_byte(magic[3]).is_some())
}

/// The MPI library of this process as (file, version, family), or None.
#[pyfunction]
pub(crate) fn mpi_library(py: Python<'_>) -> Option<(PathBuf, String, String)> {
    py.detach(|| {
        let found = esker_comm::mpi::found()?;
        let first = found.version.lines().next().unwrap_or("").to_string();
        Some((found.library, first, found.abi.to_string()))
    })
}

/// Runs the command `esker` with these arguments (without the program's name); gives its exit code.
/// `again` is how it is started again.
#[pyfunction]
pub(crate) fn command(py: Python<'_>, arguments: Vec<OsString>, again: Vec<OsString>) -> u8 {
    let all = std::iter::once("esker".into()).chain(arguments).collect();
    py.detach(|| esker_cli::run(all, &again))
}
