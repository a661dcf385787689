//! A plan carried out with Esker.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use esker::{Dataset, DimId, DimLen, ExternalType, FillMode, Native, OpenOptions};
use esker::{Requests, Selection, VarId};
use esker_comm::{Communicator, CommunicatorExt, ReduceOp, Reduction};
use serde_json::{Map, Value, json};

use crate::clock::phase;
use crate::decomposed::Maps;
use crate::layout::Layout;
use crate::measure::Phases;
use crate::plan::{Calls, Data, Element, Plan, RankPlan};
use crate::values::{Buffer, with_list};
use crate::worker::WorkerError;

/// Creates the dataset and writes a plan's values. With `resume` a dataset of transactions that somebody has begun is completed.
pub(crate) fn write(
    comm: &Arc<dyn Communicator>,
    plan: &Plan,
    path: &Path,
    layout: Layout,
    (sync, resume): (bool, bool),
    memory: &[Buffer],
) -> Result<(Phases, Value), WorkerError> {
    let rank = &plan.ranks[comm.rank()];
    let maps = match layout {
        Layout::Decomposed | Layout::Subfiles => Maps::of(plan),
        _ => Maps::default(),
    };
    let selections = Selections::of(rank, &maps);
    let mut write = Phases::default();
    let (mut dataset, vars, done) = match resume && begun(&**comm, path)? {
        true => again(comm, plan, path, &selections, &mut write)?,
        false => create(comm, plan, path, layout, &maps, &mut write)?,
    };
    phase(&**comm, &mut write.data, || {
        let mut memory = memory.iter().zip(selections.iter());
        for (number, (calls, step)) in plan.steps.iter().zip(&rank.steps).enumerate() {
            let mut queue = Requests::new();
            for (request, (buffer, selection)) in step.iter().zip(memory.by_ref()) {
                let place = (vars[request.var], selection);
                if number >= done {
                    with_list!(buffer, data => put(&mut dataset, &mut queue, *calls, place, data)?);
                }
            }
            if number < done {
                continue;
            }
            if *calls == Calls::Queued {
                dataset.wait_all(&mut queue)?;
            }
            match (plan.transactions, sync) {
                (true, true) => dataset.sync()?,
                (true, false) => dataset.commit()?,
                (false, _) => {}
            }
        }
        Ok(())
    })?;
    if sync {
        phase(&**comm, &mut write.sync, || Ok(dataset.sync()?))?;
    }
    let report = report(&**comm, &dataset)?;
    phase(&**comm, &mut write.close, || Ok(dataset.close()?))?;
    Ok((write, report))
}

/// A dataset to be written, its variables, and how many steps somebody has done before.
type Begun = (Dataset, Vec<VarId>, usize);

fn create(
    comm: &Arc<dyn Communicator>,
    plan: &Plan,
    path: &Path,
    layout: Layout,
    maps: &Maps,
    write: &mut Phases,
) -> Result<Begun, WorkerError> {
    let mut vars: Vec<VarId> = Vec::new();
    let options = layout.options(path).comm(Arc::clone(comm)).fill(FillMode::NoFill);
    let mut define =
        phase(&**comm, &mut write.open, || Ok(Dataset::create(path, options.clone())?))?;
    let dataset = phase(&**comm, &mut write.define, || {
        let mut dims = Vec::with_capacity(plan.dims.len());
        for dim in &plan.dims {
            dims.push(define.add_dim(&dim.name, dim.len.map_or(DimLen::Unlimited, DimLen::Fixed))?);
        }
        let ids = maps.define(&mut define, &dims, plan, comm.rank())?;
        for (number, var) in plan.vars.iter().enumerate() {
            let over: Vec<DimId> = var.dims.iter().map(|d| dims[*d]).collect();
            let (name, ty) = (&var.name, external(var.element));
            vars.push(match maps.of_var(number) {
                None => define.add_var(name, ty, &over)?,
                Some(map) => {
                    let records = var.dims.iter().filter(|d| plan.dims[**d].len.is_none()).count();
                    define.add_decomposed_var(name, ty, &over[..records], ids[map])?
                }
            });
            let records = var.dims.first().is_some_and(|d| plan.dims[*d].len.is_none());
            if layout == Layout::Chunked && !var.chunk.is_empty() {
                let id = vars[number];
                define.set_chunks(id, &var.chunk)?;
                if !plan.pipeline.is_empty() {
                    define.set_filters(id, &plan.pipeline)?;
                }
            } else if layout == Layout::Chunked && records {
                // Records of small variables are chunks as they are, as in HDF5: then no records
                // are in the way of the others' chunks.
                let chunk = var.dims.iter().map(|d| plan.dims[*d].len.unwrap_or(1));
                define.set_chunks(vars[number], &chunk.collect::<Vec<u64>>())?;
            }
        }
        Ok(define.enddef().map_err(esker::Error::from)?)
    })?;
    Ok((dataset, vars, 0))
}

/// Whether a run that was killed has left a container with a version.
fn begun(comm: &dyn Communicator, path: &Path) -> Result<bool, WorkerError> {
    let here = comm.rank() == 0 && path.join("refs/main/00000001").is_file();
    Ok(comm.max_u64(here.into())? > 0)
}

