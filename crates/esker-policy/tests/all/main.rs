//! Promises of the policies.
#![allow(missing_docs)]

mod advice;
mod bricks;
mod cluster;
mod dealt;
mod files;
mod memory;
mod optimum;
mod patches;
mod reading;
mod real_boxes;
mod sizes;
mod staging;

#[global_allocator]
static COUNTING: esker_testkit::memory::Counting = esker_testkit::memory::Counting;
