//! Conventions that have their tables already: MPAS, ESMF, ICON, FESOM.

use std::f64::consts::PI;

use esker::{Dataset, VarId};

use super::{length, to_degrees, wrapped};
use crate::error::{ModelError, Result, agree};
use crate::mesh::topology::{Connectivity, Location};
use crate::mesh::write::{Shared, share_of};
use crate::relation::{Relation, Table};

const RADIANS: f64 = 180.0 / PI;

fn connectivity(from: Location, to: Location) -> Connectivity {
    Connectivity { from, to }
}

/// Longitudes and latitudes of a share of elements, in degrees. Collective.
fn lonlat(ds: &mut Dataset, names: [&str; 2], count: u64, plain: f64) -> Result<[Vec<f64>; 2]> {
    let mut read = names.map(|_| Vec::new());
    for (out, name) in read.iter_mut().zip(names) {
        let factor = to_degrees(ds.schema(), name, plain);
        *out = share_of(ds, name, count)?;
        out.iter_mut().for_each(|value| *value *= factor);
    }
    read[0].iter_mut().for_each(|lon| *lon = wrapped(*lon));
    Ok(read)
}

/// The variables over a dimension that are no part of the mesh itself.
fn fields(
    ds: &Dataset,
    dims: &[(&str, Location)],
    without: &[&str],
) -> Vec<(VarId, Location, usize)> {
    let schema = ds.schema();
    let mut found = Vec::new();
    for (number, var) in schema.vars.iter().enumerate() {
        if without.contains(&&*var.name) || esker::graph::is_graph(var) {
            continue;
        }
        let at = var.dims.iter().rposition(|d| {
            schema.dims.at(d.0).is_some_and(|d| dims.iter().any(|(name, _)| **name == *d.name))
        });
        let Some(at) = at else { continue };
        let name = schema.dims.at(var.dims[at].0).map_or("", |d| &*d.name);
        let location = dims.iter().find(|(dim, _)| *dim == name).map(|(_, location)| *location);
        found.extend(location.map(|location| (VarId(number), location, at)));
    }
    found
}

/// A stored table, if there is one. Collective.
fn table(
    ds: &mut Dataset,
    name: &str,
    (start, fill, columns): (i64, Option<i64>, u64),
    transposed: bool,
) -> Result<Option<Relation>> {
    let Some(var) = ds.schema().var(name) else { return Ok(None) };
    let stored = Table { var, start, fill, columns, transposed };
    Relation::read_table(ds, &stored).map(Some)
}

/// Rows cut to the lengths that a variable says. Collective.
fn cut_rows(ds: &mut Dataset, relation: Relation, lengths: &str) -> Result<Relation> {
    let comm = ds.comm().clone();
    let counts = share_of(ds, lengths, relation.rows)?;
    let mut cut =
        Relation { offsets: vec![0], indices: Vec::new(), weights: None, ..relation.clone() };
    let mut wrong = Ok(());
    for (at, count) in counts.iter().enumerate() {
        let row = relation.row(at);
        let count = *count as usize;
        match row.get(..count) {
            Some(row) => cut.indices.extend(row),
            None if wrong.is_ok() => {
                let (number, len) = (relation.first + at as u64, row.len());
                let what = format!("row {number}: {count} elements, but {len} are stored");
                let object = format!("variable \"{lengths}\"");
                wrong = Err(ModelError::stored(ds.path(), object, what));
            }
            None => {}
        }
        cut.offsets.push(cut.indices.len() as u64);
    }
    agree(&*comm, wrong)?;
    Ok(cut)
}

