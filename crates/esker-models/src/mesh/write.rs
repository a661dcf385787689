//! A mesh to a UGRID file: every rank writes its share.

mod companions;

use esker::{CreateOptions, Dataset, Define, DimId, DimLen, ExternalType, Owner, Selection, VarId};

use super::topology::{Connectivity, Location};
use crate::error::{ModelError, Result, agree};
use crate::relation::{Relation, Table};

/// A mesh in shares: each rank has its rows of everything.
#[derive(Debug, Default)]
pub(super) struct Shared {
    /// Nodes, edges and faces of all ranks.
    pub(super) counts: [u64; 3],
    /// x and y of this rank's share of nodes, edges and faces, where they are known.
    pub(super) xy: [Option<[Vec<f64>; 2]>; 3],
    /// Whether x and y are longitudes and latitudes in degrees.
    pub(super) degrees: bool,
    /// The tables.
    pub(super) tables: Vec<(Connectivity, Relation)>,
    /// Variables of the source on the mesh, and the place of the mesh's dimension in each.
    pub(super) fields: Vec<(VarId, Location, usize)>,
}

/// The name of everything.
const MESH: &str = "mesh2d";
/// What stands in a row that is shorter.
const FILL: i64 = -1;

const LOCATIONS: [Location; 3] = [Location::Node, Location::Edge, Location::Face];

fn plural(location: Location) -> &'static str {
    match location {
        Location::Node => "nNodes",
        Location::Edge => "nEdges",
        Location::Face => "nFaces",
    }
}

/// Writes the mesh, and the fields of `source` that are on it, with the source's global attributes. Collective. Gives the names of the
/// variables that were left out, because the output has their names.
pub(super) fn write(
    source: &mut Dataset,
    shared: &Shared,
    path: &std::path::Path,
    options: CreateOptions,
) -> Result<Vec<String>> {
    let comm = source.comm().clone();
    let mut def = Dataset::create(path, options.comm(comm.clone()))?;
    let mut widths = Vec::new();
    for (_, relation) in &shared.tables {
        widths.push(relation.width(&*comm)?.max(1));
    }
    let defined = define(source, &mut def, shared, &widths);
    let (coordinates, tables, fields, left) = agree(&*comm, defined)?;
    let mut ds = def.enddef()?;
    for (at, pair) in coordinates.iter().enumerate() {
        let (Some(vars), Some(xy)) = (pair, &shared.xy[at]) else { continue };
        let mine = crate::Shares::new(shared.counts[at], comm.size()).of(comm.rank());
        for (var, values) in vars.iter().zip(xy) {
            ds.put_all(*var, &super::labels::range(&mine), values)?;
        }
    }
    for ((_, relation), table) in shared.tables.iter().zip(&tables) {
        relation.write_table(&mut ds, table)?;
    }
    for (from, to) in fields {
        copy(source, from, &mut ds, to)?;
    }
    ds.close()?;
    Ok(left)
}

type Defined = (Vec<Option<[VarId; 2]>>, Vec<Table>, Vec<(VarId, VarId)>, Vec<String>);

