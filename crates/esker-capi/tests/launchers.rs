//! What the library says by itself on the standard error, and when files run out. Compiled programs, under
//! each MPI that is installed.

use std::path::Path;
use std::process::Command;

const FLAGS: &[&str] = &["--allow-run-as-root", "--oversubscribe"];

fn is_installed(mpi: &str) -> bool {
    let found = Command::new(format!("mpicc.{mpi}")).arg("--version").output();
    let found = found.is_ok_and(|out| out.status.success());
    if !found {
        println!("skipped: mpicc.{mpi} is not installed");
    }
    found
}

/// Runs `many_files COUNT`, compiled for `mpi`, on two ranks under the launcher of `launcher`; `None` if one
/// of them is missing. Gives whether it succeeded, what it printed and what it said.
fn run(launcher: &str, mpi: &str, count: &str, hints: &str) -> Option<(bool, String, String)> {
    if !is_installed(launcher) || !is_installed(mpi) {
        return None;
    }
    let library = std::env::current_exe().unwrap().with_file_name("libpnetcdf.so");
    if !library.exists() {
        println!("skipped: libpnetcdf.so was not built");
        return None;
    }
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("pnetcdf.h"), pnetcdf::HEADER).unwrap();
    for name in ["libpnetcdf.so", "libpnetcdf.so.0d"] {
        std::os::unix::fs::symlink(&library, dir.path().join(name)).unwrap();
    }
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/many_files.c");
    let program = dir.path().join("many_files");
    let compiled = Command::new(format!("mpicc.{mpi}"))
        .args(["-Wall", "-Werror", "-I"])
        .arg(dir.path())
        .arg(source)
        .arg("-o")
        .arg(&program)
        .arg(format!("-L{}", dir.path().display()))
        .arg("-lpnetcdf")
        .output()
        .unwrap();
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    let flags = if launcher == "openmpi" { FLAGS.join(" ") } else { String::new() };
    let line = format!("ulimit -n 3000; exec mpiexec.{launcher} {flags} -n 2 \"$@\"");
    let ran = Command::new("sh")
        .args(["-c", &line, "sh"])
        .arg(&program)
        .arg(count)
        .env("LD_LIBRARY_PATH", dir.path())
        .env("PNETCDF_HINTS", hints)
        .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
        .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
        .current_dir(dir.path())
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Some((ran.status.success(), text(&ran.stdout), text(&ran.stderr)))
}

#[test]
fn the_launcher_of_another_mpi_is_told_once() {
    for (launcher, mpi) in [("mpich", "openmpi"), ("openmpi", "mpich")] {
        let Some((_, output, errors)) = run(launcher, mpi, "2", "") else { continue };
        assert_eq!(output.matches("world of 1").count(), 2, "{output}{errors}");
        assert_eq!(errors.matches("worlds of one rank").count(), 1, "{output}{errors}");
    }
}

#[test]
fn the_right_launcher_is_no_alarm_and_ill_formed_hints_are_told_once() {
    for mpi in ["mpich", "openmpi"] {
        let Some((succeeded, output, errors)) = run(mpi, mpi, "2", "cb_nodes=1;oops;") else {
            continue;
        };
        assert!(
            succeeded && output.contains("opened 2, then NC_NOERR, world of 2"),
            "{output}{errors}"
        );
        assert!(!errors.contains("worlds of one rank"), "{errors}");
        assert_eq!(errors.matches("PNETCDF_HINTS: \"oops\" is ill-formed").count(), 1, "{errors}");
    }
}

#[test]
fn files_are_1024_at_most_and_then_there_is_an_error() {
    for mpi in ["mpich", "openmpi"] {
        let Some((succeeded, output, errors)) = run(mpi, mpi, "1100", "") else { continue };
        let told = "opened 1024, then NC_ENFILE, world of 2";
        assert!(succeeded && output.matches(told).count() == 2, "{mpi}: {output}{errors}");
    }
}
