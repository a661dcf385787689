//! More datasets at once than an MPI library has communicators, and chunks behind logs, under real launchers.

use esker_testkit::mpi::{Ended, Mpi};

const PROGRAM: &str = env!("CARGO_BIN_EXE_esker-ranks");

/// Runs the program on two ranks that may have so many files open; `None` if that cannot be had here.
fn run(mpi: &Mpi, files: u64, words: &[&str]) -> Option<Ended> {
    if !mpi.is_here() {
        return None;
    }
    let line = format!("ulimit -n {files} || exit 77; exec \"$@\"");
    let words = [&["sh", "-c", &line, "sh", PROGRAM], words].concat();
    let ended = mpi.run(2, &words);
    if ended.code == Some(77) {
        esker_testkit::skip!("this system does not allow {files} open files");
        return None;
    }
    Some(ended)
}

fn many_at_once(mpi: &Mpi) {
    let dir = tempfile::tempdir().unwrap();
    let place = dir.path().to_str().unwrap();
    let Some(ended) = run(mpi, 4000, &["many", place, "1500"]) else { return };
    assert!(ended.succeeded() && ended.output.contains("many passed on 2 ranks"), "{ended:?}");
}

#[test]
fn fifteen_hundred_datasets_are_open_at_once_under_mpich() {
    many_at_once(&Mpi::mpich());
}

#[test]
fn fifteen_hundred_datasets_are_open_at_once_under_open_mpi() {
    many_at_once(&Mpi::open_mpi());
}

#[test]
fn the_end_of_file_descriptors_is_an_error_of_all_ranks_that_says_so() {
    for mpi in [Mpi::mpich(), Mpi::open_mpi()] {
        let dir = tempfile::tempdir().unwrap();
        let place = dir.path().to_str().unwrap();
        let Some(ended) = run(&mpi, 200, &["many", place, "400"]) else { continue };
        assert!(!ended.succeeded(), "{ended:?}");
        for rank in 0..2 {
            let why = std::fs::read_to_string(dir.path().join(format!("error.{rank}"))).unwrap();
            assert!(why.contains("Too many open files") && why.contains(".nc"), "{why}");
        }
    }
}

fn chunks_behind_logs(mpi: &Mpi) {
    let dir = tempfile::tempdir().unwrap();
    let place = dir.path().to_str().unwrap();
    let Some(ended) = run(mpi, 1000, &["buffered", place, "60000", "12"]) else { return };
    assert!(ended.succeeded() && ended.output.contains("buffered passed on 2 ranks"), "{ended:?}");
}

#[test]
fn chunked_and_decomposed_variables_behind_logs_agree_with_the_model_under_mpich() {
    chunks_behind_logs(&Mpi::mpich());
}

#[test]
fn chunked_and_decomposed_variables_behind_logs_agree_with_the_model_under_open_mpi() {
    chunks_behind_logs(&Mpi::open_mpi());
}
