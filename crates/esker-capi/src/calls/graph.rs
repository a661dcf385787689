//! Graphs of variables (seeds/004, Figure 3). None of these calls is collective: `enddef` merges by name.

use std::ffi::{c_char, c_int, c_void};

use esker::MemoryType;
use esker::graph::{GraphError, GraphSet, Of};

use crate::attribute::{external, hand_out, lent, type_of};
use crate::codes::*;
use crate::file::{File, State, copy_name, give, name_of, new_name};
use crate::files;
use crate::graph_ids::Kind;
use crate::transfer::Offset;

/// NC_DIRECTED and NC_UNDIRECTED of the header.
const DIRECTED: c_int = 1;
const UNDIRECTED: c_int = 2;

fn code(error: GraphError) -> Code {
    let code = match &error {
        GraphError::Name(source) => match of_schema(source) {
            // There is nothing of this name in a graph.
            NC_ENOTVAR => NC_EINVAL,
            code => code,
        },
        _ => NC_EINVAL,
    };
    told(code, error)
}

impl File {
    /// The graphs as they are now, with every object numbered.
    fn graphs(&mut self) -> Result<&GraphSet> {
        let read = match &self.state {
            State::Data(dataset) if self.graphs_read.is_none() => {
                Some(dataset.graphs().map_err(|e| of(&e))?.set)
            }
            _ => None,
        };
        if let Some(read) = read {
            self.graphs_read = Some(read);
        }
        let set = match (&self.state, &self.graphs_read) {
            (State::Define(define), _) => define.graphs().map_err(|e| of(&e))?,
            (State::Data(_), Some(read)) => read,
            _ => return Err(NC_EFILE),
        };
        self.graph_ids.learn(set);
        Ok(set)
    }

    /// The name of an object.
    fn graph_name(&mut self, kind: Kind, id: c_int) -> Result<String> {
        self.graphs()?;
        self.graph_ids
            .name(kind, id)
            .map(str::to_string)
            .ok_or_else(|| told(NC_EINVAL, format!("there is no {} {id}", kind.word())))
    }

    /// Changes the graphs, in define mode.
    fn change_graphs(
        &mut self,
        change: impl FnOnce(&mut GraphSet) -> std::result::Result<(), GraphError>,
    ) -> Result<()> {
        self.require_writable()?;
        self.require_define()?;
        change(self.define()?.graphs_mut().map_err(|e| of(&e))?).map_err(code)
    }
}

/// Defines an object and gives its number.
unsafe fn add(
    ncid: c_int,
    name: *const c_char,
    idp: *mut c_int,
    kind: Kind,
    add: impl FnOnce(&mut GraphSet, &str) -> std::result::Result<(), GraphError>,
) -> c_int {
    files::with(ncid, |file| {
        // SAFETY: the name is as C says.
        let name = new_name(unsafe { name_of(name) }?)?;
        file.graphs()?;
        if kind == Kind::Graph && file.schema()?.var(name).is_some() {
            return Err(NC_ENAMEINUSE);
        }
        file.change_graphs(|set| add(set, name))?;
        file.graphs()?;
        let id = file.graph_ids.id(kind, &esker_format::name::normalise(name)).ok_or(NC_EINVAL)?;
        // SAFETY: the place is as C says.
        unsafe { give(idp, id) };
        Ok(())
    })
}

pub(crate) unsafe fn def_graph(ncid: c_int, name: *const c_char, graphidp: *mut c_int) -> c_int {
    // SAFETY: the arguments are as C says.
    unsafe { add(ncid, name, graphidp, Kind::Graph, |set, name| set.add_graph(name)) }
}

pub(crate) unsafe fn def_vertex(ncid: c_int, name: *const c_char, vertexidp: *mut c_int) -> c_int {
    // SAFETY: the arguments are as C says.
    unsafe { add(ncid, name, vertexidp, Kind::Vertex, |set, name| set.add_vertex(name)) }
}

