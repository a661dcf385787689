//! Exodus: blocks of elements of one shape each, one after the other.

use esker::{Dataset, Selection, VarId};
use esker_comm::Communicator;

use super::length;
use crate::error::{ModelError, Result, agree};
use crate::mesh::labels::range;
use crate::mesh::topology::{Connectivity, Location};
use crate::mesh::write::{SHAPES, Shared};
use crate::relation::Relation;
use crate::shares::Shares;

/// Blocks of areas become faces in the order of blocks, blocks of bodies volumes. Points of areas on a sphere become longitudes and latitudes.
pub(super) fn exodus(ds: &mut Dataset) -> Result<Shared> {
    let comm = ds.comm().clone();
    let nodes = agree(&*comm, length(ds, "num_nodes"))?;
    let xyz = coordinates(ds, nodes)?;
    let blocks = agree(&*comm, blocks(ds))?;
    let elements: u64 = blocks.iter().map(|block| block.rows).sum();
    let mine = Shares::new(elements, comm.size()).of(comm.rank());
    let mut shapes: Vec<i8> = Vec::new();
    let mut rows: Vec<Vec<u64>> = Vec::new();
    let mut begin = 0;
    let mut wrong = Ok(());
    for block in &blocks {
        // What this rank's share has of the block.
        let from = mine.start.clamp(begin, begin + block.rows);
        let to = mine.end.clamp(begin, begin + block.rows);
        let selection = match to > from {
            true => Selection::slab(&[from - begin, 0], &[to - from, block.width]),
            false => Selection::none(),
        };
        let values: Vec<i64> = ds.get_all(block.var, &selection)?;
        for (at, row) in values.chunks(block.width.max(1) as usize).enumerate() {
            let mut nodes_of: Vec<u64> = Vec::new();
            for value in row {
                match u64::try_from(*value - 1).ok().filter(|node| *node < nodes) {
                    Some(node) => nodes_of.push(node),
                    None if wrong.is_ok() => {
                        let row = from - begin + at as u64;
                        let what =
                            format!("row {row}: node {value}, but there are {nodes} from 1 on");
                        let name = format!("variable \"{}\"", block.name);
                        wrong = Err(ModelError::stored(ds.path(), name, what));
                    }
                    None => {}
                }
            }
            // Areas that repeat their last node have fewer.
            while block.shape.is_none()
                && nodes_of.len() > 1
                && nodes_of[nodes_of.len() - 1] == nodes_of[nodes_of.len() - 2]
            {
                nodes_of.pop();
            }
            rows.push(nodes_of);
            shapes.extend(block.shape);
        }
        begin += block.rows;
    }
    agree(&*comm, wrong)?;
    let of_nodes = Relation::from_rows(&*comm, nodes, &rows)?;
    let mut shared = match blocks.first().and_then(|block| block.shape) {
        None => {
            let (xy, degrees) = on_sphere(&*comm, xyz)?;
            let mut shared =
                Shared { counts: [nodes, 0, elements, 0], degrees, ..Shared::default() };
            shared.xy[0] = Some(xy);
            shared
        }
        Some(_) => {
            let [x, y, z] = xyz;
            let counts = [nodes, 0, 0, elements];
            let mut shared = Shared { counts, z: Some(z), shapes, ..Shared::default() };
            shared.xy[0] = Some([x, y]);
            shared
        }
    };
    let from = if shared.z.is_some() { Location::Volume } else { Location::Face };
    let connectivity = Connectivity { from, to: Location::Node };
    shared.tables.push((connectivity, of_nodes));
    let schema = ds.schema();
    for (number, var) in schema.vars.iter().enumerate() {
        // Nodal results are `vals_nod_var1(time_step, num_nodes)`.
        let at = var
            .dims
            .iter()
            .rposition(|d| schema.dims.at(d.0).is_some_and(|d| &*d.name == "num_nodes"));
        let is_mesh = var.name.starts_with("coord") || var.ty == esker::ExternalType::Char;
        if let Some(at) = at.filter(|_| !is_mesh) {
            shared.fields.push((VarId(number), Location::Node, at));
        }
    }
    Ok(shared)
}

struct Block {
    name: String,
    var: VarId,
    rows: u64,
    width: u64,
    /// The number of the shape, of bodies.
    shape: Option<i8>,
}

/// The shape of bodies of this type of element; `None` for others.
fn shape_of(kind: &str) -> Option<usize> {
    ["TET", "PYR", "WED", "HEX"].iter().position(|body| kind.starts_with(body))
}

