//! From a source to CDL, as `ncdump` 4.9.0 prints it.

mod blocks;
mod cformat;
mod data;
mod decimal;
mod header;
mod lines;
mod ncml;
mod rows;
mod text;

use esker_text::sentence;
use std::io::{self, Write};

use esker::Dataset;
use esker_format::VarId;

use super::options::DumpOptions;
use super::source::{CdlSource, SourceError};
use super::time::TimeTable;
use lines::Lines;

/// Significant digits of floats and doubles that ncdump prints.
const FLOAT_DIGITS: usize = 7;
const DOUBLE_DIGITS: usize = 15;

/// Why nothing, or not all, was printed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PrintError {
    /// The output could not be written.
    #[error("cannot write the text: {}", sentence(.0))]
    Write(#[from] io::Error),
    /// The data could not be read.
    #[error("cannot read variable \"{var}\": {error}", var = sentence(var), error = sentence(error))]
    Read {
        /// The variable.
        var: String,
        /// What the source says.
        error: SourceError,
    },
    /// The source gave something else than it was asked for.
    #[error(
        "variable \"{var}\" was read as {found} values of type {ty}, but {asked} were asked for", var = sentence(var))]
    Mismatch {
        /// The variable.
        var: String,
        /// How many values came.
        found: usize,
        /// Their type.
        ty: &'static str,
        /// How many were asked for.
        asked: u64,
    },
    /// A variable of the list does not exist.
    #[error("there is no variable \"{}\"", sentence(.0))]
    NoSuchVariable(String),
    /// An option's value that cannot be used.
    #[error("{option} cannot be {value}: {reason}", option = sentence(option), value = sentence(value), reason = sentence(reason))]
    Option {
        /// The option.
        option: &'static str,
        /// Its value.
        value: usize,
        /// Why not.
        reason: &'static str,
    },
}

/// Prints `source` as `ncdump` prints a file with these options.
pub fn print(
    source: &dyn CdlSource,
    options: &DumpOptions,
    out: &mut dyn Write,
) -> Result<(), PrintError> {
    check(options)?;
    let mut lines = Lines::new(out, options.line_len);
    // What was printed before an error is worth having.
    let printed = put(&mut lines, source, options);
    let flushed = lines.finish();
    printed?;
    Ok(flushed?)
}

fn put(
    lines: &mut Lines<'_>,
    source: &dyn CdlSource,
    options: &DumpOptions,
) -> Result<(), PrintError> {
    if options.kind_only {
        lines.raw(source.version().kind_name().as_bytes());
        lines.raw(b"\n");
        return Ok(());
    }
    let wanted = options
        .variables
        .iter()
        .map(|name| find(source, name).ok_or_else(|| PrintError::NoSuchVariable(name.clone())))
        .collect::<Result<Vec<VarId>, _>>()?;
    let precision = Precision {
        float: options.float_digits.map_or(FLOAT_DIGITS, usize::from),
        double: options.double_digits.map_or(DOUBLE_DIGITS, usize::from),
    };
    if options.xml {
        return ncml::put(lines, source, options, &wanted, precision);
    }
    let times = (options.decode_times || options.iso_separator)
        .then(|| TimeTable::new(source.schema(), if options.iso_separator { 'T' } else { ' ' }));
    lines.raw(b"netcdf ");
    let name = options.name.clone().unwrap_or_else(|| source.name());
    text::put_name(lines.buffer(), &name);
    lines.raw(b" {\n");
    header::put(lines, source, options, precision, times.as_ref())?;
    if !options.header_only {
        data::put(lines, source, options, &wanted, precision, times.as_ref())?;
    }
    lines.raw(b"}\n");
    Ok(())
}

/// Prints a dataset as `ncdump` prints its file: [`print()`] by the name people know it by.
pub fn dump(
    dataset: &Dataset,
    options: &DumpOptions,
    out: &mut dyn Write,
) -> Result<(), PrintError> {
    print(dataset, options, out)
}

/// How many significant digits floats and doubles have.
#[derive(Debug, Clone, Copy)]
struct Precision {
    float: usize,
    double: usize,
}

fn check(options: &DumpOptions) -> Result<(), PrintError> {
    if options.line_len < 10 {
        let (value, reason) = (options.line_len, "lines need room for 10 characters");
        return Err(PrintError::Option { option: "the line length", value, reason });
    }
    for (option, digits) in [
        ("the number of float digits", options.float_digits),
        ("the number of double digits", options.double_digits),
    ] {
        if let Some(digits) = digits
            && !(1..=20).contains(&digits)
        {
            let value = usize::from(digits);
            return Err(PrintError::Option { option, value, reason: "it must be 1 to 20" });
        }
    }
    Ok(())
}

/// The variable of this name, which may begin with a slash, the root group of netCDF-4.
fn find(source: &dyn CdlSource, name: &str) -> Option<VarId> {
    source.schema().var(name).or_else(|| source.schema().var(name.strip_prefix('/')?))
}
