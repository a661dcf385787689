//! Logs that somebody left: whose they are, and what of them is not in the file yet.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use esker_format::log::{FrameKind, Head};
use esker_store::{Access, File, Lane, Store};

use super::names::{PairName, Stem, absolute};
use super::session::lock;
use super::{DATA_BLOCK, META_BLOCK};
use crate::error::Result;
use crate::log::LogSource;

/// One rank's log.
#[derive(Debug)]
pub(crate) struct FoundLog {
    pub(crate) head: Head,
    pub(crate) slot: u32,
    pub(crate) source: LogSource,
    /// The last epoch that has entries.
    last: Option<u64>,
    /// The last epoch that it knows to have been replayed.
    applied: Option<u64>,
    /// One after the last record of its entries that are not known to be replayed, by variable.
    records: BTreeMap<u64, u64>,
    /// Whether something in it could not be read.
    damaged: bool,
}

/// The logs of one file in some directories.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub(crate) logs: Vec<FoundLog>,
    /// The files, whether their heads could be read or not.
    pub(crate) files: Vec<PathBuf>,
    /// Metadata logs whose heads could not be read.
    pub(crate) headless: Vec<PathBuf>,
}

impl Found {
    /// The logs of `path` in the directories, those that there are.
    pub(crate) fn look(store: &dyn Store, path: &Path, dirs: &[PathBuf]) -> Result<Found> {
        let stem = Stem::of(path);
        let mut found = Found::default();
        let mut seen: Vec<PathBuf> = Vec::new();
        for dir in dirs {
            let dir = absolute(dir);
            if seen.contains(&dir) || !store.is_dir(&dir)? {
                continue;
            }
            for name in store.names_in(&dir)? {
                if let Some(pair) = stem.parse(&name) {
                    found.add(store, &stem, &dir, pair, path)?;
                }
            }
            seen.push(dir);
        }
        found.logs.sort_by_key(|log| (log.head.rank, log.slot));
        Ok(found)
    }

    /// Fails if a session that writes these logs lives: they are not left, but in use.
    pub(crate) fn require_dead(&self, store: &dyn Store, path: &Path) -> Result<()> {
        let is_meta = |path: &&PathBuf| path.extension().is_some_and(|ending| ending == "meta");
        for meta in self.files.iter().filter(is_meta) {
            match store.open(meta, Access::ReadWrite) {
                // Whoever wrote it has ended just now.
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                opened => drop(lock(path, &opened?)?),
            }
        }
        Ok(())
    }

    fn add(
        &mut self,
        store: &dyn Store,
        stem: &Stem,
        dir: &Path,
        pair: PairName,
        path: &Path,
    ) -> Result<()> {
        let [meta_path, data_path] = ["meta", "data"].map(|kind| stem.path(dir, pair, kind));
        self.files.push(meta_path.clone());
        let meta = store.open(&meta_path, Access::Read)?;
        let data: Arc<dyn File> = match store.exists(&data_path)? {
            true => {
                self.files.push(data_path.clone());
                store.open(&data_path, Access::Read)?
            }
            // A session that died when it began: there is nothing in it.
            false => meta.clone(),
        };
        for lane in 0..pair.lanes.into() {
            let lanes = pair.lanes.into();
            let meta = Lane::open(meta.clone(), lane, lanes, META_BLOCK);
            let data = Lane::open(data.clone(), lane, lanes, DATA_BLOCK);
            let mut bytes = vec![0; Head::enough().min(meta.len()? as usize)];
            let n = meta.read_at(0, &mut bytes)?;
            let head = Head::decode(&bytes[..n]);
            let rank = head.as_ref().map_or(0, |(head, _)| head.rank);
            let orders = LogSource::in_one_session(0);
            let (meta_len, data_len) = (None, None);
            let source =
                LogSource { meta, data, orders, rank, identity: None, meta_len, data_len, read: 0 };
            let Some((head, _)) = head else {
                // One that died when it made its log has written nothing.
                if has_frames(source)? {
                    self.headless.push(meta_path.clone());
                }
                continue;
            };
            if Path::new(&head.text) != absolute(path) {
                continue;
            }
            let log = FoundLog {
                head,
                slot: pair.slot,
                source,
                last: None,
                applied: None,
                records: BTreeMap::new(),
                damaged: false,
            };
            self.logs.push(log.read()?);
        }
        Ok(())
    }

    /// The last epoch of a session that some log of it knows to have been replayed.
    pub(crate) fn applied(&self, identity: u64) -> Option<u64> {
        self.of(identity).filter_map(|log| log.applied).max()
    }

    /// The logs of a session.
    pub(crate) fn of(&self, identity: u64) -> impl Iterator<Item = &FoundLog> {
        self.logs.iter().filter(move |log| log.head.identity == identity)
    }

    /// The sessions that have entries which are not known to be in the file.
    pub(crate) fn unfinished(&self) -> Vec<u64> {
        let mut identities: Vec<u64> = Vec::new();
        for log in &self.logs {
            let identity = log.head.identity;
            let applied = self.applied(identity);
            let new = log.last.is_some_and(|last| applied.is_none_or(|applied| last > applied));
            if (new || log.damaged) && !identities.contains(&identity) {
                identities.push(identity);
            }
        }
        identities
    }

    /// One after the last record of a session's entries for variables that have records.
    pub(crate) fn records(&self, identity: u64, has_records: impl Fn(u64) -> bool) -> u64 {
        let all = self.of(identity).flat_map(|log| &log.records);
        all.filter(|(var, _)| has_records(**var)).map(|(_, records)| *records).max().unwrap_or(0)
    }

    /// The ranks of a session whose logs are not there.
    pub(crate) fn missing(&self, identity: u64) -> Vec<u32> {
        let ranks = self.of(identity).map(|log| log.head.ranks).max().unwrap_or(0);
        (0..ranks).filter(|rank| !self.of(identity).any(|log| log.head.rank == *rank)).collect()
    }
}

/// Whether there are entries in a log whose head cannot be read.
fn has_frames(mut source: LogSource) -> Result<bool> {
    let mut any = false;
    source.read_on(|frame| {
        any |= frame.is_ok();
        Ok(())
    })?;
    Ok(any)
}

impl FoundLog {
    /// Reads through the metadata.
    fn read(mut self) -> Result<FoundLog> {
        let mut source = self.source.clone();
        source.skip_head()?;
        source.read_on(|frame| {
            match frame {
                Ok(frame) => match frame.kind {
                    FrameKind::Applied { epoch } => {
                        self.applied = self.applied.max(Some(epoch));
                        self.damaged = false;
                        self.records.clear();
                    }
                    FrameKind::Entries | FrameKind::Known => {
                        for entry in &frame.entries {
                            self.last = self.last.max(Some(entry.write.epoch));
                            let records = entry.write.records.end().unwrap_or(0);
                            let known = self.records.entry(entry.write.var).or_default();
                            *known = records.max(*known);
                        }
                    }
                },
                Err(_) => self.damaged = true,
            }
            Ok(())
        })?;
        Ok(self)
    }
}
