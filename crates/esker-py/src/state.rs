//! An open dataset in define or data mode, shared by threads.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use esker::{Dataset, Define, Error, Graphs, Result, Schema, VarId};
use esker_models::ModelError;
use esker_tools::refs::RefsError;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::errors::{exception, model_exception, refs_exception};

/// What a dataset is at the moment.
pub(crate) enum State {
    Define(Box<Define>),
    Data(Box<Dataset>),
    Closed,
}

/// A failure that becomes a Python exception when the GIL is held again.
#[derive(Debug)]
pub(crate) enum Failure {
    Library(Box<Error>),
    /// A graph, a mesh, a hierarchy.
    Model(Box<ModelError>),
    /// References that a hint asks for, or the dataset itself, when it is closed.
    References(Box<RefsError>),
    Closed(PathBuf),
    /// A rank wants to move data while definitions of all ranks are pending.
    Pending(PathBuf),
    Interrupted(PyErr),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::Library(Box::new(error))
    }
}

impl From<ModelError> for Failure {
    fn from(error: ModelError) -> Failure {
        Failure::Model(Box::new(error))
    }
}

impl From<PyErr> for Failure {
    fn from(error: PyErr) -> Failure {
        Failure::Interrupted(error)
    }
}

impl Failure {
    pub(crate) fn raise(self, py: Python<'_>) -> PyErr {
        match self {
            Failure::Library(error) => exception(py, &error),
            Failure::Model(error) => model_exception(py, &error),
            Failure::References(error) => refs_exception(py, &error),
            Failure::Closed(path) => {
                PyValueError::new_err(format!("{}: the dataset is closed", path.display()))
            }
            Failure::Pending(path) => PyValueError::new_err(format!(
                "{}: definitions are pending; call enddef() on all ranks before one of them reads or writes alone",
                path.display()
            )),
            Failure::Interrupted(error) => error,
        }
    }
}

pub(crate) struct Shared {
    state: RwLock<State>,
    pub(crate) path: PathBuf,
    pub(crate) rank: usize,
    pub(crate) size: usize,
    pub(crate) writable: bool,
    /// Whether accesses to data are collective.
    pub(crate) collective: AtomicBool,
    /// How often definitions were changed or ended.
    generation: AtomicU64,
}

impl Shared {
    pub(crate) fn new(
        state: State,
        path: &Path,
        (rank, size): (usize, usize),
        writable: bool,
    ) -> Shared {
        let collective = AtomicBool::new(size > 1);
        Shared {
            state: RwLock::new(state),
            path: path.to_path_buf(),
            rank,
            size,
            writable,
            collective,
            generation: AtomicU64::new(0),
        }
    }

    pub(crate) fn is_collective(&self) -> bool {
        self.collective.load(Ordering::Relaxed)
    }

    /// Whether an access is made together with other ranks.
    pub(crate) fn is_together(&self) -> bool {
        self.size > 1 && self.is_collective()
    }

