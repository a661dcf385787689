//! Promises of the policies.

mod advice;
mod bricks;
mod cluster;
mod dealt;
mod memory;
mod optimum;
mod reading;
mod real_boxes;
mod staging;

#[global_allocator]
static COUNTING: esker_testkit::memory::Counting = esker_testkit::memory::Counting;
