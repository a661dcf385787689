//! Which version of a container is read, and how the next one comes into being.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use esker_format::history::Branch;
use esker_format::inside;
use esker_format::log::{Manifest, Promise, PromiseSlot, RECORDS};
use esker_history::{Attempt, History, Item, Key, Openable, Rebase, Version, spaces, tag_in};
use esker_store::{Access, File, FolderSegments, Store};

use super::edition::{Edition, header_in};
use super::mark::{Format, Mark};
use super::names::{MARK, decisions_path, promises_path};
use super::promises::{Promises, prepare, promise};
use super::{broken, identity};
use crate::error::{Error, Result};

/// No file of a container that is read at once is longer.
const LONGEST: u64 = 1 << 30;

/// How often versions are looked for anew when one of them goes while it is being read: a creation
/// that replaces the dataset has removed it.
const ATTEMPTS: usize = 8;

/// Versions that are promised and not there, of which each is looked for: every one of them was
/// lost apart from the others.
const MOST_UNLISTED: u64 = 1 << 12;

/// The version that a reader gets.
#[derive(Debug)]
pub(crate) struct Found {
    /// The version, and its header.
    pub(crate) version: u64,
    pub(crate) edition: Edition,
    pub(crate) header: Vec<u8>,
    /// Bytes of payload and metadata in its logs.
    pub(crate) bytes: (u64, u64),
    /// The number of the next version: behind all that there are or were.
    pub(crate) next: u64,
    /// The oldest version of the dataset.
    pub(crate) first: u64,
    /// The newest version up to this one that waited for the disk.
    pub(crate) safe: u64,
    /// What the reader has to know: newer versions that cannot be read.
    pub(crate) notes: Vec<String>,
}

/// One version.
#[derive(Debug)]
pub(crate) enum Read {
    /// It, and its header.
    Whole(Box<Edition>, Vec<u8>),
    /// It is there, but not as it was written.
    Damaged(String),
    Absent,
    /// The number was given up: there is nothing to be read.
    GivenUp,
}

/// How a version looks, without what it is made of.
#[derive(Debug)]
pub(crate) enum Glance {
    Whole,
    Damaged(String),
    Absent,
}

/// The versions of a container, wherever they are kept.
pub(crate) struct Shelf {
    store: Arc<dyn Store>,
    path: std::path::PathBuf,
    pub(crate) format: Format,
    pub(crate) promises: Promises,
}

/// The history of a container, for a writer of this number.
pub(crate) fn history(store: &Arc<dyn Store>, path: &Path, writer: u64) -> History {
    let segments = FolderSegments::new(store.clone(), path, &path.join(MARK));
    History::new(Arc::new(segments), writer).growing(RECORDS)
}

pub(crate) fn read_all(store: &dyn Store, path: &Path) -> Result<Vec<u8>> {
    contents(&*store.open(path, Access::Read)?)
}

fn contents(file: &dyn File) -> Result<Vec<u8>> {
    let mut bytes = vec![0; file.len()?.min(LONGEST) as usize];
    let n = file.read_at(0, &mut bytes)?;
    bytes.truncate(n);
    Ok(bytes)
}

/// An error of the history, as one of its container.
pub(crate) fn of_history(path: &Path, error: esker_history::Error) -> Error {
    match error {
        esker_history::Error::Store(error) => error.into(),
        esker_history::Error::Needed { .. } => {
            Error::GivenUp { path: path.to_path_buf(), why: error.to_string() }
        }
        esker_history::Error::Waiting { .. } => {
            Error::Undecided { path: path.to_path_buf(), why: error.to_string() }
        }
        esker_history::Error::Conflict { conflict, base } => Error::Conflict {
            path: path.to_path_buf(),
            what: conflict.what,
            version: conflict.number,
            base,
        },
        other => broken(path, other.to_string()),
    }
}

impl Shelf {
    /// The versions of the container at `path`, by its mark; where that is damaged, as they lie there.
    pub(crate) fn open(store: &Arc<dyn Store>, path: &Path) -> Result<Shelf> {
        let format = match Mark::find(&**store, path)? {
            Some(mark) => mark.format(),
            None if store.is_dir(&path.join("versions"))? => Format::One,
            None => Format::Two,
        };
        // Before the names: what is committed in between must not be missed.
        let promises = Promises::open(&**store, path)?;
        Ok(Shelf { store: store.clone(), path: path.to_path_buf(), format, promises })
    }

