//! A commit that comes behind those of other writers: nothing is compared but what both have written, element by element.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use esker_format::history::{Item, Key};
use esker_format::log::{self as facts, LogPart, Section, Session};
use esker_format::{Header, varint};
use esker_history::{Conflict, Rebase, spaces};
use esker_store::{Access, Lane, ReadPool, Store};

use super::edition::Edition;
use super::{data_path, meta_path};
use crate::error::{Error, Result};
use crate::log::{Index, LogFound, LogSource};

/// What the two indexes of a comparison may take at least: entries that cannot be compared are a conflict.
const LEAST_BUDGET: usize = 64 << 20;

/// What a writer has, to go behind others with.
pub(super) struct Writer<'w> {
    pub(super) store: &'w Arc<dyn Store>,
    pub(super) pool: &'w Arc<ReadPool>,
    pub(super) path: &'w Path,
    pub(super) header: &'w Header,
    /// The version that knows sessions from before.
    pub(super) base: Option<&'w Edition>,
    /// The session that commits, and how long its logs were at its last commit and are now; none where only definitions are committed.
    pub(super) own: Option<Own<'w>>,
    /// The number of its session's stretch.
    pub(super) stretch: u32,
    /// Whether elements that both have written are those of this one; else that is a conflict.
    pub(super) ours_wins: bool,
    /// Whether what others have committed must be safe, too.
    pub(super) durable: bool,
    pub(super) budget: u64,
}

/// A session's logs, from where to where.
pub(super) struct Own<'w> {
    pub(super) session: &'w Session,
    pub(super) before: &'w [(u64, u64)],
    pub(super) now: &'w [(u64, u64)],
}

/// Puts what a session has written behind what others have committed meanwhile.
pub(super) struct Behind<'w> {
    writer: Writer<'w>,
    /// Their sessions, as far as was looked.
    theirs: BTreeMap<u64, Arc<Session>>,
    ours: Option<Index>,
    /// Whether others have committed something that matters to a dataset.
    met: bool,
    /// Whether they have changed definitions.
    pub(super) redefined: bool,
    /// The most records that they have.
    pub(super) most_records: u64,
    /// What went wrong when it looked.
    pub(super) failure: Option<Error>,
}

