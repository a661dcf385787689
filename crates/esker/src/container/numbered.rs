//! Transactions: what is written and defined in one becomes a version at once, or nothing of it does; and versions whose numbers a program
//! has chosen.
//!
//! A session that is a transaction is noted as aborted before it has written anything, so that no recovery takes half of it. What a version
//! has of a log is committed whatever a note says; so a commit is one decision here, too, and then the note goes.

use std::path::Path;
use std::sync::Arc;

use esker_comm::Message;
use esker_format::history::{Branch, GivenUp};
use esker_format::log::{self as facts, Promise, PromiseSlot, STRETCHES, Session};
use esker_history::{Attempt, History, Item, Key, Turn};
use esker_store::{Access, Store};

use super::aborting::note_path;
use super::deciding::{Deciding, require_countable, unsafe_logs};
use super::edition::header_in;
use super::noting::inside;
use super::promises::{prepare, promise};
use super::versions::{
    find, first_of, history, manifest_of, new_writer, now, of_history, settle_names, sum_of,
};
use super::{Container, Format, Mark, Promises, Shelf, Trust, broken};
use crate::base::Base;
use crate::error::{Error, Result};
use crate::held::Committed;
use crate::message::refusal;

/// Why a transaction cannot grow any more.
pub(super) const NO_PART: &str = "whether the transaction was committed could not be told, so that what was written since cannot be a part of it";

/// What a decision means for all ranks.
#[derive(Debug, Clone, Copy)]
pub(super) struct Decided {
    /// The version that this one has now.
    pub(super) number: u64,
    /// Whether others have changed definitions.
    pub(super) redefined: bool,
    /// The number that was prepared, if its turn has not come.
    pub(super) prepared: Option<u64>,
}

impl Container {
    /// What became of the transaction.
    pub(crate) fn outcome(&self) -> Option<Committed> {
        self.outcome
    }

    /// Commits under the number that the program has chosen. Rank 0.
    pub(super) fn decide_as(
        &mut self,
        base: &Base,
        (header, number): (&[u8], u64),
        gathered: Vec<Message>,
        durable: bool,
    ) -> Result<Decided> {
        let (lengths, sections) = self.told_of_logs(gathered)?;
        let mut deciding = match self.deciding.take() {
            Some(deciding) => deciding,
            None => self.begin_deciding(base)?,
        };
        let (store, path) = (&self.store, &base.path);
        let (before, attempt) = (deciding.base(), deciding.doubted());
        let attempt = match attempt {
            Some(attempt) if deciding.doubted_lengths() == lengths => attempt,
            Some(_) => {
                self.deciding = Some(deciding);
                return Err(broken(path, NO_PART));
            }
            None => {
                let items = self.news(&deciding, header, &lengths, &sections);
                let attempt = Attempt::new(Branch::main(), before).items(items).durable(durable);
                let message = base.message.get().unwrap_or_else(|| base.hints.message.clone());
                let needs = base.held.as_ref().map(|held| &held.needs[..]).unwrap_or_default();
                attempt.time(now()).message(&message).needs(needs)
            }
        };
        let ready = prepare(&**store, path)
            .and_then(|()| match durable && !self.named {
                true => settle_names(&**store, path),
                false => Ok(()),
            })
            .and_then(|()| self.require_turn(base, header, (deciding.history(), number)));
        if let Err(error) = ready {
            self.deciding = Some(deciding);
            return Err(error);
        }
        deciding.doubt(attempt.clone(), lengths);
        let made = deciding.history().commit_as(attempt, number);
        let made = match made {
            Ok(turn) => {
                let seen = match turn {
                    Turn::Prepared => Ok(None),
                    Turn::Decided => promise_missing(store, path, deciding.history(), number)
                        .and_then(|()| records_at(deciding.history(), path, number))
                        .map(Some),
                };
                if seen.is_ok() {
                    deciding.is_decided();
                }
                seen.map(|records| (turn, records))
            }
            Err(error) => {
                use esker_history::Error::{Decided, Needed};
                if matches!(error, Decided { .. } | Needed { .. }) {
                    deciding.is_decided();
                }
                Err(of_history(path, error))
            }
        };
        self.deciding = Some(deciding);
        let (turn, records) = made?;
        if let Some(records) = records.filter(|_| number > before + 1) {
            // What others have committed before it is seen from here on.
            self.others = Some(records);
        }
        Ok(match turn {
            Turn::Decided => Decided { number, redefined: false, prepared: None },
            Turn::Prepared => {
                Decided { number: self.version, redefined: false, prepared: Some(number) }
            }
        })
    }

