//! Adjoint runs with each way of storing their checkpoints, side by side: seeds/000, §4.3.
//!
//! Two models ([`Case`]): a wave whose steps are cheap and whose states are large, and a sheet of ice whose steps are
//! solved for. Every rank has one of its own. Checkpoints go to a folder, on a disk as it is or on one that is
//! slowed ([`Disk`]), through each [`Column`] of filters, in two ways ([`Planned`]): a fixed number of checkpoints, so that what
//! storing one takes can be compared; and a budget of as many bytes, in which `Budget` does what it finds best. The gradient
//! is compared with that of a run that keeps every state in memory.

mod ice;
mod report;
mod wave;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use esker_adjoint::schedule::{Revolve, Schedule, Trajectory};
use esker_adjoint::{
    AdjointError, Filters, Model, Options as RunOptions, budget, run as run_adjoint,
};
use esker_comm::{Communicator, LaunchError, ThreadWorld};
use esker_store::{LocalStore, PacedStore, Store};

pub use ice::Ice;
pub use report::{Report, Row};
pub use wave::Wave;

/// A model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Case {
    /// A wave in a box, bound by its checkpoints.
    Wave,
    /// Implicit nonlinear diffusion, bound by its steps.
    Ice,
}

impl Case {
    /// Both.
    pub const ALL: [Case; 2] = [Case::Wave, Case::Ice];

    /// As users name it.
    pub fn name(self) -> &'static str {
        match self {
            Case::Wave => "adjoint-wave",
            Case::Ice => "adjoint-ice",
        }
    }

    /// The one of this name.
    pub fn from_name(name: &str) -> Option<Case> {
        Case::ALL.into_iter().find(|case| case.name() == name)
    }

    /// Cells in each direction of a state of about so many bytes.
    fn cells(self, bytes: Option<u64>) -> usize {
        let cells = match self {
            Case::Wave => (bytes.unwrap_or(4 << 20) as f64 / 16.0).cbrt(),
            Case::Ice => (bytes.unwrap_or(128 << 10) as f64 / 8.0).sqrt(),
        };
        (cells.round() as usize).max(4)
    }

    fn model(self, options: &Options, rank: usize) -> Box<dyn Model> {
        let cells = self.cells(options.state);
        match self {
            Case::Wave => Box::new(Wave::new(cells, options.steps, rank)),
            Case::Ice => Box::new(Ice::new(cells, options.steps, rank)),
        }
    }
}

/// What checkpoints go to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Disk {
    /// A disk that takes 50 MB a second from each rank.
    Slowed,
    /// The disk as it is.
    Full,
}

/// Bytes a second of [`Disk::Slowed`].
pub const SLOWED: f64 = 50e6;

impl Disk {
    /// Both.
    pub const ALL: [Disk; 2] = [Disk::Slowed, Disk::Full];

    /// As users name it.
    pub fn name(self) -> &'static str {
        match self {
            Disk::Slowed => "slowed",
            Disk::Full => "full",
        }
    }

    /// Seconds of so many bytes, where that is known.
    fn seconds(self, bytes: u64) -> Option<f64> {
        (self == Disk::Slowed).then(|| bytes as f64 / SLOWED)
    }

    fn store(self) -> Arc<dyn Store> {
        match self {
            Disk::Slowed => Arc::new(PacedStore::new(LocalStore, SLOWED)),
            Disk::Full => Arc::new(LocalStore),
        }
    }
}

/// How checkpoints are planned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Planned {
    /// As many as fit without filters, by Revolve: the same for every column.
    Slots,
    /// By `Budget`, with the bytes that these would take.
    Bytes,
}

impl Planned {
    /// Both.
    pub const ALL: [Planned; 2] = [Planned::Slots, Planned::Bytes];

    /// As reports name it.
    pub fn name(self) -> &'static str {
        match self {
            Planned::Slots => "slots",
            Planned::Bytes => "bytes",
        }
    }
}

/// A way of storing a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Column {
    /// As it is.
    Raw,
    /// Floats for doubles.
    F32,
    /// Lossless, by zlib's format.
    Zlib,
    /// Lossless, as whoever asks for that gets it: `lossless`.
    Lossless,
    /// ZFP under the bound.
    Zfp,
    /// Our error-bounded codec.
    Sz,
    /// What the run itself finds best, under the bound.
    Auto,
}

impl Column {
    /// All of them.
    pub const ALL: [Column; 7] = [
        Column::Raw,
        Column::F32,
        Column::Zlib,
        Column::Lossless,
        Column::Zfp,
        Column::Sz,
        Column::Auto,
    ];

    /// As reports name it.
    pub fn name(self) -> &'static str {
        match self {
            Column::Raw => "raw",
            Column::F32 => "f32",
            Column::Zlib => "zlib",
            Column::Lossless => "lossless",
            Column::Zfp => "zfp",
            Column::Sz => "sz",
            Column::Auto => "auto",
        }
    }

    /// Its filters, under a relative bound.
    fn filters(self, bound: f64) -> String {
        match self {
            Column::Raw => String::new(),
            Column::F32 => "f32".into(),
            Column::Zlib => "shuffle deflate,1".into(),
            Column::Lossless => "lossless".into(),
            Column::Zfp => format!("zfp,rel={bound:e}"),
            Column::Sz => format!("sz,rel={bound:e}"),
            Column::Auto => format!("auto,rel={bound:e}"),
        }
    }
}

