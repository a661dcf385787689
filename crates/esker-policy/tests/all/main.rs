//! The tests of esker-policy, one program.
#![allow(missing_docs)]

mod files;
mod patches;
mod sizes;
