//! `esker mesh`: unstructured meshes.

use std::io::Write;
use std::path::PathBuf;

use esker::{CreateOptions, Version};
use esker_models::mesh::{self, Converted, topologies};
use esker_tools::whole::Shape;
use serde_json::json;

use super::{opening, ranks};
use crate::arguments::kind;
use crate::failure::{Ended, Failure, Outcome};
use crate::terminal::quantity::grouped;
use crate::terminal::table::printable;
use crate::terminal::{Screen, json};

/// Look at unstructured meshes, and make UGRID of other conventions
#[derive(Debug, clap::Args)]
#[command(
    arg_required_else_help = true,
    after_help = "\
Examples:
  esker mesh info mesh.nc                which meshes a file has
  esker mesh convert mpas.nc ugrid.nc    UGRID of MPAS, ESMF, SCRIP, Exodus, ICON or FESOM"
)]
pub(super) struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    Info(InfoArguments),
    Convert(ConvertArguments),
}

/// Show the meshes of a file: elements, tables, fields
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  esker mesh info mesh.nc
  esker mesh info --json mesh.nc")]
struct InfoArguments {
    /// The netCDF file
    file: PathBuf,
    /// JSON instead of text
    #[arg(long)]
    json: bool,
}

/// Make a UGRID file of a mesh in another convention, with the fields on it
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The convention is known by the file's content. Classic files are read; copy a netCDF-4 file with
`nccopy -k cdf5` first.

Examples:
  esker mesh convert mpas.nc ugrid.nc
  mpiexec -n 16 esker mesh convert large.nc ugrid.nc    each rank converts its share")]
struct ConvertArguments {
    /// A file with a mesh
    #[arg(value_name = "IN.nc")]
    input: PathBuf,
    /// The file to make
    #[arg(value_name = "OUT.nc")]
    output: PathBuf,
    /// The kind of file: 1 (classic), 2 (64-bit offset) or 5 (64-bit data)
    #[arg(short, long, value_name = "KIND", default_value = "5", value_parser = kind)]
    kind: Version,
    /// Replace OUT.nc if it exists
    #[arg(short = 'O', long, alias = "force")]
    overwrite: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
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
    }
}

fn info(arguments: &InfoArguments, screen: &mut Screen) -> Ended {
    let file = &arguments.file;
    let dataset = opening::open(file)?;
    let schema = dataset.schema();
    let convention = mesh::convention_of(schema).map(mesh::Convention::name);
    let meshes = topologies(&dataset).map_err(|error| Failure::file(file, error))?;
    let name = |var: esker::VarId| schema.variable(var).map_or("", |v| &*v.name);
    if arguments.json {
        let meshes = meshes.iter().map(|mesh| {
            let tables: Vec<String> = mesh.tables.iter().map(|(c, _)| c.short()).collect();
            let fields = mesh.fields(schema).into_iter();
            let fields = fields.map(|(v, l)| json!({ "name": name(v), "location": l.word() }));
            json!({
                "name": mesh.name, "topology_dimension": mesh.dimension, "nodes": mesh.nodes,
                "edges": mesh.edges, "faces": mesh.faces, "volumes": mesh.volumes, "tables": tables,
                "fields": fields.collect::<Vec<_>>(),
            })
        });
        let meshes = meshes.collect::<Vec<_>>();
        json::write(screen, &json!({ "convention": convention, "meshes": meshes }))?;
        return Ok(Outcome::Good);
    }
    match (convention, meshes.is_empty()) {
        (None, _) => return Err(Failure::file(file, "it has no mesh of a known convention")),
        (Some(convention), true) => {
            writeln!(
                screen,
                "a mesh in the convention of {convention}: `esker mesh convert` makes UGRID of it"
            )?;
        }
        (Some(_), false) => {}
    }
    for mesh in &meshes {
        let depth = screen.depth;
        let counts = [
            ("nodes", Some(mesh.nodes)),
            ("edges", mesh.edges),
            ("faces", mesh.faces),
            ("volumes", mesh.volumes),
        ];
        let counts: Vec<String> = counts
            .iter()
            .filter_map(|(what, count)| Some(format!("{} {what}", grouped((*count)?))))
            .collect();
        writeln!(screen, "{}  {}", depth.bold(printable(&mesh.name)), counts.join(", "))?;
        let tables: Vec<String> = mesh.tables.iter().map(|(c, _)| c.short()).collect();
        writeln!(screen, "  tables: {}", tables.join(", "))?;
        for (var, location) in mesh.fields(schema) {
            writeln!(screen, "  {} on {}s", printable(name(var)), location.word())?;
        }
    }
    Ok(Outcome::Good)
}

fn convert(arguments: &ConvertArguments, screen: &mut Screen) -> Ended {
    let ConvertArguments { input, output, kind, overwrite, .. } = arguments;
    ranks::together(
        |comm| {
            ranks::whole(&*comm.clone(), output, Shape::Dataset, *overwrite, |growing| {
                mesh::convert(comm, input, growing, CreateOptions::new().version(*kind))
            })
        },
        |error| Failure::either(input, output, error),
        |Converted { convention, counts: [nodes, edges, faces], volumes, left_out }| {
            if arguments.json {
                let document = json!({
                    "file": output.display().to_string(), "convention": convention.name(),
                    "nodes": nodes, "edges": edges, "faces": faces, "volumes": volumes, "left_out": left_out,
                });
                json::write(screen, &document)?;
                return Ok(Outcome::Good);
            }
            let last = if volumes > 0 { (volumes, "volumes") } else { (faces, "faces") };
            let [nodes, edges, count] = [nodes, edges, last.0].map(grouped);
            let (shown, from, what) = (output.display(), convention.name(), last.1);
            writeln!(screen, "{shown}: {nodes} nodes, {edges} edges, {count} {what}, from {from}")?;
            for name in left_out {
                writeln!(screen, "left out: {}, whose name the mesh has", printable(&name))?;
            }
            Ok(Outcome::Good)
        },
    )
}
