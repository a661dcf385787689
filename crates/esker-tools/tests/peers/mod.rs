//! Peer programs and real data, for the tests that compare with them.
#![allow(dead_code)] // Each test uses some of it.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A peer program's output, or nothing (with a message) when it is not installed.
pub fn run(program: &str, arguments: &[&str], file: &Path) -> Option<Output> {
    match Command::new(program).args(arguments).arg(file).output() {
        Ok(output) => Some(output),
        Err(error) => {
            println!("skipped: {program}: {error}");
            None
        }
    }
}

/// The folder of real files, or nothing (with a message) when it is not there.
pub fn shared_data() -> Option<PathBuf> {
    if let Some(folder) = std::env::var_os("ESKER_SHARED_DATA") {
        return Some(PathBuf::from(folder));
    }
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let found = here.ancestors().map(|p| p.join("shared/data")).find(|p| p.is_dir());
    if found.is_none() {
        println!("skipped: no folder shared/data above {}", here.display());
    }
    found
}

/// The files in a folder of the shared data, sorted.
pub fn files(folder: &str) -> Vec<PathBuf> {
    let Some(data) = shared_data() else { return Vec::new() };
    let Ok(entries) = std::fs::read_dir(data.join(folder)) else { return Vec::new() };
    let mut files: Vec<PathBuf> = entries.filter_map(|e| Some(e.ok()?.path())).collect();
    files.sort();
    files
}

/// Where two texts first differ, with some of what stands there.
pub fn difference(ours: &[u8], theirs: &[u8]) -> Option<String> {
    if ours == theirs {
        return None;
    }
    let at = ours.iter().zip(theirs).position(|(a, b)| a != b);
    let at = at.unwrap_or(ours.len().min(theirs.len()));
    let shown = |text: &[u8]| {
        let end = text.len().min(at + 60);
        String::from_utf8_lossy(&text[at.saturating_sub(60)..end]).into_owned()
    };
    Some(format!("at byte {at}:\nours:   …{:?}\ntheirs: …{:?}", shown(ours), shown(theirs)))
}
