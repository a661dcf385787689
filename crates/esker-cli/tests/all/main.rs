//! The tests of esker-cli, one program.
#![allow(missing_docs)]

mod bench;
mod chunked;
mod common;
mod containers;
mod decomposed;
mod demo;
mod frame;
mod launched;
mod looking;
mod lossy;
mod recovering;
mod refs;
mod simulating;
mod whole_files;
