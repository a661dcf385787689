//! The tests of esker-models, one program.
#![allow(missing_docs)]

mod amr;
mod faults;
mod graphs;
mod graphs_mpi;
mod mesh;
mod relations;
mod volumes;
