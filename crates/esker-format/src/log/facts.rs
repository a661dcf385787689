//! What a version of a container consists of, as facts of its history: definitions, records, sessions, stretches of logs.
//!
//! A *stretch* is what a session's logs grew by in commits between which nobody else committed. It has one fact, which grows with them;
//! so a commit costs what its own session wrote, and versions of one writer have one fact a session.

use std::collections::BTreeMap;

use super::manifest::{Cut, LogPart, Manifest, Session};
use crate::history::{HistoryError, Item, Key};
use crate::{inside, varint};

/// The header, with no records.
pub const DEFINITIONS: u8 = 16;
/// How many records there are.
pub const RECORDS: u8 = 17;
/// Sessions, by their identities.
pub const SESSIONS: u8 = 18;
/// Stretches, by the identity of their session and their number in it.
pub const STRETCHES: u8 = 19;

/// Logs of a session that a reader believes in: more ranks than any machine has.
const MOST_LOGS: u64 = 1 << 26;

/// A stretch of a session's logs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stretch {
    /// Its session.
    pub identity: u64,
    /// Its number in the session.
    pub ordinal: u32,
    /// The version that it came with, and the one that its values lie over; `None`: those of the commit that says so.
    pub place: Option<(u64, u64)>,
    /// For logs that have grown, by their number: how long the metadata log and the data log are then.
    pub ends: Ends,
}

/// Logs, and how long their metadata and their data are.
type Ends = Vec<(u32, u64, u64)>;

fn odd(what: impl Into<String>) -> HistoryError {
    HistoryError::Odd(what.into())
}

/// The header as it is without records, and how many there are.
pub fn without_records(header: &[u8]) -> (Vec<u8>, u64) {
    let mut bytes = header.to_vec();
    let width = if bytes.get(3) == Some(&5) { 8 } else { 4 };
    let Some(number) = bytes.get_mut(4..4 + width) else { return (bytes, 0) };
    let records = number.iter().fold(0, |n: u64, byte| n << 8 | u64::from(*byte));
    number.fill(0);
    (bytes, records)
}

fn with_records(header: &[u8], records: u64) -> Option<Vec<u8>> {
    let mut bytes = header.to_vec();
    let width = if bytes.get(3) == Some(&5) { 8 } else { 4 };
    if width == 4 && records > u64::from(u32::MAX) {
        return None;
    }
    bytes.get_mut(4..4 + width)?.copy_from_slice(&records.to_be_bytes()[8 - width..]);
    Some(bytes)
}

/// The header of a version that has these facts: its definitions, and how many records there are.
pub fn header_of(
    definitions: Option<&[u8]>,
    records: Option<&[u8]>,
) -> Result<Vec<u8>, HistoryError> {
    let records = match records {
        Some(mut value) => {
            let number = varint::take(&mut value);
            number.ok_or_else(|| odd("its number of records is not one"))?
        }
        None => 0,
    };
    let header = definitions.and_then(|header| with_records(header, records));
    header.ok_or_else(|| odd("it has no definitions"))
}

/// The fact that these are the definitions.
pub fn definitions(header_without_records: Vec<u8>) -> Item {
    Item::fact(DEFINITIONS, b"", Some(header_without_records))
}

/// The fact that there are so many records.
pub fn records(records: u64) -> Item {
    let mut bytes = Vec::new();
    varint::put(&mut bytes, records);
    Item::fact(RECORDS, b"", Some(bytes))
}

impl Session {
    /// The fact that there is this session; its logs' lengths are in its stretches.
    pub fn fact(&self) -> Item {
        let began = inside::session(&self.stem).map_or(0, |(version, _)| version);
        let mut bytes = Vec::new();
        let logs = self.logs.len() as u64;
        for number in [began, self.revision.into(), self.meta_block, self.data_block, logs] {
            varint::put(&mut bytes, number);
        }
        let is_plain = |(i, part): (u32, &LogPart)| {
            (part.rank, part.file, part.lane, part.lanes) == (i, i, 0, 1)
        };
        let plain = (0..).zip(&self.logs).all(is_plain);
        bytes.push((!plain).into());
        for part in self.logs.iter().filter(|_| !plain) {
            for number in [part.rank, part.file, part.lane, part.lanes] {
                varint::put(&mut bytes, number.into());
            }
        }
        Item::fact(SESSIONS, &self.identity.to_be_bytes(), Some(bytes))
    }

    /// The log of this number.
    pub fn part(&self, log: u32) -> Option<LogPart> {
        match self.logs.get(log as usize) {
            Some(part) => Some(part.clone()),
            // Logs of a rank each need not be named.
            None if self.logs.is_empty() => Some(LogPart::new(log, log, 0, 1)),
            None => None,
        }
    }

    /// The fact that a session of this identity is no longer part of what is there.
    pub fn forgotten(identity: u64) -> Item {
        Item::fact(SESSIONS, &identity.to_be_bytes(), None)
    }

