//! Sparse tables in shares of rows.

use std::path::PathBuf;
use std::sync::Arc;

use esker::{Dataset, VarId};
use esker_comm::Communicator;
use esker_models::ModelError;
use esker_models::relation::{self, Ragged, Table};
use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;

use super::{elements, numbers, same_ranks};
use crate::comm;
use crate::errors::model_exception;
use crate::handle::Handle;

/// This rank's rows of a sparse table. `esker.relation.Relation` is what people use.
#[pyclass(frozen, module = "esker._esker")]
pub(crate) struct Relation {
    pub(super) inner: relation::Relation,
    pub(super) comm: Arc<dyn Communicator>,
}

impl Relation {
    fn made(
        &self,
        py: Python<'_>,
        make: impl FnOnce(
            &relation::Relation,
            &dyn Communicator,
        ) -> Result<relation::Relation, ModelError>
        + Send,
    ) -> PyResult<Relation> {
        let made = py.detach(|| make(&self.inner, &*self.comm));
        let inner = made.map_err(|error| model_exception(py, &error))?;
        Ok(Relation { inner, comm: self.comm.clone() })
    }
}

#[pymethods]
impl Relation {
    #[getter]
    fn rows(&self) -> u64 {
        self.inner.rows
    }

    #[getter]
    fn columns(&self) -> u64 {
        self.inner.columns
    }

    #[getter]
    fn first(&self) -> u64 {
        self.inner.first
    }

    fn offsets<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<i64>> {
        numbers(py, &self.inner.offsets)
    }

    fn indices<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<i64>> {
        numbers(py, &self.inner.indices)
    }

    fn weights<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyArray1<f64>>> {
        self.inner.weights.as_ref().map(|weights| PyArray1::from_slice(py, weights))
    }

    fn invert(&self, py: Python<'_>) -> PyResult<Relation> {
        self.made(py, |inner, comm| inner.invert(comm))
    }

    fn compose(&self, py: Python<'_>, other: &Relation) -> PyResult<Relation> {
        same_ranks(self.comm.size(), other.comm.size())?;
        self.made(py, |inner, comm| inner.compose(comm, &other.inner))
    }

    fn fetch(&self, py: Python<'_>, rows: PyReadonlyArray1<'_, i64>) -> PyResult<Relation> {
        let rows = elements(rows.as_slice()?);
        self.made(py, |inner, comm| inner.fetch(comm, &rows))
    }

    fn at_least(&self, least: f64) -> Relation {
        Relation { inner: self.inner.at_least(least), comm: self.comm.clone() }
    }

    fn without_itself(&self) -> Relation {
        Relation { inner: self.inner.without_itself(), comm: self.comm.clone() }
    }

    fn write_metis(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        let wrote = py.detach(|| relation::write_metis(&*self.comm, &self.inner, &path));
        wrote.map_err(|error| model_exception(py, &error))
    }

    fn width(&self, py: Python<'_>) -> PyResult<u64> {
        let found = py.detach(|| self.inner.width(&*self.comm));
        found.map_err(|error| model_exception(py, &error))
    }

    fn total(&self, py: Python<'_>) -> PyResult<u64> {
        let found = py.detach(|| self.inner.total(&*self.comm));
        found.map_err(|error| model_exception(py, &error))
    }

    #[pyo3(signature = (handle, var, *, start, fill, transposed))]
    fn write_table(
        &self,
        py: Python<'_>,
        handle: &Bound<'_, Handle>,
        var: usize,
        start: i64,
        fill: Option<i64>,
        transposed: bool,
    ) -> PyResult<()> {
        same_ranks(self.comm.size(), handle.get().shared.size)?;
        let columns = self.inner.columns;
        let table = Table { var: VarId(var), start, fill, columns, transposed };
        let shared = &handle.get().shared;
        handle.get().free(py, || shared.models(|ds| self.inner.write_table(ds, &table)))
    }

