//! `esker offsets`: where each variable and record lies in the file.

mod chunks;
mod document;
mod table;
mod text;

use std::io::Write;
use std::path::PathBuf;

use esker::Schema;
use esker_tools::offsets::{Offsets, Place};

use chunks::Heap;

use super::opening;
use crate::failure::{Ended, Failure, Outcome};
use crate::terminal::{Screen, json};

/// Show where each variable and record lies in the file, gaps and alignment
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Ends are exclusive: the next byte after the last one. For a record variable, begin, end and
size are of its first record. A negative gap is an overlap. A chunked variable is a scalar here,
its anchor; where its chunks lie is told after the tables, with -r of each.

Examples:
  esker offsets run.nc               a table in the order of the file
  esker offsets -r -v tas run.nc     where each record of one variable lies
  esker offsets -sg run.nc           the text that PnetCDF's ncoffsets prints
  esker offsets -x run.nc            1 when there are gaps between fixed variables, else 0")]
pub(super) struct Arguments {
    /// The netCDF file
    file: PathBuf,
    /// These variables only
    #[arg(short = 'v', long, value_name = "NAME,…", value_delimiter = ',')]
    vars: Vec<String>,
    /// ncoffsets' text, with the size of each variable (of one record)
    #[arg(short = 's', long, conflicts_with = "json")]
    size: bool,
    /// ncoffsets' text, with the gap from the variable before
    #[arg(short = 'g', long, conflicts_with = "json")]
    gap: bool,
    /// Every record, not the first alone, and every chunk
    #[arg(short = 'r', long)]
    records: bool,
    /// ncoffsets' text, even without -s and -g
    #[arg(long, conflicts_with = "json")]
    text: bool,
    /// Print 1 when there are gaps between fixed-size variables, else 0
    #[arg(short = 'x', long, conflicts_with_all = ["size", "gap", "records", "text", "json"])]
    has_gaps: bool,
    /// JSON instead of a table
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: &Arguments, screen: &mut Screen) -> Ended {
    let dataset = opening::open(&arguments.file)?;
    if dataset.container_version().is_some() {
        let sentence = "it is a container, whose values lie in logs in the order in which they \
                        were written and have no offsets (`esker info` shows the logs, and \
                        `esker replay` makes a file that has offsets)";
        return Err(Failure::file(&arguments.file, sentence));
    }
    let schema = &dataset.header().schema;
    let file_len = dataset.file_len().map_err(|error| Failure::file(&arguments.file, error))?;
    let offsets = Offsets::of(dataset.header(), file_len);
    if arguments.has_gaps {
        writeln!(screen, "{}", u8::from(offsets.has_gaps()))?;
        return Ok(Outcome::Good);
    }
    let vars = opening::variables(&arguments.file, &dataset, &arguments.vars)?;
    let by_variable = offsets.by_variable();
    let mut places: Vec<&Place> =
        vars.iter().filter_map(|var| by_variable.get(var).copied()).collect();
    if arguments.vars.is_empty() {
        places.sort_by_key(|place| (place.record, place.begin, place.var));
    }
    let heap = Heap::of(&dataset, &vars, arguments.records);
    let heap = heap.map_err(|error| Failure::file(&arguments.file, error))?;
    let shown = Shown { arguments, schema, offsets: &offsets, places, heap };
    if arguments.json {
        json::write(screen, &shown)?;
    } else if arguments.text || arguments.size || arguments.gap {
        shown.text(screen)?;
    } else {
        shown.table(screen)?;
    }
    Ok(Outcome::Good)
}

/// What is shown, whichever way.
struct Shown<'a> {
    arguments: &'a Arguments,
    schema: &'a Schema,
    offsets: &'a Offsets,
    places: Vec<&'a Place>,
    heap: Option<Heap>,
}

impl Shown<'_> {
    fn variable(&self, place: &Place) -> (&str, &'static str, Vec<&str>) {
        let Some(var) = self.schema.variable(place.var) else { return ("", "", Vec::new()) };
        let dims = var.dims.iter().filter_map(|dim| self.schema.dims.at(dim.0));
        (&var.name, var.ty.cdl_name(), dims.map(|dim| &*dim.name).collect())
    }
}
