//! A dataset is removed, whatever it is on disk.

use std::path::{Path, PathBuf};

use esker_format::inside;
use esker_store::{DraftName, Store};

use crate::base::classic_of;
use crate::chunked::is_chunk_file;
use crate::container::{self, is_container};
use crate::decomposed;
use crate::error::{Error, Result};
use crate::journal::journal_path;

/// Removes the dataset of this name: a classic file and its sub-files, a folder of chunks, or a container.
/// What makes it a dataset goes first, so that a removal that was interrupted leaves nothing that could
/// be read as one. A folder in which there is something else is left as it is. Not collective.
///
/// ```
/// # use esker::*;
/// # fn main() -> Result<()> {
/// # let dir = tempfile::tempdir().unwrap();
/// let path = dir.path().join("run");
/// Dataset::create(&path, CreateOptions::new().layout(Layout::Log))?.enddef()?.close()?;
/// esker::remove_dataset(&esker_store::LocalStore, &path)?;
/// assert!(!path.exists());
/// # Ok(()) }
/// ```
pub fn remove_dataset(store: &dyn Store, path: &Path) -> Result<()> {
    if is_container(store, path)? {
        let path = &store.resolve(path)?;
        let (mark, folders) = container::own_names(path);
        return remove_folder(store, path, &mark, &folders, is_of_container);
    }
    let classic = classic_of(store, path)?;
    if classic != path {
        let path = &store.resolve(path)?;
        let mark = path.join(classic.file_name().unwrap_or_default());
        return remove_folder(store, path, &mark, &[], is_of_chunks);
    }
    let resolved = store.resolve(path)?;
    let subfiles = decomposed::named_subfiles(store, &resolved);
    store.remove(path)?;
    let journal = journal_path(&resolved);
    for left in subfiles.into_iter().chain([journal]) {
        if store.exists(&left)? {
            store.remove(&left)?;
        }
    }
    Ok(())
}

/// Whether a container's writers make an entry of this name, in the folder of this name ("" for its own).
fn is_of_container(folder: &str, name: &str) -> bool {
    match folder {
        "versions" | "main" => inside::version(name).is_some() || name.starts_with("draft-"),
        "runs" => esker_history::is_run(name),
        "segments" => {
            let stem = name.split('.').next().unwrap_or("");
            let endings = [".meta", ".data", ".aborted"];
            inside::session(stem).is_some() && endings.iter().any(|ending| name.ends_with(ending))
        }
        _ => name == "promises" || name.starts_with("esker.json") || name.starts_with("promises-"),
    }
}

/// The same of a folder of chunks.
fn is_of_chunks(_: &str, name: &str) -> bool {
    is_chunk_file(name) || DraftName::parse(name).is_some() || name == ".data.nc.esker-redef"
}

/// Removes a folder that has nothing but what `is_own` knows: `mark` first.
fn remove_folder(
    store: &dyn Store,
    path: &Path,
    mark: &Path,
    folders: &[PathBuf],
    is_own: fn(&str, &str) -> bool,
) -> Result<()> {
    // No entry is a link: what one leads to is another's.
    let outer = store;
    let store = &*store.enclosed(path)?;
    let mut files = Vec::new();
    let all = std::iter::once(path).chain(folders.iter().map(PathBuf::as_path));
    for folder in all {
        if !store.is_dir(folder)? {
            continue;
        }
        let short = match folder == path {
            true => "",
            false => folder.file_name().and_then(|name| name.to_str()).unwrap_or(""),
        };
        for name in store.names_in(folder)? {
            let entry = folder.join(&name);
            if entry == mark || folders.contains(&entry) {
                continue;
            }
            if !is_own(short, &name) || store.is_dir(&entry)? {
                let why =
                    format!("it is not removed, because there is something else in it: {name:?}");
                return Err(Error::Container { path: path.to_path_buf(), why });
            }
            files.push(entry);
        }
    }
    store.remove(mark)?;
    for file in files {
        store.remove(&file)?;
    }
    for folder in folders {
        if store.is_dir(folder)? {
            store.remove_dir(folder)?;
        }
    }
    Ok(outer.remove_dir(path)?)
}
