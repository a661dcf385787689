//! `esker info`: what a person wants to see of a file first.

mod blocks;
mod checkpoints;
mod chunks;
pub(super) mod facts;
mod mpi;
pub(super) mod text;

use std::path::PathBuf;
use std::sync::Arc;

use esker::Dataset;
use esker_store::{LocalStore, Store};
use esker_tools::stats;

use super::opening;
use crate::failure::{Ended, Failure, Outcome};
use crate::terminal::{Screen, json};
pub(super) use chunks::chosen;
use facts::Facts;

/// Show what is in a file: kind, size, dimensions, variables, attributes
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The ratio of a chunked variable is that of its stored bytes to those of its values.

Examples:
  esker info run.nc                     a first look
  esker info -v run.nc                  with every attribute of every variable
  esker info --stats run.nc             with the range, mean and gaps of the values
  esker info --stats --vars tas run.nc  of one variable
  esker info --blocks --vars B run.esk  what was written together, and where it lies in B
  esker info --json run.nc | jq '.variables[].name'
  esker info run.chk                    an adjoint run: its steps, state and checkpoints
  esker info --mpi                      which MPI is used here, or why none")]
pub(super) struct Arguments {
    /// The netCDF file, container or folder of an adjoint run
    #[arg(required_unless_present = "mpi")]
    file: Option<PathBuf>,
    /// Show which MPI was found, or why none, instead of a file
    #[arg(long, conflicts_with_all = ["file", "stats", "blocks", "vars", "verbose"])]
    mpi: bool,
    /// Read all values: smallest, largest, mean, how many are fill values and NaN
    #[arg(short, long)]
    stats: bool,
    /// List the blocks that variables of a container consist of, as they were written
    #[arg(short, long)]
    blocks: bool,
    /// Show these variables only
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    vars: Vec<String>,
    /// Every attribute of every variable, in full
    #[arg(short, long)]
    verbose: bool,
    /// JSON instead of text
    #[arg(long)]
    json: bool,
}

impl Arguments {
    /// Whether every rank takes part.
    pub(super) fn is_parallel(&self) -> bool {
        self.mpi
    }
}

pub(super) fn run(arguments: &Arguments, screen: &mut Screen) -> Ended {
    let Some(file) = &arguments.file else { return mpi::run(arguments.json, screen) };
    let store: Arc<dyn Store> = Arc::new(LocalStore);
    if esker_adjoint::is_checkpoints(&store, file).map_err(|error| Failure::file(file, error))? {
        return checkpoints::run(&store, file, arguments.json, screen);
    }
    let dataset = opening::open(file)?;
    let fail = |error: esker::Error| Failure::file(file, error);
    let vars = opening::variables(file, &dataset, &arguments.vars)?;
    let mut facts = Facts::of(file, &dataset, &vars).map_err(fail)?;
    if let Ok(as_arrays) = Dataset::open(file) {
        facts.add_maps(&as_arrays);
    }
    let mut unread = None;
    if arguments.stats {
        let mut bar = screen.bar("reading");
        let mut progress = |done, total| bar.update(done, total);
        let all = stats::statistics(&dataset, &vars, &mut progress);
        drop(bar);
        for (fact, found) in facts.variables.iter_mut().zip(all) {
            match found {
                Ok(found) => fact.statistics = Some(found),
                Err(error) => unread = Some(fail(error)),
            }
        }
    }
    if arguments.blocks {
        for (fact, var) in facts.variables.iter_mut().zip(&vars) {
            fact.blocks = Some(dataset.blocks(*var).map_err(fail)?);
        }
    }
    if arguments.json {
        json::write(screen, &facts.json())?;
    } else {
        text::write(screen, &facts, arguments.verbose)?;
    }
    match unread {
        // Everything that could be read has been shown; the exit code tells of the rest.
        Some(failure) => Err(failure),
        None => Ok(Outcome::Good),
    }
}
