//! Meshes and their parts.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use esker::{CreateOptions, Dataset, VarId};
use esker_comm::Communicator;
use esker_models::ModelError;
use esker_models::mesh::{self, Connectivity, Cut, FieldSlab, Location, Topology, topologies};
use numpy::{PyArray1, PyReadonlyArray1, PyUntypedArray};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use super::relations::{self, Relation};
use super::{numbers, same_ranks};
use crate::errors::model_exception;
use crate::handle::{Handle, version_named};
use crate::memory::{Lent, empty};
use crate::{comm, dtype};

fn location(word: &str) -> PyResult<Location> {
    Location::of_word(word).ok_or_else(|| {
        PyValueError::new_err(format!("{word:?} is not one of node, edge, face, volume"))
    })
}

/// The mesh of this number, which the header has.
fn topology(ds: &Dataset, number: usize) -> Result<Topology, ModelError> {
    let gone = || {
        ModelError::Asked(format!("{}: there is no mesh {number} any more", ds.path().display()))
    };
    topologies(ds)?.into_iter().nth(number).ok_or_else(gone)
}

/// What a header says of its meshes: a dict for each. Collective only while definitions are pending.
#[pyfunction]
pub(crate) fn mesh_topologies<'py>(
    py: Python<'py>,
    handle: &Bound<'py, Handle>,
) -> PyResult<Bound<'py, PyList>> {
    let shared = &handle.get().shared;
    let found = handle.get().free(py, || {
        shared.models(|ds| {
            let schema = ds.schema();
            let of = |mesh: Topology| {
                let fields = mesh.fields(schema).into_iter().filter_map(|(var, location)| {
                    let variable = schema.variable(var)?;
                    let place = mesh.place_in(schema, variable, location)?;
                    Some((variable.name.to_string(), location.word(), place))
                });
                let fields: Vec<_> = fields.collect();
                (mesh, fields)
            };
            Ok(topologies(ds)?.into_iter().map(of).collect::<Vec<_>>())
        })
    })?;
    let all = PyList::empty(py);
    for (mesh, fields) in found {
        let of = PyDict::new(py);
        of.set_item("name", &mesh.name)?;
        of.set_item("dimension", mesh.dimension)?;
        of.set_item("counts", (mesh.nodes, mesh.edges, mesh.faces, mesh.volumes))?;
        of.set_item("dims", mesh.dims.to_vec())?;
        of.set_item("coordinates", mesh.coordinates.to_vec())?;
        let tables: Vec<String> =
            mesh.tables.iter().map(|(c, _)| Connectivity::short(*c)).collect();
        of.set_item("tables", tables)?;
        of.set_item("fields", fields)?;
        all.append(of)?;
    }
    Ok(all)
}

/// A relation of a mesh, stored or following from what is. Collective.
#[pyfunction]
pub(crate) fn mesh_relation(
    py: Python<'_>,
    handle: &Bound<'_, Handle>,
    mesh: usize,
    from: &str,
    to: &str,
) -> PyResult<Relation> {
    let (from, to) = (location(from)?, location(to)?);
    relations::read(py, handle, |ds| topology(ds, mesh)?.relation(ds, from, to))
}

/// What this rank has of a mesh's elements. `esker.mesh.Part` is what people use.
#[pyclass(frozen, module = "esker._esker")]
pub(crate) struct Part {
    inner: mesh::Part,
    comm: Arc<dyn Communicator>,
}

