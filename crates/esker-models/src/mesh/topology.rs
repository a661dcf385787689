//! The meshes that a header speaks of.

use std::path::Path;

use esker::{Dataset, Owner, Schema, VarId, Variable};

use crate::error::{ModelError, Result, agree};
use crate::relation::{Relation, Table};

/// What a field is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Location {
    /// Points.
    Node,
    /// Lines between two nodes.
    Edge,
    /// Areas between edges.
    Face,
    /// Bodies between faces.
    Volume,
}

impl Location {
    /// All of them, each at its number.
    pub const ALL: [Location; 4] =
        [Location::Node, Location::Edge, Location::Face, Location::Volume];

    /// The convention's word.
    pub fn word(self) -> &'static str {
        match self {
            Location::Node => "node",
            Location::Edge => "edge",
            Location::Face => "face",
            Location::Volume => "volume",
        }
    }

    /// The location of this word.
    pub fn of_word(word: &str) -> Option<Location> {
        Location::ALL.into_iter().find(|l| l.word() == word)
    }
}

/// A table that a mesh may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Connectivity {
    /// The rows.
    pub from: Location,
    /// What they name.
    pub to: Location,
}

impl Connectivity {
    /// All that the convention has.
    pub const ALL: [Connectivity; 9] = [
        Connectivity { from: Location::Face, to: Location::Node },
        Connectivity { from: Location::Edge, to: Location::Node },
        Connectivity { from: Location::Face, to: Location::Edge },
        Connectivity { from: Location::Face, to: Location::Face },
        Connectivity { from: Location::Edge, to: Location::Face },
        Connectivity { from: Location::Volume, to: Location::Node },
        Connectivity { from: Location::Volume, to: Location::Edge },
        Connectivity { from: Location::Volume, to: Location::Face },
        Connectivity { from: Location::Volume, to: Location::Volume },
    ];

    /// Its short name: `face_node`.
    pub fn short(self) -> String {
        format!("{}_{}", self.from.word(), self.to.word())
    }

    /// The convention's attribute: `face_node_connectivity`.
    pub fn attribute(self) -> String {
        format!("{}_connectivity", self.short())
    }
}

/// A mesh: the variable that describes it, and what it says.
#[derive(Debug, Clone, PartialEq)]
pub struct Topology {
    /// The variable of the topology, which is the mesh's name.
    pub name: String,
    /// 1 for a network of lines, 2 for areas, 3 for volumes.
    pub dimension: i64,
    /// How many nodes, edges and faces there are; `None` if the mesh has no such elements in the file.
    pub nodes: u64,
    /// Edges, if they are stored.
    pub edges: Option<u64>,
    /// Faces, if there are any.
    pub faces: Option<u64>,
    /// Volumes, if there are any.
    pub volumes: Option<u64>,
    /// The names of the dimensions of nodes, edges, faces and volumes.
    pub dims: [Option<String>; 4],
    /// The variables of the coordinates of nodes, edges, faces and volumes; x or longitude first.
    pub coordinates: [Vec<String>; 4],
    /// The tables that are stored.
    pub tables: Vec<(Connectivity, Table)>,
    /// What shapes the volumes have, if the file says so.
    pub shapes: Option<Shapes>,
}

/// The shapes of volumes: a number for each, and what the numbers mean.
#[derive(Debug, Clone, PartialEq)]
pub struct Shapes {
    /// The variable with a number for each volume.
    pub var: VarId,
    /// Numbers and shapes: `tetrahedron`, `pyramid`, `wedge`, `hexahedron`.
    pub meanings: Vec<(i64, String)>,
}

impl Shapes {
    fn read(schema: &Schema, topology: VarId) -> Option<Shapes> {
        let var = schema.var(&text(schema, topology, "volume_shape_type")?)?;
        let words = text(schema, var, "flag_meanings").unwrap_or_default();
        let numbers = schema.attr(Owner::Var(var), "flag_values")?.convert_to::<i64>().ok()?;
        let words = words.split_ascii_whitespace().map(str::to_string);
        Some(Shapes { var, meanings: numbers.into_iter().zip(words).collect() })
    }
}

