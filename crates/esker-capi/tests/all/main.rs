//! The tests of esker-capi, one program. What they compile is in `tests/programs`.
#![allow(missing_docs)]

mod cdl;
mod classes;
mod cmake;
mod compilers;
mod every_procedure;
mod every_type;
mod fortran;
mod graphs;
mod interface;
mod launchers;
mod layouts;
mod newer;
mod place;
mod programs;
