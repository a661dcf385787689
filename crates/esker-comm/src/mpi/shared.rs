//! Few communicators for many datasets.
//!
//! MPI libraries have few of them (MPICH about 2,000 in a process, and it aborts at the next one), and
//! programs open thousands of files. So all that is made from one communicator of the program shares one
//! duplicate of it, which the communicator carries as an attribute: MPI lets go of it when the program
//! frees the communicator, whose handle may be another one's from then on.

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::abi::{Abi, Handle};
use super::collective::Inner;
use super::library::Library;
use crate::{CommError, Result};

/// Communicators that Esker makes at most: MPICH has 2,048, of which the program needs some, and a few
/// are made and freed for a moment.
pub(super) const MOST: usize = 1000;

/// Datasets that have communicators of their own. Those that are opened while so many are share one.
pub(super) const OWN: usize = 256;

/// Communicators that were made and not freed.
static ALIVE: AtomicUsize = AtomicUsize::new(0);

/// Duplicates of communicators that the program has freed: MPI is not called while it frees one.
static LEFT: Mutex<Vec<Arc<Inner>>> = Mutex::new(Vec::new());

/// One communicator of the process, counted as long as it lives.
#[derive(Debug)]
pub(super) struct Counted(());

impl Counted {
    pub(super) fn new() -> Counted {
        ALIVE.fetch_add(1, Ordering::Relaxed);
        Counted(())
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        ALIVE.fetch_sub(1, Ordering::Relaxed);
    }
}

/// How many communicators there are.
pub(super) fn alive() -> usize {
    ALIVE.load(Ordering::Relaxed)
}

/// Fails before MPI has no communicator left.
pub(super) fn require_room(operation: &'static str) -> Result<()> {
    match alive() < MOST {
        true => Ok(()),
        false => Err(CommError::BadArgument {
            operation,
            reason: format!(
                "there are {MOST} communicators already, and MPI libraries have few more: close \
                 datasets, or drop communicators that are not in use"
            ),
        }),
    }
}

/// Frees duplicates that are not needed any more, unless somebody has them still.
pub(super) fn sweep() {
    let left = std::mem::take(&mut *LEFT.lock().unwrap_or_else(PoisonError::into_inner));
    drop(left);
}

/// The attribute's number.
#[allow(unsafe_code)]
fn key(library: &'static Library) -> Result<c_int> {
    static KEY: OnceLock<Result<c_int>> = OnceLock::new();
    KEY.get_or_init(|| {
        let mut key: c_int = 0;
        let (copy, delete) = match library.abi {
            Abi::Mpich => (no_copy::<c_int> as *mut c_void, let_go::<c_int> as *mut c_void),
            Abi::OpenMpi | Abi::Standard => {
                (no_copy::<usize> as *mut c_void, let_go::<usize> as *mut c_void)
            }
        };
        let null = std::ptr::null_mut();
        // SAFETY: the functions are as MPI calls them, with handles of this library's type, and live as
        // long as the process.
        library.call("MPI_Comm_create_keyval", |mpi| unsafe {
            mpi.comm_create_keyval(copy, delete, &mut key, null)
        })?;
        Ok(key)
    })
    .clone()
}

/// A duplicate of the program's communicator does not have the attribute.
///
/// # Safety
///
/// As MPI calls it.
#[allow(unsafe_code)]
unsafe extern "C" fn no_copy<H>(
    _: H,
    _: c_int,
    _: *mut c_void,
    _: *mut c_void,
    _: *mut c_void,
    flag: *mut c_int,
) -> c_int {
    // SAFETY: MPI gives a place for the flag.
    unsafe { flag.write(0) };
    0
}

/// The program frees its communicator, or ends.
///
/// # Safety
///
/// As MPI calls it.
#[allow(unsafe_code)]
unsafe extern "C" fn let_go<H>(_: H, _: c_int, value: *mut c_void, _: *mut c_void) -> c_int {
    if !value.is_null() {
        // SAFETY: the value is what `keep` has set, and MPI gives it back once.
        let kept = unsafe { Box::from_raw(value.cast::<Arc<Inner>>()) };
        LEFT.lock().unwrap_or_else(PoisonError::into_inner).push(*kept);
    }
    0
}

/// The duplicate that the communicator carries, if it does.
#[allow(unsafe_code)]
pub(super) fn find(library: &'static Library, handle: Handle) -> Result<Option<Arc<Inner>>> {
    let key = key(library)?;
    let (mut value, mut flag): (*const Arc<Inner>, c_int) = (std::ptr::null(), 0);
    // SAFETY: the handle is valid, and MPI stores the attribute's value in `value`.
    library.call("MPI_Comm_get_attr", |mpi| unsafe {
        mpi.comm_get_attr(handle, key, (&raw mut value).cast(), &mut flag)
    })?;
    // SAFETY: the value is what `keep` has set; it lives until MPI lets go of it, which the program
    // does not do while it passes the communicator to us.
    Ok((flag != 0 && !value.is_null()).then(|| unsafe { (*value).clone() }))
}

/// Lets the communicator carry this duplicate of it.
#[allow(unsafe_code)]
pub(super) fn keep(library: &'static Library, handle: Handle, inner: &Arc<Inner>) -> Result<()> {
    let key = key(library)?;
    let value = Box::into_raw(Box::new(inner.clone()));
    // SAFETY: the handle is valid; the value is taken back by `let_go`.
    let set = library
        .call("MPI_Comm_set_attr", |mpi| unsafe { mpi.comm_set_attr(handle, key, value.cast()) });
    if set.is_err() {
        // SAFETY: nobody else has it.
        drop(unsafe { Box::from_raw(value) });
    }
    set
}
