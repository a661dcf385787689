//! The manifest of a version: which logs make it up, and how much of each.

use crate::inside;

/// One rank's log in a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogPart {
    /// The rank that wrote it.
    pub rank: u32,
    /// The number of the pair of files it is in.
    pub file: u32,
    /// Which lane of them it has.
    pub lane: u32,
    /// How many lanes they have.
    pub lanes: u32,
    /// Bytes of the metadata log that belong to the version.
    pub meta_len: u64,
    /// Bytes of the data log that belong to the version.
    pub data_len: u64,
    /// Which version brought which bytes of the metadata log, ascending.
    pub cuts: Vec<Cut>,
}

/// A metadata log's bytes up to here, behind the cut before it, came with one version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cut {
    /// Where they end.
    pub end: u64,
    /// The version that they came with.
    pub number: u64,
    /// The version whose values they lie over, with those before it.
    pub over: u64,
}

impl LogPart {
    /// A log of which nothing was committed.
    pub fn new(rank: u32, file: u32, lane: u32, lanes: u32) -> LogPart {
        LogPart { rank, file, lane, lanes, meta_len: 0, data_len: 0, cuts: Vec::new() }
    }
}

/// The logs that were written between an open and a close.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    /// What the names of its files begin with.
    pub stem: String,
    /// The identity in the heads of its logs.
    pub identity: u64,
    /// How often its metadata logs were written anew, without what was damaged. The data logs
    /// stay as they are.
    pub revision: u32,
    /// The length of a lane's block in the metadata files.
    pub meta_block: u64,
    /// The length of a lane's block in the data files.
    pub data_block: u64,
    /// The ranks' logs.
    pub logs: Vec<LogPart>,
}

/// One version of a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manifest {
    /// Its number, from 1.
    pub version: u64,
    /// The header that the classic file would have: schema, records, places.
    pub header: Vec<u8>,
    /// Its sessions, oldest first.
    pub sessions: Vec<Session>,
}

/// Why bytes are no manifest that can be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ManifestError {
    /// It is cut, or its checksum does not match.
    #[error("it is not whole")]
    NotWhole,
    /// It was written by another Esker.
    #[error("its format is {0}, and this Esker knows {FORMAT}")]
    Format(u32),
    /// Its checksum matches, but no writer writes such a thing.
    #[error("{0}, which no writer of containers does")]
    Odd(String),
}

const MAGIC: &[u8; 4] = b"ESKV";
const FORMAT: u32 = 1;
/// Bytes of a session without its name and logs, and of a log.
const SESSION: usize = 4 + 8 + 4 + 8 + 8 + 4;
const PART: usize = 4 * 4 + 2 * 8;

