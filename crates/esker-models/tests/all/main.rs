//! The tests of esker-models, one program.
#![allow(missing_docs)]

mod amr;
mod graphs;
mod mesh;
mod relations;
