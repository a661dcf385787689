//! Adjoint runs: plans as iterators of tuples, and runs of a Python model.

use std::sync::{Arc, Mutex};

use esker::MemoryType;
use esker_adjoint::schedule::{
    Action, Budget, Costs, Data, Hierarchy, Mixed, NoAdjoint, OPEN_END, Online, Periodic, Place,
    Prospect, Revolve, Schedule, ScheduleError, SingleDisk, SingleMemory, StepCosts, Trajectory,
    TwoLevel,
};
use esker_adjoint::{
    AdjointError, ArrayMut, Filters, Layout, Model, ModelError, OnDrift, Options, Report,
    Vault as Kept,
};
use esker_comm::Communicator;
use esker_format::ExternalType;
use numpy::{PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::{PyKeyError, PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::memory::Lent;

fn planned(error: ScheduleError) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// 0 memory, 1 disk, -1 work, None nowhere: as `checkpoint_schedules` numbers its storage types.
fn place_number(place: Place) -> Option<i32> {
    match place {
        Place::Memory => Some(0),
        Place::Disk => Some(1),
        Place::Work => Some(-1),
        Place::Nowhere => None,
    }
}

fn place_of(number: i32) -> PyResult<Place> {
    match number {
        0 => Ok(Place::Memory),
        1 => Ok(Place::Disk),
        _ => Err(PyValueError::new_err("checkpoints are in memory (RAM) or on disk")),
    }
}

/// A schedule.
#[pyclass(module = "esker._esker")]
pub(crate) struct Plan {
    /// In a lock because Python may look at it from any thread.
    schedule: Mutex<Box<dyn Schedule>>,
}

/// What makes a plan; those a kind does not have are left out.
#[derive(FromPyObject)]
struct Numbers {
    #[pyo3(item)]
    steps: u64,
    #[pyo3(item)]
    memory: u64,
    #[pyo3(item)]
    disk: u64,
    #[pyo3(item)]
    period: u64,
    #[pyo3(item)]
    place: i32,
    #[pyo3(item)]
    maximum: bool,
    #[pyo3(item)]
    costs: (f64, f64, f64),
    #[pyo3(item)]
    raw: u64,
}

impl Plan {
    fn inner(&mut self) -> &mut dyn Schedule {
        let schedule = self.schedule.get_mut();
        schedule.unwrap_or_else(|poisoned| poisoned.into_inner()).as_mut()
    }
}

#[pymethods]
impl Plan {
    #[new]
    fn new(kind: &str, numbers: &Bound<'_, PyDict>) -> PyResult<Plan> {
        let Numbers { steps, memory, disk, period, place, maximum, costs, raw } =
            numbers.as_any().extract()?;
        let trajectory = if maximum { Trajectory::Maximum } else { Trajectory::Revolve };
        let costs = StepCosts { forward: costs.0, write: costs.1, read: costs.2 };
        let place = || place_of(place);
        let schedule: Box<dyn Schedule> = match kind {
            "multistage" => {
                Box::new(Revolve::multistage(steps, memory, disk, trajectory).map_err(planned)?)
            }
            "mixed" => Box::new(Mixed::new(steps, memory, place()?).map_err(planned)?),
            "hrevolve" => {
                Box::new(Hierarchy::new(steps, memory, Some(disk), costs).map_err(planned)?)
            }
            "diskrevolve" => Box::new(Hierarchy::new(steps, memory, None, costs).map_err(planned)?),
            "periodic" => Box::new(Periodic::new(steps, memory, costs).map_err(planned)?),
            "twolevel" => {
                Box::new(TwoLevel::new(period, memory, place()?, trajectory).map_err(planned)?)
            }
            "online" => Box::new(Online::new(memory, place()?).map_err(planned)?),
            "budget" => {
                Box::new(Budget::new(steps, raw, memory, disk).map_err(planned)?.one_of_a_step())
            }
            "memory" => Box::new(SingleMemory::default()),
            "disk_copy" => Box::new(SingleDisk::new(false)),
            "disk_move" => Box::new(SingleDisk::new(true)),
            "none" => Box::new(NoAdjoint::default()),
            other => return Err(PyValueError::new_err(format!("there is no schedule {other:?}"))),
        };
        Ok(Plan { schedule: Mutex::new(schedule) })
    }

    /// The next action as a tuple, or None.
    fn next<'py>(&mut self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let tuple = match self.inner().next_action() {
            None => return Ok(None),
            Some(Action::Forward { from, to, restart, deps, place }) => {
                let to = if to == OPEN_END { i64::MAX as u64 } else { to };
                ("forward", from, to, restart, deps, place_number(place)).into_pyobject(py)?
            }
            Some(Action::Copy { step, what: _, from, to }) => {
                ("copy", step, place_number(from), place_number(to)).into_pyobject(py)?
            }
            Some(Action::Move { step, what: _, from, to }) => {
                ("move", step, place_number(from), place_number(to)).into_pyobject(py)?
            }
            Some(Action::Reverse { from, to }) => ("reverse", from, to).into_pyobject(py)?,
            Some(Action::EndForward) => ("end_forward",).into_pyobject(py)?,
            Some(Action::EndReverse) => ("end_reverse",).into_pyobject(py)?,
        };
        Ok(Some(tuple))
    }

    fn finalize(&mut self, steps: u64) -> PyResult<()> {
        self.inner().finalize(steps).map_err(planned)
    }

    fn uses(&mut self, place: i32) -> PyResult<bool> {
        Ok(match place {
            -1 => self.inner().uses(Place::Work),
            place => self.inner().uses(place_of(place)?),
        })
    }

    #[getter]
    fn steps(&mut self) -> Option<u64> {
        self.inner().steps()
    }

    #[getter]
    fn is_exhausted(&mut self) -> bool {
        self.inner().is_exhausted()
    }

    /// The bytes of a checkpoint became known: where it goes (a number, or None), and the steps given up for it.
    fn encoded(&mut self, step: u64, deps: bool, bytes: u64) -> PyResult<(Option<i32>, Vec<u64>)> {
        let Some(plan) = self.inner().budget() else {
            return Err(PyTypeError::new_err("only a Budget wants to know sizes"));
        };
        let what = if deps { Data::Deps } else { Data::Restart };
        let outcome = plan.encoded(step, what, bytes).map_err(planned)?;
        let given_up = outcome.given_up.iter().map(|(step, ..)| *step).collect();
        Ok((place_number(outcome.place), given_up))
    }
}

