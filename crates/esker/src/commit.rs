//! How a header reaches the file so that a dying process leaves the old one or the new one.
//!
//! - A new dataset grows beside its name and is renamed to it.
//! - A changed header that fits, with no data in its way, is written in place under a journal.
//! - When data must move, a new file is built beside the old one and renamed over it: the old
//!   one is whole until the new one is.

use std::path::Path;
use std::sync::Arc;

use esker_format::{Alignment, DataLayout, Header, HeaderState, values};
use esker_store::{Access, CreateMode, File};

use crate::base::Base;
use crate::container::Container;
use crate::decomposed::{Groups, NewMap, Spread, write_maps};
use crate::define::Before;
use crate::error::Result;
use crate::fill::fill_range;
use crate::journal;
use crate::moving;

/// A header that is in the file.
pub(crate) struct Committed {
    pub(crate) file: Arc<dyn File>,
    /// Whether the file got its name just now, which a loss of power may undo.
    pub(crate) renamed: bool,
    /// What the file is a view of, if it is one.
    pub(crate) container: Option<Box<Container>>,
    /// The file, if variables are in sub-files.
    pub(crate) spread: Option<Arc<Spread>>,
}

/// Bytes that the header of a dataset with sub-files may grow by: it is never placed again.
const AMENDS: u64 = 8 << 10;

/// Commits a new dataset, in place of one that has its name. Collective.
pub(crate) fn create(
    base: &Base,
    header: &Header,
    fills: &[bool],
    maps: &[NewMap],
    groups: Option<&Groups>,
) -> Result<Committed> {
    let name = base.new_path();
    let disk = match groups {
        None => None,
        Some(groups) => {
            let placed = groups.on_disk(&header.schema).and_then(|schema| {
                let header_room = base.align.header_room.max(AMENDS);
                let layout = DataLayout::place(&schema, &Alignment { header_room, ..base.align })?;
                Ok(Header { schema, numrecs: header.numrecs, layout })
            });
            Some((groups, placed.map_err(|e| base.schema_error(e))?))
        }
    };
    let stored = disk.as_ref().map_or(header, |(_, disk)| disk);
    let created = base.by_root(|| {
        let file = base.store.create(&name, CreateMode::Truncate)?;
        file.write_at(0, &stored.encode())?;
        file.set_len(base.end_of(stored, 0))?;
        Ok(file)
    })?;
    let mut file = base.agree(opened(base, &name, created))?;
    let spread = match disk {
        None => None,
        Some((groups, disk)) => {
            // Before the file that names them.
            let spread = Spread::new(base, file.clone(), (header, disk), groups.clone());
            base.agree(spread.make(base))?;
            let spread = Arc::new(spread);
            file = spread.clone();
            Some(spread)
        }
    };
    let filled = fill_new_fixed(&*file, header, 0, fills, base)
        .and_then(|()| write_maps(&*file, header, maps));
    base.agree(filled)?;
    if let Some(spread) = &spread {
        base.agree(spread.name(base))?;
        spread.are_named();
    }
    base.by_root(|| {
        if base.store.exists(&base.path)? {
            // The name may reach the disk before the contents, and the old dataset would be lost.
            file.sync()?;
        }
        journal::clear_journal(&*base.store, &base.path)?;
        Ok(base.store.rename(&name, &base.path)?)
    })?;
    Ok(Committed { file, renamed: true, container: None, spread })
}

/// The file that rank 0 has made, on every rank. An open file keeps being the same one when it
/// is renamed.
fn opened(base: &Base, name: &Path, mine: Option<Arc<dyn File>>) -> Result<Arc<dyn File>> {
    match mine {
        Some(file) => Ok(file),
        None => Ok(base.store.open(name, Access::ReadWrite)?),
    }
}

/// Commits a redefinition. Collective.
pub(crate) fn update(
    base: &Base,
    before: &Before,
    header: &Header,
    fills: &[bool],
    maps: &[NewMap],
) -> Result<Committed> {
    base.by_root(|| undo_failed_attempt(base, before))?;
    if stays(before, header) {
        in_place(base, before, header, fills, maps)?;
        Ok(Committed { file: before.file.clone(), renamed: false, container: None, spread: None })
    } else {
        let file = rebuild(base, before, header, fills, maps)?;
        Ok(Committed { file, renamed: true, container: None, spread: None })
    }
}

