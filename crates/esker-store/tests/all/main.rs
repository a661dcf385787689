//! The tests of esker-store, one program.
#![allow(missing_docs)]

mod drafts;
mod enclosed;
mod suite;