/// Cuts a mesh: `how` is `range`, `hilbert`, `labels` (with a variable), `file` (with a path) or `given` (with labels of this rank's
/// share). Collective.
#[pyfunction]
#[pyo3(signature = (handle, mesh, at, how, name, labels, layers, over))]
#[allow(clippy::too_many_arguments)]
pub(crate) fn mesh_part(
    py: Python<'_>,
    handle: &Bound<'_, Handle>,
    mesh: usize,
    at: &str,
    how: &str,
    name: Option<PathBuf>,
    labels: Option<PyReadonlyArray1<'_, i64>>,
    layers: usize,
    over: Option<&Relation>,
) -> PyResult<Part> {
    let at = location(at)?;
    let named = || name.clone().ok_or_else(|| PyValueError::new_err("a name is needed"));
    let cut = match how {
        "range" => Some(Cut::Range),
        "hilbert" => Some(Cut::Hilbert),
        "labels" => Some(Cut::Labels(named()?.to_string_lossy().into_owned())),
        "file" => Some(Cut::File(named()?)),
        "given" => None,
        _ => return Err(PyValueError::new_err(format!("meshes are not cut by {how:?}"))),
    };
    let size = handle.get().shared.size;
    if let Some(over) = over {
        same_ranks(over.comm.size(), size)?;
    }
    // A negative label names no rank, which all ranks are told.
    let labels: Vec<usize> = match &labels {
        Some(labels) => {
            labels.as_slice()?.iter().map(|n| usize::try_from(*n).unwrap_or(usize::MAX)).collect()
        }
        None => Vec::new(),
    };
    let over = over.map(|over| &over.inner);
    let shared = &handle.get().shared;
    handle.get().free(py, || {
        shared.models(|ds| {
            let mesh = topology(ds, mesh)?;
            let comm = ds.comm().clone();
            let inner = match cut {
                Some(cut) => mesh::Part::new(ds, &mesh, at, &cut, layers, over)?,
                None => {
                    let read;
                    let over = match (layers, over) {
                        (0, _) | (_, Some(_)) => over,
                        _ => {
                            read = mesh.relation(ds, at, at)?;
                            Some(&read)
                        }
                    };
                    let count = mesh.count(at);
                    mesh::Part::of_labels(&*comm, at, count, &labels, layers, over)?
                }
            };
            Ok(Part { inner, comm })
        })
    })
}

/// Ranks and local numbers as a dict.
fn lists<'py>(py: Python<'py>, of: &[(usize, Vec<usize>)]) -> PyResult<Bound<'py, PyDict>> {
    let all = PyDict::new(py);
    for (rank, list) in of {
        all.set_item(rank, numbers(py, list))?;
    }
    Ok(all)
}

/// Offsets, local numbers and the global number of each local one.
type LocalTable<'py> =
    (Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<i64>>);