/// Takes back what a failed `enddef` could not take back itself.
fn undo_failed_attempt(base: &Base, before: &Before) -> Result<()> {
    let Some((journal, state)) = base.journal(&*before.file)? else { return Ok(()) };
    let is_new = journal.state(&before.header.encode()) == HeaderState::New;
    let (store, path) = (&*base.store, &base.path);
    match state {
        HeaderState::New if is_new => journal::remove_journal(store, path),
        HeaderState::Foreign => Err(base.stale_journal()),
        _ => journal::restore_header(store, path, &*before.file, &journal),
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

fn in_place(
    base: &Base,
    before: &Before,
    header: &Header,
    fills: &[bool],
    maps: &[NewMap],
) -> Result<()> {
    let file = &*before.file;
    // Where the new variables are there was nothing, for a reader of the old header.
    base.by_root(|| {
        let end = base.end_of(header, before.records);
        if file.len()? < end {
            file.set_len(end)?;
        }
        Ok(())
    })?;
    let first = before.header.layout.places.len();
    let filled = fill_new_fixed(file, header, first, fills, base)
        .and_then(|()| write_maps(file, header, maps));
    base.agree(filled.and_then(|()| Ok(file.sync()?)))?;
    base.by_root(|| write_header(base, before, header))?;
    Ok(())
}

/// Replaces the header in place, under a journal.
fn write_header(base: &Base, before: &Before, header: &Header) -> Result<()> {
    let file = &*before.file;
    let mut old = vec![0; before.header.layout.header_len as usize];
    let n = file.read_at(0, &mut old)?;
    old.truncate(n);
    let new = header.encode();
    if old == new {
        return Ok(());
    }
    journal::replace_header(&*base.store, &base.path, file, old, &new)
}

fn rebuild(
    base: &Base,
    before: &Before,
    header: &Header,
    fills: &[bool],
    maps: &[NewMap],
) -> Result<Arc<dyn File>> {
    let name = base.new_path();
    let built = build(base, before, header, fills, maps);
    let renamed = built.and_then(|file| {
        base.by_root(|| Ok(base.store.rename(&name, &base.path)?))?;
        Ok(file)
    });
    match renamed {
        // From here on there is only the new file, so nothing may fail any more. A handle that
        // is opened now has the right name in its errors, but the one we have will do.
        Ok(file) => Ok(base.store.open(&base.path, Access::ReadWrite).unwrap_or(file)),
        Err(error) => {
            // The old file is untouched. The error that counts is the one that we have.
            if base.is_root() {
                let _ = base.store.remove(&name);
            }
            Err(error)
        }
    }
}

fn build(
    base: &Base,
    before: &Before,
    header: &Header,
    fills: &[bool],
    maps: &[NewMap],
) -> Result<Arc<dyn File>> {
    let name = base.new_path();
    let created = base.by_root(|| {
        let file = base.store.create(&name, CreateMode::Truncate)?;
        base.store.copy_permissions(&base.path, &name)?;
        file.write_at(0, &header.encode())?;
        file.set_len(base.end_of(header, before.records))?;
        Ok(file)
    })?;
    let filled = opened(base, &name, created).and_then(|file| {
        moving::copy_data(before, header, fills, &*file, base.share())?;
        let first = before.header.layout.places.len();
        fill_new_fixed(&*file, header, first, fills, base)?;
        write_maps(&*file, header, maps)?;
        file.sync()?;
        Ok(file)
    });
    base.agree(filled)
}

/// Writes this rank's share of the fill values of the fixed-size variables from number `first`
/// on.
fn fill_new_fixed(
    file: &dyn File,
    header: &Header,
    first: usize,
    fills: &[bool],
    base: &Base,
) -> Result<()> {
    let share = base.share();
    for (id, var, place) in header.vars().skip(first) {
        let wanted = fills.get(id.0).copied().unwrap_or(false);
        if wanted && !header.schema.is_record(var) {
            // PnetCDF leaves zeros in the padding, netCDF fills it.
            let mine = share.of(if base.align.never_back { place.bytes } else { place.vsize });
            let len = mine.end - mine.start;
            fill_range(file, place.begin + mine.start, len, &values::fill_bytes(var))?;
        }
    }
    Ok(())
}
