//! Prints `pnetcdf.h`, for the script that installs the library.

fn main() {
    print!("{}", pnetcdf::HEADER);
}
