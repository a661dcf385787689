//! A version of a container for its readers: each part of it is looked up when somebody needs it.

use std::collections::HashMap;
use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use esker_format::history::{Branch, HistoryError, Item};
use esker_format::log::{
    DEFINITIONS, ENTRIES, Manifest, RECORDS, SESSIONS, Section, Session, header_of,
};
use esker_history::Version;
use esker_store::Store;

use super::broken;
use super::mark::Format;
use super::versions::{Shelf, history, of_history};
use crate::error::Result;

/// A version.
pub(crate) struct Edition {
    store: Arc<dyn Store>,
    path: PathBuf,
    version: u64,
    format: Format,
    parts: Mutex<Option<Parts>>,
    /// Sessions that were asked for.
    sessions: Mutex<HashMap<u64, Arc<Session>>>,
}

/// What it consists of.
#[derive(Debug, Clone)]
enum Parts {
    /// All of it.
    Whole(Arc<Manifest>),
    /// What can be looked up.
    Listed(Arc<Version>),
}

impl fmt::Debug for Edition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Edition").field("version", &self.version).finish_non_exhaustive()
    }
}

impl Edition {
    /// A version that is known to be there.
    pub(crate) fn new(
        store: &Arc<dyn Store>,
        path: &Path,
        version: u64,
        format: Format,
    ) -> Edition {
        Edition {
            store: store.clone(),
            path: path.to_path_buf(),
            version,
            format,
            parts: Mutex::default(),
            sessions: Mutex::default(),
        }
    }

    /// The same, of which everything was read.
    pub(super) fn of_manifest(self, manifest: Manifest) -> Edition {
        Edition { parts: Mutex::new(Some(Parts::Whole(Arc::new(manifest)))), ..self }
    }

    /// The same, as its history has it.
    pub(super) fn of_version(self, version: Version) -> Edition {
        Edition { parts: Mutex::new(Some(Parts::Listed(Arc::new(version)))), ..self }
    }

    /// How its container keeps versions.
    pub(crate) fn format(&self) -> Format {
        self.format
    }

    fn parts(&self) -> Result<Parts> {
        let mut known = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(parts) = &*known {
            return Ok(parts.clone());
        }
        let parts = match self.format {
            Format::One => Parts::Whole(Arc::new(self.shelf()?.manifest(self.version)?)),
            Format::Two => {
                let history = history(&self.store, &self.path, 0);
                let version = history.commit_of(&Branch::main(), self.version);
                let gone = || broken(&self.path, format!("version {} was given up", self.version));
                let version = version.map_err(|error| of_history(&self.path, error))?;
                Parts::Listed(Arc::new(version.ok_or_else(gone)?))
            }
        };
        *known = Some(parts.clone());
        Ok(parts)
    }

    fn shelf(&self) -> Result<Shelf> {
        Shelf::open(&self.store, &self.path)
    }

    fn damaged(&self, error: &HistoryError) -> crate::error::Error {
        broken(&self.path, format!("version {} is damaged: {error}", self.version))
    }

    /// Everything that it consists of.
    pub(crate) fn manifest(&self) -> Result<Arc<Manifest>> {
        match self.parts()? {
            Parts::Whole(manifest) => Ok(manifest),
            Parts::Listed(version) => {
                let facts = version.all_facts().map_err(|error| of_history(&self.path, error))?;
                let manifest = Manifest::from_facts(self.version, &facts);
                manifest.map(Arc::new).map_err(|error| self.damaged(&error))
            }
        }
    }

    /// All sections of its logs; `None` where nobody knows but the logs.
    pub(crate) fn all_sections(&self) -> Result<Option<Vec<Section>>> {
        self.sections(0..u64::MAX, 0..u64::MAX)
    }

    /// The sections of logs that may touch these records of these variables, those that lie under others first; `None` where
    /// nobody knows but the logs.
    pub(super) fn sections(
        &self,
        vars: Range<u64>,
        records: Range<u64>,
    ) -> Result<Option<Vec<Section>>> {
        let Parts::Listed(version) = self.parts()? else { return Ok(None) };
        let (mut all, mut odd) = (Vec::new(), false);
        let found =
            version.data(ENTRIES, records, vars, |item: &Item| match Section::of_item(item) {
                Some(section) => all.push(section),
                None => odd = true,
            });
        found.map_err(|error| of_history(&self.path, error))?;
        match odd {
            true => {
                let why = "it has a section of a log that makes no sense".to_string();
                Err(self.damaged(&HistoryError::Odd(why)))
            }
            false => Ok(Some(all)),
        }
    }

    /// A session of it, without the lengths of its logs.
    pub(super) fn session(&self, identity: u64) -> Result<Arc<Session>> {
        let mut known = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(session) = known.get(&identity) {
            return Ok(session.clone());
        }
        let session = Arc::new(self.read_session(identity)?);
        known.insert(identity, session.clone());
        Ok(session)
    }

    fn read_session(&self, identity: u64) -> Result<Session> {
        let lacking = || self.lacking(identity);
        match self.parts()? {
            Parts::Whole(manifest) => {
                let found = manifest.sessions.iter().find(|session| session.identity == identity);
                found.cloned().ok_or_else(lacking)
            }
            Parts::Listed(version) => {
                let name = identity.to_be_bytes();
                let value = version.fact(SESSIONS, &name);
                let value = value.map_err(|error| of_history(&self.path, error))?;
                let session = value.map(|value| Item::fact(SESSIONS, &name, Some(value)));
                session.as_ref().and_then(Session::of_fact).ok_or_else(lacking)
            }
        }
    }

    /// A session of it, with the lengths of its logs, and which version brought what.
    pub(super) fn session_with_cuts(&self, identity: u64) -> Result<Session> {
        let manifest = self.manifest()?;
        let found = manifest.sessions.iter().find(|session| session.identity == identity);
        found.cloned().ok_or_else(|| self.lacking(identity))
    }

    fn lacking(&self, identity: u64) -> crate::error::Error {
        let why = format!("its session {identity:016x} is not there, or makes no sense");
        self.damaged(&HistoryError::Odd(why))
    }
}

/// The header of a version in a history, with its records.
pub(super) fn header_in(
    version: &Version,
) -> esker_history::Result<std::result::Result<Vec<u8>, HistoryError>> {
    let (definitions, records) = (version.fact(DEFINITIONS, b"")?, version.fact(RECORDS, b"")?);
    Ok(header_of(definitions.as_deref(), records.as_deref()))
}
