//! What has a name that something else is going to take.

use std::fs;
use std::path::PathBuf;

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
    /// A file without contents, which nobody else is filling as long as the lease lives.
    Empty(Lease),
    /// A file with contents, or one that somebody else is filling; it may be written.
    File,
    /// A directory.
    Directory,
}

/// Keeps others from filling an empty file.
#[derive(Debug)]
pub struct Lease(#[expect(dead_code, reason = "held for its lock")] fs::File);

impl Lease {
    /// The lease of a file that is locked.
    pub(crate) fn new(file: fs::File) -> Lease {
        Lease(file)
    }
}
