//! What happened to a container: its versions, newest first, without a look at its logs.
//!
//! Decisions tell what was committed, when and why; the file of promises, how much there was; facts that came with a version, how many
//! records. So a list costs a decision for each version.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use esker_format::history::{Branch, Decision};
use esker_format::log::{self as facts, Promise, PromiseSlot};
use esker_format::{Header, NumRecs, varint};
use esker_history::{History, Item, Key, Openable, tag_in};
use esker_store::Store;

use super::named::version_in_path;
use super::noting::inside;
use super::tags::{Tag, tags_in};
use super::versions::{Read, Shelf, history};
use super::{Format, broken};
use crate::error::Result;

/// Numbers between those that are there which are looked for one by one.
const MOST_GONE: u64 = 1 << 12;

/// Whether a version can be opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VersionState {
    /// It can, as far as its decision tells; what it shares with other versions is not read for this.
    Open,
    /// It has expired, or was replaced with its dataset.
    Expired,
    /// Its number was given up: it never was a version.
    GivenUp,
    /// It was committed and cannot be read: why.
    Damaged(String),
}

/// A version of a container, as [`versions`] tells of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VersionFacts {
    /// Its number.
    pub number: u64,
    /// Whether it can be opened.
    pub state: VersionState,
    /// When it was committed, in seconds since 1970, by the clock of who did it; `None` where nothing says so (format 1).
    pub time: Option<i64>,
    /// What its writer said of it.
    pub message: String,
    /// The names that it has.
    pub tags: Vec<String>,
    /// The names that it gave to versions: if there are any, its values are those of the one before it.
    pub gives: Vec<Tag>,
    /// How many records it has.
    pub records: Option<u64>,
    /// Bytes of values that came with it; `None` where that is not known.
    pub new_bytes: Option<u64>,
    /// Whether it was promised to survive a loss of power; `None` if nothing says so or the contrary.
    pub durable: Option<bool>,
}

/// The versions of the container at `path`, newest first, those that cannot be opened with them; of `RUN.esk@7`, that one and those before it. At most `most`.
///
/// ```
/// # use esker::*;
/// # fn main() -> Result<()> {
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("run.esk");
/// let mut ds = Dataset::create(&path, CreateOptions::new().layout(Layout::Log))?.enddef()?;
/// ds.set_message("spin-up done")?;
/// ds.sync()?;
/// for version in esker::versions(&esker_store::LocalStore, &path, None)? {
///     println!("{} {}", version.number, version.message);
/// }
/// # Ok(()) }
/// ```
pub fn versions(store: &dyn Store, path: &Path, most: Option<usize>) -> Result<Vec<VersionFacts>> {
    let (path, up_to) = match version_in_path(store, path)? {
        Some((container, version)) => (container, Some(version)),
        None => (path.to_path_buf(), None),
    };
    let (store, path) = &inside(store, &path)?;
    let shelf = Shelf::open(store, path)?;
    let mut listing = Listing::new(store, path, &shelf)?;
    let most = most.unwrap_or(usize::MAX);
    let all = numbers(&shelf)?;
    if let Some(asked) = up_to.filter(|asked| !all.contains(asked)) {
        let newest = all.first().copied().unwrap_or(0);
        return Err(broken(path, format!("it has no version {asked}; the newest is {newest}")));
    }
    for number in all.into_iter().filter(|number| up_to.is_none_or(|top| *number <= top)) {
        if listing.found.len() >= most {
            break;
        }
        listing.add(number)?;
    }
    Ok(listing.finish())
}

/// The numbers of all versions that there are or were promised, newest first.
fn numbers(shelf: &Shelf) -> Result<Vec<u64>> {
    let listed = shelf.listed()?;
    let mut all = Vec::with_capacity(listed.len());
    let mut above = shelf.promises.highest().saturating_add(1);
    for number in listed.iter().copied().chain([0]) {
        // What was promised and is not there.
        for gone in (number.saturating_add(1)..above).rev().take(MOST_GONE as usize) {
            if matches!(shelf.promises.of(gone)?, PromiseSlot::Promise(_)) {
                all.push(gone);
            }
        }
        all.extend(Some(number).filter(|number| *number > 0));
        above = above.min(number);
    }
    Ok(all)
}

/// A list that grows downwards.
struct Listing<'l> {
    shelf: &'l Shelf,
    history: History,
    tags: BTreeMap<u64, Vec<String>>,
    open: Option<Openable>,
    found: Vec<VersionFacts>,
    /// Which of them have as many records as the next that says how many it has.
    waiting: Vec<usize>,
}

