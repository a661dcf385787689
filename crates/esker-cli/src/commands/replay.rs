//! `esker replay`: a container of logs into the classic file that it stands for.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use esker::Communicator;
use esker_comm::mpi::{self, MpiSession};
use esker_tools::copy::{self, CopyError, CopyOptions};
use esker_tools::replay::{self, ReplayError, ReplayOptions, Replayed};
use serde_json::json;

use super::chunking::Chunking;
use super::ranks::fail_together;
use super::{info, opening};
use crate::failure::{Ended, Failure, Outcome};
use crate::terminal::quantity::{bytes, plural};
use crate::terminal::{Screen, json};

/// Make the classic file that a container of logs stands for
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A container can be read as it is; replay it for programs that know classic files only. The
file is the one that the same writes would have made, byte for byte, and appears when it is
complete. Memory is a few megabytes for each rank, whatever the size.

Examples:
  esker replay run.esk run.nc                    on all cores
  esker replay run.esk old.nc --version 3        as it was at the third sync
  esker replay --auto run.esk run.nc             compressed, in chunks (see `esker copy --help`)
  mpiexec -n 16 esker replay run.esk run.nc      on the ranks of a cluster")]
pub(super) struct Arguments {
    /// The container
    #[arg(value_name = "RUN.esk")]
    input: PathBuf,
    /// The file to make
    #[arg(value_name = "OUT.nc")]
    output: PathBuf,
    /// This version of the container [default: the newest]
    #[arg(long, value_name = "N")]
    version: Option<u64>,
    /// Ranks, as threads of this process [default: the number of cores; under mpiexec, MPI's]
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    ranks: Option<u16>,
    #[command(flatten)]
    chunking: Chunking,
    /// Wait until the file is safe from power loss
    #[arg(long)]
    sync: bool,
    /// Replace OUT.nc if it exists
    #[arg(short = 'O', long, alias = "force")]
    overwrite: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: &Arguments, screen: &mut Screen) -> Ended {
    let mut options = ReplayOptions {
        version: arguments.version,
        threads: arguments.ranks.map(usize::from),
        overwrite: arguments.overwrite,
        sync: arguments.sync,
        ..ReplayOptions::default()
    };
    // A launcher that started one process (an interactive shell of srun) is none.
    if mpi::launched().is_none_or(|launched| launched.ranks == Some(1)) {
        let replayed = with_bar(arguments, &options, screen.bars, screen);
        return tell(arguments, screen, &replayed.map_err(|e| failure(arguments, e))?);
    }
    let comm = esker_comm::auto().map_err(Failure::sentence)?;
    // Aborts all ranks if this one panics.
    let _session = mpi::found().map(|_| MpiSession::start());
    options.threads = Some(1);
    options.comm = Arc::clone(&comm);
    on_mpi(arguments, &options, screen, &comm)
}

fn on_mpi(
    arguments: &Arguments,
    options: &ReplayOptions,
    screen: &mut Screen,
    comm: &Arc<dyn Communicator>,
) -> Ended {
    let root = comm.rank() == 0;
    if arguments.ranks.is_some_and(|wish| usize::from(wish) != comm.size()) {
        let ranks = comm.size();
        let sentence = format!("--ranks is for threads: the launcher has started {ranks} ranks");
        return fail_together(comm, root.then(|| Failure::sentence(sentence)));
    }
    match with_bar(arguments, options, root && screen.bars, screen) {
        Ok(replayed) if root => tell(arguments, screen, &replayed),
        Ok(_) => Ok(Outcome::Good),
        // Every rank has this error, one tells it.
        Err(error) => fail_together(comm, root.then(|| failure(arguments, error))),
    }
}

fn with_bar(
    arguments: &Arguments,
    options: &ReplayOptions,
    bars: bool,
    screen: &Screen,
) -> Result<Replayed, ReplayError> {
    if options.version.is_none() && options.comm.rank() == 0 {
        opening::warn(&arguments.input);
    }
    let mut bar = screen.bar("replaying");
    let mut progress = |done, total| {
        if bars {
            bar.update(done, total);
        }
    };
    if arguments.chunking.is_asked() {
        return chunked(arguments, options, &mut progress);
    }
    replay::replay(&arguments.input, &arguments.output, options, &mut progress)
}

/// Into a file with chunks, box by box instead of byte by byte.
fn chunked(
    arguments: &Arguments,
    options: &ReplayOptions,
    progress: &mut dyn esker_tools::Progress,
) -> Result<Replayed, ReplayError> {
    let (input, output) = (&arguments.input, &arguments.output);
    let version = options.version.map_or_else(|| newest(input), Ok)?;
    let copying = CopyOptions {
        chunks: arguments.chunking.options(false),
        container_version: Some(version),
        overwrite: options.overwrite,
        sync: options.sync,
        ..CopyOptions::default()
    };
    let copied = copy::copy_together(input, output, &copying, options.comm.clone(), progress);
    let copied = copied.map_err(|error| match error {
        CopyError::Dataset(error) => ReplayError::Dataset(error),
        CopyError::Exists { path } => ReplayError::Exists { path },
        other => ReplayError::Copy(Box::new(other)),
    })?;
    Ok(Replayed {
        version,
        variables: copied.variables,
        records: copied.records,
        file_len: copied.file_len,
        copied_by: options.comm.size(),
    })
}

/// The newest version of a container.
fn newest(input: &Path) -> Result<u64, ReplayError> {
    let dataset = esker::Dataset::open(input)?;
    let classic = || ReplayError::Classic { path: input.to_path_buf() };
    dataset.container_version().ok_or_else(classic)
}

fn failure(arguments: &Arguments, error: ReplayError) -> Failure {
    match error {
        ReplayError::Exists { .. } => {
            Failure::file(&arguments.output, "exists already (-O replaces it)")
        }
        error => Failure::either(&arguments.input, &arguments.output, error),
    }
}

fn tell(arguments: &Arguments, screen: &mut Screen, replayed: &Replayed) -> Ended {
    let Replayed { version, variables, records, file_len, copied_by } = replayed;
    let output = arguments.output.display().to_string();
    if arguments.json {
        let document = json!({
            "container": arguments.input.display().to_string(),
            "version": version,
            "file": output,
            "variables": variables,
            "records": records,
            "bytes": file_len,
            "ranks": copied_by,
        });
        json::write(screen, &document)?;
        return Ok(Outcome::Good);
    }
    if arguments.chunking.auto {
        info::chosen(screen, &arguments.output)?;
        writeln!(screen)?;
    }
    writeln!(
        screen,
        "{output}: version {version}, {}, {}, {}",
        plural(*variables, "variable"),
        plural(*records as usize, "record"),
        bytes(*file_len),
    )?;
    Ok(Outcome::Good)
}
