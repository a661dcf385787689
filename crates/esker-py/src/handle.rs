//! One open dataset, as the Python side sees it.

use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::Duration;

use esker::{
    BeginOptions, CreateOptions, Dataset, DecompositionId, DimId, DimLen, FillMode, Hints, Layout,
    OpenOptions, Owner, Schema, Selection, VarId, Version,
};
use esker_format::chunked::{FILTERS, SHAPE};
use numpy::{PyArrayDescr, PyArrayDescrMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::{PyIndexError, PyMemoryError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};

use crate::background::{Token, Work};
use crate::errors::{exception, missing_name};
use crate::index::{Growing, Indexed, Slab, parse};
use crate::memory::{Lent, empty, scalar_or_array};
use crate::queue::{self, Pending, Queue};
use crate::state::{Failure, Shared, State};
use crate::transfer::{self, Watcher, What};
use crate::{attributes, comm, dtype};

/// Start, count, whether it is dense, elements, bytes, rank and version of a block.
type BlockParts = (Vec<u64>, Vec<u64>, bool, u64, u64, Option<u32>, Option<u64>);

/// One open dataset. The class `esker.Dataset` is what people use.
#[pyclass(frozen, module = "esker._esker")]
pub(crate) struct Handle {
    pub(crate) shared: Shared,
    queue: Queue,
}

/// Creates a dataset, which is in define mode.
#[pyfunction]
#[pyo3(signature = (path, *, format, layout, clobber, fill, hints, comm))]
#[allow(clippy::too_many_arguments)]
pub(crate) fn create(
    py: Python<'_>,
    path: PathBuf,
    format: &str,
    layout: &str,
    clobber: bool,
    fill: bool,
    hints: Vec<(String, String)>,
    comm: Option<Bound<'_, PyAny>>,
) -> PyResult<Handle> {
    let ranks = comm::ranks(comm.as_ref())?;
    let place = (ranks.rank(), ranks.size());
    let mut options = CreateOptions::new()
        .version(version_named(format)?)
        .clobber(clobber)
        .fill(fill_mode(fill))
        .comm(ranks)
        .hints(hints_of(hints));
    // The environment may ask for logs where the program does not say otherwise.
    if layout_named(layout)? == Layout::Log {
        options = options.layout(Layout::Log);
    }
    let define = py.detach(|| Dataset::create(&path, options));
    let define = define.map_err(|error| exception(py, &error))?;
    let path = define.path().to_path_buf();
    let shared = Shared::new(State::Define(Box::new(define)), &path, place, true);
    Ok(Handle { shared, queue: Queue::default() })
}

/// Opens a dataset.
#[pyfunction]
#[pyo3(signature = (path, *, writable, fill, hints, comm, version, after, timeout))]
#[allow(clippy::too_many_arguments)]
pub(crate) fn open(
    py: Python<'_>,
    path: PathBuf,
    writable: bool,
    fill: bool,
    hints: Vec<(String, String)>,
    comm: Option<Bound<'_, PyAny>>,
    version: Option<u64>,
    after: Option<u64>,
    timeout: f64,
) -> PyResult<Handle> {
    let ranks = comm::ranks(comm.as_ref())?;
    let place = (ranks.rank(), ranks.size());
    let mut options = OpenOptions::new()
        .writable(writable)
        .fill(fill_mode(fill))
        .comm(ranks)
        .hints(hints_of(hints));
    if let Some(version) = version {
        options = options.container_version(version);
    }
    if let Some(after) = after {
        let timeout = Duration::try_from_secs_f64(timeout);
        let timeout =
            timeout.map_err(|error| PyValueError::new_err(format!("timeout: {error}")))?;
        options = options.after(after, Some(timeout));
    }
    let dataset = py.detach(|| Dataset::open_with(&path, options));
    let dataset = dataset.map_err(|error| exception(py, &error))?;
    let path = dataset.path().to_path_buf();
    let shared = Shared::new(State::Data(Box::new(dataset)), &path, place, writable);
    Ok(Handle { shared, queue: Queue::default() })
}

/// Begins a transaction.
#[pyfunction]
#[pyo3(signature = (path, *, number, base, message, needs, durable, fill, hints, comm))]
#[allow(clippy::too_many_arguments)]
pub(crate) fn begin_transaction(
    py: Python<'_>,
    path: PathBuf,
    number: Option<u64>,
    base: Option<u64>,
    message: Option<String>,
    needs: Vec<u64>,
    durable: bool,
    fill: bool,
    hints: Vec<(String, String)>,
    comm: Option<Bound<'_, PyAny>>,
) -> PyResult<Handle> {
    let ranks = comm::ranks(comm.as_ref())?;
    let place = (ranks.rank(), ranks.size());
    let open = OpenOptions::new().fill(fill_mode(fill)).comm(ranks).hints(hints_of(hints));
    let mut options = BeginOptions::new().open(open).durable(durable).number(number.unwrap_or(0));
    options = needs.into_iter().fold(options, BeginOptions::needs);
    if let Some(base) = base {
        options = options.base(base);
    }
    if let Some(message) = message {
        options = options.message(&message);
    }
    let dataset = py.detach(|| Dataset::begin(&path, options));
    let dataset = dataset.map_err(|error| exception(py, &error))?;
    let path = dataset.path().to_path_buf();
    let shared = Shared::new(State::Data(Box::new(dataset)), &path, place, true);
    Ok(Handle { shared, queue: Queue::default() })
}

#[pymethods]
impl Handle {
    #[getter]
    fn path(&self) -> &std::path::Path {
        &self.shared.path
    }

    #[getter]
    fn rank(&self) -> usize {
        self.shared.rank
    }

    #[getter]
    fn size(&self) -> usize {
        self.shared.size
    }

    #[getter]
    fn writable(&self) -> bool {
        self.shared.writable
    }

    #[getter]
    fn collective(&self) -> bool {
        self.shared.is_collective()
    }

    #[setter]
    fn set_collective(&self, collective: bool) {
        self.shared.collective.store(collective, Ordering::Relaxed);
    }

    /// `define`, `data` or `closed`.
    #[getter]
    fn mode(&self, py: Python<'_>) -> &'static str {
        self.shared.look(py, |state| match state {
            State::Define(_) => "define",
            State::Data(_) => "data",
            State::Closed => "closed",
        })
    }

    #[getter]
    fn format(&self, py: Python<'_>) -> PyResult<&'static str> {
        self.shared.schema(py, |schema, _| format_name(schema.version))
    }

    #[getter]
    fn layout(&self, py: Python<'_>) -> &'static str {
        let is_log = self.shared.look(py, |state| match state {
            State::Data(dataset) => dataset.container_version().is_some(),
            State::Define(define) => {
                define.hints().effective().contains(&("esker_layout", "log".to_string()))
            }
            State::Closed => false,
        });
        if is_log { "log" } else { "classic" }
    }

    /// The version of a container, or None.
    #[getter]
    fn container_version(&self, py: Python<'_>) -> Option<u64> {
        self.shared.look(py, |state| match state {
            State::Data(dataset) => dataset.container_version(),
            _ => None,
        })
    }

    /// What became of a transaction: its number, and whether it is a version already.
    #[getter]
    fn outcome(&self, py: Python<'_>) -> Option<(u64, bool)> {
        let outcome = self.shared.look(py, |state| match state {
            State::Data(dataset) => dataset.outcome(),
            _ => None,
        });
        outcome.map(|outcome| (outcome.number(), outcome.is_visible()))
    }

    #[getter]
    fn records(&self, py: Python<'_>) -> PyResult<u64> {
        self.shared.schema(py, |_, records| records)
    }

    /// The hints in force.
    fn hints(&self, py: Python<'_>) -> Vec<(&'static str, String)> {
        self.shared.look(py, |state| match state {
            State::Define(define) => define.hints().effective(),
            State::Data(dataset) => dataset.hints().effective(),
            State::Closed => Vec::new(),
        })
    }

    /// What was wrong with hints.
    fn hint_warnings(&self, py: Python<'_>) -> Vec<String> {
        self.shared.look(py, |state| match state {
            State::Define(define) => define.hints().warnings().to_vec(),
            State::Data(dataset) => dataset.hints().warnings().to_vec(),
            State::Closed => Vec::new(),
        })
    }

    /// What a user of the dataset has to know.
    fn notes(&self, py: Python<'_>) -> Vec<String> {
        self.shared.look(py, |state| match state {
            State::Data(dataset) => dataset.notes().to_vec(),
            _ => Vec::new(),
        })
    }

    /// What the calls so far did: counts, bytes, and seconds of each phase.
    fn report<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let report = self.shared.look(py, |state| match state {
            State::Data(dataset) => *dataset.report(),
            _ => esker::Report::default(),
        });
        let answer = PyDict::new(py);
        answer.set_item("write_strategy", format!("{:?}", report.write_strategy).to_lowercase())?;
        answer.set_item("read_strategy", format!("{:?}", report.read_strategy).to_lowercase())?;
        for (name, number) in [
            ("calls", report.calls),
            ("requests", report.requests),
            ("runs", report.runs),
            ("rounds", report.rounds),
            ("messages", report.messages),
            ("message_bytes", report.message_bytes),
            ("bytes", report.bytes),
            ("writes", report.writes),
            ("bytes_written", report.bytes_written),
            ("reads", report.reads),
            ("bytes_read", report.bytes_read),
        ] {
            answer.set_item(name, number)?;
        }
        for (name, time) in report.phases.named() {
            answer.set_item(format!("seconds_{name}"), time.as_secs_f64())?;
        }
        Ok(answer)
    }

    fn enddef(&self, py: Python<'_>) -> PyResult<()> {
        self.free(py, || self.shared.enddef())
    }

    fn redef(&self, py: Python<'_>) -> PyResult<()> {
        self.free(py, || self.shared.define(|_| Ok(())))
    }

    #[pyo3(signature = (message=None))]
    fn sync(&self, py: Python<'_>, message: Option<String>) -> PyResult<()> {
        self.free(py, || self.shared.make_version(message.as_deref(), Dataset::sync))
    }

    #[pyo3(signature = (message=None))]
    fn commit(&self, py: Python<'_>, message: Option<String>) -> PyResult<()> {
        self.free(py, || self.shared.make_version(message.as_deref(), Dataset::commit))
    }

    /// Moves what is in a burst buffer to the file, and writes what ranks have put alone. Collective.
    fn flush(&self, py: Python<'_>) -> PyResult<()> {
        self.free(py, || self.shared.change(true, Dataset::flush))
    }

    fn flush_start(slf: Bound<'_, Self>) -> PyResult<Token> {
        let (py, this) = (slf.py(), slf.get());
        let pending = this.free(py, || this.shared.change(true, Dataset::flush_start))?;
        Ok(Token::new(slf.unbind(), Work::Flush(pending)))
    }

    /// Begins to read what a key of integers and slices selects. Independent.
    fn read_start(slf: Bound<'_, Self>, var: usize, key: &Bound<'_, PyAny>) -> PyResult<Token> {
        let (py, this) = (slf.py(), slf.get());
        let Some((slab, _)) = this.selected(py, VarId(var), key, None)? else {
            return Err(PyValueError::new_err(
                "a read in the background takes integers and slices",
            ));
        };
        if !slab.flipped.is_empty() {
            return Err(PyValueError::new_err("a read in the background has no negative steps"));
        }
        let shape = slab.result();
        let what = What::Slab(slab);
        let pending = this.free(py, || {
            this.shared
                .read(|dataset| Ok(dataset.get_values_start(VarId(var), &what.whole_selection())))
        })?;
        Ok(Token::new(slf.unbind(), Work::Read(pending, shape)))
    }

    #[pyo3(signature = (message=None))]
    fn close(&self, py: Python<'_>, message: Option<String>) -> PyResult<()> {
        self.free(py, || self.shared.close(message.as_deref()))
    }

    /// Gives up what was not committed, together with all ranks or, where they cannot be waited for, alone.
    fn abort(&self, py: Python<'_>, together: bool) -> PyResult<()> {
        self.queue.take();
        self.free(py, || self.shared.abort(together))
    }

    fn abandon(&self, py: Python<'_>) {
        self.queue.take();
        py.detach(|| self.shared.abandon());
    }

    // Definitions.

    /// Name, length and whether it is the record dimension, of each.
    fn dimensions(&self, py: Python<'_>) -> PyResult<Vec<(String, u64, bool)>> {
        self.shared.schema(py, |schema, records| {
            let each = |dim: &esker::Dimension| match dim.len {
                DimLen::Fixed(len) => (dim.name.to_string(), len, false),
                DimLen::Unlimited => (dim.name.to_string(), records, true),
            };
            schema.dims.iter().map(each).collect()
        })
    }

    fn variable_names(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        self.shared
            .schema(py, |schema, _| schema.vars.iter().map(|var| var.name.to_string()).collect())
    }

    fn variable_count(&self, py: Python<'_>) -> PyResult<usize> {
        self.shared.schema(py, |schema, _| schema.vars.len())
    }

    /// The number of a variable.
    fn find_variable(&self, py: Python<'_>, name: &str) -> PyResult<usize> {
        let found = self.shared.schema(py, |schema, _| {
            schema
                .var(name)
                .map(|var| var.0)
                .ok_or_else(|| esker::nearest::hint(name, schema.vars.iter().map(|var| &*var.name)))
        })?;
        found.map_err(|hint| self.no_such("variable", name, &hint, py))
    }

    /// Name, dtype's name and names of dimensions.
    fn variable(
        &self,
        py: Python<'_>,
        var: usize,
    ) -> PyResult<(String, &'static str, Vec<String>)> {
        self.of_variable(py, var, |schema, variable| {
            (variable.name.to_string(), variable.ty.cdl_name(), dims_of(schema, variable))
        })
    }

    fn dtype<'py>(&self, py: Python<'py>, var: usize) -> PyResult<Bound<'py, PyArrayDescr>> {
        let ty = self.of_variable(py, var, |_, variable| variable.ty)?;
        dtype::of_type(py, ty)
    }

    /// The lengths of the dimensions; those of the array that a decomposed variable stands for.
    fn shape<'py>(&self, py: Python<'py>, var: usize) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.shape_of(py, VarId(var))?.0)
    }

    fn is_record(&self, py: Python<'_>, var: usize) -> PyResult<bool> {
        self.of_variable(py, var, |schema, variable| schema.is_record(variable))
    }

    /// The value of elements that nobody wrote.
    fn fill_value<'py>(&self, py: Python<'py>, var: usize) -> PyResult<Bound<'py, PyAny>> {
        let (ty, bytes) = self.of_variable(py, var, |_, variable| {
            (variable.ty, esker::values::fill_bytes(variable))
        })?;
        let values = esker::Values::decode(ty, 1, &bytes);
        match values {
            // The fill value of text is a byte, and most often one that is no text.
            Some(esker::Values::Char(byte)) => Ok(pyo3::types::PyBytes::new(py, &byte).into_any()),
            Some(values) => attributes::to_python(py, &values),
            None => {
                Err(PyValueError::new_err("the fill value is not one value of the variable's type"))
            }
        }
    }

    fn define_dimension(&self, py: Python<'_>, name: &str, length: Option<u64>) -> PyResult<()> {
        let len = length.map_or(DimLen::Unlimited, DimLen::Fixed);
        self.free(py, || self.shared.define(|define| define.add_dim(name, len).map(drop)))
    }

    /// The lengths of a variable's chunks, or None. Before definitions end, those that were asked
    /// for: a shape is chosen, and cut to the variable's, when they do.
    fn chunks<'py>(&self, py: Python<'py>, var: usize) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let found = self.shared.look(py, |state| match state {
            State::Data(dataset) => dataset.chunk_shape(VarId(var)).map(<[u64]>::to_vec),
            State::Define(define) => {
                let asked = define.schema().attr(Owner::Var(VarId(var)), SHAPE)?;
                asked.convert_to::<u64>().ok()
            }
            State::Closed => None,
        });
        found.map(|lengths| PyTuple::new(py, lengths)).transpose()
    }

    /// The blocks of a variable, each as start, count, whether it is dense, elements, bytes, rank and version.
    fn blocks(&self, py: Python<'_>, var: usize) -> PyResult<Vec<BlockParts>> {
        let found = self.free(py, || self.shared.read(|dataset| dataset.blocks(VarId(var))))?;
        let parts = |block: esker::Block| {
            let esker::Block { start, count, dense, elements, bytes, rank, version } = block;
            (start, count, dense, elements, bytes, rank, version)
        };
        Ok(found.into_iter().map(parts).collect())
    }

    /// The filters of a variable, as `shuffle zstd,3`, or None.
    fn filters(&self, py: Python<'_>, var: usize) -> PyResult<Option<String>> {
        self.shared.schema(py, |schema, _| {
            let text = schema.attr(Owner::Var(VarId(var)), FILTERS)?.text()?;
            Some(text.into_owned()).filter(|text| !text.is_empty())
        })
    }

    #[pyo3(signature = (name, dtype, dimensions, *, fill, chunks, filters))]
    #[allow(clippy::too_many_arguments)]
    fn define_variable(
        &self,
        py: Python<'_>,
        name: &str,
        dtype: &str,
        dimensions: Vec<String>,
        fill: Option<bool>,
        chunks: Option<Vec<u64>>,
        filters: Option<String>,
    ) -> PyResult<usize> {
        let ty = dtype::by_name(dtype)?;
        let ids = self.dim_ids(py, &dimensions)?;
        self.free(py, || {
            self.shared.define(|define| {
                let var = define.add_var_with(name, ty, &ids, |define, var| {
                    if let Some(fill) = fill {
                        define.set_fill(var, fill_mode(fill))?;
                    }
                    if let Some(chunks) = &chunks {
                        define.set_chunks(var, chunks)?;
                    }
                    match &filters {
                        Some(filters) => define.set_filters(var, filters),
                        None => Ok(()),
                    }
                })?;
                Ok(var.0)
            })
        })
    }

    /// Defines a decomposition map: what this rank has of these dimensions, blocks by their starts and
    /// counts, tables of 64-bit integers. Gives its number. Collective.
    fn define_decomposition(
        &self,
        py: Python<'_>,
        dimensions: Vec<String>,
        starts: &Bound<'_, PyUntypedArray>,
        counts: &Bound<'_, PyUntypedArray>,
    ) -> PyResult<u64> {
        let ids = self.dim_ids(py, &dimensions)?;
        let (starts, counts) = (table(starts, ids.len())?, table(counts, ids.len())?);
        if starts.len() != counts.len() {
            return Err(PyValueError::new_err("there are as many starts as counts"));
        }
        let mine = match starts.is_empty() {
            true => Selection::none(),
            false => Selection::list(ids.len(), starts, counts),
        };
        self.free(py, || self.shared.define(|define| Ok(define.add_decomposition(&ids, &mine)?.0)))
    }

    /// Defines a variable over dimensions and those of a map.
    fn define_decomposed_variable(
        &self,
        py: Python<'_>,
        name: &str,
        dtype: &str,
        dimensions: Vec<String>,
        decomposition: u64,
    ) -> PyResult<usize> {
        let ty = dtype::by_name(dtype)?;
        let ids = self.dim_ids(py, &dimensions)?;
        let map = DecompositionId(decomposition);
        self.free(py, || {
            self.shared.define(|define| Ok(define.add_decomposed_var(name, ty, &ids, map)?.0))
        })
    }

    /// How many elements this rank has of a decomposed variable, for each index before the map's.
    fn blob_elements(&self, py: Python<'_>, var: usize) -> PyResult<u64> {
        // Definitions end with all ranks.
        self.free(py, || self.shared.change(true, |dataset| dataset.blob_elements(VarId(var))))
    }

    /// Reads or writes what this rank has, at indices of the dimensions before the map's.
    fn move_blob(
        &self,
        py: Python<'_>,
        var: usize,
        start: Vec<u64>,
        count: Vec<u64>,
        values: &Bound<'_, PyUntypedArray>,
        write: bool,
    ) -> PyResult<()> {
        let selection = Selection::blob(&start, &count);
        let mut lent = self.agreed(py, Lent::dense(values, !write))?;
        let (ty, whole, var) = (lent.memory_type(), lent.whole(), VarId(var));
        let together = self.shared.is_together();
        self.free(py, || {
            self.shared.change(together, |dataset| match (write, together) {
                (true, true) => {
                    let (bytes, layout) = lent.bytes(&whole);
                    dataset.put_bytes_all(var, &selection, (bytes, ty), layout)
                }
                (true, false) => {
                    let (bytes, layout) = lent.bytes(&whole);
                    let mut queue = esker::Requests::new();
                    dataset.iput_bytes(&mut queue, var, &selection, (bytes, ty), layout)?;
                    dataset.wait(&mut queue)
                }
                (false, true) => {
                    let (bytes, layout) = lent.bytes_mut(&whole);
                    dataset.get_bytes_all(var, &selection, (bytes, ty), layout)
                }
                (false, false) => {
                    let (bytes, layout) = lent.bytes_mut(&whole);
                    dataset.get_bytes(var, &selection, (bytes, ty), layout)
                }
            })
        })
    }

    fn rename_dimension(&self, py: Python<'_>, old: &str, new: &str) -> PyResult<()> {
        self.free(py, || {
            self.shared.amend(|s| s.rename_dim(old, new), |define| define.rename_dim(old, new))
        })
    }

    fn rename_variable(&self, py: Python<'_>, old: &str, new: &str) -> PyResult<()> {
        self.free(py, || {
            self.shared.amend(|s| s.rename_var(old, new), |define| define.rename_var(old, new))
        })
    }

    fn attribute_names(&self, py: Python<'_>, var: Option<usize>) -> PyResult<Vec<String>> {
        self.shared.schema(py, |schema, _| {
            let attrs = schema.attrs_of(owner(var));
            attrs.map(|a| a.iter().map(|a| a.name.to_string()).collect()).unwrap_or_default()
        })
    }

    fn attribute<'py>(
        &self,
        py: Python<'py>,
        var: Option<usize>,
        name: &str,
    ) -> PyResult<Bound<'py, PyAny>> {
        let found = self.shared.schema(py, |schema, _| {
            schema.attr(owner(var), name).cloned().ok_or_else(|| {
                let attrs = schema.attrs_of(owner(var)).into_iter().flat_map(|a| a.iter());
                esker::nearest::hint(name, attrs.map(|a| &*a.name))
            })
        })?;
        let values = found.map_err(|hint| self.no_such("attribute", name, &hint, py))?;
        attributes::to_python(py, &values)
    }

    /// All attributes of a variable or of the dataset.
    fn attributes<'py>(&self, py: Python<'py>, var: Option<usize>) -> PyResult<Bound<'py, PyDict>> {
        let list = self.shared.schema(py, |schema, _| {
            let attrs = schema.attrs_of(owner(var)).into_iter().flat_map(|attrs| attrs.iter());
            attrs.map(|attr| (attr.name.clone(), attr.values.clone())).collect::<Vec<_>>()
        })?;
        let all = PyDict::new(py);
        for (name, values) in &list {
            all.set_item(&**name, attributes::to_python(py, values)?)?;
        }
        Ok(all)
    }

    fn put_attribute(
        &self,
        py: Python<'_>,
        var: Option<usize>,
        name: &str,
        value: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let values = attributes::from_python(value)?;
        self.free(py, || {
            self.shared.amend(
                |schema| schema.put_attr(owner(var), name, values.clone()),
                |define| define.put_attr(owner(var), name, values.clone()),
            )
        })
    }

    fn delete_attribute(&self, py: Python<'_>, var: Option<usize>, name: &str) -> PyResult<()> {
        self.attribute(py, var, name)?;
        self.free(py, || {
            self.shared.amend(
                |schema| schema.del_attr(owner(var), name).map(drop),
                |define| define.del_attr(owner(var), name).map(drop),
            )
        })
    }

    fn rename_attribute(
        &self,
        py: Python<'_>,
        var: Option<usize>,
        old: &str,
        new: &str,
    ) -> PyResult<()> {
        self.attribute(py, var, old)?;
        self.free(py, || {
            self.shared.amend(
                |schema| schema.rename_attr(owner(var), old, new),
                |define| define.rename_attr(owner(var), old, new),
            )
        })
    }

    // Data.

    /// Reads what a key of integers and slices selects; NotImplemented if there are arrays in it.
    #[pyo3(signature = (var, key, dtype=None, out=None, progress=None))]
    fn read<'py>(
        &self,
        py: Python<'py>,
        var: usize,
        key: &Bound<'py, PyAny>,
        dtype: Option<Bound<'py, PyArrayDescr>>,
        out: Option<Bound<'py, PyUntypedArray>>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let var = VarId(var);
        let selected = self.selected(py, var, key, None);
        let Some((slab, own)) = self.agreed(py, selected)? else {
            return Ok(py.NotImplemented().into_bound(py));
        };
        let given = out.is_some();
        let array = match out {
            Some(out) => out,
            None => {
                let kind = dtype.map_or_else(|| dtype::of_type(py, own), Ok)?;
                let made = self.new_array(py, var, &slab.result(), kind);
                self.agreed(py, made)?
            }
        };
        let turned = if given { Vec::new() } else { slab.flipped.clone() };
        let kept = slab.kept.clone();
        let stays_array = given || slab.has_ellipsis;
        // A new array is read forwards and turned as a view; a given one is filled as it lies.
        let slab = if given { slab } else { Slab { flipped: Vec::new(), ..slab } };
        let mut lent = self.agreed(py, Lent::target(&array, &slab))?;
        let (what, watcher) = (What::Slab(slab), Watcher { progress });
        self.free(py, || transfer::read(&self.shared, var, &what, &mut lent, &watcher))?;
        if turned.is_empty() && stays_array {
            return Ok(array.into_any());
        }
        if turned.is_empty() {
            return scalar_or_array(array);
        }
        let key = kept.iter().map(|dim| {
            let step = if turned.contains(dim) { -1 } else { 1 };
            pyo3::types::PySlice::full(py).getattr("__class__")?.call1((py.None(), py.None(), step))
        });
        let key = PyTuple::new(py, key.collect::<PyResult<Vec<_>>>()?)?;
        array.as_any().get_item(key)
    }

    /// Writes an array to what a key selects, broadcast; False if there are arrays in the key.
    #[pyo3(signature = (var, key, value, progress=None))]
    fn write(
        &self,
        py: Python<'_>,
        var: usize,
        key: &Bound<'_, PyAny>,
        value: &Bound<'_, PyUntypedArray>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<bool> {
        let var = VarId(var);
        let selected = self.selected(py, var, key, Some(value.shape()));
        let Some((slab, _)) = self.agreed(py, selected)? else {
            return Ok(false);
        };
        let lent = self.agreed(py, Lent::source(value, &slab))?;
        let (what, watcher) = (What::Slab(slab), Watcher { progress });
        self.free(py, || transfer::write(&self.shared, var, &what, &lent, &watcher))?;
        Ok(true)
    }

    /// Reads hyperslabs of one shape, one behind the other, into a dense array.
    #[pyo3(signature = (var, starts, count, out, progress=None))]
    fn read_list(
        &self,
        py: Python<'_>,
        var: usize,
        starts: &Bound<'_, PyUntypedArray>,
        count: Vec<u64>,
        out: &Bound<'_, PyUntypedArray>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<()> {
        let what = list(starts, count)?;
        let mut lent = Lent::dense(out, true)?;
        let watcher = Watcher { progress };
        self.free(py, || transfer::read(&self.shared, VarId(var), &what, &mut lent, &watcher))
    }

    /// Writes hyperslabs of one shape, one behind the other, from a dense array.
    #[pyo3(signature = (var, starts, count, value, progress=None))]
    fn write_list(
        &self,
        py: Python<'_>,
        var: usize,
        starts: &Bound<'_, PyUntypedArray>,
        count: Vec<u64>,
        value: &Bound<'_, PyUntypedArray>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<()> {
        let what = list(starts, count)?;
        let lent = Lent::dense(value, false)?;
        let watcher = Watcher { progress };
        self.free(py, || transfer::write(&self.shared, VarId(var), &what, &lent, &watcher))
    }

    /// Queues a write of an array, which is lent until the next wait; False if there are arrays in the
    /// key.
    fn queue_put(
        &self,
        py: Python<'_>,
        var: usize,
        key: &Bound<'_, PyAny>,
        value: &Bound<'_, PyUntypedArray>,
    ) -> PyResult<bool> {
        let var = VarId(var);
        let Some((slab, _)) = self.selected(py, var, key, Some(value.shape()))? else {
            return Ok(false);
        };
        let lent = Lent::source(value, &slab)?;
        self.enqueue(
            py,
            Pending { var, what: What::Slab(slab), lent, target: None, is_put: true },
        )?;
        Ok(true)
    }

    /// Queues a read into an array (a new one if none is given), which is filled by the next wait;
    /// NotImplemented if there are arrays in the key.
    #[pyo3(signature = (var, key, out=None))]
    fn queue_get<'py>(
        &self,
        py: Python<'py>,
        var: usize,
        key: &Bound<'py, PyAny>,
        out: Option<Bound<'py, PyUntypedArray>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let var = VarId(var);
        let Some((slab, own)) = self.selected(py, var, key, None)? else {
            return Ok(py.NotImplemented().into_bound(py));
        };
        let array = match out {
            Some(out) => out,
            None => self.new_array(py, var, &slab.result(), dtype::of_type(py, own)?)?,
        };
        let lent = Lent::target(&array, &slab)?;
        let (what, target) = (What::Slab(slab), Some(array.clone().unbind()));
        self.enqueue(py, Pending { var, what, lent, target, is_put: false })?;
        Ok(array.into_any())
    }

    /// Queues a write from, or a read into, a dense array of hyperslabs of one shape, one behind the other.
    fn queue_list(
        &self,
        py: Python<'_>,
        var: usize,
        starts: &Bound<'_, PyUntypedArray>,
        count: Vec<u64>,
        array: &Bound<'_, PyUntypedArray>,
        is_put: bool,
    ) -> PyResult<()> {
        let what = list(starts, count)?;
        let lent = Lent::dense(array, !is_put)?;
        let target = (!is_put).then(|| array.clone().unbind());
        self.enqueue(py, Pending { var: VarId(var), what, lent, target, is_put })
    }

    /// Takes part in a collective read or write with an error, so that the other ranks do not wait.
    fn refuse(&self, py: Python<'_>, why: &str) {
        if self.shared.is_collective() {
            let refused = || self.shared.change(true, |dataset| dataset.refuse_all(why));
            // The error that counts is the one that the caller raises.
            let _ = py.detach(refused);
        }
    }

    fn queued(&self) -> usize {
        self.queue.len()
    }

    fn wait(&self, py: Python<'_>) -> PyResult<()> {
        self.queue.wait(py, &self.shared)
    }

    fn cancel(&self) -> usize {
        self.queue.take().len()
    }

    /// Names and values of everything at once, for those who look at a whole file.
    fn overview<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let all = PyList::empty(py);
        for var in 0..self.variable_count(py)? {
            let (name, kind, dims) = self.variable(py, var)?;
            all.append((name, kind, dims, self.shape(py, var)?))?;
        }
        Ok(all)
    }
}