pub(crate) unsafe fn def_edge(
    ncid: c_int,
    name: *const c_char,
    weight: f64,
    direction: c_int,
    edgeidp: *mut c_int,
) -> c_int {
    if direction != DIRECTED && direction != UNDIRECTED {
        return told(NC_EINVAL, format!("an edge has no direction {direction}"));
    }
    let directed = direction == DIRECTED;
    // SAFETY: the arguments are as C says.
    unsafe {
        add(ncid, name, edgeidp, Kind::Edge, |set, name| set.add_edge(name, weight, directed))
    }
}

pub(crate) unsafe fn add_vertex(ncid: c_int, graphid: c_int, vertexid: c_int) -> c_int {
    files::with(ncid, |file| {
        let graph = file.graph_name(Kind::Graph, graphid)?;
        let vertex = file.graph_name(Kind::Vertex, vertexid)?;
        file.change_graphs(|set| set.put_in(&graph, &vertex))
    })
}

pub(crate) unsafe fn del_vertex_in_graph(ncid: c_int, graphid: c_int, vertexid: c_int) -> c_int {
    files::with(ncid, |file| {
        let graph = file.graph_name(Kind::Graph, graphid)?;
        let vertex = file.graph_name(Kind::Vertex, vertexid)?;
        file.change_graphs(|set| set.take_out(&graph, &vertex))
    })
}

/// The names of a vertex, an edge and a neighbour.
fn ends(file: &mut File, ids: [c_int; 3]) -> Result<[String; 3]> {
    let vertex = file.graph_name(Kind::Vertex, ids[0])?;
    let edge = file.graph_name(Kind::Edge, ids[1])?;
    Ok([vertex, edge, file.graph_name(Kind::Vertex, ids[2])?])
}

pub(crate) unsafe fn add_edge(
    ncid: c_int,
    vertexid: c_int,
    edgeid: c_int,
    adj_vertexid: c_int,
) -> c_int {
    files::with(ncid, |file| {
        let [vertex, edge, to] = ends(file, [vertexid, edgeid, adj_vertexid])?;
        file.change_graphs(|set| set.connect(&vertex, &edge, &to))
    })
}

pub(crate) unsafe fn del_edge_in_vertex(
    ncid: c_int,
    vertexid: c_int,
    edgeid: c_int,
    adj_vertexid: c_int,
) -> c_int {
    files::with(ncid, |file| {
        let [vertex, edge, to] = ends(file, [vertexid, edgeid, adj_vertexid])?;
        file.change_graphs(|set| set.disconnect(&vertex, &edge, &to))
    })
}

pub(crate) unsafe fn add_var(ncid: c_int, vertexid: c_int, varid: c_int) -> c_int {
    files::with(ncid, |file| {
        let vertex = file.graph_name(Kind::Vertex, vertexid)?;
        let var = file.variable(varid)?.name.clone();
        file.change_graphs(|set| set.attach(&vertex, &var))
    })
}

pub(crate) unsafe fn del_var_in_vertex(ncid: c_int, vertexid: c_int, varid: c_int) -> c_int {
    files::with(ncid, |file| {
        let vertex = file.graph_name(Kind::Vertex, vertexid)?;
        let var = file.variable(varid)?.name.clone();
        file.change_graphs(|set| set.detach(&vertex, &var))
    })
}

/// Deletes an object; its number is not used again.
fn delete(
    ncid: c_int,
    kind: Kind,
    id: c_int,
    delete: impl FnOnce(&mut GraphSet, &str) -> std::result::Result<(), GraphError>,
) -> c_int {
    files::with(ncid, |file| {
        let name = file.graph_name(kind, id)?;
        file.change_graphs(|set| delete(set, &name))?;
        file.graph_ids.forget(kind, id);
        Ok(())
    })
}

pub(crate) unsafe fn del_graph(ncid: c_int, graphid: c_int) -> c_int {
    delete(ncid, Kind::Graph, graphid, |set, name| set.delete_graph(name))
}

pub(crate) unsafe fn del_vertex(ncid: c_int, vertexid: c_int) -> c_int {
    delete(ncid, Kind::Vertex, vertexid, |set, name| set.delete_vertex(name))
}

pub(crate) unsafe fn del_edge(ncid: c_int, edgeid: c_int) -> c_int {
    delete(ncid, Kind::Edge, edgeid, |set, name| set.delete_edge(name))
}

