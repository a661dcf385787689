//! AMR hierarchies.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use esker::CreateOptions;
use esker_comm::Communicator;
use esker_models::ModelError;
use esker_models::amr::{
    self, BoxSource, Cells, Hierarchy, Level, Plotfile, store, write_plotfile,
};
use numpy::{PyArray1, PyArrayMethods, PyReadonlyArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use super::numbers;
use crate::comm;
use crate::errors::model_exception;

/// An open hierarchy. `esker.amr.Amr` is what people use.
#[pyclass(frozen, module = "esker._esker")]
pub(crate) struct Amr {
    /// None when it was closed.
    inner: Mutex<Option<amr::Amr>>,
    hierarchy: Hierarchy,
    single: bool,
    path: PathBuf,
}

/// Opens a hierarchy. Collective.
#[pyfunction]
#[pyo3(signature = (path, comm))]
pub(crate) fn amr_open(
    py: Python<'_>,
    path: PathBuf,
    comm: Option<Bound<'_, PyAny>>,
) -> PyResult<Amr> {
    let comm = comm::ranks(comm.as_ref())?;
    let opened = py.detach(|| amr::Amr::open(comm, &path));
    let opened = opened.map_err(|error| model_exception(py, &error))?;
    let (hierarchy, single) = (opened.hierarchy.clone(), opened.single);
    Ok(Amr { inner: Mutex::new(Some(opened)), hierarchy, single, path })
}

impl Amr {
    /// Does something with the open hierarchy, without the GIL.
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        act: impl FnOnce(&mut amr::Amr) -> Result<T, ModelError> + Send,
    ) -> PyResult<T> {
        let done = py.detach(|| {
            let mut open = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
            open.as_mut().map(act)
        });
        match done {
            Some(done) => done.map_err(|error| model_exception(py, &error)),
            None => {
                let path = self.path.display();
                Err(PyValueError::new_err(format!("{path}: the hierarchy is closed")))
            }
        }
    }
}

#[pymethods]
impl Amr {
    fn hierarchy<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        to_python(py, &self.hierarchy, self.single)
    }

    /// A covering grid, x fastest; without a region nothing. Collective.
    #[pyo3(signature = (component, level, region))]
    fn read<'py>(
        &self,
        py: Python<'py>,
        component: &str,
        level: usize,
        region: Option<(Vec<i64>, Vec<i64>)>,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let dims = self.hierarchy.dims;
        // One that has no cells is outside of everything, which all ranks are told.
        const NOWHERE: Cells = Cells { lo: [i64::MIN / 2; 3], hi: [i64::MIN / 2; 3] };
        let region = region.map(|(lo, hi)| cells(&lo, &hi, dims).unwrap_or(NOWHERE));
        let values = self.with(py, |amr| amr.read(component, level, region))?;
        Ok(PyArray1::from_vec(py, values))
    }

    /// All components of one box, x fastest. Independent.
    fn read_box<'py>(
        &self,
        py: Python<'py>,
        level: usize,
        number: usize,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let values = self.with(py, |amr| amr.read_box(level, number))?;
        Ok(PyArray1::from_vec(py, values))
    }

    fn close(&self, py: Python<'_>) {
        py.detach(|| drop(self.inner.lock().unwrap_or_else(PoisonError::into_inner).take()));
    }
}

/// The corners of a box as cells, if it has any.
fn cells(lo: &[i64], hi: &[i64], dims: usize) -> Option<Cells> {
    if lo.len() != dims || hi.len() != dims {
        return None;
    }
    let (mut low, mut high) = ([0; 3], [0; 3]);
    low[..dims].copy_from_slice(lo);
    high[..dims].copy_from_slice(hi);
    Cells::new(low, high)
}