impl<'l> Listing<'l> {
    fn new(store: &Arc<dyn Store>, path: &Path, shelf: &'l Shelf) -> Result<Listing<'l>> {
        let mut tags: BTreeMap<u64, Vec<String>> = BTreeMap::new();
        for Tag { name, version } in tags_in(store, path)? {
            tags.entry(version).or_default().push(name);
        }
        let (open, history) = (shelf.expiry()?, history(store, path, 0));
        Ok(Listing { shelf, history, tags, open, found: Vec::new(), waiting: Vec::new() })
    }

    fn add(&mut self, number: u64) -> Result<()> {
        let slot = self.shelf.promises.of(number)?;
        let promise = match slot {
            PromiseSlot::Promise(promise) => Some(promise),
            PromiseSlot::Empty | PromiseSlot::Damaged => None,
        };
        let tags = self.tags.get(&number).cloned().unwrap_or_default();
        let mut facts = VersionFacts {
            number,
            state: VersionState::Open,
            time: None,
            message: String::new(),
            gives: Vec::new(),
            records: None,
            new_bytes: None,
            durable: promise.map(|promise| promise.durable),
            tags,
        };
        if self.shelf.format == Format::One {
            self.of_manifest(&mut facts, &slot)?;
            self.found.push(facts);
            return Ok(());
        }
        let mut records = None;
        let has_expired = self.open.as_ref().is_some_and(|open| !open.has(number));
        match self.history.decided(&Branch::main(), number) {
            Err(esker_history::Error::Store(error)) => return Err(error.into()),
            Err(error) => facts.state = VersionState::Damaged(error.to_string()),
            // It went with the dataset that was replaced.
            Ok(None) if has_expired => return Ok(()),
            Ok(None) => facts.state = VersionState::Damaged("it is not there".to_string()),
            Ok(Some((_, sum))) if promise.is_some_and(|promise| promise.manifest != sum) => {
                let another = "it is not the one that was committed";
                facts.state = VersionState::Damaged(another.to_string());
            }
            Ok(Some((decision, _))) => {
                records = self.of_decision(&mut facts, &decision, promise)?
            }
        }
        match facts.state {
            // Nothing from here tells what those above it have.
            VersionState::Damaged(_) => self.ask_records(),
            VersionState::GivenUp => {}
            VersionState::Open | VersionState::Expired => self.waiting.push(self.found.len()),
        }
        if has_expired && facts.state != VersionState::GivenUp {
            // Whatever is left of it.
            facts.state = VersionState::Expired;
        }
        self.found.push(facts);
        if records.is_some() {
            self.have_records(records);
        }
        Ok(())
    }

    fn of_decision(
        &mut self,
        facts: &mut VersionFacts,
        decision: &Decision,
        promise: Option<Promise>,
    ) -> Result<Option<u64>> {
        (facts.time, facts.message) = (Some(decision.time), decision.message.clone());
        facts.durable = Some(decision.durable);
        let Some(commit) = decision.commit() else {
            facts.state = VersionState::GivenUp;
            return Ok(None);
        };
        let before = match &commit.parent {
            Some(parent) => match self.shelf.promises.of(parent.number)? {
                PromiseSlot::Promise(before) => Some(before.data),
                PromiseSlot::Empty | PromiseSlot::Damaged => None,
            },
            // A new dataset; one that was recovered has what there was.
            None => promise.filter(|promise| promise.first == promise.version).map(|_| 0),
        };
        if let (Some(now), Some(before)) = (promise, before) {
            facts.new_bytes = now.data.checked_sub(before);
        }
        let news = match self.history.new_facts(&Branch::main(), facts.number) {
            Err(esker_history::Error::Store(error)) => return Err(error.into()),
            Err(error) => {
                facts.state = VersionState::Damaged(error.to_string());
                return Ok(None);
            }
            Ok(news) => news,
        };
        let tag = |item: &Item| {
            let (name, _, version) = tag_in(item)?;
            Some(Tag { name: name.to_string(), version })
        };
        facts.gives = news.iter().filter_map(tag).collect();
        Ok(news.iter().find_map(records_in))
    }

    /// Those that wait have so many.
    fn have_records(&mut self, records: Option<u64>) {
        for place in std::mem::take(&mut self.waiting) {
            self.found[place].records = records;
        }
    }

    /// The last of those that wait is asked itself, for all.
    fn ask_records(&mut self) {
        let Some(last) = self.waiting.last().map(|place| self.found[*place].number) else { return };
        let version = self.history.commit_of(&Branch::main(), last).ok().flatten();
        let value = version.and_then(|version| version.fact(facts::RECORDS, b"").ok().flatten());
        self.have_records(value.and_then(|value| varint::take(&mut &value[..])));
    }

    /// A version of format 1: its manifest has everything that is known.
    fn of_manifest(&self, facts: &mut VersionFacts, slot: &PromiseSlot) -> Result<()> {
        match self.shelf.read(facts.number, slot)? {
            Read::Whole(edition, header) => {
                let header = Header::decode(&header, u64::MAX);
                facts.records = header.ok().and_then(|header| match header.numrecs {
                    NumRecs::Count(records) => Some(records),
                    NumRecs::Streaming => None,
                });
                let before = match facts.number.checked_sub(1) {
                    None | Some(0) => Some(0),
                    Some(before) => {
                        match self.shelf.read(before, &self.shelf.promises.of(before)?)? {
                            Read::Whole(before, _) => Some(before.manifest()?.log_bytes().0),
                            _ => None,
                        }
                    }
                };
                let now = edition.manifest()?.log_bytes().0;
                facts.new_bytes = before.and_then(|before| now.checked_sub(before));
            }
            Read::Damaged(why) => facts.state = VersionState::Damaged(why),
            Read::Absent => facts.state = VersionState::Damaged("it is not there".to_string()),
            Read::GivenUp => facts.state = VersionState::GivenUp,
        }
        Ok(())
    }

    fn finish(mut self) -> Vec<VersionFacts> {
        self.ask_records();
        self.found
    }
}

/// The number of records that an item tells, if it is that fact.
fn records_in(item: &Item) -> Option<u64> {
    match item.key {
        Key::Fact { space: facts::RECORDS, .. } => varint::take(&mut item.value.as_deref()?),
        _ => None,
    }
}
