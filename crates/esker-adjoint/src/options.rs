//! How a run keeps its checkpoints, and what it reports.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use esker_store::{LocalStore, Store};

use crate::filters::Filters;

/// What to do when the error of lossy checkpoints grows beyond the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnDrift {
    /// End the run with an error.
    #[default]
    Fail,
    /// Lose nothing from then on. What was lost before stays lost.
    Lossless,
}

/// How a run keeps its checkpoints.
#[derive(Debug, Clone)]
pub struct Options {
    /// Bytes of memory for checkpoints, on each rank.
    pub memory: u64,
    /// Bytes on disk for checkpoints, of each rank.
    pub disk: u64,
    /// The folder of the disk tier; without one, nothing goes to disk.
    pub folder: Option<PathBuf>,
    /// Where the folder is.
    pub store: Arc<dyn Store>,
    /// The filters of the state's arrays.
    pub filters: Filters,
    /// The adjoint is stored after so many steps, to resume from; by default a twentieth of the run.
    pub adjoint_every: Option<u64>,
    /// How far a state that is computed again may be off, relative to the largest values of its array.
    pub drift_limit: f64,
    /// What to do then.
    pub on_drift: OnDrift,
    /// Whether times of steps and transfers are measured and decide how much of the disk is used. Without, the plan
    /// depends on sizes alone, and is the same in every run.
    pub measure: bool,
    /// Whether values that are not finite are an error.
    pub check_finite: bool,
    /// Whether states are encoded, written and read ahead by threads beside the model. Without, the model waits for all of
    /// it, as programs do that write their checkpoints themselves.
    pub beside: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            memory: u64::MAX,
            disk: 0,
            folder: None,
            store: Arc::new(LocalStore),
            filters: Filters::default(),
            adjoint_every: None,
            drift_limit: 0.1,
            on_drift: OnDrift::default(),
            measure: true,
            check_finite: true,
            beside: true,
        }
    }
}

/// What a run did.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Report {
    /// Steps of the model.
    pub steps: u64,
    /// Forward steps that were run.
    pub forward: u64,
    /// Checkpoints stored in memory and on disk.
    pub stored: [u64; 2],
    /// Checkpoints loaded from memory and from disk.
    pub loaded: [u64; 2],
    /// The most bytes in memory and on disk.
    pub peak: [u64; 2],
    /// Bytes of states before filters, and after.
    pub bytes: [u64; 2],
    /// Bytes written to disk, and read from there.
    pub moved: [u64; 2],
    /// The largest drift that was seen.
    pub drift: f64,
    /// Time in the model's steps, forward and reverse.
    pub model: Duration,
    /// Time in which the model waited for checkpoints.
    pub waited: Duration,
    /// The part of it in which states were stored.
    pub storing: Duration,
    /// What `auto` chose, and at which state: the filters of each array (`*`: of all that have no others).
    pub chosen: Vec<(u64, String)>,
    /// What the user should know: a full disk, a damaged checkpoint.
    pub notes: Vec<String>,
}
