//! The tests of esker-cli, one program.
#![allow(missing_docs)]

mod adjoint;
mod bench;
mod chunked;
mod closed;
mod common;
mod containers;
mod damaged_tables;
mod decomposed;
mod demo;
mod files_of_others;
mod frame;
mod hacc;
mod hostile_names;
mod launched;
mod looking;
mod lossy;
mod models;
mod models_whole;
mod names;
mod recovering;
mod refs;
mod simulating;
mod simulating_blocks;
mod whole_files;
