//! `esker copy`: a file, or parts of it, into another file of any version.

use std::path::{Path, PathBuf};

use esker::{Alignment, Layout, Version};
use esker_text::shown_path;
use esker_tools::Unseen;
use esker_tools::copy::{self, Copied, CopyError, CopyOptions, DimRange};
use esker_tools::refs::{Form, RefsError, RefsOptions, Written};
use serde_json::json;

use super::chunking::Chunking;
use super::{history, info, opening, refs};
use crate::arguments;
use crate::failure::{Ended, Failure, Outcome};
use crate::terminal::{Screen, json, say};

/// Copy a file to any version, all of it or chosen variables and ranges
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Ranges count from 0. NAME=FIRST:END[:STEP] counts as Python does: END itself is left out.
NAME,FIRST,LAST[,STEP] counts as NCO does: LAST is kept. Bounds may be left out,
negative ones count from the end, and one index alone (NAME=7) keeps that index as a
dimension of length 1.

A chunked variable is cut into boxes that are stored one by one through filters; every netCDF tool
opens the file, and Esker (and, with `esker refs`, xarray) reads the variable. A copy keeps
chunks and filters unless told otherwise. Chunk lengths that are not given are chosen so that a
chunk has at most 4 MiB, records apart. Filters: deflate, zstd, lz4, shuffle, bitshuffle, pco;
bitround, f32, zfp and sz change values within a bound, and never those of a coordinate that is not
named. When one variable with records is chunked, all others with records are.

The call is added to the global attribute \"history\", as NCO and CDO do.

Examples:
  esker copy old.nc new.nc --kind cdf5              to another version
  esker copy run.nc part.nc --vars tas,pr           two variables and their coordinates
  esker copy run.nc part.nc --dim lat=10:20         latitudes 10 to 19
  esker copy run.nc part.nc -d time,0,119,12        every 12th of the first 120 records
  esker copy run.nc fixed.nc -u --align 4k          no unlimited dimension, variables aligned
  esker copy run.nc run.esk --layout log            into a container of logs
  esker copy run.esk part.nc --vars tas             out of one
  esker copy run.nc run.esk --layout log --chunk lat/90,lon/90 --filter zstd,3   its variables in chunks
  esker copy --auto run.nc small.nc                 compressed, and what was chosen
  esker copy --chunk lat/90,lon/90 --filter shuffle --filter zstd,3 run.nc small.nc
  esker copy --filter 't:bitround,12 shuffle zstd,3' run.nc small.nc
  esker copy --contiguous small.nc run.nc           and back
  esker copy --auto --refs run.nc small.nc          and small.nc.json for xarray
  mpiexec -n 8 esker copy --canonical run.nc all.nc decomposed variables as ordinary ones
  esker copy --canonical --auto run.nc small.nc     the same, compressed")]
pub(super) struct Arguments {
    /// The file or container to read
    #[arg(value_name = "IN")]
    input: PathBuf,
    /// The file to make
    #[arg(value_name = "OUT")]
    output: PathBuf,
    /// The kind of file to make: 1 or classic, 2 or 64-bit-offset, 5 or cdf5 [default: as IN]
    #[arg(short, long, value_name = "KIND", value_parser = arguments::kind)]
    kind: Option<Version>,
    /// Copy these variables and their coordinate variables only
    #[arg(short = 'v', long, visible_alias = "variables", value_name = "NAME,…")]
    #[arg(value_delimiter = ',', conflicts_with = "exclude")]
    vars: Vec<String>,
    /// Copy all but these variables
    #[arg(short = 'x', long, value_name = "NAME,…", value_delimiter = ',')]
    exclude: Vec<String>,
    /// Copy a range of a dimension only: lat=10:20:2, or lat,10,20,2 (may be given again)
    #[arg(short, long = "dim", value_name = "RANGE", value_parser = arguments::dim_range)]
    dims: Vec<DimRange>,
    /// What to make: a classic file, or a container of logs
    #[arg(long, value_name = "LAYOUT", default_value = "classic", value_parser = layout)]
    layout: Layout,
    #[command(flatten)]
    chunking: Chunking,
    /// Store every variable as an ordinary one, without chunks and filters
    #[arg(long, conflicts_with_all = ["shapes", "filters", "auto"])]
    contiguous: bool,
    /// Make the unlimited dimension a fixed one
    #[arg(short = 'u', long)]
    fix_unlimited: bool,
    /// Begin each fixed variable at a multiple of this many bytes (512, 4k, 1M)
    #[arg(long, value_name = "BYTES", value_parser = arguments::size)]
    align: Option<u64>,
    /// Do not add to the global attribute "history"
    #[arg(long)]
    no_history: bool,
    /// Give variables and attributes of types that KIND lacks the smallest type that holds
    /// their values
    #[arg(long)]
    convert_types: bool,
    /// Make decomposed variables ordinary ones, and leave out their maps; under mpiexec all ranks
    /// share the work
    #[arg(long, conflicts_with_all = ["vars", "exclude", "dims", "fix_unlimited", "convert_types"])]
    canonical: bool,
    /// Write references beside OUT too, with which xarray and Zarr read it (`esker refs`)
    #[arg(long, value_name = "FORM", num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = "json", value_parser = form)]
    refs: Option<Form>,
    /// Print JSON about what was copied
    #[arg(long)]
    json: bool,
    /// Replace OUT if it exists
    #[arg(short = 'O', long, alias = "force")]
    overwrite: bool,
}