    /// Fails for a dataset that was replaced. Definitions are committed when their turn is: nobody could say what those before it will be.
    fn require_turn(
        &self,
        base: &Base,
        header: &[u8],
        (history, number): (&History, u64),
    ) -> Result<()> {
        let ours = facts::without_records(header).0;
        let before = facts::without_records(&self.committed).0;
        let promises = Promises::open(&*self.store, &base.path)?;
        if let PromiseSlot::Promise(newest) = promises.of(promises.highest())?
            && newest.first > self.first.max(self.version)
        {
            let why = format!("version {} has replaced everything before it", newest.first);
            return Err(broken(&base.path, why));
        }
        if ours == before {
            return Ok(());
        }
        let failed = |error| of_history(&base.path, error);
        let main = Branch::main();
        let newest = history.promote_prepared(&main).map_err(failed)?;
        if newest.saturating_add(1) < number {
            let why = format!(
                "transaction {number} changes definitions, and can be committed when its turn is: number {} is \
                 not decided yet",
                newest + 1
            );
            return Err(Error::Undecided { path: base.path.clone(), why });
        }
        if newest >= number {
            // It was decided: the history says by whom.
            return Ok(());
        }
        let theirs = match history.last(&main) {
            Err(esker_history::Error::Empty(_)) => return Ok(()),
            last => last.and_then(|last| header_in(&last)).map_err(failed)?,
        };
        let theirs = theirs.map_err(|error| broken(&base.path, error.to_string()))?;
        let theirs = facts::without_records(&theirs).0;
        if theirs == before || theirs == ours {
            return Ok(());
        }
        let what = "definitions".to_string();
        Err(Error::Conflict {
            path: base.path.clone(),
            what,
            version: newest,
            base: self.next.saturating_sub(1),
        })
    }

    /// Notes, before a transaction writes anything, that what it does not commit is void. Rank 0.
    pub(super) fn note_begun(&self, base: &Base, session: &Session) -> Result<()> {
        let Some(held) = base.held.as_ref().filter(|_| base.is_root()) else { return Ok(()) };
        let note = facts::Aborted { identity: session.identity, ends: Vec::new() };
        let path = note_path(&base.path, &session.stem);
        let file = self.store.create_like(&path, &base.path.join(super::MARK))?;
        file.write_at(0, &note.encode())?;
        if held.durable {
            file.sync()?;
            self.store.sync_names(&path)?;
        }
        Ok(())
    }

    /// The transaction was committed. One that is prepared keeps its note until it is promoted.
    pub(super) fn is_committed(&mut self, base: &Base, prepared: Option<u64>) {
        if base.held.is_none() {
            return;
        }
        self.outcome = Some(match prepared {
            Some(number) => Committed::Prepared(number),
            None => Committed::Version(self.version),
        });
        if let Some(own) = self.own.as_ref().filter(|_| prepared.is_none() && base.is_root()) {
            // All that it says is that a version says more.
            let _ = self.store.remove(&note_path(&base.path, &own.session.stem));
        }
    }

    /// Gives up the number that the program has chosen, so that those behind it need not wait. One rank does it.
    pub(crate) fn give_up_number(&self, base: &Base) -> Result<()> {
        let number = base.held.as_ref().and_then(|held| held.number);
        let Some(number) = number.filter(|_| self.outcome.is_none()) else { return Ok(()) };
        let in_doubt = self.deciding.as_ref().is_some_and(Deciding::is_in_doubt);
        let message = base.message.get().unwrap_or_else(|| base.hints.message.clone());
        match give_up(&self.store, &base.path, number, (GivenUp::Aborted, &message)) {
            // Somebody else has it, and nothing of it is ours to be given up.
            Err(esker_history::Error::Decided { .. }) if !in_doubt => Ok(()),
            given_up => given_up.map(drop).map_err(|error| of_history(&base.path, error)),
        }
    }
}

