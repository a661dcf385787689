//! The file under a dataset, in define mode and in data mode alike.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use esker_comm::{ByNode, Communicator, CommunicatorExt, Message};
use esker_format::{Alignment, DecodeError, Decoded, Fault, Header, HeaderJournal, HeaderState};
use esker_store::{Access, File, Store, StoreError};

use crate::common::{Common, same_everywhere};
use crate::error::{Error, Result};
use crate::held::Held;
use crate::hints::{Automatic, Hints, Switch};
use crate::journal::{journal_path, read_journal};
use crate::layout::Room;
use crate::mail::Mail;
use crate::message::NextMessage;
use crate::options::FillMode;
use crate::rest::Rest;
use crate::share::Share;
use crate::young::{Survives, Young};

/// What stays the same between define and data mode.
#[derive(Debug, Clone)]
pub(crate) struct Base {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) comm: Arc<dyn Communicator>,
    /// The same on every rank: rank 0's.
    pub(crate) hints: Hints,
    pub(crate) path: PathBuf,
    pub(crate) writable: bool,
    /// Whether it was opened as a container of logs.
    pub(crate) is_container: bool,
    /// Whether all that it is told until it is committed is one transaction.
    pub(crate) held: Option<Held>,
    pub(crate) align: Alignment,
    pub(crate) fill: FillMode,
    /// Whether new records are filled.
    pub(crate) fill_grown: bool,
    /// Whether the file may end before its last value.
    pub(crate) short_file: bool,
    /// Whether decomposed and chunked variables are seen as they are stored.
    pub(crate) raw: bool,
    /// Whether decomposed variables are.
    pub(crate) blobs: bool,
    /// What was asked for and is not done, in sentences.
    pub(crate) notes: Vec<String>,
    /// What rank 0 says of the next version.
    pub(crate) message: NextMessage,
    /// Whether rank 0 has made the file lately.
    pub(crate) young: Arc<Young>,
    /// Ways of storing variables beside those that every dataset may have.
    pub(crate) rooms: Vec<Arc<dyn Room>>,
    /// The process that opened the dataset: one that was forked from it has all of this too.
    process: u32,
}

/// From so many ranks on messages are gathered by node: fewer send each other few. No network was at hand to measure it on.
const MANY: usize = 512;

/// The same ranks, whose messages to other nodes are gathered where that is wanted. Collective.
fn gathering(comm: Arc<dyn Communicator>, hints: &Hints) -> Result<Arc<dyn Communicator>> {
    let wanted = match hints.gather_nodes {
        Automatic::Automatic => comm.size() >= MANY,
        Automatic::Enable => comm.size() > 1,
        Automatic::Disable => false,
    };
    // It is one communicator more for the dataset.
    if !wanted || !comm.all(comm.may_duplicate())? {
        return Ok(comm);
    }
    let by_node = ByNode::new(comm.clone())?;
    Ok(if by_node.nodes() > 1 { Arc::new(by_node) } else { comm })
}

impl Base {
    /// Rank 0's of what must be the same everywhere, or its error, and whether this rank is to write as it is. Collective.
    pub(crate) fn new(
        store: Arc<dyn Store>,
        comm: Arc<dyn Communicator>,
        own: Result<Common>,
    ) -> Result<(Base, bool)> {
        let (same, alike) = same_everywhere(&*comm, own)?;
        let Common { path, hints, align, fill, fill_grown, short_file, writable, .. } = same;
        let (is_container, held) = (same.is_container, same.held);
        let (raw, blobs) = (false, false);
        let comm = gathering(comm, &hints)?;
        let base = Base {
            store,
            comm,
            hints,
            path,
            writable,
            is_container,
            held,
            align,
            fill,
            fill_grown,
            short_file,
            raw,
            blobs,
            notes: Vec::new(),
            message: NextMessage::default(),
            young: Arc::default(),
            rooms: Vec::new(),
            process: std::process::id(),
        };
        Ok((base, alike))
    }

    /// The dataset is a container, whose ranks append to logs anyway.
    pub(crate) fn has_no_burst_buffer(&mut self) {
        if std::mem::replace(&mut self.hints.burst_buf, Switch::Disable).is_on() && self.writable {
            self.notes.push(
                "nc_burst_buf=enable is not used: every rank of a container appends to a log of its \
                 own already"
                    .to_string(),
            );
        }
    }

