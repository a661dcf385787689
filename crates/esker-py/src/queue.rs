//! Requests that wait, to be moved together.

use std::sync::{Mutex, PoisonError};

use esker::{Requests, VarId};
use numpy::PyUntypedArray;
use pyo3::prelude::*;

use crate::errors::exception;
use crate::memory::{Lent, empty};
use crate::state::{Failure, Shared};
use crate::transfer::What;

/// One queued request.
pub(crate) struct Pending {
    pub(crate) var: VarId,
    pub(crate) what: What,
    pub(crate) lent: Lent,
    /// Where what is read goes.
    pub(crate) target: Option<Py<PyUntypedArray>>,
    pub(crate) is_put: bool,
}

/// The queue of a dataset.
#[derive(Default)]
pub(crate) struct Queue(Mutex<Vec<Pending>>);

impl Queue {
    pub(crate) fn push(&self, pending: Pending) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(pending);
    }

    pub(crate) fn len(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    pub(crate) fn take(&self) -> Vec<Pending> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Moves everything that is queued; together with all ranks if accesses are collective.
    pub(crate) fn wait(&self, py: Python<'_>, shared: &Shared) -> PyResult<()> {
        let mut queue = self.take();
        let copies = keep_apart(py, &mut queue)?;
        let together = shared.is_collective();
        py.detach(|| move_all(shared, &mut queue, together))
            .map_err(|failure| failure.raise(py))?;
        for (copy, target) in copies {
            target.bind(py).as_any().set_item(pyo3::types::PyEllipsis::get(py), copy)?;
        }
        Ok(())
    }
}

fn move_all(shared: &Shared, pending: &mut [Pending], together: bool) -> Result<(), Failure> {
    shared.change(together, |dataset| {
        let mut queue = Requests::new();
        let mut refused = None;
        for pending in pending.iter_mut() {
            let whole = pending.lent.whole();
            let selection = pending.what.selection(&whole);
            let ty = pending.lent.memory_type();
            let queued = if pending.is_put {
                let (bytes, layout) = pending.lent.bytes(&whole);
                dataset.iput_bytes(&mut queue, pending.var, &selection, (bytes, ty), layout)
            } else {
                let (bytes, layout) = pending.lent.bytes_mut(&whole);
                dataset.iget_bytes(&mut queue, pending.var, &selection, (bytes, ty), layout)
            };
            // The others wait for this rank, so it takes part with the rest.
            refused = refused.or(queued.err());
        }
        let moved = if together { dataset.wait_all(&mut queue) } else { dataset.wait(&mut queue) };
        refused.map_or(moved, Err)
    })
}

type Copies = Vec<(Py<PyUntypedArray>, Py<PyUntypedArray>)>;

/// Gives reads memory of their own where it would overlap with that of another request: two
/// slices of Rust that are written must not. Gives what is to be copied after the transfer.
fn keep_apart(py: Python<'_>, queue: &mut [Pending]) -> PyResult<Copies> {
    let mut ranges: Vec<(std::ops::Range<usize>, usize)> =
        queue.iter().enumerate().map(|(i, pending)| (pending.lent.range(), i)).collect();
    ranges.sort_by_key(|(range, _)| range.start);
    let mut copies = Vec::new();
    let mut reaching: Option<(usize, usize)> = None;
    let mut shared: Vec<usize> = Vec::new();
    for (range, i) in &ranges {
        if let Some((end, other)) =
            reaching.filter(|(end, _)| range.start < *end && !range.is_empty())
        {
            shared.extend([other, *i]);
            reaching = Some(if range.end > end { (range.end, *i) } else { (end, other) });
        } else if !range.is_empty() {
            reaching = Some((range.end, *i));
        }
    }
    shared.sort_unstable();
    shared.dedup();
    for i in shared {
        let Some(pending) = queue.get_mut(i).filter(|pending| !pending.is_put) else { continue };
        let Some(target) = pending.target.take() else { continue };
        let (copy, lent) = memory_like(py, &target, pending)?;
        pending.lent = lent;
        copies.push((copy, target));
    }
    Ok(copies)
}

fn memory_like(
    py: Python<'_>,
    target: &Py<PyUntypedArray>,
    pending: &Pending,
) -> PyResult<(Py<PyUntypedArray>, Lent)> {
    use numpy::PyUntypedArrayMethods;
    let target = target.bind(py);
    let shape: Vec<u64> = target.shape().iter().map(|len| *len as u64).collect();
    let copy = empty(py, &shape, target.dtype())?;
    let lent = match &pending.what {
        What::Slab(slab) => Lent::target(&copy, slab)?,
        What::List { .. } => Lent::dense(&copy, true)?,
    };
    Ok((copy.unbind(), lent))
}

/// Whether the library would take the request, so that what is wrong is said at once.
pub(crate) fn check(py: Python<'_>, shared: &Shared, pending: &mut Pending) -> PyResult<()> {
    let checked = shared.look(py, |state| {
        let crate::state::State::Data(dataset) = state else { return Ok(()) };
        let mut queue = Requests::new();
        let whole = pending.lent.whole();
        let selection = pending.what.selection(&whole);
        let ty = pending.lent.memory_type();
        if pending.is_put {
            let (bytes, layout) = pending.lent.bytes(&whole);
            dataset.iput_bytes(&mut queue, pending.var, &selection, (bytes, ty), layout).map(drop)
        } else {
            let (bytes, layout) = pending.lent.bytes_mut(&whole);
            dataset.iget_bytes(&mut queue, pending.var, &selection, (bytes, ty), layout).map(drop)
        }
    });
    checked.map_err(|error| exception(py, &error))
}