/// The number of records that a version has.
fn records_at(history: &History, path: &Path, number: u64) -> Result<u64> {
    let version = history.commit_of(&Branch::main(), number);
    let value = version.and_then(|version| match version {
        Some(version) => version.fact(facts::RECORDS, b""),
        None => Ok(None),
    });
    let value = value.map_err(|error| of_history(path, error))?;
    Ok(value.and_then(|value| esker_format::varint::take(&mut &value[..])).unwrap_or(0))
}

fn give_up(
    store: &Arc<dyn Store>,
    path: &Path,
    number: u64,
    (why, message): (GivenUp, &str),
) -> esker_history::Result<Turn> {
    let wrong = |error: Error| match error {
        Error::Store(error) => esker_history::Error::Store(error),
        other => esker_history::Error::Wrong(other.to_string()),
    };
    prepare(&**store, path).map_err(wrong)?;
    let trust = Trust::new(store, path, false).map_err(wrong)?;
    let history = history(store, path, new_writer()).witnessed(Arc::new(trust));
    let newest = history.newest(&Branch::main())?;
    let attempt = Attempt::new(Branch::main(), newest).durable(true).time(now()).message(message);
    history.give_up(attempt, number, why)
}

/// Promises a version that a transaction has become, unless somebody has.
pub(super) fn promise_missing(
    store: &Arc<dyn Store>,
    path: &Path,
    history: &History,
    number: u64,
) -> Result<()> {
    match Promises::open(&**store, path)?.of(number)? {
        PromiseSlot::Promise(_) => Ok(()),
        PromiseSlot::Empty | PromiseSlot::Damaged => promise_promoted(store, path, history, number),
    }
}

/// Promises a version that was prepared by one and promoted by another: everything that it consists of is made safe first, if it waited for the disk.
pub(super) fn promise_promoted(
    store: &Arc<dyn Store>,
    path: &Path,
    history: &History,
    number: u64,
) -> Result<()> {
    let failed = |error| of_history(path, error);
    let main = Branch::main();
    let decision = history.decision(&main, number).map_err(failed)?;
    let Some((decision, commit)) =
        decision.as_ref().and_then(|decision| Some((decision, decision.commit()?)))
    else {
        return Ok(());
    };
    prepare(&**store, path)?;
    let version = history.commit_of(&main, number).map_err(failed)?;
    let header = version.map(|version| header_in(&version)).transpose().map_err(failed)?;
    let header = header.transpose().map_err(|error| broken(path, error.to_string()))?;
    let news = history.new_facts(&main, number).map_err(failed)?;
    let promises = Promises::open(&**store, path)?;
    let parent = commit.parent.as_ref().map_or(0, |parent| parent.number);
    let before = match parent {
        0 => PromiseSlot::Empty,
        parent => promises.of(parent)?,
    };
    let (data, metadata) = match before {
        PromiseSlot::Promise(before) => {
            let grown = grown_by(&news);
            (before.data.saturating_add(grown.0), before.metadata.saturating_add(grown.1))
        }
        // Nobody has promised the one before it yet, or ever.
        _ => manifest_of(history, path, number)?.log_bytes(),
    };
    let safe = promises.newest_synced(parent)?;
    if decision.durable && safe < parent {
        for file in unsafe_logs(path, &manifest_of(history, path, number)?.sessions, safe) {
            store.open(&file, Access::ReadWrite)?.sync()?;
        }
        settle_names(&**store, path)?;
    }
    let first = first_of(&before).unwrap_or(if parent == 0 { number } else { 1 });
    let header = crc32c::crc32c(&header.unwrap_or_default());
    let (version, durable, names) = (number, decision.durable, false);
    let manifest = sum_of(&**store, path, number)?;
    let promised = Promise { version, first, durable, names, manifest, header, data, metadata };
    promise(&**store, path, promised)?;
    for session in news.iter().filter_map(Session::of_fact) {
        let _ = store.remove(&note_path(path, &session.stem));
    }
    Ok(())
}