/// A hierarchy as a dict; boxes are tables of corners.
fn to_python<'py>(py: Python<'py>, h: &Hierarchy, single: bool) -> PyResult<Bound<'py, PyDict>> {
    let corners = |c: &Cells| -> Vec<i64> { [&c.lo[..h.dims], &c.hi[..h.dims]].concat() };
    let levels = PyList::empty(py);
    for level in &h.levels {
        let of = PyDict::new(py);
        of.set_item("domain", corners(&level.domain))?;
        of.set_item("ratio", level.ratio[..h.dims].to_vec())?;
        of.set_item("cell_size", level.cell_size.clone())?;
        of.set_item("step", level.step)?;
        of.set_item("time", level.time)?;
        let boxes: Vec<i64> = level.boxes.iter().flat_map(corners).collect();
        of.set_item("boxes", numbers(py, &boxes).reshape([level.boxes.len(), 2, h.dims])?)?;
        levels.append(of)?;
    }
    let all = PyDict::new(py);
    all.set_item("dimensions", h.dims)?;
    all.set_item("components", h.names.clone())?;
    all.set_item("time", h.time)?;
    all.set_item("lo", h.lo.clone())?;
    all.set_item("hi", h.hi.clone())?;
    all.set_item("coordinates", h.coordinates)?;
    all.set_item("single", single)?;
    all.set_item("levels", levels)?;
    Ok(all)
}

/// The same dict as a hierarchy.
fn from_python(dict: &Bound<'_, PyDict>) -> PyResult<(Hierarchy, bool)> {
    fn get<'py, T: FromPyObjectOwned<'py>>(dict: &Bound<'py, PyDict>, name: &str) -> PyResult<T> {
        let value = dict.get_item(name)?;
        let value = value.ok_or_else(|| PyValueError::new_err(format!("{name} is missing")))?;
        value.extract().map_err(Into::into)
    }
    let dims: usize = get(dict, "dimensions")?;
    if !(1..=3).contains(&dims) {
        return Err(PyValueError::new_err(format!("{dims} dimensions: 1 to 3 are known")));
    }
    let mut levels = Vec::new();
    for (number, of) in get::<Vec<Bound<'_, PyDict>>>(dict, "levels")?.iter().enumerate() {
        let boxed = |corners: &[i64], what: String| {
            let made = corners.split_at_checked(dims).and_then(|(lo, hi)| cells(lo, hi, dims));
            made.ok_or_else(|| {
                PyValueError::new_err(format!("level {number}: {what} has no cells"))
            })
        };
        let flat: PyReadonlyArray1<'_, i64> = get(of, "boxes")?;
        let mut boxes = Vec::new();
        for (at, corners) in flat.as_slice()?.chunks(2 * dims).enumerate() {
            boxes.push(boxed(corners, format!("box {at}"))?);
        }
        let ratio: Vec<i64> = get(of, "ratio")?;
        let ratio = [0, 1, 2].map(|d| ratio.get(d).copied().unwrap_or(1));
        if ratio.iter().any(|r| !(1..=1 << 20).contains(r)) {
            let why = format!("level {number}: refinement ratio {ratio:?}");
            return Err(PyValueError::new_err(why));
        }
        levels.push(Level {
            domain: boxed(&get::<Vec<i64>>(of, "domain")?, "its domain".to_string())?,
            ratio,
            cell_size: get(of, "cell_size")?,
            step: get(of, "step")?,
            time: get(of, "time")?,
            boxes,
        });
    }
    let hierarchy = Hierarchy {
        dims,
        names: get(dict, "components")?,
        time: get(dict, "time")?,
        lo: get(dict, "lo")?,
        hi: get(dict, "hi")?,
        coordinates: get(dict, "coordinates")?,
        levels,
    };
    Ok((hierarchy, get(dict, "single")?))
}

/// Boxes that a Python function gives.
struct Given {
    hierarchy: Hierarchy,
    single: bool,
    read: Py<PyAny>,
    /// What the function raised.
    raised: Mutex<Option<PyErr>>,
}

