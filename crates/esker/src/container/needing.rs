//! Which logs the versions of a container need that can be opened.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use esker_format::history::Branch;
use esker_format::inside;
use esker_format::log::{SESSIONS, Session};
use esker_history::{Error as HistoryError, History, Item, Key, Version};
use esker_store::Store;

use crate::error::Result;

/// What a file in the folder of logs is, in the order in which those of a session go: what is left of one without metadata, nobody takes for logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    /// A metadata log, and how often it was written anew.
    Meta(u32),
    Data,
    /// The note that its session was aborted.
    Note,
}

/// The files of a session.
#[derive(Debug, Clone, Default)]
pub(super) struct Pieces {
    pub(super) files: Vec<(Kind, String)>,
}

impl Pieces {
    fn revisions(&self) -> impl Iterator<Item = u32> {
        self.files.iter().filter_map(|(kind, _)| match kind {
            Kind::Meta(revision) => Some(*revision),
            Kind::Data | Kind::Note => None,
        })
    }
}

/// The files in the folder of logs, by the stem and identity of their sessions. Others are nobody's concern.
pub(super) fn pieces(store: &dyn Store, path: &Path) -> Result<BTreeMap<(String, u64), Pieces>> {
    let mut all: BTreeMap<(String, u64), Pieces> = BTreeMap::new();
    for name in store.names_in(&path.join("segments"))? {
        let meta = inside::metadata_log(&name).map(|(stem, _, n)| (stem, Kind::Meta(n)));
        let data = || inside::data_log(&name).map(|(stem, _)| (stem, Kind::Data));
        let note = || inside::aborted_note(&name).map(|stem| (stem, Kind::Note));
        let Some((stem, kind)) = meta.or_else(data).or_else(note) else { continue };
        let Some((_, identity)) = inside::session(stem) else { continue };
        let of = all.entry((stem.to_string(), identity)).or_default();
        of.files.push((kind, name));
    }
    all.values_mut().for_each(|pieces| pieces.files.sort_unstable());
    Ok(all)
}

/// Sessions that versions need, and with which revisions of their metadata logs.
#[derive(Debug, Default)]
pub(super) struct Needs {
    sessions: BTreeMap<u64, BTreeSet<u32>>,
    /// Why that is not known of all versions: then nothing is known not to be needed.
    pub(super) unknown: Option<String>,
}

impl Needs {
    /// The revisions that are needed of a session's metadata logs; `None` if nothing of it is needed.
    pub(super) fn of(&self, identity: u64) -> Option<&BTreeSet<u32>> {
        self.sessions.get(&identity)
    }

    fn has_all(&self, wanted: &BTreeMap<(String, u64), Pieces>) -> bool {
        wanted.iter().all(|((_, identity), pieces)| {
            let known = self.sessions.get(identity);
            known.is_some_and(|known| pieces.revisions().all(|revision| known.contains(&revision)))
        })
    }

    fn add(&mut self, facts: impl IntoIterator<Item = Item>) -> bool {
        for item in facts {
            match Session::of_fact(&item) {
                Some(session) => {
                    self.sessions.entry(session.identity).or_default().insert(session.revision);
                }
                None if item.value.is_some() => return false,
                None => {}
            }
        }
        true
    }

    /// What all versions of all branches need that can be opened, as far as it concerns `wanted`.
    ///
    /// A version has the sessions of the one before it, unless it says that one is no longer part of it, or begins anew. So of versions that follow each
    /// other only the last is asked, and versions are asked only until everything that is wanted is known to be needed.
    pub(super) fn find(
        history: &History,
        wanted: &BTreeMap<(String, u64), Pieces>,
    ) -> esker_history::Result<Needs> {
        let mut needs = Needs::default();
        for branch in history.all_branches()? {
            let open = match history.openable(&branch) {
                Err(HistoryError::Empty(_)) => continue,
                open => open?,
            };
            let mut above = None;
            for number in open.all() {
                if needs.has_all(wanted) || needs.unknown.is_some() {
                    return Ok(needs);
                }
                let follows = above == Some(number + 1) && only_adds(history, &branch, number + 1)?;
                above = Some(number);
                if follows {
                    continue;
                }
                let known = match history.commit_of(&branch, number) {
                    Err(error @ HistoryError::Store(_)) => return Err(error),
                    Err(error) => Err(error.to_string()),
                    Ok(None) => {
                        // It was given up: the next one below is asked.
                        above = None;
                        continue;
                    }
                    Ok(Some(version)) => needs.take(&version)?,
                };
                needs.unknown = known.err().map(|why| {
                    format!(
                        "version {number} cannot be read, so that nobody knows which logs it needs, and none is \
                         removed; let it expire ({why})"
                    )
                });
            }
        }
        needs.prepared(history)?;
        Ok(needs)
    }

    fn take(
        &mut self,
        version: &Version,
    ) -> esker_history::Result<std::result::Result<(), String>> {
        let facts = match version.facts(SESSIONS) {
            Err(error @ HistoryError::Store(_)) => return Err(error),
            Err(error) => return Ok(Err(error.to_string())),
            Ok(facts) => facts,
        };
        let facts = facts.into_iter().map(|(name, value)| Item::fact(SESSIONS, &name, Some(value)));
        Ok(match self.add(facts) {
            true => Ok(()),
            false => Err("it has a session that makes no sense".to_string()),
        })
    }

    /// Versions that are prepared may need logs that no other knows.
    fn prepared(&mut self, history: &History) -> esker_history::Result<()> {
        for branch in history.all_branches()? {
            let waiting = history.waiting(&branch)?;
            if let Some(number) = waiting.first() {
                self.unknown = Some(format!(
                    "version {number} is prepared, and waits for those before it: no logs are removed until it is decided"
                ));
            }
        }
        Ok(())
    }
}

/// Whether a version has all sessions that the one before it has.
fn only_adds(history: &History, branch: &Branch, number: u64) -> esker_history::Result<bool> {
    let decision = match history.decision(branch, number) {
        Err(error @ HistoryError::Store(_)) => return Err(error),
        Err(_) => return Ok(false),
        Ok(decision) => decision,
    };
    let Some(commit) = decision.as_ref().and_then(|decision| decision.commit()) else {
        return Ok(false);
    };
    if commit.parent.is_none() {
        return Ok(false);
    }
    let goes =
        |item: &Item| matches!(item.key, Key::Fact { space: SESSIONS, .. }) && item.value.is_none();
    match history.new_facts(branch, number) {
        Err(error @ HistoryError::Store(_)) => Err(error),
        Err(_) => Ok(false),
        Ok(facts) => Ok(!facts.iter().any(goes)),
    }
}
