//! `esker recover`: what a killed program wrote and did not get to promise.

mod checkpoints;
mod container;
mod file;

use std::path::PathBuf;
use std::sync::Arc;

use esker_store::{LocalStore, Store};

use crate::failure::{Ended, Failure};
use crate::terminal::Screen;

/// Finish what a writer that died has left in its logs
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A file: the logs of its burst buffer are replayed into it. They are looked for where
nc_burst_buf_dirname in PNETCDF_HINTS says (by default here), beside the file, and in every --dir.
They are removed when everything is in the file. Sub-files get the names that the writer did not
get to give them; those that are missing or not whole are told.

A container: everything is read and compared with its checksums. What is whole and was never
committed, and what was committed and is not damaged, become a new version; nothing that is there
is changed. Do not run it while a program writes to the container.

The folder of an adjoint run (RUN.chk): every checkpoint is read and compared with its checksums. What
is damaged or was never finished is removed; a resumed run computes it again. Refused while a program
runs with it.

What is damaged is told with its place, and the rest is recovered. It can be done again.

Exit codes: 0 nothing is missing, 1 something that a version had, or that had been promised, is
damaged or missing, 2 it cannot be told.

Examples:
  esker recover run.nc --dir /scratch/bb      replay the logs in a burst buffer
  esker recover run.nc --dir n1 --dir n2      of several nodes, brought together
  esker recover run.esk                       a container, after a crash
  esker recover run.esk --dry-run             only say what would be done
  esker recover run.chk                       an adjoint run, before it is resumed
  esker recover run.esk --json                every damage with its place, for a program")]
pub(super) struct Arguments {
    /// The file, container or folder of an adjoint run
    #[arg(value_name = "FILE")]
    path: PathBuf,
    /// A directory with logs of a file; may be given several times
    #[arg(long, value_name = "DIR")]
    dir: Vec<PathBuf>,
    /// Only say what would be done
    #[arg(short = 'n', long)]
    dry_run: bool,
    /// Leave the logs of a file where they are
    #[arg(long)]
    keep: bool,
    /// Do not write fill values to new records of a file
    #[arg(long)]
    no_fill: bool,
    /// Of a container: take in, too, what was never committed and has been passed over by later
    /// writers
    #[arg(long)]
    superseded: bool,
    /// JSON instead of text
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: &Arguments, screen: &mut Screen) -> Ended {
    let path = &arguments.path;
    // A container whose mark is damaged.
    let versions = ["versions", "refs"].map(|folder| path.join(folder));
    let store: Arc<dyn Store> = Arc::new(LocalStore);
    if esker_adjoint::is_checkpoints(&store, path).map_err(|error| Failure::file(path, error))? {
        return checkpoints::run(&store, arguments, screen);
    }
    let is_container = esker::is_container(&LocalStore, path);
    match is_container.map_err(|error| Failure::file(path, error))?
        || versions.iter().any(|folder| folder.is_dir())
    {
        true => container::run(arguments, screen),
        false if path.is_dir() => Err(Failure::file(path, "it is a directory, and no container")),
        false if !path.exists() => Err(Failure::file(path, "there is nothing of this name")),
        false => file::run(arguments, screen),
    }
}
