//! The tests of esker-tools, one program.
#![allow(missing_docs)]

mod cdl_text;
mod check;
mod chunked_check;
mod copy;
mod decomposed;
mod diff;
mod dump_as_ncdump;
mod gen_as_ncgen;
mod integrity;
mod interop;
mod refs;
mod replay;
mod sealed_check;
mod texts;
mod versions;
mod whole_or_not;

/// Counts for each thread by itself, so that tests may run side by side.
#[global_allocator]
static COUNTING: esker_testkit::memory::Counting = esker_testkit::memory::Counting;
