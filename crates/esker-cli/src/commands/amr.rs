//! `esker amr`: levels of boxes.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use esker::{CreateOptions, Dataset, DimLen, ExternalType, Owner, Selection, SelfComm};
use esker_models::ModelError;
use esker_models::amr::{Amr, Cells, Hierarchy, Plotfile, store, write_plotfile};
use esker_tools::whole::Shape;
use serde_json::json;

use super::ranks;
use crate::failure::{Ended, Failure, Outcome};
use crate::terminal::quantity::{general, grouped, plural};
use crate::terminal::table::{Side, Table, printable};
use crate::terminal::{Screen, json};

/// Look at AMR hierarchies, and bring AMReX plotfiles into one file and back
#[derive(Debug, clap::Args)]
#[command(
    arg_required_else_help = true,
    after_help = "\
Examples:
  esker amr info plt00010                        levels and boxes, of a plotfile or a file
  esker amr convert plt00010 plt.nc              thousands of files into one
  esker amr convert plt.nc plt00010              and back, bit for bit
  esker amr slice plt.nc density --axis z --at 64 --level 2 slice.nc"
)]
pub(super) struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    Info(InfoArguments),
    Convert(ConvertArguments),
    Slice(SliceArguments),
}

/// Show levels and boxes of a plotfile or a file
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  esker amr info plt00010
  esker amr info plt.nc --json")]
struct InfoArguments {
    /// A plotfile (a directory), or a file made of one
    file: PathBuf,
    /// JSON instead of text
    #[arg(long)]
    json: bool,
}

/// A plotfile into one file, or such a file into a plotfile
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  esker amr convert plt00010 plt.nc
  esker amr convert plt.nc plt00010
  mpiexec -n 16 esker amr convert plt00010 plt.nc")]
struct ConvertArguments {
    /// A plotfile (a directory), or a file made of one
    #[arg(value_name = "IN")]
    input: PathBuf,
    /// The file, or the plotfile, to make
    #[arg(value_name = "OUT")]
    output: PathBuf,
    /// Replace OUT if it is a file that exists
    #[arg(short = 'O', long, alias = "force")]
    overwrite: bool,
}

/// A plane of a component, the finest data there is, into a netCDF file
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  esker amr slice plt.nc density --axis z --at 64 --level 2 slice.nc
  esker amr slice plt2d.nc density whole.nc      of a plane hierarchy: all of it")]