    /// The session that a fact speaks of; the lengths of its logs are in its stretches.
    pub fn of_fact(item: &Item) -> Option<Session> {
        let (Key::Fact { space: SESSIONS, name }, Some(value)) = (&item.key, &item.value) else {
            return None;
        };
        Session::decode(u64::from_be_bytes(name[..].try_into().ok()?), value)
    }

    fn decode(identity: u64, mut bytes: &[u8]) -> Option<Session> {
        let mut number = || varint::take(&mut bytes);
        let (began, revision) = (number()?, u32::try_from(number()?).ok()?);
        let (meta_block, data_block, count) = (number()?, number()?, number()?);
        let stem = inside::session_stem(began, identity);
        let (kind, mut bytes) = bytes.split_first()?;
        let mut logs = Vec::new();
        match kind {
            // They are made when a stretch speaks of them: a number costs nothing to write.
            0 if count <= MOST_LOGS => {}
            1 if count <= bytes.len() as u64 / 4 => {
                for _ in 0..count {
                    let mut word = || u32::try_from(varint::take(&mut bytes)?).ok();
                    let (rank, file, lane, lanes) = (word()?, word()?, word()?, word()?);
                    logs.push(LogPart::new(rank, file, lane, lanes));
                }
            }
            _ => return None,
        }
        let session = Session { stem, identity, revision, meta_block, data_block, logs };
        bytes.is_empty().then_some(session)
    }
}

impl Stretch {
    /// The fact that logs are so long.
    pub fn fact(&self) -> Item {
        let mut name = self.identity.to_be_bytes().to_vec();
        name.extend(self.ordinal.to_be_bytes());
        let (number, over) = self.place.unwrap_or((0, 0));
        let mut bytes = Vec::new();
        varint::put(&mut bytes, number);
        varint::put(&mut bytes, over);
        varint::put(&mut bytes, self.ends.len() as u64);
        let mut before = 0;
        for (log, meta, data) in &self.ends {
            varint::put(&mut bytes, u64::from(*log).wrapping_sub(before));
            varint::put(&mut bytes, *meta);
            varint::put(&mut bytes, *data);
            before = u64::from(*log) + 1;
        }
        Item::fact(STRETCHES, &name, Some(bytes))
    }

    /// The stretch that a fact speaks of.
    pub fn decode(item: &Item) -> Option<Stretch> {
        let (Key::Fact { space: STRETCHES, name }, Some(value)) = (&item.key, &item.value) else {
            return None;
        };
        let (identity, ordinal) = name.split_at_checked(8)?;
        let identity = u64::from_be_bytes(identity.try_into().ok()?);
        let ordinal = u32::from_be_bytes(ordinal.try_into().ok()?);
        let mut bytes = &value[..];
        let (number, over) = (varint::take(&mut bytes)?, varint::take(&mut bytes)?);
        let place = (number > 0).then_some((number, over));
        let count = varint::take(&mut bytes).filter(|count| *count <= bytes.len() as u64 / 3)?;
        let (mut ends, mut before) = (Vec::with_capacity(count as usize), 0u64);
        for _ in 0..count {
            let log = before.checked_add(varint::take(&mut bytes)?)?;
            let (meta, data) = (varint::take(&mut bytes)?, varint::take(&mut bytes)?);
            ends.push((u32::try_from(log).ok()?, meta, data));
            before = log + 1;
        }
        bytes.is_empty().then_some(Stretch { identity, ordinal, place, ends })
    }
}

impl Manifest {
    /// The version that these facts make up. Others than a dataset's are passed over.
    pub fn from_facts<'i>(
        version: u64,
        facts: impl IntoIterator<Item = &'i Item>,
    ) -> Result<Manifest, HistoryError> {
        let (mut header, mut records) = (None, None);
        let mut sessions: BTreeMap<u64, Session> = BTreeMap::new();
        let mut stretches: BTreeMap<(u64, u32), (Stretch, u64, u64)> = BTreeMap::new();
        for item in facts {
            let (Key::Fact { space, .. }, Some(value)) = (&item.key, &item.value) else {
                continue;
            };
            match *space {
                DEFINITIONS => header = Some(&value[..]),
                RECORDS => records = Some(&value[..]),
                SESSIONS => {
                    let session = Session::of_fact(item);
                    let session =
                        session.ok_or_else(|| odd("it has a session that makes no sense"))?;
                    sessions.insert(session.identity, session);
                }
                STRETCHES => {
                    let stretch = Stretch::decode(item);
                    let stretch = stretch
                        .ok_or_else(|| odd("it has a stretch of logs that makes no sense"))?;
                    let key = (stretch.identity, stretch.ordinal);
                    stretches.insert(key, (stretch, item.number, item.over));
                }
                _ => {}
            }
        }
        let header = header_of(header, records)?;
        for (stretch, number, over) in stretches.into_values() {
            // One of a session that was replaced is nobody's.
            let Some(session) = sessions.get_mut(&stretch.identity) else { continue };
            let (number, over) = stretch.place.unwrap_or((number, over));
            for (log, meta, data) in stretch.ends {
                session.grow(log, (meta, data), Cut { end: meta, number, over })?;
            }
        }
        let mut sessions: Vec<Session> = sessions.into_values().collect();
        let began =
            |session: &Session| inside::session(&session.stem).map_or(0, |(began, _)| began);
        // For people, and for what is recovered: the order of values is in the cuts.
        sessions.sort_by_key(|session| (session.first_number(), began(session)));
        Ok(Manifest { version, header, sessions })
    }

    /// All facts that it consists of, with their places.
    pub fn facts(&self) -> Vec<Item> {
        let (header, records_now) = without_records(&self.header);
        let mut all = vec![definitions(header), records(records_now)];
        for session in &self.sessions {
            all.push(session.fact());
            all.extend(session.stretches().iter().map(Stretch::fact));
        }
        all.sort_by(Item::order);
        all
    }
}

