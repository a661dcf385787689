//! What processes have left that died before their drafts took their names.

use std::fmt::{self, Display, Formatter};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::live;
use super::name::{DraftForm, DraftName, machine};
use crate::{Result, Store};

/// A draft that is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leftover {
    /// Where it is.
    pub path: PathBuf,
    /// What it is.
    pub form: DraftForm,
    /// The process that began it.
    pub process: u32,
    /// Whether that process runs; `None` if it is another machine's, or of before this one's start.
    pub is_running: Option<bool>,
    /// How long ago it was written to, where the store knows.
    pub age: Option<Duration>,
}

/// Whose it is and how old, without its name.
impl Display for Leftover {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let process = self.process;
        match self.is_running {
            Some(false) => {
                write!(f, "it is left of process {process}, which does not run any more")?
            }
            Some(true) => write!(f, "it is growing: process {process} runs")?,
            None => {
                write!(f, "it is of process {process} of another machine, or of before a restart")?
            }
        }
        match self.age.map(|age| age.as_secs()) {
            None => Ok(()),
            Some(seconds @ ..120) => write!(f, ", last written {seconds} seconds ago"),
            Some(seconds @ ..7200) => write!(f, ", last written {} minutes ago", seconds / 60),
            Some(seconds @ ..172_800) => write!(f, ", last written {} hours ago", seconds / 3600),
            Some(seconds) => write!(f, ", last written {} days ago", seconds / 86_400),
        }
    }
}

/// The drafts for `target` that lie beside it, this process's own that grow left out.
pub fn leftovers(store: &dyn Store, target: &Path) -> Result<Vec<Leftover>> {
    let Some(name) = target.file_name() else { return Ok(Vec::new()) };
    let directory = match target.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let mut found = Vec::new();
    for entry in store.names_in(directory)? {
        let Some(draft) = DraftName::parse(&entry).filter(|draft| draft.is_for(name)) else {
            continue;
        };
        let path = target.with_file_name(&entry);
        if live::is_live(&path) {
            continue;
        }
        let is_here = draft.machine == machine();
        let is_running = is_here.then(|| is_running(draft.process));
        // Somebody may have removed it by now.
        let age = store.age(&path).unwrap_or(None);
        let (form, process) = (draft.form, draft.process);
        found.push(Leftover { path, form, process, is_running, age });
    }
    Ok(found)
}

/// Removes what dead processes of this machine have left of `target`, as far as that is possible.
pub(super) fn sweep(store: &dyn Store, target: &Path) {
    for left in leftovers(store, target).unwrap_or_default() {
        // A sub-file may belong to a dataset that has its name: others know.
        if left.is_running == Some(false) && left.form != DraftForm::Sub {
            let _ = remove_tree(store, &left.path);
        }
    }
}

/// Whether a process runs, other than this one: what this one does not know of is not its own.
fn is_running(process: u32) -> bool {
    if process == std::process::id() {
        return false;
    }
    let number = i32::try_from(process).ok().and_then(rustix::process::Pid::from_raw);
    let Some(process) = number else { return false };
    // Only what does not exist is dead: another user's process must not be asked, but is there.
    rustix::process::test_kill_process(process) != Err(rustix::io::Errno::SRCH)
}

/// Removes a file or a folder with what is in it. Links go, and what they lead to stays.
pub fn remove_tree(store: &dyn Store, path: &Path) -> Result<()> {
    remove_inside(&*store.enclosed(path.parent().unwrap_or(Path::new("")))?, path)
}

fn remove_inside(store: &dyn Store, path: &Path) -> Result<()> {
    if !store.is_dir(path)? {
        return store.remove(path);
    }
    for name in store.names_in(path)? {
        remove_inside(store, &path.join(name))?;
    }
    store.remove_dir(path)
}
