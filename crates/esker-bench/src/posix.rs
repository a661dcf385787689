//! The same bytes by plain positioned writes: what the file system gives without a library.
//!
//! One file has the data section of the classic netCDF file and no header, and values are in
//! the machine's byte order: nothing is done but the system calls. Or each rank has a file of its own, with what it writes one after the
//! other.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use esker_comm::Communicator;

use crate::clock::phase;
use crate::measure::Phases;
use crate::plan::{Plan, RankPlan, Request};
use crate::values::Buffer;
use crate::worker::WorkerError;

/// Where a request's bytes are in the file: (offset, length) in the order of memory.
type Runs = Vec<(u64, usize)>;

/// Who has which file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Files {
    /// All ranks the same one.
    Shared,
    /// Each its own, in a folder.
    Own,
}

impl Files {
    fn runs(self, plan: &Plan, rank: usize) -> Vec<Runs> {
        match self {
            Files::Shared => Offsets::of(plan).all_runs(plan, rank),
            Files::Own => {
                let rank = &plan.ranks[rank];
                let mut end = 0;
                let runs = rank.steps.iter().flatten().map(|request| {
                    let size = plan.vars[request.var].element.size();
                    let bytes = rank.lists[request.list].elements() * size;
                    end += bytes;
                    vec![(end - bytes, bytes as usize)]
                });
                runs.collect()
            }
        }
    }

    fn path(self, path: &Path, rank: usize) -> PathBuf {
        match self {
            Files::Shared => path.into(),
            Files::Own => path.join(rank.to_string()),
        }
    }
}

/// Writes a plan's bytes.
pub(crate) fn write(
    comm: &dyn Communicator,
    plan: &Plan,
    (path, files): (&Path, Files),
    sync: bool,
    memory: &[Buffer],
) -> Result<Phases, WorkerError> {
    let runs = files.runs(plan, comm.rank());
    let mut write = Phases::default();
    let file = phase(comm, &mut write.open, || {
        let options = |create| {
            let path = files.path(path, comm.rank());
            OpenOptions::new().write(true).create(create).open(path)
        };
        if files == Files::Own {
            fs::create_dir_all(path)?;
            return Ok(options(true)?);
        }
        let first = if comm.rank() == 0 { Some(options(true)?) } else { None };
        comm.barrier()?;
        Ok(match first {
            Some(file) => file,
            None => options(false)?,
        })
    })?;
    phase(comm, &mut write.data, || {
        let mut requests = memory.iter().zip(&runs);
        for step in &plan.ranks[comm.rank()].steps {
            for (buffer, runs) in requests.by_ref().take(step.len()) {
                let mut bytes = buffer.bytes();
                for (offset, len) in runs {
                    let (run, rest) = bytes.split_at(*len);
                    file.write_all_at(run, *offset)?;
                    bytes = rest;
                }
            }
            if plan.transactions && sync {
                file.sync_data()?;
            }
        }
        Ok(())
    })?;
    if sync {
        phase(comm, &mut write.sync, || Ok(file.sync_data()?))?;
    }
    phase(comm, &mut write.close, || {
        drop(file);
        Ok(())
    })?;
    Ok(write)
}

/// Reads a plan's bytes.
pub(crate) fn read(
    comm: &dyn Communicator,
    plan: &Plan,
    (path, files): (&Path, Files),
    memory: &mut [Buffer],
) -> Result<Phases, WorkerError> {
    let runs = files.runs(plan, comm.rank());
    let mut read = Phases::default();
    let file = phase(comm, &mut read.open, || Ok(File::open(files.path(path, comm.rank()))?))?;
    phase(comm, &mut read.data, || {
        for (buffer, runs) in memory.iter_mut().zip(&runs) {
            let mut bytes = buffer.bytes_mut();
            for (offset, len) in runs {
                let (run, rest) = bytes.split_at_mut(*len);
                file.read_exact_at(run, *offset)?;
                bytes = rest;
            }
        }
        Ok(())
    })?;
    phase(comm, &mut read.close, || {
        drop(file);
        Ok(())
    })?;
    Ok(read)
}

/// The classic layout: fixed-size variables, then records in which the variables take turns.
struct Offsets {
    begins: Vec<u64>,
    record: u64,
}

impl Offsets {
    fn of(plan: &Plan) -> Offsets {
        let mut begins = vec![0; plan.vars.len()];
        let (mut fixed, mut record) = (0, 0);
        for (var, begin) in plan.vars.iter().zip(&mut begins) {
            let end = if plan.is_record(var) { &mut record } else { &mut fixed };
            *begin = *end;
            *end += plan.inner_elements(var) * var.element.size();
        }
        for (var, begin) in plan.vars.iter().zip(&mut begins) {
            if plan.is_record(var) {
                *begin += fixed;
            }
        }
        Offsets { begins, record }
    }

    fn all_runs(&self, plan: &Plan, rank: usize) -> Vec<Runs> {
        let rank = &plan.ranks[rank];
        rank.steps.iter().flatten().map(|request| self.runs(plan, rank, request)).collect()
    }

    fn runs(&self, plan: &Plan, rank: &RankPlan, request: &Request) -> Runs {
        let (var, list) = (&plan.vars[request.var], &rank.lists[request.list]);
        let (size, record) = (var.element.size(), plan.inner_elements(var));
        let mut runs: Runs = Vec::new();
        list.for_each_run(&plan.shape(var, list), |mut first, mut len| {
            first += request.record.unwrap_or(0) * record;
            // A row of a variable with no other dimension goes through records.
            while len > 0 {
                let (records, inside) =
                    if plan.is_record(var) { (first / record, first % record) } else { (0, first) };
                let piece = if plan.is_record(var) { len.min(record - inside) } else { len };
                let offset = self.begins[request.var] + records * self.record + inside * size;
                let bytes = (piece * size) as usize;
                match runs.last_mut() {
                    Some((at, before)) if *at + *before as u64 == offset => *before += bytes,
                    _ => runs.push((offset, bytes)),
                }
                (first, len) = (first + piece, len - piece);
            }
        });
        runs
    }
}
