//! A folder with our headers and library, in which programs of `tests/programs` are compiled and
//! run under each MPI.

use std::path::{Path, PathBuf};
use std::process::Command;

use esker_testkit::mpi::{Ended, Mpi};
use esker_testkit::programs;

use crate::compilers::{on_our_library, our_library};

pub(crate) struct Place {
    dir: tempfile::TempDir,
}

impl Place {
    pub(crate) fn new() -> Place {
        let library = our_library();
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in [
            ("pnetcdf.h", pnetcdf::HEADER),
            ("esker_pnetcdf.h", pnetcdf::ESKER_HEADER),
            ("pnetcdf", pnetcdf::CXX_HEADER),
            ("pnetcdf.inc", pnetcdf::INCLUDE),
            ("pnetcdf.f90", pnetcdf::MODULE),
        ] {
            std::fs::write(dir.path().join(name), text).unwrap();
        }
        for name in ["libpnetcdf.so", "libpnetcdf.so.0d"] {
            std::os::unix::fs::symlink(&library, dir.path().join(name)).unwrap();
        }
        Place { dir }
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    /// Makes the library of the C++ classes, as the installer does.
    pub(crate) fn make_classes(&self) {
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
        let objects = ["1", "2", "3", "4"].map(|mpi| {
            let object = format!("classes-{mpi}.o");
            let (which, warnings) = (format!("-DESKER_MPI={mpi}"), ["-Wall", "-Wextra", "-Werror"]);
            let flags = ["-std=c++11", "-O0", "-fPIC", "-I.", &which, "-c", "pnetcdf.cpp", "-o"];
            let mut compile = Command::new("g++");
            programs::good(compile.args(flags).arg(&object).args(warnings).current_dir(&work));
            object
        });
        let flags = ["-shared", "-Wl,--allow-multiple-definition,-soname,libpnetcdf_cxx.so"];
        let mut link = Command::new("g++");
        link.args(flags).args(objects).args(["-o", "../libpnetcdf_cxx.so"]);
        programs::good(link.current_dir(&work));
    }

    /// Compiles a program by the language of its name.
    pub(crate) fn compile(&self, mpi: &Mpi, name: &str) -> PathBuf {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(name);
        let program = self.path().join(format!("{name}.{}", mpi.suffix));
        let with = |compiler: &str| Command::new(format!("{compiler}.{}", mpi.suffix));
        let mut command;
        let mut libraries = vec!["-lpnetcdf"];
        match name.rsplit_once('.').map(|(_, language)| language) {
            Some("c") => {
                command = with("mpicc");
                command.args(["-O0", "-Wall", "-Werror"]);
            }
            Some("cpp") => {
                command = with("mpicxx");
                // The MPIs' own headers have casts that are warned about.
                let warnings = ["-Wall", "-Werror", "-Wno-cast-function-type"];
                command.args(["-std=c++11", "-O0"]).args(warnings);
                libraries.insert(0, "-lpnetcdf_cxx");
            }
            language => {
                let module = ["-fsyntax-only", "pnetcdf.f90"];
                programs::good(with("mpif90").args(module).current_dir(self.path()));
                command = with("mpif90");
                command.args(["-O1", "-g", "-fcheck=all"]);
                if language == Some("f") {
                    // Fortran 77 gives buffers of several types to one function.
                    command.arg("-std=legacy");
                }
            }
        }
        command.arg("-I.").arg(source).arg("-L.").args(libraries).arg("-o").arg(&program);
        programs::good(command.current_dir(self.path()));
        program
    }

    /// Runs a program on so many ranks, with these variables of the environment.
    pub(crate) fn run(
        &self,
        mpi: &Mpi,
        ranks: usize,
        variables: &[&str],
        program: &Path,
        arguments: &[&str],
    ) -> Ended {
        let [env, library_path] = on_our_library(self.path());
        let program = [program.to_str().unwrap()];
        let words = [&[&env[..], &library_path][..], variables, &program, arguments].concat();
        mpi.clone().in_directory(self.path()).run(ranks, &words)
    }

    /// Runs a program that must succeed; gives all it printed.
    pub(crate) fn succeeds(
        &self,
        mpi: &Mpi,
        ranks: usize,
        variables: &[&str],
        program: &Path,
        arguments: &[&str],
    ) -> String {
        let ended = self.run(mpi, ranks, variables, program, arguments);
        let text = format!("{}{}", ended.output, ended.errors);
        let (name, mpi) = (program.display(), mpi.name);
        assert!(ended.succeeded(), "{name} on {ranks} ranks of {mpi}, {variables:?}:\n{text}");
        text
    }
}
