//! The file under a dataset, in define mode and in data mode alike.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use esker_format::{Alignment, DecodeError, Decoded, Fault, Header, HeaderJournal, HeaderState};
use esker_store::{Access, File, Store};

use crate::error::{Error, Result};
use crate::options::FillMode;

/// What stays the same between define and data mode.
#[derive(Debug, Clone)]
pub(crate) struct Base {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) path: PathBuf,
    pub(crate) writable: bool,
    pub(crate) align: Alignment,
    pub(crate) fill: FillMode,
}

impl Base {
    pub(crate) fn schema_error(&self, source: esker_format::SchemaError) -> Error {
        Error::Schema { path: self.path.clone(), source }
    }

    /// Where a new file grows before it takes the dataset's name.
    pub(crate) fn new_path(&self) -> PathBuf {
        new_path(&self.path)
    }

    /// Where the journal of a redefinition is.
    pub(crate) fn journal_path(&self) -> PathBuf {
        journal_path(&self.path)
    }

    pub(crate) fn stale_journal(&self) -> Error {
        Error::StaleJournal {
            path: self.path.clone(),
            journal: self.journal_path(),
            why: "its header is neither the one before nor the one after",
        }
    }

    /// Fails unless the dataset was opened for writing.
    pub(crate) fn require_writable(&self, what: &'static str) -> Result<()> {
        if self.writable {
            return Ok(());
        }
        Err(Error::ReadOnly { path: self.path.clone(), what })
    }

    /// The journal beside the file, if there is a whole one, and which header the file has.
    pub(crate) fn journal(&self, file: &dyn File) -> Result<Option<(HeaderJournal, HeaderState)>> {
        read_journal(&*self.store, &self.path, file)
    }
}

/// The name of the journal of a redefinition of the file at `path`.
pub fn journal_path(path: &Path) -> PathBuf {
    beside(path, ".esker-redef")
}

/// The name under which a new file for `path` grows before it is renamed to it.
pub fn new_path(path: &Path) -> PathBuf {
    beside(path, ".esker-new")
}

/// The journal beside the file at `path`, if there is a whole one, and which of its headers
/// the file has. For tools that inspect; opening a dataset does this by itself.
pub fn read_journal(
    store: &dyn Store,
    path: &Path,
    file: &dyn File,
) -> Result<Option<(HeaderJournal, HeaderState)>> {
    let name = journal_path(path);
    if !store.exists(&name)? {
        return Ok(None);
    }
    let journal = store.open(&name, Access::Read)?;
    // It holds two headers of this file, so whatever is far longer is none.
    if journal.len()? > file.len()?.saturating_mul(2).saturating_add(MOST_JOURNAL) {
        return Ok(None);
    }
    let bytes = read_all(&*journal)?;
    let Some(journal) = HeaderJournal::decode(&bytes) else { return Ok(None) };
    let mut found = vec![0; journal.old.len().max(journal.new.len())];
    let n = file.read_at(0, &mut found)?;
    found.truncate(n);
    let state = journal.state(&found);
    Ok(Some((journal, state)))
}

/// A journal of this length is read even beside a file that was cut to nothing.
const MOST_JOURNAL: u64 = 16 << 20;

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(ending);
    path.with_file_name(name)
}

fn read_all(file: &dyn File) -> Result<Vec<u8>> {
    let len = usize::try_from(file.len()?).unwrap_or(0);
    let mut bytes = vec![0; len];
    let n = file.read_at(0, &mut bytes)?;
    bytes.truncate(n);
    Ok(bytes)
}

/// The first read of a header; most fit.
const FIRST_READ: u64 = 64 * 1024;

/// The header of `file`.
pub(crate) fn read_header(path: &Path, file: &dyn File) -> Result<Header> {
    read_header_noting(path, file).map(|decoded| decoded.header)
}

/// Reads and decodes the header of `file` with as few reads as its length needs, and tells
/// what was tolerated in it. The path is for the error.
pub fn read_header_noting(path: &Path, file: &dyn File) -> Result<Decoded> {
    let file_len = file.len()?;
    let mut want = FIRST_READ;
    loop {
        let mut bytes = vec![0; want.min(file_len) as usize];
        let n = file.read_at(0, &mut bytes)?;
        bytes.truncate(n);
        match Header::decode_noting(&bytes, file_len) {
            Ok(decoded) => return Ok(decoded),
            // Growing by doubling keeps the cost linear, whatever a hostile header says.
            Err(DecodeError { fault: Fault::NeedMore { at_least }, .. }) if n as u64 == want => {
                want = at_least.max(want.saturating_mul(2)).min(file_len);
            }
            Err(source) => return Err(Error::Decode { path: path.to_path_buf(), source }),
        }
    }
}