impl Handle {
    /// Does something without the GIL.
    pub(crate) fn free<T: Send>(
        &self,
        py: Python<'_>,
        act: impl FnOnce() -> Result<T, Failure> + Send,
    ) -> PyResult<T> {
        py.detach(act).map_err(|failure| failure.raise(py))
    }

    /// Dimensions by their names.
    fn dim_ids(&self, py: Python<'_>, names: &[String]) -> PyResult<Vec<DimId>> {
        let ids = self.shared.schema(py, |schema, _| {
            let id = |name: &String| {
                let hint = || esker::nearest::hint(name, schema.dims.iter().map(|dim| &*dim.name));
                schema.dim(name).ok_or_else(|| (name.clone(), hint()))
            };
            names.iter().map(id).collect::<Result<Vec<_>, _>>()
        })?;
        ids.map_err(|(name, hint)| self.no_such("dimension", &name, &hint, py))
    }

    fn enqueue(&self, py: Python<'_>, mut pending: Pending) -> PyResult<()> {
        queue::check(py, &self.shared, &mut pending)?;
        self.queue.push(pending);
        Ok(())
    }

    /// Passes an outcome on; the other ranks of a collective call learn of a failure.
    fn agreed<T>(&self, py: Python<'_>, outcome: PyResult<T>) -> PyResult<T> {
        if let Err(error) = &outcome {
            self.refuse(py, &error.value(py).to_string());
        }
        outcome
    }