fn blocks(ds: &Dataset) -> Result<Vec<Block>> {
    let mut found: Vec<Block> = Vec::new();
    for number in 1u64.. {
        let name = format!("connect{number}");
        let Some(var) = ds.schema().var(&name) else { break };
        let kind = ds.schema().attr(esker::Owner::Var(var), "elem_type");
        let kind = kind.and_then(|k| k.text()).unwrap_or_default().to_ascii_uppercase();
        let is_area =
            ["TRI", "QUAD", "SHELL", "NSIDED", "POLYGON"].iter().any(|area| kind.starts_with(area));
        let shape = ds.shape(var)?;
        let wrong =
            |what: String| Err(ModelError::stored(ds.path(), format!("variable \"{name}\""), what));
        let body = shape_of(&kind);
        if !is_area && body.is_none() {
            return wrong(format!("elements of type {kind:?} are neither areas nor bodies"));
        }
        let [rows, width] = shape[..] else {
            return wrong(format!("its shape is {shape:?}; blocks have rows of nodes"));
        };
        if let Some((word, nodes)) = body.map(|body| SHAPES[body]).filter(|(_, n)| *n != width) {
            let what =
                format!("elements of type {kind:?} have {width} nodes; a {word} has {nodes}");
            return wrong(what);
        }
        if let Some(first) = found.first()
            && first.shape.is_some() != body.is_some()
        {
            let what = format!(
                "elements of type {kind:?} beside those of \"{}\": areas and bodies in one file",
                first.name
            );
            return wrong(what);
        }
        found.push(Block { name, var, rows, width, shape: body.map(|body| body as i8) });
    }
    let schema = ds.schema();
    let together = schema.var("coord").and_then(|var| ds.shape(var).ok());
    let is_spatial = schema.var("coordz").is_some()
        || together.is_some_and(|shape| shape.first().is_some_and(|axes| *axes >= 3));
    match found.first().filter(|block| block.shape.is_some() && !is_spatial) {
        Some(block) => {
            let what = "its elements are bodies, and the nodes have no z".to_string();
            Err(ModelError::stored(ds.path(), format!("variable \"{}\"", block.name), what))
        }
        None => Ok(found),
    }
}

/// x, y and z of this rank's share of nodes; z is empty in the plane. Collective.
fn coordinates(ds: &mut Dataset, nodes: u64) -> Result<[Vec<f64>; 3]> {
    let comm = ds.comm().clone();
    let mine = Shares::new(nodes, comm.size()).of(comm.rank());
    let mut xyz: [Vec<f64>; 3] = [Vec::new(), Vec::new(), Vec::new()];
    if let Some(var) = ds.schema().var("coord") {
        let dims = ds.shape(var)?.first().copied().unwrap_or(0).min(3);
        for axis in 0..dims {
            let selection = match mine.is_empty() {
                true => Selection::none(),
                false => Selection::slab(&[axis, mine.start], &[1, mine.end - mine.start]),
            };
            xyz[axis as usize] = ds.get_all(var, &selection)?;
        }
        return Ok(xyz);
    }
    for (out, name) in xyz.iter_mut().zip(["coordx", "coordy", "coordz"]) {
        if let Some(var) = ds.schema().var(name) {
            *out = ds.get_all(var, &range(&mine))?;
        }
    }
    Ok(xyz)
}

/// Longitudes and latitudes if all points are on one sphere around the origin, else x and y. Collective.
fn on_sphere(comm: &dyn Communicator, xyz: [Vec<f64>; 3]) -> Result<([Vec<f64>; 2], bool)> {
    use esker_comm::{CommunicatorExt, ReduceOp, Reduction};
    let [x, y, z] = xyz;
    let radius = |at: usize| (x[at] * x[at] + y[at] * y[at] + z[at] * z[at]).sqrt();
    let spatial = z.len() == x.len() && y.len() == x.len();
    let mut ends = [f64::INFINITY, f64::INFINITY];
    if spatial {
        for at in 0..x.len() {
            let r = radius(at);
            ends = [ends[0].min(r), ends[1].min(-r)];
        }
    }
    comm.all_reduce(Reduction::F64(&mut ends), ReduceOp::Min)?;
    let (low, high) = (ends[0], -ends[1]);
    let round = comm.all(spatial)? && low > 0.0 && high - low <= 1e-6 * high;
    if !round {
        return Ok(([x, y], false));
    }
    let degrees = |angle: f64| angle.to_degrees();
    let lon = x.iter().zip(&y).map(|(x, y)| degrees(y.atan2(*x))).collect();
    let lat =
        (0..x.len()).map(|at| degrees((z[at] / radius(at)).clamp(-1.0, 1.0).asin())).collect();
    Ok(([lon, lat], true))
}
