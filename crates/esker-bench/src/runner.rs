//! Running kernels on Esker and its peers in turn.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use esker_store::{Draft, LocalStore, Store};
use thiserror::Error;

use crate::cache::Cache;
use crate::compare::first_difference;
use crate::kernels::{Kernel, Scale};
use crate::layout::{Layout, burst_buffer};
use crate::machine::Machine;
use crate::measure::Measurement;
use crate::peer::Program;
use crate::plan::Plan;
use crate::posix::Files;
use crate::reading::Reading;
use crate::report::{KernelReport, LibraryReport, Report};
use crate::worker::{Engine, Job, Part, Ranks};
use crate::{maps_folder, peer, plan_file, process};

/// Someone who can carry out a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Library {
    /// Esker on one kind of ranks, in one layout.
    Esker(Ranks, Layout),
    /// Esker behind PnetCDF's interface: the peer's compiled program with our library.
    Capi,
    /// Another library, or no library.
    Peer(Peer),
}

impl Library {
    /// The name that tables and JSON use.
    pub fn name(self) -> &'static str {
        match self {
            Library::Esker(Ranks::Threads, Layout::Canonical) => "esker",
            Library::Esker(Ranks::Threads, Layout::Log) => "esker-log",
            Library::Esker(Ranks::Threads, Layout::BurstBuffer) => "esker-bb",
            Library::Esker(Ranks::Threads, Layout::Decomposed) => "esker-decomposed",
            Library::Esker(Ranks::Threads, Layout::Chunked) => "esker-chunked",
            Library::Esker(Ranks::Mpi, Layout::Chunked) => "esker-mpi-chunked",
            Library::Esker(Ranks::Threads, Layout::Subfiles) => "esker-subfiles",
            Library::Esker(Ranks::Mpi, Layout::Canonical) => "esker-mpi",
            Library::Esker(Ranks::Mpi, Layout::Log) => "esker-mpi-log",
            Library::Esker(Ranks::Mpi, Layout::BurstBuffer) => "esker-mpi-bb",
            Library::Esker(Ranks::Mpi, Layout::Decomposed) => "esker-mpi-decomposed",
            Library::Esker(Ranks::Mpi, Layout::Subfiles) => "esker-mpi-subfiles",
            Library::Capi => "esker-capi",
            Library::Peer(peer) => peer.name(),
        }
    }

    /// Whether its files are datasets that can be compared.
    fn writes_the_variables(self) -> bool {
        match self {
            Library::Esker(..) | Library::Capi => true,
            Library::Peer(peer) => peer.is_a_way_to_pnetcdf() || peer == Peer::PnetcdfBurstBuffer,
        }
    }

    fn extension(self) -> &'static str {
        match self {
            Library::Esker(_, layout) => layout.extension(),
            Library::Peer(Peer::Adios2) => "bp",
            Library::Peer(Peer::Hdf5OpenMpi | Peer::Hdf5) => "h5",
            Library::Peer(_) | Library::Capi => "nc",
        }
    }
}

/// What Esker is compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Peer {
    /// PnetCDF on OpenMPI, as Debian packages it, over OpenMPI's own MPI-IO, the default.
    Pnetcdf,
    /// PnetCDF over ROMIO, as in MPICH. Sometimes faster and sometimes slower.
    PnetcdfRomio,
    /// PnetCDF called in the other way: what the kernel does by blocking calls is queued, with one wait.
    PnetcdfQueued,
    /// The same over ROMIO.
    PnetcdfRomioQueued,
    /// PnetCDF with its burst buffer in a folder beside the file.
    PnetcdfBurstBuffer,
    /// A contiguous blob for each variable and rank through PnetCDF, as E3SM does.
    Blobs,
    /// ADIOS2's BP5, a block for each request.
    Adios2,
    /// Parallel HDF5 on MPICH, as Debian packages it, with the kernel's chunks.
    Hdf5,
    /// The same program and library on OpenMPI. Slower where there are more ranks than cores.
    Hdf5OpenMpi,
    /// netCDF-4: netCDF-C on that HDF5.
    Netcdf4,
    /// Plain `pwrite` and `pread` from the same kind of ranks as Esker's.
    Posix,
    /// The same with a file for each rank.
    PosixFiles,
    /// MPI-IO, all ranks in one file, over OpenMPI's own layer.
    MpiIo,
    /// The same over ROMIO.
    MpiIoRomio,
}

