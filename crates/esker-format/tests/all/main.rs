//! The tests of esker-format, one program.
#![allow(missing_docs)]

mod conversion;
mod hostile;
mod names;

/// Counts for each thread by itself, so that tests may run side by side.
#[global_allocator]
static COUNTING: esker_testkit::memory::Counting = esker_testkit::memory::Counting;
