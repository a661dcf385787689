//! How a header reaches the file so that a dying process leaves the old one or the new one.
//!
//! - A new dataset grows beside its name and is renamed to it.
//! - A changed header that fits, with no data in its way, is written in place under a journal.
//! - When data must move, a new file is built beside the old one and renamed over it: the old
//!   one is whole until the new one is.

use std::path::Path;
use std::sync::Arc;

use esker_format::{Header, HeaderJournal, HeaderState, values};
use esker_store::{Access, CreateMode, File, Store};

use crate::base::{Base, journal_path, read_journal};
use crate::define::Before;
use crate::error::Result;
use crate::fill::fill_range;
use crate::moving;

/// A header that is in the file.
pub(crate) struct Committed {
    pub(crate) file: Arc<dyn File>,
    /// Whether the file got its name just now, which a loss of power may undo.
    pub(crate) renamed: bool,
}

/// Commits a new dataset, in place of one that has its name.
pub(crate) fn create(base: &Base, header: &Header, fills: &[bool]) -> Result<Committed> {
    let name = base.new_path();
    let file = base.store.create(&name, CreateMode::Truncate)?;
    file.write_at(0, &header.encode())?;
    file.set_len(header.data_end(0))?;
    fill_new_fixed(&*file, header, 0, fills)?;
    if base.store.exists(&base.path)? {
        // The name may reach the disk before the contents, and the old dataset would be lost.
        file.sync()?;
    }
    clear_journal(&*base.store, &base.path)?;
    base.store.rename(&name, &base.path)?;
    Ok(Committed { file, renamed: true })
}

/// Commits a redefinition.
pub(crate) fn update(
    base: &Base,
    before: &Before,
    header: &Header,
    fills: &[bool],
) -> Result<Committed> {
    undo_failed_attempt(base, before)?;
    if stays(before, header) {
        in_place(base, before, header, fills)?;
        Ok(Committed { file: before.file.clone(), renamed: false })
    } else {
        let file = rebuild(base, before, header, fills)?;
        Ok(Committed { file, renamed: true })
    }
}

/// Whether all data that exist stay where they are.
fn stays(before: &Before, header: &Header) -> bool {
    let (old, new) = (&before.header, header);
    let records_stay = before.records == 0 || old.layout.record_size == new.layout.record_size;
    records_stay
        && old.vars().zip(&new.layout.places).all(|((_, var, old_place), new_place)| {
            let empty = before.records == 0 && old.schema.is_record(var);
            empty || old_place.begin == new_place.begin
        })
}

fn in_place(base: &Base, before: &Before, header: &Header, fills: &[bool]) -> Result<()> {
    let file = &*before.file;
    // Where the new variables are there was nothing, for a reader of the old header.
    let end = header.data_end(before.records);
    if file.len()? < end {
        file.set_len(end)?;
    }
    fill_new_fixed(file, header, before.header.layout.places.len(), fills)?;
    let mut old = vec![0; before.header.layout.header_len as usize];
    let n = file.read_at(0, &mut old)?;
    old.truncate(n);
    let new = header.encode();
    if old == new {
        return Ok(());
    }
    replace_header(&*base.store, &base.path, file, old, &new)
}

/// Writes a header over another of the same file, under a journal, so that a dying process
/// leaves the one or the other, or a mixture that the next opening for writing finishes. The
/// data stay where they are, and the number of records is taken from `new` at once. After an
/// error the file has the old header, unless writing that failed as well.
pub fn replace_header(
    store: &dyn Store,
    path: &Path,
    file: &dyn File,
    old: Vec<u8>,
    new: &[u8],
) -> Result<()> {
    file.sync()?;
    let journal = HeaderJournal { old, new: new.to_vec() };
    let written = write_journal(store, path, &journal).and_then(|()| {
        file.write_at(0, &journal.new)?;
        Ok(file.sync()?)
    });
    match written {
        // A journal that stays says that the header is the new one, and is forgotten later.
        Ok(()) => drop(remove_journal(store, path)),
        // If this fails as well, the journal stays and whoever opens the dataset next
        // finishes what we could not. The error that counts is the first.
        Err(_) => drop(restore(store, path, file, &journal)),
    }
    written
}

/// Writes the header from before a redefinition.
fn restore(store: &dyn Store, path: &Path, file: &dyn File, journal: &HeaderJournal) -> Result<()> {
    file.write_at(0, &journal.old)?;
    file.sync()?;
    remove_journal(store, path)
}

/// Takes back what a failed `enddef` could not take back itself.
fn undo_failed_attempt(base: &Base, before: &Before) -> Result<()> {
    let Some((journal, state)) = base.journal(&*before.file)? else { return Ok(()) };
    let is_new = journal.state(&before.header.encode()) == HeaderState::New;
    match state {
        HeaderState::New if is_new => remove_journal(&*base.store, &base.path),
        HeaderState::Foreign => Err(base.stale_journal()),
        _ => restore(&*base.store, &base.path, &*before.file, &journal),
    }
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

fn write_journal(store: &dyn Store, path: &Path, journal: &HeaderJournal) -> Result<()> {
    let name = journal_path(path);
    let file = store.create(&name, CreateMode::Truncate)?;
    file.write_at(0, &journal.encode())?;
    file.sync()?;
    Ok(store.sync_names(&name)?)
}

/// Removes the journal of the file at `path`, when it has nothing more to say.
pub fn remove_journal(store: &dyn Store, path: &Path) -> Result<()> {
    let name = journal_path(path);
    store.remove(&name)?;
    Ok(store.sync_names(&name)?)
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

fn rebuild(base: &Base, before: &Before, header: &Header, fills: &[bool]) -> Result<Arc<dyn File>> {
    let name = base.new_path();
    let file = base.store.create(&name, CreateMode::Truncate)?;
    let built = build(base, before, header, fills, &*file)
        .and_then(|()| Ok(base.store.rename(&name, &base.path)?));
    if let Err(error) = built {
        // The old file is untouched. The error that counts is the one that we have.
        let _ = base.store.remove(&name);
        return Err(error);
    }
    // From here on there is only the new file, so nothing may fail any more. A handle that is
    // opened now has the right name in its errors, but the one we have will do.
    Ok(base.store.open(&base.path, Access::ReadWrite).unwrap_or(file))
}

fn build(
    base: &Base,
    before: &Before,
    header: &Header,
    fills: &[bool],
    file: &dyn File,
) -> Result<()> {
    base.store.copy_permissions(&base.path, &base.new_path())?;
    file.write_at(0, &header.encode())?;
    file.set_len(header.data_end(before.records))?;
    moving::copy_data(before, header, fills, file)?;
    fill_new_fixed(file, header, before.header.layout.places.len(), fills)?;
    Ok(file.sync()?)
}

/// Writes fill values into the fixed-size variables from number `first` on.
fn fill_new_fixed(file: &dyn File, header: &Header, first: usize, fills: &[bool]) -> Result<()> {
    for (id, var, place) in header.vars().skip(first) {
        let wanted = fills.get(id.0).copied().unwrap_or(false);
        if wanted && !header.schema.is_record(var) {
            fill_range(file, place.begin, place.vsize, &values::fill_bytes(var))?;
        }
    }
    Ok(())
}
