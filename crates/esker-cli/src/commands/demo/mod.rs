//! `esker demo`: the main job in one command, for a newcomer.

mod file;
mod planet;

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use esker::{Dataset, Selection};
use esker_tools::Unseen;
use esker_tools::check::{self, CheckOptions};

use super::info::facts::Facts;
use super::info::text;
use super::opening;
use crate::failure::{Ended, Failure, Outcome};
use crate::terminal::picture::Plane;
use crate::terminal::table::{Side, Table};
use crate::terminal::{Screen, quantity};

/// Make a small climate-like file, show it, draw a plane of it and check it
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  esker demo                 in a temporary directory, which is removed afterwards
  esker demo --keep          leave demo.nc in the current directory
  esker demo -o /tmp/x.nc    leave it there")]
pub(super) struct Arguments {
    /// Keep the file, as demo.nc in the current directory
    #[arg(long)]
    keep: bool,
    /// Keep the file under this name (or in this directory, as demo.nc)
    #[arg(short, long, value_name = "PATH")]
    output: Option<PathBuf>,
}

pub(super) fn run(arguments: &Arguments, screen: &mut Screen) -> Ended {
    // Dropped at the end, and with it the directory.
    let mut temporary = None;
    let path = match (&arguments.output, arguments.keep) {
        (Some(path), _) if path.is_dir() => path.join("demo.nc"),
        (Some(path), _) => path.clone(),
        (None, true) => PathBuf::from("demo.nc"),
        (None, false) => {
            let directory = tempfile::Builder::new().prefix("esker-demo").tempdir();
            let directory = directory.map_err(|error| {
                Failure::sentence(format_args!("no temporary directory can be made: {error}"))
            })?;
            temporary.insert(directory).path().join("demo.nc")
        }
    };
    let fail = |error: esker::Error| Failure::file(&path, error);
    let begun = Instant::now();
    file::make(&path).map_err(fail)?;
    let made = begun.elapsed();

    let dataset = opening::open(&path)?;
    writeln!(
        screen,
        "A year on a made-up planet: {} in {:.2} s.\n",
        quantity::bytes(dataset.file_len().map_err(fail)?),
        made.as_secs_f64()
    )?;
    // The temporary directory's name is nobody's concern.
    let shown = if temporary.is_some() { PathBuf::from("demo.nc") } else { path.clone() };
    let vars = opening::variables(&path, &dataset, &[])?;
    let facts = Facts::of(&shown, &dataset, &vars).map_err(fail)?;
    text::write(screen, &facts, false)?;

    picture(&dataset, &path, screen)?;
    verify(&dataset, &path, screen)?;
    next(screen, temporary.is_none().then_some(path.as_path()))?;
    Ok(Outcome::Good)
}

/// Draws the first month's sea surface temperature, north on top.
fn picture(dataset: &Dataset, path: &Path, screen: &mut Screen) -> Result<(), Failure> {
    let (rows, columns) = (planet::LATITUDES, planet::LONGITUDES);
    let Some(var) = dataset.schema().var("tos") else { return Ok(()) };
    let january = Selection::slab(&[0, 0, 0], &[1, rows as u64, columns as u64]);
    let mut values =
        dataset.get::<f64>(var, &january).map_err(|error| Failure::file(path, error))?;
    for value in values.iter_mut().filter(|value| **value == f64::from(planet::FILL)) {
        *value = f64::NAN;
    }
    let (depth, width) = (screen.depth, screen.width.unwrap_or(80).min(columns + 2));
    writeln!(
        screen,
        "\n{}",
        depth.bold("sea surface temperature in January: tos(0, :, :), land is blank")
    )?;
    if let Some(plane) = Plane::new(values, rows, columns) {
        plane.flipped().draw(screen, depth, width, "K")?;
    }
    Ok(())
}

/// Checks the file's structure, and that every value is read back as it was made.
fn verify(dataset: &Dataset, path: &Path, screen: &mut Screen) -> Result<(), Failure> {
    let fail = |error: esker::Error| Failure::file(path, error);
    let depth = screen.depth;
    writeln!(screen, "\n{}", depth.bold("check"))?;
    let report = check::check(path, &CheckOptions::default(), &mut Unseen).map_err(fail)?;
    if let Some(finding) = report.findings.first() {
        return Err(Failure::file(path, finding));
    }
    writeln!(screen, "  {}: every offset, size and name is sound", depth.good("valid"))?;
    match file::compare(dataset).map_err(fail)? {
        Ok(values) => {
            let (good, values) = (depth.good("equal"), quantity::grouped(values));
            writeln!(screen, "  {good}: all {values} values are read back as they were made")?;
            Ok(())
        }
        Err(var) => Err(Failure::file(path, format_args!("{var} is not read back as written"))),
    }
}

fn next(screen: &mut Screen, kept: Option<&Path>) -> io::Result<()> {
    let name = kept.map_or("demo.nc".to_string(), |path| path.display().to_string());
    let mut ideas = vec![
        (format!("esker info --stats {name}"), "the range and mean of every variable"),
        (format!("esker dump -h {name}"), "its header as CDL"),
        (format!("esker offsets {name}"), "where its bytes are"),
        (format!("esker copy {name} july.nc --dim time=6"), "one month of it"),
        ("esker --help".to_string(), "everything else"),
    ];
    if kept.is_none() {
        ideas.insert(0, ("esker demo --keep".to_string(), "the same again, and keep the file"));
    }
    let mut table = Table::new([("", Side::Left), ("", Side::Left)]);
    for (idea, why) in ideas {
        table.row([idea, why.to_string()]);
    }
    writeln!(screen, "\n{}", screen.depth.bold("try next"))?;
    let (depth, width) = (screen.depth, screen.width);
    table.write(screen, depth, width)
}
