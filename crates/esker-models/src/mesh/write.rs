//! A mesh to a UGRID file: every rank writes its share.

mod companions;

use esker::{CreateOptions, Dataset, Define, DimId, DimLen, ExternalType, Owner, Selection, VarId};

use super::topology::{Connectivity, Location};
use crate::error::{ModelError, Result, agree};
use crate::relation::{Relation, Table};

/// A mesh in shares: each rank has its rows of everything.
#[derive(Debug, Default)]
pub(super) struct Shared {
    /// Nodes, edges, faces and volumes of all ranks.
    pub(super) counts: [u64; 4],
    /// x and y of this rank's share of nodes, edges, faces and volumes, where they are known.
    pub(super) xy: [Option<[Vec<f64>; 2]>; 4],
    /// z of this rank's share of nodes, of a mesh in space.
    pub(super) z: Option<Vec<f64>>,
    /// What shape each of this rank's share of volumes has, by its number in [`SHAPES`].
    pub(super) shapes: Vec<i8>,
    /// Whether x and y are longitudes and latitudes in degrees.
    pub(super) degrees: bool,
    /// The tables.
    pub(super) tables: Vec<(Connectivity, Relation)>,
    /// Variables of the source on the mesh, and the place of the mesh's dimension in each.
    pub(super) fields: Vec<(VarId, Location, usize)>,
}

/// What stands in a row that is shorter.
const FILL: i64 = -1;

/// The shapes of volumes, each by its number, and how many nodes it has.
pub(super) const SHAPES: [(&str, u64); 4] =
    [("tetrahedron", 4), ("pyramid", 5), ("wedge", 6), ("hexahedron", 8)];

impl Shared {
    fn has_volumes(&self) -> bool {
        self.counts[Location::Volume as usize] > 0
    }

    /// The name of everything.
    fn name(&self) -> &'static str {
        if self.has_volumes() { "mesh3d" } else { "mesh2d" }
    }

    /// The names of the axes of coordinates.
    fn axes(&self, location: Location) -> &'static [&'static str] {
        match location == Location::Node && self.z.is_some() {
            true => &["x", "y", "z"],
            false => &["x", "y"],
        }
    }
}

