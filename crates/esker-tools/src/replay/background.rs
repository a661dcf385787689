//! A replay that goes on while the program does.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use esker::{IoThread, Pending};
use esker_comm::CommunicatorExt;

use super::{ReplayError, ReplayOptions, Replayed, Result, replay_unless};
use crate::Progress;

/// A replay that [`replay_start`] has begun.
///
/// Dropping it waits for its end: a replay that nobody waits for is still made.
#[derive(Debug)]
pub struct Replaying {
    token: Pending<Replayed, ReplayError>,
    shared: Arc<Shared>,
    // Goes last, and waits.
    _thread: IoThread,
}

#[derive(Debug, Default)]
struct Shared {
    done: AtomicU64,
    total: AtomicU64,
    cancelled: AtomicBool,
}

/// Progress that others look at.
struct Seen(Arc<Shared>);

impl Progress for Seen {
    fn progress(&mut self, done: u64, total: u64) {
        self.0.total.store(total, Ordering::Relaxed);
        self.0.done.store(done, Ordering::Relaxed);
    }
}

impl Replaying {
    /// Bytes that this rank has copied so far, and bytes that it has to copy, which are 0 before
    /// that is known.
    pub fn progress(&self) -> (u64, u64) {
        let total = self.shared.total.load(Ordering::Relaxed);
        (self.shared.done.load(Ordering::Relaxed).min(total), total)
    }

    /// Whether the work of this rank is over, well or not, so that [`Replaying::wait`] does not
    /// wait.
    pub fn test(&self) -> bool {
        self.token.test()
    }

    /// Waits until the output is made, or is known not to be.
    pub fn wait(self) -> Result<Replayed> {
        self.token.wait()
    }

    /// Ends it early: this rank copies no more, and the output stays as it was, unless everything was
    /// copied already. For one rank to call is enough, but the others copy their share before they
    /// hear of it.
    pub fn cancel(&self) {
        self.shared.cancelled.store(true, Ordering::Relaxed);
    }
}

/// Begins a replay as [`replay`](super::replay) makes one, and returns. Collective over the options'
/// communicator. A thread of each rank does the work, where ranks may talk to each other from
/// several threads at once (with MPI: if it was initialised with `MPI_THREAD_MULTIPLE`); otherwise
/// it is done when this returns.
///
/// ```
/// # use esker::{CreateOptions, Dataset, DimLen, ExternalType, Layout, Selection};
/// use esker_tools::replay::{ReplayOptions, replay_start};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let dir = tempfile::tempdir()?;
/// # let (run, out) = (dir.path().join("run.esk"), dir.path().join("out.nc"));
/// # let mut def = Dataset::create(&run, CreateOptions::new().layout(Layout::Log))?;
/// # let x = def.add_dim("x", DimLen::Fixed(5))?;
/// # let t = def.add_var("t", ExternalType::Short, &[x])?;
/// # let mut ds = def.enddef()?;
/// # ds.put(t, &Selection::all(), &[1i16; 5])?;
/// # ds.close()?;
/// let replay = replay_start(&run, &out, &ReplayOptions::default())?;
/// while !replay.test() {
///     let (done, total) = replay.progress();
///     // The next time step …
/// #   std::thread::yield_now();
/// }
/// assert_eq!(replay.wait()?.variables, 1);
/// # Ok(()) }
/// ```
pub fn replay_start(input: &Path, output: &Path, options: &ReplayOptions) -> Result<Replaying> {
    let comm = &options.comm;
    let shared = Arc::new(Shared::default());
    let thread = IoThread::new(format!("esker-io-{}", comm.rank()));
    let may = comm.all(comm.may_use_threads())?;
    // What the program and the thread say to other ranks must not mix.
    let options = ReplayOptions { comm: comm.duplicate()?, ..options.clone() };
    let (input, output) = (input.to_path_buf(), output.to_path_buf());
    let told = shared.clone();
    let work = move || {
        let mut seen = Seen(told.clone());
        replay_unless(&told.cancelled, &input, &output, &options, &mut seen)
    };
    let token = match may {
        true => thread.start(work),
        false => Pending::ready(work()),
    };
    Ok(Replaying { token, shared, _thread: thread })
}
