//! Jobs under MPICH and OpenMPI, each started by its own launcher.
//!
//! One job runs at a time in a test program: more would only wait for each other's cores. What a
//! rank says before it aborts the job can be lost with its standard error (MPICH's launcher does
//! not always read the last of it): a test that wants to know looks at [`Ended::told`], which is what ranks
//! wrote to the file that `$ESKER_TEST_TOLD` names.

use std::io::Read;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{JoinHandle, sleep};
use std::time::{Duration, Instant};

use crate::ranks::HANG;

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// A launcher, and what its jobs are to have.
#[derive(Debug, Clone)]
pub struct Mpi {
    /// As its ABI is called.
    pub name: &'static str,
    /// As its commands end: `mpicc.mpich`.
    pub suffix: &'static str,
    /// The launcher.
    pub mpiexec: String,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// The environment of the launcher, which ranks inherit.
    pub variables: Vec<(String, String)>,
    /// Where the job runs.
    pub directory: Option<PathBuf>,
}

/// A job under way.
#[derive(Debug)]
pub struct Job {
    /// The launcher and the words of its ranks.
    pub name: String,
    child: Child,
    output: JoinHandle<String>,
    errors: JoinHandle<String>,
    start: Instant,
    told: tempfile::NamedTempFile,
    _alone: Option<MutexGuard<'static, ()>>,
}

/// What a job did.
#[derive(Debug)]
pub struct Ended {
    /// The exit code; none after a signal.
    pub code: Option<i32>,
    /// What was written to standard output.
    pub output: String,
    /// What was written to standard error; after an abort not always all of it.
    pub errors: String,
    /// What ranks wrote to the file that `$ESKER_TEST_TOLD` names.
    pub told: String,
}

impl Ended {
    /// Whether the launcher ended with 0.
    pub fn succeeded(&self) -> bool {
        self.code == Some(0)
    }
}

impl Mpi {
    /// MPICH's. Its ranks yield too, unless `$ESKER_TEST_MPI_POLLS` is set.
    pub fn mpich() -> Mpi {
        let preload = yielding().map(|library| ["-genv".into(), "LD_PRELOAD".into(), library]);
        Mpi {
            name: "MPICH",
            suffix: "mpich",
            mpiexec: "mpiexec.mpich".into(),
            arguments: preload.into_iter().flatten().collect(),
            variables: Vec::new(),
            directory: None,
        }
    }

    /// OpenMPI's. Ranks yield, because tests have more of them than there are cores.
    pub fn open_mpi() -> Mpi {
        let arguments =
            ["--allow-run-as-root", "--oversubscribe", "--mca", "mpi_yield_when_idle", "1"];
        Mpi {
            name: "OpenMPI",
            suffix: "openmpi",
            mpiexec: "mpiexec.openmpi".into(),
            arguments: arguments.map(String::from).into(),
            ..Mpi::mpich()
        }
    }

    /// The MPIs that are installed; each that is not is a skip.
    pub fn here() -> Vec<Mpi> {
        [Mpi::mpich(), Mpi::open_mpi()].into_iter().filter(Mpi::is_here).collect()
    }

    /// Whether the launcher is there; a skip if it is not.
    pub fn is_here(&self) -> bool {
        if self.mpiexec.contains('/') {
            return PathBuf::from(&self.mpiexec).is_file();
        }
        crate::programs::have(&self.mpiexec)
    }

    /// With one more variable of the environment.
    pub fn with(mut self, name: &str, value: &str) -> Mpi {
        self.variables.push((name.into(), value.into()));
        self
    }

    /// With more arguments for the launcher.
    pub fn with_arguments(mut self, arguments: &[&str]) -> Mpi {
        self.arguments.extend(arguments.iter().map(|argument| argument.to_string()));
        self
    }

    /// In this directory.
    pub fn in_directory(mut self, directory: impl Into<PathBuf>) -> Mpi {
        self.directory = Some(directory.into());
        self
    }

    /// Starts groups of ranks, each with its program and words.
    pub fn start(&self, groups: &[(usize, &[&str])]) -> Job {
        let alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        self.started(groups, Some(alone))
    }

    /// The same while another job of this test is under way, whose turn it shares.
    pub fn start_beside(&self, _other: &Job, groups: &[(usize, &[&str])]) -> Job {
        self.started(groups, None)
    }

