//! The tests of esker-format, one program.
#![allow(missing_docs)]

mod conversion;
mod graphs;
mod hostile;
mod hostile_graphs;
mod names;
mod places;

/// Counts for each thread by itself, so that tests may run side by side.
#[global_allocator]
static COUNTING: esker_testkit::memory::Counting = esker_testkit::memory::Counting;
