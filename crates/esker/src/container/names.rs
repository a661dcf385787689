//! Where the files of a container are.

use std::path::{Path, PathBuf};

use esker_format::log::Session;

/// The file that makes a directory a container.
pub(crate) const MARK: &str = "esker.json";

/// The mark of a container, and the folders that it has.
pub(crate) fn own_names(path: &Path) -> (PathBuf, [PathBuf; 7]) {
    let folders =
        ["versions", "segments", "runs", "refs/main", "refs", "prepared/main", "prepared"];
    (path.join(MARK), folders.map(|folder| path.join(folder)))
}

/// The folder of decisions.
pub(crate) fn decisions_path(path: &Path) -> PathBuf {
    path.join("refs").join("main")
}

/// The file that says which versions there are.
pub(super) fn promises_path(path: &Path) -> PathBuf {
    path.join("promises")
}

/// The metadata log of a pair of files.
pub(crate) fn meta_path(path: &Path, session: &Session, file: u32) -> PathBuf {
    let name = match session.revision {
        0 => format!("{}.{file}.meta", session.stem),
        revision => format!("{}.{file}.{revision}.meta", session.stem),
    };
    path.join("segments").join(name)
}

/// The data log of a pair of files.
pub(crate) fn data_path(path: &Path, session: &Session, file: u32) -> PathBuf {
    path.join("segments").join(format!("{}.{file}.data", session.stem))
}
