//! How rank 0 decides the next number, behind what others have committed, and how all ranks see that then.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use esker_comm::Message;
use esker_format::history::{Branch, Item};
use esker_format::log::{self as facts, Cut, Promise, PromiseSlot, Section, Session, Stretch};
use esker_history::{Attempt, History, Rebase, spaces};
use esker_store::Access;

use super::edition::Edition;
use super::numbered::{Decided, NO_PART, promise_missing};
use super::rebase::{self, Behind};
use super::versions::{self, Telling, history, new_writer, now, publish};
use super::{Container, Format, Mark, Promises, Trust, broken, data_path, meta_path};
use crate::base::Base;
use crate::error::{Error, Result};
use crate::hints::OnConflict;
use crate::log::{self, Lengths};

/// Numbers in a row that can have been lost: more were never decided.
const MOST_LOST: u64 = 1 << 12;

/// What rank 0 knows of commits.
#[derive(Debug)]
pub(super) struct Deciding {
    history: History,
    /// The version that the next commit is made for.
    base: u64,
    /// A commit that may have been made: nobody has said.
    in_doubt: Option<Attempt>,
    /// The lengths of this session's logs when it was tried.
    doubted_lengths: Vec<(u64, u64)>,
    /// The lengths of this session's logs when its stretch began, and at its last commit; and whether the session is known.
    begun: Vec<(u64, u64)>,
    last: Vec<(u64, u64)>,
    is_known: bool,
    /// The number of the stretch.
    stretch: u32,
    /// Bytes of payload and metadata in the logs of other sessions.
    bytes: (u64, u64),
}

impl Deciding {
    /// After a commit that has gone behind others: a new stretch, which began where the commit before it ended.
    fn has_met(&mut self, met: bool) -> bool {
        if met {
            self.begun.clone_from(&self.last);
            self.stretch += 1;
        }
        met
    }

    /// The number of who commits.
    pub(super) fn writer(&self) -> u64 {
        self.history.writer()
    }

    /// How much of this session's logs was committed: metadata and data of each.
    pub(super) fn committed(&self) -> Vec<(u64, u64)> {
        match self.is_known {
            true => self.last.clone(),
            false => Vec::new(),
        }
    }

    /// Whether something of this session was committed.
    pub(super) fn knows_session(&self) -> bool {
        self.is_known
    }

    /// Whether a commit may have been made, and nobody has said.
    pub(super) fn is_in_doubt(&self) -> bool {
        self.in_doubt.is_some()
    }

    /// The version that the next commit is made for.
    pub(super) fn base(&self) -> u64 {
        self.base
    }

    /// The history that it is made in.
    pub(super) fn history(&self) -> &History {
        &self.history
    }

    /// A commit that may have been made.
    pub(super) fn doubted(&self) -> Option<Attempt> {
        self.in_doubt.clone()
    }

    /// The lengths of this session's logs at that commit.
    pub(super) fn doubted_lengths(&self) -> &[(u64, u64)] {
        &self.doubted_lengths
    }

    /// From here on this commit may have been made, of logs of these lengths.
    pub(super) fn doubt(&mut self, attempt: Attempt, lengths: Vec<(u64, u64)>) {
        (self.in_doubt, self.doubted_lengths) = (Some(attempt), lengths);
    }

    /// What became of the commit is known.
    pub(super) fn is_decided(&mut self) {
        self.in_doubt = None;
    }

    /// A commit that was refused was not made: what is written next may go where it could not.
    fn is_refused(&mut self, error: &Error) {
        if matches!(error, Error::Conflict { .. } | Error::GivenUp { .. } | Error::Undecided { .. })
        {
            self.in_doubt = None;
        }
    }
}

/// How long logs are, and the sections that they have grown by.
pub(super) type Grown = (Vec<(u64, u64)>, Vec<Section>);

/// Bytes of payload and metadata in logs of these lengths.
fn sum(lengths: &[(u64, u64)]) -> (u64, u64) {
    lengths.iter().fold((0u64, 0u64), |(data, metadata), (meta, payload)| {
        (data.saturating_add(*payload), metadata.saturating_add(*meta))
    })
}

