//! The functions that stand alone, under their names without the prefix. The table says their
//! signatures; each is `unsafe` because its pointers and handles are as C says.

mod cdl;
mod define;
mod graph;
mod inquire;
mod lifecycle;
mod storage;
mod text;
mod transactions;
mod wait;

pub(crate) use cdl::*;
pub(crate) use define::*;
pub(crate) use graph::*;
pub(crate) use inquire::*;
pub(crate) use lifecycle::*;
pub(crate) use storage::*;
pub(crate) use text::*;
pub(crate) use transactions::*;
pub(crate) use wait::*;
