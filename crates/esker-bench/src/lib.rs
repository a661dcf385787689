//! Kernels of parallel I/O, on Esker and on its peers, side by side.
//!
//! A [`Kernel`](kernels::Kernel) is how a kind of program cuts its arrays among ranks. For a
//! number of ranks and a size it yields a [`Plan`](plan::Plan): a schema, and the requests of
//! each rank. A plan is a pure description, and a small file ([`plan_file`]) brings it to those
//! who carry it out, in processes of their own:
//!
//! - Esker on thread-ranks or MPI ranks, and plain positioned writes ([`worker`]);
//! - PnetCDF, with and without its burst buffer or as blobs, ADIOS2, parallel HDF5 and netCDF-4,
//!   by C programs of ours (`peers/`) that are compiled when they are first needed.
//!
//! All do the same in the same order: create, define, write, close; open again, read, close;
//! verify each value, which is a function of its place ([`values`]). What is read can be something
//! else than what was written ([`Reading`]), and Esker writes in one or several [`Layout`]s.
//! [`run`] lets them take turns in one folder, compares the files, and returns a [`Report`] with
//! medians, spread and ratios, which becomes JSON, a table, or a picture ([`svg`]).
//!
//! ```no_run
//! use esker_bench::{Options, kernels::Kernel, run};
//! let mut options = Options::new("/tmp");
//! options.kernels = vec![Kernel::Strided, Kernel::Btio];
//! options.ranks = 4;
//! let report = run(&options, &mut |next| eprintln!("{next}"))?;
//! println!("{}", report.to_text());
//! # Ok::<(), esker_bench::BenchError>(())
//! ```
//!
//! What is timed: each phase starts on all ranks together and lasts until the last is done.
//! Bandwidth and ratios are of the requests, `sync` where it was asked for, and `close`. Memory
//! is allocated, filled and verified outside the times. The page cache takes part: without
//! `sync`, figures are those of memory and CPU, which is what libraries differ in.

#![forbid(unsafe_code)]

pub mod adjoint;
mod cache;
mod clock;
pub mod compare;
mod decomposed;
pub mod kernels;
mod layout;
pub mod machine;
pub mod measure;
mod on_esker;
mod peer;
pub mod plan;
pub mod plan_file;
pub mod posix;
mod process;
mod reading;
pub mod report;
mod runner;
pub mod svg;
pub mod values;
pub mod worker;

pub use layout::Layout;
pub use reading::Reading;
pub use report::Report;
pub use runner::{BenchError, Chunks, Library, Options, Peer, run, usual_ranks};

use std::path::{Path, PathBuf};

/// The folder of E3SM's maps: the given one, or `netcdf_classic` in the folder of shared data,
/// which `ESKER_SHARED_DATA` names or which is `shared/data` beside a parent of where we are.
pub fn maps_folder(given: Option<&Path>) -> Option<PathBuf> {
    let has_maps = |folder: &PathBuf| folder.join(kernels::Case::F.file_name()).is_file();
    if let Some(folder) = given {
        return Some(folder.to_path_buf());
    }
    let shared = std::env::var_os("ESKER_SHARED_DATA").map(PathBuf::from);
    let here = std::env::current_dir().ok();
    let above = here.iter().flat_map(|here| here.ancestors()).map(|dir| dir.join("shared/data"));
    let folders = shared.into_iter().chain(above).map(|data| data.join("netcdf_classic"));
    folders.into_iter().find(has_maps)
}