    fn of_variable<T: Send>(
        &self,
        py: Python<'_>,
        var: usize,
        look: impl FnOnce(&Schema, &esker::Variable) -> T + Send,
    ) -> PyResult<T> {
        let found = self.shared.schema(py, |schema, _| {
            schema.variable(VarId(var)).map(|variable| look(schema, variable))
        })?;
        found.ok_or_else(|| PyIndexError::new_err(format!("there is no variable number {var}")))
    }

    /// A variable's shape and type, and whether its first dimension grows.
    fn shape_of(
        &self,
        py: Python<'_>,
        var: VarId,
    ) -> PyResult<(Vec<u64>, esker::ExternalType, bool)> {
        enum Found {
            Shape(Vec<u64>, esker::ExternalType, bool),
            Missing,
            Closed,
        }
        let found = self.shared.look(py, |state| {
            let (schema, records) = match state {
                State::Define(define) => (define.schema(), define.numrecs()),
                State::Data(dataset) => (dataset.schema(), dataset.numrecs()),
                State::Closed => return Found::Closed,
            };
            let Some(variable) = schema.variable(var) else { return Found::Missing };
            let shape = match state {
                State::Data(dataset) => dataset.shape(var).ok(),
                _ => None,
            };
            let shape = shape.unwrap_or_else(|| schema.shape(variable, records));
            Found::Shape(shape, variable.ty, schema.is_record(variable))
        });
        match found {
            Found::Shape(shape, ty, grows) => Ok((shape, ty, grows)),
            Found::Missing => {
                Err(PyIndexError::new_err(format!("there is no variable number {}", var.0)))
            }
            Found::Closed => Err(self.shared.closed().raise(py)),
        }
    }

