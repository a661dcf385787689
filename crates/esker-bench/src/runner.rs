//! Running kernels on Esker and its peers in turn.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use thiserror::Error;

use crate::compare::first_difference;
use crate::kernels::{DecompositionMap, Kernel, Scale};
use crate::machine::Machine;
use crate::measure::Measurement;
use crate::plan::Plan;
use crate::report::{KernelReport, LibraryReport, Report};
use crate::worker::{Engine, Job, Ranks};
use crate::{maps_folder, peer, plan_file, process};

/// Someone who can carry out a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Library {
    /// Esker on one kind of ranks.
    Esker(Ranks),
    /// Esker behind PnetCDF's interface: the peer's compiled program with our library.
    Capi,
    /// PnetCDF on OpenMPI, as Debian packages it.
    Pnetcdf(MpiIo),
    /// Plain writes and reads from the same kind of ranks as Esker's.
    Posix(Ranks),
}

impl Library {
    /// The name that tables and JSON use.
    pub fn name(self) -> &'static str {
        match self {
            Library::Esker(Ranks::Threads) => "esker",
            Library::Esker(Ranks::Mpi) => "esker-mpi",
            Library::Capi => "esker-capi",
            Library::Pnetcdf(MpiIo::Ompio) => "pnetcdf",
            Library::Pnetcdf(MpiIo::Romio) => "pnetcdf-romio",
            Library::Posix(_) => "posix",
        }
    }
}

/// Which of OpenMPI's two implementations of MPI-IO is under PnetCDF.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MpiIo {
    /// Its own, the default.
    Ompio,
    /// ROMIO, as in MPICH. Sometimes faster and sometimes slower.
    Romio,
}

/// What Esker is compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Peer {
    /// PnetCDF.
    Pnetcdf,
    /// PnetCDF over ROMIO.
    PnetcdfRomio,
    /// Plain `pwrite` and `pread`.
    Posix,
}

impl Peer {
    /// The peer of that name.
    pub fn from_name(name: &str) -> Option<Peer> {
        match name {
            "pnetcdf" => Some(Peer::Pnetcdf),
            "pnetcdf-romio" => Some(Peer::PnetcdfRomio),
            "posix" => Some(Peer::Posix),
            _ => None,
        }
    }
}

/// What to run.
#[derive(Debug, Clone)]
pub struct Options {
    /// The kernels.
    pub kernels: Vec<Kernel>,
    /// How many ranks.
    pub ranks: usize,
    /// How large.
    pub scale: Scale,
    /// Esker's ranks; the first kind is what the peers are compared with.
    pub comm: Vec<Ranks>,
    /// A folder with Esker's `libpnetcdf.so`: the peer's compiled program runs on that first,
    /// with `LD_LIBRARY_PATH` the only difference, and the rest is compared with it.
    pub capi: Option<PathBuf>,
    /// The peers.
    pub peers: Vec<Peer>,
    /// How often each is run.
    pub repeat: usize,
    /// Where files are written; they are removed.
    pub dir: PathBuf,
    /// Whether the time includes waiting for the disk.
    pub sync: bool,
    /// Where E3SM's maps are.
    pub maps: Option<PathBuf>,
    /// The program, with its first arguments, that calls
    /// [`run_from_arguments`](crate::worker::run_from_arguments) with what is added. Without it
    /// thread-ranks run in this process, and there are no MPI ranks.
    pub worker: Vec<OsString>,
    /// The longest that one run may take.
    pub limit: Duration,
}

impl Options {
    /// All kernels on two thread-ranks beside PnetCDF, five times, in `dir`.
    pub fn new(dir: impl Into<PathBuf>) -> Options {
        Options {
            kernels: Kernel::ALL.to_vec(),
            ranks: 2,
            scale: Scale::default(),
            comm: vec![Ranks::Threads],
            capi: None,
            peers: vec![Peer::Pnetcdf],
            repeat: 5,
            dir: dir.into(),
            sync: false,
            maps: None,
            worker: Vec::new(),
            limit: Duration::from_secs(600),
        }
    }

    /// Everyone who takes part, Esker first.
    fn libraries(&self) -> Vec<Library> {
        let ranks = self.comm.first().copied().unwrap_or(Ranks::Threads);
        let peers = self.peers.iter().map(|peer| match peer {
            Peer::Pnetcdf => Library::Pnetcdf(MpiIo::Ompio),
            Peer::PnetcdfRomio => Library::Pnetcdf(MpiIo::Romio),
            Peer::Posix => Library::Posix(ranks),
        });
        let capi = self.capi.iter().map(|_| Library::Capi);
        capi.chain(self.comm.iter().copied().map(Library::Esker)).chain(peers).collect()
    }
}

/// Why nothing could be run.
#[derive(Debug, Error)]
pub enum BenchError {
    /// The folder cannot be used.
    #[error("the folder {dir} cannot be used: {source}")]
    Dir {
        /// The folder.
        dir: String,
        /// What the system said.
        source: io::Error,
    },
}

/// Runs the kernels. `progress` is told what comes next.
pub fn run(options: &Options, progress: &mut dyn FnMut(&str)) -> Result<Report, BenchError> {
    let unusable = |source| BenchError::Dir { dir: options.dir.display().to_string(), source };
    fs::create_dir_all(&options.dir).map_err(unusable)?;
    let folder = options.dir.join(format!("esker-bench-{}", std::process::id()));
    fs::create_dir_all(&folder).map_err(unusable)?;
    let bench = Bench { options, folder: &folder };
    let kernels = options.kernels.iter().map(|kernel| bench.kernel(*kernel, progress)).collect();
    fs::remove_dir_all(&folder).map_err(unusable)?;
    Ok(Report {
        machine: Machine::here(&options.dir),
        ranks: options.ranks,
        repeat: options.repeat,
        sync: options.sync,
        libraries: options.libraries(),
        kernels,
    })
}

