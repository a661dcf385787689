//! A plan carried out with Esker.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use esker::{CreateOptions, Dataset, DimId, DimLen, ExternalType, FillMode, OpenOptions};
use esker::{Requests, Selection, VarId};
use esker_comm::{Communicator, ReduceOp, Reduction};
use serde_json::{Map, Value, json};

use crate::clock::phase;
use crate::measure::Phases;
use crate::plan::{Calls, Element, Plan, RankPlan, Request};
use crate::values::Buffer;
use crate::worker::WorkerError;

/// What a run was.
pub(crate) struct Run {
    pub(crate) write: Phases,
    pub(crate) read: Phases,
    pub(crate) write_report: Value,
    pub(crate) read_report: Value,
}

/// Writes a plan's values and reads them back.
pub(crate) fn run(
    comm: &Arc<dyn Communicator>,
    plan: &Plan,
    path: &Path,
    sync: bool,
    memory: &mut [Buffer],
) -> Result<Run, WorkerError> {
    let rank = &plan.ranks[comm.rank()];
    let selections = Selections::of(rank);
    let (mut write, mut read) = (Phases::default(), Phases::default());

    let mut define = phase(&**comm, &mut write.open, || {
        let options = CreateOptions::new().comm(Arc::clone(comm)).fill(FillMode::NoFill);
        Ok(Dataset::create(path, options)?)
    })?;
    let mut dataset = phase(&**comm, &mut write.define, || {
        let mut dims = Vec::with_capacity(plan.dims.len());
        for dim in &plan.dims {
            dims.push(define.add_dim(&dim.name, dim.len.map_or(DimLen::Unlimited, DimLen::Fixed))?);
        }
        for var in &plan.vars {
            let over: Vec<DimId> = var.dims.iter().map(|d| dims[*d]).collect();
            define.add_var(&var.name, external(var.element), &over)?;
        }
        Ok(define.enddef().map_err(esker::Error::from)?)
    })?;
    phase(&**comm, &mut write.data, || put(&mut dataset, plan, rank, &selections, memory))?;
    if sync {
        phase(&**comm, &mut write.sync, || Ok(dataset.sync()?))?;
    }
    let write_report = report(&**comm, &dataset)?;
    phase(&**comm, &mut write.close, || Ok(dataset.close()?))?;

    memory.iter_mut().for_each(Buffer::clear);
    let mut dataset = phase(&**comm, &mut read.open, || {
        Ok(Dataset::open_with(path, OpenOptions::new().comm(Arc::clone(comm)))?)
    })?;
    phase(&**comm, &mut read.data, || get(&mut dataset, plan, rank, &selections, memory))?;
    let read_report = report(&**comm, &dataset)?;
    phase(&**comm, &mut read.close, || Ok(dataset.close()?))?;
    Ok(Run { write, read, write_report, read_report })
}

fn external(element: Element) -> ExternalType {
    match element {
        Element::I32 => ExternalType::Int,
        Element::F32 => ExternalType::Float,
        Element::F64 => ExternalType::Double,
    }
}

/// The selection of each list and record; many requests share one.
struct Selections {
    made: HashMap<(usize, Option<u64>), Selection>,
}

impl Selections {
    fn of(rank: &RankPlan) -> Selections {
        let mut made = HashMap::new();
        for request in rank.steps.iter().flatten() {
            made.entry((request.list, request.record)).or_insert_with(|| {
                let slabs = rank.lists[request.list].of_record(request.record);
                match slabs.len {
                    1 => Selection::slab(&slabs.starts, &slabs.counts),
                    _ => Selection::list(slabs.rank, slabs.starts, slabs.counts),
                }
            });
        }
        Selections { made }
    }

    fn get(&self, request: &Request) -> &Selection {
        &self.made[&(request.list, request.record)]
    }
}

