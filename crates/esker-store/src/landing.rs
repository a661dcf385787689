//! What has a name that something else is going to take.

use std::path::PathBuf;
use std::sync::Arc;

use crate::File;

/// A name, and what has it.
#[derive(Debug)]
pub struct Landing {
    /// The name behind symbolic links, so that the file is replaced and not the link.
    pub path: PathBuf,
    /// What has it.
    pub occupant: Occupant,
}

/// What has a name.
#[derive(Debug)]
pub enum Occupant {
    /// Nothing.
    Nothing,
    /// A file without contents, open for writing. Its lock is the asker's, so that nobody else fills it as
    /// long as it is open.
    Empty(Arc<dyn File>),
    /// A file with contents, or one that somebody else is filling; it may be written.
    File,
    /// A directory.
    Directory,
}
