//! The tests of esker-comm, one program.
#![allow(missing_docs)]

mod mpi;
mod ranks;
