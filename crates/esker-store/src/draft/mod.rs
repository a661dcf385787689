//! A file or folder before it has its name.
//!
//! Whatever takes the place of something else, or must be seen whole or not at all, grows as a
//! [`Draft`]: under a name beside its own that nobody can guess and that is created by nobody else, with the
//! mode, owner, access list and extended attributes of what it replaces from before its first byte. Then
//! it takes its name in one step. A draft that is dropped is removed.

mod leftover;
mod live;
mod name;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use leftover::{Leftover, leftovers, remove_tree};
pub use live::{LiveDraft, remove_live_drafts};
pub use name::{DraftForm, DraftName, draft_path, named_path, random};

use crate::{File, Occupant, Result, Store, StoreError, Stripes};
use live::Kind;

/// How often another name is tried: a random number of 64 bits is free at once.
const ATTEMPTS: usize = 16;

/// A file or folder that has not taken its name.
#[derive(Debug)]
pub struct Draft {
    store: Arc<dyn Store>,
    target: PathBuf,
    path: PathBuf,
    file: Option<Arc<dyn File>>,
    kind: Kind,
    /// Whether something with contents is going to be replaced.
    replaces: bool,
    is_over: bool,
    /// Who began it: in a process that was forked from that one, it is not its own to remove.
    process: u32,
}

impl Draft {
    /// Begins a file that is going to have the name `target`, in place of a file that has it.
    ///
    /// What is there decides the way. Nothing: a new file, with the mode that the umask leaves. A file with
    /// contents: a new file like it, which replaces it in one step. An *empty* file has nothing to
    /// lose, and may have been made for the purpose (striping, a mount, a directory that takes no files): it is
    /// filled where it is, and stays locked as long as it is open. Links are followed. Anything else is an error that says so.
    pub fn begin(store: &Arc<dyn Store>, target: &Path) -> Result<Draft> {
        Draft::begin_striped(store, target, None)
    }

    /// The same for a new file with these stripes, where the file system has such. A file that is filled where it
    /// is keeps its own.
    pub fn begin_striped(
        store: &Arc<dyn Store>,
        target: &Path,
        stripes: Option<Stripes>,
    ) -> Result<Draft> {
        let landing = store.landing(target)?;
        match landing.occupant {
            Occupant::Empty(file) => Ok(Draft::found(store, landing.path, file)),
            _ => Draft::replacing(store, &landing.path, stripes),
        }
    }

    /// The same for a file that is seen whole or not at all: an empty file is replaced too.
    pub fn whole(store: &Arc<dyn Store>, target: &Path) -> Result<Draft> {
        Draft::replacing(store, target, None)
    }

    fn replacing(store: &Arc<dyn Store>, target: &Path, stripes: Option<Stripes>) -> Result<Draft> {
        let landing = store.landing(target)?;
        let (like, replaces) = match landing.occupant {
            Occupant::Nothing => (None, false),
            Occupant::File => (Some(&*landing.path), true),
            Occupant::Empty(_) => (Some(&*landing.path), false),
            Occupant::Directory => return Err(is_directory(target)),
        };
        let made = Draft::beside(store, &landing.path, like, stripes);
        let mut draft = made.map_err(|error| refused(error, like.is_some()))?;
        draft.replaces = replaces;
        Ok(draft)
    }

    /// Begins a file that is going to have the name `target`, with who may read it taken from `like`
    /// (or, without, from the umask), whatever has the name now.
    pub fn begin_like(store: &Arc<dyn Store>, target: &Path, like: Option<&Path>) -> Result<Draft> {
        Draft::beside(store, target, like, None)
    }

    /// Begins a folder that is going to have the name `target`, in place of a folder that has it.
    pub fn folder(store: &Arc<dyn Store>, target: &Path) -> Result<Draft> {
        let landing = store.landing(target)?;
        let like = match landing.occupant {
            Occupant::Nothing => None,
            Occupant::Directory => Some(&*landing.path),
            Occupant::File | Occupant::Empty(_) => {
                let error = io::Error::new(io::ErrorKind::NotADirectory, "it is a file");
                return Err(StoreError::new(target, "making the directory", error));
            }
        };
        let path = fresh(&landing.path, Kind::Folder, |path| store.create_new_dir(path, like))?.0;
        let replaces = like.is_some();
        let mut draft = Draft::of(store, landing.path.clone(), path, None, Kind::Folder);
        draft.replaces = replaces;
        Ok(draft)
    }

    fn beside(
        store: &Arc<dyn Store>,
        target: &Path,
        like: Option<&Path>,
        stripes: Option<Stripes>,
    ) -> Result<Draft> {
        let (path, file) = fresh(target, Kind::File, |path| match (stripes, like) {
            (Some(stripes), like) => store.create_striped(path, like, stripes),
            (None, Some(like)) => store.create_like(path, like),
            (None, None) => store.create(path, crate::CreateMode::New),
        })?;
        Ok(Draft::of(store, target.to_path_buf(), path, Some(file), Kind::File))
    }

    fn found(store: &Arc<dyn Store>, path: PathBuf, file: Arc<dyn File>) -> Draft {
        Draft::of(store, path.clone(), path, Some(file), Kind::Found)
    }

    fn of(
        store: &Arc<dyn Store>,
        target: PathBuf,
        path: PathBuf,
        file: Option<Arc<dyn File>>,
        kind: Kind,
    ) -> Draft {
        live::enter(&path, kind);
        let (store, replaces, is_over) = (store.clone(), false, false);
        let process = std::process::id();
        Draft { store, target, path, file, kind, replaces, is_over, process }
    }

