//! What can be wrong with a log, with its place.

use std::fmt;
use std::path::PathBuf;

/// What kind of damage it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FaultKind {
    /// A file is not there, or shorter than what was committed.
    Missing,
    /// A stretch of a metadata log cannot be read.
    Frame,
    /// An entry that can be read says something that cannot be.
    Entry,
    /// A payload does not match its checksums.
    Payload,
}

/// Something in a log that is damaged or missing.
///
/// It prints as `rank 4, segments/7-1f.4.data at byte 65536: variable "t", record 3: ...`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogFault {
    /// What kind of damage it is.
    pub kind: FaultKind,
    /// The rank whose log it is.
    pub rank: u32,
    /// The file, from the container on.
    pub file: PathBuf,
    /// Where it is, counted in the rank's own log.
    pub offset: u64,
    /// The variable, where it is known.
    pub variable: Option<String>,
    /// The records that are touched, where they are known: first and last.
    pub records: Option<(u64, u64)>,
    /// Bytes of values or of metadata that are lost with it.
    pub bytes: u64,
    /// Whether a version had promised it.
    pub committed: bool,
    /// What is wrong.
    pub what: String,
}

impl fmt::Display for LogFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rank {}, {} at byte {}: ", self.rank, self.file.display(), self.offset)?;
        if let Some(variable) = &self.variable {
            write!(f, "variable {variable:?}")?;
            match self.records {
                Some((first, last)) if first == last => write!(f, ", record {first}: ")?,
                Some((first, last)) => write!(f, ", records {first} to {last}: ")?,
                None => write!(f, ": ")?,
            }
        }
        write!(f, "{}", self.what)
    }
}

/// What is behind the last whole write of a log.
///
/// It prints as `rank 4, segments/7-1f.4.meta: a write of 12 bytes behind byte 800 is not whole`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TornTail {
    /// The rank whose log it is.
    pub rank: u32,
    /// The metadata log, from the container on.
    pub file: PathBuf,
    /// Where the metadata end that are whole.
    pub offset: u64,
    /// Bytes of metadata behind that.
    pub metadata: u64,
    /// Bytes of payload that nothing describes.
    pub payload: u64,
}

impl fmt::Display for TornTail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TornTail { rank, file, offset, metadata, payload } = self;
        write!(
            f,
            "rank {rank}, {} behind byte {offset}: a write was not finished: {metadata} bytes of \
             metadata and {payload} bytes of values are of no use",
            file.display()
        )
    }
}
