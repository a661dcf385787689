//! Outputs that are seen whole or not at all: they grow as drafts, and take their names when everything is
//! in them.
//!
//! [`begin`] gives a [`Draft`]; the dataset is created at its path, written and closed; [`name`] gives it its name. A
//! draft that is dropped is gone, and what had the name is what it was. [`together`] does all of it for several ranks.

use std::ffi::OsString;
use std::fmt::{Debug, Display};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use esker::{Communicator, Error, Hints, Layout};
use esker_comm::{CommunicatorExt, Disagreement, Message};
use esker_store::{Access, Draft, Store, StoreError};

/// What several ranks make.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// A file.
    File,
    /// A dataset: a file or, if the environment's hints say so, a folder.
    Dataset,
    /// A folder of files that is no dataset. It never replaces anything.
    Folder,
}

/// The output of several ranks.
#[derive(Debug, Clone, Copy)]
pub struct Output<'o> {
    /// Where it will be.
    pub path: &'o Path,
    /// What it is.
    pub shape: Shape,
    /// Whether it replaces what has its name.
    pub overwrite: bool,
    /// Whether its name survives a loss of power.
    pub sync: bool,
}

/// Makes an output with all ranks, whole or not at all. `make` is given where it grows, writes and closes it, and is collective; then
/// rank 0 gives it its name. A failure of any rank is one of all, and leaves what had the name as it was. Collective.
pub fn together<T, E>(
    comm: &dyn Communicator,
    store: &Arc<dyn Store>,
    output: &Output<'_>,
    make: impl FnOnce(&Path) -> Result<T, E>,
) -> Result<T, E>
where
    E: From<Error> + Debug + Display,
{
    let begun = match comm.rank() {
        0 => output.begin(store).map(Some),
        _ => Ok(None),
    };
    let draft = agree(comm, begun)?;
    let own = draft
        .as_ref()
        .map(|draft| [&[draft.replaces().into()], draft.path().as_os_str().as_bytes()].concat());
    let told = match (own, comm.size()) {
        (Some(own), 1) => own,
        (own, _) => {
            let told = comm.broadcast(0, Message::from(own.unwrap_or_default()));
            told.map_err(Error::from)?.to_vec()
        }
    };
    let (replaces, path) = told.split_first().ok_or(Error::Garbled)?;
    let path = PathBuf::from(OsString::from_vec(path.to_vec()));
    let made = agree(comm, make(&path))?;
    let synced = match *replaces == 1 {
        // The name may reach the disk before the contents, and what it replaces would be lost.
        true => sync_contents(&**store, &path).map_err(Error::from),
        false => Ok(()),
    };
    agree(comm, synced)?;
    let named = match draft {
        Some(draft) => name(store, draft, output.overwrite, output.sync),
        None => Ok(()),
    };
    agree(comm, named)?;
    Ok(made)
}

impl Output<'_> {
    /// On rank 0.
    fn begin(&self, store: &Arc<dyn Store>) -> esker::Result<Draft> {
        let replaces = self.overwrite && self.shape != Shape::Folder;
        // Told before any work is done.
        match replaces {
            false => require_absent(&**store, self.path)?,
            true => esker::require_unwritten(&**store, self.path)?,
        }
        match self.shape {
            Shape::File => Ok(Draft::whole(store, self.path)?),
            Shape::Dataset => begin(store, self.path, Layout::Classic, &Hints::default()),
            Shape::Folder => Ok(Draft::folder(store, self.path)?),
        }
    }
}

/// Collective: the outcome of all.
fn agree<T, E>(comm: &dyn Communicator, outcome: Result<T, E>) -> Result<T, E>
where
    E: From<Error> + Debug + Display,
{
    comm.agree(outcome).map_err(|disagreement| match disagreement {
        Disagreement::Failed { own: Some(error), .. } => error,
        Disagreement::Failed { rank, message, own: None } => {
            Error::OtherRank { rank, message }.into()
        }
        Disagreement::Comm(error) => Error::from(error).into(),
    })
}

/// Makes a file, or the files of a folder, safe from power loss.
fn sync_contents(store: &dyn Store, path: &Path) -> Result<(), StoreError> {
    if !store.is_dir(path)? {
        return store.open(path, Access::ReadWrite)?.sync();
    }
    for name in store.names_in(path)? {
        sync_contents(store, &path.join(name))?;
    }
    Ok(())
}

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
