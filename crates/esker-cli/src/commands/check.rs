//! `esker check`: is a file sound, and if not, where is it not?

use std::path::PathBuf;

use crate::failure::Ended;
use crate::terminal::Screen;

/// Validate the structure of files: offsets, overlaps, padding, records, names, length
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Exit codes: 0 every file is valid, 1 a file is invalid, 2 it cannot be told.

Examples:
  esker check *.nc                           findings, with offset, object and value
  esker check -q run.nc && echo sound        for scripts
  esker check --repair -o good.nc bad.nc     mend a copy
  esker check --repair --in-place bad.nc     mend the file itself")]
pub(super) struct Arguments {
    /// The files
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Mend what can be mended without guessing, on a copy (FILE.repaired unless -o names one)
    #[arg(long)]
    repair: bool,
    /// Mend the file itself instead of a copy
    #[arg(long, requires = "repair", conflicts_with = "output")]
    in_place: bool,
    /// Where the mended copy goes
    #[arg(short, long, value_name = "FILE", requires = "repair")]
    output: Option<PathBuf>,
    /// JSON instead of text
    #[arg(long)]
    json: bool,
    /// Say nothing, the exit code tells
    #[arg(short, long, conflicts_with = "json")]
    quiet: bool,
}

pub(super) fn run(_arguments: &Arguments, _screen: &mut Screen) -> Ended {
    super::not_in_this_build("check")
}