    fn reading(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn writing(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks at the dataset as it is. With the GIL, unless somebody has the lock.
    pub(crate) fn look<T: Send>(&self, py: Python<'_>, look: impl FnOnce(&State) -> T + Send) -> T {
        match self.state.try_read() {
            Ok(state) => look(&state),
            Err(_) => py.detach(|| look(&self.reading())),
        }
    }

    /// Looks at what is defined, and at the number of records.
    pub(crate) fn schema<T: Send>(
        &self,
        py: Python<'_>,
        look: impl FnOnce(&Schema, u64) -> T + Send,
    ) -> PyResult<T> {
        let found = self.look(py, |state| match state {
            State::Define(define) => Some(look(define.schema(), define.numrecs())),
            State::Data(dataset) => Some(look(dataset.schema(), dataset.numrecs())),
            State::Closed => None,
        });
        found.ok_or_else(|| self.closed().raise(py))
    }

    /// The lengths of a variable's chunks, if it has any; in data mode. Without the GIL.
    pub(crate) fn chunk(&self, var: VarId) -> Result<Option<Vec<u64>>, Failure> {
        self.read(|dataset| Ok(dataset.chunk_shape(var).map(<[u64]>::to_vec)))
    }

    /// How many threads are to read together, 0 for as many as pay.
    pub(crate) fn read_threads(&self) -> Result<u64, Failure> {
        self.read(|dataset| Ok(dataset.read_threads()))
    }

    /// Reads from the dataset in data mode; other threads may read at the same time. Without the GIL.
    pub(crate) fn read<T>(&self, read: impl FnOnce(&Dataset) -> Result<T>) -> Result<T, Failure> {
        {
            let state = self.reading();
            match &*state {
                State::Data(dataset) => return Ok(read(dataset)?),
                State::Closed => return Err(self.closed()),
                State::Define(_) if self.size > 1 => return Err(self.pending()),
                State::Define(_) => {}
            }
        }
        self.change(false, |dataset| read(dataset))
    }

    /// Changes the dataset in data mode, alone or (`together`) with all ranks. Without the GIL.
    pub(crate) fn change<T>(
        &self,
        together: bool,
        change: impl FnOnce(&mut Dataset) -> Result<T>,
    ) -> Result<T, Failure> {
        self.in_data_mode(together, change)
    }

    /// Does what a model asks of the dataset in data mode, with all ranks. Without the GIL.
    pub(crate) fn models<T>(
        &self,
        act: impl FnOnce(&mut Dataset) -> Result<T, ModelError>,
    ) -> Result<T, Failure> {
        self.in_data_mode(true, act)
    }

    fn in_data_mode<T, E>(
        &self,
        together: bool,
        change: impl FnOnce(&mut Dataset) -> Result<T, E>,
    ) -> Result<T, Failure>
    where
        Failure: From<E>,
    {
        let mut state = self.writing();
        if self.size > 1 && !together && matches!(&*state, State::Define(_)) {
            return Err(self.pending());
        }
        self.end_definitions(&mut state)?;
        match &mut *state {
            State::Data(dataset) => Ok(change(dataset)?),
            _ => Err(self.closed()),
        }
    }

    /// Changes what is defined, in define mode. Without the GIL.
    pub(crate) fn define<T>(
        &self,
        change: impl FnOnce(&mut Define) -> Result<T>,
    ) -> Result<T, Failure> {
        let mut state = self.writing();
        if matches!(&*state, State::Data(_)) {
            self.require_writable(&state)?;
            if let State::Data(dataset) = std::mem::replace(&mut *state, State::Closed) {
                *state = State::Define(Box::new(dataset.redef()?));
            }
        }
        match &mut *state {
            State::Define(define) => {
                self.generation.fetch_add(1, Ordering::Relaxed);
                Ok(change(define)?)
            }
            _ => Err(self.closed()),
        }
    }

    /// How often definitions were changed or ended.
    pub(crate) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Relaxed)
    }

    /// The graphs as they are defined now, and of which generation they are. Without the GIL.
    pub(crate) fn graphs(&self) -> Result<(u64, Graphs), Failure> {
        let state = self.reading();
        let found = match &*state {
            State::Define(define) => Graphs { set: define.graphs()?.clone(), missing: Vec::new() },
            State::Data(dataset) => dataset.graphs()?,
            State::Closed => return Err(self.closed()),
        };
        Ok((self.generation(), found))
    }

    /// Changes attributes: in place where the header has room for it, in define mode if not.
    pub(crate) fn amend(
        &self,
        in_place: impl FnOnce(&mut Schema) -> std::result::Result<(), esker::SchemaError>,
        defining: impl FnOnce(&mut Define) -> Result<()>,
    ) -> Result<(), Failure> {
        {
            let mut state = self.writing();
            self.require_writable(&state)?;
            if let State::Data(dataset) = &mut *state {
                match dataset.amend(in_place) {
                    Ok(()) => return Ok(()),
                    // No room, or ranks with numbers of their own.
                    Err(Error::NotAlike { .. }) => {}
                    Err(error) => return Err(error.into()),
                }
            }
        }
        self.define(defining)
    }

