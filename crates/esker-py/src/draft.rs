//! A file that is seen whole or not at all, for writers in Python.

use std::path::PathBuf;
use std::sync::Arc;

use esker::Hints;
use esker_store::{LocalStore, Store};
use esker_tools::whole;
use pyo3::prelude::*;

use crate::errors::exception;
use crate::handle::layout_named;

/// A dataset before it has its name. Dropped, or discarded, it is gone.
#[pyclass(module = "esker._esker")]
#[derive(Debug)]
pub(crate) struct Draft {
    store: Arc<dyn Store>,
    draft: Option<esker_store::Draft>,
    clobber: bool,
}

/// Begins a dataset of this name; what has the name stays what it is until it is complete.
#[pyfunction]
#[pyo3(signature = (path, *, layout, clobber, hints))]
pub(crate) fn begin(
    py: Python<'_>,
    path: PathBuf,
    layout: &str,
    clobber: bool,
    hints: Vec<(String, String)>,
) -> PyResult<Draft> {
    let layout = layout_named(layout)?;
    let mut own = Hints::default();
    for (name, value) in &hints {
        own.set(name, value);
    }
    let store: Arc<dyn Store> = Arc::new(LocalStore);
    let begun = match clobber {
        true => Ok(()),
        false => whole::require_absent(&*store, &path).map_err(esker::Error::from),
    };
    let begun = begun.and_then(|()| whole::begin(&store, &path, layout, &own));
    let draft = Some(begun.map_err(|error| exception(py, &error))?);
    Ok(Draft { store, draft, clobber })
}

#[pymethods]
impl Draft {
    /// Where it grows; empty when that is over.
    #[getter]
    fn path(&self) -> PathBuf {
        self.draft.as_ref().map(|draft| draft.path().to_path_buf()).unwrap_or_default()
    }

    /// Whether something with contents is going to be replaced.
    #[getter]
    fn replaces(&self) -> bool {
        self.draft.as_ref().is_some_and(esker_store::Draft::replaces)
    }

    /// Takes its name.
    fn take_name(&mut self, py: Python<'_>, sync: bool) -> PyResult<()> {
        let Some(draft) = self.draft.take() else { return Ok(()) };
        let named = whole::name(&self.store, draft, self.clobber, sync);
        named.map_err(|error| exception(py, &error))
    }

    /// Gives it up.
    fn discard(&mut self) {
        self.draft = None;
    }
}
