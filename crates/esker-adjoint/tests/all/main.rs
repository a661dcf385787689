//! The tests of esker-adjoint, one program.
#![allow(missing_docs)]

mod budget;
mod runs;
mod schedules;
mod wave;