    /// The numbers of the versions that there are, newest first, by their names.
    pub(crate) fn listed(&self) -> Result<Vec<u64>> {
        let folder = match self.format {
            Format::One => self.path.join("versions"),
            Format::Two => decisions_path(&self.path),
        };
        if !self.store.is_dir(&folder)? {
            return Ok(Vec::new());
        }
        let names = self.store.names_in(&folder)?;
        let mut numbers: Vec<u64> = names.iter().filter_map(|name| inside::version(name)).collect();
        numbers.sort_unstable_by(|a, b| b.cmp(a));
        Ok(numbers)
    }

    /// The highest number that there is by its name, without asking for a list where numbers have no gaps.
    fn newest(&self) -> Result<u64> {
        let highest = self.promises.highest();
        // What is promised need not be there.
        let by_list = self.format == Format::One
            || !self.promises.are_there()?
            || (highest > 0 && !self.store.exists(&self.path.join(self.name_of(highest)))?);
        let listed = match by_list {
            true => self.listed()?.first().copied().unwrap_or(0),
            false => highest,
        };
        match self.format {
            Format::One => Ok(listed),
            Format::Two => {
                let history = history(&self.store, &self.path, 0);
                let newest = history.newest_from(&Branch::main(), listed);
                newest.map_err(|error| of_history(&self.path, error))
            }
        }
    }

    /// The highest number that there is or was.
    pub(crate) fn top(&self) -> Result<u64> {
        Ok(self.newest()?.max(self.promises.highest()))
    }

    /// The name of a version's file in the container.
    pub(crate) fn name_of(&self, version: u64) -> String {
        match self.format {
            Format::One => format!("versions/{version:08}"),
            Format::Two => format!("refs/main/{version:08}"),
        }
    }

