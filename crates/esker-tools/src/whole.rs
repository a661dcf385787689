//! Outputs that are seen whole or not at all: they grow as drafts, and take their names when everything is
//! in them.
//!
//! [`begin`] gives a [`Draft`]; the dataset is created at its path, written and closed; [`name`] gives it its name. A
//! draft that is dropped is gone, and what had the name is what it was.

use std::io;
use std::path::Path;
use std::sync::Arc;

use esker::{Error, Hints, Layout};
use esker_store::{Draft, Store, StoreError};

/// Begins the output, a file or, where a dataset of these hints (and the environment's) is one, a folder.
/// A folder that is no such dataset is not replaced.
pub fn begin(
    store: &Arc<dyn Store>,
    output: &Path,
    layout: Layout,
    hints: &Hints,
) -> esker::Result<Draft> {
    let is_container = layout == Layout::Log;
    if !is_container && !hints.clone().with_environment().makes_folder() {
        return Ok(Draft::whole(store, output)?);
    }
    let is_dataset = match is_container {
        true => esker::is_container(&**store, output)?,
        false => store.exists(&output.join("data.nc"))?,
    };
    if store.is_dir(output)? && !is_dataset && !store.names_in(output)?.is_empty() {
        let why = "a folder that is no dataset has its name, and is not replaced by one";
        return Err(Error::Container { path: output.to_path_buf(), why: why.to_string() });
    }
    Ok(Draft::folder(store, output)?)
}

/// Gives a dataset that is complete and closed its name: in place of one that has it, or if there must
/// not be one, [`io::ErrorKind::AlreadyExists`]. With `sync` the name survives a loss of power.
pub fn name(
    store: &Arc<dyn Store>,
    draft: Draft,
    overwrite: bool,
    sync: bool,
) -> esker::Result<()> {
    let output = draft.target().to_path_buf();
    match overwrite {
        true => {
            esker::require_unwritten(&**store, &output)?;
            esker::clear_journal(&**store, &output)?;
            draft.take_name()?;
        }
        false => draft.publish()?,
    }
    if sync {
        store.sync_names(&output)?;
    }
    Ok(())
}

/// Fails if something has the name of an output that is not to replace anything.
pub fn require_absent(store: &dyn Store, output: &Path) -> Result<(), StoreError> {
    match store.exists(output)? || store.is_dir(output)? {
        true => Err(StoreError::new(output, "create", io::ErrorKind::AlreadyExists.into())),
        false => Ok(()),
    }
}
