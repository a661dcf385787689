//! Versions that were committed and cannot be read.

use std::path::Path;

use esker_format::log::{Promise, PromiseSlot};
use esker_history::Item;
use esker_store::Store;

use crate::container::{Glance, Mark, Promises, Read, Shelf};
use crate::error::Result;

/// Versions that are looked for one by one.
const MOST_VERSIONS: usize = 1 << 16;

/// A version that was committed and cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LostVersion {
    /// Its number.
    pub version: u64,
    /// The name of its file in the container.
    pub name: String,
    /// What is wrong with it.
    pub what: String,
    /// Whether it was promised to survive a loss of power; `None` if nothing says so or the contrary.
    pub synced: Option<bool>,
    /// Of a recovery: what the new version lacks of it, in a sentence; `None` if it has everything.
    pub lacks: Option<String>,
    /// What it said of versions and writers, as far as that can be read: names, expiry, fences.
    pub(super) gives: Vec<Item>,
    /// What was promised of it.
    promise: Option<Promise>,
}

/// How closely versions are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Look {
    /// Whether they look as they were written; what they share with others is not read.
    Glance,
    /// Whether a reader could have them.
    Whole,
}

/// The versions from `first` on that were committed and are not whole, newest first.
pub(super) fn lost_versions(shelf: &Shelf, first: u64, look: Look) -> Result<Vec<LostVersion>> {
    let promises = &shelf.promises;
    let (listed, open) = (shelf.listed()?, shelf.expiry()?);
    // What has expired is not missed.
    let is_missed = |version: u64| open.as_ref().is_none_or(|open| open.has(version));
    let top = listed.first().copied().unwrap_or(0).max(promises.highest());
    let mut lost = Vec::new();
    // Somebody may have written a number that nobody can count to.
    let promised = (first.max(1)..=top).rev().take(MOST_VERSIONS);
    let mut all: Vec<u64> = promised.chain(listed.iter().copied()).collect();
    all.sort_unstable_by(|a, b| b.cmp(a));
    all.dedup();
    for version in all.into_iter().filter(|version| *version >= first && is_missed(*version)) {
        let slot = promises.of(version)?;
        let glance = match look {
            Look::Glance => shelf.glance(version, &slot)?,
            Look::Whole => match shelf.read(version, &slot)? {
                Read::Whole(edition, _) => match super::everything(&edition)? {
                    Ok(_) => Glance::Whole,
                    Err(why) => Glance::Damaged(why),
                },
                Read::GivenUp => Glance::Whole,
                Read::Damaged(why) => Glance::Damaged(why),
                Read::Absent => Glance::Absent,
            },
        };
        let what = match glance {
            Glance::Whole => continue,
            Glance::Damaged(why) => format!("its manifest is damaged: {why}"),
            // Nobody has ever committed it.
            Glance::Absent if !matches!(slot, PromiseSlot::Promise(_)) => continue,
            Glance::Absent => "its manifest is not there".to_string(),
        };
        let promise = match slot {
            PromiseSlot::Promise(promise) => Some(promise),
            PromiseSlot::Empty | PromiseSlot::Damaged => None,
        };
        let synced = promise.map(|promise| promise.durable);
        let name = shelf.name_of(version);
        let gives = shelf.notes_of(version)?;
        lost.push(LostVersion { version, name, what, synced, lacks: None, gives, promise });
    }
    Ok(lost)
}

/// Whether the file of promises does not say of a version what it should.
pub(super) fn promises_damaged(store: &dyn Store, path: &Path, version: u64) -> Result<bool> {
    let promises = Promises::open(store, path)?;
    let expected = Mark::find(store, path)?.is_some_and(|mark| mark.has_promises());
    let slot = promises.of(version)?;
    Ok((expected && !promises.are_there()?) || slot == PromiseSlot::Damaged)
}

impl LostVersion {
    /// What a version with this header, and logs of so many bytes, lacks of this one.
    pub(super) fn lacking(
        &self,
        header: &[u8],
        (data, metadata): (u64, u64),
        is_whole: bool,
    ) -> Option<String> {
        let Some(promise) = &self.promise else {
            return Some("nothing is known of what it had".to_string());
        };
        let mut lacks = Vec::new();
        if promise.names && self.gives.is_empty() {
            lacks.push("the name that it gave to a version".to_string());
        }
        if promise.header != crc32c::crc32c(header) {
            lacks.push("definitions, attributes or records that it had".to_string());
        }
        if !is_whole || data < promise.data || metadata < promise.metadata {
            lacks.push(format!(
                "some of its {} bytes of values, of which {data} are there",
                promise.data
            ));
        }
        (!lacks.is_empty()).then(|| lacks.join(", and "))
    }
}