    /// Reads a version, and compares it with what was promised of it.
    pub(crate) fn read(&self, version: u64, promised: &PromiseSlot) -> Result<Read> {
        let bytes = match self.store.open(&self.path.join(self.name_of(version)), Access::Read) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Read::Absent),
            // Read through one descriptor: a creation that replaces the dataset may remove the name meanwhile.
            opened => contents(&*opened?)?,
        };
        if matches!(promised, PromiseSlot::Promise(promise) if promise.manifest != crc32c::crc32c(&bytes))
        {
            return Ok(Read::Damaged("it is not the one that was committed".to_string()));
        }
        let edition = Edition::new(&self.store, &self.path, version, self.format);
        match self.format {
            Format::One => match Manifest::decode(&bytes) {
                Ok(manifest) if manifest.version != version => {
                    Ok(Read::Damaged(format!("it is that of version {}", manifest.version)))
                }
                Ok(manifest) => {
                    let header = manifest.header.clone();
                    Ok(Read::Whole(Box::new(edition.of_manifest(manifest)), header))
                }
                Err(error) => Ok(Read::Damaged(error.to_string())),
            },
            Format::Two => {
                let found = self.version(version).and_then(|found| match found {
                    Some(version) => header_in(&version).map(|header| Some((version, header))),
                    None => Ok(None),
                });
                match found {
                    Ok(Some((version, Ok(header)))) => {
                        Ok(Read::Whole(Box::new(edition.of_version(version)), header))
                    }
                    Ok(Some((_, Err(error)))) => Ok(Read::Damaged(error.to_string())),
                    Ok(None) => Ok(Read::GivenUp),
                    Err(esker_history::Error::Store(error)) => Err(error.into()),
                    Err(error) => Ok(Read::Damaged(error.to_string())),
                }
            }
        }
    }

    /// Everything that a version consists of.
    pub(super) fn manifest(&self, version: u64) -> Result<Manifest> {
        let why = |why| broken(&self.path, format!("version {version}: {why}"));
        match self.read(version, &PromiseSlot::Empty)? {
            Read::Whole(edition, _) => Ok(edition.manifest()?.as_ref().clone()),
            Read::Damaged(what) => Err(why(what)),
            Read::Absent => Err(why("it is not there".to_string())),
            Read::GivenUp => Err(why("it was given up".to_string())),
        }
    }

    /// Bytes of payload and metadata in a version's logs: as was promised, or as they are.
    fn bytes_of(&self, edition: &Edition, slot: &PromiseSlot) -> Result<(u64, u64)> {
        match slot {
            PromiseSlot::Promise(promise) => Ok((promise.data, promise.metadata)),
            _ => Ok(edition.manifest()?.log_bytes()),
        }
    }

    /// Whether a version looks as it was written. What it shares with others is not looked at.
    pub(crate) fn glance(&self, version: u64, promised: &PromiseSlot) -> Result<Glance> {
        if self.format == Format::One {
            return Ok(match self.read(version, promised)? {
                Read::Whole(..) | Read::GivenUp => Glance::Whole,
                Read::Damaged(why) => Glance::Damaged(why),
                Read::Absent => Glance::Absent,
            });
        }
        let main = Branch::main();
        let history = history(&self.store, &self.path, 0);
        let (known, sum) = match history.decided(&main, version) {
            Ok(Some((_, sum))) => (Glance::Whole, Some(sum)),
            Ok(None) => (Glance::Absent, None),
            Err(esker_history::Error::Store(error)) => return Err(error.into()),
            Err(error) => (Glance::Damaged(error.to_string()), None),
        };
        match (promised, sum) {
            (PromiseSlot::Promise(promise), Some(sum)) if promise.manifest != sum => {
                Ok(Glance::Damaged("it is not the one that was committed".to_string()))
            }
            _ => Ok(known),
        }
    }

    /// A version; `None` if its number was given up.
    fn version(&self, number: u64) -> esker_history::Result<Option<Version>> {
        history(&self.store, &self.path, 0).commit_of(&Branch::main(), number)
    }

    /// The newest version up to this one that has changed the dataset: one that gives names has not.
    pub(crate) fn last_change(&self, version: u64) -> u64 {
        let of_dataset = |item: &&Item| matches!(item.key, Key::Fact { space, .. } if space >= spaces::FIRST_FREE);
        let facts = self.version(version).ok().flatten().and_then(|found| found.all_facts().ok());
        let facts = facts.unwrap_or_default();
        facts.iter().filter(of_dataset).map(|item| item.number).max().unwrap_or(version)
    }

    /// What a number says of versions and writers, as far as its decision can be read: names, expiry, fences.
    pub(crate) fn notes_of(&self, number: u64) -> Result<Vec<Item>> {
        match history(&self.store, &self.path, 0).new_facts(&Branch::main(), number) {
            Err(esker_history::Error::Store(error)) => Err(error.into()),
            Err(_) => Ok(Vec::new()),
            Ok(facts) => Ok(facts.into_iter().filter(is_of_history).collect()),
        }
    }

    /// The writers that were given up, as a version and newer items say.
    pub(crate) fn fenced<'i>(
        &self,
        version: u64,
        newer: impl Iterator<Item = &'i Item>,
    ) -> BTreeSet<u64> {
        let known = self.version(version).ok().flatten().and_then(|found| found.fenced().ok());
        let writer = |item: &Item| match &item.key {
            Key::Fact { space: spaces::FENCED, name } => {
                Some(u64::from_be_bytes(name[..].try_into().ok()?))
            }
            _ => None,
        };
        known.unwrap_or_default().into_iter().chain(newer.filter_map(writer)).collect()
    }

    /// The newest version up to a number that waited for the disk.
    fn safe(&self, number: u64) -> Result<u64> {
        if self.format == Format::One {
            return Ok(0);
        }
        self.promises.newest_synced(number)
    }

    /// Which versions can be opened, as far as expiry is concerned; `None` where nobody says: then a version may be all that there is.
    pub(crate) fn expiry(&self) -> Result<Option<Openable>> {
        if self.format == Format::One {
            return Ok(None);
        }
        match self.last_readable()?.map(|last| Openable::in_version(&last)) {
            None => Ok(None),
            Some(Err(esker_history::Error::Store(error))) => Err(error.into()),
            Some(open) => Ok(open.ok()),
        }
    }

    /// The newest version that can be read, whatever was promised of newer ones: it tells of names and of what has expired, which stay so.
    pub(super) fn last_readable(&self) -> Result<Option<Version>> {
        let history = history(&self.store, &self.path, 0);
        let read = |number: u64| -> Result<Option<Version>> {
            if !matches!(self.glance(number, &self.promises.of(number)?)?, Glance::Whole) {
                return Ok(None);
            }
            match history.commit_of(&Branch::main(), number) {
                Err(esker_history::Error::Store(error)) => Err(error.into()),
                version => Ok(version.ok().flatten()),
            }
        };
        let newest = self.newest()?;
        if let Some(version) = read(newest)? {
            return Ok(Some(version));
        }
        for number in self.listed()?.into_iter().filter(|number| *number < newest) {
            if let Some(version) = read(number)? {
                return Ok(Some(version));
            }
        }
        Ok(None)
    }
}

