//! How a header reaches the file so that a dying process leaves the old one or the new one.
//!
//! - A new dataset grows beside its name and is renamed to it.
//! - A changed header that fits, with no data in its way, is written in place under a journal.
//! - When data must move, a new file is built beside the old one and renamed over it: the old
//!   one is whole until the new one is.

use std::path::Path;
use std::sync::Arc;

use esker_format::{Header, HeaderJournal, values};
use esker_store::{Access, CreateMode, File, Store};

use crate::base::{Base, journal_path};
use crate::define::Before;
use crate::error::Result;
use crate::fill::fill_range;
use crate::moving;

/// Commits a dataset that did not exist.
pub(crate) fn create(base: &Base, header: &Header, fills: &[bool]) -> Result<Arc<dyn File>> {
    let name = base.new_path();
    let file = base.store.create(&name, CreateMode::Truncate)?;
    file.write_at(0, &header.encode())?;
    file.set_len(header.data_end(0))?;
    fill_new_fixed(&*file, header, 0, fills)?;
    base.store.rename(&name, &base.path)?;
    Ok(file)
}

/// Commits a redefinition.
pub(crate) fn update(
    base: &Base,
    before: &Before,
    header: &Header,
    fills: &[bool],
) -> Result<Arc<dyn File>> {
    if stays(before, header) {
        in_place(base, before, header, fills)?;
        Ok(before.file.clone())
    } else {
        rebuild(base, before, header, fills)
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
/// data stay where they are, and the number of records is taken from `new` at once.
pub fn replace_header(
    store: &dyn Store,
    path: &Path,
    file: &dyn File,
    old: Vec<u8>,
    new: &[u8],
) -> Result<()> {
    file.sync()?;
    write_journal(store, path, &HeaderJournal { old, new: new.to_vec() })?;
    file.write_at(0, new)?;
    file.sync()?;
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
    let built = build(base, before, header, fills, &*file);
    if let Err(error) = built {
        // The old file is untouched. The error that counts is the one that we have.
        let _ = base.store.remove(&name);
        return Err(error);
    }
    base.store.rename(&name, &base.path)?;
    base.store.sync_names(&base.path)?;
    // The handle was opened by create; a reopened one has the right name in its errors.
    Ok(base.store.open(&base.path, Access::ReadWrite)?)
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
