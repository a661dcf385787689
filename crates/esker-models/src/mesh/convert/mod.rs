//! Other conventions, known by their content, become UGRID.

mod exodus;
mod scrip;
mod tables;

use std::path::Path;
use std::sync::Arc;

use esker::{CreateOptions, Dataset, OpenOptions, Owner, Schema};
use esker_comm::Communicator;

use super::topology::topologies;
use super::write::write;
use crate::error::{ModelError, Result, agree};

/// How a mesh is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Convention {
    /// A topology variable names everything.
    Ugrid,
    /// Model for Prediction Across Scales: `verticesOnCell` and the like, from 1 on, 0 for none.
    Mpas,
    /// ESMF's unstructured files: `nodeCoords`, `elementConn`.
    Esmf,
    /// Corners of every cell: `grid_corner_lat`.
    Scrip,
    /// Blocks of elements: `connect1`, `connect2`, …
    Exodus,
    /// Triangles with transposed tables: `vertex_of_cell`.
    Icon,
    /// Triangles of nodes: `triag_nodes`.
    Fesom,
}

impl Convention {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Convention::Ugrid => "UGRID",
            Convention::Mpas => "MPAS",
            Convention::Esmf => "ESMF",
            Convention::Scrip => "SCRIP",
            Convention::Exodus => "Exodus",
            Convention::Icon => "ICON",
            Convention::Fesom => "FESOM",
        }
    }
}

/// What was made of a file.
#[derive(Debug, Clone, PartialEq)]
pub struct Converted {
    /// What it was.
    pub convention: Convention,
    /// Nodes, edges and faces.
    pub counts: [u64; 3],
    /// Volumes.
    pub volumes: u64,
    /// Variables that were left out because the mesh has their names.
    pub left_out: Vec<String>,
}

/// The convention of a file, by its content; `None` if it has no mesh that is known.
pub fn convention_of(schema: &Schema) -> Option<Convention> {
    let has = |name: &str| schema.var(name).is_some();
    let is_ugrid = schema.vars.iter().any(|var| {
        let role = var.attrs.get("cf_role").and_then(|a| a.values.text());
        role.is_some_and(|role| role.trim() == "mesh_topology")
    });
    [
        (is_ugrid, Convention::Ugrid),
        (has("verticesOnCell") && has("latVertex"), Convention::Mpas),
        (has("nodeCoords") && has("elementConn"), Convention::Esmf),
        (has("grid_corner_lat") && has("grid_corner_lon"), Convention::Scrip),
        (has("connect1") && (has("coord") || has("coordx")), Convention::Exodus),
        (has("vertex_of_cell") && has("vlon") && has("vlat"), Convention::Icon),
        (has("triag_nodes") && has("lon") && has("lat"), Convention::Fesom),
    ]
    .into_iter()
    .find_map(|(is, convention)| is.then_some(convention))
}

/// Makes a UGRID file of a mesh in another convention, with the fields on it. Each rank converts its share; the file is
/// the same on any number of ranks. Collective.
pub fn convert(
    comm: Arc<dyn Communicator>,
    input: &Path,
    output: &Path,
    options: CreateOptions,
) -> Result<Converted> {
    let mut ds = Dataset::open_with(input, OpenOptions::new().comm(comm.clone()))?;
    let unknown = || ModelError::stored(input, "the file", "it has no mesh of a known convention");
    let convention = agree(&*comm, convention_of(ds.schema()).ok_or_else(unknown))?;
    let shared = match convention {
        Convention::Ugrid => {
            let found = agree(&*comm, topologies(&ds))?;
            let what = format!("it is UGRID already, with {} meshes: copy it", found.len());
            return Err(ModelError::stored(input, "the file", what));
        }
        Convention::Mpas => tables::mpas(&mut ds)?,
        Convention::Esmf => tables::esmf(&mut ds)?,
        Convention::Icon => tables::icon(&mut ds)?,
        Convention::Fesom => tables::fesom(&mut ds)?,
        Convention::Scrip => scrip::scrip(&mut ds)?,
        Convention::Exodus => exodus::exodus(&mut ds)?,
    };
    let left_out = write(&mut ds, &shared, output, options)?;
    let [nodes, edges, faces, volumes] = shared.counts;
    Ok(Converted { convention, counts: [nodes, edges, faces], volumes, left_out })
}

/// The length of a dimension. The same on every rank.
fn length(ds: &Dataset, dim: &str) -> Result<u64> {
    let schema = ds.schema();
    match schema.dim(dim).and_then(|d| schema.dims.at(d.0)).map(|d| d.len) {
        Some(esker::DimLen::Fixed(len)) => Ok(len),
        _ => Err(ModelError::stored(ds.path(), format!("dimension \"{dim}\""), "it is not there")),
    }
}

/// What values of a variable are multiplied with to be degrees: its units say radians or not.
fn to_degrees(schema: &Schema, name: &str, without_units: f64) -> f64 {
    let units = schema.var(name).and_then(|var| schema.attr(Owner::Var(var), "units"));
    match units.and_then(|u| u.text()) {
        Some(units) if units.trim_start().starts_with("rad") => 180.0 / std::f64::consts::PI,
        Some(units) if units.trim_start().starts_with("deg") => 1.0,
        _ => without_units,
    }
}

/// Longitudes from -180 to 180, as UGRID's readers have them.
fn wrapped(longitude: f64) -> f64 {
    match (-180.0..=180.0).contains(&longitude) || !longitude.is_finite() {
        true => longitude,
        false => (longitude + 180.0).rem_euclid(360.0) - 180.0,
    }
}
