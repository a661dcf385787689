//! The suite under MPICH and OpenMPI, each started by its own mpiexec.
//!
//! An MPI that is not installed is skipped with a message. The standard ABI of MPI 5 is tried if
//! `ESKER_TEST_MPI_ABI_MPIEXEC` names an mpiexec whose installation has `libmpi_abi.so` (PyPI's
//! mpich), or `ESKER_TEST_MPI_ABI_LIB` names the library.
#![allow(missing_docs)]

use std::io::Read;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::thread::sleep;
use std::time::{Duration, Instant};

const SIZES: [usize; 7] = [1, 2, 3, 4, 7, 8, 16];

/// One MPI job at a time: more would only wait for each other's cores.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// A launcher and the variables that its program is to have.
struct Mpi {
    name: &'static str,
    mpiexec: String,
    arguments: &'static [&'static str],
    variables: Vec<(&'static str, String)>,
}

/// What a job did.
struct Outcome {
    succeeded: bool,
    output: String,
    errors: String,
    time: Duration,
}

impl Mpi {
    fn mpich() -> Self {
        Self { name: "MPICH", mpiexec: "mpiexec.mpich".into(), arguments: &[], variables: vec![] }
    }

    fn open_mpi() -> Self {
        Self {
            name: "OpenMPI",
            mpiexec: "mpiexec.openmpi".into(),
            arguments: &["--allow-run-as-root", "--oversubscribe"],
            variables: vec![],
        }
    }

    fn with(mut self, name: &'static str, value: &str) -> Self {
        self.variables.push((name, value.into()));
        self
    }

    /// Whether the launcher is there; says so if it is not.
    fn is_here(&self) -> bool {
        let found = Command::new(&self.mpiexec).arg("--version").output().is_ok();
        if !found {
            println!("skipped: there is no {} ({})", self.mpiexec, self.name);
        }
        found
    }

    /// Runs `comm-suite` on so many ranks, for a minute at most.
    fn run(&self, ranks: usize, words: &[&str]) -> Outcome {
        self.run_program(ranks, &[&[env!("CARGO_BIN_EXE_comm-suite")], words].concat())
    }

    fn run_program(&self, ranks: usize, words: &[&str]) -> Outcome {
        let mut command = Command::new(&self.mpiexec);
        command
            .args(self.arguments)
            .args(["-n", &ranks.to_string()])
            .args(words)
            .envs(self.variables.iter().map(|(name, value)| (*name, value)))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let start = Instant::now();
        let mut job = command.spawn().unwrap();
        let mut output = job.stdout.take().unwrap();
        let mut errors = job.stderr.take().unwrap();
        // Read by threads, so that a full pipe cannot stop the job.
        let output = std::thread::spawn(move || {
            let mut text = String::new();
            output.read_to_string(&mut text).map(|_| text)
        });
        let errors = std::thread::spawn(move || {
            let mut text = String::new();
            errors.read_to_string(&mut text).map(|_| text)
        });
        let status = loop {
            if let Some(status) = job.try_wait().unwrap() {
                break status;
            }
            if start.elapsed() > Duration::from_secs(60) {
                // The ranks end themselves a little later (see `watch` in comm-suite).
                job.kill().unwrap();
                job.wait().unwrap();
                panic!("{} on {ranks} ranks ran for more than a minute", self.name);
            }
            sleep(Duration::from_millis(10));
        };
        Outcome {
            succeeded: status.success(),
            output: output.join().unwrap().unwrap(),
            errors: errors.join().unwrap().unwrap(),
            time: start.elapsed(),
        }
    }

    /// Runs the suite and demands that it passed, once and not once for each rank.
    fn passes(&self, ranks: usize, effort: &[&str], abi: &str) {
        let outcome = self.run(ranks, effort);
        let Outcome { output, errors, .. } = &outcome;
        assert!(outcome.succeeded, "{} on {ranks} ranks:\n{output}\n{errors}", self.name);
        let expected = format!("checks passed on {ranks} ranks, {abi},");
        assert_eq!(output.matches(&expected).count(), 1, "{output}\n{errors}");
    }
}

fn effort(ranks: usize) -> &'static [&'static str] {
    if ranks < 7 { &[] } else { &["light"] }
}

#[test]
fn mpich_passes_the_suite_at_every_size() {
    let mpi = Mpi::mpich();
    if mpi.is_here() {
        SIZES.into_iter().for_each(|ranks| mpi.passes(ranks, effort(ranks), "MPICH"));
    }
}

#[test]
fn open_mpi_passes_the_suite_at_every_size() {
    let mpi = Mpi::open_mpi();
    if mpi.is_here() {
        SIZES.into_iter().for_each(|ranks| mpi.passes(ranks, effort(ranks), "OpenMPI"));
    }
}

