//! What people do with whole files.
//!
//! Each module is one thing that a person asks of a classic netCDF file, and holds all of its
//! logic, so that the command `esker` and the Python package stay thin:
//!
//! - [`check`]: whether a file is what the specification says, where it is not, and what can
//!   be mended without guessing.
//! - [`copy`]: a file, or chosen variables and ranges of it, into a file of any version.
//! - [`diff`]: what two files differ in, definitions and values.
//!
//! [`Progress`] tells a caller how far a long task is. Nothing here prints.
#![forbid(unsafe_code)]

pub mod check;
pub mod copy;
pub mod diff;
mod progress;
mod runs;
mod source;

pub use progress::{Progress, Unseen};