    fn started(&self, groups: &[(usize, &[&str])], alone: Option<MutexGuard<'static, ()>>) -> Job {
        let mut command = Command::new(&self.mpiexec);
        command.args(&self.arguments);
        for (i, (ranks, words)) in groups.iter().enumerate() {
            if i > 0 {
                command.arg(":");
            }
            command.args(["-n", &ranks.to_string()]).args(*words);
        }
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        let told = tempfile::NamedTempFile::new().unwrap();
        command.env("ESKER_TEST_TOLD", told.path());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        if let Some(directory) = &self.directory {
            command.current_dir(directory);
        }
        let mut child = command.spawn().unwrap();
        // Read by threads, so that a full pipe cannot stop the job.
        let output = read(child.stdout.take().unwrap());
        let errors = read(child.stderr.take().unwrap());
        let name = format!("{}: {groups:?}", self.name);
        let start = Instant::now();
        Job { name, child, output, errors, start, told, _alone: alone }
    }

    /// Runs a program to its end.
    pub fn run(&self, ranks: usize, words: &[&str]) -> Ended {
        self.start(&[(ranks, words)]).end()
    }
}

/// A library to be loaded first: MPICH's ranks never give up a core while they wait, and with more ranks than cores a job takes
/// many times as long, and all that runs beside it. `None` where it cannot be compiled: then they do.
fn yielding() -> Option<String> {
    static LIBRARY: OnceLock<Option<String>> = OnceLock::new();
    LIBRARY
        .get_or_init(compiled)
        .clone()
        .filter(|_| std::env::var_os("ESKER_TEST_MPI_POLLS").is_none())
}

fn compiled() -> Option<String> {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/../esker-bench/peers/mpich-yield.c");
    // Beside the test program, where nobody else writes; several of them may be making it.
    let mine = std::env::current_exe().ok()?.with_file_name("mpich-yield.so");
    let draft = mine.with_extension(format!("{}.so", std::process::id()));
    let mut compile = Command::new("cc");
    compile.args(["-O2", "-shared", "-fPIC", "-o"]).arg(&draft).args([source, "-ldl"]);
    let made = compile.stderr(Stdio::null()).status().is_ok_and(|status| status.success());
    made.then(|| std::fs::rename(&draft, &mine).ok())??;
    mine.to_str().map(String::from)
}

fn read(mut from: impl Read + Send + 'static) -> JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = from.read_to_end(&mut bytes);
        // OpenMPI gives rank 0 a terminal of its own, which ends lines with both characters.
        String::from_utf8_lossy(&bytes).replace("\r\n", "\n")
    })
}

impl Job {
    /// How long it has been running.
    pub fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }

    /// Waits until `ready` gives something.
    ///
    /// # Panics
    /// If the job ends before that, or hangs.
    pub fn wait_for<T>(&mut self, mut ready: impl FnMut() -> Option<T>) -> T {
        loop {
            if let Some(found) = ready() {
                return found;
            }
            if let Some(ended) = self.child.try_wait().unwrap() {
                // What its ranks said is all that tells why.
                let mut said = String::new();
                for pipe in [&mut self.output, &mut self.errors] {
                    let read = std::mem::replace(pipe, std::thread::spawn(String::new));
                    said.push_str(&read.join().unwrap_or_default());
                }
                panic!("{} ended too early: {ended:?}\n{said}", self.name);
            }
            assert!(self.elapsed() < HANG, "{} does not get there within {HANG:?}", self.name);
            sleep(Duration::from_millis(1));
        }
    }

    /// Waits for the end.
    ///
    /// # Panics
    /// If the job hangs.
    pub fn end(mut self) -> Ended {
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            if self.start.elapsed() > HANG {
                // The launcher takes its ranks with it if it is asked to end.
                let _ = Command::new("kill").arg(self.child.id().to_string()).status();
                sleep(Duration::from_secs(10));
                let _ = self.child.kill();
                let _ = self.child.wait();
                panic!("{} ran for more than {HANG:?}", self.name);
            }
            sleep(Duration::from_millis(2));
        };
        Ended {
            code: status.code(),
            output: self.output.join().unwrap(),
            errors: self.errors.join().unwrap(),
            told: std::fs::read_to_string(self.told.path()).unwrap_or_default(),
        }
    }
}