/// What is to be measured.
#[derive(Debug, Clone)]
pub struct Options {
    /// The models.
    pub cases: Vec<Case>,
    /// What their checkpoints go to.
    pub disks: Vec<Disk>,
    /// How they are planned.
    pub plans: Vec<Planned>,
    /// Thread-ranks, each with a model of its own.
    pub ranks: usize,
    /// Steps of a run.
    pub steps: u64,
    /// Raw states that there is room for.
    pub budgets: Vec<u64>,
    /// The bound of lossy filters, relative to the range of an array.
    pub bound: f64,
    /// Bytes of a rank's state, about; by default what is natural for the model.
    pub state: Option<u64>,
    /// How often each is run; medians count.
    pub repeat: usize,
    /// Whether states are encoded, written and read beside the model; without, it waits for them as in the paper.
    pub beside: bool,
    /// Where the folder of checkpoints is made, which is removed again.
    pub dir: PathBuf,
}

impl Options {
    /// Both models on both disks: 32 steps, budgets of 1 to 32 states.
    pub fn new(dir: impl Into<PathBuf>) -> Options {
        Options {
            cases: Case::ALL.to_vec(),
            disks: Disk::ALL.to_vec(),
            plans: Planned::ALL.to_vec(),
            ranks: 2,
            steps: 32,
            budgets: vec![1, 2, 4, 8, 16, 32],
            bound: 1e-4,
            state: None,
            repeat: 5,
            beside: false,
            dir: dir.into(),
        }
    }
}

