//! `esker gen`: a netCDF file from CDL text, as ncgen makes it.

use std::path::PathBuf;

use esker::Version;

use crate::arguments;
use crate::failure::Ended;
use crate::terminal::Screen;

/// Make a netCDF file from CDL (here -h is the header alone: help is --help)
#[derive(Debug, clap::Args)]
#[command(disable_help_flag = true)]
#[command(after_help = "\
Without -o and -b the text is only checked.

Examples:
  esker gen run.cdl -o run.nc              the oldest kind that can hold it
  esker gen -k cdf5 run.cdl -o run.nc      64-bit data, with all eleven types
  esker dump a.nc | esker gen - -o b.nc    from standard input")]
pub(super) struct Arguments {
    /// The CDL text, `-` for standard input
    #[arg(default_value = "-", hide_default_value = true)]
    file: PathBuf,
    /// The netCDF file to make
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Make NAME.nc, NAME being the dataset's name in the text
    #[arg(short = 'b', long = "binary", conflicts_with = "output")]
    binary: bool,
    /// The kind of file: 1 or classic, 2 or 64-bit-offset, 5 or cdf5
    #[arg(short, long, value_name = "KIND", value_parser = arguments::kind)]
    #[arg(conflicts_with_all = ["classic", "offset64", "data64"])]
    kind: Option<Version>,
    /// The same as -k classic
    #[arg(short = '3', conflicts_with_all = ["offset64", "data64"])]
    classic: bool,
    /// The same as -k 64-bit-offset
    #[arg(short = '6', conflicts_with = "data64")]
    offset64: bool,
    /// The same as -k cdf5
    #[arg(short = '5')]
    data64: bool,
    /// Do not fill what the text gives no values for
    #[arg(short = 'x', long)]
    no_fill: bool,
    /// Definitions only: leave the data section out
    #[arg(short = 'h', long = "header")]
    header: bool,
    /// The dataset's name, in place of the text's
    #[arg(short = 'N', long = "name", value_name = "NAME")]
    name: Option<String>,
    /// Print this help
    #[arg(long, action = clap::ArgAction::HelpShort)]
    help: Option<bool>,
}

impl Arguments {
    /// The kind asked for, by -k or by one of ncgen's digits.
    fn version(&self) -> Option<Version> {
        match (self.classic, self.offset64, self.data64) {
            (true, _, _) => Some(Version::Cdf1),
            (_, true, _) => Some(Version::Cdf2),
            (_, _, true) => Some(Version::Cdf5),
            _ => self.kind,
        }
    }
}

pub(super) fn run(arguments: &Arguments, _screen: &mut Screen) -> Ended {
    let _ = arguments.version();
    super::not_in_this_build("gen")
}