/// Renames an object, which keeps its number.
unsafe fn rename(
    ncid: c_int,
    (kind, id): (Kind, c_int),
    name: *const c_char,
    rename: impl FnOnce(&mut GraphSet, &str, &str) -> std::result::Result<(), GraphError>,
) -> c_int {
    files::with(ncid, |file| {
        // SAFETY: the name is as C says.
        let name = new_name(unsafe { name_of(name) }?)?;
        let old = file.graph_name(kind, id)?;
        file.change_graphs(|set| rename(set, &old, name))?;
        file.graph_ids.rename(kind, id, &esker_format::name::normalise(name));
        Ok(())
    })
}

pub(crate) unsafe fn rename_graph(ncid: c_int, graphid: c_int, name: *const c_char) -> c_int {
    // SAFETY: the name is as C says.
    unsafe {
        rename(ncid, (Kind::Graph, graphid), name, |set, old, new| set.rename_graph(old, new))
    }
}

pub(crate) unsafe fn rename_vertex(ncid: c_int, vertexid: c_int, name: *const c_char) -> c_int {
    let of = (Kind::Vertex, vertexid);
    // SAFETY: the name is as C says.
    unsafe { rename(ncid, of, name, |set, old, new| set.rename_vertex(old, new)) }
}

pub(crate) unsafe fn rename_edge(ncid: c_int, edgeid: c_int, name: *const c_char) -> c_int {
    // SAFETY: the name is as C says.
    unsafe { rename(ncid, (Kind::Edge, edgeid), name, |set, old, new| set.rename_edge(old, new)) }
}

pub(crate) unsafe fn inq_graphs(
    ncid: c_int,
    ngraphsp: *mut c_int,
    nverticesp: *mut c_int,
    nedgesp: *mut c_int,
) -> c_int {
    files::with(ncid, |file| {
        let set = file.graphs()?;
        let counts = [set.graphs().len(), set.vertices().len(), set.edges().len()];
        for (place, count) in [ngraphsp, nverticesp, nedgesp].into_iter().zip(counts) {
            // SAFETY: the places are as C says.
            unsafe { give(place, count as c_int) };
        }
        Ok(())
    })
}

/// The numbers of all objects of a kind, in the order of definition.
unsafe fn ids(ncid: c_int, kind: Kind, place: *mut c_int) -> c_int {
    files::with(ncid, |file| {
        let names = Kind::names(kind, file.graphs()?);
        let ids: Vec<c_int> = names.iter().filter_map(|n| file.graph_ids.id(kind, n)).collect();
        // SAFETY: the list has room, as C says.
        unsafe { give_all(place, &ids) };
        Ok(())
    })
}

/// # Safety
///
/// `place` is null or has room for all.
unsafe fn give_all(place: *mut c_int, values: &[c_int]) {
    for (at, value) in values.iter().enumerate().filter(|_| !place.is_null()) {
        // SAFETY: the caller vouches for the room.
        unsafe { place.add(at).write_unaligned(*value) };
    }
}

pub(crate) unsafe fn inq_graphids(ncid: c_int, graphids: *mut c_int) -> c_int {
    // SAFETY: the list is as C says.
    unsafe { ids(ncid, Kind::Graph, graphids) }
}

pub(crate) unsafe fn inq_vertexids(ncid: c_int, vertexids: *mut c_int) -> c_int {
    // SAFETY: the list is as C says.
    unsafe { ids(ncid, Kind::Vertex, vertexids) }
}

pub(crate) unsafe fn inq_edgeids(ncid: c_int, edgeids: *mut c_int) -> c_int {
    // SAFETY: the list is as C says.
    unsafe { ids(ncid, Kind::Edge, edgeids) }
}

/// The number of the object of a name.
unsafe fn id_of(ncid: c_int, kind: Kind, name: *const c_char, idp: *mut c_int) -> c_int {
    files::with(ncid, |file| {
        // SAFETY: the name is as C says.
        let name = new_name(unsafe { name_of(name) }?)?;
        file.graphs()?;
        let found = file.graph_ids.id(kind, &esker_format::name::normalise(name));
        let missing = || told(NC_EINVAL, format!("there is no {} \"{name}\"", kind.word()));
        // SAFETY: the place is as C says.
        unsafe { give(idp, found.ok_or_else(missing)?) };
        Ok(())
    })
}