impl Manifest {
    /// Its bytes, as writers of before made them.
    #[cfg(test)]
    fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        bytes.extend(MAGIC);
        bytes.extend(FORMAT.to_le_bytes());
        bytes.extend(self.version.to_le_bytes());
        bytes.extend((self.header.len() as u64).to_le_bytes());
        bytes.extend(&self.header);
        bytes.extend((self.sessions.len() as u32).to_le_bytes());
        for session in &self.sessions {
            bytes.extend((session.stem.len() as u32).to_le_bytes());
            bytes.extend(session.stem.as_bytes());
            bytes.extend(session.identity.to_le_bytes());
            bytes.extend(session.revision.to_le_bytes());
            bytes.extend(session.meta_block.to_le_bytes());
            bytes.extend(session.data_block.to_le_bytes());
            bytes.extend((session.logs.len() as u32).to_le_bytes());
            for part in &session.logs {
                for number in [part.rank, part.file, part.lane, part.lanes] {
                    bytes.extend(number.to_le_bytes());
                }
                bytes.extend(part.meta_len.to_le_bytes());
                bytes.extend(part.data_len.to_le_bytes());
            }
        }
        bytes.extend(crc32c::crc32c(&bytes).to_le_bytes());
        bytes
    }

    /// The manifest in `bytes`.
    pub fn decode(bytes: &[u8]) -> Result<Manifest, ManifestError> {
        let (body, sum) = bytes.split_last_chunk::<4>().ok_or(ManifestError::NotWhole)?;
        if u32::from_le_bytes(*sum) != crc32c::crc32c(body) {
            return Err(ManifestError::NotWhole);
        }
        let odd = || ManifestError::Odd("its lists do not fit it".to_string());
        let mut rest = Rest(body.strip_prefix(MAGIC).ok_or(ManifestError::NotWhole)?);
        match rest.word().ok_or_else(odd)? {
            FORMAT => {}
            other => return Err(ManifestError::Format(other)),
        }
        let manifest = Manifest::read(&mut rest).filter(|_| rest.0.is_empty()).ok_or_else(odd)?;
        // Stems become names of files.
        let strange = |session: &&Session| inside::session(&session.stem).is_none();
        match manifest.sessions.iter().find(strange) {
            Some(session) => {
                Err(ManifestError::Odd(format!("it names the session {:?}", session.stem)))
            }
            None => Ok(manifest),
        }
    }

    fn read(rest: &mut Rest<'_>) -> Option<Manifest> {
        let version = rest.long()?;
        let header_len = usize::try_from(rest.long()?).ok()?;
        let header = rest.bytes(header_len)?.to_vec();
        let count = rest.count(SESSION)?;
        let mut sessions = Vec::with_capacity(count);
        for number in 1..=count as u64 {
            let stem_len = rest.word()? as usize;
            let stem = String::from_utf8(rest.bytes(stem_len)?.to_vec()).ok()?;
            let (identity, revision) = (rest.long()?, rest.word()?);
            let (meta_block, data_block) = (rest.long()?, rest.long()?);
            let parts = rest.count(PART)?;
            let mut logs = Vec::with_capacity(parts);
            for _ in 0..parts {
                let (rank, file, lane, lanes) =
                    (rest.word()?, rest.word()?, rest.word()?, rest.word()?);
                let (meta_len, data_len) = (rest.long()?, rest.long()?);
                // A later session lies over an earlier one.
                let cuts = vec![Cut { end: meta_len, number, over: number }];
                logs.push(LogPart { rank, file, lane, lanes, meta_len, data_len, cuts });
            }
            sessions.push(Session { stem, identity, revision, meta_block, data_block, logs });
        }
        Some(Manifest { version, header, sessions })
    }

    /// The bytes of payload and of metadata in the logs that it names.
    pub fn log_bytes(&self) -> (u64, u64) {
        let logs = self.sessions.iter().flat_map(|session| &session.logs);
        logs.fold((0, 0), |(data, metadata): (u64, u64), part| {
            (data.saturating_add(part.data_len), metadata.saturating_add(part.meta_len))
        })
    }
}

struct Rest<'b>(&'b [u8]);

impl<'b> Rest<'b> {
    fn bytes(&mut self, len: usize) -> Option<&'b [u8]> {
        let (now, later) = self.0.split_at_checked(len)?;
        self.0 = later;
        Some(now)
    }

    fn word(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(self.bytes(4)?.try_into().ok()?))
    }

    fn long(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.bytes(8)?.try_into().ok()?))
    }

    /// A count of things that have at least `size` bytes each, all of which must be there.
    fn count(&mut self, size: usize) -> Option<usize> {
        let count = self.word()? as usize;
        (count <= self.0.len() / size).then_some(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manifest_comes_back_whole_or_not_at_all() {
        let part = |rank| LogPart {
            rank,
            file: rank / 2,
            lane: rank % 2,
            lanes: 2,
            meta_len: 100 + u64::from(rank),
            data_len: 1 << 40,
            cuts: vec![Cut { end: 100 + u64::from(rank), number: 1, over: 1 }],
        };
        let session = |stem: &str| Session {
            stem: stem.into(),
            identity: 99,
            revision: 2,
            meta_block: 1 << 16,
            data_block: 1 << 23,
            logs: (0..4).map(part).collect(),
        };
        let stem = |version| inside::session_stem(version, 99);
        let mut sessions = vec![session(&stem(1)), session(&stem(2))];
        for part in &mut sessions[1].logs {
            // It lies over the first.
            (part.cuts[0].number, part.cuts[0].over) = (2, 2);
        }
        let manifest = Manifest { version: 7, header: vec![1, 2, 3], sessions };
        let bytes = manifest.encode();
        assert_eq!(Manifest::decode(&bytes), Ok(manifest.clone()));
        let not_whole = Err(ManifestError::NotWhole);
        assert!((0..bytes.len()).all(|cut| Manifest::decode(&bytes[..cut]) == not_whole));
        for bit in 0..bytes.len() * 8 {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Manifest::decode(&damaged), not_whole, "bit {bit}");
        }
        for stem in ["../../x", "/etc/passwd", "", "1-ab", "x/../1-0000000000000063"] {
            let mut hostile = manifest.clone();
            hostile.sessions[1].stem = stem.into();
            let error = Manifest::decode(&hostile.encode()).unwrap_err();
            assert!(error.to_string().contains(&format!("{stem:?}")), "{error}");
        }
    }
}
