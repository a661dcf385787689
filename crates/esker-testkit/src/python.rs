//! A Python that has what a test needs.

use std::path::{Path, PathBuf};
use std::process::Command;

/// A Python that can import these modules (`"netCDF4, xarray"`): `$ESKER_PYTHON`, or that of
/// `.venv` in the checkout. A skip if there is none.
pub fn with(modules: &str) -> Option<PathBuf> {
    let own = crate::data::checkout().join(".venv/bin/python");
    let python = std::env::var_os("ESKER_PYTHON").map_or(own, PathBuf::from);
    let found = Command::new(&python).args(["-c", &format!("import {modules}")]).output();
    if found.is_ok_and(|output| output.status.success()) {
        return Some(python);
    }
    crate::skip!("no Python with {modules} (./test setup, or ESKER_PYTHON)");
    None
}

/// A script of a crate's `tests/python`, with that crate's `CARGO_MANIFEST_DIR`.
pub fn script(manifest_dir: &str, name: &str) -> PathBuf {
    Path::new(manifest_dir).join("tests/python").join(name)
}