pub(crate) unsafe fn inq_graphid(ncid: c_int, name: *const c_char, graphidp: *mut c_int) -> c_int {
    // SAFETY: the arguments are as C says.
    unsafe { id_of(ncid, Kind::Graph, name, graphidp) }
}

pub(crate) unsafe fn inq_vertexid(
    ncid: c_int,
    name: *const c_char,
    vertexidp: *mut c_int,
) -> c_int {
    // SAFETY: the arguments are as C says.
    unsafe { id_of(ncid, Kind::Vertex, name, vertexidp) }
}

pub(crate) unsafe fn inq_edgeid(ncid: c_int, name: *const c_char, edgeidp: *mut c_int) -> c_int {
    // SAFETY: the arguments are as C says.
    unsafe { id_of(ncid, Kind::Edge, name, edgeidp) }
}

pub(crate) unsafe fn inq_graph(
    ncid: c_int,
    graphid: c_int,
    name: *mut c_char,
    nverticesp: *mut c_int,
    vertexids: *mut c_int,
) -> c_int {
    files::with(ncid, |file| {
        let graph = file.graph_name(Kind::Graph, graphid)?;
        let vertices = file.graphs()?.graph(&graph).map_err(code)?.vertices.as_slice().to_vec();
        let ids = vertices.iter().filter_map(|v| file.graph_ids.id(Kind::Vertex, v));
        let ids: Vec<c_int> = ids.collect();
        // SAFETY: the places are as C says.
        unsafe {
            copy_name(&graph, name);
            give(nverticesp, ids.len() as c_int);
            give_all(vertexids, &ids);
        }
        Ok(())
    })
}

pub(crate) unsafe fn inq_vertex(
    ncid: c_int,
    vertexid: c_int,
    name: *mut c_char,
    nvarsp: *mut c_int,
    varids: *mut c_int,
    nedgesp: *mut c_int,
    edgeids: *mut c_int,
    adj_vertexids: *mut c_int,
) -> c_int {
    files::with(ncid, |file| {
        let vertex = file.graph_name(Kind::Vertex, vertexid)?;
        let found = file.graphs()?.vertex(&vertex).map_err(code)?.clone();
        let schema = file.schema()?;
        let vars: Vec<c_int> =
            found.vars.iter().filter_map(|v| schema.var(v)).map(|v| v.0 as c_int).collect();
        let id = |kind, name: &str| file.graph_ids.id(kind, name).unwrap_or(-1);
        let edges: Vec<c_int> = found.links.iter().map(|l| id(Kind::Edge, &l.edge)).collect();
        let to: Vec<c_int> = found.links.iter().map(|l| id(Kind::Vertex, &l.to)).collect();
        // SAFETY: the places are as C says.
        unsafe {
            copy_name(&vertex, name);
            give(nvarsp, vars.len() as c_int);
            give_all(varids, &vars);
            give(nedgesp, edges.len() as c_int);
            give_all(edgeids, &edges);
            give_all(adj_vertexids, &to);
        }
        Ok(())
    })
}

pub(crate) unsafe fn inq_edge(
    ncid: c_int,
    edgeid: c_int,
    name: *mut c_char,
    weightp: *mut c_void,
    directionp: *mut c_int,
) -> c_int {
    files::with(ncid, |file| {
        let edge = file.graph_name(Kind::Edge, edgeid)?;
        let found = file.graphs()?.edge(&edge).map_err(code)?.clone();
        // SAFETY: the places are as C says; the weight's is a double's.
        unsafe {
            copy_name(&edge, name);
            give(weightp.cast::<f64>(), found.weight);
            give(directionp, if found.directed { DIRECTED } else { UNDIRECTED });
        }
        Ok(())
    })
}

/// Whose attributes are meant.
fn owner(kind: Kind, name: &str) -> Of<'_> {
    match kind {
        Kind::Graph => Of::Graph(name),
        Kind::Vertex | Kind::Edge => Of::Vertex(name),
    }
}