/// MPAS: everything is there; rows of `verticesOnCell` are filled up with anything behind `nEdgesOnCell`.
pub(super) fn mpas(ds: &mut Dataset) -> Result<Shared> {
    let [faces, nodes] = [length(ds, "nCells")?, length(ds, "nVertices")?];
    let edges = length(ds, "nEdges").unwrap_or(0);
    let mut shared =
        Shared { counts: [nodes, edges, faces, 0], degrees: true, ..Shared::default() };
    shared.xy[0] = Some(lonlat(ds, ["lonVertex", "latVertex"], nodes, RADIANS)?);
    let has = |ds: &Dataset, name: &str| ds.schema().var(name).is_some();
    if edges > 0 && has(ds, "lonEdge") && has(ds, "latEdge") {
        shared.xy[1] = Some(lonlat(ds, ["lonEdge", "latEdge"], edges, RADIANS)?);
    }
    if has(ds, "lonCell") && has(ds, "latCell") {
        shared.xy[2] = Some(lonlat(ds, ["lonCell", "latCell"], faces, RADIANS)?);
    }
    use Location::{Edge, Face, Node};
    let tables = [
        ("verticesOnCell", Face, Node, nodes),
        ("verticesOnEdge", Edge, Node, nodes),
        ("edgesOnCell", Face, Edge, edges),
        ("cellsOnCell", Face, Face, faces),
        ("cellsOnEdge", Edge, Face, faces),
    ];
    for (name, from, to, columns) in tables {
        if columns == 0 || (from == Edge && edges == 0) {
            continue;
        }
        let Some(mut read) = table(ds, name, (1, Some(0), columns), false)? else { continue };
        if from == Face && to != Face {
            read = cut_rows(ds, read, "nEdgesOnCell")?;
        }
        shared.tables.push((connectivity(from, to), read));
    }
    let dims = [("nCells", Face), ("nEdges", Edge), ("nVertices", Node)];
    let mesh = [
        "lonVertex",
        "latVertex",
        "lonEdge",
        "latEdge",
        "lonCell",
        "latCell",
        "verticesOnCell",
        "verticesOnEdge",
        "edgesOnCell",
        "cellsOnCell",
        "cellsOnEdge",
        "nEdgesOnCell",
    ];
    shared.fields = fields(ds, &dims, &mesh);
    Ok(shared)
}

/// ESMF: pairs of coordinates, a table of fixed width with its lengths, or a ragged one.
pub(super) fn esmf(ds: &mut Dataset) -> Result<Shared> {
    let [nodes, faces] = [length(ds, "nodeCount")?, length(ds, "elementCount")?];
    let mut shared = Shared { counts: [nodes, 0, faces, 0], degrees: true, ..Shared::default() };
    shared.xy[0] = Some(pairs(ds, "nodeCoords", nodes)?);
    if ds.schema().var("centerCoords").is_some() {
        shared.xy[2] = Some(pairs(ds, "centerCoords", faces)?);
    }
    let var = ds.var("elementConn")?;
    let start = start_index(ds, var);
    let read = match ds.shape(var)?.len() {
        2 => {
            let fill = fill_value(ds, var).or(Some(-1));
            let stored = Table { var, start, fill, columns: nodes, transposed: false };
            let read = Relation::read_table(ds, &stored)?;
            match ds.schema().var("numElementConn").is_some() {
                true => cut_rows(ds, read, "numElementConn")?,
                false => read,
            }
        }
        _ => ragged(ds, var, start, nodes, faces)?,
    };
    shared.tables.push((connectivity(Location::Face, Location::Node), read));
    let dims = [("elementCount", Location::Face), ("nodeCount", Location::Node)];
    let mesh = ["nodeCoords", "centerCoords", "elementConn", "numElementConn"];
    shared.fields = fields(ds, &dims, &mesh);
    Ok(shared)
}