fn external(ty: MemoryType) -> Option<ExternalType> {
    ExternalType::ALL.into_iter().find(|external| external.natural() == ty)
}

type Borrowed = (String, ExternalType, Vec<usize>, Lent);

/// The memory of arrays in a dictionary; `whose` is for errors.
fn borrowed(arrays: Bound<'_, PyAny>, whose: &str) -> PyResult<Vec<Borrowed>> {
    let arrays = arrays
        .cast_into::<PyDict>()
        .map_err(|_| PyTypeError::new_err(format!("{whose} must be a dict of arrays")))?;
    let mut lent = Vec::with_capacity(arrays.len());
    for (name, array) in arrays.iter() {
        let name: String = name.extract()?;
        let wrong = |why: String| PyValueError::new_err(format!("{whose}[{name:?}]: {why}"));
        let array = array.cast_into::<PyUntypedArray>().map_err(|_| {
            wrong("it must be a NumPy array, because it is filled in place".to_string())
        })?;
        let memory = Lent::dense(&array, true).map_err(|error| wrong(error.to_string()))?;
        let ty = external(memory.memory_type());
        let ty = ty.ok_or_else(|| wrong("its dtype cannot be stored".into()))?;
        lent.push((name.clone(), ty, array.shape().to_vec(), memory));
    }
    Ok(lent)
}