impl BoxSource for Given {
    fn hierarchy(&self) -> &Hierarchy {
        &self.hierarchy
    }

    fn is_single(&self) -> bool {
        self.single
    }

    fn read_box(&self, level: usize, number: usize) -> Result<Vec<f64>, ModelError> {
        Python::attach(|py| {
            let read = || -> PyResult<Vec<f64>> {
                let values = self.read.bind(py).call1((level, number))?;
                let values: PyReadonlyArray1<'_, f64> = values.extract()?;
                Ok(values.as_slice()?.to_vec())
            };
            read().map_err(|error| {
                let told = ModelError::Asked(error.value(py).to_string());
                *self.raised.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                told
            })
        })
    }
}

/// Writes a hierarchy whose boxes a function of level and number gives. Collective.
#[pyfunction]
#[pyo3(signature = (source, hierarchy, read, target, *, overwrite, comm))]
pub(crate) fn amr_store(
    py: Python<'_>,
    source: PathBuf,
    hierarchy: &Bound<'_, PyDict>,
    read: Py<PyAny>,
    target: PathBuf,
    overwrite: bool,
    comm: Option<Bound<'_, PyAny>>,
) -> PyResult<()> {
    let comm = comm::ranks(comm.as_ref())?;
    let (hierarchy, single) = from_python(hierarchy)?;
    let given = Given { hierarchy, single, read, raised: Mutex::new(None) };
    let options = CreateOptions::new().clobber(overwrite);
    let done = py.detach(|| {
        // The same on every rank, as the hierarchy is.
        given.hierarchy.check(&source)?;
        store(comm, &given, &target, options)
    });
    match (done, given.raised.into_inner().unwrap_or_else(PoisonError::into_inner)) {
        (Err(_), Some(raised)) => Err(raised),
        (Err(error), None) => Err(model_exception(py, &error)),
        (Ok(()), _) => Ok(()),
    }
}

/// What a plotfile has.
#[pyfunction]
pub(crate) fn amr_plotfile<'py>(py: Python<'py>, path: PathBuf) -> PyResult<Bound<'py, PyDict>> {
    let opened = py.detach(|| Plotfile::open(&path));
    let opened = opened.map_err(|error| model_exception(py, &error))?;
    to_python(py, &opened.hierarchy, opened.single)
}

/// Brings a plotfile into one file. Collective.
#[pyfunction]
#[pyo3(signature = (source, target, *, overwrite, comm))]
pub(crate) fn amr_from_plotfile(
    py: Python<'_>,
    source: PathBuf,
    target: PathBuf,
    overwrite: bool,
    comm: Option<Bound<'_, PyAny>>,
) -> PyResult<()> {
    let comm = comm::ranks(comm.as_ref())?;
    let done = py.detach(|| {
        let opened = agreed(&*comm, Plotfile::open(&source))?;
        store(comm.clone(), &opened, &target, CreateOptions::new().clobber(overwrite))
    });
    done.map_err(|error| model_exception(py, &error))
}

/// Writes a hierarchy as a plotfile. Collective.
#[pyfunction]
#[pyo3(signature = (source, target, *, comm))]
pub(crate) fn amr_to_plotfile(
    py: Python<'_>,
    source: PathBuf,
    target: PathBuf,
    comm: Option<Bound<'_, PyAny>>,
) -> PyResult<()> {
    let comm: Arc<dyn Communicator> = comm::ranks(comm.as_ref())?;
    let done = py.detach(|| write_plotfile(&amr::Amr::open(comm, &source)?, &target));
    done.map_err(|error| model_exception(py, &error))
}

/// The outcome of all ranks.
fn agreed<T>(comm: &dyn Communicator, outcome: Result<T, ModelError>) -> Result<T, ModelError> {
    use esker_comm::CommunicatorExt;
    let other = |rank, message| ModelError::OtherRank { rank, message };
    comm.agree(outcome).map_err(|disagreement| disagreement.into_error(other))
}
