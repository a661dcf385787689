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
    clear_journal(&base.store, &base.path)?;
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
    file.sync()?;
    let journal = HeaderJournal { old, new };
    let written = write_journal(base, &journal).and_then(|()| {
        file.write_at(0, &journal.new)?;
        Ok(file.sync()?)
    });
    match written {
        // A journal that stays says that the header is the new one, and is forgotten later.
        Ok(()) => drop(remove_journal(base)),
        // If this fails as well, the journal stays and whoever opens the dataset next
        // finishes what we could not. The error that counts is the first.
        Err(_) => drop(restore(base, file, &journal)),
    }
    written
}

/// Writes the header from before a redefinition.
fn restore(base: &Base, file: &dyn File, journal: &HeaderJournal) -> Result<()> {
    file.write_at(0, &journal.old)?;
    file.sync()?;
    remove_journal(base)
}

/// Takes back what a failed `enddef` could not take back itself.
fn undo_failed_attempt(base: &Base, before: &Before) -> Result<()> {
    let Some((journal, state)) = base.journal(&*before.file)? else { return Ok(()) };
    let is_new = journal.state(&before.header.encode()) == HeaderState::New;
    match state {
        HeaderState::New if is_new => remove_journal(base),
        HeaderState::Foreign => Err(base.stale_journal()),
        _ => restore(base, &*before.file, &journal),
    }
}

/// Finishes a redefinition of the file at `path` that was interrupted, if there is one, so that
/// nothing of it is left when another file takes the name.
pub fn clear_journal(store: &Arc<dyn Store>, path: &Path) -> Result<()> {
    let name = journal_path(path);
    if !store.exists(&name)? {
        return Ok(());
    }
    // A file that somebody removed has nothing to finish.
    if store.exists(path)? {
        let file = store.open(path, Access::ReadWrite)?;
        if let Some((journal, HeaderState::Old | HeaderState::Torn)) =
            read_journal(&**store, path, &*file)?
        {
            write_new_header(&*file, &journal)?;
        }
    }
    store.remove(&name)?;
    Ok(store.sync_names(&name)?)
}

fn write_journal(base: &Base, journal: &HeaderJournal) -> Result<()> {
    let name = base.journal_path();
    let file = base.store.create(&name, CreateMode::Truncate)?;
    file.write_at(0, &journal.encode())?;
    file.sync()?;
    Ok(base.store.sync_names(&name)?)
}

fn remove_journal(base: &Base) -> Result<()> {
    let name = base.journal_path();
    base.store.remove(&name)?;
    Ok(base.store.sync_names(&name)?)
}

/// Finishes a redefinition that was interrupted: writes the new header, but leaves the
/// number of records as it is.
pub(crate) fn finish(base: &Base, file: &dyn File, journal: &HeaderJournal) -> Result<()> {
    write_new_header(file, journal)?;
    remove_journal(base)
}

fn write_new_header(file: &dyn File, journal: &HeaderJournal) -> Result<()> {
    let records = journal.numrecs_field();
    file.write_at(0, &journal.new[..records.start])?;
    file.write_at(records.end as u64, &journal.new[records.end..])?;
    Ok(file.sync()?)
}

/// Removes a journal that has nothing more to say.
pub(crate) fn forget(base: &Base) -> Result<()> {
    remove_journal(base)
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
