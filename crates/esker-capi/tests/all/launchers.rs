//! What the library says by itself on the standard error, and when files run out: a compiled program under
//! each MPI that is installed.

use std::path::Path;
use std::process::Command;

use esker_testkit::mpi::{Ended, Mpi};
use esker_testkit::programs;

use crate::compilers::{mpis, on_our_library, our_library};

/// Runs `many_files COUNT`, compiled for one MPI, on two ranks under the launcher of another or the same;
/// `None` if ranks cannot have so many files open here.
fn run(launcher: &Mpi, mpi: &Mpi, count: &str) -> Option<Ended> {
    run_with(launcher, mpi, count, 3000)
}

/// The same with at most so many files open in a process.
fn run_with(launcher: &Mpi, mpi: &Mpi, count: &str, most: u32) -> Option<Ended> {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("pnetcdf.h"), pnetcdf::HEADER).unwrap();
    for name in ["libpnetcdf.so", "libpnetcdf.so.0d"] {
        std::os::unix::fs::symlink(our_library(), dir.path().join(name)).unwrap();
    }
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/many_files.c");
    let program = dir.path().join("many_files");
    programs::good(
        Command::new(format!("mpicc.{}", mpi.suffix))
            .args(["-Wall", "-Werror", "-I"])
            .arg(dir.path())
            .arg(source)
            .arg("-o")
            .arg(&program)
            .arg(format!("-L{}", dir.path().display()))
            .arg("-lpnetcdf"),
    );
    let [env, library_path] = on_our_library(dir.path());
    let line = format!("ulimit -n {most} || exit 77; exec \"$@\"");
    let program = program.to_str().unwrap();
    // (OpenMPI does not start a rank of its own as root without being asked to.)
    let allow = ["OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"];
    let words =
        [&[&env[..], &library_path][..], &allow, &["sh", "-c", &line, "sh", program, count]];
    let ended = launcher.clone().in_directory(dir.path()).run(2, &words.concat());
    if ended.code == Some(77) {
        esker_testkit::skip!("this system does not allow {most} open files");
        return None;
    }
    Some(ended)
}

#[test]
fn the_launcher_of_another_mpi_is_told_once() {
    let all = mpis("mpicc");
    for launcher in &all {
        for mpi in all.iter().filter(|mpi| mpi.suffix != launcher.suffix) {
            let Some(ended) = run(launcher, mpi, "2") else { continue };
            assert_eq!(ended.output.matches("world of 1").count(), 2, "{ended:?}");
            assert_eq!(ended.errors.matches("worlds of one rank").count(), 1, "{ended:?}");
        }
    }
}

#[test]
fn the_right_launcher_is_no_alarm_and_ill_formed_hints_are_told_once() {
    for mpi in mpis("mpicc") {
        let mpi = mpi.with("PNETCDF_HINTS", "cb_nodes=1;oops;");
        let Some(ended) = run(&mpi, &mpi, "2") else { continue };
        let told = "opened 2, then NC_NOERR, world of 2";
        assert!(ended.succeeded() && ended.output.contains(told), "{ended:?}");
        assert!(!ended.errors.contains("worlds of one rank"), "{ended:?}");
        let ill = "PNETCDF_HINTS: \"oops\" is ill-formed";
        assert_eq!(ended.errors.matches(ill).count(), 1, "{ended:?}");
    }
}

#[test]
fn files_are_1024_at_most_and_then_there_is_an_error() {
    for mpi in mpis("mpicc") {
        let Some(ended) = run(&mpi, &mpi, "1100") else { continue };
        let told = "opened 1024, then NC_ENFILE, world of 2";
        assert!(ended.succeeded() && ended.output.matches(told).count() == 2, "{ended:?}");
    }
}

/// The system's limit is an error like PnetCDF's own, and what is open stays usable.
#[test]
fn where_the_system_allows_no_more_files_there_is_an_error_in_a_sentence() {
    for mpi in mpis("mpicc") {
        let mpi = mpi.with("ESKER_VERBOSE", "1");
        let Some(ended) = run_with(&mpi, &mpi, "1100", 150) else { continue };
        assert!(ended.succeeded(), "{ended:?}");
        assert_eq!(ended.output.matches("then NC_ENFILE, world of 2").count(), 2, "{ended:?}");
        assert!(ended.errors.contains("Too many open files"), "{ended:?}");
    }
}
