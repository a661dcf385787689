//! What arrays mean together: `esker.Graph`, `esker.relation`, `esker.mesh`, `esker.amr` stand on this.
//!
//! Each file is one model of `esker-models`. Calls are collective where the models' are, and made without the GIL.

pub(crate) mod amr;
pub(crate) mod graphs;
pub(crate) mod meshes;
pub(crate) mod relations;

use numpy::PyArray1;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// Numbers of elements as NumPy has them.
fn numbers<'py, T: Copy + TryInto<i64>>(py: Python<'py>, list: &[T]) -> Bound<'py, PyArray1<i64>> {
    let signed = |number: &T| (*number).try_into().unwrap_or(i64::MAX);
    PyArray1::from_vec(py, list.iter().map(signed).collect())
}

/// Numbers of elements that NumPy gave. A negative one becomes a number that no element has, so that the call which
/// uses it fails on every rank alike.
fn elements(list: &[i64]) -> Vec<u64> {
    list.iter().map(|number| u64::try_from(*number).unwrap_or(u64::MAX)).collect()
}

/// Fails unless two objects are of as many ranks.
fn same_ranks(one: usize, other: usize) -> PyResult<()> {
    match one == other {
        true => Ok(()),
        false => Err(PyValueError::new_err(format!(
            "one is shared by {one} ranks and the other by {other}: both need the same communicator"
        ))),
    }
}