impl Peer {
    /// All.
    pub const ALL: [Peer; 14] = [
        Peer::Pnetcdf,
        Peer::PnetcdfRomio,
        Peer::PnetcdfQueued,
        Peer::PnetcdfRomioQueued,
        Peer::PnetcdfBurstBuffer,
        Peer::Blobs,
        Peer::Adios2,
        Peer::Hdf5,
        Peer::Hdf5OpenMpi,
        Peer::Netcdf4,
        Peer::Posix,
        Peer::PosixFiles,
        Peer::MpiIo,
        Peer::MpiIoRomio,
    ];

    /// The name by which users call it.
    pub fn name(self) -> &'static str {
        match self {
            Peer::Pnetcdf => "pnetcdf",
            Peer::PnetcdfRomio => "pnetcdf-romio",
            Peer::PnetcdfQueued => "pnetcdf-queued",
            Peer::PnetcdfRomioQueued => "pnetcdf-romio-queued",
            Peer::PnetcdfBurstBuffer => "pnetcdf-bb",
            Peer::Blobs => "blobs",
            Peer::Adios2 => "adios2",
            Peer::Hdf5OpenMpi => "hdf5-openmpi",
            Peer::Hdf5 => "hdf5",
            Peer::Netcdf4 => "netcdf4",
            Peer::Posix => "posix",
            Peer::PosixFiles => "posix-files",
            Peer::MpiIo => "mpi-io",
            Peer::MpiIoRomio => "mpi-io-romio",
        }
    }

    /// The peer of that name.
    pub fn from_name(name: &str) -> Option<Peer> {
        Peer::ALL.into_iter().find(|peer| peer.name() == name)
    }

    /// Whether it is PnetCDF over one of its layers, called in one of two ways: who can choose takes the fastest.
    pub(crate) fn is_a_way_to_pnetcdf(self) -> bool {
        matches!(
            self,
            Peer::Pnetcdf | Peer::PnetcdfRomio | Peer::PnetcdfQueued | Peer::PnetcdfRomioQueued
        )
    }

    fn program(self) -> Option<Program> {
        match self {
            _ if self.is_a_way_to_pnetcdf() => Some(Program::Pnetcdf),
            Peer::PnetcdfBurstBuffer => Some(Program::PnetcdfBurstBuffer),
            Peer::Blobs => Some(Program::Blobs),
            Peer::Adios2 => Some(Program::Adios2),
            Peer::Hdf5OpenMpi => Some(Program::Hdf5OpenMpi),
            Peer::Hdf5 => Some(Program::Hdf5),
            Peer::Netcdf4 => Some(Program::Netcdf4),
            Peer::MpiIo | Peer::MpiIoRomio => Some(Program::MpiIo),
            _ => None,
        }
    }
}