impl<'w> Behind<'w> {
    pub(super) fn new(writer: Writer<'w>) -> Behind<'w> {
        let (ours, failure) = (None, None);
        Behind {
            writer,
            theirs: BTreeMap::new(),
            ours,
            met: false,
            redefined: false,
            most_records: 0,
            failure,
        }
    }

    /// Whether it has gone behind others, for the commit that was made; the next one begins behind them.
    pub(super) fn begin_again(&mut self) -> bool {
        self.writer.stretch += u32::from(self.met);
        std::mem::take(&mut self.met)
    }

    fn own_identity(&self) -> Option<u64> {
        self.writer.own.as_ref().map(|own| own.session.identity)
    }

    /// The fact of a kind, among items.
    fn fact(items: &[Item], of: u8) -> Option<usize> {
        items.iter().position(|item| matches!(&item.key, Key::Fact { space, .. } if *space == of))
    }

    fn go_behind(&mut self, ours: &mut [Item], theirs: &[Item]) -> Result<Option<String>> {
        let is_of_dataset = |item: &&Item| match &item.key {
            Key::Fact { space, .. } => *space >= spaces::FIRST_FREE,
            Key::Data(_) => true,
        };
        let own = self.own_identity().map(u64::to_be_bytes);
        let is_own = |item: &Item| match (&item.key, own) {
            (Key::Fact { space: facts::SESSIONS | facts::STRETCHES, name }, Some(own)) => {
                name.starts_with(&own)
            }
            _ => false,
        };
        // Something of this session that nobody has said was committed.
        if theirs.iter().any(is_own) || !theirs.iter().any(|item| is_of_dataset(&item)) {
            return Ok(None);
        }
        self.met = true;
        if let Some(conflict) = self.definitions(ours, theirs) {
            return Ok(Some(conflict));
        }
        self.records(ours, theirs);
        self.sessions(theirs)?;
        let mut newer = Vec::new();
        for item in theirs.iter().filter(|item| matches!(item.key, Key::Data(_))) {
            newer.push(self.grown(Section::of_item(item).ok_or(Error::Garbled)?)?);
        }
        if newer.is_empty() {
            return Ok(None);
        }
        if let Some(place) = Self::fact(ours, facts::STRETCHES) {
            // What comes behind them is no longer one stretch with what came before them.
            if let Key::Fact { name, .. } = &mut ours[place].key {
                name.truncate(8);
                name.extend((self.writer.stretch + 1).to_be_bytes());
            }
            if !self.writer.ours_wins {
                return self.overlap(newer);
            }
        }
        Ok(None)
    }

    /// Definitions that both have changed are a conflict, whoever wins: theirs may have variables that ours do not know.
    fn definitions(&mut self, ours: &[Item], theirs: &[Item]) -> Option<String> {
        let their = &theirs[Self::fact(theirs, facts::DEFINITIONS)?];
        self.redefined = true;
        let our = &ours[Self::fact(ours, facts::DEFINITIONS)?];
        (our.value != their.value).then(|| "definitions".to_string())
    }

    fn records(&mut self, ours: &mut [Item], theirs: &[Item]) {
        let number =
            |item: &Item| item.value.as_deref().and_then(|mut value| varint::take(&mut value));
        if let Some(their) = Self::fact(theirs, facts::RECORDS) {
            self.most_records = self.most_records.max(number(&theirs[their]).unwrap_or(0));
        }
        if let (Some(place), Some(their)) =
            (Self::fact(ours, facts::RECORDS), Self::fact(theirs, facts::RECORDS))
        {
            let most = number(&ours[place]).max(number(&theirs[their])).unwrap_or(0);
            ours[place].value = facts::records(most).value;
        }
    }

    /// Takes in their new sessions.
    fn sessions(&mut self, theirs: &[Item]) -> Result<()> {
        for item in theirs {
            if let Key::Fact { space: facts::SESSIONS, .. } = item.key {
                let session = Session::of_fact(item).ok_or(Error::Garbled)?;
                self.theirs.insert(session.identity, Arc::new(session));
            }
        }
        Ok(())
    }

    /// The log that a section of theirs is in.
    fn grown(&mut self, section: Section) -> Result<(Section, LogSource)> {
        let Writer { store, pool, path, durable, base, .. } = self.writer;
        let session = match (self.theirs.get(&section.identity), base) {
            (Some(session), _) => session.clone(),
            (None, Some(base)) => base.session(section.identity)?,
            (None, None) => return Err(Error::Garbled),
        };
        self.theirs.insert(section.identity, session.clone());
        let part = session.part(section.log).ok_or(Error::Garbled)?;
        if durable {
            // A version that waits for the disk promises everything that it consists of.
            for file in [meta_path(path, &session, part.file), data_path(path, &session, part.file)]
            {
                store.open(&file, Access::ReadWrite)?.sync()?;
            }
        }
        let source = source(pool, path, &session, &part);
        Ok((section, source))
    }

    /// The first place that both have written.
    fn overlap(&mut self, newer: Vec<(Section, LogSource)>) -> Result<Option<String>> {
        let budget = (self.writer.budget as usize / 2).max(LEAST_BUDGET);
        if self.ours.is_none() {
            self.ours = Some(self.index_of_ours(budget)?);
        }
        let mut theirs = Index::new(budget);
        let mut logs = BTreeMap::new();
        for (section, source) in newer {
            let key = (section.identity, section.log);
            let log = *logs.entry(key).or_insert_with(|| theirs.add(source));
            let place = section.begin..section.end();
            theirs.take_section(log, place, (section.number, section.data_end))?;
        }
        theirs.settle();
        let Some(ours) = &self.ours else { return Ok(None) };
        if let Some(damage) = theirs.damages.first().or(ours.damages.first()) {
            return Ok(Some(format!("a log that cannot be compared ({})", damage.what)));
        }
        let mut found = Ok(None);
        ours.each(|var, entry| {
            if matches!(found, Ok(None)) {
                found = self.meets(var, (ours, entry), &theirs);
            }
        })?;
        found
    }

    fn index_of_ours(&self, budget: usize) -> Result<Index> {
        let Writer { pool, path, own, .. } = &self.writer;
        let mut index = Index::new(budget);
        if let Some(Own { session, before, now }) = own {
            for (i, part) in session.logs.iter().enumerate() {
                let at = |lengths: &[(u64, u64)]| lengths.get(i).copied().unwrap_or_default();
                let ((from, _), (to, data)) = (at(before), at(now));
                let log = index.add(source(pool, path, session, part));
                if from < to {
                    // Commits end sections, so that what is behind one can be read alone.
                    index.take_section(log, from..to, (0, data))?;
                }
            }
        }
        index.settle();
        Ok(index)
    }

    /// Where an entry of ours and one of theirs have an element in common.
    fn meets(
        &self,
        var: u64,
        (ours, entry): (&Index, &LogFound),
        theirs: &Index,
    ) -> Result<Option<String>> {
        let records = entry.records;
        for i in 0..records.count {
            let record = records.first.saturating_add(i.saturating_mul(records.step));
            let mut met: Vec<LogFound> = Vec::new();
            let asked = theirs.ask(var, record, (entry.first, entry.end), |their| {
                met.push(their.clone());
            });
            if !asked {
                let why = "more than can be compared within esker_index_memory".to_string();
                return Ok(Some(why));
            }
            for their in met {
                if let Some(element) = common(ours, entry, theirs, &their)? {
                    return Ok(Some(self.told(var, record, element)));
                }
            }
        }
        Ok(None)
    }

    /// An element, as people know it.
    fn told(&self, var: u64, record: u64, mut element: u64) -> String {
        let schema = &self.writer.header.schema;
        let number = usize::try_from(var).unwrap_or(usize::MAX);
        let Some(variable) = schema.variable(esker_format::VarId(number)) else {
            return format!("element {element} of record {record} of variable number {var}");
        };
        let is_record = schema.is_record(variable);
        let shape = schema.shape(variable, 0);
        let mut index = Vec::new();
        for len in shape.iter().skip(usize::from(is_record)).rev() {
            index.push((element % len.max(&1)).to_string());
            element /= len.max(&1);
        }
        if is_record {
            index.push(record.to_string());
        }
        index.reverse();
        format!("variable {:?} at [{}]", variable.name, index.join(", "))
    }
}

/// A log, of which sections are read.
fn source(pool: &Arc<ReadPool>, path: &Path, session: &Session, part: &LogPart) -> LogSource {
    let open = |path: &Path, block| {
        Lane::open(pool.file(path), part.lane.into(), part.lanes.into(), block)
    };
    LogSource {
        meta: open(&meta_path(path, session, part.file), session.meta_block),
        data: open(&data_path(path, session, part.file), session.data_block),
        orders: LogSource::in_one_session(0),
        rank: part.rank,
        identity: Some(session.identity),
        meta_len: None,
        data_len: None,
        read: 0,
    }
}

/// The first element of a record that two entries have in common.
fn common(ours: &Index, our: &LogFound, theirs: &Index, their: &LogFound) -> Result<Option<u64>> {
    let (Some(our_runs), Some(their_runs)) = (ours.runs(our)?, theirs.runs(their)?) else {
        // What cannot be told apart may be the same.
        return Ok(Some(our.first));
    };
    let (from, to) = (our.first.max(their.first), our.end.min(their.end));
    let mut first = None;
    let mut cursor = 0;
    our_runs.within(&mut 0, from - our.first, to - our.first, |start, len, _| {
        let begin = our.first + start;
        if first.is_some() {
            return;
        }
        let relative = begin - their.first;
        their_runs.within(&mut cursor, relative, relative + len, |start, _, _| {
            first.get_or_insert(their.first + start);
        });
    });
    Ok(first)
}

impl Rebase for Behind<'_> {
    fn rebase(
        &mut self,
        ours: &mut Vec<Item>,
        theirs: &[Item],
        _: u64,
        number: u64,
    ) -> std::result::Result<(), Conflict> {
        match self.go_behind(ours, theirs) {
            Ok(None) => Ok(()),
            Ok(Some(what)) => Err(Conflict { what, number }),
            Err(error) => {
                self.failure = Some(error);
                Err(Conflict { what: "what others have written".to_string(), number })
            }
        }
    }
}
