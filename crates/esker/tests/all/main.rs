//! The tests of esker, one program. What needs a process of its own is beside this folder, with
//! the reason at its top.
#![allow(missing_docs)]

mod buffered;
mod burst;
mod bytes;
mod caches;
mod chunked;
mod collectives;
mod committing;
mod container_chunks;
mod containers;
mod decomposed;
mod definitions;
mod examples;
mod failures;
mod hostile;
mod integrity;
mod kill;
mod killed_ranks;
mod lists;
mod log_boxes;
mod log_reads;
mod log_sections;
mod long_reads;
mod many;
mod messages;
mod model;
mod mpi;
mod names;
mod node_memory;
mod not_a_number;
mod parallel;
mod permissions;
mod promises;
mod removal;
mod scenario;
mod sealed;
mod sessions;
mod shares;
mod sparse;
mod strides;
mod subfiles;
mod subfiles_power;
mod transactions;
mod transactions_model;
mod two_jobs;
mod writers;
mod young;

/// Counts for each thread by itself, so that tests may run side by side.
#[global_allocator]
static COUNTING: esker_testkit::memory::Counting = esker_testkit::memory::Counting;