struct SliceArguments {
    /// A file that `esker amr convert` has made
    #[arg(value_name = "IN.nc")]
    input: PathBuf,
    /// The component
    component: String,
    /// The file to make
    #[arg(value_name = "OUT.nc")]
    output: PathBuf,
    /// The axis that the plane cuts: x, y or z
    #[arg(long, value_enum, default_value = "z")]
    axis: Axis,
    /// The cell of the level, on the axis [default: the middle]
    #[arg(long, value_name = "CELL")]
    at: Option<i64>,
    /// In the cells of this level [default: the finest]
    #[arg(long, value_name = "N")]
    level: Option<usize>,
    /// Replace OUT.nc if it exists
    #[arg(short = 'O', long, alias = "force")]
    overwrite: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Axis {
    X,
    Y,
    Z,
}

impl Arguments {
    /// Whether every rank takes part.
    pub(super) fn is_parallel(&self) -> bool {
        matches!(self.what, What::Convert(_))
    }
}

pub(super) fn run(arguments: &Arguments, screen: &mut Screen) -> Ended {
    match &arguments.what {
        What::Info(arguments) => info(arguments, screen),
        What::Convert(arguments) => convert(arguments, screen),
        What::Slice(arguments) => slice(arguments, screen),
    }
}

/// A plotfile is a directory with a text `Header`.
fn is_plotfile(path: &Path) -> bool {
    path.join("Header").is_file()
}

fn info(arguments: &InfoArguments, screen: &mut Screen) -> Ended {
    let file = &arguments.file;
    let read = match is_plotfile(file) {
        true => Plotfile::open(file).map(|plotfile| plotfile.hierarchy),
        false => Amr::open(Arc::new(SelfComm::new()), file).map(|amr| amr.hierarchy),
    };
    let h = read.map_err(|error| Failure::file(file, error))?;
    if arguments.json {
        let levels = h.levels.iter().map(|level| {
            json!({
                "boxes": level.boxes.len(), "cells": cells(&level.boxes),
                "ratio": level.ratio[..h.dims].to_vec(), "domain_shape": level.domain.shape()[..h.dims].to_vec(),
                "cell_size": level.cell_size, "step": level.step, "time": level.time,
            })
        });
        let document = json!({
            "dimensions": h.dims, "components": h.names, "time": h.time,
            "lo": h.lo, "hi": h.hi, "levels": levels.collect::<Vec<_>>(),
        });
        json::write(screen, &document)?;
        return Ok(Outcome::Good);
    }
    let names: Vec<String> = h.names.iter().map(|name| printable(name).to_string()).collect();
    writeln!(screen, "{} dimensions, time {}: {}", h.dims, general(h.time, 6), names.join(", "))?;
    let mut table = Table::new([
        ("level", Side::Right),
        ("boxes", Side::Right),
        ("cells", Side::Right),
        ("of the domain", Side::Right),
        ("ratio", Side::Right),
    ]);
    for (number, level) in h.levels.iter().enumerate() {
        let part = cells(&level.boxes) as f64 / level.domain.volume().max(1) as f64;
        table.row([
            number.to_string(),
            grouped(level.boxes.len() as u64),
            grouped(cells(&level.boxes)),
            format!("{:.1} %", 100.0 * part),
            level.ratio[0].to_string(),
        ]);
    }
    let (depth, width) = (screen.depth, screen.width);
    table.write(screen, depth, width)?;
    Ok(Outcome::Good)
}

fn cells(boxes: &[Cells]) -> u64 {
    boxes.iter().map(Cells::volume).sum()
}

fn convert(arguments: &ConvertArguments, screen: &mut Screen) -> Ended {
    let ConvertArguments { input, output, overwrite } = arguments;
    let work = |comm: Arc<dyn esker::Communicator>| -> Result<Hierarchy, ModelError> {
        if is_plotfile(input) {
            let plotfile = Plotfile::open(input)?;
            ranks::whole(&*comm.clone(), output, Shape::Dataset, *overwrite, |growing| {
                store(comm, &plotfile, growing, CreateOptions::new())
            })?;
            return Ok(plotfile.hierarchy);
        }
        let amr = Amr::open(comm.clone(), input)?;
        ranks::whole(&*comm, output, Shape::Folder, false, |growing| {
            write_plotfile(&amr, growing)
        })?;
        Ok(amr.hierarchy)
    };
    ranks::together(
        work,
        |error| Failure::either(input, output, error),
        |h| {
            let boxes = h.levels.iter().map(|level| level.boxes.len()).sum();
            let levels = plural(h.levels.len(), "level");
            writeln!(
                screen,
                "{}: {levels}, {}",
                output.display(),
                plural(boxes, "box").replace("boxs", "boxes")
            )?;
            Ok(Outcome::Good)
        },
    )
}

fn slice(arguments: &SliceArguments, screen: &mut Screen) -> Ended {
    let SliceArguments { input, component, output, axis, at, level, overwrite } = arguments;
    let fail = |error: ModelError| Failure::either(input, output, error);
    let mut amr = Amr::open(Arc::new(SelfComm::new()), input).map_err(fail)?;
    let h = &amr.hierarchy;
    let level = level.unwrap_or(h.levels.len().saturating_sub(1));
    let Some(domain) = h.levels.get(level).map(|of| of.domain) else {
        let sentence = format!("there is no level {level}: it has {}", h.levels.len());
        return Err(Failure::file(input, sentence));
    };
    let cut = *axis as usize;
    let mut region = domain;
    if h.dims == 3 {
        let cell = at.unwrap_or((domain.lo[cut] + domain.hi[cut]) / 2);
        (region.lo[cut], region.hi[cut]) = (cell, cell);
    }
    let (lo, size) = (h.lo.clone(), h.levels[level].cell_size.clone());
    let dims = h.dims;
    let values = amr.read(component, level, Some(region)).map_err(fail)?;
    let write = |growing: &Path| -> Result<(), ModelError> {
        let mut def = Dataset::create(growing, CreateOptions::new())?;
        let kept = || (0..dims).rev().filter(|d| dims < 3 || *d != cut);
        let mut axes = Vec::new();
        for d in kept() {
            let name = ["x", "y", "z"][d];
            let dim = def.add_dim(name, DimLen::Fixed(region.shape()[d]))?;
            axes.push((d, dim, def.add_var(name, ExternalType::Double, &[dim])?));
        }
        let over: Vec<_> = axes.iter().map(|(_, dim, _)| *dim).collect();
        let name = component.replace('/', "_");
        let var = def.add_var(&name, ExternalType::Double, &over)?;
        def.put_attr(var, "_FillValue", f64::NAN)?;
        def.put_attr(Owner::Global, "level", level as i32)?;
        let mut ds = def.enddef()?;
        for (d, _, coordinate) in axes {
            let (origin, step) = (lo.get(d).unwrap_or(&0.0), size.get(d).unwrap_or(&1.0));
            let centre = |cell: i64| origin + ((cell - domain.lo[d]) as f64 + 0.5) * step;
            let centres: Vec<f64> = (region.lo[d]..=region.hi[d]).map(centre).collect();
            ds.put(coordinate, &Selection::all(), &centres)?;
        }
        ds.put(var, &Selection::all(), &values)?;
        Ok(ds.close()?)
    };
    let alone = SelfComm::new();
    ranks::whole(&alone, output, Shape::Dataset, *overwrite, write).map_err(fail)?;
    writeln!(
        screen,
        "{}: {} cells of level {level}",
        output.display(),
        grouped(values.len() as u64)
    )?;
    Ok(Outcome::Good)
}
