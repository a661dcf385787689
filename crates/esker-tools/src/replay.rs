//! `esker replay`: a container of logs as the classic file that it stands for.
//!
//! A container answers reads as that file would, header and padding included, so a replay is a
//! copy of what it answers. (Filters of the container's variables are left out of the header.) Ranks copy different blocks, each with a buffer of its own, and have
//! nothing to tell each other: threads of one process take the next block when they have
//! finished one, MPI ranks have a share each.
//!
//! ```
//! use esker::{CreateOptions, Dataset, DimLen, ExternalType, Layout, Selection};
//! use esker_tools::replay::{ReplayOptions, replay};
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let dir = tempfile::tempdir()?;
//! # let (run, out) = (dir.path().join("run.esk"), dir.path().join("out.nc"));
//! let mut def = Dataset::create(&run, CreateOptions::new().layout(Layout::Log))?;
//! let x = def.add_dim("x", DimLen::Fixed(5))?;
//! let t = def.add_var("t", ExternalType::Short, &[x])?;
//! let mut ds = def.enddef()?;
//! ds.put(t, &Selection::slab(&[1], &[3]), &[1i16, 2, 3])?;
//! ds.close()?;
//!
//! let replayed = replay(&run, &out, &ReplayOptions::default(), &mut esker_tools::Unseen)?;
//! assert_eq!(replayed.file_len, std::fs::metadata(&out)?.len());
//! let ds = Dataset::open(&out)?;
//! assert_eq!(ds.get::<i16>(ds.var("t")?, &Selection::all())?, [-32767, 1, 2, 3, -32767]);
//! # Ok(()) }
//! ```
//!
//! [`replay_start`] does it while the program goes on.

mod background;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;

use esker::{Communicator, Dataset, Error, Header, Hints, OpenOptions, SelfComm};
use esker_comm::CommunicatorExt;
use esker_format::chunked::{FILTERS, SHAPE};
use esker_store::{Access, File, LocalStore, Store, StoreError, shown_path};

use crate::Progress;
use crate::copy::CopyError;
use crate::whole::{self, Output, Shape};

pub use background::{Replaying, replay_start};

/// How to replay.
#[derive(Debug, Clone)]
pub struct ReplayOptions {
    /// The version of the container; none for the newest.
    pub version: Option<u64>,
    /// Threads that copy, on each rank; none for as many as there are cores.
    pub threads: Option<usize>,
    /// Bytes that a thread copies at a time, which is the memory it takes for data.
    pub block: usize,
    /// Whether a file that has the output's name is replaced.
    pub overwrite: bool,
    /// Whether the output is safe from power loss before it takes its name.
    pub sync: bool,
    /// Where both are.
    pub store: Arc<dyn Store>,
    /// The ranks that replay together.
    pub comm: Arc<dyn Communicator>,
    /// How the container is read.
    pub hints: Hints,
}

impl Default for ReplayOptions {
    fn default() -> Self {
        ReplayOptions {
            version: None,
            threads: None,
            block: 4 << 20,
            overwrite: true,
            sync: false,
            store: Arc::new(LocalStore),
            comm: Arc::new(SelfComm::new()),
            hints: Hints::default(),
        }
    }
}

/// What was replayed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replayed {
    /// The container's version.
    pub version: u64,
    /// Variables in the file.
    pub variables: usize,
    /// Records in the file.
    pub records: u64,
    /// Length of the file.
    pub file_len: u64,
    /// Ranks and threads that copied.
    pub copied_by: usize,
}

/// Why a replay was not made. The output is as it was before.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReplayError {
    /// The container cannot be read, or the output not be written.
    #[error(transparent)]
    Dataset(Box<Error>),

    /// The input is a file.
    #[error("{}: it is a classic file already, which `esker copy` copies", shown_path(path))]
    Classic {
        /// The input.
        path: PathBuf,
    },

    /// [`Replaying::cancel`] was called.
    #[error("{}: the replay was cancelled", shown_path(path))]
    Cancelled {
        /// The output that was not made.
        path: PathBuf,
    },
    /// The chunks or filters that are asked for cannot be.
    #[error(transparent)]
    Copy(Box<CopyError>),

    /// There is a file of the output's name.
    #[error("{}: it exists already, and is not to be replaced", shown_path(path))]
    Exists {
        /// The output.
        path: PathBuf,
    },
}

