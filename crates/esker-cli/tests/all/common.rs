//! Running the binary, and what tests ask of a run.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

pub(crate) use esker_testkit::data::shared as shared_data;
pub(crate) use esker_testkit::programs::have;

/// The binary with a plain environment: no colours, no terminal.
pub(crate) fn esker(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_esker"));
    command.args(arguments);
    for name in ["NO_COLOR", "COLORTERM", "CLICOLOR", "CLICOLOR_FORCE"] {
        command.env_remove(name);
    }
    command
}

/// What a finished run said and how it ended.
pub(crate) struct Run {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl From<Output> for Run {
    fn from(output: Output) -> Run {
        let text = |bytes: Vec<u8>| match String::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => panic!("the output is not UTF-8: {}", error.utf8_error()),
        };
        Run { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
    }
}

/// Runs the binary to its end.
pub(crate) fn run(arguments: &[&str]) -> Run {
    esker(arguments).output().expect("the binary starts").into()
}

/// Runs the binary, which must succeed quietly, and gives its standard output.
pub(crate) fn good(arguments: &[&str]) -> String {
    let run = run(arguments);
    assert_eq!(run.code, Some(0), "esker {arguments:?}: {}", run.err);
    run.out
}

/// The classic files among the shared test data, in the order of their names.
pub(crate) fn classic_files() -> Vec<PathBuf> {
    let mut files = esker_testkit::data::files("netcdf_classic");
    files.retain(|path| path.extension().is_some_and(|e| e != "md" && e != "json" && e != "txt"));
    files
}

/// `esker … | head -1`: the reader goes away after one line.
pub(crate) fn first_line_then_closed(arguments: &[&str]) -> (String, Option<i32>, String) {
    let mut child = esker(arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    let mut line = String::new();
    let mut out = BufReader::with_capacity(1, child.stdout.take().expect("a pipe"));
    out.read_line(&mut line).expect("a line");
    drop(out);
    let ended = child.wait_with_output().expect("it ends");
    (line, ended.status.code(), String::from_utf8_lossy(&ended.stderr).into_owned())
}

/// A Python with xarray.
pub(crate) fn python() -> Option<Command> {
    esker_testkit::python::with("netCDF4, xarray").map(Command::new)
}

/// An MPI with its launcher.
pub(crate) struct Mpi {
    /// As its ABI is called.
    pub(crate) name: &'static str,
    launcher: esker_testkit::mpi::Mpi,
}

impl Mpi {
    /// The MPIs that are installed.
    pub(crate) fn here() -> Vec<Mpi> {
        let here = esker_testkit::mpi::Mpi::here().into_iter();
        here.map(|launcher| Mpi { name: launcher.name, launcher }).collect()
    }

    /// Runs the binary on so many ranks.
    pub(crate) fn run(&self, ranks: usize, arguments: &[&str]) -> Run {
        let program = [env!("CARGO_BIN_EXE_esker"), "--color", "never"];
        let ended = self.launcher.run(ranks, &[&program, arguments].concat());
        Run { code: ended.code, out: ended.output, err: ended.errors }
    }
}
