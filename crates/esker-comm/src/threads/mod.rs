//! Ranks that are threads of this process.

mod comm;
mod group;
mod launch;
mod meeting;

pub use comm::ThreadComm;
pub use launch::{LaunchError, ThreadWorld, launch};
