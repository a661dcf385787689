//! `esker recover`: what a killed program wrote and did not get to promise.

mod container;

use std::path::PathBuf;

use esker_store::LocalStore;

use crate::failure::{Ended, Failure};
use crate::terminal::Screen;

/// Make a version of what is whole in a container whose writer died, or that is damaged
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Everything is read and compared with its checksums. What is whole and was never committed, and
what was committed and is not damaged, become a new version; nothing that is there is changed.
Do not run it while a program writes to the container.

Exit codes: 0 nothing was lost, 1 something that had been promised is damaged or missing.

Examples:
  esker recover run.esk              after a crash
  esker recover run.esk --dry-run    only say what would be done
  esker recover run.esk --json       every damage with its place, for a program")]
pub(super) struct Arguments {
    /// The container
    #[arg(value_name = "RUN.esk")]
    path: PathBuf,
    /// Only say what would be done
    #[arg(short = 'n', long)]
    dry_run: bool,
    /// Take in, too, what was never committed and has been passed over by later writers
    #[arg(long)]
    superseded: bool,
    /// JSON instead of text
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: &Arguments, screen: &mut Screen) -> Ended {
    let path = &arguments.path;
    let versions = path.join("versions");
    let is_container = esker::is_container(&LocalStore, path);
    match is_container.map_err(|error| Failure::file(path, error))? || versions.is_dir() {
        true => container::run(arguments, screen),
        false if path.exists() => {
            Err(Failure::file(path, "it is no container: `esker check --repair` mends files"))
        }
        false => Err(Failure::file(path, "there is nothing of this name")),
    }
}
