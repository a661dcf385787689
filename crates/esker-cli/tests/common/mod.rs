//! Running the binary, and what tests ask of a run.
#![allow(dead_code, missing_docs, unreachable_pub)]

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

/// The binary with a plain environment: no colours, no terminal.
pub fn esker(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_esker"));
    command.args(arguments);
    for name in ["NO_COLOR", "COLORTERM", "CLICOLOR", "CLICOLOR_FORCE"] {
        command.env_remove(name);
    }
    command
}

/// What a finished run said and how it ended.
pub struct Run {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
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
pub fn run(arguments: &[&str]) -> Run {
    esker(arguments).output().expect("the binary starts").into()
}

/// Runs the binary, which must succeed quietly, and gives its standard output.
pub fn good(arguments: &[&str]) -> String {
    let run = run(arguments);
    assert_eq!(run.code, Some(0), "esker {arguments:?}: {}", run.err);
    run.out
}

/// The real test data, when they are there: `$ESKER_SHARED_DATA`, or `shared/data` in a
/// directory above the checkout.
pub fn shared_data() -> Option<PathBuf> {
    let found = match std::env::var_os("ESKER_SHARED_DATA") {
        Some(path) => Some(PathBuf::from(path)),
        None => PathBuf::from(env!("CARGO_MANIFEST_DIR"))
            .ancestors()
            .map(|above| above.join("shared/data"))
            .find(|path| path.is_dir()),
    };
    if found.is_none() {
        println!("skipped: no shared test data (set ESKER_SHARED_DATA)");
    }
    found
}

/// The classic files among the shared test data, in the order of their names.
pub fn classic_files() -> Vec<PathBuf> {
    let Some(data) = shared_data() else { return Vec::new() };
    let entries = std::fs::read_dir(data.join("netcdf_classic")).expect("the directory opens");
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|e| e != "md" && e != "json" && e != "txt"))
        .collect();
    files.sort();
    files
}

/// Whether a program of a peer is installed.
pub fn have(program: &str) -> bool {
    let there = std::env::var_os("PATH")
        .is_some_and(|path| std::env::split_paths(&path).any(|dir| dir.join(program).is_file()));
    if !there {
        println!("skipped: {program} is not installed");
    }
    there
}

/// `esker … | head -1`: the reader goes away after one line.
pub fn first_line_then_closed(arguments: &[&str]) -> (String, Option<i32>, String) {
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

/// A Python with xarray: `$ESKER_PYTHON`, or that of `.venv` in the checkout.
pub fn python() -> Option<Command> {
    let own = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../.venv/bin/python");
    let python = std::env::var_os("ESKER_PYTHON").map_or(own, PathBuf::from);
    let there = Command::new(&python).args(["-c", "import netCDF4, xarray"]).output();
    if there.is_ok_and(|output| output.status.success()) {
        return Some(Command::new(python));
    }
    println!("skipped: no Python with xarray (./test setup, or ESKER_PYTHON)");
    None
}

/// An MPI with its launcher.
pub struct Mpi {
    /// As its ABI is called.
    pub name: &'static str,
    mpiexec: &'static str,
    arguments: &'static [&'static str],
}

impl Mpi {
    /// The MPIs that are installed; says so of those that are not.
    pub fn here() -> Vec<Mpi> {
        let known = [
            Mpi { name: "MPICH", mpiexec: "mpiexec.mpich", arguments: &[] },
            Mpi {
                name: "OpenMPI",
                mpiexec: "mpiexec.openmpi",
                arguments: &["--allow-run-as-root", "--oversubscribe"],
            },
        ];
        known.into_iter().filter(|mpi| have("timeout") && have(mpi.mpiexec)).collect()
    }

    /// Runs the binary on so many ranks, for a minute at most.
    pub fn run(&self, ranks: usize, arguments: &[&str]) -> Run {
        let mut command = Command::new("timeout");
        command
            .args(["60", self.mpiexec])
            .args(self.arguments)
            .args(["-n", &ranks.to_string(), env!("CARGO_BIN_EXE_esker"), "--color", "never"])
            .args(arguments)
            .stdin(Stdio::null());
        let mut run: Run = command.output().expect("timeout starts").into();
        // OpenMPI gives rank 0 a terminal of its own, which ends lines with both characters.
        run.out = run.out.replace("\r\n", "\n");
        run
    }
}