/// Bytes of payload and metadata that came with these facts, of a session that is new with them.
fn grown_by(news: &[Item]) -> (u64, u64) {
    let is_stretch = |item: &&Item| matches!(item.key, Key::Fact { space: STRETCHES, .. });
    let stretches = news.iter().filter(is_stretch).filter_map(facts::Stretch::decode);
    let ends = stretches.flat_map(|stretch| stretch.ends);
    ends.fold((0u64, 0u64), |(data, metadata), (_, meta, payload)| {
        (data.saturating_add(payload), metadata.saturating_add(meta))
    })
}

/// What a number of a container has become.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NumberState {
    /// Nobody has said anything of it.
    Open,
    /// It is prepared: what it has become counts when all numbers before it are decided.
    Prepared,
    /// It is a version.
    Version,
    /// It was given up: skipped, or aborted.
    GivenUp,
}

/// What a number of the container at `path` has become.
///
/// ```
/// # use esker::*;
/// # fn main() -> Result<()> {
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("run.esk");
/// # let store = esker_store::LocalStore;
/// Dataset::create(&path, CreateOptions::new().layout(Layout::Log))?.enddef()?.close()?;
/// esker::skip(&store, &path, 3, "no third step")?;
/// let states = [1, 2, 3].map(|number| esker::number_state(&store, &path, number));
/// let states = states.into_iter().collect::<Result<Vec<_>>>()?;
/// assert_eq!(states, [NumberState::Version, NumberState::Open, NumberState::Prepared]);
/// # Ok(()) }
/// ```
pub fn number_state(store: &dyn Store, path: &Path, number: u64) -> Result<NumberState> {
    let (store, path) = inside(store, path)?;
    let shelf = Shelf::open(&store, &path)?;
    if shelf.format == Format::One {
        return Ok(match find(&store, &path, Some(number)) {
            Ok(_) => NumberState::Version,
            Err(_) => NumberState::Open,
        });
    }
    let failed = |error| of_history(&path, error);
    let trust = Trust::new(&store, &path, false)?;
    let history = history(&store, &path, 0).witnessed(Arc::new(trust));
    let main = Branch::main();
    if let Some(decision) = history.decision(&main, number).map_err(failed)? {
        let is_version = decision.commit().is_some();
        return Ok(if is_version { NumberState::Version } else { NumberState::GivenUp });
    }
    let prepared = history.prepared_for(&main, number).map_err(failed)?;
    Ok(if prepared.is_some() { NumberState::Prepared } else { NumberState::Open })
}

/// Gives up a number of the container at `path`, for good, so that what is prepared behind it need not wait for it. That it was given up already is well;
/// that it is a version, or prepared as one, is an error. Not collective: one process does it.
pub fn skip(store: &dyn Store, path: &Path, number: u64, message: &str) -> Result<()> {
    let (store, path) = &inside(store, path)?;
    if let Some(why) = refusal(message) {
        return Err(broken(path, why));
    }
    if Mark::require(&**store, path)?.format() == Format::One {
        let why = "it is of format 1, which is read and not written any more";
        return Err(broken(path, why));
    }
    let found = find(store, path, None)?;
    require_countable(path, found.version, found.next.saturating_sub(1))?;
    match give_up(store, path, number, (GivenUp::Skipped, message)) {
        Err(esker_history::Error::Decided { .. }) if is_given_up(store, path, number)? => Ok(()),
        outcome => outcome.map(drop).map_err(|error| of_history(path, error)),
    }
}

/// Whether a number was given up, or is going to be.
fn is_given_up(store: &Arc<dyn Store>, path: &Path, number: u64) -> Result<bool> {
    let history = history(store, path, 0);
    let main = Branch::main();
    let decided = history.decision(&main, number).and_then(|decided| match decided {
        None => history.prepared_for(&main, number),
        decided => Ok(decided),
    });
    let decided = decided.map_err(|error| of_history(path, error))?;
    Ok(decided.is_some_and(|decision| decision.commit().is_none()))
}