/// What a rank tells of its log: how long it is, and the sections that it has grown by.
pub(super) fn grown(lengths: Lengths, sections: &[log::Section]) -> Message {
    let mut numbers = vec![lengths.meta, lengths.data];
    for log::Section { place, data_end, number, vars, records } in sections {
        let ranges = [place, vars, records].map(|range| [range.start, range.end]);
        numbers.extend(ranges.iter().flatten().chain([data_end, number]));
    }
    Message::from_u64s(&numbers)
}

/// What such a message says of the log of this number: how long it is. Its sections are added to `sections`.
fn of_log(
    (identity, log): (u64, u32),
    message: &Message,
    sections: &mut Vec<Section>,
) -> Result<(u64, u64)> {
    let numbers = message.to_u64s();
    let (lengths, rest) = numbers.split_first_chunk::<2>().ok_or(Error::Garbled)?;
    let (rest, odd) = rest.as_chunks::<8>();
    if !odd.is_empty() {
        return Err(Error::Garbled);
    }
    for [begin, end, first_var, end_var, first, last, data_end, number] in rest.iter().copied() {
        // Its place is that of the commit.
        let cuts = vec![Cut { end, number: 0, over: 0 }];
        let (vars, records) = (first_var..end_var, first..last);
        sections.push(Section { identity, log, begin, cuts, data_end, number, vars, records });
    }
    Ok((lengths[0], lengths[1]))
}

impl Container {
    /// Decides the next number: the version with this header, and with this session's logs as long as they are. Rank 0.
    pub(super) fn decide(
        &mut self,
        base: &Base,
        header: &[u8],
        gathered: Vec<Message>,
        durable: bool,
    ) -> Result<Decided> {
        if let Some(number) = base.held.as_ref().and_then(|held| held.number) {
            return self.decide_as(base, (header, number), gathered, durable);
        }
        let failed = |error| versions::of_history(&base.path, error);
        let (lengths, sections) = self.told_of_logs(gathered)?;
        let mut deciding = match self.deciding.take() {
            Some(deciding) => deciding,
            None => self.begin_deciding(base)?,
        };
        if self.redefined
            && facts::without_records(header).0 != facts::without_records(&self.committed).0
        {
            self.deciding = Some(deciding);
            let why = "another writer has changed its definitions since it was opened, so that they cannot be \
                       changed here; open it again";
            return Err(broken(&base.path, why));
        }
        let state = self.view.state();
        let before = deciding.last.clone();
        let own = self.own.as_ref().map(|own| rebase::Own {
            session: &own.session,
            before: &before,
            now: &lengths,
        });
        let mut met = false;
        let mut behind = Behind::new(rebase::Writer {
            store: &self.store,
            pool: &self.pool,
            path: &base.path,
            header: state.header(),
            base: self.edition.as_deref(),
            own,
            stretch: deciding.stretch,
            ours_wins: base.hints.on_conflict == OnConflict::Ours,
            durable,
            budget: base.hints.index_memory,
        });
        // One that may have been made is made, so that nobody takes it for somebody else's.
        if let Some(attempt) = &deciding.in_doubt {
            let made = deciding.history.commit(attempt.clone(), &mut behind);
            match made {
                Ok(number) if base.held.is_some() => {
                    let (redefined, most) = (behind.redefined, behind.most_records);
                    met = behind.begin_again();
                    drop(behind);
                    drop(state);
                    let (_, records) = facts::without_records(header);
                    self.others = met.then_some(records.max(most));
                    let made = match deciding.doubted_lengths == lengths {
                        true => promise_missing(&self.store, &base.path, &deciding.history, number),
                        false => Err(broken(&base.path, NO_PART)),
                    };
                    if made.is_ok() {
                        deciding.is_decided();
                    }
                    deciding.is_known = true;
                    self.deciding = Some(deciding);
                    return made.map(|()| Decided { number, redefined, prepared: None });
                }
                Ok(number) => {
                    (deciding.base, deciding.in_doubt) = (number, None);
                    met = deciding.has_met(behind.begin_again());
                }
                Err(error) => {
                    let error = behind.failure.take().unwrap_or_else(|| failed(error));
                    drop(behind);
                    drop(state);
                    deciding.is_refused(&error);
                    self.deciding = Some(deciding);
                    return Err(error);
                }
            }
        }
        let items = self.news(&deciding, header, &lengths, &sections);
        let mut attempt = Attempt::new(Branch::main(), deciding.base).items(items);
        let message = base.message.get().unwrap_or_else(|| base.hints.message.clone());
        let needs = base.held.as_ref().map(|held| &held.needs[..]).unwrap_or_default();
        attempt = attempt.durable(durable).time(now()).message(&message).needs(needs);
        if self.replaced.is_some() {
            attempt = attempt.whole();
        }
        deciding.doubt(attempt.clone(), lengths.clone());
        let own = sum(&lengths);
        let bytes =
            (deciding.bytes.0.saturating_add(own.0), deciding.bytes.1.saturating_add(own.1));
        let was = sum(&before);
        let grown = (own.0.saturating_sub(was.0), own.1.saturating_sub(was.1));
        let (first, known) = (self.first, self.named);
        let telling = Telling { header, bytes, grown, first, durable, known };
        let how = (attempt, &mut behind as &mut dyn Rebase);
        let made = publish(&self.store, &base.path, &deciding.history, how, telling);
        let made = made.map_err(|error| behind.failure.take().unwrap_or(error));
        let (redefined, most_records) = (behind.redefined, behind.most_records);
        let met_now = behind.begin_again();
        drop(behind);
        drop(state);
        let made = match made {
            Ok(number) => {
                (deciding.base, deciding.in_doubt) = (number, None);
                deciding.is_known |= self.own.is_some();
                met |= deciding.has_met(met_now);
                deciding.last = lengths;
                if met {
                    // All ranks see what others have written, whatever fails from here on.
                    let (_, records) = facts::without_records(header);
                    self.others = Some(records.max(most_records));
                }
                let after = self.after(base, &mut deciding, (number, met));
                after.map(|()| Decided { number, redefined, prepared: None })
            }
            Err(error) => {
                deciding.is_refused(&error);
                Err(error)
            }
        };
        // Also after a failure: what was committed is known to have been.
        self.deciding = Some(deciding);
        made
    }

