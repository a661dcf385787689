//! `esker demo`: the main job in one command, for a newcomer.
//!
//! A small simulation on several ranks writes one file together, reads it back and compares:
//! [`sea`] is what is simulated, [`blocks`] who has what, [`waves`] and [`halo`] one step,
//! [`file`] what is written, [`life`] what a rank does, [`total`] what all did, [`story`] what
//! is told of it.

mod blocks;
mod file;
mod halo;
mod life;
mod sea;
mod story;
mod total;
mod waves;

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use esker::Communicator;
use esker_comm::mpi::{self, MpiSession};
use esker_comm::{CommunicatorExt, Message, ThreadWorld};
use esker_store::LiveDraft;
use tempfile::TempDir;

use super::opening;
use super::ranks::fail_together;
use crate::failure::{Ended, Failure, Outcome};
use crate::terminal::{Screen, progress::Bar, say};
use life::{Task, Trouble};
use sea::Grid;
use story::Cast;
use total::Total;

/// Simulate a wave on several ranks, write it in parallel, show it and check it
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  esker demo                 4 threads; the file is removed afterwards
  esker demo --ranks 7       another number of ranks
  esker demo --keep          leave demo.nc in the current directory
  esker demo -o /tmp/x.nc    leave it there
  mpiexec -n 4 esker demo    the same on MPI processes

On several nodes, name a file that all of them see with -o.")]
pub(super) struct Arguments {
    /// Ranks, as threads of this process (under mpiexec the ranks are MPI's) [default: 4]
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    ranks: Option<u16>,
    /// Records to write, one for every six minutes of the wave
    #[arg(long, value_name = "N", default_value = "13", value_parser = clap::value_parser!(u16).range(1..=500))]
    records: u16,
    /// Keep the file, as demo.nc in the current directory
    #[arg(long)]
    keep: bool,
    /// Keep the file under this name (or in this directory, as demo.nc)
    #[arg(short, long, value_name = "PATH")]
    output: Option<PathBuf>,
}

pub(super) fn run(arguments: &Arguments, screen: &mut Screen) -> Ended {
    // A launcher that started one process (an interactive shell of srun) is none.
    match mpi::launched().is_some_and(|launched| launched.ranks != Some(1)) {
        true => on_mpi(arguments, screen),
        false => on_threads(arguments, screen),
    }
}

fn on_threads(arguments: &Arguments, screen: &mut Screen) -> Ended {
    let ranks = usize::from(arguments.ranks.unwrap_or(4));
    let place = Place::choose(arguments)?;
    let task = Task { path: &place.path, grid: Grid::DEMO, records: arguments.records.into() };
    let bars = screen.bars;
    let outcomes = ThreadWorld::new(ranks).launch(|comm| together(&comm, &task, bars));
    let outcomes = outcomes.map_err(Failure::sentence)?;
    let mut total = None;
    let mut worst: Option<Trouble> = None;
    for outcome in outcomes {
        match outcome {
            Ok(sum) => total = Some(sum),
            // The rank where it began knows most about it.
            Err(trouble) if worst.as_ref().is_none_or(|w| trouble.hearsay() < w.hearsay()) => {
                worst = Some(trouble);
            }
            Err(_) => {}
        }
    }
    match (worst, total) {
        (None, Some(total)) => {
            let cast = Cast { ranks, kind: "threads of this process".to_string() };
            tell(screen, &place, &task, &cast, &total)
        }
        (Some(trouble), _) => Err(Failure::file(&place.path, trouble)),
        (None, None) => Err(Failure::sentence("no rank ran")),
    }
}

fn on_mpi(arguments: &Arguments, screen: &mut Screen) -> Ended {
    let comm = esker_comm::auto().map_err(Failure::sentence)?;
    // Aborts all ranks if this one panics.
    let _session = mpi::found().map(|_| MpiSession::start());
    let outcome = mpi_rank(arguments, screen, &comm);
    drop(comm);
    outcome
}

