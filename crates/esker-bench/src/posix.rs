//! The same bytes by plain positioned writes: what the file system gives without a library.
//!
//! The file has the data section of the classic netCDF file and no header, and values are in
//! the machine's byte order: nothing is done but the system calls.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;

use esker_comm::Communicator;

use crate::clock::phase;
use crate::measure::Phases;
use crate::plan::{Plan, RankPlan, Request};
use crate::values::Buffer;
use crate::worker::WorkerError;

/// Where a request's bytes are in the file: (offset, length) in the order of memory.
type Runs = Vec<(u64, usize)>;

/// Writes and reads a plan's bytes.
pub(crate) fn run(
    comm: &dyn Communicator,
    plan: &Plan,
    path: &Path,
    sync: bool,
    memory: &mut [Buffer],
) -> Result<(Phases, Phases), WorkerError> {
    let rank = &plan.ranks[comm.rank()];
    let offsets = Offsets::of(plan);
    let requests = rank.steps.iter().flatten();
    let runs: Vec<Runs> = requests.map(|r| offsets.runs(plan, rank, r)).collect();
    let (mut write, mut read) = (Phases::default(), Phases::default());

    let file = phase(comm, &mut write.open, || {
        let options = |create| OpenOptions::new().write(true).create(create).open(path);
        let first = if comm.rank() == 0 { Some(options(true)?) } else { None };
        comm.barrier()?;
        Ok(match first {
            Some(file) => file,
            None => options(false)?,
        })
    })?;
    phase(comm, &mut write.data, || {
        for (buffer, runs) in memory.iter().zip(&runs) {
            let mut bytes = buffer.bytes();
            for (offset, len) in runs {
                let (run, rest) = bytes.split_at(*len);
                file.write_all_at(run, *offset)?;
                bytes = rest;
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

    memory.iter_mut().for_each(Buffer::clear);
    let file = phase(comm, &mut read.open, || Ok(File::open(path)?))?;
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
    Ok((write, read))
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

    fn runs(&self, plan: &Plan, rank: &RankPlan, request: &Request) -> Runs {
        let var = &plan.vars[request.var];
        let size = var.element.size();
        let base = self.begins[request.var] + request.record.unwrap_or(0) * self.record;
        let mut runs: Runs = Vec::new();
        rank.lists[request.list].for_each_run(&plan.inner_shape(var), |first, len| {
            let (offset, len) = (base + first * size, (len * size) as usize);
            match runs.last_mut() {
                Some((at, bytes)) if *at + *bytes as u64 == offset => *bytes += len,
                _ => runs.push((offset, len)),
            }
        });
        runs
    }
}