impl From<Error> for ReplayError {
    fn from(error: Error) -> Self {
        ReplayError::Dataset(Box::new(error))
    }
}

impl From<StoreError> for ReplayError {
    fn from(error: StoreError) -> Self {
        Error::from(error).into()
    }
}

impl From<esker_comm::CommError> for ReplayError {
    fn from(error: esker_comm::CommError) -> Self {
        Error::from(error).into()
    }
}

type Result<T> = std::result::Result<T, ReplayError>;

/// Makes the classic file `output` of the container `input`. It appears when it is complete and
/// not before. Collective over the options' communicator; rank 0 hears of progress.
pub fn replay(
    input: &Path,
    output: &Path,
    options: &ReplayOptions,
    progress: &mut dyn Progress,
) -> Result<Replayed> {
    replay_unless(&AtomicBool::new(false), input, output, options, progress)
}

/// The same until it is `cancelled`.
fn replay_unless(
    cancelled: &AtomicBool,
    input: &Path,
    output: &Path,
    options: &ReplayOptions,
    progress: &mut dyn Progress,
) -> Result<Replayed> {
    let open = OpenOptions::new()
        .store(options.store.clone())
        .comm(options.comm.clone())
        .hints(options.hints.clone());
    let open = match options.version {
        Some(version) => open.container_version(version),
        None => open,
    };
    let dataset = Dataset::open_with(input, open)?;
    let Some(version) = dataset.container_version() else {
        return Err(ReplayError::Classic { path: input.to_path_buf() });
    };
    let comm = dataset.comm().clone();
    // The first look at the logs: a damage is found here, before anything is made.
    let source = agree(&*comm, dataset.classic_file().map_err(ReplayError::from))?;
    let len = source.len()?;
    let threads = options.threads.unwrap_or_else(cores).max(1);
    // In the same words on every rank.
    agree(&*comm, require_free(options, &*comm, output))?;
    let (overwrite, sync) = (options.overwrite, options.sync);
    let whole = Output { path: output, shape: Shape::File, overwrite, sync };
    let made = whole::together(&*comm, &options.store, &whole, |growing| {
        let file = options.store.open(growing, Access::ReadWrite).map_err(ReplayError::from);
        let file = agree(&*comm, file)?;
        let share = share(len, &*comm);
        let next = Next { at: AtomicU64::new(share.0), end: share.1, cancelled };
        let copied = copy(&*source, &*file, next, threads, options.block, progress);
        // What is complete is not given up any more.
        let copied = copied.and_then(|is_whole| match is_whole {
            true => Ok(()),
            false => Err(ReplayError::Cancelled { path: output.to_path_buf() }),
        });
        // All ranks are done with their shares before the beginning changes.
        agree(&*comm, copied)?;
        let headed = match without_filters(dataset.header()) {
            Some(bytes) if comm.rank() == 0 => file.write_at(0, &bytes).map_err(ReplayError::from),
            _ => Ok(()),
        };
        let synced = headed.and_then(|()| match options.sync {
            true => Ok(file.sync()?),
            false => Ok(()),
        });
        agree(&*comm, synced)
    });
    made.map_err(|error: ReplayError| match error {
        ReplayError::Dataset(error) if is_there(&error) => {
            ReplayError::Exists { path: output.to_path_buf() }
        }
        other => other,
    })?;
    Ok(Replayed {
        version,
        variables: dataset.schema().vars.len(),
        records: dataset.numrecs(),
        file_len: len,
        copied_by: threads * comm.size(),
    })
}

/// The header of a container whose variables have chunks and filters as that of the file, whose variables have
/// none. It is shorter, and everything else stays where it is.
fn without_filters(header: &Header) -> Option<Vec<u8>> {
    let mut header = header.clone();
    let mut has_any = false;
    for number in 0..header.schema.vars.len() {
        let Some(var) = header.schema.vars.at_mut(number) else { continue };
        for name in [SHAPE, FILTERS] {
            if let Some(position) = var.attrs.position(name) {
                var.attrs.remove(position);
                has_any = true;
            }
        }
    }
    let long = usize::try_from(header.layout.header_len).unwrap_or(0);
    let mut bytes = header.encode();
    bytes.resize(long.max(bytes.len()), 0);
    has_any.then_some(bytes)
}

