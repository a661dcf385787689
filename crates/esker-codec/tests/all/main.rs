//! The tests of esker-codec, one program.
#![allow(missing_docs)]

mod bounds;
mod common;
mod definitions;
mod golden;
mod hostile;
mod numcodecs;
mod patches;
mod round_trips;
mod second_decoder;
mod straight;

/// Counts for each thread by itself, so that tests may run side by side.
#[global_allocator]
static COUNTING: esker_testkit::memory::Counting = esker_testkit::memory::Counting;
