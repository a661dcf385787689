//! Real files, when the folder with them is there.

use std::path::{Path, PathBuf};

/// The root of the checkout.
pub fn checkout() -> &'static Path {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).unwrap_or(here)
}

/// The folder of real files: `$ESKER_SHARED_DATA`, or `shared/data` in a directory above the
/// checkout. A skip if it is not there.
pub fn shared() -> Option<PathBuf> {
    let named = std::env::var_os("ESKER_SHARED_DATA").map(PathBuf::from);
    let above = || checkout().ancestors().map(|above| above.join("shared/data"));
    let found = named.or_else(|| above().find(|path| path.is_dir()));
    if found.is_none() {
        crate::skip!("no shared/data above {} (ESKER_SHARED_DATA)", checkout().display());
    }
    found
}

/// All files below a folder of the shared data, sorted; none, and a skip, without it.
pub fn files(folder: &str) -> Vec<PathBuf> {
    let Some(root) = shared().map(|data| data.join(folder)) else { return Vec::new() };
    if !root.is_dir() {
        crate::skip!("there is no {}", root.display());
        return Vec::new();
    }
    let mut files = walk(&root);
    files.sort();
    files
}

fn walk(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { walk(&path) } else { vec![path] }).collect()
}