/// Rows one after the other, with a variable of their lengths. Collective.
fn ragged(ds: &mut Dataset, var: VarId, start: i64, nodes: u64, faces: u64) -> Result<Relation> {
    let comm = ds.comm().clone();
    let counts = share_of(ds, "numElementConn", faces)?;
    // No more than a file can have, so that the ranks' sum has a number.
    let own = counts.iter().fold(0u64, |sum, n| sum.saturating_add(*n as u64)).min(1 << 48);
    let mut before = [own];
    comm.exclusive_scan(&mut before)?;
    let total = ds.shape(var)?.iter().product::<u64>();
    let checked = match before[0].checked_add(own).is_some_and(|end| end <= total) {
        true => Ok(()),
        false => {
            let what = format!("the lengths of the rows need more than its {total} elements");
            Err(ModelError::stored(ds.path(), "variable \"elementConn\"", what))
        }
    };
    agree(&*comm, checked)?;
    let selection = crate::mesh::labels::range(&(before[0]..before[0] + own));
    let values: Vec<i64> = ds.get_all(var, &selection)?;
    let bad = values
        .iter()
        .position(|v| !v.checked_sub(start).is_some_and(|n| n >= 0 && (n as u64) < nodes));
    let checked = match bad {
        None => Ok(()),
        Some(at) => {
            let (place, value) = (before[0] + at as u64, values[at]);
            let what =
                format!("place {place}: element {value}, but there are {nodes} from {start} on");
            Err(ModelError::stored(ds.path(), "variable \"elementConn\"", what))
        }
    };
    agree(&*comm, checked)?;
    let mut offsets = vec![0u64];
    for count in &counts {
        offsets.push(offsets.last().copied().unwrap_or(0) + *count as u64);
    }
    let indices = values.iter().map(|v| (v - start) as u64).collect();
    let first = crate::Shares::new(faces, comm.size()).of(comm.rank()).start;
    Ok(Relation { rows: faces, columns: nodes, first, offsets, indices, weights: None })
}

/// Two columns of a variable. Collective.
fn pairs(ds: &mut Dataset, name: &str, count: u64) -> Result<[Vec<f64>; 2]> {
    let comm = ds.comm().clone();
    let var = ds.var(name).map_err(ModelError::from).and_then(|var| match ds.shape(var)?[..] {
        [rows, 2] if rows == count => Ok(var),
        ref shape => {
            let what =
                format!("its shape is {shape:?}, expected [{count}, 2]: only plane coordinates");
            Err(ModelError::stored(ds.path(), format!("variable \"{name}\""), what))
        }
    });
    let var = agree(&*comm, var)?;
    let mine = crate::Shares::new(count, comm.size()).of(comm.rank());
    let selection = match mine.is_empty() {
        true => esker::Selection::none(),
        false => esker::Selection::slab(&[mine.start, 0], &[mine.end - mine.start, 2]),
    };
    let factor = to_degrees(ds.schema(), name, 1.0);
    let values: Vec<f64> = ds.get_all(var, &selection)?;
    let column = |at: usize| values.iter().skip(at).step_by(2).map(move |v| v * factor);
    Ok([column(0).map(wrapped).collect(), column(1).collect()])
}

/// ICON: rows are the second dimension, from 1 on, 0 or less for none.
pub(super) fn icon(ds: &mut Dataset) -> Result<Shared> {
    let [faces, nodes] = [length(ds, "cell")?, length(ds, "vertex")?];
    let edges = length(ds, "edge").unwrap_or(0);
    let mut shared =
        Shared { counts: [nodes, edges, faces, 0], degrees: true, ..Shared::default() };
    shared.xy[0] = Some(lonlat(ds, ["vlon", "vlat"], nodes, RADIANS)?);
    let has = |ds: &Dataset, name: &str| ds.schema().var(name).is_some();
    if edges > 0 && has(ds, "elon") && has(ds, "elat") {
        shared.xy[1] = Some(lonlat(ds, ["elon", "elat"], edges, RADIANS)?);
    }
    if has(ds, "clon") && has(ds, "clat") {
        shared.xy[2] = Some(lonlat(ds, ["clon", "clat"], faces, RADIANS)?);
    }
    use Location::{Edge, Face, Node};
    let tables = [
        ("vertex_of_cell", Face, Node, nodes),
        ("edge_vertices", Edge, Node, nodes),
        ("edge_of_cell", Face, Edge, edges),
        ("neighbor_cell_index", Face, Face, faces),
        ("adjacent_cell_of_edge", Edge, Face, faces),
    ];
    let mut mesh = vec!["vlon", "vlat", "elon", "elat", "clon", "clat"];
    for (name, from, to, columns) in tables {
        mesh.push(name);
        if columns == 0 || (from == Edge && edges == 0) {
            continue;
        }
        // Cells outside a limited area are 0 or -1.
        let fill = icon_fill(ds, name)?;
        if let Some(read) = table(ds, name, (1, fill, columns), true)? {
            shared.tables.push((connectivity(from, to), read));
        }
    }
    shared.fields = fields(ds, &[("cell", Face), ("edge", Edge), ("vertex", Node)], &mesh);
    Ok(shared)
}

