//! The journal of a redefinition: both headers, so that an interrupted update can be finished.
//!
//! A header that fits where the old one was is written in place, and a process can die in
//! the middle of that. So both headers go into a small file beside the dataset first. Whoever
//! opens the dataset next finds it, sees that every byte of the header is from the one or the
//! other, and writes the new one again.
//!
//! ```text
//! "ESKJ" | u32 version = 1 | u64 old length | u64 new length | old | new | u32 crc32c
//! ```
//! All numbers are big-endian; the checksum is over everything before it.

use crate::header::Header;
use crate::types::Version;

/// Both headers of a redefinition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeaderJournal {
    /// The header's bytes before.
    pub old: Vec<u8>,
    /// The header's bytes after.
    pub new: Vec<u8>,
}

/// What the header in the file is, seen with a journal at hand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeaderState {
    /// The one before the redefinition.
    Old,
    /// The one after it.
    New,
    /// A mixture: the update was interrupted.
    Torn,
    /// Neither: the file was changed since, and the journal means nothing to it.
    Foreign,
}

const MAGIC: &[u8; 4] = b"ESKJ";
const FORMAT: u32 = 1;
const PREFIX: usize = 4 + 4 + 8 + 8;

impl HeaderJournal {
    /// The journal's bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(PREFIX + self.old.len() + self.new.len() + 4);
        bytes.extend(MAGIC);
        bytes.extend(FORMAT.to_be_bytes());
        bytes.extend((self.old.len() as u64).to_be_bytes());
        bytes.extend((self.new.len() as u64).to_be_bytes());
        bytes.extend(&self.old);
        bytes.extend(&self.new);
        bytes.extend(crc32c::crc32c(&bytes).to_be_bytes());
        bytes
    }

    /// The journal in `bytes`, or `None` when it is not whole: then the update of the header
    /// had not begun.
    pub fn decode(bytes: &[u8]) -> Option<HeaderJournal> {
        let (body, sum) = bytes.split_last_chunk::<4>()?;
        if u32::from_be_bytes(*sum) != crc32c::crc32c(body) {
            return None;
        }
        let rest = body.strip_prefix(MAGIC)?;
        let (format, rest) = rest.split_first_chunk::<4>()?;
        let (old_len, rest) = rest.split_first_chunk::<8>()?;
        let (new_len, rest) = rest.split_first_chunk::<8>()?;
        let old_len = usize::try_from(u64::from_be_bytes(*old_len)).ok()?;
        let new_len = usize::try_from(u64::from_be_bytes(*new_len)).ok()?;
        let whole = u32::from_be_bytes(*format) == FORMAT
            && old_len.checked_add(new_len) == Some(rest.len());
        let (old, new) = if whole { rest.split_at_checked(old_len)? } else { return None };
        let journal = HeaderJournal { old: old.to_vec(), new: new.to_vec() };
        // What is finished is written around the number of records, so both must have one.
        let records = journal.numrecs_field();
        (journal.old.len() >= records.end && journal.new.len() >= records.end).then_some(journal)
    }

    /// Which header `found`, the first bytes of the file, is. The number of records does not
    /// count: it changes without a redefinition.
    pub fn state(&self, found: &[u8]) -> HeaderState {
        let skip = self.numrecs_field();
        let same = |header: &[u8]| {
            found.len() >= header.len()
                && (0..header.len()).all(|i| skip.contains(&i) || found[i] == header[i])
        };
        if same(&self.new) {
            return HeaderState::New;
        }
        if same(&self.old) {
            return HeaderState::Old;
        }
        let from_either = |i: usize| {
            let byte = found.get(i);
            // Beyond the old header there was free space, whatever it held.
            skip.contains(&i)
                || byte == self.new.get(i)
                || byte == self.old.get(i)
                || i >= self.old.len()
        };
        if (0..self.new.len()).all(from_either) { HeaderState::Torn } else { HeaderState::Foreign }
    }

    /// The bytes of the number of records.
    pub fn numrecs_field(&self) -> std::ops::Range<usize> {
        let version = self.new.get(3).and_then(|b| Version::from_byte(*b));
        let start = Header::NUMRECS_OFFSET as usize;
        start..start + version.map_or(4, Version::count_width)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn journal() -> HeaderJournal {
        HeaderJournal {
            old: b"CDF\x01nnnnold header".to_vec(),
            new: b"CDF\x01mmmmnew header, longer".to_vec(),
        }
    }

    #[test]
    fn a_whole_journal_comes_back_and_a_torn_one_does_not() {
        let bytes = journal().encode();
        assert_eq!(HeaderJournal::decode(&bytes), Some(journal()));
        for len in 0..bytes.len() {
            assert_eq!(HeaderJournal::decode(&bytes[..len]), None);
        }
        for i in 0..bytes.len() {
            let mut flipped = bytes.clone();
            flipped[i] ^= 1;
            assert_eq!(HeaderJournal::decode(&flipped), None);
        }
    }

    #[test]
    fn a_journal_of_headers_too_short_to_be_headers_is_none() {
        // The checksum is no secret: a hostile journal can have a right one.
        for (old, new) in [("", ""), ("CDF\x01nnnn", "CDF\x01mmm"), ("CDF", "CDF\x01mmmm")] {
            let journal = HeaderJournal { old: old.into(), new: new.into() };
            assert_eq!(HeaderJournal::decode(&journal.encode()), None);
        }
    }

    #[test]
    fn the_state_of_a_header_is_told() {
        let journal = journal();
        assert_eq!(journal.state(b"CDF\x01????old header.........."), HeaderState::Old);
        assert_eq!(journal.state(b"CDF\x01????new header, longer..."), HeaderState::New);
        assert_eq!(
            journal.state(b"CDF\x01????new heaold......................"),
            HeaderState::Foreign
        );
        assert_eq!(journal.state(b"CDF\x01????newheader"), HeaderState::Foreign);
        assert_eq!(journal.state(b"CDF\x01????new header........"), HeaderState::Torn);
        assert_eq!(journal.state(b"other"), HeaderState::Foreign);
    }
}
