//! `esker diff`: do two files hold the same?

use std::path::PathBuf;

use crate::failure::Ended;
use crate::terminal::Screen;

/// Compare two files: structure and values
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Two numbers are the same when |a - b| <= ATOL + RTOL * |b|; two NaN are the same.
Exit codes: 0 the files hold the same, 1 they differ, 2 failure.

Examples:
  esker diff a.nc b.nc                     the first differences, with their indices
  esker diff --rtol 1e-6 a.nc b.nc         values may differ in the seventh digit
  esker diff --vars tas --max 100 a.nc b.nc
  esker diff --header-only a.nc b.nc       dimensions, variables and attributes alone")]
pub(super) struct Arguments {
    /// The first file
    #[arg(value_name = "A")]
    first: PathBuf,
    /// The second file
    #[arg(value_name = "B")]
    second: PathBuf,
    /// How much numbers may differ
    #[arg(long, value_name = "NUMBER", default_value_t = 0.0, value_parser = tolerance)]
    atol: f64,
    /// How much numbers may differ, as a share of their size
    #[arg(long, value_name = "NUMBER", default_value_t = 0.0, value_parser = tolerance)]
    rtol: f64,
    /// Compare these variables only
    #[arg(short = 'v', long, value_name = "NAME,…", value_delimiter = ',')]
    vars: Vec<String>,
    /// Show at most this many differing values of each variable
    #[arg(long, value_name = "N", default_value_t = 10)]
    max: usize,
    /// Compare the definitions and attributes, not the values
    #[arg(long, visible_alias = "header")]
    header_only: bool,
    /// JSON instead of text
    #[arg(long)]
    json: bool,
    /// Say nothing, the exit code tells
    #[arg(short, long, conflicts_with = "json")]
    quiet: bool,
}

fn tolerance(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(number) if number >= 0.0 && number.is_finite() => Ok(number),
        _ => Err("write a number that is not negative".into()),
    }
}

pub(super) fn run(_arguments: &Arguments, _screen: &mut Screen) -> Ended {
    super::not_in_this_build("diff")
}
