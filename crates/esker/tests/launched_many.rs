//! More datasets at once than an MPI library has communicators, and chunks behind logs, under real launchers.
//!
//! An MPI that is not installed is skipped with a message.

use std::process::Command;

const PROGRAM: &str = env!("CARGO_BIN_EXE_esker-ranks");

/// Runs the program on two ranks, with so many file descriptors; `None` if that cannot be had here.
fn run(mpiexec: &str, files: u64, words: &[&str]) -> Option<(bool, String)> {
    if Command::new(mpiexec).arg("--version").output().is_err() {
        println!("skipped: there is no {mpiexec}");
        return None;
    }
    let more = match mpiexec {
        "mpiexec.openmpi" => "--allow-run-as-root --oversubscribe",
        _ => "",
    };
    let line = format!("ulimit -n {files} && exec {mpiexec} {more} -n 2 \"$@\"");
    let mut command = Command::new("sh");
    command.args(["-c", &line, "sh", PROGRAM]).args(words);
    let done = command.output().unwrap();
    let text = String::from_utf8_lossy(&done.stdout) + String::from_utf8_lossy(&done.stderr);
    if text.contains("ulimit") {
        println!("skipped: this system does not allow {files} open files: {text}");
        return None;
    }
    Some((done.status.success(), text.into_owned()))
}

fn many_at_once(mpiexec: &str) {
    let dir = tempfile::tempdir().unwrap();
    let place = dir.path().to_str().unwrap();
    let Some((succeeded, text)) = run(mpiexec, 4000, &["many", place, "1500"]) else { return };
    assert!(succeeded && text.contains("many passed on 2 ranks"), "{text}");
}

#[test]
fn fifteen_hundred_datasets_are_open_at_once_under_mpich() {
    many_at_once("mpiexec.mpich");
}

#[test]
fn fifteen_hundred_datasets_are_open_at_once_under_open_mpi() {
    many_at_once("mpiexec.openmpi");
}

#[test]
fn the_end_of_file_descriptors_is_an_error_that_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let place = dir.path().to_str().unwrap();
    let Some((succeeded, text)) = run("mpiexec.mpich", 200, &["many", place, "400"]) else {
        return;
    };
    assert!(!succeeded && text.contains("Too many open files"), "{text}");
}

fn chunks_behind_logs(mpiexec: &str) {
    let dir = tempfile::tempdir().unwrap();
    let place = dir.path().to_str().unwrap();
    let Some((succeeded, text)) = run(mpiexec, 1000, &["buffered", place, "60000", "12"]) else {
        return;
    };
    assert!(succeeded && text.contains("buffered passed on 2 ranks"), "{text}");
}

#[test]
fn chunked_and_decomposed_variables_behind_logs_agree_with_the_model_under_mpich() {
    chunks_behind_logs("mpiexec.mpich");
}

#[test]
fn chunked_and_decomposed_variables_behind_logs_agree_with_the_model_under_open_mpi() {
    chunks_behind_logs("mpiexec.openmpi");
}