/// What Esker's ranks are if nobody says so: MPI processes beside peers that are, with thread-ranks in a row of their own.
pub fn usual_ranks(peers: &[Peer]) -> Vec<Ranks> {
    match peers.iter().any(|peer| peer.program().is_some()) && peer::has_mpiexec() {
        true => vec![Ranks::Mpi, Ranks::Threads],
        false => vec![Ranks::Threads],
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
    /// Esker's layouts; the first is what the others are compared with.
    pub layouts: Vec<Layout>,
    /// What is read back.
    pub reading: Reading,
    /// A folder with Esker's `libpnetcdf.so`: the peer's compiled program runs on that first,
    /// with `LD_LIBRARY_PATH` the only difference, and the rest is compared with it.
    pub capi: Option<PathBuf>,
    /// Whether variables have chunks, and which filters those have. Layouts and peers without
    /// chunks write the same values as they can.
    pub chunks: Chunks,
    /// The peers.
    pub peers: Vec<Peer>,
    /// Whether a peer that has to be built may be, which takes minutes and downloads its source.
    pub build_peers: bool,
    /// Numbers of ranks on which Esker's datasets of the first round are read whole once more, and verified.
    pub read_ranks: Vec<usize>,
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
            layouts: vec![Layout::Canonical],
            reading: Reading::Requests,
            capi: None,
            chunks: Chunks::WhereNatural,
            peers: vec![Peer::Pnetcdf],
            build_peers: true,
            read_ranks: Vec::new(),
            repeat: 5,
            dir: dir.into(),
            sync: false,
            maps: None,
            worker: Vec::new(),
            limit: Duration::from_secs(600),
        }
    }

    /// The filters of chunks, if variables have chunks.
    fn pipeline(&self) -> Option<&str> {
        let natural = |peer: &Peer| matches!(peer, Peer::Hdf5OpenMpi | Peer::Hdf5 | Peer::Netcdf4);
        match &self.chunks {
            Chunks::Kernel(pipeline) => Some(pipeline),
            Chunks::WhereNatural
                if self.peers.iter().any(natural) || self.layouts.contains(&Layout::Chunked) =>
            {
                Some(Chunks::USUAL)
            }
            Chunks::WhereNatural | Chunks::Never => None,
        }
    }

    /// Everyone who takes part, Esker first.
    fn libraries(&self) -> Vec<Library> {
        let layouts = |ranks: &Ranks| {
            let ranks = *ranks;
            self.layouts.iter().map(move |layout| Library::Esker(ranks, *layout))
        };
        let peers = self.peers.iter().copied().map(Library::Peer);
        let capi = self.capi.iter().map(|_| Library::Capi);
        capi.chain(self.comm.iter().flat_map(layouts)).chain(peers).collect()
    }
}

/// Whether a kernel's variables have chunks.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Chunks {
    /// Where someone takes part for whom chunks are natural, with [`Chunks::USUAL`] filters.
    #[default]
    WhereNatural,
    /// Never: HDF5 and netCDF-4 write contiguous variables.
    Never,
    /// The kernel's, with these filters, as `deflate,1` or `shuffle zstd,3`; none if empty.
    Kernel(String),
}

impl Chunks {
    /// The filters that chunks have where nobody named others. The paper has level 6, which
    /// makes the compressor more of what is measured, and the library less.
    pub const USUAL: &str = "deflate,1";
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
    // A folder of our own in it, which goes in the end, whatever the end is.
    let store: Arc<dyn Store> = Arc::new(LocalStore);
    let folder = Draft::folder(&store, &options.dir.join("esker-bench"));
    let folder = folder.map_err(|error| unusable(error.source))?;
    let bench = Bench { options, folder: folder.path(), cache: OnceLock::new() };
    let kernels = options.kernels.iter().map(|kernel| bench.kernel(*kernel, progress)).collect();
    drop(bench);
    drop(folder);
    Ok(Report {
        machine: Machine::here(&options.dir),
        ranks: options.ranks,
        repeat: options.repeat,
        sync: options.sync,
        reading: options.reading,
        pipeline: options.pipeline().map(String::from),
        libraries: options.libraries(),
        kernels,
    })
}

struct Bench<'a> {
    options: &'a Options,
    folder: &'a Path,
    /// Where the peers' programs are, or why they cannot be there.
    cache: OnceLock<Result<Cache, String>>,
}