#[test]
fn the_standard_abi_passes_the_suite() {
    let variable = |name| std::env::var(name).ok();
    let mpiexec = variable("ESKER_TEST_MPI_ABI_MPIEXEC");
    let library = variable("ESKER_TEST_MPI_ABI_LIB");
    if mpiexec.is_none() && library.is_none() {
        println!("skipped: neither ESKER_TEST_MPI_ABI_MPIEXEC nor ESKER_TEST_MPI_ABI_LIB is set");
        return;
    }
    let mut mpi = Mpi::mpich();
    mpi.mpiexec = mpiexec.unwrap_or(mpi.mpiexec);
    if let Some(library) = library {
        mpi = mpi.with("ESKER_MPI_LIB", &library);
    }
    SIZES.into_iter().for_each(|ranks| mpi.passes(ranks, effort(ranks), "MPI 5 standard"));
}

#[test]
fn long_messages_travel_in_pieces() {
    for (mpi, abi) in [(Mpi::mpich(), "MPICH"), (Mpi::open_mpi(), "OpenMPI")] {
        if mpi.is_here() {
            // Every message of the suite with more than 5000 bytes is a long one.
            mpi.with("ESKER_MPI_PIECE", "5000").passes(3, &["light"], abi);
        }
    }
}

#[test]
fn sparse_exchange_by_consensus_passes_the_suite() {
    for (mpi, abi) in [(Mpi::mpich(), "MPICH"), (Mpi::open_mpi(), "OpenMPI")] {
        if mpi.is_here() {
            let mpi = mpi.with("ESKER_MPI_CONSENSUS_FROM", "0");
            [2, 4, 8].into_iter().for_each(|ranks| mpi.passes(ranks, &["light"], abi));
            mpi.with("ESKER_MPI_PIECE", "5000").passes(4, &["light"], abi);
        }
    }
}

#[test]
fn one_thread_at_a_time_passes_the_suite() {
    for (mpi, abi) in [(Mpi::mpich(), "MPICH"), (Mpi::open_mpi(), "OpenMPI")] {
        if mpi.is_here() {
            mpi.with("ESKER_MPI_SERIALIZED", "1").passes(4, &["light"], abi);
        }
    }
}

#[test]
fn an_mpi_that_is_in_the_process_already_is_the_one_used() {
    let loaded =
        [(Mpi::mpich(), "libmpich.so.12", "MPICH"), (Mpi::open_mpi(), "libmpi.so.40", "OpenMPI")];
    for (mpi, library, abi) in loaded {
        if mpi.is_here() {
            let preload = format!("LD_PRELOAD={library}");
            let words = ["env", preload.as_str(), env!("CARGO_BIN_EXE_comm-suite"), "light"];
            let mpi = mpi.with("ESKER_MPI_LIB", "no-such-library.so");
            let outcome = mpi.run_program(2, &words);
            assert!(outcome.succeeded, "{}", outcome.errors);
            assert!(outcome.output.contains(abi), "{}", outcome.output);
        }
    }
}

#[test]
fn a_rank_that_fails_ends_the_job() {
    for mpi in [Mpi::mpich(), Mpi::open_mpi()] {
        if mpi.is_here() {
            let outcome = mpi.run(3, &["fail"]);
            assert!(!outcome.succeeded, "{}", outcome.output);
            assert!(outcome.errors.contains("rank 1 gives up"), "{}", outcome.errors);
            assert!(outcome.time < Duration::from_secs(20), "{:?}", outcome.time);
        }
    }
}

#[test]
fn a_library_of_another_family_than_the_launcher_is_refused() {
    let (mpich, open_mpi) = (Mpi::mpich(), Mpi::open_mpi());
    if mpich.is_here() && open_mpi.is_here() {
        let outcome = mpich.with("ESKER_MPI_LIB", "libmpi.so.40").run(2, &["light"]);
        assert!(!outcome.succeeded);
        let words = "the launcher started 2 ranks, but";
        assert!(outcome.errors.contains(words), "{}", outcome.errors);
    }
}

#[test]
fn without_a_launcher_a_program_is_alone_and_needs_no_mpi() {
    let run = Command::new(env!("CARGO_BIN_EXE_comm-suite"))
        .arg("light")
        .env("ESKER_MPI_LIB", "no-such-library.so")
        .output()
        .unwrap();
    let output = String::from_utf8_lossy(&run.stdout);
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    assert!(output.contains("checks passed on 1 ranks, no MPI"), "{output}");
}

#[test]
fn under_a_launcher_without_a_library_many_ranks_are_refused() {
    let mpi = Mpi::mpich();
    if mpi.is_here() {
        let outcome = mpi.with("ESKER_MPI_LIB", "no-such-library.so").run(2, &["light"]);
        assert!(!outcome.succeeded, "{}", outcome.output);
        assert!(outcome.errors.contains("MPI cannot be used"), "{}", outcome.errors);
    }
}
