//! Other programs that look at our files, where they are installed.
// Each test uses some of it.
#![allow(dead_code)]

use std::path::{Path, PathBuf};
use std::process::Command;

/// Runs a program, which must find nothing wrong; without it, says so.
pub(crate) fn require_good(command: &mut Command) {
    let program = command.get_program().to_string_lossy().into_owned();
    match command.output() {
        Err(error) => println!("skipped: {program}: {error}"),
        Ok(output) => {
            let said = [&output.stdout[..], &output.stderr].map(String::from_utf8_lossy).concat();
            assert!(output.status.success(), "{command:?}: {said}");
        }
    }
}

/// PnetCDF's checker accepts the file.
pub(crate) fn require_valid(path: &Path, what: &str) {
    match Command::new("ncvalidator").arg(path).output() {
        Err(error) => println!("skipped: ncvalidator: {error}"),
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stdout);
            assert!(output.status.success() && !said.contains("Warning"), "{what}: {said}");
        }
    }
}

/// A Python that has these modules.
pub(crate) fn python(modules: &str) -> Option<PathBuf> {
    let own = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../.venv/bin/python");
    let python = std::env::var_os("ESKER_PYTHON").map_or(own, PathBuf::from);
    let found = Command::new(&python).args(["-c", &format!("import {modules}")]).output();
    if found.is_ok_and(|output| output.status.success()) {
        return Some(python);
    }
    println!("skipped: no Python with {modules} (./test setup, or ESKER_PYTHON)");
    None
}