/// Sets an attribute of a graph or a vertex, in define mode. Without a memory type it is the external one's.
///
/// # Safety
///
/// As the functions in C.
pub(crate) unsafe fn put_att_of(
    (ncid, kind, id): (c_int, Kind, c_int),
    name: *const c_char,
    xtype: c_int,
    given: (i64, *const c_void),
    memory: Option<MemoryType>,
) -> c_int {
    files::with(ncid, |file| {
        // SAFETY: the name is as C says.
        let name = new_name(unsafe { name_of(name) }?)?;
        let of = file.graph_name(kind, id)?;
        let ty = type_of(file.version, xtype, memory, given)?;
        // SAFETY: the values are as C says, and were checked to be there.
        let bytes = unsafe { lent(ty, memory, given) };
        let (values, report) = external(file.version, ty, memory, bytes)?;
        file.change_graphs(|set| set.put_attr(owner(kind, &of), name, values))?;
        match report.all_fit() {
            true => Ok(()),
            false => Err(told(NC_ERANGE, format!("attribute \"{name}\": {report}"))),
        }
    })
}

/// Gives the values of an attribute.
///
/// # Safety
///
/// As the functions in C.
pub(crate) unsafe fn get_att_of(
    (ncid, kind, id): (c_int, Kind, c_int),
    name: *const c_char,
    data: *mut c_void,
    memory: Option<MemoryType>,
) -> c_int {
    files::with(ncid, |file| {
        let version = file.version;
        // SAFETY: the name is as C says.
        let name = std::str::from_utf8(unsafe { name_of(name) }?).map_err(|_| NC_ENOTATT)?;
        let of = file.graph_name(kind, id)?;
        let attrs = file.graphs()?.attrs(owner(kind, &of)).map_err(code)?;
        let found = attrs.get(&esker_format::name::normalise(name)).ok_or(NC_ENOTATT)?;
        // SAFETY: the caller has room for all values.
        unsafe { hand_out((name, &found.values), version, data, memory) }
    })
}

/// Gives the type of an attribute, and how many values it has.
unsafe fn inq_att_of(
    (ncid, kind, id): (c_int, Kind, c_int),
    name: *const c_char,
    xtypep: *mut c_int,
    lenp: *mut Offset,
) -> c_int {
    files::with(ncid, |file| {
        // SAFETY: the name is as C says.
        let name = std::str::from_utf8(unsafe { name_of(name) }?).map_err(|_| NC_ENOTATT)?;
        let of = file.graph_name(kind, id)?;
        let attrs = file.graphs()?.attrs(owner(kind, &of)).map_err(code)?;
        let found = attrs.get(&esker_format::name::normalise(name)).ok_or(NC_ENOTATT)?;
        // SAFETY: the places are as C says.
        unsafe {
            give(xtypep, found.values.ty().code() as c_int);
            give(lenp, found.values.len() as Offset);
        }
        Ok(())
    })
}

unsafe fn inq_natts_of((ncid, kind, id): (c_int, Kind, c_int), nattsp: *mut c_int) -> c_int {
    files::with(ncid, |file| {
        let of = file.graph_name(kind, id)?;
        let count = file.graphs()?.attrs(owner(kind, &of)).map_err(code)?.len();
        // SAFETY: the place is as C says.
        unsafe { give(nattsp, count as c_int) };
        Ok(())
    })
}

unsafe fn inq_attname_of(
    (ncid, kind, id): (c_int, Kind, c_int),
    attnum: c_int,
    name: *mut c_char,
) -> c_int {
    files::with(ncid, |file| {
        let of = file.graph_name(kind, id)?;
        let attrs = file.graphs()?.attrs(owner(kind, &of)).map_err(code)?;
        let found = usize::try_from(attnum).ok().and_then(|at| attrs.at(at)).ok_or(NC_ENOTATT)?;
        // SAFETY: the place is as C says.
        unsafe { copy_name(&found.name, name) };
        Ok(())
    })
}

unsafe fn del_att_of((ncid, kind, id): (c_int, Kind, c_int), name: *const c_char) -> c_int {
    files::with(ncid, |file| {
        // SAFETY: the name is as C says.
        let name = new_name(unsafe { name_of(name) }?)?;
        let of = file.graph_name(kind, id)?;
        let attrs = file.graphs()?.attrs(owner(kind, &of)).map_err(code)?;
        if attrs.get(&esker_format::name::normalise(name)).is_none() {
            return Err(NC_ENOTATT);
        }
        file.change_graphs(|set| set.del_attr(owner(kind, &of), name).map(drop))
    })
}

