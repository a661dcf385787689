//! What people do with whole files.
//!
//! Each module is one thing that a person asks of a classic netCDF file, and holds all of its
//! logic, so that the command `esker` and the Python package stay thin:
//!
//! - [`check`]: whether a file is what the specification says, where it is not, and what can
//!   be mended without guessing.
//! - [`offsets`]: where each variable and record lies in the file.
//! - [`stats`]: the smallest, the largest and the mean value of a variable, its gaps.
//!
//! Two smaller ones serve these: [`blocks`] cuts a variable into pieces of bounded size, and
//! [`Progress`] tells a caller how far a long task is. Nothing here prints.
#![forbid(unsafe_code)]

pub mod blocks;
pub mod check;
pub mod offsets;
mod progress;
pub mod stats;

pub use progress::{Progress, Unseen};
