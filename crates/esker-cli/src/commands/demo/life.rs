//! The life of one rank: simulate, write, read back, compare. The same on threads and MPI.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use esker::{Communicator, Report};
use esker_comm::{CommError, CommunicatorExt, Disagreement};

use super::blocks::Blocks;
use super::file::{Input, Output};
use super::halo;
use super::sea::Grid;
use super::waves::Waves;

/// What the ranks are to do.
#[derive(Debug, Clone, Copy)]
pub(super) struct Task<'a> {
    pub(super) path: &'a Path,
    pub(super) grid: Grid,
    pub(super) records: u64,
}

/// What one rank did.
#[derive(Debug, Clone, Copy)]
pub(super) struct Deeds {
    /// Computing steps.
    pub(super) simulate: Duration,
    /// Waiting for neighbours' edges.
    pub(super) halo: Duration,
    /// In collective writes.
    pub(super) write: Duration,
    /// Until the data were safe on the disk.
    pub(super) sync: Duration,
    /// In collective reads.
    pub(super) read: Duration,
    /// What the library did for the writes, and for the reads.
    pub(super) writing: Report,
    pub(super) reading: Report,
    /// Values that were compared with what was computed.
    pub(super) compared: u64,
}

/// Why the ranks could not finish.
#[derive(Debug)]
pub(super) enum Trouble {
    /// With the file; every rank knows.
    File(esker::Error),
    /// Between the ranks; the others may not know.
    Ranks(CommError),
    /// A value was not read back as it was written; every rank knows.
    Differs(String),
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Trouble::File(error) => error.fmt(f),
            Trouble::Ranks(error) => error.fmt(f),
            Trouble::Differs(what) => f.write_str(what),
        }
    }
}

impl Trouble {
    /// How little this says about what began it: the trouble of another rank says less.
    pub(super) fn hearsay(&self) -> u8 {
        match self {
            Trouble::File(esker::Error::OtherRank { .. }) => 1,
            Trouble::File(esker::Error::Comm(_)) | Trouble::Ranks(_) => 2,
            _ => 0,
        }
    }

    /// Whether other ranks may still wait for this one.
    pub(super) fn is_mine_alone(&self) -> bool {
        matches!(self, Trouble::File(esker::Error::Comm(_)) | Trouble::Ranks(_))
    }
}

impl From<esker::Error> for Trouble {
    fn from(error: esker::Error) -> Trouble {
        Trouble::File(error)
    }
}

impl From<CommError> for Trouble {
    fn from(error: CommError) -> Trouble {
        Trouble::Ranks(error)
    }
}

/// Lives one rank's life; `progress` is told how many records are written. Collective.
pub(super) fn live(
    comm: &Arc<dyn Communicator>,
    task: &Task<'_>,
    mut progress: impl FnMut(u64, u64),
) -> Result<Deeds, Trouble> {
    let grid = task.grid;
    let blocks = Blocks::new(comm.size(), grid.rows, grid.columns);
    let area = blocks.area(comm.rank());
    let mut waves = Waves::new(&grid, area.clone());
    let mut output = Output::create(task.path, comm, &grid, &area, &waves.depth())?;
    output.dataset.reset_report();

    let mut computed = Vec::new();
    let [mut simulate, mut halo, mut write] = [Duration::ZERO; 3];
    for record in 0..task.records {
        if record > 0 {
            for _ in 0..grid.steps_per_record {
                timed(&mut simulate, || waves.step());
                timed(&mut halo, || halo::exchange(comm, &blocks, &mut waves))?;
            }
        }
        let fields = timed(&mut simulate, || waves.fields());
        // Ranks that arrive late would look like slow writes.
        timed(&mut halo, || comm.barrier())?;
        timed(&mut write, || output.write(record, grid.time(record), &fields))?;
        computed.push(fields);
        progress(record + 1, task.records);
    }
    let mut sync = Duration::ZERO;
    timed(&mut sync, || output.dataset.sync())?;
    let writing = *output.dataset.report();
    output.dataset.close()?;

    let mut input = Input::open(task.path, comm)?;
    let mut read = Duration::ZERO;
    let mut compared = Ok(0);
    for (record, written) in (0..).zip(&computed) {
        let found = timed(&mut read, || input.read(record, &area))?;
        compared = compared.and_then(|count| {
            let differs = |var| format!("{var} of record {record} is not read back as written");
            written.same_bits(&found).map(|more| count + more).map_err(differs)
        });
    }
    let compared = comm.agree(compared).map_err(|disagreement| match disagreement {
        Disagreement::Failed { rank, message, .. } => {
            Trouble::Differs(format!("rank {rank}: {message}"))
        }
        Disagreement::Comm(error) => Trouble::Ranks(error),
    })?;
    let reading = *input.dataset.report();
    input.dataset.close()?;
    Ok(Deeds { simulate, halo, write, sync, read, writing, reading, compared })
}

/// Does something and adds its time.
fn timed<T>(total: &mut Duration, act: impl FnOnce() -> T) -> T {
    let begun = Instant::now();
    let outcome = act();
    *total += begun.elapsed();
    outcome
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: Grid = Grid { columns: 24, rows: 6, step: 50.0, steps_per_record: 4 };

    #[test]
    fn any_number_of_ranks_makes_the_same_file() {
        let directory = tempfile::tempdir().unwrap();
        let bytes = [1, 2, 3, 4, 7, 16, 50].map(|ranks| {
            let path = directory.path().join(format!("{ranks}.nc"));
            let task = Task { path: &path, grid: SMALL, records: 3 };
            for deeds in esker::launch(ranks, |comm| live(&comm, &task, |_, _| ())) {
                deeds.unwrap();
            }
            std::fs::read(path).unwrap()
        });
        assert!(bytes.iter().all(|file| *file == bytes[0]));
    }

    #[test]
    fn a_rank_that_cannot_write_ends_all() {
        let directory = tempfile::tempdir().unwrap();
        let (good, bad) = (directory.path().join("x.nc"), directory.path().join("no/x.nc"));
        let outcomes = esker::launch(4, |comm| {
            let path = if comm.rank() == 2 { &bad } else { &good };
            live(&comm, &Task { path, grid: SMALL, records: 3 }, |_, _| ())
        });
        let troubles: Vec<Trouble> = outcomes.into_iter().map(|o| o.unwrap_err()).collect();
        assert!(troubles.iter().all(|trouble| !trouble.is_mine_alone()), "{troubles:?}");
    }

    #[test]
    fn a_rank_that_dies_ends_all() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x.nc");
        let task = Task { path: &path, grid: SMALL, records: 3 };
        let outcomes = esker::launch(4, |comm| {
            let dies = comm.rank() == 1;
            if dies { None } else { Some(live(&comm, &task, |_, _| ())) }
        });
        assert!(outcomes.into_iter().flatten().all(|outcome| outcome.is_err()));
    }
}