    #[pyo3(signature = (handle, offsets, indices, weights, *, start))]
    fn write_ragged(
        &self,
        py: Python<'_>,
        handle: &Bound<'_, Handle>,
        offsets: usize,
        indices: usize,
        weights: Option<usize>,
        start: i64,
    ) -> PyResult<()> {
        same_ranks(self.comm.size(), handle.get().shared.size)?;
        let ragged = ragged((offsets, indices, weights), start, self.inner.columns);
        let shared = &handle.get().shared;
        handle.get().free(py, || shared.models(|ds| self.inner.write_ragged(ds, &ragged)))
    }
}

fn ragged(
    (offsets, indices, weights): (usize, usize, Option<usize>),
    start: i64,
    columns: u64,
) -> Ragged {
    let (offsets, indices, weights) = (VarId(offsets), VarId(indices), weights.map(VarId));
    Ragged { offsets, indices, weights, start, columns }
}

/// A relation of the rows that ranks give in SciPy's CSR form. Collective.
#[pyfunction]
#[pyo3(signature = (columns, offsets, indices, weights, comm))]
pub(crate) fn relation_of(
    py: Python<'_>,
    columns: u64,
    offsets: PyReadonlyArray1<'_, i64>,
    indices: PyReadonlyArray1<'_, i64>,
    weights: Option<PyReadonlyArray1<'_, f64>>,
    comm: Option<Bound<'_, PyAny>>,
) -> PyResult<Relation> {
    let comm = comm::ranks(comm.as_ref())?;
    let (offsets, indices) = (elements(offsets.as_slice()?), elements(indices.as_slice()?));
    let weights = weights.map(|weights| weights.as_slice().map(<[f64]>::to_vec)).transpose()?;
    let made =
        py.detach(|| relation::Relation::from_parts(&*comm, columns, offsets, indices, weights));
    let inner = made.map_err(|error| model_exception(py, &error))?;
    Ok(Relation { inner, comm })
}

/// A METIS graph. Collective.
#[pyfunction]
#[pyo3(signature = (path, comm))]
pub(crate) fn relation_of_metis(
    py: Python<'_>,
    path: PathBuf,
    comm: Option<Bound<'_, PyAny>>,
) -> PyResult<Relation> {
    let comm = comm::ranks(comm.as_ref())?;
    let read = py.detach(|| relation::read_metis(&*comm, &path));
    let inner = read.map_err(|error| model_exception(py, &error))?;
    Ok(Relation { inner, comm })
}

/// A table of fixed width. Collective.
#[pyfunction]
#[pyo3(signature = (handle, var, *, columns, start, fill, transposed))]
pub(crate) fn relation_of_table(
    py: Python<'_>,
    handle: &Bound<'_, Handle>,
    var: usize,
    columns: u64,
    start: i64,
    fill: Option<i64>,
    transposed: bool,
) -> PyResult<Relation> {
    let table = Table { var: VarId(var), start, fill, columns, transposed };
    read(py, handle, |ds| relation::Relation::read_table(ds, &table))
}

/// A ragged table. Collective.
#[pyfunction]
#[pyo3(signature = (handle, offsets, indices, weights, *, columns, start))]
pub(crate) fn relation_of_ragged(
    py: Python<'_>,
    handle: &Bound<'_, Handle>,
    offsets: usize,
    indices: usize,
    weights: Option<usize>,
    columns: u64,
    start: i64,
) -> PyResult<Relation> {
    let ragged = ragged((offsets, indices, weights), start, columns);
    read(py, handle, |ds| relation::Relation::read_ragged(ds, &ragged))
}

/// A relation that a dataset has, of its ranks.
pub(super) fn read(
    py: Python<'_>,
    handle: &Bound<'_, Handle>,
    read: impl FnOnce(&mut Dataset) -> Result<relation::Relation, ModelError> + Send,
) -> PyResult<Relation> {
    let shared = &handle.get().shared;
    handle.get().free(py, || {
        shared.models(|ds| {
            let inner = read(ds)?;
            Ok(Relation { inner, comm: ds.comm().clone() })
        })
    })
}
