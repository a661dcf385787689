//! `esker diff`: do two files hold the same?

use std::io::Write;
use std::path::PathBuf;

use esker_tools::diff::{self, DiffOptions, Report, ValuePair};
use serde_json::{Value, json};

use super::opening;
use crate::failure::{Ended, Failure, Outcome};
use crate::terminal::table::printable;
use crate::terminal::{Screen, json};

/// Compare two files: structure and values
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Two numbers are the same when |a - b| <= ATOL + RTOL * |b|; two NaN are the same.
Exit codes: 0 the files hold the same, 1 they differ, 2 failure.

Examples:
  esker diff a.nc b.nc                     the first differences, with their indices
  esker diff --rtol 1e-6 a.nc b.nc         values may differ in the seventh digit
  esker diff --vars tas --max 100 a.nc b.nc
  esker diff --ignore-attributes history a.nc b.nc
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
    /// Attributes that may differ, wherever they are
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    ignore_attributes: Vec<String>,
    /// Files of different kinds (CDF-1, 2, 5) differ
    #[arg(long)]
    strict_kind: bool,
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

pub(super) fn run(arguments: &Arguments, screen: &mut Screen) -> Ended {
    let (first, second) = (&arguments.first, &arguments.second);
    [first, second].into_iter().for_each(|path| opening::warn(path));
    let options = DiffOptions {
        atol: arguments.atol,
        rtol: arguments.rtol,
        variables: arguments.vars.clone(),
        ignore_attributes: arguments.ignore_attributes.clone(),
        strict_version: arguments.strict_kind,
        most: arguments.max,
        header_only: arguments.header_only,
        ..DiffOptions::default()
    };
    let mut bar = screen.bar("comparing");
    let mut progress = |done, total| bar.update(done, total);
    let report = diff::diff(first, second, &options, &mut progress);
    drop(bar);
    let report = report.map_err(|error| Failure::either(first, second, error))?;
    if arguments.json {
        json::write(screen, &document(arguments, &report))?;
    } else if !arguments.quiet {
        for line in report.lines() {
            writeln!(screen, "{}", printable(&line))?;
        }
    }
    Ok(if report.same() { Outcome::Good } else { Outcome::Bad })
}

fn document(arguments: &Arguments, report: &Report) -> Value {
    let structure = report.structure.iter().map(|difference| {
        json!({
            "aspect": difference.aspect.name(),
            "name": difference.name,
            "first": difference.first,
            "second": difference.second,
        })
    });
    let pair = |pair: &ValuePair| {
        let (first, second) = (json::scalar(pair.first), json::scalar(pair.second));
        json!({"index": pair.index, "first": first, "second": second})
    };
    let values = report.values.iter().map(|differences| {
        json!({
            "variable": differences.variable,
            "compared": differences.compared,
            "differing": differences.differing,
            "max_absolute": differences.max_abs.map(json::float),
            "max_relative": differences.max_rel.map(json::float),
            "differences": differences.first.iter().map(pair).collect::<Vec<_>>(),
        })
    });
    let skipped = report.not_compared.iter();
    let skipped = skipped.map(|(variable, why)| json!({"variable": variable, "why": why}));
    json!({
        "first": arguments.first.display().to_string(),
        "second": arguments.second.display().to_string(),
        "same": report.same(),
        "structure": structure.collect::<Vec<_>>(),
        "values": values.collect::<Vec<_>>(),
        "not_compared": skipped.collect::<Vec<_>>(),
        "notes": report.notes,
        "variables_compared": report.variables_compared,
        "values_compared": report.values_compared,
    })
}