/// Opens what was begun, and looks how far it came: a transaction is done if its checksums are there. What is done has to have them.
fn again(
    comm: &Arc<dyn Communicator>,
    plan: &Plan,
    path: &Path,
    selections: &Selections,
    write: &mut Phases,
) -> Result<Begun, WorkerError> {
    let mut dataset = phase(&**comm, &mut write.open, || {
        let options = OpenOptions::new().writable(true).comm(Arc::clone(comm));
        Ok(Dataset::open_with(path, options)?)
    })?;
    let vars = plan.vars.iter().map(|var| dataset.var(&var.name));
    let vars = vars.collect::<Result<Vec<VarId>, _>>()?;
    let rank = &plan.ranks[comm.rank()];
    let mut selections = selections.iter();
    let (mut done, mut ended) = (0, false);
    for step in &rank.steps {
        let (mut sums, mut stored) = (Vec::new(), Vec::new());
        for (request, selection) in step.iter().zip(selections.by_ref()) {
            let mut buffer = Buffer::zeroed(plan, rank, request);
            let mut queue = Requests::new();
            let place = (vars[request.var], selection);
            with_list!(&mut buffer, into => get(&mut dataset, &mut queue, Calls::Blocking, place, into)?);
            match (plan.vars[request.var].data, buffer) {
                (Data::Sums, Buffer::I64(list)) => stored.extend(list),
                (_, buffer) => sums.push(i64::from(crc32c::crc32c(buffer.bytes()))),
            }
        }
        // Nobody has written a checksum that no crc32c can be.
        let is_there = stored.iter().all(|sum| u32::try_from(*sum).is_ok());
        let [least, most] = [u64::from(is_there), u64::from(!is_there)];
        let (all, some) = (comm.max_u64(most)? == 0, comm.max_u64(least)? > 0);
        let wrong = comm.max_u64(u64::from(is_there && sums != stored))? > 0;
        if some != all || (ended && some) || wrong {
            let why =
                format!("{}: step {done} is there in part, or has other checksums", path.display());
            return Err(WorkerError::Start(why));
        }
        ended |= !all;
        done += usize::from(all);
    }
    Ok((dataset, vars, done))
}

/// Opens the dataset and reads what a plan says.
pub(crate) fn read(
    comm: &Arc<dyn Communicator>,
    plan: &Plan,
    path: &Path,
    memory: &mut [Buffer],
) -> Result<(Phases, Value), WorkerError> {
    let rank = &plan.ranks[comm.rank()];
    let selections = Selections::of(rank, &Maps::default());
    let mut read = Phases::default();
    let mut dataset = phase(&**comm, &mut read.open, || {
        Ok(Dataset::open_with(path, OpenOptions::new().comm(Arc::clone(comm)))?)
    })?;
    let vars = plan.vars.iter().map(|var| dataset.var(&var.name));
    let vars = vars.collect::<Result<Vec<VarId>, _>>()?;
    phase(&**comm, &mut read.data, || {
        let mut memory = memory.iter_mut().zip(selections.iter());
        for (calls, step) in plan.steps.iter().zip(&rank.steps) {
            let mut queue = Requests::new();
            for (request, (buffer, selection)) in step.iter().zip(memory.by_ref()) {
                let place = (vars[request.var], selection);
                with_list!(buffer, into => get(&mut dataset, &mut queue, *calls, place, into)?);
            }
            if *calls == Calls::Queued {
                dataset.wait_all(&mut queue)?;
            }
        }
        Ok(())
    })?;
    let report = report(&**comm, &dataset)?;
    phase(&**comm, &mut read.close, || Ok(dataset.close()?))?;
    Ok((read, report))
}

fn external(element: Element) -> ExternalType {
    match element {
        Element::I32 => ExternalType::Int,
        Element::F32 => ExternalType::Float,
        Element::F64 => ExternalType::Double,
        Element::I64 => ExternalType::Int64,
        Element::U16 => ExternalType::UShort,
    }
}

/// The selections of a rank's requests; many requests share one.
struct Selections {
    made: Vec<Selection>,
    of_request: Vec<usize>,
}

impl Selections {
    fn of(rank: &RankPlan, maps: &Maps) -> Selections {
        let mut places = HashMap::new();
        let mut made = Vec::new();
        let of_request = rank.steps.iter().flatten().map(|request| {
            let blob = maps.of_var(request.var).is_some();
            *places.entry((request.list, request.record, blob)).or_insert_with(|| {
                if blob {
                    // All that the rank has of the variable.
                    let at: Vec<u64> = request.record.into_iter().collect();
                    made.push(Selection::blob(&at, &vec![1; at.len()]));
                    return made.len() - 1;
                }
                let slabs = rank.lists[request.list].of_record(request.record);
                made.push(match slabs.len {
                    1 => Selection::slab(&slabs.starts, &slabs.counts),
                    _ => Selection::list(slabs.rank, slabs.starts, slabs.counts),
                });
                made.len() - 1
            })
        });
        let of_request = of_request.collect();
        Selections { made, of_request }
    }

    /// In the order of the requests.
    fn iter(&self) -> impl Iterator<Item = &Selection> {
        self.of_request.iter().map(|i| &self.made[*i])
    }
}

fn put<'b, T: Native>(
    dataset: &mut Dataset,
    queue: &mut Requests<'b>,
    calls: Calls,
    (var, selection): (VarId, &Selection),
    data: &'b [T],
) -> Result<(), WorkerError> {
    match calls {
        Calls::Blocking => dataset.put_all(var, selection, data)?,
        Calls::Independent => dataset.put(var, selection, data)?,
        Calls::Queued => {
            dataset.iput(queue, var, selection, data)?;
        }
    }
    Ok(())
}

fn get<'b, T: Native>(
    dataset: &mut Dataset,
    queue: &mut Requests<'b>,
    calls: Calls,
    (var, selection): (VarId, &Selection),
    into: &'b mut [T],
) -> Result<(), WorkerError> {
    match calls {
        Calls::Blocking => dataset.get_all_into(var, selection, into)?,
        Calls::Independent => dataset.get_into(var, selection, into)?,
        Calls::Queued => {
            dataset.iget(queue, var, selection, into)?;
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
        report.node_bytes,
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
        "road": report.road.to_string(),
        "node_bytes": sums[6],
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