impl Session {
    fn grow(&mut self, log: u32, (meta, data): (u64, u64), cut: Cut) -> Result<(), HistoryError> {
        let odd = || odd(format!("log {log} of session {} does not grow", self.stem));
        let index = log as usize;
        // Logs of a rank each are made in order.
        let follows = |last: &LogPart| {
            let next = (last.rank.checked_add(1), last.file.checked_add(1), last.lanes);
            next == (Some(log), Some(log), 1)
        };
        if self.logs.len() == index && self.logs.last().is_none_or(follows) {
            self.logs.push(LogPart::new(log, log, 0, 1));
        }
        let part = self.logs.get_mut(index).ok_or_else(odd)?;
        if meta < part.meta_len || data < part.data_len {
            return Err(odd());
        }
        (part.meta_len, part.data_len) = (meta, data);
        part.cuts.push(cut);
        Ok(())
    }

    /// The first version that it has something in.
    pub fn first_number(&self) -> u64 {
        let cuts = self.logs.iter().filter_map(|part| part.cuts.first());
        cuts.map(|cut| cut.number).min().unwrap_or(u64::MAX)
    }

    /// Its stretches, each with its place.
    pub fn stretches(&self) -> Vec<Stretch> {
        let mut all: BTreeMap<(u64, u64), Ends> = BTreeMap::new();
        for (log, part) in (0..).zip(&self.logs) {
            for (i, cut) in part.cuts.iter().enumerate() {
                // Where the data log ends is only asked of the last.
                let data = if i + 1 == part.cuts.len() { part.data_len } else { 0 };
                all.entry((cut.number, cut.over)).or_default().push((log, cut.end, data));
            }
        }
        let stretch = |(ordinal, (place, ends))| Stretch {
            identity: self.identity,
            ordinal,
            place: Some(place),
            ends,
        };
        (0..).zip(all).map(stretch).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest() -> Manifest {
        let cut = |end, number| Cut { end, number, over: number };
        let part = |rank: u32, lanes: u32, cuts: &[Cut]| LogPart {
            meta_len: cuts.last().map_or(0, |cut| cut.end),
            data_len: 1000 + u64::from(rank),
            cuts: cuts.to_vec(),
            ..LogPart::new(rank, rank / lanes, rank % lanes, lanes)
        };
        let session = |began, identity, logs| Session {
            stem: inside::session_stem(began, identity),
            identity,
            revision: 0,
            meta_block: 1 << 16,
            data_block: 1 << 23,
            logs,
        };
        // The second session's commit came between two of the first's.
        let alone = (0..3).map(|rank| part(rank, 1, &[cut(100, 2), cut(250, 4)])).collect();
        let shared = (0..4).map(|rank| part(rank, 2, &[cut(70, 3)])).collect();
        let header = b"CDF\x05\0\0\0\0\0\0\0\x09rest".to_vec();
        Manifest { version: 4, header, sessions: vec![session(2, 7, alone), session(3, 8, shared)] }
    }

    #[test]
    fn a_version_comes_back_from_its_facts() {
        let manifest = manifest();
        assert_eq!(Manifest::from_facts(4, &manifest.facts()), Ok(manifest));
    }

    #[test]
    fn facts_that_make_no_sense_are_refused_and_none_is_a_panic() {
        let facts = manifest().facts();
        // A rank behind which no number is, and a log behind the last.
        let mut odd = manifest().sessions.remove(1);
        odd.logs.iter_mut().for_each(|part| (part.rank, part.file) = (u32::MAX, u32::MAX));
        let stretch = Stretch { identity: 8, ordinal: 0, place: None, ends: vec![(4, 9, 9)] };
        let mut hostile = facts.clone();
        hostile.extend([odd.fact(), stretch.fact()]);
        Manifest::from_facts(4, &hostile).expect_err("there are four logs");
        for (i, fact) in facts.iter().enumerate() {
            let value = fact.value.clone().unwrap_or_default();
            for at in 0..value.len() {
                for byte in [0, 1, 0x7f, 0x80, 0xff] {
                    let mut changed = facts.clone();
                    let mut value = value.clone();
                    value[at] = byte;
                    changed[i].value = Some(value);
                    let _ = Manifest::from_facts(4, &changed);
                    changed[i].value =
                        Some(changed[i].value.take().unwrap_or_default()[..at].to_vec());
                    let _ = Manifest::from_facts(4, &changed);
                }
            }
        }
    }
}
