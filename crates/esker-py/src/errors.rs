//! Which Python exception an error is. The sentence is the library's.

use esker::graph::GraphError;
use esker::{Error, SelectionError};
use esker_models::ModelError;
use esker_store::StoreError;
use esker_tools::copy::CopyError;
use esker_tools::refs::RefsError;
use pyo3::exceptions::{
    PyIndexError, PyMemoryError, PyOSError, PyRuntimeError, PyTimeoutError, PyValueError,
};
use pyo3::prelude::*;

/// The exception of an error of the library.
pub(crate) fn exception(py: Python<'_>, error: &Error) -> PyErr {
    let sentence = error.to_string();
    match error {
        Error::Store(store) => system(py, store),
        Error::NoSuchVariable { .. } => ours(py, "MissingName", sentence),
        Error::Graph { source, .. } => graph(py, source, sentence),
        Error::Selection {
            source: SelectionError::OutOfBounds { .. } | SelectionError::Rank { .. },
            ..
        } => PyIndexError::new_err(sentence),
        Error::NoMemory { .. } => PyMemoryError::new_err(sentence),
        // What Python calls a file that somebody else has locked: BlockingIOError.
        Error::Writers { path, why } => os_error(py, EAGAIN, why.clone(), path),
        Error::Range { .. } => ours(py, "RangeError", sentence),
        Error::Decode { .. }
        | Error::ShortFile { .. }
        | Error::Overlap { .. }
        | Error::StaleJournal { .. }
        | Error::StoredGraph { .. }
        | Error::Container { .. } => ours(py, "FormatError", sentence),
        Error::Conflict { .. } => ours(py, "Conflict", sentence),
        Error::Checksum { .. } => ours(py, "ChecksumError", sentence),
        Error::GivenUp { .. } | Error::Aborted { .. } => ours(py, "GivenUp", sentence),
        Error::NoVersionYet { .. } => PyTimeoutError::new_err(sentence),
        Error::OtherRank { .. } => ours(py, "RankError", sentence),
        Error::Comm(_) | Error::Garbled | Error::Message { .. } => {
            PyRuntimeError::new_err(sentence)
        }
        _ => PyValueError::new_err(sentence),
    }
}

/// The exception of an error of graphs, with this sentence.
fn graph(py: Python<'_>, error: &GraphError, sentence: String) -> PyErr {
    let is_missing = |error: &GraphError| {
        use esker::SchemaError::NotFound;
        matches!(error, GraphError::NotThere { .. } | GraphError::Name(NotFound { .. }))
    };
    match error {
        GraphError::Differ { .. } => ours(py, "FormatError", sentence),
        error if is_missing(error) => ours(py, "MissingName", sentence),
        _ => PyValueError::new_err(sentence),
    }
}

/// The exception of an error of the models.
pub(crate) fn model_exception(py: Python<'_>, error: &ModelError) -> PyErr {
    let sentence = error.to_string();
    match error {
        ModelError::Dataset(error) => exception(py, error),
        ModelError::Graph(error) => graph(py, error, sentence),
        ModelError::Comm(_) => PyRuntimeError::new_err(sentence),
        ModelError::File { path, source } => match source.raw_os_error() {
            Some(number) => os_error(py, number, words_of(source), path),
            None => PyOSError::new_err(sentence),
        },
        ModelError::Stored { .. } => ours(py, "FormatError", sentence),
        ModelError::OtherRank { .. } => ours(py, "RankError", sentence),
        _ => PyValueError::new_err(sentence),
    }
}

/// The exception of an error of copying.
pub(crate) fn copy_exception(py: Python<'_>, error: &CopyError) -> PyErr {
    match error {
        CopyError::Dataset(error) => exception(py, error),
        CopyError::NoSuchVariable { .. } | CopyError::NoSuchDimension { .. } => {
            ours(py, "MissingName", error.to_string())
        }
        CopyError::Exists { path } => os_error(py, libc_eexist(), error.to_string(), path),
        _ => PyValueError::new_err(error.to_string()),
    }
}

/// The exception of an error of references.
pub(crate) fn refs_exception(py: Python<'_>, error: &RefsError) -> PyErr {
    let sentence = error.to_string();
    match error {
        RefsError::Dataset(error) => exception(py, error),
        RefsError::Exists { path } => os_error(py, libc_eexist(), sentence, path),
        RefsError::Write(error) => match error.raw_os_error() {
            Some(number) => match py.get_type::<PyOSError>().call1((number, sentence)) {
                Ok(value) => PyErr::from_value(value),
                Err(error) => error,
            },
            None => PyOSError::new_err(sentence),
        },
        _ => PyValueError::new_err(sentence),
    }
}

/// A name that is not there, with the nearest ones.
pub(crate) fn missing_name(py: Python<'_>, sentence: String) -> PyErr {
    ours(py, "MissingName", sentence)
}

/// What the system refused, as the subclass of OSError that belongs to the number.
pub(crate) fn system(py: Python<'_>, error: &StoreError) -> PyErr {
    let number = error.source.raw_os_error().or(match error.kind() {
        std::io::ErrorKind::NotFound => Some(2),
        std::io::ErrorKind::AlreadyExists => Some(libc_eexist()),
        std::io::ErrorKind::IsADirectory => Some(21),
        _ => None,
    });
    match number {
        Some(number) => {
            let words = format!("{} ({} failed)", words_of(&error.source), error.action);
            os_error(py, number, words, &error.path)
        }
        None => PyOSError::new_err(error.to_string()),
    }
}

/// What the system says, without its number, which Python shows itself.
fn words_of(error: &std::io::Error) -> String {
    let mut words = error.to_string();
    if let Some(end) = words.find(" (os error") {
        words.truncate(end);
    }
    words
}

fn os_error(py: Python<'_>, number: i32, words: String, path: &std::path::Path) -> PyErr {
    // Called and not only named: OSError itself chooses the subclass.
    match py.get_type::<PyOSError>().call1((number, words, path.as_os_str())) {
        Ok(value) => PyErr::from_value(value),
        Err(error) => error,
    }
}

/// As the system has it, which Python compares it with.
const EAGAIN: i32 = if cfg!(target_os = "macos") { 35 } else { 11 };

/// EEXIST, the same number on every Unix.
const fn libc_eexist() -> i32 {
    17
}

/// One of the exceptions that `esker.errors` defines.
fn ours(py: Python<'_>, class: &str, sentence: String) -> PyErr {
    let made = py
        .import("esker.errors")
        .and_then(|module| module.getattr(class))
        .and_then(|class| class.call1((sentence,)));
    match made {
        Ok(value) => PyErr::from_value(value),
        Err(error) => error,
    }
}
