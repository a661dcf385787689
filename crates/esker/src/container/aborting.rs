//! Giving up what was not committed, for good: no recovery brings it back.
//!
//! Logs may be long, and belong to many ranks, so that they cannot be cut in one step. A note in the container does it in one: from when it is
//! there, everything is void that its session had not committed. What the logs have beyond is garbage then, and goes if it can: files of a session that
//! has committed nothing are removed, and the note last; of one that has, they are cut where each rank has its own, and the note stays.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use esker_comm::Message;
use esker_format::log::{Aborted, Session};
use esker_store::{Access, Store};

use super::names::MARK;
use super::{Container, data_path, meta_path, read_all};
use crate::base::Base;
use crate::error::{Error, Result};

/// What is to be done with logs whose session is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Logs {
    /// Nobody knows how much of them was committed.
    Stay,
    /// Nothing was.
    Go,
    /// So much was.
    AreCut,
}

/// The note that a session was aborted.
pub(crate) fn note_path(path: &Path, stem: &str) -> PathBuf {
    path.join("segments").join(format!("{stem}.aborted"))
}

/// What is noted of a session that was aborted: how much had been committed, as far as the note can be read. `None` if it was not.
pub(crate) fn noted(store: &dyn Store, path: &Path, session: &Session) -> Result<Option<Aborted>> {
    let note = note_path(path, &session.stem);
    if !store.exists(&note)? {
        return Ok(None);
    }
    let noted = Aborted::decode(&read_all(store, &note)?);
    // One that is not whole was begun, and says of no log that anything was committed.
    let is_own = |noted: &Aborted| session.identity == 0 || noted.identity == session.identity;
    Ok(Some(noted.filter(is_own).unwrap_or_default()))
}

impl Container {
    /// Notes that what this session has not committed is void. Whoever is first does it, rank 0 or any other that knows of its own log only.
    pub(crate) fn void(&self, base: &Base) -> Result<()> {
        let Some(own) = &self.own else { return Ok(()) };
        let ends = match &self.deciding {
            Some(deciding) => deciding.committed(),
            None if base.is_root() => Vec::new(),
            None => vec![(own.committed.meta, own.committed.data)],
        };
        let first = if base.is_root() { 0 } else { base.comm.rank() as u32 };
        let ends = (first..).zip(ends).filter(|(_, (meta, data))| *meta > 0 || *data > 0);
        let ends = ends.map(|(log, (meta, data))| (log, meta, data)).collect();
        let note = Aborted { identity: own.session.identity, ends };
        let path = note_path(&base.path, &own.session.stem);
        let file = match self.store.create_like(&path, &base.path.join(MARK)) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => return Ok(()),
            made => made?,
        };
        file.write_at(0, &note.encode())?;
        // It is for ever, as a version is that was synced.
        file.sync()?;
        Ok(self.store.sync_names(&path)?)
    }

    /// Gives up what was not committed. Nobody may be reading. Collective.
    pub(crate) fn give_up(&mut self, base: &Base) -> Result<()> {
        let Some(own) = &self.own else { return Ok(()) };
        let session = own.session.clone();
        let (_, told) = base.told_by_root(|| {
            self.void(base)?;
            let logs = match &self.deciding {
                None => Logs::Go,
                Some(deciding) if deciding.is_in_doubt() => Logs::Stay,
                Some(deciding) if deciding.knows_session() => Logs::AreCut,
                Some(_) => Logs::Go,
            };
            let ends = self.deciding.iter().flat_map(|deciding| deciding.committed());
            let numbers = std::iter::once(logs as u64).chain(ends.flat_map(|(m, d)| [m, d]));
            Ok(((), Message::from_u64s(&numbers.collect::<Vec<_>>()).to_vec()))
        })?;
        // From here on nothing of it can be read or committed.
        self.own = None;
        let told = Message::from(told).to_u64s();
        let (logs, ends) = told.split_first().ok_or(Error::Garbled)?;
        let part = session.logs.get(base.comm.rank()).ok_or(Error::Garbled)?;
        let files = [
            meta_path(&base.path, &session, part.file),
            data_path(&base.path, &session, part.file),
        ];
        if *logs == Logs::Go as u64 {
            let gone = match part.lane {
                0 => files.iter().try_for_each(|file| Ok(self.store.remove(file)?)),
                _ => Ok(()),
            };
            // A note is needed as long as one of them may be there.
            let gone: Result<()> = base.agree(gone);
            if gone.is_ok() && base.is_root() {
                let note = note_path(&base.path, &session.stem);
                let _ = self.store.sync_names(&note).and_then(|()| self.store.remove(&note));
            }
        } else if *logs == Logs::AreCut as u64 && part.lanes <= 1 {
            let (ends, _) = ends.as_chunks::<2>();
            if let Some(ends) = ends.get(base.comm.rank()) {
                for (file, len) in files.iter().zip(ends) {
                    // What cannot be cut is void all the same.
                    let file = self.store.open(file, Access::ReadWrite);
                    let _ = file.and_then(|file| file.set_len(file.len()?.min(*len)));
                }
            }
        }
        base.by_root(|| self.give_up_number(base))?;
        Ok(())
    }
}
