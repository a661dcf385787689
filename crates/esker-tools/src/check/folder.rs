//! The folder of a dataset whose chunks are in files of their own, which is mended as a whole.

use std::io;
use std::path::Path;

use esker::{Error, Header};
use esker_format::chunked::FILES;
use esker_format::{Owner, inside};
use esker_store::{Access, CreateMode, File, Store, StoreError};

use super::BLOCK;

/// The names of the files beside the classic one that its header speaks of; none if it speaks of
/// none.
pub(super) fn files_beside(
    store: &dyn Store,
    classic: &Path,
    header: &[u8],
) -> esker::Result<Option<Vec<String>>> {
    let Ok(header) = Header::decode(header, u64::MAX) else { return Ok(None) };
    let stem = header.schema.attr(Owner::Global, FILES).and_then(|values| values.text());
    let (Some(stem), Some(folder)) = (stem, classic.parent()) else { return Ok(None) };
    if !inside::is_chunk_stem(&stem) {
        return Ok(None);
    }
    let (tables, chunks) = (format!("tables.{stem}"), format!("chunks.{stem}."));
    let mut names = store.names_in(folder)?;
    names.retain(|name| *name == tables || name.starts_with(&chunks));
    Ok(Some(names))
}

/// Makes the folder `to` with copies of these files; `mend` makes the classic file in it, last, so
/// that a folder without it is one that is not complete.
pub(super) fn copy(
    store: &dyn Store,
    classic: &Path,
    to: &Path,
    names: &[String],
    mend: impl FnOnce(&Path) -> esker::Result<()>,
) -> esker::Result<()> {
    if store.exists(to)? || store.is_dir(to)? {
        let error = io::Error::from(io::ErrorKind::AlreadyExists);
        return Err(StoreError::new(to, "create", error).into());
    }
    store.create_dir(to)?;
    // What a link in the folder leads to is not copied.
    let inside = store.enclosed(classic.parent().unwrap_or(Path::new("")))?;
    let made = names
        .iter()
        .try_for_each(|name| {
            let from = inside.open(&classic.with_file_name(name), Access::Read)?;
            let new = store.create(&to.join(name), CreateMode::New)?;
            copy_bytes(&*from, &*new)
        })
        .and_then(|()| mend(&to.join(classic.file_name().unwrap_or_default())));
    if made.is_err() {
        // The error that counts is the one that we have.
        for name in names {
            let _ = store.remove(&to.join(name));
        }
        let _ = store.remove_dir(to);
    }
    made
}

fn copy_bytes(from: &dyn File, to: &dyn File) -> Result<(), Error> {
    let mut block = vec![0; BLOCK.min(from.len()?.max(1)) as usize];
    let mut at = 0;
    loop {
        let n = from.read_at(at, &mut block)?;
        if n == 0 {
            return Ok(to.sync()?);
        }
        to.write_at(at, &block[..n])?;
        at += n as u64;
    }
}