    /// How ranks send each other what belongs to the dataset.
    pub(crate) fn mail(&self) -> Mail<'_> {
        Mail::new(&*self.comm, &self.path, self.hints.checksums.of_transfers())
    }

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

    /// The same, and the largest of each of the ranks' numbers, in one reduction. Collective.
    pub(crate) fn agree_with<const N: usize>(
        &self,
        outcome: Result<()>,
        numbers: [u64; N],
    ) -> Result<[u64; N]> {
        agree_with(&*self.comm, outcome, numbers).map(|((), numbers)| numbers)
    }

    /// Collective: rank 0 acts, and everyone learns whether it could.
    pub(crate) fn by_root<T>(&self, act: impl FnOnce() -> Result<T>) -> Result<Option<T>> {
        let outcome = if self.is_root() { act().map(Some) } else { Ok(None) };
        self.agree(outcome)
    }

    /// The same where rank 0 has something to tell: in one broadcast, so that it does not wait for the others.
    pub(crate) fn told_by_root<T>(
        &self,
        act: impl FnOnce() -> Result<(T, Vec<u8>)>,
    ) -> Result<(Option<T>, Vec<u8>)> {
        match self.is_root() {
            true => act().map_or_else(
                |error| told_of_root(&*self.comm, Err(error)).map(|told| (None, told)),
                |(done, tell)| Ok((Some(done), told_of_root(&*self.comm, Ok(tell))?)),
            ),
            false => Ok((None, told_of_root(&*self.comm, Ok(Vec::new()))?)),
        }
    }

    /// What a change of the file must survive, where rank 0 acts for all.
    pub(crate) fn survives(&self) -> Survives {
        self.young.survives(&*self.store, &self.path)
    }

    /// The length that the file has at least with so many records.
    pub(crate) fn end_of(&self, header: &Header, rest: Option<&Rest>, records: u64) -> u64 {
        match (self.short_file, rest) {
            (true, _) => header.layout.header_len,
            (false, None) => header.data_end(records),
            (false, Some(rest)) => rest.data_end(header, records),
        }
    }

    pub(crate) fn schema_error(&self, source: esker_format::SchemaError) -> Error {
        Error::Schema { path: self.path.clone(), source }
    }

    /// A journal is there that belongs to neither header.
    pub(crate) fn stale_journal(&self) -> Error {
        Error::StaleJournal {
            path: self.path.clone(),
            journal: journal_path(&self.path),
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

    /// Whether this is the process that opened the dataset, and none that was forked from it.
    pub(crate) fn is_own_process(&self) -> bool {
        self.process == std::process::id()
    }

    /// Fails in a forked process, for datasets that have one writer: what both believe to know of room, logs and
    /// versions would be true for neither. (The lock is of the open file, which both have.)
    pub(crate) fn require_own_process(&self) -> Result<()> {
        if self.is_own_process() {
            return Ok(());
        }
        let why = format!(
            "this process was forked from the one that has it open for writing (process {}), and it has one writer \
             at a time: write in that one, or open it again here when that one has closed it",
            self.process
        );
        Err(Error::Writers { path: self.path.clone(), why })
    }

    /// The journal beside the file, if there is a whole one, and which header the file has.
    pub(crate) fn journal(&self, file: &dyn File) -> Result<Option<(HeaderJournal, HeaderState)>> {
        read_journal(&*self.store, &self.path, file)
    }
}

/// Collective: the outcome of all ranks, which is a failure if any rank failed.
pub(crate) fn agree<T>(comm: &dyn Communicator, outcome: Result<T>) -> Result<T> {
    agree_with(comm, outcome, []).map(|(value, [])| value)
}

/// The same, with the largest of each of the ranks' numbers, in the same reduction.
pub(crate) fn agree_with<T, const N: usize>(
    comm: &dyn Communicator,
    outcome: Result<T>,
    numbers: [u64; N],
) -> Result<(T, [u64; N])> {
    let other = |rank, message| Error::OtherRank { rank, message };
    comm.agree_with(outcome, numbers).map_err(|disagreement| disagreement.into_error(other))
}

/// Collective: what rank 0 has to tell, or its error, for everyone. On other ranks `own` is not looked at.
pub(crate) fn told_of_root(comm: &dyn Communicator, own: Result<Vec<u8>>) -> Result<Vec<u8>> {
    const FAILED: u8 = 1;
    if comm.size() == 1 {
        return own;
    }
    let message = match &own {
        Ok(tell) => [&[0], &tell[..]].concat(),
        Err(error) => [&[FAILED], error.to_string().as_bytes()].concat(),
    };
    let told = comm.broadcast(0, Message::from(message))?;
    if comm.rank() == 0 {
        return own;
    }
    match told.split_first() {
        Some((0, tell)) => Ok(tell.to_vec()),
        Some((_, words)) => {
            let message = String::from_utf8_lossy(words).into_owned();
            Err(Error::OtherRank { rank: 0, message })
        }
        None => Err(Error::Garbled),
    }
}

/// Collective: rank 0's parts for everyone.
pub(crate) fn broadcast_parts(comm: &dyn Communicator, parts: &[&[u8]]) -> Result<Vec<Vec<u8>>> {
    parts_of(&comm.broadcast(0, Message::from(joined(parts)))?)
}

/// Parts one behind the other, each with its length.
pub(crate) fn joined(parts: &[&[u8]]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for part in parts {
        bytes.extend((part.len() as u64).to_le_bytes());
        bytes.extend(*part);
    }
    bytes
}

/// The parts that were joined.
pub(crate) fn parts_of(message: &[u8]) -> Result<Vec<Vec<u8>>> {
    let mut rest = message;
    let mut out = Vec::new();
    while let Some((len, after)) = rest.split_first_chunk::<8>() {
        let len = u64::from_le_bytes(*len) as usize;
        let (part, after) = after.split_at_checked(len).ok_or(Error::Garbled)?;
        out.push(part.to_vec());
        rest = after;
    }
    Ok(out)
}

/// The first read of a header; most fit.
const FIRST_READ: u64 = 64 * 1024;

/// Reads and decodes the header of `file` with as few reads as its length needs.
/// Gives the bytes it took as well. A variable whose seal is broken is an error.
pub(crate) fn read_header(path: &Path, file: &dyn File) -> Result<(Header, Vec<u8>)> {
    let (decoded, bytes) = read_header_bytes(path, file)?;
    let header = decoded.sound();
    Ok((header.map_err(|source| Error::Decode { path: path.to_path_buf(), source })?, bytes))
}

/// Reads and decodes the header of `file` and tells what was tolerated in it, and which variables have a broken
/// seal. The path is for the error.
pub fn read_header_noting(path: &Path, file: &dyn File) -> Result<Decoded> {
    read_header_bytes(path, file).map(|(decoded, _)| decoded)
}

pub(crate) fn read_header_bytes(path: &Path, file: &dyn File) -> Result<(Decoded, Vec<u8>)> {
    let file_len = file.len()?;
    let mut want = FIRST_READ;
    loop {
        let mut bytes = vec![0; want.min(file_len) as usize];
        let n = file.read_at(0, &mut bytes)?;
        bytes.truncate(n);
        match Header::decode_noting(&bytes, file_len) {
            Ok(decoded) => {
                bytes.truncate(decoded.header.layout.header_len as usize);
                return Ok((decoded, bytes));
            }
            // Growing by doubling keeps the cost linear, whatever a hostile header says.
            Err(DecodeError { fault: Fault::NeedMore { at_least }, .. }) if n as u64 == want => {
                want = at_least.max(want.saturating_mul(2)).min(file_len);
            }
            Err(source) => return Err(Error::Decode { path: path.to_path_buf(), source }),
        }
    }
}

/// The header and its bytes as a reader sees them, who finishes nothing: where a redefinition was interrupted in the
/// middle of it, what its journal says.
pub(crate) fn header_as_read(
    store: &dyn Store,
    path: &Path,
    file: &dyn File,
) -> Result<(Decoded, Vec<u8>)> {
    match read_journal(store, path, file)? {
        Some((journal, HeaderState::Torn)) => {
            let decoded = Header::decode_noting(&journal.new, file.len()?);
            let failed = |source| Error::Decode { path: path.to_path_buf(), source };
            Ok((decoded.map_err(failed)?, journal.new))
        }
        _ => read_header_bytes(path, file),
    }
}

/// The classic file in the folder of a sub-filed dataset.
pub(crate) const CLASSIC: &str = "data.nc";

/// The file that a path stands for: in a folder with a sub-filed dataset, the classic one.
pub fn classic_of(store: &dyn Store, path: &Path) -> std::result::Result<PathBuf, StoreError> {
    let inner = path.join(CLASSIC);
    if !store.is_dir(path)? || !store.exists(&inner)? {
        return Ok(path.to_path_buf());
    }
    // In the folder there are no links: one would lead to another dataset.
    store.enclosed(path)?.open(&inner, Access::Read)?;
    Ok(inner)
}

/// A number that no other session has.
pub(crate) fn identity() -> u64 {
    // The standard library seeds its maps from the system's random numbers.
    RandomState::new().build_hasher().finish()
}