/// The version that is asked for, or the newest.
///
/// A version that was synced is never passed over: if it cannot be read, that is an error. One that
/// was only closed, or that nothing is known of, may have gone with a loss of power; then the reader
/// gets the version before it, and is told.
pub(crate) fn find(store: &Arc<dyn Store>, path: &Path, version: Option<u64>) -> Result<Found> {
    for attempt in 1.. {
        let found = match version {
            Some(version) => asked_for(store, path, version).map(Some)?,
            None => newest(store, path, attempt == ATTEMPTS)?,
        };
        if let Some(found) = found {
            return Ok(found);
        }
    }
    Err(broken(path, "it changes all the time"))
}

fn asked_for(store: &Arc<dyn Store>, path: &Path, version: u64) -> Result<Found> {
    Mark::require(&**store, path)?;
    let shelf = Shelf::open(store, path)?;
    let slot = shelf.promises.of(version)?;
    // Before it is read: what only it needed may be gone.
    if shelf.expiry()?.is_some_and(|open| !open.has(version)) {
        let why = format!("version {version} has expired, and cannot be opened any more");
        return Err(broken(path, why));
    }
    match shelf.read(version, &slot)? {
        Read::Whole(edition, header) => {
            let first = first_of(&slot).unwrap_or(version);
            let (next, safe) = (version.saturating_add(1), shelf.safe(version)?);
            let bytes = shelf.bytes_of(&edition, &slot)?;
            let (edition, notes) = (*edition, Vec::new());
            Ok(Found { version, edition, header, bytes, next, first, safe, notes })
        }
        Read::Damaged(why) => {
            Err(broken(path, format!("the manifest of version {version} is damaged: {why}")))
        }
        Read::GivenUp => Err(broken(path, format!("version {version} was given up"))),
        Read::Absent => {
            let newest = shelf.newest()?;
            Err(broken(path, format!("it has no version {version}; the newest is {newest}")))
        }
    }
}

pub(super) fn first_of(slot: &PromiseSlot) -> Option<u64> {
    match slot {
        PromiseSlot::Promise(Promise { first, .. }) => Some(*first),
        _ => None,
    }
}

/// The newest version; `None` if one that was found or promised is not there, unless this is the `last` attempt.
fn newest(store: &Arc<dyn Store>, path: &Path, last: bool) -> Result<Option<Found>> {
    let mark = Mark::require(&**store, path)?;
    let shelf = Shelf::open(store, path)?;
    let mut notes = Vec::new();
    if mark.has_promises() && !shelf.promises.are_there()? {
        notes.push(
            "its file of promises is damaged or not there: a version that is lost would not be missed"
                .to_string(),
        );
    }
    let (newest, highest) = (shelf.newest()?, shelf.promises.highest());
    let top = newest.max(highest);
    // What is promised and not there is newer than all that is, or nobody would read it.
    let lowest = match shelf.format {
        Format::One => shelf.listed()?.last().copied().unwrap_or(1),
        Format::Two => 1,
    };
    let unlisted = (newest.saturating_add(1)..=highest).rev().take(MOST_UNLISTED as usize);
    let mut passed = Vec::new();
    // Of numbers that are neither there nor promised nobody could count all.
    let near = (lowest..=newest).rev().take(MOST_UNLISTED as usize);
    let far = match newest.saturating_sub(lowest) < MOST_UNLISTED {
        true => Vec::new(),
        false => shelf.listed()?,
    };
    let far = far.into_iter().filter(|version| newest.saturating_sub(*version) >= MOST_UNLISTED);
    for version in unlisted.chain(near).chain(far) {
        let is_listed = version <= newest;
        let slot = shelf.promises.of(version)?;
        let what = match shelf.read(version, &slot)? {
            Read::GivenUp => continue,
            Read::Whole(edition, header) => {
                let first = first_of(&slot).unwrap_or(lowest.max(1));
                notes.extend(passed.iter().map(|what| {
                    format!(
                        "{what}; it may have gone with a loss of power. What is read is version \
                         {version}; `esker recover` tells what there is of the other"
                    )
                }));
                let (next, safe) = (top.saturating_add(1), shelf.safe(version)?);
                let bytes = shelf.bytes_of(&edition, &slot)?;
                let edition = *edition;
                let found = Found { version, edition, header, bytes, next, first, safe, notes };
                return Ok(Some(found));
            }
            // A creation that replaces the dataset may have removed it; and a list that is read while names come and
            // go may lack the new one as well as the old one.
            Read::Absent if !last && (is_listed || matches!(slot, PromiseSlot::Promise(_))) => {
                return Ok(None);
            }
            Read::Damaged(why) => format!("the manifest of version {version} is damaged ({why})"),
            Read::Absent => format!("version {version} was committed, and is not there"),
        };
        match slot {
            PromiseSlot::Promise(Promise { durable: true, .. }) => {
                return Err(broken(
                    path,
                    format!(
                        "{what}. That version was synced, so that the one before it is not shown in \
                     its place; `esker recover` makes a version of what can be read"
                    ),
                ));
            }
            PromiseSlot::Damaged if is_listed => {
                return Err(broken(
                    path,
                    format!(
                        "{what}, and so is what its file of promises says of it; `esker recover` makes \
                     a version of what can be read"
                    ),
                ));
            }
            // Nobody has ever seen such a version.
            PromiseSlot::Damaged | PromiseSlot::Empty if !is_listed => {}
            PromiseSlot::Promise(_) => passed.push(format!("{what} and was closed, not synced")),
            _ => passed.push(format!("{what}, and nothing says whether it was synced")),
        }
    }
    match (newest == 0, passed.first()) {
        (true, None) => Err(broken(path, "it has no version yet")),
        _ => Err(broken(path, format!("the manifests of all versions up to {top} are damaged"))),
    }
}

