//! What the tests of all crates share. Never a dependency of anything but tests and the soak.
//!
//! | module | for |
//! | --- | --- |
//! | [`mod@skip`] | saying that something could not be tested, so that it is counted |
//! | [`programs`] | peers' programs: ncdump, ncvalidator, compilers |
//! | [`python`] | a Python with given modules |
//! | [`data`] | the real files of `shared/data` |
//! | [`mpi`] | jobs under MPICH's and OpenMPI's launchers |
//! | [`ranks`] | ranks that are threads, and may not hang |
//! | [`random`], [`damage`] | numbers that are the same in every run; headers, and harm done to bytes |
//! | [`cpu`] | how long a thread computed, however busy the machine is |
//! | [`memory`] | an allocator that counts |
//!
//! A test that needs something which may be absent asks for it here; where it is absent the
//! question itself records the skip:
//!
//! ```ignore
//! let Some(python) = python::with("netCDF4, xarray") else { return };
//! if !programs::have("ncdump") { return }
//! ```

pub mod cpu;
pub mod damage;
pub mod data;
pub mod memory;
pub mod mpi;
pub mod programs;
pub mod python;
pub mod random;
pub mod ranks;
pub mod skip;
