//! Adjoint runs: schedules, compressed checkpoints in memory and on disk, restart.
#![forbid(unsafe_code)]

pub mod schedule;
