//! Running the binary, and what tests ask of a run.
#![allow(dead_code, missing_docs, unreachable_pub)]

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

/// The binary with a plain environment: no colours, no terminal.
pub fn esker(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_esker"));
    command.args(arguments);
    for name in ["NO_COLOR", "COLORTERM", "CLICOLOR", "CLICOLOR_FORCE"] {
        command.env_remove(name);
    }
    command
}

/// What a finished run said and how it ended.
pub struct Run {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl From<Output> for Run {
    fn from(output: Output) -> Run {
        let text = |bytes: Vec<u8>| match String::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => panic!("the output is not UTF-8: {}", error.utf8_error()),
        };
        Run { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
    }
}

/// Runs the binary to its end.
pub fn run(arguments: &[&str]) -> Run {
    esker(arguments).output().expect("the binary starts").into()
}

/// Runs the binary, which must succeed quietly, and gives its standard output.
pub fn good(arguments: &[&str]) -> String {
    let run = run(arguments);
    assert_eq!(run.code, Some(0), "esker {arguments:?}: {}", run.err);
    run.out
}

/// The real test data, when they are there: `$ESKER_SHARED_DATA`, or `shared/data` in a
/// directory above the checkout.
pub fn shared_data() -> Option<PathBuf> {
    let found = match std::env::var_os("ESKER_SHARED_DATA") {
        Some(path) => Some(PathBuf::from(path)),
        None => PathBuf::from(env!("CARGO_MANIFEST_DIR"))
            .ancestors()
            .map(|above| above.join("shared/data"))
            .find(|path| path.is_dir()),
    };
    if found.is_none() {
        println!("skipped: no shared test data (set ESKER_SHARED_DATA)");
    }
    found
}

/// The classic files among the shared test data, in the order of their names.
pub fn classic_files() -> Vec<PathBuf> {
    let Some(data) = shared_data() else { return Vec::new() };
    let entries = std::fs::read_dir(data.join("netcdf_classic")).expect("the directory opens");
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|e| e != "md" && e != "json" && e != "txt"))
        .collect();
    files.sort();
    files
}

/// Whether a program of a peer is installed.
pub fn have(program: &str) -> bool {
    let there = std::env::var_os("PATH")
        .is_some_and(|path| std::env::split_paths(&path).any(|dir| dir.join(program).is_file()));
    if !there {
        println!("skipped: {program} is not installed");
    }
    there
}

/// `esker … | head -1`: the reader goes away after one line.
pub fn first_line_then_closed(arguments: &[&str]) -> (String, Option<i32>, String) {
    let mut child = esker(arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    let mut line = String::new();
    let mut out = BufReader::with_capacity(1, child.stdout.take().expect("a pipe"));
    out.read_line(&mut line).expect("a line");
    drop(out);
    let ended = child.wait_with_output().expect("it ends");
    (line, ended.status.code(), String::from_utf8_lossy(&ended.stderr).into_owned())
}
