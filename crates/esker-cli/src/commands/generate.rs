//! `esker gen`: a netCDF file from CDL text, as ncgen makes it.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use esker::Version;
use esker_text::shown_path;
use esker_tools::cdl::{self, GenerateError, GenerateOptions};

use crate::arguments;
use crate::failure::{Ended, Failure, Outcome};
use crate::terminal::{Screen, say};

/// Make a netCDF file from CDL, as ncgen does
#[derive(Debug, clap::Args)]
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
    /// Taken for ncgen's sake: what the text gives no values for is filled either way
    #[arg(short = 'x', long, hide = true)]
    no_fill: bool,
    /// The dataset's name, in place of the text's
    #[arg(short = 'N', long = "name", value_name = "NAME")]
    name: Option<String>,
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
    let from_stdin = arguments.file.as_os_str() == "-";
    let name = if from_stdin { Path::new("standard input") } else { &arguments.file };
    let mut text = Vec::new();
    let read = match from_stdin {
        true => io::stdin().read_to_end(&mut text),
        false => File::open(name).and_then(|mut file| file.read_to_end(&mut text)),
    };
    read.map_err(|error| Failure::file(name, error))?;
    let file = cdl::parse_bytes(&text).map_err(|error| Failure::file(name, error))?;
    // The text may be as large as the file to be made, and is no longer needed.
    drop(text);
    let output = match (&arguments.output, arguments.binary) {
        (Some(output), _) => output.clone(),
        (None, true) => {
            let dataset = arguments.name.as_deref().unwrap_or(&file.name);
            beside(dataset).map_err(|why| Failure::file(name, why))?
        }
        (None, false) => {
            say(format_args!(
                "{}: the text is sound; -o FILE makes a file of it",
                shown_path(name)
            ));
            return Ok(Outcome::Good);
        }
    };
    let options = GenerateOptions { version: arguments.version(), ..GenerateOptions::default() };
    let made = cdl::write(&file, &output, &options).map_err(|error| match error {
        GenerateError::File(error) => Failure::file(&output, error),
        other => Failure::file(name, other),
    })?;
    for note in made.notes {
        say(format_args!("esker: {}: {note}", shown_path(name)));
    }
    Ok(Outcome::Good)
}

/// The file that a dataset's name asks for, in this directory: the text is somebody else's, and does not
/// say where files go.
fn beside(dataset: &str) -> Result<PathBuf, String> {
    let is_plain = !matches!(dataset, "" | "." | "..")
        && !dataset.contains(['/', '\0'])
        && !dataset.contains(esker_text::is_obeyed);
    match is_plain {
        true => Ok(PathBuf::from(format!("{dataset}.nc"))),
        false => Err(format!(
            "the dataset's name {dataset:?} is no plain file name: -o FILE says where the file goes"
        )),
    }
}