fn as_arrays(lent: &mut [Borrowed]) -> Vec<ArrayMut<'_>> {
    let mut made = Vec::with_capacity(lent.len());
    for (name, ty, shape, memory) in lent {
        let whole = memory.whole();
        let (bytes, _) = memory.bytes_mut(&whole);
        made.push(ArrayMut { name: name.clone(), ty: *ty, shape: shape.clone(), bytes });
    }
    made
}

/// States by step, for those who carry out a schedule themselves.
#[pyclass(module = "esker._esker")]
pub(crate) struct Vault {
    kept: Mutex<Kept>,
}

impl Vault {
    fn with<T>(
        &mut self,
        py: Python<'_>,
        work: impl FnOnce(&mut Kept) -> esker_adjoint::Result<T>,
    ) -> PyResult<T> {
        let kept = self.kept.get_mut().unwrap_or_else(|poisoned| poisoned.into_inner());
        work(kept).map_err(|error| raised(py, error))
    }
}

#[pymethods]
impl Vault {
    #[new]
    fn new(py: Python<'_>, store: &Bound<'_, PyDict>) -> PyResult<Vault> {
        let Options { memory, disk, folder, store, filters, .. } = options(store)?;
        let folder = folder.as_deref().map(|path| (store, path));
        let kept = Kept::new(memory, disk, folder, filters).map_err(|error| raised(py, error))?;
        Ok(Vault { kept: Mutex::new(kept) })
    }

    /// Keeps arrays; True if on disk.
    fn put(&mut self, py: Python<'_>, step: u64, arrays: Bound<'_, PyAny>) -> PyResult<bool> {
        let mut lent = borrowed(arrays, "the checkpoint")?;
        self.with(py, |kept| Ok(kept.put(step, &as_arrays(&mut lent))? == Place::Disk))
    }

    /// Fills arrays.
    fn get(&mut self, py: Python<'_>, step: u64, arrays: Bound<'_, PyAny>) -> PyResult<()> {
        let mut lent = borrowed(arrays, "the checkpoint")?;
        self.with(py, |kept| kept.get(step, as_arrays(&mut lent)))
    }

    fn give_up(&mut self, py: Python<'_>, step: u64) -> PyResult<()> {
        self.with(py, |kept| kept.give_up(step))
    }

    fn clear(&mut self, py: Python<'_>) -> PyResult<()> {
        self.with(py, Kept::clear)
    }

    #[getter]
    fn used(&mut self, py: Python<'_>) -> PyResult<[u64; 2]> {
        self.with(py, |kept| Ok(kept.used()))
    }
}

/// A model written in Python. Its first exception ends the run and is raised again.
struct PyModel {
    model: Py<PyAny>,
    has_deps: bool,
    finishes: bool,
    reshapes: bool,
    lent: Vec<Borrowed>,
    failed: Option<PyErr>,
}

impl PyModel {
    fn new(model: &Bound<'_, PyAny>) -> PyResult<PyModel> {
        for name in ["state", "adjoint", "forward", "reverse"] {
            if !model.hasattr(name)? {
                let why = format!(
                    "a model has the methods state, adjoint, forward and reverse; there is no {name}"
                );
                return Err(PyTypeError::new_err(why));
            }
        }
        Ok(PyModel {
            model: model.clone().unbind(),
            has_deps: model.hasattr("deps")?,
            finishes: model.hasattr("finished")?,
            reshapes: model.hasattr("reshape")?,
            lent: Vec::new(),
            failed: None,
        })
    }

    /// The arrays of a dictionary that a method gives.
    fn arrays(&mut self, method: &str) -> Vec<ArrayMut<'_>> {
        let given = Python::attach(|py| {
            borrowed(self.model.bind(py).call_method0(method)?, &format!("{method}()"))
        });
        self.lent = given.unwrap_or_else(|error| {
            self.failed.get_or_insert(error);
            Vec::new()
        });
        as_arrays(&mut self.lent)
    }

    fn call(&mut self, method: &str, from: u64, to: u64) -> Result<(), ModelError> {
        if self.failed.is_some() {
            return Err("it raised an exception before".into());
        }
        let done =
            Python::attach(|py| self.model.bind(py).call_method1(method, (from, to)).map(drop));
        done.map_err(|error| {
            let words = error.to_string();
            self.failed.get_or_insert(error);
            words.into()
        })
    }
}

