//! What a container is made of.

use std::path::Path;

use esker_format::Header;
use esker_store::Store;

use crate::container::{self, Found, Tag};
use crate::error::Result;

/// A session of a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionFacts {
    /// What the names of its files begin with.
    pub stem: String,
    /// Ranks that wrote.
    pub ranks: usize,
    /// Pairs of files that they wrote.
    pub files: usize,
    /// Bytes of payload.
    pub data: u64,
    /// Bytes of metadata.
    pub metadata: u64,
}

/// What a version of a container is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContainerFacts {
    /// The version.
    pub version: u64,
    /// All versions, newest first.
    pub versions: Vec<u64>,
    /// The names that versions have.
    pub tags: Vec<Tag>,
    /// Its sessions, oldest first.
    pub sessions: Vec<SessionFacts>,
    /// What a reader has to know: newer versions that cannot be read.
    pub notes: Vec<String>,
}

impl ContainerFacts {
    /// Bytes of payload.
    pub fn data(&self) -> u64 {
        self.sessions.iter().map(|session| session.data).fold(0, u64::saturating_add)
    }

    /// Bytes of metadata.
    pub fn metadata(&self) -> u64 {
        self.sessions.iter().map(|session| session.metadata).fold(0, u64::saturating_add)
    }
}

/// What a version (the newest, if none is named) of the container at `path` is made of; `None`
/// if there is none.
pub fn container_facts(
    store: &dyn Store,
    path: &Path,
    version: Option<u64>,
) -> Result<Option<ContainerFacts>> {
    if !container::is_container(store, path)? {
        return Ok(None);
    }
    let path = &store.resolve(path)?;
    let store = &store.enclosed(path)?;
    let Found { edition, notes, .. } = container::find(store, path, version)?;
    let manifest = edition.manifest()?;
    let sessions = manifest.sessions.iter().map(|session| {
        let mut files: Vec<u32> = session.logs.iter().map(|part| part.file).collect();
        files.sort_unstable();
        files.dedup();
        SessionFacts {
            stem: session.stem.clone(),
            ranks: session.logs.len(),
            files: files.len(),
            data: session.logs.iter().map(|part| part.data_len).fold(0, u64::saturating_add),
            metadata: session.logs.iter().map(|part| part.meta_len).fold(0, u64::saturating_add),
        }
    });
    Ok(Some(ContainerFacts {
        version: manifest.version,
        versions: container::Shelf::open(store, path)?.listed()?,
        tags: container::tags_in(store, path)?,
        sessions: sessions.collect(),
        notes,
    }))
}

/// The header of a version (the newest, if none is named): what the classic file would have.
pub fn container_header(store: &dyn Store, path: &Path, version: Option<u64>) -> Result<Header> {
    let path = &store.resolve(path)?;
    let found = container::find(&store.enclosed(path)?, path, version)?;
    super::header_of(path, &found.header)
}