fn text(schema: &Schema, var: VarId, name: &str) -> Option<String> {
    schema.attr(Owner::Var(var), name)?.text().map(|text| text.trim().to_string())
}

fn whole(schema: &Schema, var: VarId, name: &str) -> Option<i64> {
    let values = schema.attr(Owner::Var(var), name)?;
    values.convert_to::<i64>().ok()?.first().copied()
}

/// The meshes of a dataset, by their topology variables (`cf_role = "mesh_topology"`). What they name and the file
/// does not have is an error with the name; optional tables that are gone are left out.
pub fn topologies(ds: &Dataset) -> Result<Vec<Topology>> {
    let schema = ds.schema();
    let mut found = Vec::new();
    for number in 0..schema.vars.len() {
        let var = VarId(number);
        if text(schema, var, "cf_role").as_deref() == Some("mesh_topology") {
            found.push(Topology::read(ds.path(), schema, var)?);
        }
    }
    Ok(found)
}

impl Topology {
    fn read(path: &Path, schema: &Schema, var: VarId) -> Result<Topology> {
        let name = schema.variable(var).map_or_else(String::new, |v| v.name.to_string());
        let wrong = |what: String| ModelError::stored(path, format!("mesh \"{name}\""), what);
        let dimension = whole(schema, var, "topology_dimension")
            .ok_or_else(|| wrong("it has no topology_dimension".to_string()))?;
        if !(1..=3).contains(&dimension) {
            let what = format!("topology_dimension is {dimension}; 1, 2 and 3 are known here");
            return Err(wrong(what));
        }
        let list = |attr: &str| -> Vec<String> {
            let names = text(schema, var, attr).unwrap_or_default();
            names.split_ascii_whitespace().map(str::to_string).collect()
        };
        let coordinates = Location::ALL.map(|l| list(&format!("{}_coordinates", l.word())));
        let Some(first) = coordinates[0].first() else {
            return Err(wrong("it has no node_coordinates".to_string()));
        };
        let length = |dim: &str| schema.dim(dim).and_then(|d| fixed(schema, d.0));
        let node_dim = schema.var(first).and_then(|v| schema.variable(v)?.dims.first().copied());
        let Some(node_dim) = node_dim.and_then(|d| schema.dims.at(d.0)) else {
            return Err(wrong(format!("variable \"{first}\" of its nodes is not there")));
        };
        let node_dim = node_dim.name.to_string();
        let nodes = length(&node_dim).ok_or_else(|| wrong("its nodes are records".to_string()))?;

        // A dimension is named, or is the first of the table with its nodes.
        let rows = |location: Location| -> Option<String> {
            if let Some(named) = text(schema, var, &format!("{}_dimension", location.word())) {
                return Some(named);
            }
            let table = Connectivity { from: location, to: Location::Node };
            let table = schema.var(&text(schema, var, &table.attribute())?)?;
            let dim = schema.variable(table)?.dims.first().copied()?;
            schema.dims.at(dim.0).map(|d| d.name.to_string())
        };
        let [edge_dim, face_dim, volume_dim] =
            [Location::Edge, Location::Face, Location::Volume].map(rows);
        let dims = [Some(node_dim), edge_dim, face_dim, volume_dim];
        let counts = [0, 1, 2, 3].map(|at: usize| dims[at].as_deref().and_then(length));
        let [_, edges, faces, volumes] = counts;
        let mut tables = Vec::new();
        for connectivity in Connectivity::ALL {
            let Some(named) = text(schema, var, &connectivity.attribute()) else { continue };
            let needed = connectivity.to == Location::Node && connectivity.from as i64 == dimension;
            let Some(id) = schema.var(&named) else {
                match needed {
                    true => {
                        let what =
                            format!("its {} \"{named}\" is not there", connectivity.attribute());
                        return Err(wrong(what));
                    }
                    false => continue,
                }
            };
            let columns = counts[connectivity.to as usize];
            let (Some(variable), Some(columns)) = (schema.variable(id), columns) else { continue };
            let rows = &dims[connectivity.from as usize];
            let transposed = is_last(schema, variable, rows.as_deref());
            let start = whole(schema, id, "start_index").unwrap_or(0);
            let fill = whole(schema, id, "_FillValue");
            tables.push((connectivity, Table { var: id, start, fill, columns, transposed }));
        }
        let shapes = Shapes::read(schema, var);
        Ok(Topology {
            name,
            dimension,
            nodes,
            edges,
            faces,
            volumes,
            dims,
            coordinates,
            tables,
            shapes,
        })
    }