    /// Ends define mode, if it is in it. Without the GIL.
    pub(crate) fn enddef(&self) -> Result<(), Failure> {
        let mut state = self.writing();
        match &*state {
            State::Closed => Err(self.closed()),
            _ => self.end_definitions(&mut state),
        }
    }

    /// Makes what was written visible, or safe; a version that this makes has the message. Without the GIL.
    pub(crate) fn make_version(
        &self,
        message: Option<&str>,
        make: fn(&mut Dataset) -> esker::Result<()>,
    ) -> Result<(), Failure> {
        let mut state = self.writing();
        self.end_definitions_saying(&mut state, message)?;
        let State::Data(dataset) = &mut *state else { return Err(self.closed()) };
        let made = dataset.set_message_all(message).and_then(|()| make(dataset));
        // It is of this call, also where there was nothing new.
        let _ = dataset.set_message("");
        Ok(made?)
    }

    /// Ends define mode, if it is in it; the version that this makes has the message, too.
    fn end_definitions_saying(
        &self,
        state: &mut State,
        message: Option<&str>,
    ) -> Result<(), Failure> {
        if let State::Define(define) = state {
            define.set_message_all(message)?;
        }
        self.end_definitions(state)
    }

    /// Gives up what was not committed: together with all ranks, or alone where they cannot be waited for. Without the GIL.
    pub(crate) fn abort(&self, together: bool) -> Result<(), Failure> {
        let mut state = self.writing();
        match std::mem::replace(&mut *state, State::Closed) {
            State::Data(dataset) if together => Ok(dataset.abort()?),
            State::Data(dataset) => Ok(dataset.abandon()?),
            State::Define(define) => Ok(define.abort()?),
            State::Closed => Ok(()),
        }
    }

    /// Closes it; a version that this makes has the message. Without the GIL.
    pub(crate) fn close(&self, message: Option<&str>) -> Result<(), Failure> {
        let mut state = self.writing();
        self.end_definitions_saying(&mut state, message)?;
        if let State::Data(dataset) = &mut *state {
            match self.writable {
                true => dataset.set_message_all(message)?,
                // Closing what is only read is no affair of the other ranks.
                false => dataset.set_message(message.unwrap_or(""))?,
            }
        }
        match std::mem::replace(&mut *state, State::Closed) {
            State::Data(dataset) => {
                let store = std::sync::Arc::new(esker_store::LocalStore);
                let closed = esker_tools::refs::close(*dataset, store);
                closed.map(drop).map_err(|error| Failure::References(Box::new(error)))
            }
            _ => Ok(()),
        }
    }

    /// Gives a new dataset up, or leaves an old one as it was before its last definitions.
    pub(crate) fn abandon(&self) {
        let mut state = self.writing();
        if let State::Define(define) = std::mem::replace(&mut *state, State::Closed) {
            // It has no caller who could be told.
            let _ = define.abort();
        }
    }

    fn end_definitions(&self, state: &mut State) -> Result<(), Failure> {
        if !matches!(state, State::Define(_)) {
            return Ok(());
        }
        let State::Define(define) = std::mem::replace(state, State::Closed) else {
            return Ok(());
        };
        self.generation.fetch_add(1, Ordering::Relaxed);
        match define.enddef() {
            Ok(dataset) => {
                *state = State::Data(Box::new(dataset));
                Ok(())
            }
            Err(failed) => {
                *state = State::Define(failed.define);
                Err(Failure::Library(failed.error))
            }
        }
    }

    fn require_writable(&self, state: &State) -> Result<(), Failure> {
        match state {
            State::Data(_) if !self.writable => {
                let path = self.path.clone();
                Err(Error::ReadOnly { path, what: "change definitions" }.into())
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn closed(&self) -> Failure {
        Failure::Closed(self.path.clone())
    }

    fn pending(&self) -> Failure {
        Failure::Pending(self.path.clone())
    }
}
