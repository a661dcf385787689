//! What people do with whole files.
//!
//! Each module is one thing that a person asks of a classic netCDF file, and holds all of its
//! logic, so that the command `esker` and the Python package stay thin:
//!
//! - [`cdl`]: the file as text and back, what `ncdump` and `ncgen` do.
//! - [`check`]: whether a file is what the specification says, where it is not, and what can
//!   be mended without guessing.
//! - [`copy`]: a file, or chosen variables and ranges of it, into a file of any version.
//! - [`diff`]: what two files differ in, definitions and values.
//! - [`offsets`]: where each variable and record lies in the file.
//! - [`refs`]: references with which xarray and Zarr read the file without Esker.
//! - [`replay`]: a container of logs into the classic file that it stands for.
//! - [`simulate`]: who would own which chunk, for as many ranks as one likes.
//! - [`stats`]: the smallest, the largest and the mean value of a variable, its gaps.
//!
//! Two smaller ones serve these: [`blocks`] cuts a variable into pieces of bounded size, and
//! [`Progress`] tells a caller how far a long task is. Nothing here prints.
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

pub mod blocks;
mod boxes;
pub mod cdl;
pub mod check;
pub mod copy;
pub mod diff;
pub mod offsets;
mod progress;
pub mod refs;
pub mod replay;
mod runs;
pub mod simulate;
mod source;
pub mod stats;
pub mod whole;

pub use progress::{Progress, Unseen};
