//! Esker: arrays of simulations in classic netCDF files.
//!
//! A dataset has dimensions, variables over them, and attributes. It is created in define
//! mode ([`Define`]), where these come into being; [`Define::enddef`] makes it a [`Dataset`],
//! whose variables are written and read by [`Selection`]: hyperslabs with a start, a count
//! and a stride in each dimension. The file is a classic netCDF file (CDF-1, 2 or 5) that every
//! netCDF tool opens.
//!
//! ```
//! use esker::{CreateOptions, Dataset, DimLen, ExternalType, Owner, Selection};
//!
//! # fn main() -> esker::Result<()> {
//! # let dir = tempfile::tempdir().unwrap();
//! # let path = dir.path().join("run.nc");
//! let mut def = Dataset::create(&path, CreateOptions::new())?;
//! let time = def.add_dim("time", DimLen::Unlimited)?;
//! let x = def.add_dim("x", DimLen::Fixed(4))?;
//! let t = def.add_var("t", ExternalType::Float, &[time, x])?;
//! def.put_attr(t, "units", "K")?;
//! def.put_attr(Owner::Global, "title", "a first run")?;
//! let mut ds = def.enddef()?;
//! ds.append(t, &[280.0, 281.5, 283.0, 284.5])?;
//! ds.put(t, &Selection::slab(&[0, 1], &[1, 2]), &[0.0f32, 1.0])?;
//! let row: Vec<f64> = ds.get(t, &Selection::all())?;
//! assert_eq!(row, [280.0, 0.0, 1.0, 284.5]);
//! ds.close()
//! # }
//! ```
//!
//! Many ranks may have one dataset: threads of this process ([`launch`]) or MPI processes.
//! Each says what it has, and one call moves it all:
//!
//! ```
//! use esker::{CreateOptions, Dataset, DimLen, ExternalType, Selection};
//! # let dir = tempfile::tempdir().unwrap();
//! # let path = dir.path().join("run.nc");
//! let outcomes = esker::launch(4, |comm| -> esker::Result<()> {
//!     let rank = comm.rank() as u64;
//!     let mut def = Dataset::create(&path, CreateOptions::new().comm(comm))?;
//!     let x = def.add_dim("x", DimLen::Fixed(400))?;
//!     let t = def.add_var("t", ExternalType::Float, &[x])?;
//!     let mut ds = def.enddef()?;
//!     let mine = vec![rank as f32; 100];
//!     ds.put_all(t, &Selection::slab(&[100 * rank], &[100]), &mine)?;
//!     ds.close()
//! });
//! # outcomes.into_iter().for_each(|outcome| outcome.unwrap());
//! ```
//!
//! The [`guide`] tells what is collective, when data are visible and when they are safe, and how
//! to read a [`Report`].
//!
//! The road of a write, which is also the order to read the modules in: `access` queues it as
//! a `request`, whose `selection` is checked and becomes patterns (`esker_format::runs`); a wait (`engine`) makes
//! a `plan` of all of them, the `strategy` decides, and the pieces go `direct` to the store or by
//! `exchange` (with `wire` for messages and `window` for what an owner holds). A header reaches
//! the file in `commit`.

#![forbid(unsafe_code)]

#[cfg(test)]
extern crate self as esker;

mod access;
mod amending;
mod base;
mod bounded;
mod burst;
mod caller;
mod canonical;
mod chunked;
mod comb;
mod commit;
mod common;
mod conflict;
mod container;
mod counting;
mod credit;
mod dataset;
mod decomposed;
mod define;
mod direct;
mod error;
mod exchange;
mod fill;
mod gathered;
mod graphs;
mod ground;
#[doc = include_str!("../../../docs/parallel.md")]
pub mod guide {}
#[doc = include_str!("../../../docs/log.md")]
pub mod log_guide {}
#[doc = include_str!("../../../docs/chunked.md")]
pub mod chunked_guide {}
mod held;
mod hints;
mod intervals;
mod io_thread;
mod journal;
mod layout;
mod learning;
mod lists;
mod log;
pub mod long;
mod mail;
mod memory;
mod merge;
mod merging;
mod message;
mod mixed;
mod moving;
pub mod nearest;
mod notes;
mod numbering;
mod opening;
mod options;
mod pending;
mod plan;
mod reach;
mod reading;
mod recovery;
mod removal;
mod report;
mod request;
mod rest;
mod rounds;
mod selection;
mod share;
mod slabs;
mod sound;
mod strategy;
mod taken;
mod telling;
mod transaction;
mod tree;
mod volume;
mod window;
mod windows;
mod wire;
mod wishes;
mod writer;
mod young;

#[cfg(test)]
#[path = "../tests/layouts/mod.rs"]
mod layouts;

pub use access::Outcomes;
pub use base::{classic_of, read_header_noting};
pub use bounded::CacheUse;
pub use burst::{RecoverOptions, Recovery, recover};
pub use caller::crc32c;
pub use chunked::policy as owners;
pub use chunked::{ChunkFault, ChunkFaultKind, Chunking, StoredChunk, TableBlock};

pub use container::{
    Block, Changes, Collection, Expired, GcOptions, LeftLogs, Tag, VersionFacts, VersionState,
    expire, gc, tag, tags, version_in_path, version_named, versions,
};
pub use dataset::Dataset;
pub use decomposed::{Decomposition, DecompositionId, is_unmarked};
pub use define::{Define, EnddefError};
pub use error::{DecompositionError, Error, MemoryError, Result, SelectionError};
pub use esker_comm::{Communicator, SelfComm, launch};
pub use esker_format::graph;
pub use esker_format::{
    Alignment, At, Attribute, Char, DataLayout, DimId, DimLen, Dimension, ExternalType, FileOrder,
    Header, HeaderState, MemoryType, Native, NumRecs, Owner, Placement, Scalar, Schema,
    SchemaError, Values, VarId, Variable, Version, values,
};
pub use esker_history::Keep;
pub use graphs::Graphs;
pub use held::Committed;
pub use hints::{Automatic, Checksums, ChunkRefs, Hints, Layout};
pub use io_thread::IoThread;
pub use journal::{
    clear_journal, finish_redefinition, journal_path, read_journal, remove_journal, replace_header,
};
pub use log::LogDamage;
pub use memory::MemoryLayout;
pub use message::LONGEST_MESSAGE;
pub use options::{CreateOptions, FillMode, OpenOptions};
pub use pending::Pending;
pub use recovery::{
    AllExamined, ContainerFacts, ContainerRecoverOptions, ContainerRecovery, Examination,
    FaultKind, LogFault, LostVersion, RecoveredLog, SessionFacts, Superseded, TornTail,
    container_facts, container_header, examine, examine_all, is_container, recover_container,
};
pub use removal::remove_dataset;
pub use report::{Phases, Report, Road, Strategy};
pub use request::{RequestId, Requests};
pub use selection::Selection;
pub use sound::overlap;
pub use telling::{reader_notes, uncounted_records};
pub use transaction::{BeginOptions, NumberState, Transaction, follow, number_state, skip};
pub use writer::require_unwritten;
pub use young::Survives;
