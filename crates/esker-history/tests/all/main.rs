//! What versions promise.

mod lossy;
mod promises;
mod serial;