    /// What a key selects, and the variable's type; `value` is the shape of what is written.
    fn selected(
        &self,
        py: Python<'_>,
        var: VarId,
        key: &Bound<'_, PyAny>,
        value: Option<&[usize]>,
    ) -> PyResult<Option<(Slab, esker::ExternalType)>> {
        let (shape, ty, grows) = self.shape_of(py, var)?;
        let names = || {
            let names = self.of_variable(py, var.0, |schema, variable| {
                (variable.name.to_string(), dims_of(schema, variable))
            });
            names.unwrap_or_default()
        };
        let growing = value.filter(|_| grows).map(|value| Growing { value });
        let of = Indexed { shape: &shape, names: &names, growing };
        Ok(parse(key, &of)?.map(|slab| (slab, ty)))
    }

    fn no_such(&self, kind: &str, name: &str, hint: &str, py: Python<'_>) -> PyErr {
        let path = self.shared.path.display();
        missing_name(py, format!("{path}: there is no {kind} {name:?}{hint}"))
    }
}

impl Handle {
    /// A new array for what is read of a variable.
    fn new_array<'py>(
        &self,
        py: Python<'py>,
        var: VarId,
        shape: &[u64],
        kind: Bound<'py, PyArrayDescr>,
    ) -> PyResult<Bound<'py, PyUntypedArray>> {
        let size = kind.itemsize() as u128;
        empty(py, shape, kind).map_err(|error| {
            if !error.is_instance_of::<PyMemoryError>(py) {
                return error;
            }
            // A header that is damaged asks for anything: its last element tells.
            let last = self.free(py, || {
                self.shared.read(|dataset| {
                    let last: Vec<u64> =
                        dataset.shape(var)?.iter().map(|len| len.saturating_sub(1)).collect();
                    dataset.get_values(var, &esker::Selection::element(&last)).map(drop)
                })
            });
            if let Err(damage) = last {
                return damage;
            }
            let bytes = shape.iter().fold(size, |n, len| n.saturating_mul(u128::from(*len)));
            let name = self.variable(py, var.0).map_or(String::new(), |(name, _, _)| name);
            let path = self.shared.path.display();
            PyMemoryError::new_err(format!(
                "{path}: variable {name:?}: there is no memory for {bytes} bytes at once: read it in \
                 parts"
            ))
        })
    }
}