impl Model for PyModel {
    fn state(&mut self) -> Vec<ArrayMut<'_>> {
        self.arrays("state")
    }

    fn adjoint(&mut self) -> Vec<ArrayMut<'_>> {
        self.arrays("adjoint")
    }

    fn forward(&mut self, from: u64, to: u64) -> Result<(), ModelError> {
        self.call("forward", from, to)
    }

    fn reverse(&mut self, from: u64, to: u64) -> Result<(), ModelError> {
        self.call("reverse", from, to)
    }

    fn has_deps(&self) -> bool {
        self.has_deps
    }

    fn deps(&mut self) -> Vec<ArrayMut<'_>> {
        match self.has_deps {
            true => self.arrays("deps"),
            false => Vec::new(),
        }
    }

    fn is_finished(&mut self, state: u64) -> Option<bool> {
        if !self.finishes {
            return None;
        }
        let told = Python::attach(|py| {
            self.model.bind(py).call_method1("finished", (state,))?.is_truthy()
        });
        told.map_err(|error| self.failed.get_or_insert(error)).ok()
    }

    fn reshape(&mut self, layout: &[Layout]) -> Result<(), ModelError> {
        if !self.reshapes {
            return Ok(());
        }
        let done = Python::attach(|py| {
            let shapes = PyDict::new(py);
            for array in layout {
                shapes.set_item(&array.name, PyTuple::new(py, &array.shape)?)?;
            }
            self.model.bind(py).call_method1("reshape", (shapes,)).map(drop)
        });
        done.map_err(|error| {
            let words = error.to_string();
            self.failed.get_or_insert(error);
            words.into()
        })
    }
}

#[derive(FromPyObject)]
struct StoreOptions {
    #[pyo3(item)]
    path: Option<std::path::PathBuf>,
    #[pyo3(item)]
    ram: u64,
    #[pyo3(item)]
    disk: u64,
    #[pyo3(item)]
    filters: Vec<(String, String)>,
    #[pyo3(item)]
    adjoint_every: Option<u64>,
    #[pyo3(item)]
    drift_limit: f64,
    #[pyo3(item)]
    lossless_on_drift: bool,
    #[pyo3(item)]
    check_finite: bool,
    #[pyo3(item)]
    measure: bool,
    #[pyo3(item)]
    beside: bool,
}

fn options(given: &Bound<'_, PyDict>) -> PyResult<Options> {
    let given: StoreOptions = given.as_any().extract()?;
    let filters = Filters::new(&given.filters);
    Ok(Options {
        memory: given.ram,
        disk: given.disk,
        folder: given.path,
        filters: filters.map_err(|error| PyValueError::new_err(error.to_string()))?,
        adjoint_every: given.adjoint_every,
        drift_limit: given.drift_limit,
        on_drift: if given.lossless_on_drift { OnDrift::Lossless } else { OnDrift::Fail },
        check_finite: given.check_finite,
        measure: given.measure,
        beside: given.beside,
        ..Options::default()
    })
}

fn exception(py: Python<'_>, model: &mut PyModel, error: AdjointError) -> PyErr {
    model.failed.take().unwrap_or_else(|| raised(py, error))
}

fn raised(py: Python<'_>, error: AdjointError) -> PyErr {
    let sentence = error.to_string();
    match error {
        AdjointError::Store(error) => crate::errors::system(py, &error),
        AdjointError::Comm(_)
        | AdjointError::OtherRank { .. }
        | AdjointError::Damaged { .. }
        | AdjointError::Drift { .. } => PyRuntimeError::new_err(sentence),
        AdjointError::NotKept { .. } => PyKeyError::new_err(sentence),
        _ => PyValueError::new_err(sentence),
    }
}

