//! The ranks that carry out a plan with Esker, or with plain writes.
//!
//! They run in a process of their own, as the peers' do, so that no library finds memory and
//! caches warm that another has to pay for. A command that wants to be that process calls
//! [`run_from_arguments`].

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use esker_comm::{CommError, Communicator, CommunicatorExt, LaunchError, ThreadWorld};
use serde_json::Value;
use thiserror::Error;

use crate::layout::Layout;
use crate::measure::{Measurement, Phases};
use crate::plan::Plan;
use crate::plan_file::{self, PlanFileError};
use crate::posix::Files;
use crate::reading::{Reading, whole};
use crate::values::Buffer;
use crate::{on_esker, posix};

/// Who writes and reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Engine {
    /// Esker, in a layout.
    Esker(Layout),
    /// Plain `pwrite` and `pread`.
    Posix(Files),
}

/// What the ranks are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Ranks {
    /// Threads of one process.
    Threads,
    /// MPI processes.
    Mpi,
}

impl Ranks {
    /// The name by which users call it.
    pub fn name(self) -> &'static str {
        match self {
            Ranks::Threads => "threads",
            Ranks::Mpi => "mpi",
        }
    }
}

/// Why a plan was not carried out.
#[derive(Debug, Error)]
pub enum WorkerError {
    /// Esker failed.
    #[error(transparent)]
    Esker(#[from] esker::Error),
    /// The ranks could not talk.
    #[error(transparent)]
    Comm(#[from] CommError),
    /// The ranks could not be started.
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// A plain write or read failed.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// The plan cannot be followed.
    #[error(transparent)]
    Plan(#[from] PlanFileError),
    /// There is no MPI, or not as many ranks as planned.
    #[error("{0}")]
    Start(String),
}

/// One run of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    /// By whom.
    pub engine: Engine,
    /// On which kind of ranks.
    pub ranks: Ranks,
    /// The plan file.
    pub plan: PathBuf,
    /// The file to write and read. It is left there.
    pub file: PathBuf,
    /// Whether to wait for the disk.
    pub sync: bool,
    /// What is read back.
    pub reading: Reading,
    /// What of it.
    pub part: Part,
}

/// What of a plan a job does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// It writes, and reads back.
    Whole,
    /// The same, but a dataset of transactions that was begun is completed: what was committed is there with its checksums.
    Rest,
    /// It reads whole variables on so many ranks, whoever wrote them.
    Read(usize),
}

impl Part {
    fn name(self) -> String {
        match self {
            Part::Whole => "whole".into(),
            Part::Rest => "rest".into(),
            Part::Read(ranks) => format!("read-{ranks}"),
        }
    }

    fn from_name(name: &str) -> Option<Part> {
        match name {
            "whole" => Some(Part::Whole),
            "rest" => Some(Part::Rest),
            other => other.strip_prefix("read-")?.parse().ok().map(Part::Read),
        }
    }
}

impl Job {
    /// The arguments by which a process is told, for [`run_from_arguments`].
    pub fn arguments(&self) -> Vec<String> {
        let engine = match self.engine {
            Engine::Esker(layout) => layout.name(),
            Engine::Posix(Files::Shared) => "posix",
            Engine::Posix(Files::Own) => "posix-files",
        };
        let path = |path: &Path| path.display().to_string();
        let sync = if self.sync { "sync" } else { "nosync" };
        let (ranks, reading) = (self.ranks.name(), self.reading.name());
        let part = self.part.name();
        let names = [engine, ranks, &path(&self.plan), &path(&self.file), sync, reading, &part];
        names.map(String::from).to_vec()
    }

    fn from_arguments(arguments: &[String]) -> Option<Job> {
        let [engine, ranks, plan, file, sync, reading, part] = arguments else { return None };
        Some(Job {
            engine: match engine.as_str() {
                "posix" => Engine::Posix(Files::Shared),
                "posix-files" => Engine::Posix(Files::Own),
                layout => Engine::Esker(Layout::from_name(layout)?),
            },
            ranks: [Ranks::Threads, Ranks::Mpi].into_iter().find(|r| r.name() == ranks)?,
            plan: plan.into(),
            file: file.into(),
            sync: sync == "sync",
            reading: Reading::from_name(reading)?,
            part: Part::from_name(part)?,
        })
    }

