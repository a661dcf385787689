//! Prints `pnetcdf.h`, or Fortran's `pnetcdf.inc` or `pnetcdf.f90` if that is named, for the
//! script that installs the library.

fn main() {
    let text = match std::env::args().nth(1).as_deref() {
        Some("pnetcdf.inc") => pnetcdf::INCLUDE,
        Some("pnetcdf.f90") => pnetcdf::MODULE,
        _ => pnetcdf::HEADER,
    };
    print!("{text}");
}