fn define(source: &Dataset, def: &mut Define, shared: &Shared, widths: &[u64]) -> Result<Defined> {
    let mut dims: [Option<DimId>; 3] = [None; 3];
    for (at, location) in LOCATIONS.into_iter().enumerate() {
        if shared.counts[at] > 0 {
            let name = format!("{MESH}_{}", plural(location));
            dims[at] = Some(def.add_dim(&name, DimLen::Fixed(shared.counts[at]))?);
        }
    }
    let has_faces = dims[Location::Face as usize].is_some();
    let topology = def.add_var(MESH, ExternalType::Int, &[])?;
    def.put_attr(topology, "cf_role", "mesh_topology")?;
    def.put_attr(topology, "topology_dimension", if has_faces { 2i32 } else { 1 })?;
    let mut coordinates: Vec<Option<[VarId; 2]>> = Vec::new();
    for (at, location) in LOCATIONS.into_iter().enumerate() {
        let (Some(dim), Some(_)) = (dims[at], &shared.xy[at]) else {
            coordinates.push(None);
            continue;
        };
        let word = location.word();
        let names = ["x", "y"].map(|axis| format!("{MESH}_{word}_{axis}"));
        let mut vars = Vec::new();
        for (name, axis) in names.iter().zip(["x", "y"]) {
            let var = def.add_var(name, ExternalType::Double, &[dim])?;
            let (standard, units) = match (shared.degrees, axis) {
                (true, "x") => ("longitude", "degrees_east"),
                (true, _) => ("latitude", "degrees_north"),
                (false, "x") => ("projection_x_coordinate", "m"),
                (false, _) => ("projection_y_coordinate", "m"),
            };
            def.put_attr(var, "standard_name", standard)?;
            def.put_attr(var, "units", units)?;
            def.put_attr(var, "long_name", format!("{standard} of the {word}s").as_str())?;
            vars.push(var);
        }
        def.put_attr(topology, &format!("{word}_coordinates"), names.join(" ").as_str())?;
        coordinates.push(Some([vars[0], vars[1]]));
    }
    let mut tables = Vec::new();
    for ((connectivity, relation), width) in shared.tables.iter().zip(widths) {
        let short = connectivity.short();
        let name = format!("{MESH}_{short}s");
        let two = connectivity.from == Location::Edge;
        let width_name = match (two, connectivity.to) {
            (true, _) => "Two".to_string(),
            (false, Location::Node | Location::Edge) => format!("{MESH}_nMax_face_nodes"),
            (false, Location::Face) => format!("{MESH}_nMax_face_faces"),
        };
        let width = if two { 2 } else { *width };
        let width_name = match def.schema().dim(&width_name) {
            Some(dim)
                if def.schema().dims.at(dim.0).is_some_and(|d| d.len != DimLen::Fixed(width)) =>
            {
                format!("{width_name}_{short}")
            }
            _ => width_name,
        };
        let second = match def.schema().dim(&width_name) {
            Some(dim) => dim,
            None => def.add_dim(&width_name, DimLen::Fixed(width))?,
        };
        let Some(rows) = dims[connectivity.from as usize] else { continue };
        // VTK's reader crashes on int64.
        let small = relation.columns <= i32::MAX as u64;
        let ty = if small { ExternalType::Int } else { ExternalType::Int64 };
        let var = def.add_var(&name, ty, &[rows, second])?;
        def.put_attr(var, "cf_role", connectivity.attribute().as_str())?;
        def.put_attr(var, "start_index", 0i32)?;
        match small {
            true => def.put_attr(var, "_FillValue", FILL as i32)?,
            false => def.put_attr(var, "_FillValue", FILL)?,
        }
        def.put_attr(topology, &connectivity.attribute(), name.as_str())?;
        let fill = Some(FILL);
        tables.push(Table { var, start: 0, fill, columns: relation.columns, transposed: false });
    }
    for location in [Location::Edge, Location::Face] {
        if dims[location as usize].is_some() {
            let (word, name) = (location.word(), format!("{MESH}_{}", plural(location)));
            def.put_attr(topology, &format!("{word}_dimension"), name.as_str())?;
        }
    }
    let (mut fields, mut left) = define_fields(source, def, shared, &dims, &coordinates)?;
    companions::define(source, def, &mut fields, &mut left)?;
    for attr in &source.schema().attrs {
        if &*attr.name != "Conventions" {
            def.put_attr(Owner::Global, &attr.name, attr.values.clone())?;
        }
    }
    def.put_attr(Owner::Global, "Conventions", "CF-1.8 UGRID-1.0")?;
    Ok((coordinates, tables, fields, left))
}

/// Variables of the source with those that were defined for them, and the names of those left out.
type Fields = (Vec<(VarId, VarId)>, Vec<String>);