fn cores() -> usize {
    thread::available_parallelism().map_or(1, |n| n.get())
}

/// Fails if something has the output's name that is not to be replaced. By rank 0.
fn require_free(options: &ReplayOptions, comm: &dyn Communicator, output: &Path) -> Result<()> {
    let looks = comm.rank() == 0 && !options.overwrite;
    match looks && options.store.exists(output)? {
        true => Err(ReplayError::Exists { path: output.to_path_buf() }),
        false => Ok(()),
    }
}

/// Whether something has the output's name that is not to be replaced.
fn is_there(error: &Error) -> bool {
    matches!(error, Error::Store(error) if error.kind() == std::io::ErrorKind::AlreadyExists)
}

/// Collective: the outcome of all.
fn agree<T>(comm: &dyn Communicator, outcome: Result<T>) -> Result<T> {
    let other = |rank, message| Error::OtherRank { rank, message }.into();
    comm.agree(outcome).map_err(|disagreement| disagreement.into_error(other))
}

/// What this rank copies: a share that begins at a multiple of the block of most file systems.
fn share(len: u64, comm: &dyn Communicator) -> (u64, u64) {
    const GRAIN: u64 = 1 << 20;
    let grains = u128::from(len.div_ceil(GRAIN));
    let cut = |rank: usize| (grains * rank as u128 / comm.size().max(1) as u128) as u64 * GRAIN;
    (cut(comm.rank()).min(len), cut(comm.rank() + 1).min(len))
}

/// What is left to copy.
struct Next<'a> {
    at: AtomicU64,
    end: u64,
    cancelled: &'a AtomicBool,
}

/// Copies what is left on several threads. Gives whether that was everything.
fn copy(
    source: &dyn File,
    target: &dyn File,
    next: Next<'_>,
    threads: usize,
    block: usize,
    progress: &mut dyn Progress,
) -> Result<bool> {
    let Next { at: next, end: to, cancelled } = next;
    let total = to - next.load(Ordering::Relaxed);
    let block = (block.max(4096) as u64).min(total.max(1));
    let (told, heard) = mpsc::channel::<u64>();
    progress.progress(0, total);
    thread::scope(|scope| {
        let worker = |told: mpsc::Sender<u64>| {
            let mut buffer = vec![0; block as usize];
            loop {
                let at = next.fetch_add(block, Ordering::Relaxed);
                if at >= to || cancelled.load(Ordering::Relaxed) {
                    return Ok(());
                }
                let part = &mut buffer[..block.min(to - at) as usize];
                let copied = copy_block(source, target, at, part);
                if copied.is_err() {
                    // The others need not go on.
                    next.store(to, Ordering::Relaxed);
                    return copied;
                }
                // Nobody listens any more only when the caller has gone.
                let _ = told.send(part.len() as u64);
            }
        };
        let blocks = total.div_ceil(block) as usize;
        let workers: Vec<_> = (0..threads.min(blocks))
            .map(|_| {
                let told = told.clone();
                scope.spawn(move || worker(told))
            })
            .collect();
        drop(told);
        let mut done = 0;
        for bytes in heard {
            done += bytes;
            progress.progress(done, total);
        }
        // A thread that panicked has a bug to show, which the scope does.
        workers.into_iter().filter_map(|worker| worker.join().ok()).collect::<Result<()>>()?;
        Ok(done == total)
    })
}

fn copy_block(source: &dyn File, target: &dyn File, at: u64, part: &mut [u8]) -> Result<()> {
    let mut done = 0;
    while done < part.len() {
        let n = source.read_at(at + done as u64, &mut part[done..])?;
        if n == 0 {
            let kind = std::io::ErrorKind::UnexpectedEof;
            return Err(StoreError::new(Path::new("the container"), "read", kind.into()).into());
        }
        done += n;
    }
    Ok(target.write_at(at, part)?)
}