/// What a table of ICON has where there is nothing: 0, or -1 if that occurs. Collective.
fn icon_fill(ds: &mut Dataset, name: &str) -> Result<Option<i64>> {
    use esker_comm::CommunicatorExt;
    let comm = ds.comm().clone();
    let Some(var) = ds.schema().var(name) else { return Ok(None) };
    let shape = ds.shape(var)?;
    let [width, rows] = shape[..] else { return Ok(Some(0)) };
    let mine = crate::Shares::new(rows, comm.size()).of(comm.rank());
    let selection = match mine.is_empty() {
        true => esker::Selection::none(),
        false => esker::Selection::slab(&[0, mine.start], &[width, mine.end - mine.start]),
    };
    let values: Vec<i64> = ds.get_all(var, &selection)?;
    Ok(Some(if comm.any(values.contains(&-1))? { -1 } else { 0 }))
}

/// FESOM: nodes with degrees, triangles from 1 on (from 0 if a 0 occurs).
pub(super) fn fesom(ds: &mut Dataset) -> Result<Shared> {
    use esker_comm::CommunicatorExt;
    let comm = ds.comm().clone();
    let schema = ds.schema();
    let dim = |name: &str, at: usize| {
        let var = schema.vars.get(name)?;
        schema.dims.at(var.dims.get(at)?.0).map(|d| d.name.to_string())
    };
    let missing =
        || ModelError::stored(ds.path(), "variable \"triag_nodes\"", "it has no dimensions");
    let found = dim("lon", 0).zip(dim("triag_nodes", 0)).zip(dim("triag_nodes", 1));
    let ((node_dim, first), second) = agree(&*comm, found.ok_or_else(missing))?;
    // Three corners are the shorter dimension.
    let transposed = length(ds, &first)? == 3 && length(ds, &second)? != 3;
    let face_dim = if transposed { second } else { first };
    let [nodes, faces] = [length(ds, &node_dim)?, length(ds, &face_dim)?];
    let mut shared = Shared { counts: [nodes, 0, faces, 0], degrees: true, ..Shared::default() };
    shared.xy[0] = Some(lonlat(ds, ["lon", "lat"], nodes, 1.0)?);
    let var = ds.var("triag_nodes")?;
    let plain = Table { var, start: 0, fill: None, columns: nodes + 1, transposed };
    let read = Relation::read_table(ds, &plain)?;
    let from_0 = comm.any(read.indices.contains(&0))?;
    let start = if from_0 { 0 } else { 1 };
    let stored = Table { start, columns: nodes, ..plain };
    let read = Relation::read_table(ds, &stored)?;
    shared.tables.push((connectivity(Location::Face, Location::Node), read));
    let dims = [(&*node_dim, Location::Node), (&*face_dim, Location::Face)];
    shared.fields = fields(ds, &dims, &["lon", "lat", "lon_bnds", "lat_bnds", "triag_nodes"]);
    Ok(shared)
}

fn start_index(ds: &Dataset, var: VarId) -> i64 {
    let attr = ds.schema().attr(esker::Owner::Var(var), "start_index");
    let read = attr.and_then(|values| values.convert_to::<i64>().ok()?.first().copied());
    read.unwrap_or(1)
}

fn fill_value(ds: &Dataset, var: VarId) -> Option<i64> {
    let attr = ds.schema().attr(esker::Owner::Var(var), "_FillValue")?;
    attr.convert_to::<i64>().ok()?.first().copied()
}
