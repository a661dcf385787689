//! Which version of a container is read, and how the next one comes into being.

use std::io::ErrorKind;
use std::path::Path;

use esker_format::inside;
use esker_format::log::{Manifest, Promise, PromiseSlot};
use esker_store::{Access, File, Store};

use super::mark::Mark;
use super::names::{MARK, promises_path, version_path};
use super::promises::{Promises, prepare, promise};
use super::{broken, identity};
use crate::error::Result;

/// No manifest is longer: that of a million logs has 32 MB.
const LONGEST: u64 = 1 << 30;

/// How often versions are listed anew when one of them goes while it is being read: a creation
/// that replaces the dataset has removed it.
const ATTEMPTS: usize = 8;

/// Versions that are promised and not there, of which each is looked for: every one of them was
/// lost apart from the others.
const MOST_UNLISTED: usize = 1 << 12;

/// The version that a reader gets.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) manifest: Manifest,
    /// The number of the next version: behind all that there are or were.
    pub(crate) next: u64,
    /// The oldest version of the dataset.
    pub(crate) first: u64,
    /// What the reader has to know: newer versions that cannot be read.
    pub(crate) notes: Vec<String>,
}

/// The manifest of one version.
#[derive(Debug)]
pub(crate) enum Read {
    Whole(Box<Manifest>),
    /// It is there, but not as it was written.
    Damaged(String),
    Absent,
}

/// The numbers of the versions that there are, newest first.
pub(crate) fn versions(store: &dyn Store, path: &Path) -> Result<Vec<u64>> {
    let names = store.names_in(&path.join("versions"))?;
    let mut numbers: Vec<u64> = names.iter().filter_map(|name| inside::version(name)).collect();
    numbers.sort_unstable_by(|a, b| b.cmp(a));
    Ok(numbers)
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

/// Reads the manifest of a version, and compares it with what was promised of it.
pub(crate) fn read(
    store: &dyn Store,
    path: &Path,
    version: u64,
    promised: &PromiseSlot,
) -> Result<Read> {
    let bytes = match store.open(&version_path(path, version), Access::Read) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Read::Absent),
        // Read through one descriptor: a creation that replaces the dataset may remove the name meanwhile.
        opened => contents(&*opened?)?,
    };
    let manifest = match Manifest::decode(&bytes) {
        Ok(manifest) => manifest,
        Err(error) => return Ok(Read::Damaged(error.to_string())),
    };
    if manifest.version != version {
        return Ok(Read::Damaged(format!("it is that of version {}", manifest.version)));
    }
    match promised {
        PromiseSlot::Promise(promise) if promise.manifest != crc32c::crc32c(&bytes) => {
            Ok(Read::Damaged("it is not the one that was committed".to_string()))
        }
        _ => Ok(Read::Whole(Box::new(manifest))),
    }
}