struct Bench<'a> {
    options: &'a Options,
    folder: &'a Path,
}

impl Bench<'_> {
    fn plan(&self, kernel: Kernel) -> Result<Plan, String> {
        let map = match (kernel.case(), maps_folder(self.options.maps.as_deref())) {
            (Some(case), Some(folder)) => {
                Some(DecompositionMap::read(case, &folder).map_err(|e| e.to_string())?)
            }
            _ => None,
        };
        let plan = kernel.plan(self.options.ranks, &self.options.scale, map.as_ref());
        plan.map_err(|e| e.to_string())
    }

    fn kernel(&self, kernel: Kernel, progress: &mut dyn FnMut(&str)) -> KernelReport {
        let mut report =
            KernelReport { kernel, bytes: 0, runs: 0, variables: 0, libraries: vec![] };
        let libraries = self.options.libraries();
        let file = self.folder.join("plan");
        let planned = self.plan(kernel).and_then(|plan| {
            (report.bytes, report.runs) = (plan.bytes(), plan.runs());
            report.variables = plan.vars.len();
            fs::write(&file, plan_file::encode(&plan)).map_err(|e| e.to_string())
        });
        report.libraries = libraries.iter().map(|library| LibraryReport::new(*library)).collect();
        if let Err(why) = planned {
            report.libraries.iter_mut().for_each(|l| l.fault = Some(why.clone()));
            return report;
        }
        let output = |library: Library| self.folder.join(format!("{}.nc", library.name()));
        for round in 0..self.options.repeat.max(1) {
            // Whoever starts has the machine as the round before left it: take turns.
            for turn in 0..libraries.len() {
                let i = (round + turn) % libraries.len();
                let library = libraries[i];
                let entry = &mut report.libraries[i];
                if entry.fault.is_some() {
                    continue;
                }
                progress(&format!("{} {}: {}", kernel.name(), round + 1, library.name()));
                match self.once(library, &file, &output(library)) {
                    Ok(measured) if measured.wrong > 0 => {
                        let wrong = measured.wrong;
                        entry.fault = Some(format!("{wrong} values were read that are wrong"));
                    }
                    Ok(measured) => entry.runs.push(measured),
                    Err(why) => entry.fault = Some(why),
                }
                if round > 0 {
                    let _ = fs::remove_file(output(library));
                }
            }
            if round == 0 {
                self.compare(&mut report, &output);
                for library in &libraries {
                    // One that failed has left no file.
                    let _ = fs::remove_file(output(*library));
                }
            }
        }
        report
    }

    /// Compares the netCDF files of the first round with Esker's.
    fn compare(&self, report: &mut KernelReport, output: &dyn Fn(Library) -> PathBuf) {
        let Some((esker, others)) = report.libraries.split_first_mut() else { return };
        for other in others {
            let both = esker.fault.is_none() && other.fault.is_none();
            if !both || matches!(other.library, Library::Posix(_)) {
                continue;
            }
            match first_difference(&output(esker.library), &output(other.library)) {
                Ok(None) => other.equal = Some(true),
                Ok(Some(variable)) => {
                    other.equal = Some(false);
                    let what = format!("its file and Esker's differ in {variable}");
                    other.fault = Some(what);
                }
                Err(error) => other.fault = Some(error.to_string()),
            }
        }
    }

    fn once(&self, library: Library, plan: &Path, file: &Path) -> Result<Measurement, String> {
        let Options { ranks, sync, limit, .. } = *self.options;
        let (engine, kind) = match library {
            Library::Pnetcdf(_) | Library::Capi => {
                let program = peer::pnetcdf(&peer::cache_folder(&self.options.dir))?;
                let mut command = peer::mpiexec(ranks);
                if library == Library::Pnetcdf(MpiIo::Romio) {
                    command.args(["--mca", "io", "romio321"]);
                }
                if let (Library::Capi, Some(folder)) = (library, &self.options.capi) {
                    command.env("LD_LIBRARY_PATH", folder);
                }
                command.arg(program).arg(plan).arg(file);
                command.arg(if sync { "sync" } else { "nosync" });
                return parse(&process::output(command, limit)?);
            }
            Library::Esker(kind) => (Engine::Esker, kind),
            Library::Posix(kind) => (Engine::Posix, kind),
        };
        let (plan, file) = (plan.to_path_buf(), file.to_path_buf());
        let job = Job { engine, ranks: kind, plan, file, sync };
        let mut command = match (self.options.worker.split_first(), kind) {
            (Some((program, first)), Ranks::Threads) => {
                let mut command = Command::new(program);
                command.args(first);
                command
            }
            (Some((program, first)), Ranks::Mpi) => {
                let mut command = peer::mpiexec(ranks);
                command.arg(program).args(first);
                command
            }
            (None, Ranks::Mpi) => {
                return Err(
                    "MPI ranks need the command `esker`, which they are started from".into()
                );
            }
            (None, Ranks::Threads) => {
                let measured = job.run().map_err(|e| e.to_string())?;
                return measured.ok_or_else(|| "nothing was measured".into());
            }
        };
        command.args(job.arguments());
        parse(&process::output(command, limit)?)
    }
}

fn parse(printed: &str) -> Result<Measurement, String> {
    let json = printed.find('{').map(|at| &printed[at..]).unwrap_or("");
    let value = serde_json::from_str(json).ok();
    value.as_ref().and_then(Measurement::from_json).ok_or_else(|| {
        let start: String = printed.chars().take(80).collect();
        format!("no measurement was printed but {start:?}")
    })
}
