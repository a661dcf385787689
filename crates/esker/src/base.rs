//! The file under a dataset, in define mode and in data mode alike.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use esker_comm::{Communicator, CommunicatorExt, Disagreement, Message};
use esker_format::{Alignment, DecodeError, Fault, Header, HeaderJournal, HeaderState};
use esker_store::{Access, File, Store};

use crate::error::{Error, Result};
use crate::hints::Hints;
use crate::options::FillMode;
use crate::share::Share;

/// What stays the same between define and data mode.
#[derive(Debug, Clone)]
pub(crate) struct Base {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) comm: Arc<dyn Communicator>,
    /// The same on every rank: rank 0's.
    pub(crate) hints: Hints,
    pub(crate) path: PathBuf,
    pub(crate) writable: bool,
    pub(crate) align: Alignment,
    pub(crate) fill: FillMode,
}

impl Base {
    /// Whether this is the rank that acts for all.
    pub(crate) fn is_root(&self) -> bool {
        self.comm.rank() == 0
    }

    /// This rank's share of work that all do together.
    pub(crate) fn share(&self) -> Share {
        Share { rank: self.comm.rank() as u64, ranks: self.comm.size() as u64 }
    }

    /// Collective: the outcome of all, which is a failure if any rank failed.
    pub(crate) fn agree<T>(&self, outcome: Result<T>) -> Result<T> {
        agree(&*self.comm, outcome)
    }

    /// Collective: rank 0 acts, and everyone learns whether it could.
    pub(crate) fn by_root<T>(&self, act: impl FnOnce() -> Result<T>) -> Result<Option<T>> {
        let outcome = if self.is_root() { act().map(Some) } else { Ok(None) };
        self.agree(outcome)
    }

    pub(crate) fn schema_error(&self, source: esker_format::SchemaError) -> Error {
        Error::Schema { path: self.path.clone(), source }
    }

    /// Where a new file grows before it takes the dataset's name.
    pub(crate) fn new_path(&self) -> PathBuf {
        beside(&self.path, ".esker-new")
    }

    /// Where the journal of a redefinition is.
    pub(crate) fn journal_path(&self) -> PathBuf {
        journal_path(&self.path)
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

/// Collective: the outcome of all ranks, which is a failure if any rank failed.
pub(crate) fn agree<T>(comm: &dyn Communicator, outcome: Result<T>) -> Result<T> {
    if comm.size() == 1 {
        return outcome;
    }
    comm.agree(outcome).map_err(|disagreement| match disagreement {
        Disagreement::Failed { own: Some(error), .. } => error,
        Disagreement::Failed { rank, message, own: None } => Error::OtherRank { rank, message },
        Disagreement::Comm(error) => error.into(),
    })
}

/// Collective: rank 0's parts for everyone.
pub(crate) fn broadcast_parts(comm: &dyn Communicator, parts: &[&[u8]]) -> Result<Vec<Vec<u8>>> {
    let mut bytes = Vec::new();
    for part in parts {
        bytes.extend((part.len() as u64).to_le_bytes());
        bytes.extend(*part);
    }
    let message = comm.broadcast(0, Message::from(bytes))?;
    let mut rest = &message[..];
    let mut out = Vec::new();
    while let Some((len, after)) = rest.split_first_chunk::<8>() {
        let len = u64::from_le_bytes(*len) as usize;
        let (part, after) = after.split_at_checked(len).ok_or(Error::Garbled)?;
        out.push(part.to_vec());
        rest = after;
    }
    Ok(out)
}

/// The name of the journal of a redefinition of the file at `path`.
pub fn journal_path(path: &Path) -> PathBuf {
    beside(path, ".esker-redef")
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
    let bytes = read_all(&*store.open(&name, Access::Read)?)?;
    let Some(journal) = HeaderJournal::decode(&bytes) else { return Ok(None) };
    let mut found = vec![0; journal.old.len().max(journal.new.len())];
    let n = file.read_at(0, &mut found)?;
    found.truncate(n);
    let state = journal.state(&found);
    Ok(Some((journal, state)))
}

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

/// Reads and decodes the header of `file` with as few reads as its length needs.
/// Gives the bytes it took as well.
pub(crate) fn read_header(path: &Path, file: &dyn File) -> Result<(Header, Vec<u8>)> {
    let file_len = file.len()?;
    let mut want = FIRST_READ;
    loop {
        let mut bytes = vec![0; want.min(file_len) as usize];
        let n = file.read_at(0, &mut bytes)?;
        bytes.truncate(n);
        match Header::decode(&bytes, file_len) {
            Ok(header) => {
                bytes.truncate(header.layout.header_len as usize);
                return Ok((header, bytes));
            }
            // Growing by doubling keeps the cost linear, whatever a hostile header says.
            Err(DecodeError { fault: Fault::NeedMore { at_least }, .. }) if n as u64 == want => {
                want = at_least.max(want.saturating_mul(2)).min(file_len);
            }
            Err(source) => return Err(Error::Decode { path: path.to_path_buf(), source }),
        }
    }
}