/// What a commit has beside its items.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Telling<'t> {
    /// The whole header.
    pub(crate) header: &'t [u8],
    /// Bytes of payload and metadata in all of its logs, if nobody has committed meanwhile; and of these, what is new.
    pub(crate) bytes: (u64, u64),
    pub(crate) grown: (u64, u64),
    /// The oldest version of the dataset; 0 for the one that is being made.
    pub(crate) first: u64,
    /// Whether it waits for the disk.
    pub(crate) durable: bool,
    /// Whether the names of all but this version are safe already.
    pub(crate) known: bool,
}

/// Seconds since 1970, for people.
pub(crate) fn now() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |now| i64::try_from(now.as_secs()).unwrap_or(i64::MAX))
}

/// Makes the names of everything but the next version safe: one that is durable counts on logs, a mark and promises that are.
pub(super) fn settle_names(store: &dyn Store, container: &Path) -> Result<()> {
    for file in [container.join(MARK), promises_path(container)] {
        store.open(&file, Access::ReadWrite)?.sync()?;
    }
    for name in [&container.join("segments").join("x"), &container.join(MARK), container] {
        store.sync_names(name)?;
    }
    Ok(())
}

/// Commits, and promises it: that it survives a loss of power, if it is durable. Gives the number.
pub(crate) fn publish(
    store: &Arc<dyn Store>,
    container: &Path,
    history: &History,
    (attempt, rebase): (Attempt, &mut dyn Rebase),
    telling: Telling<'_>,
) -> Result<u64> {
    prepare(&**store, container)?;
    if telling.durable && !telling.known {
        settle_names(&**store, container)?;
    }
    let failed = |error| match error {
        esker_history::Error::Expired { number, .. } => {
            let why = format!(
                "version {number}, which others have committed since this writer opened it, has expired, so that nobody \
                 can tell whether both have written the same; open it again"
            );
            broken(container, why)
        }
        other => of_history(container, other),
    };
    let expected = (!attempt.is_whole()).then(|| attempt.base().saturating_add(1));
    let number = history.commit(attempt, rebase).map_err(failed)?;
    let first = if telling.first == 0 { number } else { telling.first };
    // Not before the version is safe: a promise that outlives what it speaks of would be an error
    // for every reader.
    let mut promised = Promise {
        version: number,
        first,
        durable: telling.durable,
        names: false,
        manifest: sum_of(&**store, container, number)?,
        header: crc32c::crc32c(telling.header),
        data: telling.bytes.0,
        metadata: telling.bytes.1,
    };
    if expected.is_some_and(|expected| expected != number) {
        // It has what others have committed meanwhile, too.
        promised = with_all(&**store, history, container, (promised, telling.grown))?;
    }
    promise(&**store, container, promised)?;
    Ok(number)
}

