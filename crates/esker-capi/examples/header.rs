//! Prints `pnetcdf.h`, or what is named: `esker_pnetcdf.h`, Fortran's `pnetcdf.inc` or `pnetcdf.f90`, C++'s `pnetcdf`,
//! or the source `pnetcdf.cpp` with its `mpi.h`, for the script that installs the library.

fn main() {
    let text = match std::env::args().nth(1).as_deref() {
        Some("esker_pnetcdf.h") => pnetcdf::ESKER_HEADER,
        Some("pnetcdf.inc") => pnetcdf::INCLUDE,
        Some("pnetcdf.f90") => pnetcdf::MODULE,
        Some("pnetcdf") => pnetcdf::CXX_HEADER,
        Some("pnetcdf.cpp") => pnetcdf::CXX_SOURCE,
        Some("mpi.h") => pnetcdf::CXX_MPI,
        _ => pnetcdf::HEADER,
    };
    print!("{text}");
}