    /// Carries the plan out in this process. `None` on MPI ranks other than the first.
    pub fn run(&self) -> Result<Option<Measurement>, WorkerError> {
        let mut plan = plan_file::decode(&fs::read(&self.plan)?)?;
        if let Part::Read(ranks) = self.part {
            plan = whole(&plan, ranks);
        }
        let rank = |comm: Arc<dyn Communicator>| self.rank(&comm, &plan);
        let mut measured = match self.ranks {
            Ranks::Threads => {
                let ranks = plan.ranks.len();
                let results = ThreadWorld::new(ranks).launch(rank)?;
                let mut measured = results.into_iter().collect::<Result<Vec<_>, _>>()?;
                // All have the same but for the memory, which is the process's.
                measured.truncate(1);
                measured.iter_mut().for_each(|m| m.peak_memory /= ranks as u64);
                measured
            }
            Ranks::Mpi => {
                let comm = esker_comm::auto()?;
                if comm.size() != plan.ranks.len() {
                    let (here, planned) = (comm.size(), plan.ranks.len());
                    let what = format!("there are {here} ranks, and the plan has {planned}");
                    return Err(WorkerError::Start(what));
                }
                let mine = self.rank(&comm, &plan)?;
                if comm.rank() == 0 { vec![mine] } else { vec![] }
            }
        };
        Ok(measured.pop())
    }

    fn rank(&self, comm: &Arc<dyn Communicator>, plan: &Plan) -> Result<Measurement, WorkerError> {
        let rank = &plan.ranks[comm.rank()];
        let requests = || rank.steps.iter().flatten();
        let mut memory: Vec<Buffer> =
            requests().map(|request| Buffer::filled(plan, rank, request)).collect();
        let resume = self.part == Part::Rest;
        let esker = || format!("Esker {}", env!("CARGO_PKG_VERSION"));
        let (library, (write, write_report)) = match self.engine {
            _ if matches!(self.part, Part::Read(_)) => (esker(), (Phases::default(), Value::Null)),
            Engine::Esker(layout) => (
                esker(),
                on_esker::write(comm, plan, &self.file, layout, (self.sync, resume), &memory)?,
            ),
            Engine::Posix(files) => {
                let write = posix::write(&**comm, plan, (&self.file, files), self.sync, &memory)?;
                ("pwrite and pread".into(), (write, Value::Null))
            }
        };
        // What a rank has in a file of its own, no other can read.
        let reads_own = self.engine == Engine::Posix(Files::Own);
        let other = self.reading.plan(plan).filter(|_| !matches!(self.part, Part::Read(_)));
        let elsewhere = other.is_some() && reads_own;
        let other = other.filter(|_| !reads_own);
        let reading = other.as_ref().unwrap_or(plan);
        let rank = &reading.ranks[comm.rank()];
        let requests = || rank.steps.iter().flatten();
        if other.is_some() {
            memory.clear();
            memory = requests().map(|r| Buffer::zeroed(reading, rank, r)).collect();
        }
        // Not only to forget the values: the memory's pages shall be there before the times are.
        memory.iter_mut().for_each(Buffer::clear);
        let (read, read_report) = match self.engine {
            Engine::Esker(_) => on_esker::read(comm, reading, &self.file, &mut memory)?,
            Engine::Posix(files) => {
                (posix::read(&**comm, reading, (&self.file, files), &mut memory)?, Value::Null)
            }
        };
        let wrong = requests().zip(&memory).map(|(r, m)| m.wrong(reading, rank, r)).sum();
        Ok(Measurement {
            library,
            bytes: plan.bytes(),
            read_bytes: if elsewhere { 0 } else { reading.bytes() },
            wrong: comm.sum_u64(wrong)?,
            write,
            read,
            peak_memory: comm.max_u64(peak_memory())?,
            own_memory: comm.max_u64(plan.rank_bytes(comm.rank()))?,
            write_report,
            read_report,
        })
    }
}

/// What a process does that was started with a [`Job`]'s arguments; what it returns goes to
/// standard output.
pub fn run_from_arguments(arguments: &[String]) -> Result<String, String> {
    let job = Job::from_arguments(arguments).ok_or("this command is for `esker bench` alone")?;
    let measured = job.run().map_err(|error| error.to_string())?;
    Ok(measured.map_or(String::new(), |m| format!("{}\n", m.to_json())))
}

/// The most memory that this process had, in bytes; 0 where the system does not tell.
fn peak_memory() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}