#[pymethods]
impl Part {
    #[getter]
    fn location(&self) -> &'static str {
        self.inner.location.word()
    }

    #[getter]
    fn count(&self) -> u64 {
        self.inner.count
    }

    fn own<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<i64>> {
        numbers(py, &self.inner.own)
    }

    fn halo<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<i64>> {
        numbers(py, &self.inner.halo)
    }

    /// The ranks that own the halo's elements; -1 where nobody does.
    fn halo_owners<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<i64>> {
        let signed = |rank: &usize| i64::try_from(*rank).unwrap_or(-1);
        PyArray1::from_vec(py, self.inner.halo_owner.iter().map(signed).collect())
    }

    fn send<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        lists(py, &self.inner.send)
    }

    fn receive<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        lists(py, &self.inner.receive)
    }

    fn __len__(&self) -> usize {
        self.inner.len()
    }

    #[pyo3(signature = (relation, numbered))]
    fn table<'py>(
        &self,
        py: Python<'py>,
        relation: &Relation,
        numbered: Option<&Part>,
    ) -> PyResult<LocalTable<'py>> {
        same_ranks(self.comm.size(), relation.comm.size())?;
        let numbered = numbered.map(|part| &part.inner);
        let made = py.detach(|| self.inner.table(&*self.comm, &relation.inner, numbered));
        let table = made.map_err(|error| model_exception(py, &error))?;
        Ok((numbers(py, &table.offsets), numbers(py, &table.indices), numbers(py, &table.globals)))
    }

    fn of_neighbours(&self, py: Python<'_>, relation: &Relation, to: &str) -> PyResult<Part> {
        same_ranks(self.comm.size(), relation.comm.size())?;
        let to = location(to)?;
        let made = py.detach(|| self.inner.of_neighbours(&*self.comm, &relation.inner, to));
        let inner = made.map_err(|error| model_exception(py, &error))?;
        Ok(Part { inner, comm: self.comm.clone() })
    }

    /// Gives the halo its owners' values, in a copy: `each` for every local number.
    fn update_halo<'py>(
        &self,
        py: Python<'py>,
        values: PyReadonlyArray1<'_, f64>,
        each: usize,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let mut values = values.as_slice()?.to_vec();
        let done = py.detach(|| self.inner.update_halo(&*self.comm, &mut values, each));
        done.map_err(|error| model_exception(py, &error))?;
        Ok(PyArray1::from_vec(py, values))
    }

    /// Reads ranges (start, stop) of a field, flat: what is before the mesh's dimension, local numbers, what is behind. Collective.
    fn read<'py>(
        &self,
        py: Python<'py>,
        handle: &Bound<'py, Handle>,
        var: usize,
        place: usize,
        ranges: Vec<(u64, u64)>,
    ) -> PyResult<Bound<'py, PyUntypedArray>> {
        let slab = slab(var, place, ranges);
        let shared = &handle.get().shared;
        let (bytes, ty) = handle.get().free(py, || {
            shared.models(|ds| {
                let ty = ds.variable(slab.var)?.ty;
                Ok((self.inner.read_bytes(ds, &slab, ty.natural())?, ty))
            })
        })?;
        let array =
            empty(py, &[(bytes.len() / ty.natural().size()) as u64], dtype::of_type(py, ty)?)?;
        let mut lent = Lent::dense(&array, true)?;
        let whole = lent.whole();
        lent.bytes_mut(&whole).0.copy_from_slice(&bytes);
        Ok(array)
    }

    /// Writes what `read` gives, for own elements or for own elements and halo. Collective.
    fn write(
        &self,
        py: Python<'_>,
        handle: &Bound<'_, Handle>,
        var: usize,
        place: usize,
        ranges: Vec<(u64, u64)>,
        values: &Bound<'_, PyUntypedArray>,
    ) -> PyResult<()> {
        let slab = slab(var, place, ranges);
        let lent = Lent::dense(values, false)?;
        let shared = &handle.get().shared;
        handle.get().free(py, || {
            let whole = lent.whole();
            let (bytes, _) = lent.bytes(&whole);
            shared.models(|ds| self.inner.write_bytes(ds, &slab, (bytes, lent.memory_type())))
        })
    }
}

fn slab(var: usize, place: usize, ranges: Vec<(u64, u64)>) -> FieldSlab {
    let range = |(start, stop): (u64, u64)| Range { start, end: stop };
    FieldSlab { var: VarId(var), place, ranges: ranges.into_iter().map(range).collect() }
}

/// Makes UGRID of another convention. Gives its name, the counts and the variables that were left out. Collective.
#[pyfunction]
#[pyo3(signature = (source, target, *, format, overwrite, comm))]
pub(crate) fn mesh_convert(
    py: Python<'_>,
    source: PathBuf,
    target: PathBuf,
    format: &str,
    overwrite: bool,
    comm: Option<Bound<'_, PyAny>>,
) -> PyResult<(&'static str, [u64; 4], Vec<String>)> {
    let options = CreateOptions::new().version(version_named(format)?).clobber(overwrite);
    let comm = comm::ranks(comm.as_ref())?;
    let done = py.detach(|| mesh::convert(comm, &source, &target, options));
    let done = done.map_err(|error| model_exception(py, &error))?;
    let [nodes, edges, faces] = done.counts;
    Ok((done.convention.name(), [nodes, edges, faces, done.volumes], done.left_out))
}
