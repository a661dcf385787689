//! Replacing a header in place, so that a dying process leaves the old one, the new one, or a
//! mixture that the next opening for writing finishes (`esker_format::HeaderJournal`).

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use esker_format::{HeaderJournal, HeaderState};
use esker_store::{Access, Draft, File, Store};

use crate::error::Result;
use crate::young::Survives;

/// The name of the journal of a redefinition of the file at `path`.
pub fn journal_path(path: &Path) -> PathBuf {
    let mut name = OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(".esker-redef");
    path.with_file_name(name)
}

/// The journal beside the file at `path`, if there is a whole one, and which of its headers
/// the file has. For tools that inspect; opening a dataset does this by itself.
pub fn read_journal(
    store: &dyn Store,
    path: &Path,
    file: &dyn File,
) -> Result<Option<(HeaderJournal, HeaderState)>> {
    let name = journal_path(path);
    if !store.exists(&name)? {
        return Ok(None);
    }
    // It is found by a name that anybody can make, and decides what the header is.
    let journal = store.open_trusted(&name, path)?;
    // It holds two headers of this file, so whatever is far longer is none.
    if journal.len()? > file.len()?.saturating_mul(2).saturating_add(MOST_JOURNAL) {
        return Ok(None);
    }
    let bytes = read_all(&*journal)?;
    let Some(journal) = HeaderJournal::decode(&bytes) else { return Ok(None) };
    let mut found = vec![0; journal.old.len().max(journal.new.len())];
    let n = file.read_at(0, &mut found)?;
    found.truncate(n);
    let state = journal.state(&found);
    Ok(Some((journal, state)))
}

/// A journal of this length is read even beside a file that was cut to nothing.
const MOST_JOURNAL: u64 = 16 << 20;

fn read_all(file: &dyn File) -> Result<Vec<u8>> {
    let len = usize::try_from(file.len()?).unwrap_or(0);
    let mut bytes = vec![0; len];
    let n = file.read_at(0, &mut bytes)?;
    bytes.truncate(n);
    Ok(bytes)
}

/// Writes a header over another of the same file, under a journal. The data stay where they
/// are, and the number of records is taken from `new` at once. After an error the old header
/// is there again, if that could be written. Where a loss of power must be survived, it waits for the disk.
pub fn replace_header(
    store: &Arc<dyn Store>,
    path: &Path,
    file: &dyn File,
    old: Vec<u8>,
    new: &[u8],
    survives: Survives,
) -> Result<()> {
    let waits = survives == Survives::PowerLoss;
    if waits {
        file.sync()?;
    }
    let journal = HeaderJournal { old, new: new.to_vec() };
    let written = write_journal(store, path, &journal, waits).and_then(|()| {
        file.write_at(0, new)?;
        if waits {
            file.sync()?;
        }
        Ok(())
    });
    match written {
        Ok(()) if waits => forget_journal(&**store, path),
        // With a second try, as there.
        Ok(()) => {
            drop(store.remove(&journal_path(path)).or_else(|_| store.remove(&journal_path(path))))
        }
        // If this fails as well, the journal stays and whoever opens the dataset next
        // finishes what we could not. The error that counts is the first.
        Err(_) => drop(restore_header(&**store, path, file, &journal)),
    }
    written
}

fn write_journal(
    store: &Arc<dyn Store>,
    path: &Path,
    journal: &HeaderJournal,
    waits: bool,
) -> Result<()> {
    let name = journal_path(path);
    // It has two headers of the file, so whoever may read that may read this. Under a name of its own until it
    // is whole: what has this name may be a link that somebody else has put there.
    let draft = Draft::begin_like(store, &name, Some(path))?;
    if let Some(file) = draft.file() {
        file.write_at(0, &journal.encode())?;
        if waits {
            file.sync()?;
        }
    }
    draft.take_name()?;
    if waits {
        store.sync_names(&name)?;
    }
    Ok(())
}

/// Removes the journal of a header that is written, with a second try. One that stayed would be foreign to the
/// file as soon as a number in the header changes, and nobody could redefine it any more.
fn forget_journal(store: &dyn Store, path: &Path) {
    if remove_journal(store, path).is_err() {
        drop(store.remove(&journal_path(path)));
    }
}

/// Removes the journal of the file at `path`, when it has nothing more to say.
pub fn remove_journal(store: &dyn Store, path: &Path) -> Result<()> {
    let name = journal_path(path);
    store.remove(&name)?;
    Ok(store.sync_names(&name)?)
}

/// Writes the header from before a redefinition, and removes the journal.
pub(crate) fn restore_header(
    store: &dyn Store,
    path: &Path,
    file: &dyn File,
    journal: &HeaderJournal,
) -> Result<()> {
    file.write_at(0, &journal.old)?;
    file.sync()?;
    remove_journal(store, path)
}

/// Finishes a redefinition that was interrupted: writes the new header, but leaves the
/// number of records as it is, and removes the journal.
pub fn finish_redefinition(
    store: &dyn Store,
    path: &Path,
    file: &dyn File,
    journal: &HeaderJournal,
) -> Result<()> {
    let records = journal.numrecs_field();
    let new = &journal.new;
    file.write_at(0, new.get(..records.start).unwrap_or_default())?;
    file.write_at(records.end as u64, new.get(records.end..).unwrap_or_default())?;
    file.sync()?;
    remove_journal(store, path)
}

/// Finishes a redefinition of the file at `path` that was interrupted, if there is one, so that
/// nothing of it is left when another file takes the name.
pub fn clear_journal(store: &dyn Store, path: &Path) -> Result<()> {
    if !store.exists(&journal_path(path))? {
        return Ok(());
    }
    // A file that somebody removed has nothing to finish.
    if store.exists(path)? {
        let file = store.open(path, Access::ReadWrite)?;
        if let Some((journal, HeaderState::Old | HeaderState::Torn)) =
            read_journal(store, path, &*file)?
        {
            return finish_redefinition(store, path, &*file, &journal);
        }
    }
    remove_journal(store, path)
}
