//! The peers' side: C programs of our own, compiled where the libraries are.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::time::Duration;

use crate::process;

/// The MPI of a program. Debian's PnetCDF and parallel netCDF-C are built on OpenMPI, and its
/// HDF5 on both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mpi {
    OpenMpi,
    Mpich,
}

impl Mpi {
    fn compiler(self) -> &'static str {
        match self {
            Mpi::OpenMpi => "mpicc.openmpi",
            Mpi::Mpich => "mpicc.mpich",
        }
    }
}

/// The longest that a compilation may take, and the building of a library.
const COMPILATION: Duration = Duration::from_secs(120);
const BUILDING: Duration = Duration::from_secs(3600);

/// What all programs include.
const SHARED: [(&str, &str); 3] = [
    ("plan.h", include_str!("../peers/plan.h")),
    ("on_pnetcdf.h", include_str!("../peers/on_pnetcdf.h")),
    ("chunked.h", include_str!("../peers/chunked.h")),
];

/// A program that carries out plans with another library.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Program {
    /// PnetCDF.
    Pnetcdf,
    /// The same program on a PnetCDF that has its burst buffer.
    PnetcdfBurstBuffer,
    /// A blob for each variable and rank through PnetCDF.
    Blobs,
    /// ADIOS2's BP5.
    Adios2,
    /// Parallel HDF5 on MPICH.
    Hdf5,
    /// The same program on OpenMPI.
    Hdf5OpenMpi,
    /// netCDF-C on parallel HDF5.
    Netcdf4,
    /// MPI-IO alone.
    MpiIo,
}

impl Program {
    fn name(self) -> &'static str {
        match self {
            Program::Pnetcdf => "pnetcdf",
            Program::PnetcdfBurstBuffer => "pnetcdf-bb",
            Program::Blobs => "blobs",
            Program::Adios2 => "adios2",
            Program::Hdf5OpenMpi => "hdf5-openmpi",
            Program::Hdf5 => "hdf5",
            Program::Netcdf4 => "netcdf4",
            Program::MpiIo => "mpi-io",
        }
    }

    fn source(self) -> &'static str {
        match self {
            Program::Pnetcdf | Program::PnetcdfBurstBuffer => include_str!("../peers/pnetcdf.c"),
            Program::Blobs => include_str!("../peers/blobs.c"),
            Program::Adios2 => include_str!("../peers/adios2.c"),
            Program::Hdf5OpenMpi | Program::Hdf5 => include_str!("../peers/hdf5.c"),
            Program::Netcdf4 => include_str!("../peers/netcdf4.c"),
            Program::MpiIo => include_str!("../peers/mpi-io.c"),
        }
    }

    /// The script that builds a library which Debian has not, or not so, and where it puts it.
    fn library(self) -> Option<(&'static str, &'static str)> {
        match self {
            Program::PnetcdfBurstBuffer => {
                Some((include_str!("../peers/pnetcdf-bb.sh"), "pnetcdf-bb"))
            }
            Program::Adios2 => Some((include_str!("../peers/adios2.sh"), "adios2")),
            _ => None,
        }
    }

    fn mpi(self) -> Mpi {
        if self == Program::Hdf5 { Mpi::Mpich } else { Mpi::OpenMpi }
    }

    /// The Debian packages that it is compiled and run with.
    fn packages(self) -> &'static str {
        match self {
            Program::Hdf5OpenMpi => "openmpi-bin libhdf5-openmpi-dev",
            Program::Hdf5 => "mpich libhdf5-mpich-dev",
            Program::Netcdf4 => "openmpi-bin libnetcdf-mpi-dev",
            Program::MpiIo => "openmpi-bin libopenmpi-dev",
            _ => "openmpi-bin libopenmpi-dev libpnetcdf-dev",
        }
    }

    /// What the compiler is told, with the library in `prefix` or as the system has it.
    fn flags(self, prefix: Option<&Path>) -> Vec<String> {
        let mut flags: Vec<String> = Vec::new();
        if let Some(prefix) = prefix {
            let prefix = prefix.display();
            flags.push(format!("-I{prefix}/include"));
            flags.push(format!("-L{prefix}/lib"));
            flags.push(format!("-Wl,-rpath,{prefix}/lib"));
        }
        let own: &[&str] = match self {
            Program::Pnetcdf | Program::Blobs => &["-lpnetcdf"],
            Program::PnetcdfBurstBuffer => &["-DNEEDS_BURST_BUFFER", "-lpnetcdf"],
            Program::Hdf5OpenMpi => &["-I/usr/include/hdf5/openmpi", "-lhdf5_openmpi"],
            Program::Hdf5 => &["-I/usr/include/hdf5/mpich", "-lhdf5_mpich"],
            Program::Netcdf4 => &["-lnetcdf_mpi"],
            Program::MpiIo => &[],
            Program::Adios2 => &["-DADIOS2_USE_MPI", "-ladios2_c_mpi", "-ladios2_c"],
        };
        flags.extend(own.iter().map(|flag| flag.to_string()));
        if self == Program::Netcdf4 {
            // Debian keeps the headers of the parallel build apart.
            let mut ask = Command::new(self.mpi().compiler());
            ask.arg("-print-multiarch");
            let machine = process::output(ask, COMPILATION).unwrap_or_default();
            flags.push(format!("-I/usr/lib/{}/netcdf/mpi/include", machine.trim()));
        }
        flags
    }

    /// Where the program is, which is compiled unless that was done before. With `build`, a
    /// library that it needs and that is not here is built in the cache.
    pub(crate) fn find(self, cache: &Path, build: bool) -> Result<PathBuf, String> {
        // Who comes second finds what the first has made.
        static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
        let _guard = ONE_AT_A_TIME.lock();
        let own = [self.source(), self.mpi().compiler()];
        let text: String = SHARED.iter().map(|(_, text)| *text).chain(own).collect();
        let program = cache.join(format!("{}-{:016x}", self.name(), fingerprint(&text)));
        if program.is_file() {
            return Ok(program);
        }
        let on_system = self.compile(&program, None);
        match (on_system, self.library()) {
            (Ok(()), _) => {}
            (Err(why), None) => {
                let needs = format!("apt-get install {}", self.packages());
                return Err(format!("the peer's program cannot be compiled ({needs}): {why}"));
            }
            (Err(_), Some((script, folder))) => {
                let prefix = cache.join(folder);
                if !prefix.is_dir() {
                    if !build {
                        return Err(format!("{}'s library is not built yet", self.name()));
                    }
                    self.build(script, cache)?;
                }
                let compiled = self.compile(&program, Some(&prefix));
                compiled.map_err(|why| format!("the peer's program cannot be compiled: {why}"))?;
            }
        }
        Ok(program)
    }

    fn compile(self, program: &Path, prefix: Option<&Path>) -> Result<(), String> {
        let folder = program.with_extension(std::process::id().to_string());
        let told = |e: std::io::Error| format!("{}: {e}", folder.display());
        fs::create_dir_all(&folder).map_err(told)?;
        let source = folder.join("peer.c");
        let made = (|| {
            for (name, text) in SHARED {
                fs::write(folder.join(name), text).map_err(told)?;
            }
            fs::write(&source, self.source()).map_err(told)?;
            let output = folder.join("peer");
            let mut compile = Command::new(self.mpi().compiler());
            compile.args(["-O2", "-o"]).arg(&output).arg(&source).args(self.flags(prefix));
            process::output(compile, COMPILATION)?;
            fs::rename(&output, program).map_err(told)
        })();
        // Nothing depends on the source being gone.
        let _ = fs::remove_dir_all(&folder);
        made
    }

    /// A command that starts this program, which [`find`](Self::find) found, on `ranks` ranks.
    pub(crate) fn launch(self, ranks: usize, program: &Path) -> Command {
        match self.mpi() {
            Mpi::OpenMpi => mpiexec(ranks),
            Mpi::Mpich => {
                let mut command = Command::new("mpiexec.mpich");
                if let Some(library) = yielding(program) {
                    command.arg("-genv").arg("LD_PRELOAD").arg(library);
                }
                command.args(["-bind-to", "none", "-n", &ranks.to_string()]);
                command
            }
        }
    }

    fn build(self, script: &str, cache: &Path) -> Result<(), String> {
        let file = cache.join(format!("{}.sh", self.name()));
        fs::write(&file, script).map_err(|e| format!("{}: {e}", file.display()))?;
        let mut command = Command::new("sh");
        command.arg(&file).arg(cache);
        let built = process::output(command, BUILDING);
        built.map(|_| ()).map_err(|why| format!("{} cannot be built: {why}", self.name()))
    }
}

