//! PnetCDF's C and Fortran interfaces on Esker: `libpnetcdf.so`.
//!
//! A program that was compiled with PnetCDF runs on Esker when it finds this library first:
//!
//! ```sh
//! LD_LIBRARY_PATH=/opt/esker/lib mpiexec -n 4 ./simulation
//! ```
//!
//! The functions of `pnetcdf.h` are made from one table ([`HEADER`] is made from it too); data
//! calls all take one road, `transfer` → `request` → the crate `esker`. Files are numbers in a
//! table (`files`); a `file` is in define or in data mode, as types of `esker`. Errors become
//! PnetCDF's numbers in `codes` and nowhere else; with `ESKER_VERBOSE=1` (or PnetCDF's
//! `PNETCDF_VERBOSE_DEBUG_MODE=1`) each is told in a sentence on the standard error.
//!
//! Fortran's functions and module are made from tables too, by what is in `generate/`; the module
//! `fortran` has what their bodies are made of.
//!
//! So are the C++ classes ([`CXX_HEADER`], [`CXX_SOURCE`]), which the installer compiles.
//!
//! MPI is the program's own: it is found in the process, so that one build serves MPICH and
//! OpenMPI. The design note `docs/design/001-capi.md` says why things are as they are.
//!
//! All `unsafe` is here because C's pointers are believed: what the caller promises is what C's
//! documentation of the function says.

// The functions of the interface have as many arguments as they have in C.
#![allow(clippy::too_many_arguments)]

mod attribute;
mod calls;
mod codes;
mod decom;
mod file;
mod files;
mod filetype;
mod fortran;
mod graph_ids;
mod list;
mod many;
mod pending;
mod request;
mod tokens;
mod transfer;

/// The functions that C calls.
pub mod exports {
    use std::ffi::{c_char, c_int, c_void};
    use std::ptr::{null, null_mut};

    use esker::MemoryType;

    use crate::codes::About;
    use crate::many::Buffers;
    use crate::request::Buffer;
    use crate::transfer::{Call, Offset, Operation, Slab};

    include!(concat!(env!("OUT_DIR"), "/exports.rs"));
}

/// The text of `pnetcdf.h`.
pub const HEADER: &str = include_str!(concat!(env!("OUT_DIR"), "/pnetcdf.h"));

/// The prototypes in [`HEADER`] alone.
pub const PROTOTYPES: &str = include_str!(concat!(env!("OUT_DIR"), "/prototypes.h"));

/// The text of `esker_pnetcdf.h`, which has what Esker adds.
pub const ESKER_HEADER: &str = include_str!(concat!(env!("OUT_DIR"), "/esker_pnetcdf.h"));

/// The text of Fortran's `pnetcdf.inc`.
pub const INCLUDE: &str = include_str!(concat!(env!("OUT_DIR"), "/pnetcdf.inc"));

/// The text of `pnetcdf.f90`, the Fortran 90 module.
pub const MODULE: &str = include_str!(concat!(env!("OUT_DIR"), "/pnetcdf.f90"));

/// The text of C++'s header `pnetcdf`.
pub const CXX_HEADER: &str = include_str!(concat!(env!("OUT_DIR"), "/pnetcdf.hpp"));

/// The source of the C++ classes, which is compiled once for each MPI with [`CXX_MPI`].
pub const CXX_SOURCE: &str = include_str!(concat!(env!("OUT_DIR"), "/pnetcdf.cpp"));

/// The types of each MPI for [`CXX_SOURCE`], in place of its own `mpi.h`.
pub const CXX_MPI: &str = include_str!("../cxx/mpi.h");

pub use fortran::by_hand as fortran_by_hand;
pub use fortran::exports as fortran_exports;
pub use fortran::module::procedures as fortran_module;