/// The version that is asked for, or the newest.
///
/// A version that was synced is never passed over: if it cannot be read, that is an error. One that
/// was only closed, or that nothing is known of, may have gone with a loss of power; then the reader
/// gets the version before it, and is told.
pub(crate) fn find(store: &dyn Store, path: &Path, version: Option<u64>) -> Result<Found> {
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

fn asked_for(store: &dyn Store, path: &Path, version: u64) -> Result<Found> {
    Mark::require(store, path)?;
    let promises = Promises::open(store, path)?;
    let slot = promises.of(version)?;
    match read(store, path, version, &slot)? {
        Read::Whole(manifest) => {
            let first = first_of(&slot).unwrap_or(version);
            let next = version.saturating_add(1);
            Ok(Found { next, manifest: *manifest, first, notes: Vec::new() })
        }
        Read::Damaged(why) => {
            Err(broken(path, format!("the manifest of version {version} is damaged: {why}")))
        }
        Read::Absent => {
            let newest = versions(store, path)?.first().copied().unwrap_or(0);
            Err(broken(path, format!("it has no version {version}; the newest is {newest}")))
        }
    }
}

fn first_of(slot: &PromiseSlot) -> Option<u64> {
    match slot {
        PromiseSlot::Promise(Promise { first, .. }) => Some(*first),
        _ => None,
    }
}

/// The newest version; `None` if one that was listed or promised is not there, unless this is the `last` attempt.
fn newest(store: &dyn Store, path: &Path, last: bool) -> Result<Option<Found>> {
    let mark = Mark::require(store, path)?;
    // Before the names: what is committed in between must not be missed.
    let promises = Promises::open(store, path)?;
    let listed = versions(store, path)?;
    let mut notes = Vec::new();
    if mark.has_promises() && !promises.are_there()? {
        notes.push(
            "its file of promises is damaged or not there: a version that is lost would not be missed"
                .to_string(),
        );
    }
    let (newest, highest) = (listed.first().copied().unwrap_or(0), promises.highest());
    let top = newest.max(highest);
    // What is promised and not listed is newer than all that is, or nobody would read it.
    let unlisted = (newest.saturating_add(1)..=highest).rev().take(MOST_UNLISTED);
    let unlisted = unlisted.map(|version| (version, false));
    let mut passed = Vec::new();
    for (version, is_listed) in unlisted.chain(listed.iter().map(|version| (*version, true))) {
        let slot = promises.of(version)?;
        let what = match read(store, path, version, &slot)? {
            Read::Whole(manifest) => {
                let first = first_of(&slot).unwrap_or(listed.last().copied().unwrap_or(version));
                notes.extend(passed.iter().map(|what| {
                    format!(
                        "{what}; it may have gone with a loss of power. What is read is version \
                         {version}; `esker recover` tells what there is of the other"
                    )
                }));
                let next = top.saturating_add(1);
                return Ok(Some(Found { manifest: *manifest, next, first, notes }));
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
    match (listed.is_empty(), passed.first()) {
        (true, None) => Err(broken(path, "it has no version yet")),
        _ => Err(broken(path, format!("the manifests of all versions up to {top} are damaged"))),
    }
}

/// Creates the manifest's version, if nobody else has, and promises it: that it survives a loss of
/// power, if it is `durable`. `first` is the oldest version of the dataset; `known` says that the
/// names of everything but this version are safe already.
pub(crate) fn publish(
    store: &dyn Store,
    container: &Path,
    manifest: &Manifest,
    (first, durable, known): (u64, bool, bool),
) -> Result<()> {
    let path = version_path(container, manifest.version);
    prepare(store, container)?;
    if durable && !known {
        // A version that is durable counts on logs, a mark and promises that are.
        for file in [container.join(MARK), promises_path(container)] {
            store.open(&file, Access::ReadWrite)?.sync()?;
        }
        for name in [&container.join("segments").join("x"), &container.join(MARK), container] {
            store.sync_names(name)?;
        }
    }
    let draft = container.join("versions").join(format!("draft-{:016x}", identity()));
    let bytes = manifest.encode();
    let file = store.create_like(&draft, &container.join(MARK))?;
    let written = file.write_at(0, &bytes).and_then(|()| match durable {
        true => file.sync(),
        false => Ok(()),
    });
    let published = written.and_then(|()| store.publish(&draft, &path));
    if let Err(error) = published {
        let _ = store.remove(&draft);
        if error.kind() != ErrorKind::AlreadyExists {
            return Err(error.into());
        }
        // It may be ours, from a commit that failed after this.
        if read_all(store, &path)? != bytes {
            let why = format!(
                "version {} was committed by another writer meanwhile; open it again",
                manifest.version
            );
            return Err(broken(container, why));
        }
        if durable {
            store.open(&path, Access::ReadWrite)?.sync()?;
        }
    }
    if durable {
        store.sync_names(&path)?;
    }
    // Not before the version is safe: a promise that outlives what it speaks of would be an error
    // for every reader.
    promise(store, container, (manifest, &bytes), (first, durable))
}
