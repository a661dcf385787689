//! `esker refs`: references with which xarray and Zarr read a file without Esker.

use std::io::Write;
use std::path::{Path, PathBuf};

use esker_text::{shown, shown_path};
use esker_tools::refs::{self, Form, Location, RefsError, RefsOptions, Written};
use serde_json::json;

use super::opening;
use crate::arguments;
use crate::failure::{Ended, Failure, Outcome};
use crate::terminal::quantity::{grouped, plural};
use crate::terminal::{Screen, json, say};

/// Write references, with which xarray and Zarr read a file, compressed chunks included
#[derive(Debug, clap::Args)]
#[command(after_help = "\
References say where in the file each chunk lies and how it was compressed (Kerchunk's form, with
metadata of Zarr 2). Values are copied of record variables alone that have next to nothing in each
record, such as times. A variable that Zarr cannot read is left out, and that is said on
standard error.

Examples:
  esker refs run.nc                            writes run.nc.json
  esker refs run.nc -o run.parq                Parquet, for millions of chunks
  esker refs run.nc --url s3://bucket/run.nc   for a file that will be somewhere else
  esker refs run.nc -o - | jq .refs            to standard output

In Python, with xarray, zarr, fsspec and kerchunk (or without kerchunk, as docs/refs.md says):
  xarray.open_dataset(\"run.nc.json\", engine=\"kerchunk\")")]
pub(super) struct Arguments {
    /// The netCDF file
    file: PathBuf,
    /// The references: .json or .parq, - for standard output [default: FILE.json, or FILE.parq
    /// for more than 1,000,000 chunks]
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,
    /// Where the file will be: a URL that fsspec understands [default: file:// and where it is]
    #[arg(long, value_name = "URL", value_parser = url, conflicts_with = "relative")]
    url: Option<String>,
    /// The path from the directory of OUT, for files that move together; a reader must then be
    /// in that directory
    #[arg(long)]
    relative: bool,
    /// These variables only
    #[arg(short = 'v', long, value_name = "NAME,…", value_delimiter = ',')]
    vars: Vec<String>,
    /// Copy record variables that have at most so many bytes in a record; 0 copies none
    #[arg(long, value_name = "BYTES", default_value = "32", value_parser = arguments::size)]
    inline: u64,
    /// Replace OUT if it exists
    #[arg(short = 'O', long, alias = "force")]
    overwrite: bool,
    /// Print JSON about what was written
    #[arg(long)]
    json: bool,
}

fn url(text: &str) -> Result<String, String> {
    match text.split_once("://") {
        Some((scheme, rest)) if !scheme.is_empty() && !rest.is_empty() => Ok(text.into()),
        _ => Err("a URL begins with its protocol, as https:// or s3://".into()),
    }
}

pub(super) fn run(arguments: &Arguments, screen: &mut Screen) -> Ended {
    let options = RefsOptions {
        location: match &arguments.url {
            Some(url) => Location::Url(url.clone()),
            None if arguments.relative => Location::Relative,
            None => Location::Here,
        },
        vars: arguments.vars.clone(),
        inline: arguments.inline,
        overwrite: arguments.overwrite,
        ..RefsOptions::default()
    };
    let input = &arguments.file;
    opening::warn(input);
    if arguments.output.as_deref() == Some(Path::new("-")) {
        if arguments.json {
            return Err(Failure::sentence(
                "-o - and --json would both go to standard output: choose one",
            ));
        }
        let mut bar = screen.bar("looking");
        let written = refs::write_to(input, &mut *screen, &options, &mut |done, total| {
            bar.update(done, total);
        });
        let written = written.map_err(|error| match error {
            RefsError::Write(error) => error.into(),
            error => Failure::file(input, error),
        })?;
        warn(input, &written);
        return Ok(Outcome::Good);
    }
    let mut bar = screen.bar("writing references");
    let mut progress = |done, total| bar.update(done, total);
    let output = arguments.output.as_deref();
    let written = refs::write(input, output, &options, &mut progress);
    let written = written.map_err(|error| match error {
        RefsError::Exists { path } => Failure::file(path, "exists already (-O replaces it)"),
        RefsError::Write(error) => Failure::sentence(error),
        error => Failure::file(input, error),
    })?;
    drop(bar);
    tell(arguments, screen, &written, &options)
}

/// What a reader will miss.
pub(super) fn warn(file: &Path, written: &Written) {
    let file = shown_path(file);
    for left_out in &written.left_out {
        say(format_args!(
            "esker: {file}: variable \"{}\" is left out: {}",
            left_out.name, left_out.why
        ));
    }
    for variable in &written.variables {
        if let Some(note) = &variable.note {
            say(format_args!("esker: {file}: variable \"{}\": {note}", variable.name));
        }
    }
}

fn tell(
    arguments: &Arguments,
    screen: &mut Screen,
    written: &Written,
    options: &RefsOptions,
) -> Ended {
    if arguments.json {
        json::write(screen, &document(arguments, written))?;
        return Ok(Outcome::Good);
    }
    warn(&arguments.file, written);
    let output = shown_path(&written.path);
    let chunks = written.chunks();
    if chunks > options.json_chunks {
        match written.form {
            Form::Parquet if arguments.output.is_none() => say(format_args!(
                "esker: {output}: Parquet, because there are {} chunks (-o OUT.json writes JSON)",
                grouped(chunks)
            )),
            Form::Json => say(format_args!(
                "esker: {output}: readers load all of its {} chunks; -o OUT.parq would spare them",
                grouped(chunks)
            )),
            Form::Parquet => {}
        }
    }
    writeln!(
        screen,
        "{output}: {}, {} {} of {}",
        plural(written.variables.len(), "variable"),
        grouped(chunks),
        if chunks == 1 { "chunk" } else { "chunks" },
        shown(&written.url),
    )?;
    Ok(Outcome::Good)
}

fn document(arguments: &Arguments, written: &Written) -> serde_json::Value {
    let variables: Vec<_> = written
        .variables
        .iter()
        .map(|variable| {
            json!({
                "name": variable.name,
                "chunks": variable.chunks,
                "missing": variable.missing,
                "note": variable.note,
            })
        })
        .collect();
    let left_out: Vec<_> = written
        .left_out
        .iter()
        .map(|left_out| json!({ "name": left_out.name, "why": left_out.why }))
        .collect();
    json!({
        "file": arguments.file.display().to_string(),
        "references": written.path.display().to_string(),
        "form": match written.form { Form::Json => "json", Form::Parquet => "parquet" },
        "url": written.url,
        "chunks": written.chunks(),
        "variables": variables,
        "left_out": left_out,
    })
}
