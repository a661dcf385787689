//! The library that cargo built, the MPIs' Fortran compilers, and running them.

use std::path::PathBuf;
use std::process::Command;

/// `libpnetcdf.so` of this build.
pub(crate) fn our_library() -> Option<PathBuf> {
    let exe = std::env::current_exe().ok()?;
    let library = exe.ancestors().nth(1)?.join("libpnetcdf.so");
    if !library.exists() {
        println!("skipped: libpnetcdf.so was not built");
        return None;
    }
    Some(library)
}

/// The MPIs whose Fortran compilers are installed, and their launchers' flags.
pub(crate) fn mpis() -> Vec<(&'static str, Vec<&'static str>)> {
    let flags = ["--allow-run-as-root", "--oversubscribe", "--mca", "mpi_yield_when_idle", "1"];
    let all = [("openmpi", flags.to_vec()), ("mpich", vec![])];
    let installed = |(mpi, _): &(&str, Vec<&str>)| {
        let found = Command::new(format!("mpif90.{mpi}")).arg("--version").output();
        let found = found.is_ok_and(|out| out.status.success());
        if !found {
            println!("skipped: mpif90.{mpi} is not installed");
        }
        found
    };
    all.into_iter().filter(installed).collect()
}

/// Runs a command that must succeed; gives all it printed.
pub(crate) fn run(command: &mut Command) -> String {
    let out = command.output().unwrap();
    let text =
        format!("{}{}", String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    assert!(out.status.success(), "{command:?}:\n{text}");
    text
}