    /// What all ranks tell of their logs: how long they are, and the sections that they have grown by.
    pub(super) fn told_of_logs(&self, gathered: Vec<Message>) -> Result<Grown> {
        let (mut lengths, mut sections) = (Vec::with_capacity(gathered.len()), Vec::new());
        if let Some(own) = &self.own {
            for (log, message) in (0..).zip(gathered) {
                lengths.push(of_log((own.session.identity, log), &message, &mut sections)?);
            }
        }
        Ok((lengths, sections))
    }

    /// What is to be done when a version was committed: sees to what others have written, if it has `met` them, and to what it replaces. Rank 0.
    fn after(
        &mut self,
        base: &Base,
        deciding: &mut Deciding,
        (number, met): (u64, bool),
    ) -> Result<()> {
        if met {
            // What others have is what was promised beside this one's own.
            let promises = Promises::open(&*self.store, &base.path);
            let slot = promises.and_then(|promises| promises.of(number));
            if let Ok(PromiseSlot::Promise(Promise { data, metadata, .. })) = slot {
                let own = sum(&deciding.last);
                deciding.bytes = (data.saturating_sub(own.0), metadata.saturating_sub(own.1));
            }
        }
        let Some(replaced) = &self.replaced else { return Ok(()) };
        if Mark::require(&*self.store, &base.path)?.format() == Format::One {
            // Now that there is a version, this is what it becomes one of.
            Mark::write(&*self.store, &base.path)?;
        }
        for old in replaced {
            // What was replaced is garbage now, in the way of nothing.
            let _ = self.store.remove(old);
        }
        let prepared = base.path.join("prepared").join("main");
        if self.store.is_dir(&prepared)? {
            // What was prepared for it must not become a version of this one.
            for name in self.store.names_in(&prepared)? {
                let _ = self.store.remove(&prepared.join(name));
            }
        }
        Ok(())
    }

    /// Sees what other writers have committed, behind which this one's last commit went. Gives how many records there are. Nobody may be reading.
    pub(super) fn take_in_others(&mut self, base: &Base) -> Result<Option<u64>> {
        let Some(records) = self.others.take() else { return Ok(None) };
        if let Some(own) = &mut self.own {
            own.met = true;
        }
        let edition = Edition::new(&self.store, &base.path, self.version, Format::Two);
        self.edition = Some(Arc::new(edition));
        self.share = None;
        self.see_anew(base);
        Ok(Some(records))
    }