impl Bench<'_> {
    fn plan(&self, kernel: Kernel) -> Result<Plan, String> {
        let recorded = match maps_folder(self.options.maps.as_deref()) {
            Some(folder) if kernel.is_recorded() => {
                kernel.recorded(&folder).map_err(|e| e.to_string())?
            }
            _ => None,
        };
        let plan = kernel.plan(self.options.ranks, &self.options.scale, recorded.as_ref());
        let mut plan = plan.map_err(|e| e.to_string())?;
        if let Some(pipeline) = self.options.pipeline() {
            kernel.add_chunks(&mut plan, pipeline);
        }
        Ok(plan)
    }

    fn kernel(&self, kernel: Kernel, progress: &mut dyn FnMut(&str)) -> KernelReport {
        let mut report =
            KernelReport { kernel, bytes: 0, runs: 0, variables: 0, libraries: vec![] };
        let libraries = self.options.libraries();
        let files = PlanFiles::in_folder(self.folder, self.options.reading);
        let planned = self.plan(kernel).and_then(|plan| {
            (report.bytes, report.runs) = (plan.bytes(), plan.runs());
            report.variables = plan.vars.len();
            files.write(&plan, self.options.reading).map_err(|e| e.to_string())
        });
        report.libraries = libraries.iter().map(|library| LibraryReport::new(*library)).collect();
        if let Err(why) = planned {
            report.libraries.iter_mut().for_each(|l| l.fault = Some(why.clone()));
            return report;
        }
        let output = |library: Library| {
            self.folder.join(format!("{}.{}", library.name(), library.extension()))
        };
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
                match self.once(library, &files, &output(library)) {
                    Ok(measured) if measured.wrong > 0 => {
                        let wrong = measured.wrong;
                        entry.fault = Some(format!("{wrong} values were read that are wrong"));
                    }
                    Ok(measured) => {
                        entry.stored = stored(&output(library));
                        entry.runs.push(measured);
                    }
                    Err(why) => entry.fault = Some(why),
                }
                if round > 0 {
                    remove(&output(library));
                }
            }
            if round == 0 {
                self.compare(&mut report, &output);
                for entry in &mut report.libraries {
                    self.read_on_others(entry, &files, &output(entry.library), progress);
                }
                for library in &libraries {
                    remove(&output(*library));
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
            if !both || !other.library.writes_the_variables() {
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

    /// Reads what Esker wrote on other numbers of ranks.
    fn read_on_others(
        &self,
        entry: &mut LibraryReport,
        plans: &PlanFiles,
        file: &Path,
        progress: &mut dyn FnMut(&str),
    ) {
        for ranks in &self.options.read_ranks {
            if !matches!(entry.library, Library::Esker(..)) || entry.fault.is_some() {
                return;
            }
            progress(&format!("{} on {ranks} ranks", entry.library.name()));
            match self.part(entry.library, plans, file, Part::Read(*ranks)) {
                Ok(measured) if measured.wrong > 0 => {
                    let wrong = measured.wrong;
                    entry.fault = Some(format!("{wrong} values are wrong when {ranks} ranks read"));
                }
                Ok(measured) => entry.on_others.push((*ranks, measured)),
                Err(why) => entry.fault = Some(format!("{ranks} ranks: {why}")),
            }
        }
    }

    fn once(
        &self,
        library: Library,
        plans: &PlanFiles,
        file: &Path,
    ) -> Result<Measurement, String> {
        self.part(library, plans, file, Part::Whole)
    }

    fn part(
        &self,
        library: Library,
        plans: &PlanFiles,
        file: &Path,
        part: Part,
    ) -> Result<Measurement, String> {
        let Options { ranks, sync, limit, reading, .. } = *self.options;
        let ranks = match part {
            Part::Read(readers) => readers,
            Part::Whole | Part::Rest => ranks,
        };
        let (engine, kind) = match library {
            Library::Esker(kind, layout) => (Engine::Esker(layout), kind),
            Library::Capi => {
                let folder = self.options.capi.as_deref();
                return self.peer(Peer::Pnetcdf, Program::Pnetcdf, folder, plans, file);
            }
            Library::Peer(peer) => match peer.program() {
                Some(program) => return self.peer(peer, program, None, plans, file),
                None => {
                    let kind = self.options.comm.first().copied().unwrap_or(Ranks::Threads);
                    let own = peer == Peer::PosixFiles;
                    (Engine::Posix(if own { Files::Own } else { Files::Shared }), kind)
                }
            },
        };
        fs::create_dir_all(burst_buffer(file)).map_err(|e| e.to_string())?;
        let (plan, file) = (plans.written.clone(), file.to_path_buf());
        let job = Job { engine, ranks: kind, plan, file, sync, reading, part };
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

    fn peer(
        &self,
        peer: Peer,
        program: Program,
        library: Option<&Path>,
        plans: &PlanFiles,
        file: &Path,
    ) -> Result<Measurement, String> {
        let Options { ranks, sync, limit, build_peers, .. } = *self.options;
        let cache = self.cache.get_or_init(Cache::of_user).as_ref().map_err(Clone::clone)?;
        let found = program.find(cache.path(), build_peers)?;
        let mut command = program.launch(ranks, &found);
        if let Some(folder) = library {
            command.env("LD_LIBRARY_PATH", folder);
        }
        if matches!(peer, Peer::PnetcdfRomio | Peer::PnetcdfRomioQueued | Peer::MpiIoRomio) {
            command.args(["--mca", "io", "romio321"]);
        }
        if matches!(peer, Peer::PnetcdfQueued | Peer::PnetcdfRomioQueued) {
            command.args(["-x", "ESKER_BENCH_QUEUE=1"]);
        }
        if peer == Peer::PnetcdfBurstBuffer {
            let folder = burst_buffer(file);
            fs::create_dir_all(&folder).map_err(|e| e.to_string())?;
            command.env("PNETCDF_HINTS", peer::burst_buffer_hints(&folder));
        }
        command.arg(found).arg(&plans.written).arg(file);
        command.arg(if sync { "sync" } else { "nosync" }).args(&plans.read);
        let fault = plans.written.with_extension("fault");
        parse(&process::output_of_job(command, limit, &fault)?)
    }
}

/// The files of the plan by which is written, and of that by which is read if it is another.
struct PlanFiles {
    written: PathBuf,
    read: Option<PathBuf>,
}

impl PlanFiles {
    fn in_folder(folder: &Path, reading: Reading) -> PlanFiles {
        let read = (reading != Reading::Requests).then(|| folder.join("plan-of-reading"));
        PlanFiles { written: folder.join("plan"), read }
    }

    fn write(&self, plan: &Plan, reading: Reading) -> io::Result<()> {
        fs::write(&self.written, plan_file::encode(plan))?;
        match (&self.read, reading.plan(plan)) {
            (Some(file), Some(plan)) => fs::write(file, plan_file::encode(&plan)),
            _ => Ok(()),
        }
    }
}

/// Bytes of a file or of all files in a folder; 0 of what is not there.
fn stored(path: &Path) -> u64 {
    let Ok(facts) = path.symlink_metadata() else { return 0 };
    if !facts.is_dir() {
        return facts.len();
    }
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    entries.map(|entry| stored(&entry.path())).sum()
}

/// Removes a file or a folder. One that failed has left nothing.
fn remove(path: &Path) {
    for (subfile, _) in esker::Dataset::open(path).map_or(Vec::new(), |ds| ds.subfiles()) {
        let _ = fs::remove_file(subfile);
    }
    let _ = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
}

fn parse(printed: &str) -> Result<Measurement, String> {
    let json = printed.find('{').map(|at| &printed[at..]).unwrap_or("");
    let value = serde_json::from_str(json).ok();
    value.as_ref().and_then(Measurement::from_json).ok_or_else(|| {
        let start: String = printed.chars().take(80).collect();
        format!("no measurement was printed but {start:?}")
    })
}