fn layout(name: &str) -> Result<Layout, String> {
    match name {
        "classic" => Ok(Layout::Classic),
        "log" => Ok(Layout::Log),
        _ => Err("use classic or log".into()),
    }
}

fn form(name: &str) -> Result<Form, String> {
    match name {
        "json" => Ok(Form::Json),
        "parquet" => Ok(Form::Parquet),
        _ => Err("use json or parquet".into()),
    }
}

impl Arguments {
    /// Whether every rank takes part.
    pub(super) fn is_parallel(&self) -> bool {
        self.canonical
    }
}

pub(super) fn run(arguments: &Arguments, screen: &mut Screen) -> Ended {
    let align = arguments.align.map_or(Alignment::default(), |bytes| Alignment {
        header: bytes,
        variable: bytes,
        records: bytes,
        ..Alignment::default()
    });
    let options = CopyOptions {
        version: arguments.kind,
        variables: arguments.vars.clone(),
        exclude: arguments.exclude.clone(),
        ranges: arguments.dims.clone(),
        fix_unlimited: arguments.fix_unlimited,
        layout: arguments.layout,
        chunks: arguments.chunking.options(arguments.contiguous),
        align,
        history: (!arguments.no_history).then(history::line),
        convert_types: arguments.convert_types,
        overwrite: arguments.overwrite,
        ..CopyOptions::default()
    };
    let comm = match arguments.canonical {
        true => Some(esker_comm::auto().map_err(Failure::sentence)?),
        false => None,
    };
    let (input, output) = (&arguments.input, &arguments.output);
    let copied = match comm {
        Some(comm) if comm.rank() > 0 => {
            // Rank 0 says what went wrong, and its exit code is the job's.
            let _ = copy::canonical(input, output, &options, comm, &mut Unseen);
            return Ok(Outcome::Good);
        }
        comm => {
            opening::warn(input);
            let mut bar = screen.bar("copying");
            let mut progress = |done, total| bar.update(done, total);
            match comm {
                Some(comm) => copy::canonical(input, output, &options, comm, &mut progress),
                None => copy::copy(input, output, &options, &mut progress),
            }
        }
    };
    let copied = copied.map_err(|error| match error {
        CopyError::Exists { .. } => {
            Failure::file(&arguments.output, "exists already (-O replaces it)")
        }
        error => Failure::either(&arguments.input, &arguments.output, error),
    })?;
    let references = match arguments.refs {
        Some(form) => Some(references(arguments, form)?),
        None => None,
    };
    if arguments.json {
        json::write(screen, &document(arguments, &copied, references.as_ref()))?;
        return Ok(Outcome::Good);
    }
    for (name, before, after) in &copied.converted {
        let output = shown_path(&arguments.output);
        say(format_args!("esker: {output}: {name} is of type {after} here, {before} before"));
    }
    if let Some(references) = &references {
        refs::warn(output, references);
    }
    if arguments.chunking.auto && arguments.layout == Layout::Classic {
        info::chosen(screen, output)?;
    }
    Ok(Outcome::Good)
}

/// Writes the references of the output. It is there whatever becomes of them.
fn references(arguments: &Arguments, form: Form) -> Result<Written, Failure> {
    let options =
        RefsOptions { form: Some(form), overwrite: arguments.overwrite, ..RefsOptions::default() };
    let output = &arguments.output;
    esker_tools::refs::write(output, None, &options, &mut Unseen).map_err(|error| {
        let why = match error {
            RefsError::Exists { path } => {
                format!("{} exists already (-O replaces it)", shown_path(&path))
            }
            error => error.to_string(),
        };
        Failure::file(output, format!("it is copied, but has no references: {why}"))
    })
}

/// What was done, for programs.
fn document(
    arguments: &Arguments,
    copied: &Copied,
    references: Option<&Written>,
) -> serde_json::Value {
    let name = |path: &Path| path.display().to_string();
    let converted: Vec<_> = copied
        .converted
        .iter()
        .map(|(name, before, after)| {
            json!({ "name": name, "before": before.to_string(), "after": after.to_string() })
        })
        .collect();
    json!({
        "input": name(&arguments.input),
        "output": name(&arguments.output),
        "variables": copied.variables,
        "records": copied.records,
        "bytes": copied.bytes,
        "file_bytes": copied.file_len,
        "converted": converted,
        "references": references.map(|written| json!({
            "path": name(&written.path),
            "chunks": written.chunks(),
            "left_out": written.left_out.iter().map(|left| &left.name).collect::<Vec<_>>(),
        })),
    })
}
