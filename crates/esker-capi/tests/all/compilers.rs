//! The library that cargo built, and the MPIs whose compilers are installed.

use std::path::PathBuf;

use esker_testkit::mpi::Mpi;
use esker_testkit::programs;

/// `libpnetcdf.so` of this build, which lies beside the test: what `cargo test` built, not what
/// `cargo build` may have left before.
pub(crate) fn our_library() -> PathBuf {
    let exe = std::env::current_exe().unwrap();
    let library = exe.with_file_name("libpnetcdf.so");
    assert!(library.exists(), "{} was not built", library.display());
    library
}

/// The MPIs that are installed with this compiler (`mpicc`, `mpif90`).
pub(crate) fn mpis(compiler: &str) -> Vec<Mpi> {
    let installed = |mpi: &Mpi| programs::have(&format!("{compiler}.{}", mpi.suffix));
    Mpi::here().into_iter().filter(installed).collect()
}

/// The words that run a program on our library in `place`.
pub(crate) fn on_our_library(place: &std::path::Path) -> [String; 2] {
    ["env".into(), format!("LD_LIBRARY_PATH={}", place.display())]
}