fn mpi_rank(arguments: &Arguments, screen: &mut Screen, comm: &Arc<dyn Communicator>) -> Ended {
    let (root, ranks) = (comm.rank() == 0, comm.size());
    if arguments.ranks.is_some_and(|wish| usize::from(wish) != ranks) {
        let sentence = format!("--ranks is for threads: the launcher has started {ranks} ranks");
        return fail_together(comm, root.then(|| Failure::sentence(sentence)));
    }
    // Rank 0 chooses where the file goes, and removes it.
    let chosen = if root { Place::choose(arguments).map(Some) } else { Ok(None) };
    let place = match (comm.any(chosen.is_err()).map_err(Failure::sentence)?, chosen) {
        (false, Ok(place)) => place,
        (_, Err(failure)) => return fail_together(comm, Some(failure)),
        (true, Ok(_)) => return fail_together(comm, None),
    };
    let path = place.as_ref().map(|place| place.path.as_os_str().as_bytes()).unwrap_or_default();
    let path = comm.broadcast(0, Message::from(path)).map_err(Failure::sentence)?;
    let path = Path::new(OsStr::from_bytes(&path));
    let task = Task { path, grid: Grid::DEMO, records: arguments.records.into() };
    match (together(comm, &task, root && screen.bars), place) {
        (Ok(total), Some(place)) => {
            let abi = mpi::found().map(|found| format!(" ({})", found.abi)).unwrap_or_default();
            let cast = Cast { ranks, kind: format!("MPI processes{abi}") };
            tell(screen, &place, &task, &cast, &total)
        }
        (Ok(_), None) => Ok(Outcome::Good),
        (Err(trouble), _) if trouble.is_mine_alone() => {
            say(format_args!("esker: rank {}: {trouble}", comm.rank()));
            mpi::abort(2);
            Ok(Outcome::Unknown)
        }
        // Every rank has this error, one tells it.
        (Err(trouble), Some(_)) => fail_together(comm, Some(Failure::file(path, trouble))),
        (Err(_), None) => fail_together(comm, None),
    }
}

/// What every rank does. Rank 0 may show a bar.
fn together(comm: &Arc<dyn Communicator>, task: &Task<'_>, bar: bool) -> Result<Total, Trouble> {
    let bar = Bar::new(bar && comm.rank() == 0, "simulating and writing");
    let mut bar = bar.counting("records");
    let deeds = life::live(comm, task, |done, all| bar.update(done, all))?;
    drop(bar);
    Ok(Total::of(comm, &deeds)?)
}

/// Where the file goes.
struct Place {
    path: PathBuf,
    /// Removed when this is dropped, and the file with it; or by a signal.
    temporary: Option<(TempDir, LiveDraft)>,
}

impl Place {
    fn choose(arguments: &Arguments) -> Result<Place, Failure> {
        let mut temporary = None;
        let path = match (&arguments.output, arguments.keep) {
            (Some(path), _) if path.is_dir() => path.join("demo.nc"),
            (Some(path), _) => path.clone(),
            (None, true) => PathBuf::from("demo.nc"),
            (None, false) => {
                let directory = tempfile::Builder::new().prefix("esker-demo").tempdir();
                let directory = directory.map_err(|error| {
                    Failure::sentence(format_args!("no temporary directory can be made: {error}"))
                })?;
                let live = LiveDraft::folder(directory.path());
                temporary.insert((directory, live)).0.path().join("demo.nc")
            }
        };
        Ok(Place { path, temporary })
    }

    /// The file's name, if it stays.
    fn kept(&self) -> Option<&Path> {
        self.temporary.is_none().then_some(self.path.as_path())
    }
}

fn tell(screen: &mut Screen, place: &Place, task: &Task<'_>, cast: &Cast, total: &Total) -> Ended {
    let path = place.path.as_path();
    let dataset = opening::open(path)?;
    story::opening(screen, &task.grid, task.records, cast)?;
    story::pictures(screen, &dataset, &task.grid, path)?;
    // The temporary directory's name is nobody's concern.
    story::info(screen, &dataset, path, place.kept().unwrap_or(Path::new("demo.nc")))?;
    story::times(screen, total)?;
    story::verdict(screen, total, path)?;
    story::next(screen, place.kept())?;
    Ok(Outcome::Good)
}