fn reported<'py>(py: Python<'py>, report: &Report) -> PyResult<Bound<'py, PyDict>> {
    let told = PyDict::new(py);
    told.set_item("steps", report.steps)?;
    told.set_item("forward", report.forward)?;
    told.set_item("stored", report.stored)?;
    told.set_item("loaded", report.loaded)?;
    told.set_item("peak", report.peak)?;
    told.set_item("bytes", report.bytes)?;
    told.set_item("moved", report.moved)?;
    told.set_item("drift", report.drift)?;
    told.set_item("model_seconds", report.model.as_secs_f64())?;
    told.set_item("waited_seconds", report.waited.as_secs_f64())?;
    told.set_item("storing_seconds", report.storing.as_secs_f64())?;
    told.set_item("chosen", &report.chosen)?;
    told.set_item("notes", &report.notes)?;
    Ok(told)
}

/// How long a run would take with each schedule: name, seconds and forward steps of those that can be.
#[pyfunction]
#[pyo3(signature = (steps, state, memory, disk, step, reverse, encode, decode, write, read, deps, beside))]
#[expect(clippy::too_many_arguments, reason = "numbers, named in Python")]
pub(crate) fn adjoint_forecast(
    py: Python<'_>,
    steps: u64,
    state: u64,
    memory: u64,
    disk: u64,
    step: f64,
    reverse: f64,
    encode: f64,
    decode: f64,
    write: f64,
    read: f64,
    deps: bool,
    beside: bool,
) -> PyResult<Vec<(String, f64, u64)>> {
    let costs = Costs { step, encode, decode, write, read };
    let deps_are_state = !deps;
    let run = Prospect { steps, state, memory, disk, reverse, costs, deps_are_state, beside };
    let found = py.detach(|| run.all());
    let mut all = Vec::new();
    for (name, forecast) in found {
        match forecast {
            Ok(found) => all.push((name.to_string(), found.seconds(), found.forward)),
            // What a schedule cannot do is no error of the others.
            Err(error @ ScheduleError::BadCost { .. }) => return Err(planned(error)),
            Err(_) => {}
        }
    }
    Ok(all)
}

/// Runs a model forward and back. Without a plan, one with the bytes of the store is made for so many steps.
#[pyfunction]
#[pyo3(signature = (model, plan, steps, store, comm=None))]
pub(crate) fn adjoint_run<'py>(
    py: Python<'py>,
    model: &Bound<'py, PyAny>,
    plan: Option<&Bound<'py, Plan>>,
    steps: u64,
    store: &Bound<'py, PyDict>,
    comm: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let (mut model, options) = (PyModel::new(model)?, options(store)?);
    let comm: Arc<dyn Communicator> = crate::comm::ranks(comm)?;
    let outcome = match plan {
        Some(plan) => {
            let mut plan = plan.try_borrow_mut()?;
            let schedule = plan.inner();
            py.detach(|| esker_adjoint::run(&mut model, schedule, &*comm, &options))
        }
        None => py.detach(|| {
            let mut plan = esker_adjoint::budget(&mut model, steps, &*comm, &options)?;
            esker_adjoint::run(&mut model, &mut plan, &*comm, &options)
        }),
    };
    match outcome {
        Ok(report) if model.failed.is_none() => reported(py, &report),
        Ok(_) => Err(model.failed.take().unwrap_or_else(|| PyRuntimeError::new_err("it failed"))),
        Err(error) => Err(exception(py, &mut model, error)),
    }
}

/// Goes on with a run whose program ended before it was done.
#[pyfunction]
#[pyo3(signature = (model, store, comm=None))]
pub(crate) fn adjoint_resume<'py>(
    py: Python<'py>,
    model: &Bound<'py, PyAny>,
    store: &Bound<'py, PyDict>,
    comm: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let (mut model, options) = (PyModel::new(model)?, options(store)?);
    let comm = crate::comm::ranks(comm)?;
    match py.detach(|| esker_adjoint::resume(&mut model, &*comm, &options)) {
        Ok(report) => reported(py, &report),
        Err(error) => Err(exception(py, &mut model, error)),
    }
}