fn plural(location: Location) -> &'static str {
    match location {
        Location::Node => "nNodes",
        Location::Edge => "nEdges",
        Location::Face => "nFaces",
        Location::Volume => "nVolumes",
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
    let Defined { coordinates, shapes, tables, fields, left } = agree(&*comm, defined)?;
    let mut ds = def.enddef()?;
    for (at, pair) in coordinates.iter().enumerate() {
        let (Some(vars), Some(xy)) = (pair, &shared.xy[at]) else { continue };
        let mine = crate::Shares::new(shared.counts[at], comm.size()).of(comm.rank());
        for (var, values) in vars.iter().zip(xy.iter().chain(&shared.z)) {
            ds.put_all(*var, &super::labels::range(&mine), values)?;
        }
    }
    if let Some(var) = shapes {
        let count = shared.counts[Location::Volume as usize];
        let mine = crate::Shares::new(count, comm.size()).of(comm.rank());
        ds.put_all(var, &super::labels::range(&mine), &shared.shapes)?;
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

/// The variables that were defined, and the names of those that were left out.
struct Defined {
    /// Of each location, the axes.
    coordinates: Vec<Option<Vec<VarId>>>,
    shapes: Option<VarId>,
    tables: Vec<Table>,
    fields: Vec<(VarId, VarId)>,
    left: Vec<String>,
}

fn define(source: &Dataset, def: &mut Define, shared: &Shared, widths: &[u64]) -> Result<Defined> {
    let mesh = shared.name();
    let mut dims: [Option<DimId>; 4] = [None; 4];
    for (at, location) in Location::ALL.into_iter().enumerate() {
        if shared.counts[at] > 0 {
            let name = format!("{mesh}_{}", plural(location));
            dims[at] = Some(def.add_dim(&name, DimLen::Fixed(shared.counts[at]))?);
        }
    }
    let highest = dims.iter().rposition(Option::is_some).unwrap_or(0).max(1);
    let topology = def.add_var(mesh, ExternalType::Int, &[])?;
    def.put_attr(topology, "cf_role", "mesh_topology")?;
    def.put_attr(topology, "topology_dimension", highest as i32)?;
    let mut coordinates: Vec<Option<Vec<VarId>>> = Vec::new();
    for (at, location) in Location::ALL.into_iter().enumerate() {
        let (Some(dim), Some(_)) = (dims[at], &shared.xy[at]) else {
            coordinates.push(None);
            continue;
        };
        let word = location.word();
        let axes = shared.axes(location);
        let names: Vec<String> = axes.iter().map(|axis| format!("{mesh}_{word}_{axis}")).collect();
        let mut vars = Vec::new();
        for (name, axis) in names.iter().zip(axes) {
            let var = def.add_var(name, ExternalType::Double, &[dim])?;
            let (standard, units) = match (shared.degrees, *axis) {
                // Whether z is up, and from where, the source does not say.
                (_, "z") => {
                    def.put_attr(var, "units", "m")?;
                    def.put_attr(var, "long_name", format!("z of the {word}s").as_str())?;
                    vars.push(var);
                    continue;
                }
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
        coordinates.push(Some(vars));
    }
    let shapes = match dims[Location::Volume as usize] {
        Some(dim) => Some(define_shapes(def, mesh, topology, dim)?),
        None => None,
    };
    let mut tables = Vec::new();
    for ((connectivity, relation), width) in shared.tables.iter().zip(widths) {
        let short = connectivity.short();
        let name = format!("{mesh}_{short}s");
        let two = connectivity.from == Location::Edge;
        let from = connectivity.from.word();
        let width_name = match (two, connectivity.to) {
            (true, _) => "Two".to_string(),
            (false, Location::Node | Location::Edge) => format!("{mesh}_nMax_{from}_nodes"),
            (false, to) => format!("{mesh}_nMax_{from}_{}s", to.word()),
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
    for location in [Location::Edge, Location::Face, Location::Volume] {
        if dims[location as usize].is_some() {
            let (word, name) = (location.word(), format!("{mesh}_{}", plural(location)));
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
    Ok(Defined { coordinates, shapes, tables, fields, left })
}

/// The variable that says what shape each volume has.
fn define_shapes(def: &mut Define, mesh: &str, topology: VarId, dim: DimId) -> Result<VarId> {
    let name = format!("{mesh}_volume_shapes");
    let var = def.add_var(&name, ExternalType::Byte, &[dim])?;
    def.put_attr(var, "cf_role", "volume_shape_type")?;
    def.put_attr(var, "long_name", "shapes of the volumes")?;
    let numbers: Vec<i8> = (0..SHAPES.len() as i8).collect();
    def.put_attr(var, "flag_values", numbers)?;
    let words: Vec<&str> = SHAPES.iter().map(|(word, _)| *word).collect();
    def.put_attr(var, "flag_meanings", words.join(" ").as_str())?;
    def.put_attr(topology, "volume_shape_type", name.as_str())?;
    Ok(var)
}

/// Variables of the source with those that were defined for them, and the names of those left out.
type Fields = (Vec<(VarId, VarId)>, Vec<String>);

/// Fields with the attributes that say where they are.
fn define_fields(
    source: &Dataset,
    def: &mut Define,
    shared: &Shared,
    dims: &[Option<DimId>; 4],
    coordinates: &[Option<Vec<VarId>>],
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
        let (mesh, word) = (shared.name(), location.word());
        def.put_attr(new, "mesh", mesh)?;
        def.put_attr(new, "location", word)?;
        if coordinates[*location as usize].is_some() {
            let axes = shared.axes(*location).iter();
            let names: Vec<String> = axes.map(|axis| format!("{mesh}_{word}_{axis}")).collect();
            def.put_attr(new, "coordinates", names.join(" ").as_str())?;
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