    /// How many elements of this kind there are; 0 if the file has none.
    pub fn count(&self, location: Location) -> u64 {
        match location {
            Location::Node => self.nodes,
            Location::Edge => self.edges.unwrap_or(0),
            Location::Face => self.faces.unwrap_or(0),
            Location::Volume => self.volumes.unwrap_or(0),
        }
    }

    /// The relation of this name (`face_node`, `node_face`, `face_face`, …), each rank its share: as it is stored, or the
    /// inverse of what is stored, or for `face_face` the faces that share two nodes, for `volume_volume` the volumes that share
    /// three. Collective.
    pub fn relation(&self, ds: &mut Dataset, from: Location, to: Location) -> Result<Relation> {
        let comm = ds.comm().clone();
        let stored = |from, to| {
            let wanted = Connectivity { from, to };
            self.tables.iter().find(|(connectivity, _)| *connectivity == wanted).map(|(_, t)| t)
        };
        if let Some(table) = stored(from, to) {
            return Relation::read_table(ds, table);
        }
        if let Some(table) = stored(to, from) {
            return Relation::read_table(ds, table)?.invert(&*comm);
        }
        if let (true, Some(nodes)) = (from == to, stored(from, Location::Node)) {
            let nodes = Relation::read_table(ds, nodes)?;
            let back = nodes.invert(&*comm)?;
            // Faces share an edge if they share two nodes, volumes a face if they share three; edges meet in one.
            let shared = from as usize as f64;
            return Ok(nodes.compose(&*comm, &back)?.at_least(shared).without_itself());
        }
        let (name, from, to) = (&self.name, from.word(), to.word());
        let what =
            format!("mesh \"{name}\" has no {from}_{to}_connectivity, nor what it follows from");
        agree(&*comm, Err(ModelError::Asked(what)))
    }

    /// The variables on this mesh, each with its location.
    pub fn fields(&self, schema: &Schema) -> Vec<(VarId, Location)> {
        let on = |number: usize| {
            let var = VarId(number);
            let mesh = text(schema, var, "mesh")? == self.name;
            let location = Location::of_word(&text(schema, var, "location")?)?;
            mesh.then_some((var, location))
        };
        (0..schema.vars.len()).filter_map(on).collect()
    }

    /// The dimension of a field that is the mesh's, by its place: the last one if several are.
    pub fn place_in(&self, schema: &Schema, var: &Variable, location: Location) -> Option<usize> {
        let wanted = self.dims[location as usize].as_deref()?;
        let named = |d: &esker::DimId| schema.dims.at(d.0).is_some_and(|dim| &*dim.name == wanted);
        var.dims.iter().rposition(named)
    }
}

fn fixed(schema: &Schema, dim: usize) -> Option<u64> {
    match schema.dims.at(dim)?.len {
        esker::DimLen::Fixed(len) => Some(len),
        esker::DimLen::Unlimited => None,
    }
}

/// Whether the rows of a table are its second dimension.
fn is_last(schema: &Schema, table: &Variable, rows: Option<&str>) -> bool {
    let name = |at: usize| table.dims.get(at).and_then(|d| schema.dims.at(d.0)).map(|d| &*d.name);
    rows.is_some() && name(1) == rows && name(0) != rows
}
