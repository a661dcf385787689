//! What versions promise.

mod lossy;
mod processes;
mod promises;
mod serial;