    /// What is needed to commit to what this one builds on.
    pub(super) fn begin_deciding(&self, base: &Base) -> Result<Deciding> {
        let top = self.next.saturating_sub(1);
        if self.replaced.is_none() {
            require_countable(&base.path, self.version, top)?;
        }
        let trust = Trust::new(&self.store, &base.path, self.replaced.is_some())?;
        let trust = trust.up_to(self.next.saturating_sub(1));
        let writer = self.own.as_ref().map_or_else(new_writer, |own| own.session.identity);
        let history = history(&self.store, &base.path, writer);
        Ok(Deciding {
            history: history.witnessed(Arc::new(trust)),
            base: self.next.saturating_sub(1),
            in_doubt: None,
            doubted_lengths: Vec::new(),
            begun: Vec::new(),
            last: Vec::new(),
            is_known: false,
            stretch: 0,
            bytes: self.bytes,
        })
    }

    /// What is new since the version that the next one builds on.
    pub(super) fn news(
        &self,
        deciding: &Deciding,
        header: &[u8],
        lengths: &[(u64, u64)],
        sections: &[Section],
    ) -> Vec<Item> {
        let (definitions, records) = facts::without_records(header);
        let (before, records_before) = facts::without_records(&self.committed);
        let mut items = Vec::new();
        let begins = self.committed.is_empty();
        if definitions != before || begins {
            items.push(facts::definitions(definitions));
        }
        if records != records_before || begins {
            items.push(facts::records(records));
        }
        if begins && self.replaced.is_some() && deciding.base > 0 {
            // What was replaced cannot be opened any more.
            let last = deciding.base.to_be_bytes().to_vec();
            items.push(Item::fact(spaces::EXPIRED, &1u64.to_be_bytes(), Some(last)));
        }
        if let Some(own) = &self.own {
            if !deciding.is_known {
                items.push(own.session.fact());
            }
            let begun = |log: usize| deciding.begun.get(log).copied().unwrap_or_default();
            let ends = (0..).zip(lengths).filter(|(log, now)| begun(*log as usize) != **now);
            let ends: Vec<(u32, u64, u64)> =
                ends.map(|(log, (meta, data))| (log, *meta, *data)).collect();
            if !ends.is_empty() {
                let (identity, ordinal) = (own.session.identity, deciding.stretch);
                items.push(Stretch { identity, ordinal, place: None, ends }.fact());
            }
        }
        items.extend(sections.iter().map(Section::item));
        items
    }
}

/// Fails if so much lies between the newest version that is there and the highest that was ever promised that nobody could count it.
pub(super) fn require_countable(path: &Path, newest: u64, top: u64) -> Result<()> {
    if top.saturating_sub(newest) <= MOST_LOST {
        return Ok(());
    }
    let why = format!(
        "version {top} is said to have been committed, and the newest that is there is {newest}; `esker recover` makes \
         a version of what can be read"
    );
    Err(broken(path, why))
}

/// The logs of sessions that need not be safe: what came up to the version `safe`, which waited for the disk, is.
pub(super) fn unsafe_logs(path: &Path, sessions: &[Session], safe: u64) -> Vec<PathBuf> {
    let mut paths = Vec::new();
    for session in sessions {
        let parts = session.logs.iter();
        let newer = parts.filter(|part| part.cuts.last().is_some_and(|cut| cut.number > safe));
        let mut files: Vec<u32> = newer.map(|part| part.file).collect();
        files.sort_unstable();
        files.dedup();
        for file in files {
            paths.push(meta_path(path, session, file));
            paths.push(data_path(path, session, file));
        }
    }
    paths
}

impl Container {
    /// Waits until what earlier sessions wrote is safe: a close does not wait for the disk, but
    /// a durable version promises all of its logs. Each rank has a share of the files.
    pub(super) fn settle(&self, base: &Base) -> Result<()> {
        let Some(edition) = self.edition.as_ref().filter(|_| self.safe < self.version) else {
            return Ok(());
        };
        let paths = unsafe_logs(&base.path, &edition.manifest()?.sessions, self.safe);
        for path in paths.iter().skip(base.comm.rank()).step_by(base.comm.size()) {
            self.store.open(path, Access::ReadWrite)?.sync()?;
        }
        Ok(())
    }
}