/// A run that could not be measured.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AdjointBenchError {
    /// A run failed.
    #[error("{what}: {source}")]
    Run {
        /// Which one.
        what: String,
        /// Why.
        source: AdjointError,
    },
    /// Ranks could not be started.
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// The folder of checkpoints.
    #[error("{path}: {source}", path = path.display())]
    Folder {
        /// Its name.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}

/// What one rank tells of a run.
struct Ran {
    seconds: f64,
    /// Of the rank's own thread, where the system tells.
    cpu: Option<f64>,
    model: f64,
    moved: u64,
    chosen: String,
    forward: u64,
    stored: u64,
    bytes: [u64; 2],
    gradient: Vec<f64>,
}

/// Measures them, one after the other; `progress` hears what comes next.
pub fn run(options: &Options, progress: &mut dyn FnMut(&str)) -> Result<Report, AdjointBenchError> {
    let mut rows = Vec::new();
    for &case in &options.cases {
        // With room for everything: every state once, nothing lost.
        let free = RunOptions { measure: false, ..RunOptions::default() };
        let exact = on_ranks(options, case, "all states in memory", move |_| (free.clone(), None))?;
        for &disk in &options.disks {
            for &planned in &options.plans {
                for &budget in &options.budgets {
                    let what = format!(
                        "{} on a {} disk, {budget} states of {}",
                        case.name(),
                        disk.name(),
                        planned.name()
                    );
                    progress(&what);
                    // Rounds in turn, so that what else the machine does meets all columns alike.
                    let mut found: Vec<Vec<Row>> = vec![Vec::new(); Column::ALL.len()];
                    for _ in 0..options.repeat.max(1) {
                        for (column, found) in Column::ALL.iter().zip(&mut found) {
                            let cell = Cell { case, disk, planned, budget, column: *column };
                            if !(planned == Planned::Slots && *column == Column::Auto) {
                                found.push(cell.measured(options, &exact, &what)?);
                            }
                        }
                    }
                    rows.extend(found.into_iter().filter_map(report::median));
                }
            }
        }
    }
    let state = |case: &Case| (*case, state_bytes(&mut *case.model(options, 0)));
    let states = options.cases.iter().map(state).collect();
    Ok(Report { options: options.clone(), states, rows })
}

fn state_bytes(model: &mut dyn Model) -> u64 {
    model.state().iter().map(|array| array.bytes.len() as u64).sum()
}

/// One figure of the tables.
#[derive(Clone, Copy)]
struct Cell {
    case: Case,
    disk: Disk,
    planned: Planned,
    budget: u64,
    column: Column,
}

impl Cell {
    fn measured(
        self,
        options: &Options,
        exact: &[Ran],
        what: &str,
    ) -> Result<Row, AdjointBenchError> {
        let Cell { case, disk, planned, budget, column } = self;
        let folder = tempfile_in(&options.dir)?;
        let text = vec![("*".to_string(), column.filters(options.bound))];
        let what = format!("{what}, {}", column.name());
        let failed = |source| AdjointBenchError::Run { what: what.clone(), source };
        let filters = Filters::new(&text).map_err(failed)?;
        // A segment is a little longer than its arrays.
        let room = budget * (state_bytes(&mut *case.model(options, 0)) + 1024);
        let (path, beside) = (folder.0.join("run.chk"), options.beside);
        let ran = on_ranks(options, case, &what, move |_| {
            let own = RunOptions {
                memory: 0,
                disk: room,
                folder: Some(path.clone()),
                store: disk.store(),
                filters: filters.clone(),
                // What a run needs to be resumed is no part of the comparison.
                adjoint_every: Some(u64::MAX),
                beside,
                ..RunOptions::default()
            };
            (own, (planned == Planned::Slots).then_some(budget))
        })?;
        let most = |of: fn(&Ran) -> f64| ran.iter().map(of).fold(0.0, f64::max);
        let (seconds, model) = (most(|ran| ran.seconds), most(|ran| ran.model));
        let square = |of: &mut dyn Iterator<Item = f64>| of.map(|x| x * x).sum::<f64>();
        let pairs = || {
            let both = ran.iter().zip(exact);
            both.flat_map(|(ran, exact)| ran.gradient.iter().zip(&exact.gradient))
        };
        let off = square(&mut pairs().map(|(found, exact)| found - exact));
        let whole = square(&mut pairs().map(|(_, exact)| *exact));
        let sum = |of: fn(&Ran) -> u64| ran.iter().map(of).sum::<u64>();
        Ok(Row {
            case,
            disk,
            planned,
            budget,
            column,
            seconds,
            // What was not spent in the model: ranks that wait for each other wait for a checkpoint.
            checkpoints: (seconds - model).max(0.0),
            forward: ran.first().map_or(0, |ran| ran.forward),
            stored: ran.first().map_or(0, |ran| ran.stored),
            smaller: sum(|ran| ran.bytes[0]) as f64 / sum(|ran| ran.bytes[1]).max(1) as f64,
            error: (off / whole).sqrt(),
            quiet: ran
                .iter()
                .map(|ran| Some(ran.cpu? + disk.seconds(ran.moved).unwrap_or(0.0)))
                .try_fold(0.0, |most, rank| Some(f64::max(most, rank?)))
                .filter(|_| !options.beside),
            chosen: ran.first().map_or_else(String::new, |ran| ran.chosen.clone()),
        })
    }
}

/// Runs a model on each rank; `how` gives a rank's options, and a number of checkpoints if that is what counts.
fn on_ranks(
    options: &Options,
    case: Case,
    what: &str,
    how: impl Fn(usize) -> (RunOptions, Option<u64>) + Send + Sync + 'static,
) -> Result<Vec<Ran>, AdjointBenchError> {
    let own = options.clone();
    let rank = move |comm: Arc<dyn Communicator>| -> Result<Ran, AdjointError> {
        let mut model = case.model(&own, comm.rank());
        let (options, slots) = how(comm.rank());
        let mut plan: Box<dyn Schedule> = match slots {
            Some(slots) => Box::new(Revolve::multistage(own.steps, 0, slots, Trajectory::Maximum)?),
            None => Box::new(budget(&mut *model, own.steps, &*comm, &options)?),
        };
        comm.barrier()?;
        let (begin, cpu) = (Instant::now(), cpu());
        let report = run_adjoint(&mut *model, &mut *plan, &*comm, &options)?;
        let seconds = Duration::as_secs_f64(&begin.elapsed());
        let cpu = cpu_since(cpu);
        let gradient = model.adjoint().iter().flat_map(doubles).collect();
        let (model, forward) = (report.model.as_secs_f64(), report.forward);
        let stored = report.stored.iter().sum();
        let moved = report.moved.iter().sum();
        let chosen = report.chosen.iter().map(|(at, filters)| format!("{at} {filters}"));
        let (chosen, bytes) = (chosen.collect::<Vec<_>>().join(", "), report.bytes);
        Ok(Ran { seconds, cpu, model, moved, chosen, forward, stored, bytes, gradient })
    };
    let ran = ThreadWorld::new(options.ranks).launch(rank)?;
    let failed = |source| AdjointBenchError::Run { what: what.to_string(), source };
    ran.into_iter().collect::<Result<Vec<Ran>, AdjointError>>().map_err(failed)
}

/// Seconds that a processor has worked for this thread.
fn cpu() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    Some(text.split_whitespace().next()?.parse::<f64>().ok()? * 1e-9)
}

fn cpu_since(before: Option<f64>) -> Option<f64> {
    Some(cpu()? - before?)
}

fn doubles(array: &esker_adjoint::ArrayMut<'_>) -> Vec<f64> {
    let (values, _) = array.bytes.as_chunks::<8>();
    values.iter().map(|bytes| f64::from_ne_bytes(*bytes)).collect()
}

/// A folder that goes away.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A new folder in this one, under a name that nobody has.
fn tempfile_in(dir: &Path) -> Result<Folder, AdjointBenchError> {
    let failed =
        |path: &Path, source| AdjointBenchError::Folder { path: path.to_path_buf(), source };
    for number in 0.. {
        let path = dir.join(format!("esker-bench-adjoint.{}.{number}", std::process::id()));
        match std::fs::create_dir(&path) {
            Ok(()) => return Ok(Folder(path)),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(failed(&path, error)),
        }
    }
    Err(failed(dir, std::io::ErrorKind::AlreadyExists.into()))
}