pub(crate) unsafe fn put_graph_att(
    ncid: c_int,
    graphid: c_int,
    name: *const c_char,
    xtype: c_int,
    len: Offset,
    op: *const c_void,
) -> c_int {
    // SAFETY: the arguments are as C says.
    unsafe { put_att_of((ncid, Kind::Graph, graphid), name, xtype, (len, op), None) }
}

pub(crate) unsafe fn get_graph_att(
    ncid: c_int,
    graphid: c_int,
    name: *const c_char,
    ip: *mut c_void,
) -> c_int {
    // SAFETY: the arguments are as C says.
    unsafe { get_att_of((ncid, Kind::Graph, graphid), name, ip, None) }
}

pub(crate) unsafe fn inq_graph_att(
    ncid: c_int,
    graphid: c_int,
    name: *const c_char,
    xtypep: *mut c_int,
    lenp: *mut Offset,
) -> c_int {
    // SAFETY: the arguments are as C says.
    unsafe { inq_att_of((ncid, Kind::Graph, graphid), name, xtypep, lenp) }
}

pub(crate) unsafe fn inq_graph_natts(ncid: c_int, graphid: c_int, nattsp: *mut c_int) -> c_int {
    // SAFETY: the place is as C says.
    unsafe { inq_natts_of((ncid, Kind::Graph, graphid), nattsp) }
}

pub(crate) unsafe fn inq_graph_attname(
    ncid: c_int,
    graphid: c_int,
    attnum: c_int,
    name: *mut c_char,
) -> c_int {
    // SAFETY: the place is as C says.
    unsafe { inq_attname_of((ncid, Kind::Graph, graphid), attnum, name) }
}

pub(crate) unsafe fn del_graph_att(ncid: c_int, graphid: c_int, name: *const c_char) -> c_int {
    // SAFETY: the name is as C says.
    unsafe { del_att_of((ncid, Kind::Graph, graphid), name) }
}

pub(crate) unsafe fn put_vertex_att(
    ncid: c_int,
    vertexid: c_int,
    name: *const c_char,
    xtype: c_int,
    len: Offset,
    op: *const c_void,
) -> c_int {
    // SAFETY: the arguments are as C says.
    unsafe { put_att_of((ncid, Kind::Vertex, vertexid), name, xtype, (len, op), None) }
}

pub(crate) unsafe fn get_vertex_att(
    ncid: c_int,
    vertexid: c_int,
    name: *const c_char,
    ip: *mut c_void,
) -> c_int {
    // SAFETY: the arguments are as C says.
    unsafe { get_att_of((ncid, Kind::Vertex, vertexid), name, ip, None) }
}

pub(crate) unsafe fn inq_vertex_att(
    ncid: c_int,
    vertexid: c_int,
    name: *const c_char,
    xtypep: *mut c_int,
    lenp: *mut Offset,
) -> c_int {
    // SAFETY: the arguments are as C says.
    unsafe { inq_att_of((ncid, Kind::Vertex, vertexid), name, xtypep, lenp) }
}

pub(crate) unsafe fn inq_vertex_natts(ncid: c_int, vertexid: c_int, nattsp: *mut c_int) -> c_int {
    // SAFETY: the place is as C says.
    unsafe { inq_natts_of((ncid, Kind::Vertex, vertexid), nattsp) }
}

pub(crate) unsafe fn inq_vertex_attname(
    ncid: c_int,
    vertexid: c_int,
    attnum: c_int,
    name: *mut c_char,
) -> c_int {
    // SAFETY: the place is as C says.
    unsafe { inq_attname_of((ncid, Kind::Vertex, vertexid), attnum, name) }
}

pub(crate) unsafe fn del_vertex_att(ncid: c_int, vertexid: c_int, name: *const c_char) -> c_int {
    // SAFETY: the name is as C says.
    unsafe { del_att_of((ncid, Kind::Vertex, vertexid), name) }
}
