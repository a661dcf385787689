//! PnetCDF's side: a C program of our own, compiled where its packages are.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::process;

/// The program.
const SOURCE: &str = include_str!("../peers/pnetcdf.c");

/// How MPI programs are compiled and started. Debian's PnetCDF is built on OpenMPI.
const COMPILER: &str = "mpicc.openmpi";
const LAUNCHER: &str = "mpiexec.openmpi";

/// A command that starts `ranks` MPI ranks, to which the program and its arguments are added.
///
/// Esker's MPI ranks and the peers' are treated alike: not bound to cores, and yielding while
/// they wait, since there may be more ranks than cores.
pub(crate) fn mpiexec(ranks: usize) -> Command {
    let mut command = Command::new(LAUNCHER);
    let ranks = ranks.to_string();
    command.args(["--allow-run-as-root", "--oversubscribe", "--bind-to", "none"]);
    command.args(["--mca", "mpi_yield_when_idle", "1", "-n", &ranks]);
    command
}

/// Compiles the program, unless it was compiled before, and returns where it is.
pub(crate) fn pnetcdf(cache: &Path) -> Result<PathBuf, String> {
    let program = cache.join(format!("pnetcdf-{:016x}", fingerprint(SOURCE)));
    if program.is_file() {
        return Ok(program);
    }
    fs::create_dir_all(cache).map_err(|e| format!("{} cannot be made: {e}", cache.display()))?;
    let own = std::process::id();
    let source = cache.join(format!("pnetcdf-{own}.c"));
    let output = cache.join(format!("pnetcdf-{own}"));
    fs::write(&source, SOURCE).map_err(|e| format!("{}: {e}", source.display()))?;
    let mut compile = Command::new(COMPILER);
    compile.args(["-O2", "-o"]).arg(&output).arg(&source).arg("-lpnetcdf");
    let compiled = process::output(compile, std::time::Duration::from_secs(120));
    // Nothing depends on the source being gone.
    let _ = fs::remove_file(&source);
    match compiled {
        Ok(_) => {
            fs::rename(&output, &program).map_err(|e| format!("{}: {e}", program.display()))?;
            Ok(program)
        }
        Err(why) => {
            let packages = "it needs OpenMPI's compiler and PnetCDF (libpnetcdf-dev)";
            Err(format!("the peer's program cannot be compiled ({packages}): {why}"))
        }
    }
}

/// FNV-1a: a name for this version of the program, nothing more.
fn fingerprint(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// Where compiled programs are kept: the user's cache, or else `fallback`.
pub(crate) fn cache_folder(fallback: &Path) -> PathBuf {
    let of = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    let cache = of("XDG_CACHE_HOME").or_else(|| of("HOME").map(|home| home.join(".cache")));
    cache.map_or(fallback.to_path_buf(), |cache| cache.join("esker"))
}
