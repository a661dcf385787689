//! C programs that are compiled with our header and run on our library, under each MPI that is
//! installed.

use std::path::Path;
use std::process::Command;

/// The compiler and launcher of an MPI, if it is installed.
fn mpis() -> Vec<(String, Vec<String>)> {
    let all = [
        (
            "openmpi",
            vec!["--allow-run-as-root", "--oversubscribe", "--mca", "mpi_yield_when_idle", "1"],
        ),
        ("mpich", vec![]),
    ];
    let installed = |(mpi, _): &(&str, Vec<&str>)| {
        let found = Command::new(format!("mpicc.{mpi}")).arg("--version").output();
        found.is_ok_and(|out| out.status.success())
    };
    let own = |(mpi, flags): (&str, Vec<&str>)| {
        (mpi.to_string(), flags.into_iter().map(str::to_string).collect())
    };
    all.into_iter().filter(installed).map(own).collect()
}

#[test]
fn every_data_function_writes_and_reads() {
    let exe = std::env::current_exe().unwrap();
    let library = exe.ancestors().nth(1).map(|dir| dir.join("libpnetcdf.so"));
    let Some(library) = library.filter(|library| library.exists()) else {
        println!("skipped: libpnetcdf.so was not built");
        return;
    };
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/every_function.c");
    for (mpi, flags) in mpis() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("pnetcdf.h"), pnetcdf::HEADER).unwrap();
        for name in ["libpnetcdf.so", "libpnetcdf.so.0d"] {
            std::os::unix::fs::symlink(&library, dir.path().join(name)).unwrap();
        }
        let program = dir.path().join("program");
        let compiled = Command::new(format!("mpicc.{mpi}"))
            .args(["-O0", "-Wall", "-Werror", "-I"])
            .arg(dir.path())
            .arg(&source)
            .arg("-o")
            .arg(&program)
            .arg(format!("-L{}", dir.path().display()))
            .arg("-lpnetcdf")
            .output()
            .unwrap();
        assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
        for ranks in ["1", "3"] {
            let ran = Command::new("timeout")
                .args(["-k", "5", "120", &format!("mpiexec.{mpi}")])
                .args(&flags)
                .args(["-n", ranks, "env"])
                .arg(format!("LD_LIBRARY_PATH={}", dir.path().display()))
                .arg(&program)
                .current_dir(dir.path())
                .output()
                .unwrap();
            let text = String::from_utf8_lossy(&ran.stdout);
            assert!(ran.status.success(), "{mpi} on {ranks} ranks:\n{text}");
        }
    }
}
