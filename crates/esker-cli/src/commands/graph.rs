//! `esker graph`: which variables belong together, and how.

use std::io::Write;
use std::path::PathBuf;

use esker_models::graph::{Walk, picture};
use serde_json::Value;

use super::opening;
use crate::failure::{Ended, Failure, Outcome};
use crate::terminal::table::printable;
use crate::terminal::{Screen, json};

/// Show the graphs of a file: which variables belong together, and how
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  esker graph plot.nc                          vertices, their variables and neighbours
  esker graph plot.nc --dot | dot -Tpdf > plot.pdf
  esker graph plot.nc --svg > plot.svg         a picture without Graphviz
  esker graph plot.nc --json | jq '.[0].vertices[].name'
  esker graph plot.nc --graph amr              one of several")]
pub(super) struct Arguments {
    /// The netCDF file
    file: PathBuf,
    /// This graph only
    #[arg(long, value_name = "NAME")]
    graph: Option<String>,
    /// In Graphviz's language
    #[arg(long, conflicts_with_all = ["json", "svg"])]
    dot: bool,
    /// A list of graphs as JSON
    #[arg(long, conflicts_with = "svg")]
    json: bool,
    /// A picture; of one graph
    #[arg(long)]
    svg: bool,
}

pub(super) fn run(arguments: &Arguments, screen: &mut Screen) -> Ended {
    let file = &arguments.file;
    let dataset = opening::open(file)?;
    let graphs = dataset.graphs().map_err(|error| Failure::file(file, error))?;
    let fail = |error: esker::graph::GraphError| Failure::file(file, error);
    let set = &graphs.set;
    let names: Vec<&str> = match &arguments.graph {
        Some(name) => vec![&*set.graph(name).map_err(fail)?.name],
        None => set.graphs().iter().map(|graph| &*graph.name).collect(),
    };
    if arguments.svg {
        let [name] = names[..] else {
            let sentence = format!("has {} graphs: name one with --graph", names.len());
            return Err(Failure::file(file, sentence));
        };
        write!(screen, "{}", picture::svg(set, name).map_err(fail)?)?;
    } else if arguments.json {
        let all: Result<Vec<Value>, _> =
            names.iter().map(|name| picture::json(set, name)).collect();
        json::write(screen, &all.map_err(fail)?)?;
    } else {
        for name in names {
            match arguments.dot {
                true => write!(screen, "{}", picture::dot(set, name).map_err(fail)?)?,
                false => {
                    text(screen, &Walk::new(set, name).map_err(fail)?).map_err(|e| match e {
                        Shown::Graph(error) => fail(error),
                        Shown::Screen(error) => error.into(),
                    })?
                }
            }
        }
        for missing in graphs.missing.iter().filter(|_| !arguments.dot) {
            let (vertex, var) = (printable(&missing.vertex), printable(&missing.var));
            writeln!(screen, "vertex {vertex} had variable {var}, which is not in this file")?;
        }
    }
    Ok(Outcome::Good)
}

/// Why a graph was not shown.
enum Shown {
    Graph(esker::graph::GraphError),
    Screen(std::io::Error),
}

impl From<esker::graph::GraphError> for Shown {
    fn from(error: esker::graph::GraphError) -> Shown {
        Shown::Graph(error)
    }
}

impl From<std::io::Error> for Shown {
    fn from(error: std::io::Error) -> Shown {
        Shown::Screen(error)
    }
}

fn text(screen: &mut Screen, walk: &Walk<'_>) -> Result<(), Shown> {
    let depth = screen.depth;
    writeln!(screen, "{}", depth.bold(printable(&walk.graph().name)))?;
    for vertex in walk.vertices() {
        let vars: Vec<String> =
            walk.variables(vertex)?.iter().map(|v| printable(v).to_string()).collect();
        let list = if vars.is_empty() { String::new() } else { format!(": {}", vars.join(", ")) };
        writeln!(screen, "  {}{list}", printable(vertex))?;
        for (edge, to) in walk.links(vertex)? {
            writeln!(screen, "    {} → {}", printable(edge), printable(to))?;
        }
    }
    Ok(())
}