/// The checksum of a decision's bytes.
pub(super) fn sum_of(store: &dyn Store, container: &Path, number: u64) -> Result<u32> {
    let decided = decisions_path(container).join(format!("{number:08}"));
    Ok(crc32c::crc32c(&read_all(store, &decided)?))
}

/// A promise of everything that its version has, with what other writers have committed.
fn with_all(
    store: &dyn Store,
    history: &History,
    container: &Path,
    (promised, grown): (Promise, (u64, u64)),
) -> Result<Promise> {
    let number = promised.version;
    if let PromiseSlot::Promise(before) = Promises::open(store, container)?.of(number - 1)? {
        let version = history.commit_of(&Branch::main(), number);
        let header = version.and_then(|version| version.map(|v| header_in(&v)).transpose());
        let header = header.map_err(|error| of_history(container, error))?;
        if let Some(Ok(header)) = header {
            let header = crc32c::crc32c(&header);
            let data = before.data.saturating_add(grown.0);
            let metadata = before.metadata.saturating_add(grown.1);
            return Ok(Promise { header, data, metadata, ..promised });
        }
    }
    // Nobody has promised the one before it yet, or ever.
    let manifest = manifest_of(history, container, number)?;
    let ((data, metadata), header) = (manifest.log_bytes(), crc32c::crc32c(&manifest.header));
    Ok(Promise { header, data, metadata, ..promised })
}

/// What a version that was committed is made of.
pub(super) fn manifest_of(history: &History, container: &Path, number: u64) -> Result<Manifest> {
    let version = history.commit_of(&Branch::main(), number);
    let facts = version.and_then(|version| version.map(|version| version.all_facts()).transpose());
    let facts = facts.map_err(|error| of_history(container, error))?.unwrap_or_default();
    Manifest::from_facts(number, &facts).map_err(|error| broken(container, error.to_string()))
}

/// Whether a version only says something of others: its values are those of the one before it.
pub(super) fn gives_names(history: &History, number: u64) -> esker_history::Result<bool> {
    let facts = history.new_facts(&Branch::main(), number)?;
    Ok(!facts.is_empty() && facts.iter().all(is_of_history))
}

/// Whether an item is of the history itself: a name, expiry, a fence.
pub(crate) fn is_of_history(item: &Item) -> bool {
    matches!(item.key, Key::Fact { space, .. } if space < spaces::FIRST_FREE)
}

/// Promises a version that only says something of others, `names` or what has expired, after everything that it consists of was made safe.
pub(super) fn promise_note(
    store: &dyn Store,
    container: &Path,
    manifest: &Manifest,
    (first, names): (u64, bool),
) -> Result<()> {
    let version = manifest.version;
    let (data, metadata) = manifest.log_bytes();
    let header = crc32c::crc32c(&manifest.header);
    let (manifest, durable) = (sum_of(store, container, version)?, true);
    let promised = Promise { version, first, durable, names, manifest, header, data, metadata };
    promise(store, container, promised)
}

/// Promises a version again that is there, after everything that it consists of was made safe.
pub(crate) fn promise_again(
    store: &Arc<dyn Store>,
    container: &Path,
    manifest: &Manifest,
    first: u64,
) -> Result<()> {
    prepare(&**store, container)?;
    let mut files = vec![container.join(MARK), promises_path(container)];
    for folder in [container.join("runs"), decisions_path(container)] {
        if store.is_dir(&folder)? {
            files.extend(store.names_in(&folder)?.iter().map(|name| folder.join(name)));
        }
    }
    for file in files {
        store.open(&file, Access::ReadWrite)?.sync()?;
        store.sync_names(&file)?;
    }
    for name in [&container.join("segments").join("x"), container] {
        store.sync_names(name)?;
    }
    let version = manifest.version;
    let sum = sum_of(&**store, container, version)?;
    let ((data, metadata), header) = (manifest.log_bytes(), crc32c::crc32c(&manifest.header));
    let given = history(store, container, 0).new_facts(&Branch::main(), version);
    let names = given.is_ok_and(|facts| facts.iter().any(|item| tag_in(item).is_some()));
    let (durable, manifest) = (true, sum);
    let promised = Promise { version, first, durable, names, manifest, header, data, metadata };
    promise(&**store, container, promised)
}

/// A number for a writer, or for anything else that must be told from all others.
pub(crate) fn new_writer() -> u64 {
    identity()
}