/// The starts of hyperslabs, a table of 64-bit integers, and the shape of each.
fn list(starts: &Bound<'_, PyUntypedArray>, count: Vec<u64>) -> PyResult<What> {
    let rank = count.len();
    Ok(What::List { rank, starts: table(starts, rank)?, count })
}

/// A table of 64-bit integers with so many columns.
fn table(numbers: &Bound<'_, PyUntypedArray>, rank: usize) -> PyResult<Vec<u64>> {
    let lent = Lent::dense(numbers, false)?;
    let whole = lent.whole();
    let (bytes, _) = lent.bytes(&whole);
    let (words, rest) = bytes.as_chunks::<8>();
    if !rest.is_empty() || numbers.ndim() != 2 || numbers.shape()[1] != rank {
        return Err(PyValueError::new_err("starts must be a table of 64-bit integers"));
    }
    Ok(words.iter().map(|number| u64::from_ne_bytes(*number)).collect())
}

fn dims_of(schema: &Schema, variable: &esker::Variable) -> Vec<String> {
    let name = |dim: &esker::DimId| schema.dims.at(dim.0).map(|dim| dim.name.to_string());
    variable.dims.iter().filter_map(name).collect()
}

fn owner(var: Option<usize>) -> Owner {
    var.map_or(Owner::Global, |var| Owner::Var(VarId(var)))
}

