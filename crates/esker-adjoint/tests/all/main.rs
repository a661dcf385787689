//! The tests of esker-adjoint, one program.
#![allow(missing_docs)]

mod beside;
mod budget;
mod folders;
mod runs;
mod schedules;
mod wave;
