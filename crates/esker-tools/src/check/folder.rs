//! The folder of a dataset whose chunks are in files of their own, which is mended as a whole.

use std::path::Path;
use std::sync::Arc;

use esker::{Error, Header};
use esker_format::chunked::FILES;
use esker_format::{Owner, inside};
use esker_store::{Access, Draft, File, Store};

use super::BLOCK;
use crate::whole::require_absent;

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

/// Makes the folder `to` with copies of these files; `mend` makes the classic file in it.
pub(super) fn copy(
    store: &Arc<dyn Store>,
    classic: &Path,
    to: &Path,
    names: &[String],
    mend: impl FnOnce(&Path) -> esker::Result<()>,
) -> esker::Result<()> {
    require_absent(&**store, to)?;
    let draft = Draft::folder(store, to)?;
    // What a link in the folder leads to is not copied.
    let inside = store.enclosed(classic.parent().unwrap_or(Path::new("")))?;
    for name in names {
        let path = classic.with_file_name(name);
        let from = inside.open(&path, Access::Read)?;
        // Who may read the file may read its copy.
        let new = store.create_like(&draft.path().join(name), &path)?;
        copy_bytes(&*from, &*new)?;
    }
    mend(&draft.path().join(classic.file_name().unwrap_or_default()))?;
    Ok(draft.publish()?)
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