fn put(
    dataset: &mut Dataset,
    plan: &Plan,
    rank: &RankPlan,
    selections: &Selections,
    memory: &[Buffer],
) -> Result<(), WorkerError> {
    let mut memory = memory.iter();
    for (calls, step) in plan.steps.iter().zip(&rank.steps) {
        let mut queue = Requests::new();
        for (request, buffer) in step.iter().zip(memory.by_ref()) {
            let (var, selection) = (VarId(request.var), selections.get(request));
            match (calls, buffer) {
                (Calls::Blocking, Buffer::I32(data)) => dataset.put_all(var, selection, data)?,
                (Calls::Blocking, Buffer::F32(data)) => dataset.put_all(var, selection, data)?,
                (Calls::Blocking, Buffer::F64(data)) => dataset.put_all(var, selection, data)?,
                (Calls::Queued, Buffer::I32(data)) => {
                    dataset.iput(&mut queue, var, selection, data)?;
                }
                (Calls::Queued, Buffer::F32(data)) => {
                    dataset.iput(&mut queue, var, selection, data)?;
                }
                (Calls::Queued, Buffer::F64(data)) => {
                    dataset.iput(&mut queue, var, selection, data)?;
                }
            }
        }
        if *calls == Calls::Queued {
            dataset.wait_all(&mut queue)?;
        }
    }
    Ok(())
}

fn get(
    dataset: &mut Dataset,
    plan: &Plan,
    rank: &RankPlan,
    selections: &Selections,
    memory: &mut [Buffer],
) -> Result<(), WorkerError> {
    let mut memory = memory.iter_mut();
    for (calls, step) in plan.steps.iter().zip(&rank.steps) {
        let mut queue = Requests::new();
        for (request, buffer) in step.iter().zip(memory.by_ref()) {
            let (var, selection) = (VarId(request.var), selections.get(request));
            match (calls, buffer) {
                (Calls::Blocking, Buffer::I32(into)) => {
                    dataset.get_all_into(var, selection, into)?;
                }
                (Calls::Blocking, Buffer::F32(into)) => {
                    dataset.get_all_into(var, selection, into)?;
                }
                (Calls::Blocking, Buffer::F64(into)) => {
                    dataset.get_all_into(var, selection, into)?;
                }
                (Calls::Queued, Buffer::I32(into)) => {
                    dataset.iget(&mut queue, var, selection, into)?;
                }
                (Calls::Queued, Buffer::F32(into)) => {
                    dataset.iget(&mut queue, var, selection, into)?;
                }
                (Calls::Queued, Buffer::F64(into)) => {
                    dataset.iget(&mut queue, var, selection, into)?;
                }
            }
        }
        if *calls == Calls::Queued {
            dataset.wait_all(&mut queue)?;
        }
    }
    Ok(())
}

/// What the engine did: counts of all ranks together, times and memory of the rank that had
/// most.
fn report(comm: &dyn Communicator, dataset: &Dataset) -> Result<Value, WorkerError> {
    let report = dataset.report();
    let mut sums = [
        report.runs,
        report.messages,
        report.message_bytes,
        report.writes + report.reads,
        report.copied,
        report.bytes,
    ];
    comm.all_reduce(Reduction::U64(&mut sums), ReduceOp::Sum)?;
    let mut most = [report.rounds, report.aggregators, report.peak_memory];
    comm.all_reduce(Reduction::U64(&mut most), ReduceOp::Max)?;
    let phases = report.phases.named();
    let mut seconds: Vec<f64> = phases.iter().map(|(_, time)| time.as_secs_f64()).collect();
    comm.all_reduce(Reduction::F64(&mut seconds), ReduceOp::Max)?;
    let names = phases.iter().map(|(name, _)| name.to_string());
    let seconds: Map<String, Value> =
        names.zip(seconds).map(|(name, seconds)| (name, json!(seconds))).collect();
    let strategy = match report.write_strategy {
        esker::Strategy::Nothing => report.read_strategy,
        written => written,
    };
    Ok(json!({
        "strategy": strategy.to_string(),
        "rounds": most[0],
        "aggregators": most[1],
        "runs": sums[0],
        "messages": sums[1],
        "message_bytes": sums[2],
        "system_calls": sums[3],
        "copied_per_byte": sums[4] as f64 / (sums[5] as f64).max(1.0),
        "engine_memory": most[2],
        "phases": seconds,
    }))
}