/// Fields with the attributes that say where they are.
fn define_fields(
    source: &Dataset,
    def: &mut Define,
    shared: &Shared,
    dims: &[Option<DimId>; 3],
    coordinates: &[Option<[VarId; 2]>],
) -> Result<Fields> {
    let schema = source.schema();
    let (mut fields, mut left) = (Vec::new(), Vec::new());
    for (var, location, place) in &shared.fields {
        let Some(variable) = schema.variable(*var) else { continue };
        let Some(mesh_dim) = dims[*location as usize] else { continue };
        if def.schema().var(&variable.name).is_some() {
            left.push(variable.name.to_string());
            continue;
        }
        let mut own = Vec::new();
        for (at, dim) in variable.dims.iter().enumerate() {
            let Some(dim) = schema.dims.at(dim.0) else { continue };
            own.push(match (at == *place, def.schema().dim(&dim.name)) {
                (true, _) => mesh_dim,
                (false, Some(known)) => known,
                (false, None) => def.add_dim(&dim.name, dim.len)?,
            });
        }
        let new = def.add_var(&variable.name, variable.ty, &own)?;
        for attr in &variable.attrs {
            if !["mesh", "location", "coordinates", "bounds"].contains(&&*attr.name) {
                def.put_attr(new, &attr.name, attr.values.clone())?;
            }
        }
        def.put_attr(new, "mesh", MESH)?;
        def.put_attr(new, "location", location.word())?;
        if coordinates[*location as usize].is_some() {
            let word = location.word();
            let names = format!("{MESH}_{word}_x {MESH}_{word}_y");
            def.put_attr(new, "coordinates", names.as_str())?;
        }
        fields.push((*var, new));
    }
    Ok((fields, left))
}

/// Values that a rank holds at a time.
const AT_ONCE: u64 = 1 << 20;

/// Copies a variable: rows of its slowest dimension in turn, some for each rank. Collective.
fn copy(source: &mut Dataset, from: VarId, ds: &mut Dataset, to: VarId) -> Result<()> {
    let comm = ds.comm().clone();
    let shape = source.shape(from)?;
    let ty = source.variable(from)?.ty.natural();
    let rows = shape.first().copied().unwrap_or(1);
    let each: u64 = shape.iter().skip(1).product();
    // A rank takes a run of rows; the longest share decides how often all take part.
    let share = crate::Shares::new(rows, comm.size());
    let mine = share.of(comm.rank());
    let at_once = (AT_ONCE / each.max(1)).max(1);
    let turns = share.of(0).end.div_ceil(at_once);
    for turn in 0..turns {
        let begin = (mine.start + turn * at_once).min(mine.end);
        let end = (begin + at_once).min(mine.end);
        let selection = match (end > begin && each > 0, shape.is_empty()) {
            (false, _) => Selection::none(),
            (true, true) => Selection::all(),
            (true, false) => {
                let mut start = vec![0; shape.len()];
                let mut count = shape.clone();
                (start[0], count[0]) = (begin, end - begin);
                Selection::slab(&start, &count)
            }
        };
        let elements = if end > begin { (end - begin) * each } else { 0 };
        let mut bytes = vec![0u8; elements as usize * ty.size()];
        let dense = esker::MemoryLayout::dense;
        source.get_bytes_all(from, &selection, (&mut bytes, ty), dense())?;
        ds.put_bytes_all(to, &selection, (&bytes, ty), dense())?;
    }
    Ok(())
}

/// This rank's share of a variable of one dimension. Collective.
pub(super) fn share_of(ds: &mut Dataset, name: &str, count: u64) -> Result<Vec<f64>> {
    let comm = ds.comm().clone();
    let var = ds.var(name).map_err(ModelError::from).and_then(|var| match ds.shape(var)?[..] {
        [len] if len == count => Ok(var),
        ref shape => {
            let what = format!("its shape is {shape:?}, expected [{count}]");
            Err(ModelError::stored(ds.path(), format!("variable \"{name}\""), what))
        }
    });
    let var = agree(&*comm, var)?;
    let mine = crate::Shares::new(count, comm.size()).of(comm.rank());
    Ok(ds.get_all(var, &super::labels::range(&mine))?)
}
