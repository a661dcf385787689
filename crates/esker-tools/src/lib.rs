//! What people do with whole files.
//!
//! Each module is one thing that a person asks of a classic netCDF file, and holds all of its
//! logic, so that the command `esker` and the Python package stay thin:
//!
//! - [`cdl`]: the file as text and back, what `ncdump` and `ncgen` do.
//!
//! ```
//! use esker_tools::cdl;
//!
//! let file = cdl::parse("netcdf tiny { dimensions: n = 3 ; variables: short v(n) ; \
//!                        data: v = 1, 2, _ ; }")?;
//! let mut text = Vec::new();
//! cdl::print(&file, &cdl::DumpOptions::default(), &mut text)?;
//! assert!(String::from_utf8(text)?.ends_with("data:\n\n v = 1, 2, _ ;\n}\n"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

pub mod cdl;
