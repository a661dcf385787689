//! Real files, when the folder with them is there.

use std::path::{Path, PathBuf};

/// The files of a folder of the shared data: from `$ESKER_SHARED_DATA`, or `shared/data` in a
/// parent of this checkout. None when it is absent.
pub(crate) fn files(folder: &str) -> Vec<PathBuf> {
    let named = std::env::var_os("ESKER_SHARED_DATA").map(PathBuf::from);
    let above = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    let found = named.or_else(|| above.map(|p| p.join("shared/data")).find(|p| p.is_dir()));
    let Some(root) = found.map(|data| data.join(folder)).filter(|root| root.is_dir()) else {
        eprintln!("skipped: there is no shared/data/{folder} above this checkout");
        return Vec::new();
    };
    let mut files: Vec<PathBuf> = walk(&root);
    files.sort();
    files
}

fn walk(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { walk(&path) } else { vec![path] }).collect()
}
