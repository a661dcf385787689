//! Programs of others that look at our files, where they are installed.

use std::path::Path;
use std::process::{Command, Output};

/// Whether a program is on the path; a skip if it is not.
pub fn have(program: &str) -> bool {
    let there = is_installed(program);
    if !there {
        crate::skip!("{program} is not installed");
    }
    there
}

/// Whether a program is on the path, for tests that can do without.
pub fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|dir| dir.join(program).is_file())
}

/// What a program says of a file; a skip if it is not installed.
pub fn run(program: &str, arguments: &[&str], file: &Path) -> Option<Output> {
    have(program).then(|| Command::new(program).args(arguments).arg(file).output().unwrap())
}

/// Runs a command that must succeed; gives all it printed.
pub fn good(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let said = [&output.stdout[..], &output.stderr].map(String::from_utf8_lossy).concat();
    assert!(output.status.success(), "{command:?}:\n{said}");
    said
}

/// The same for a program that may be absent, which is a skip.
pub fn good_if_installed(command: &mut Command) {
    if have(&command.get_program().to_string_lossy()) {
        good(command);
    }
}

/// PnetCDF's checker accepts the file, without a warning.
pub fn require_valid(path: &Path, what: &str) {
    if let Some(output) = run("ncvalidator", &[], path) {
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && !said.contains("Warning"), "{what}: {said}");
    }
}
