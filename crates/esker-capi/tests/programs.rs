//! C programs that are compiled with our header and run on our library, under each MPI that is
//! installed. Together they call every function of the interface.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const PROGRAMS: [&str; 3] = ["every_function", "flexible", "questions"];

/// The compiler and launcher of an MPI, if it is installed.
fn mpis() -> Vec<(&'static str, Vec<&'static str>)> {
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
    all.into_iter().filter(installed).collect()
}

/// A folder with our header and library, in which programs are compiled and run.
struct Place {
    dir: tempfile::TempDir,
}

impl Place {
    fn new() -> Option<Place> {
        let exe = std::env::current_exe().unwrap();
        // Beside the test: what `cargo test` built, not what `cargo build` may have left before.
        let library = exe.parent().map(|dir| dir.join("libpnetcdf.so"));
        let Some(library) = library.filter(|library| library.exists()) else {
            println!("skipped: libpnetcdf.so was not built");
            return None;
        };
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("pnetcdf.h"), pnetcdf::HEADER).unwrap();
        for name in ["libpnetcdf.so", "libpnetcdf.so.0d"] {
            std::os::unix::fs::symlink(&library, dir.path().join(name)).unwrap();
        }
        Some(Place { dir })
    }

    fn compile(&self, mpi: &str, name: &str) -> PathBuf {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
        let program = self.dir.path().join(format!("{name}.{mpi}"));
        let compiled = Command::new(format!("mpicc.{mpi}"))
            .args(["-O0", "-Wall", "-Werror", "-I"])
            .arg(self.dir.path())
            .arg(folder.join(format!("{name}.c")))
            .arg("-o")
            .arg(&program)
            .arg(format!("-L{}", self.dir.path().display()))
            .arg("-lpnetcdf")
            .output()
            .unwrap();
        assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
        program
    }

    fn run(
        &self,
        (mpi, flags): &(&str, Vec<&str>),
        ranks: &str,
        variables: &[&str],
        program: &Path,
    ) -> Output {
        Command::new("timeout")
            .args(["-k", "5", "120", &format!("mpiexec.{mpi}")])
            .args(flags)
            .args(["-n", ranks, "env"])
            .arg(format!("LD_LIBRARY_PATH={}", self.dir.path().display()))
            .args(variables)
            .arg(program)
            .current_dir(self.dir.path())
            .output()
            .unwrap()
    }
}

/// Every data function writes and reads back what it wrote, and every other one answers.
#[test]
fn every_function_does_its_work() {
    let Some(place) = Place::new() else { return };
    for mpi in mpis() {
        for name in PROGRAMS {
            let program = place.compile(mpi.0, name);
            for ranks in ["1", "3"] {
                let ran = place.run(&mpi, ranks, &[], &program);
                let text = String::from_utf8_lossy(&ran.stdout);
                assert!(ran.status.success(), "{name}, {} on {ranks} ranks:\n{text}", mpi.0);
            }
        }
    }
}

#[test]
fn no_function_is_left_out_of_the_programs() {
    let Some(place) = Place::new() else { return };
    let Some((mpi, _)) = mpis().into_iter().next() else { return };
    let mut called = BTreeSet::new();
    for name in PROGRAMS {
        let Ok(out) = Command::new("nm").arg("-u").arg(place.compile(mpi, name)).output() else {
            println!("skipped: nm is needed");
            return;
        };
        let text = String::from_utf8_lossy(&out.stdout).into_owned();
        called.extend(text.split_whitespace().map(str::to_string));
    }
    let words = pnetcdf::PROTOTYPES.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    let missing: Vec<&str> =
        words.filter(|word| word.starts_with("ncmpi_") && !called.contains(*word)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

/// The program makes six wrong calls on purpose, and asks for what is not counted.
#[test]
fn a_wrong_call_is_told_in_a_sentence_when_that_is_wanted() {
    let Some(place) = Place::new() else { return };
    for mpi in mpis() {
        let program = place.compile(mpi.0, "questions");
        let quiet = place.run(&mpi, "1", &[], &program);
        assert!(!String::from_utf8_lossy(&quiet.stderr).contains("pnetcdf:"));
        for variable in ["ESKER_VERBOSE=1", "PNETCDF_VERBOSE_DEBUG_MODE=1"] {
            let ran = place.run(&mpi, "1", &[variable], &program);
            let said = String::from_utf8_lossy(&ran.stderr);
            for sentence in [
                "ncmpi_redef (ncid 0): NC_EPERM: ",
                "ncmpi_inq_varid (ncid 0, name \"nothing\"): NC_ENOTVAR: ",
                "ncmpi_inq_dimlen (ncid 0, dimid 7): NC_EBADDIM: ",
                "ncmpi_get_var1_int_all (ncid 0, varid 0): NC_EINVALCOORDS: start 9 in dimension 0, whose length is 4",
                "ncmpi_close (ncid 0): NC_EBADID: ",
            ] {
                assert!(said.contains(&format!("pnetcdf: {sentence}")), "{sentence}\n{said}");
            }
        }
    }
}
