//! Adjoint runs: schedules, compressed checkpoints in memory and on disk, restart.
//!
//! A gradient over n time steps runs backwards and needs the states of the forward run, last first. What is
//! not kept is computed again from an earlier checkpoint. A [`schedule`] says which states are kept; a [`Model`]
//! runs forward and back; [`run`] carries the schedule out: states are encoded beside the model by the filters of
//! `esker-codec`, kept in memory or in a folder, and decoded when the adjoint comes to them. [`resume`] goes on
//! with a run that was killed.
//!
//! The sum of squares after 100 steps of x ← x - 0.01 x³, and its gradient:
//!
//! ```
//! use esker_adjoint::{ArrayMut, Model, ModelError, Options, budget, run};
//! use esker_comm::SelfComm;
//!
//! struct Decay { x: Vec<f64>, adjoint: Vec<f64> }
//!
//! impl Model for Decay {
//!     fn state(&mut self) -> Vec<ArrayMut<'_>> { vec![ArrayMut::doubles("x", &[3], &mut self.x)] }
//!     fn adjoint(&mut self) -> Vec<ArrayMut<'_>> {
//!         vec![ArrayMut::doubles("a", &[3], &mut self.adjoint)]
//!     }
//!     fn forward(&mut self, from: u64, to: u64) -> Result<(), ModelError> {
//!         for _ in from..to { self.x.iter_mut().for_each(|x| *x -= 0.01 * x.powi(3)) }
//!         if to == 100 { self.adjoint = self.x.iter().map(|x| 2.0 * x).collect() }
//!         Ok(())
//!     }
//!     fn reverse(&mut self, _: u64, _: u64) -> Result<(), ModelError> {
//!         for (a, x) in self.adjoint.iter_mut().zip(&self.x) { *a *= 1.0 - 0.03 * x.powi(2) }
//!         Ok(())
//!     }
//! }
//!
//! # fn main() -> Result<(), esker_adjoint::AdjointError> {
//! let mut model = Decay { x: vec![1.0, 2.0, 3.0], adjoint: vec![0.0; 3] };
//! let options = Options { memory: 2000, ..Options::default() };
//! let mut plan = budget(&mut model, 100, &SelfComm::new(), &options)?;
//! let report = run(&mut model, &mut plan, &SelfComm::new(), &options)?;
//! assert!(report.peak[0] <= 2000 && report.forward > 100);
//! assert!((model.adjoint[0] - 2.0 / 9.0).abs() < 0.01); // 2 x / (1 + 0.02 n x²)², of the limit of small steps
//! # Ok(()) }
//! ```
//!
//! docs/adjoint.md is the users' page, docs/format/adjoint.md has the bytes of the folder. Read on in `schedule/mod.rs`, `run/mod.rs`,
//! `resume.rs`, `tiers.rs`, `segment.rs`.
#![forbid(unsafe_code)]

mod about;
mod arena;
mod error;
mod filters;
mod folder;
mod journal;
mod lane;
mod lossless;
mod model;
mod names;
mod options;
mod resume;
mod run;
mod samples;
pub mod schedule;
mod segment;
mod spread;
mod stopwatch;
mod survey;
mod tiers;
mod times;
mod vault;

pub use about::About;
pub use error::{AdjointError, Result};
pub use filters::Filters;
pub use journal::{Record, Survivors};
pub use model::{ArrayMut, Layout, Model, ModelError};
pub use names::MARK;
pub use options::{OnDrift, Options, Report};
pub use resume::resume;
pub use run::{budget, run};
pub use segment::Kind;
pub use survey::{Fault, Gravity, Recovery, Stage, Survey, check, is_checkpoints, recover, survey};
pub use vault::Vault;