    /// Where it grows.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The name that it is going to take.
    pub fn target(&self) -> &Path {
        &self.target
    }

    /// The file; none for a folder.
    pub fn file(&self) -> Option<&Arc<dyn File>> {
        self.file.as_ref()
    }

    /// Whether something with contents is going to be replaced, which must be whole until then: contents
    /// are synced before names.
    pub fn replaces(&self) -> bool {
        self.replaces
    }

    /// Takes the name, in place of what has it. A folder that replaces another changes places with it
    /// where the file system can; otherwise the old one gets another name first.
    pub fn take_name(mut self) -> Result<()> {
        match self.kind {
            Kind::Found => {}
            Kind::File => self.store.rename(&self.path, &self.target)?,
            Kind::Folder => self.take_name_of_folder()?,
        }
        self.end();
        leftover::sweep(&*self.store, &self.target);
        Ok(())
    }

    /// The same where a loss of power has nothing to take from either: the two change places where the file system can,
    /// and the other goes. What is renamed over something else, ext4 writes out at once (auto_da_alloc), and who
    /// closes the other one the next time waits for that: 1 MB took 490 microseconds, and 60 so.
    pub fn take_name_unsynced(mut self) -> Result<()> {
        let exchanged = matches!(self.kind, Kind::File)
            && self.replaces
            && self.store.exchange(&self.path, &self.target).is_ok();
        if !exchanged {
            return self.take_name();
        }
        if self.store.is_dir(&self.path).unwrap_or(true) {
            // A directory has got the name meanwhile, which is not replaced.
            self.store.exchange(&self.path, &self.target)?;
            return self.take_name();
        }
        // It has the other's contents now, which take room and no more if they cannot be removed.
        let _ = self.store.remove(&self.path);
        self.end();
        leftover::sweep(&*self.store, &self.target);
        Ok(())
    }

    /// Takes the name unless something has it, which is [`io::ErrorKind::AlreadyExists`].
    pub fn publish(mut self) -> Result<()> {
        match self.kind {
            Kind::Found => {}
            Kind::File => self.store.publish(&self.path, &self.target)?,
            Kind::Folder => {
                if self.store.exists(&self.target)? || self.store.is_dir(&self.target)? {
                    let error = io::ErrorKind::AlreadyExists.into();
                    return Err(StoreError::new(&self.target, "rename", error));
                }
                self.store.rename(&self.path, &self.target)?;
            }
        }
        self.end();
        Ok(())
    }

    fn take_name_of_folder(&self) -> Result<()> {
        let (store, target) = (&*self.store, &self.target);
        if !store.exists(target)? && !store.is_dir(target)? {
            return store.rename(&self.path, target);
        }
        let old = match store.exchange(&self.path, target) {
            Ok(()) => self.path.clone(),
            Err(error) if error.kind() == io::ErrorKind::Unsupported => {
                let old = draft_path(target, DraftForm::Old, random());
                store.rename(target, &old)?;
                if let Err(error) = store.rename(&self.path, target) {
                    let _ = store.rename(&old, target);
                    return Err(error);
                }
                old
            }
            Err(error) => return Err(error),
        };
        // The new one is there. The other takes room and no more, and `check` tells of it.
        let _ = remove_tree(store, &old);
        Ok(())
    }

    fn end(&mut self) {
        self.is_over = true;
        live::leave(&self.path);
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if self.is_over || self.process != std::process::id() {
            return;
        }
        // Whoever drops it has an error of his own, which counts more.
        let _ = match (self.kind, &self.file) {
            (Kind::Folder, _) => remove_tree(&*self.store, &self.path),
            (Kind::Found, Some(file)) => file.set_len(0),
            _ => self.store.remove(&self.path),
        };
        live::leave(&self.path);
    }
}

fn is_directory(target: &Path) -> StoreError {
    let error = io::Error::new(io::ErrorKind::IsADirectory, "it is a directory");
    StoreError::new(target, "create", error)
}

/// Makes something under a name that is free. It is known to be alive from before it is there: who takes away
/// what dead processes left looks at the same directory.
fn fresh<T>(
    target: &Path,
    kind: Kind,
    mut make: impl FnMut(&Path) -> Result<T>,
) -> Result<(PathBuf, T)> {
    let mut attempt = 1;
    loop {
        let path = draft_path(target, DraftForm::New, random());
        live::enter(&path, kind);
        let made = make(&path).inspect_err(|_| live::leave(&path));
        match made {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && attempt < ATTEMPTS => {
                attempt += 1;
            }
            made => return made.map(|made| (path, made)),
        }
    }
}

/// A directory that takes no new files keeps a file with contents from being replaced: it would have to
/// be written over, and who is killed then leaves neither the old nor the new.
fn refused(error: StoreError, replaces: bool) -> StoreError {
    use io::ErrorKind::{PermissionDenied, ReadOnlyFilesystem};
    if !replaces || !matches!(error.kind(), PermissionDenied | ReadOnlyFilesystem) {
        return error;
    }
    let why = format!(
        "{}: its directory takes no new files, so that it could only be written over, and a failure would \
         leave neither the old nor the new; empty it first (`: > FILE`) if the old may go",
        error.source
    );
    StoreError { source: io::Error::new(error.kind(), why), ..error }
}
