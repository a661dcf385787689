//! `esker dump`: a file as CDL text, as ncdump prints it.

use std::path::PathBuf;

use esker_tools::cdl::{self, Annotation, DumpOptions, IndexStyle, PrintError};

use super::opening;
use crate::failure::{Ended, Failure, Outcome};
use crate::terminal::Screen;

/// Print a file as CDL, as ncdump does (here -h is the header alone: help is --help)
#[derive(Debug, clap::Args)]
#[command(disable_help_flag = true)]
#[command(after_help = "\
Examples:
  esker dump -h run.nc             the header alone
  esker dump -c run.nc             the header and the coordinate variables' values
  esker dump -v tas,pr -t run.nc   two variables, times as dates
  esker dump -p 4,8 run.nc         fewer digits
  esker dump -k run.nc             the kind of file: classic, 64-bit offset or cdf5")]
pub(super) struct Arguments {
    /// The netCDF file
    file: PathBuf,
    /// Header only, no data
    #[arg(short = 'h', long = "header", conflicts_with = "coordinates")]
    header: bool,
    /// Header and the values of coordinate variables
    #[arg(short = 'c', long)]
    coordinates: bool,
    /// Values of these variables only
    #[arg(short = 'v', long = "vars", value_name = "NAME,…", value_delimiter = ',')]
    vars: Vec<String>,
    /// The kind of file, nothing else
    #[arg(short = 'k', long = "kind")]
    kind: bool,
    /// Special (virtual) attributes too: _Format and others
    #[arg(short = 's', long)]
    special: bool,
    /// Times as dates
    #[arg(short = 't', long, conflicts_with = "iso_times")]
    times: bool,
    /// Times as dates with a T between day and hour (ISO 8601)
    #[arg(short = 'i', long)]
    iso_times: bool,
    /// NcML (XML) of the header instead of CDL
    #[arg(short = 'x', long)]
    xml: bool,
    /// Significant digits of float and double values
    #[arg(short = 'p', long, value_name = "FLOAT[,DOUBLE]", value_parser = precision)]
    precision: Option<Precision>,
    /// Name of the dataset in the CDL [default: from the file's name]
    #[arg(short = 'n', long, value_name = "NAME")]
    name: Option<String>,
    /// Longest line of the data section
    #[arg(short = 'l', long, value_name = "COLUMNS", default_value_t = 80)]
    #[arg(value_parser = clap::value_parser!(u16).range(10..))]
    line_length: u16,
    /// Brief comments with the indices of each row: c counts from 0, f from 1
    #[arg(short = 'b', long, value_name = "c|f", value_enum, conflicts_with = "full")]
    brief: Option<Language>,
    /// A comment with the indices of every value: c counts from 0, f from 1
    #[arg(short = 'f', long, value_name = "c|f", value_enum)]
    full: Option<Language>,
    /// Print this help
    #[arg(long, action = clap::ArgAction::HelpShort)]
    help: Option<bool>,
}

/// Whose way of counting the comments follow.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Language {
    /// From 0, slowest dimension first.
    #[value(name = "c", alias = "C")]
    C,
    /// From 1, fastest dimension first.
    #[value(name = "f", alias = "F")]
    Fortran,
}

/// Significant digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Precision {
    float: u8,
    double: Option<u8>,
}

fn precision(text: &str) -> Result<Precision, String> {
    let digits = |text: &str, most: u8| match text.parse() {
        Ok(digits) if (1..=most).contains(&digits) => Ok(digits),
        _ => Err(format!("write 1 to {most} digits, not \"{text}\"")),
    };
    match text.split_once(',') {
        None => Ok(Precision { float: digits(text, 20)?, double: None }),
        Some((float, double)) => {
            Ok(Precision { float: digits(float, 20)?, double: Some(digits(double, 20)?) })
        }
    }
}

impl Arguments {
    fn options(&self) -> DumpOptions {
        let style = |language| match language {
            Language::C => IndexStyle::C,
            Language::Fortran => IndexStyle::Fortran,
        };
        let annotation = match (self.brief, self.full) {
            (Some(language), _) => Annotation::Brief(style(language)),
            (_, Some(language)) => Annotation::Full(style(language)),
            _ => Annotation::None,
        };
        DumpOptions {
            header_only: self.header,
            coordinates_only: self.coordinates,
            variables: self.vars.clone(),
            kind_only: self.kind,
            special_attributes: self.special,
            decode_times: self.times || self.iso_times,
            iso_separator: self.iso_times,
            xml: self.xml,
            float_digits: self.precision.map(|p| p.float),
            double_digits: self.precision.and_then(|p| p.double),
            // The dataset knows its file behind symbolic links; people know it as they call it.
            name: Some(self.name.clone().unwrap_or_else(|| cdl::name_of(&self.file))),
            line_len: self.line_length.into(),
            annotation,
            location: Some(self.file.display().to_string()),
        }
    }
}

pub(super) fn run(arguments: &Arguments, screen: &mut Screen) -> Ended {
    let dataset = opening::open(&arguments.file)?;
    // Here as well as there, because here near names are told.
    opening::variables(&arguments.file, &dataset, &arguments.vars)?;
    match cdl::dump(&dataset, &arguments.options(), screen) {
        Ok(()) => Ok(Outcome::Good),
        Err(PrintError::Write(error)) => Err(error.into()),
        Err(error) => Err(Failure::file(&arguments.file, error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_one_or_two_numbers() {
        assert_eq!(precision("4"), Ok(Precision { float: 4, double: None }));
        assert_eq!(precision("4,8"), Ok(Precision { float: 4, double: Some(8) }));
        assert!(precision("0").is_err());
        assert!(precision("4,").is_err());
    }
}
