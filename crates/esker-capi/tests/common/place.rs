//! A folder with our headers and library, in which programs of `tests/programs` are compiled and
//! run under each MPI.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

#[path = "compilers.rs"]
mod compilers;

pub(crate) use compilers::mpis;

pub(crate) struct Place {
    dir: tempfile::TempDir,
}

impl Place {
    pub(crate) fn new() -> Option<Place> {
        let library = compilers::our_library()?;
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in [
            ("pnetcdf.h", pnetcdf::HEADER),
            ("pnetcdf.inc", pnetcdf::INCLUDE),
            ("pnetcdf.f90", pnetcdf::MODULE),
        ] {
            std::fs::write(dir.path().join(name), text).unwrap();
        }
        for name in ["libpnetcdf.so", "libpnetcdf.so.0d"] {
            std::os::unix::fs::symlink(&library, dir.path().join(name)).unwrap();
        }
        Some(Place { dir })
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    #[allow(dead_code, reason = "programs in C do without")]
    /// Makes the library of the C++ classes, as the installer does; whether there is a compiler.
    pub(crate) fn classes(&self) -> bool {
        if Command::new("g++").arg("--version").output().is_err() {
            println!("skipped: g++ is not installed");
            return false;
        }
        let work = self.path().join("classes");
        std::fs::create_dir(&work).unwrap();
        for (name, text) in [
            ("pnetcdf.h", pnetcdf::HEADER),
            ("pnetcdf", pnetcdf::CXX_HEADER),
            ("pnetcdf.cpp", pnetcdf::CXX_SOURCE),
            ("mpi.h", pnetcdf::CXX_MPI),
        ] {
            std::fs::write(work.join(name), text).unwrap();
        }
        std::fs::write(self.path().join("pnetcdf"), pnetcdf::CXX_HEADER).unwrap();
        let objects = ["1", "2", "3", "4"].map(|mpi| {
            let object = format!("classes-{mpi}.o");
            let (which, warnings) = (format!("-DESKER_MPI={mpi}"), ["-Wall", "-Wextra", "-Werror"]);
            let flags = ["-std=c++11", "-O0", "-fPIC", "-I.", &which, "-c", "pnetcdf.cpp", "-o"];
            let mut compile = Command::new("g++");
            compilers::run(compile.args(flags).arg(&object).args(warnings).current_dir(&work));
            object
        });
        let flags = ["-shared", "-Wl,--allow-multiple-definition,-soname,libpnetcdf_cxx.so"];
        let mut link = Command::new("g++");
        link.args(flags).args(objects).args(["-o", "../libpnetcdf_cxx.so"]);
        compilers::run(link.current_dir(&work));
        true
    }

    /// Compiles a program by the language of its name.
    pub(crate) fn compile(&self, mpi: &str, name: &str) -> PathBuf {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(name);
        let program = self.path().join(format!("{name}.{mpi}"));
        let mut command = if name.ends_with(".c") {
            let mut command = Command::new(format!("mpicc.{mpi}"));
            command.args(["-O0", "-Wall", "-Werror", "-I."]);
            command
        } else if name.ends_with(".cpp") {
            let mut command = Command::new(format!("mpicxx.{mpi}"));
            // The MPIs' own headers have casts that are warned about.
            command.args([
                "-std=c++11",
                "-O0",
                "-Wall",
                "-Werror",
                "-Wno-cast-function-type",
                "-I.",
            ]);
            command
        } else {
            let compiler = format!("mpif90.{mpi}");
            let module = ["-fsyntax-only", "pnetcdf.f90"];
            compilers::run(Command::new(&compiler).args(module).current_dir(self.path()));
            let mut command = Command::new(compiler);
            command.args(["-O1", "-g", "-fcheck=all", "-I."]);
            if name.ends_with(".f") {
                // Fortran 77 gives buffers of several types to one function.
                command.arg("-std=legacy");
            }
            command
        };
        command.arg(source).arg("-L.");
        if name.ends_with(".cpp") {
            command.arg("-lpnetcdf_cxx");
        }
        command.args(["-lpnetcdf", "-o"]).arg(&program);
        compilers::run(command.current_dir(self.path()));
        program
    }

    /// Runs a program on so many ranks, with these variables of the environment.
    pub(crate) fn run(
        &self,
        (mpi, flags): &(&str, Vec<&str>),
        ranks: usize,
        variables: &[&str],
        program: &Path,
        arguments: &[&str],
    ) -> Output {
        let library = format!("LD_LIBRARY_PATH={}", self.path().display());
        Command::new("timeout")
            .args(["-k", "5", "300", &format!("mpiexec.{mpi}")])
            .args(flags)
            .args(["-n", &ranks.to_string(), "env", &library])
            .args(variables)
            .arg(program)
            .args(arguments)
            .current_dir(self.path())
            .output()
            .unwrap()
    }

    /// Runs a program that must succeed; gives all it printed.
    pub(crate) fn succeeds(
        &self,
        mpi: &(&str, Vec<&str>),
        ranks: usize,
        variables: &[&str],
        program: &Path,
        arguments: &[&str],
    ) -> String {
        let out = self.run(mpi, ranks, variables, program, arguments);
        let text = format!(
            "{}{}",
            String::from_utf8_lossy(&out.stdout),
            String::from_utf8_lossy(&out.stderr)
        );
        let name = program.display();
        assert!(out.status.success(), "{name} on {ranks} ranks, {variables:?}:\n{text}");
        text
    }
}