fn fill_mode(fill: bool) -> FillMode {
    if fill { FillMode::Fill } else { FillMode::NoFill }
}

fn hints_of(pairs: Vec<(String, String)>) -> Hints {
    let mut hints = Hints::default();
    for (name, value) in pairs {
        hints.set(&name, &value);
    }
    hints
}

/// The version under its name here.
pub(crate) fn version_named(name: &str) -> PyResult<Version> {
    match name.to_ascii_lowercase().replace(['-', ' ', '_'], "").as_str() {
        "cdf1" | "classic" | "netcdf3classic" | "netcdf3" => Ok(Version::Cdf1),
        "cdf2" | "64bitoffset" | "netcdf364bitoffset" | "netcdf364bit" => Ok(Version::Cdf2),
        "cdf5" | "64bitdata" | "netcdf364bitdata" => Ok(Version::Cdf5),
        _ => Err(PyValueError::new_err(format!("format {name:?} is not one of cdf1, cdf2, cdf5"))),
    }
}

/// The name of a version here.
pub(crate) fn format_name(version: Version) -> &'static str {
    match version {
        Version::Cdf1 => "cdf1",
        Version::Cdf2 => "cdf2",
        Version::Cdf5 => "cdf5",
    }
}

/// The layout of this name.
pub(crate) fn layout_named(name: &str) -> PyResult<Layout> {
    match name {
        "classic" => Ok(Layout::Classic),
        "log" => Ok(Layout::Log),
        _ => Err(PyValueError::new_err(format!("layout {name:?} is not one of classic, log"))),
    }
}
