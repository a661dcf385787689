//! The tests of esker-bench, one program.
#![allow(missing_docs)]

mod adjoint;
mod chunks;
mod end_to_end;
mod kernels;
mod log_metadata;
