//! MPI, found and loaded when the program runs.
//!
//! Nothing of MPI is needed to build this crate, and a machine without MPI runs it. When MPI is
//! first asked for, it is looked for in this order:
//!
//! 1. in this process: the program is linked to it, or Python has loaded it;
//! 2. the library that the variable `ESKER_MPI_LIB` names;
//! 3. beside the `mpiexec` that started this process;
//! 4. under its usual names (`libmpi_abi.so.1`, `libmpich.so.12`, `libmpi.so.40` …), those of
//!    the launcher's family first.
//!
//! The library is asked for its version, and its exported symbols tell its [`Abi`]: what differs
//! between these is a table of constants and whether a handle is an int or a pointer.
//!
//! MPI that the program has initialised is used as it is and never finalised by us; if nobody
//! has, [`MpiComm::world`] does, and it is finalised when the process exits, or when an
//! [`MpiSession`] is dropped. Where MPI does not allow several threads at once
//! ([`ThreadLevel`] below `Multiple`), calls are made one at a time; then two threads of a rank
//! must not split two communicators at the same time.
//!
//! | variable | effect |
//! | --- | --- |
//! | `ESKER_MPI_LIB` | the library to load |
//! | `ESKER_MPI_SERIALIZED` | if set, MPI is asked for one thread at a time |
//! | `ESKER_MPI_CONSENSUS_FROM` | ranks from which sparse exchanges use a consensus (64) |
//! | `ESKER_MPI_PIECE` | bytes of the largest piece given to MPI at once (1 GiB) |
//! | `ESKER_MPI_BLOCK` | if set, waits inside MPI; for measurements |
//!
//! Waiting never blocks inside MPI: operations are started, tested, and the core is given to
//! others in between, because MPICH itself would spin.

mod abi;
mod calls;
mod collective;
mod comm;
mod datatype;
mod environment;
mod find;
mod fortran;
mod info;
mod library;
mod point;
mod shared;
mod sparse;
mod transfer;

use std::fmt;
use std::path::PathBuf;

pub use abi::Abi;
pub use comm::{GATHER_HEAD, MpiComm};
pub use datatype::{Block, Datatype, Element, TypeMap};
pub use environment::{Launched, Launcher, VARIABLES, launched};
pub use fortran::{comm_from_fortran, datatype_from_fortran, info_from_fortran, info_to_fortran};
pub use info::{info_pairs, new_info};

use crate::Result;

/// What is known of the MPI library of this process.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct MpiInfo {
    /// The file that it was loaded from.
    pub library: PathBuf,
    /// What it says of itself; may have several lines.
    pub version: String,
    /// Its family.
    pub abi: Abi,
    /// Whether it was in the process before Esker looked for it.
    pub was_loaded: bool,
    /// What it allows threads to do; `None` if it is not initialised.
    pub thread_level: Option<ThreadLevel>,
}

/// What an MPI library allows threads to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ThreadLevel {
    /// There is one thread.
    Single,
    /// Only the main thread calls MPI.
    Funneled,
    /// One thread calls MPI at a time.
    Serialized,
    /// Any thread calls MPI at any time.
    Multiple,
}

impl fmt::Display for ThreadLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ThreadLevel::Single => "single",
            ThreadLevel::Funneled => "funneled",
            ThreadLevel::Serialized => "serialized",
            ThreadLevel::Multiple => "multiple",
        })
    }
}

/// The MPI library of this process, looked for and loaded if it was not; `None` if there is
/// none. Does not initialise it.
pub fn found() -> Option<MpiInfo> {
    library::library().ok().map(|library| library.info())
}

/// Why [`found`] found nothing, in words; `None` if it did find a library.
pub fn why_not_found() -> Option<String> {
    library::library().err().map(|error| error.to_string())
}

/// The handle at place `index` of an array of handles in C, widened to a pointer's size.
///
/// # Safety
///
/// The array has that place.
#[allow(unsafe_code)]
pub unsafe fn read_handle(array: *const std::ffi::c_void, index: usize) -> Result<usize> {
    let library = library::library()?;
    // SAFETY: the caller vouches for the place; the size of a handle is the library's.
    Ok(unsafe {
        match library.abi {
            Abi::Mpich => array.cast::<u32>().add(index).read_unaligned() as usize,
            Abi::OpenMpi | Abi::Standard => array.cast::<usize>().add(index).read_unaligned(),
        }
    })
}

/// Writes a handle, as wide as it is in C.
///
/// # Safety
///
/// `place` is where a handle may be written.
#[allow(unsafe_code)]
pub unsafe fn write_handle(place: *mut std::ffi::c_void, raw: usize) -> Result<()> {
    let library = library::library()?;
    // SAFETY: the caller vouches for the place; the size of a handle is the library's.
    unsafe {
        match library.abi {
            Abi::Mpich => place.cast::<u32>().write_unaligned(raw as u32),
            Abi::OpenMpi | Abi::Standard => place.cast::<usize>().write_unaligned(raw),
        }
    }
    Ok(())
}

/// Whether a launcher of MPI programs (`mpiexec`, `srun`) started this process, by its
/// environment.
pub fn is_launched() -> bool {
    launched().is_some()
}

/// Why this program's MPI does not belong to the launcher that started it, in a sentence, if it seems so:
/// the launcher says that it started several processes, and each of them is a world of its own, which
/// will write what all of them were to write together. `None` before MPI is in use.
///
/// Only the first of the processes is told, where they know their numbers. A program that a job's script
/// runs by itself has no such launcher.
pub fn wrong_launcher() -> Option<String> {
    let launched = launched()?;
    let started = launched.ranks.filter(|ranks| *ranks > 1)?;
    if launched.rank.is_some_and(|rank| rank > 0) {
        return None;
    }
    let library = library::library().ok()?;
    if library.world_size()? > 1 {
        return None;
    }
    let info = library.info();
    let version = info.version.lines().next().unwrap_or_default().to_string();
    let version = version.split(',').next().unwrap_or_default().trim();
    Some(format!(
        "a launcher of {} started {started} processes, but the MPI library of this program, {} ({version}), \
         sees one: these are {started} worlds of one rank, and all of them write the same files. Start \
         the program with the mpiexec that belongs to this library",
        launched.by,
        info.library.display()
    ))
}

/// Whether the program uses MPI already. Loads nothing but what is in the process.
pub(crate) fn is_in_use() -> bool {
    find::is_in_use()
}

/// Ends all ranks of the MPI world at once, as after an error that cannot be agreed on. Returns
/// if MPI is not in use.
pub fn abort(status: i32) {
    if let Ok(library) = library::library() {
        library.abort(status);
    }
}

/// MPI for as long as this lives: finalised when it is dropped, if Esker initialised it.
///
/// Dropped by a panic, it aborts all ranks, because the others would wait for this one. Every
/// communicator should be dropped before.
#[derive(Debug)]
pub struct MpiSession(());

impl MpiSession {
    /// Loads MPI and initialises it if nobody has.
    pub fn start() -> Result<Self> {
        library::library()?.make_ready()?;
        Ok(MpiSession(()))
    }
}

impl Drop for MpiSession {
    fn drop(&mut self) {
        if let Ok(library) = library::library() {
            if std::thread::panicking() {
                library.abort(101);
            } else {
                library.finish(0);
            }
        }
    }
}