/// OpenMPI's launcher.
const MPIEXEC: &str = "mpiexec.openmpi";

/// Whether there is a launcher of MPI ranks.
pub(crate) fn has_mpiexec() -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(MPIEXEC).is_file())
}

/// A command that starts `ranks` MPI ranks, to which the program and its arguments are added.
///
/// Esker's MPI ranks and the peers' are treated alike: not bound to cores, and yielding while
/// they wait, since there may be more ranks than cores.
pub(crate) fn mpiexec(ranks: usize) -> Command {
    let mut command = Command::new(MPIEXEC);
    let ranks = ranks.to_string();
    command.args(["--allow-run-as-root", "--oversubscribe", "--bind-to", "none"]);
    command.args(["--mca", "mpi_yield_when_idle", "1", "-n", &ranks]);
    command
}

/// The hints of PnetCDF's burst buffer in a folder, on top of the user's own.
pub(crate) fn burst_buffer_hints(folder: &Path) -> String {
    let own = std::env::var("PNETCDF_HINTS").unwrap_or_default();
    let folder = folder.display();
    format!("{own};nc_burst_buf=enable;nc_burst_buf_dirname={folder};nc_burst_buf_overwrite=enable")
}

/// The library that makes MPICH yield, beside the program; `None` if it cannot be compiled.
fn yielding(program: &Path) -> Option<PathBuf> {
    let library = program.with_extension("yield.so");
    if !library.is_file() {
        let source = program.with_extension("yield.c");
        fs::write(&source, include_str!("../peers/mpich-yield.c")).ok()?;
        let mut compile = Command::new(Mpi::Mpich.compiler());
        compile.args(["-O2", "-shared", "-fPIC", "-o"]).arg(&library).arg(&source).arg("-ldl");
        process::output(compile, COMPILATION).ok()?;
    }
    Some(library)
}

/// FNV-1a: a name for this version of the program, nothing more.
fn fingerprint(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
