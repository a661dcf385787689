//! Goes on with a run that was killed: what survived, and a plan from there.

use std::collections::BTreeMap;

use esker_codec::Scratch;
use esker_comm::{Communicator, ReduceOp, Reduction};

use crate::about::About;
use crate::error::{AdjointError, Result};
use crate::filters::Filters;
use crate::folder::{Folder, of_kind};
use crate::journal::Survivors;
use crate::model::{ArrayMut, Layout, Model};
use crate::options::{Options, Report};
use crate::run::{Runner, agree, agreed, expected_depth};
use crate::samples::Samples;
use crate::schedule::{Budget, Place, ScheduleError};
use crate::segment::{self, Kind, Snapshot};
use crate::tiers::Tiers;

/// Goes on with a run whose program ended before it was done.
///
/// `model` is made as for the run, and stands at its initial state. A plan is made from what survived; what is damaged
/// is computed again. Of a run that was done, the model gets its adjoint, and no step is run.
pub fn resume(model: &mut dyn Model, comm: &dyn Communicator, options: &Options) -> Result<Report> {
    let opened = reopen(model, comm, options);
    let (about, mut tiers, found, options) = agree(comm, opened, "resume")?;
    if about.steps == 0 {
        let path = options.folder.clone().unwrap_or_default();
        let why = "its number of steps was not known, so it cannot be resumed".into();
        return Err(AdjointError::Folder { path, why });
    }
    let [memory, disk, raw] = agreed(model, comm, &options)?;
    // What all ranks have whole. Of the adjoint, the lowest state that all have reached.
    let adjoints = in_common(comm, &whole(&mut tiers, &found, Kind::Adjoint))?;
    let end = adjoints.keys().next().copied().unwrap_or(about.steps);
    let restored = match adjoints.contains_key(&end) {
        true => restore_adjoint(model, &mut tiers, end),
        false => Ok(()),
    };
    agree(comm, restored, "resume")?;
    let cleared = clear_up(&mut tiers, &found, end);
    let kept = agree(comm, cleared, "resume")?;
    // A checkpoint counts if every rank has it.
    let common = in_common(comm, &kept)?;
    let dropped = kept
        .keys()
        .filter(|step| !common.contains_key(step))
        .try_for_each(|step| tiers.drop_key(&(*step, Kind::Restart)));
    agree(comm, dropped, "resume")?;
    let mut items: Vec<(u64, Place, u64)> =
        common.iter().map(|(&step, &bytes)| (step, Place::Disk, bytes)).collect();
    if !common.contains_key(&0) && end > 0 {
        // It was in memory. The model stands there now.
        let used: u64 = items.iter().map(|item| item.2).sum();
        let first =
            keep_first(model, comm, &mut tiers, [memory, disk.saturating_sub(used)], &options);
        items.push(first?);
    }
    let plan = Budget::new(about.steps, raw, memory, disk)?.deps_are_state(!model.has_deps());
    let mut plan = plan.resume(None, end, &items);
    let depth = expected_depth(&mut plan, model, &options);
    let mut runner = Runner::new(model, comm, &options, tiers, depth);
    runner.ended = end < about.steps;
    runner.end = end;
    runner.report.steps = about.steps;
    runner.adjoint_kept = (end < about.steps).then_some(end);
    runner.report.notes.extend(found.damage.clone());
    runner.samples_first()?;
    let outcome = runner.carry_out(&mut plan);
    runner.finish(outcome)
}

/// The steps of one kind whose segments are what was written, with their bytes. What is not is told.
fn whole(tiers: &mut Tiers, found: &Survivors, kind: Kind) -> BTreeMap<u64, u64> {
    let mut whole = BTreeMap::new();
    for record in of_kind(found, kind) {
        tiers.adopt(&record);
        let key = (record.step, kind);
        let verified = tiers.load(&key).and_then(|bytes| {
            let arrays = segment::open(&bytes, &tiers.title(&key), Place::Disk)?;
            arrays.iter().try_for_each(|array| array.verify(record.step, Place::Disk))
        });
        match verified {
            Ok(()) => {
                whole.insert(record.step, record.bytes);
            }
            Err(error) => tiers.notes.push(format!("{error}; it is computed again")),
        }
    }
    whole
}

fn restore_adjoint(model: &mut dyn Model, tiers: &mut Tiers, end: u64) -> Result<()> {
    let key = (end, Kind::Adjoint);
    let bytes = tiers.load(&key)?;
    let stored = segment::open(&bytes, &tiers.title(&key), Place::Disk)?;
    segment::restore(&stored, model.adjoint(), end, Place::Disk, &mut Scratch::new())
}

/// Gives up what is of no more use or damaged, and what the journal does not know.
///
/// Gives the steps of restart data that are left, with their bytes.
fn clear_up(tiers: &mut Tiers, found: &Survivors, end: u64) -> Result<BTreeMap<u64, u64>> {
    let mut left = whole(tiers, found, Kind::Restart);
    left.retain(|step, _| *step < end);
    for record in &found.kept {
        let key = (record.step, record.kind);
        tiers.adopt(record);
        let wanted = match record.kind {
            Kind::Restart => left.contains_key(&record.step),
            Kind::Adjoint => record.step == end,
            Kind::Deps => false,
        };
        if !wanted {
            tiers.drop_key(&key)?;
        }
    }
    if let Some(folder) = &tiers.folder {
        folder.sweep(&found.kept)?;
    }
    Ok(left)
}

/// Keeps the initial state; all ranks in the same place.
fn keep_first(
    model: &mut dyn Model,
    comm: &dyn Communicator,
    tiers: &mut Tiers,
    free: [u64; 2],
    options: &Options,
) -> Result<(u64, Place, u64)> {
    let key = (0, Kind::Restart);
    let mut snapshot = Snapshot::default();
    snapshot.take(&model.state());
    // Exactly: the model computes everything from it.
    let filters = options.filters.lossless();
    let title = tiers.title(&key);
    let scratch = &mut Scratch::new();
    let pipelines = filters.for_state(snapshot.arrays(), scratch);
    let encoded = segment::encode(&title, snapshot.arrays(), &pipelines, Vec::new(), scratch);
    let encoded = agree(comm, encoded, "resume")?;
    let mut bytes = [encoded.len() as u64];
    comm.all_reduce(Reduction::U64(&mut bytes), ReduceOp::Max)?;
    let bytes = bytes[0];
    let place = match (bytes <= free[0], bytes <= free[1]) {
        (true, _) => Place::Memory,
        (false, true) => Place::Disk,
        (false, false) => {
            let [memory, disk] = free;
            return Err(ScheduleError::BelowOneState { step: 0, bytes, memory, disk }.into());
        }
    };
    let kept = tiers.keep(key, place, encoded, false).and_then(|()| tiers.settle());
    agree(comm, kept, "resume")?;
    Ok((0, place, bytes))
}

type Reopened = (About, Tiers, Survivors, Options);

fn reopen(model: &mut dyn Model, comm: &dyn Communicator, options: &Options) -> Result<Reopened> {
    let Some(path) = &options.folder else {
        let why = "a run is resumed from its folder, and none was given".into();
        return Err(AdjointError::Folder { path: "".into(), why });
    };
    let refused = |why: String| AdjointError::Folder { path: path.clone(), why };
    let about = Folder::about(&options.store, path)?;
    if about.ranks as usize != comm.size() {
        let why = format!("it is of {} ranks, and there are {}", about.ranks, comm.size());
        return Err(refused(why));
    }
    let arrays = model.state();
    if comm.rank() == 0 {
        let found: Vec<Layout> = arrays.iter().map(ArrayMut::layout).collect();
        if found != about.state {
            let words = |all: &[Layout]| {
                let all: Vec<String> = all.iter().map(|a| format!("{} {a}", a.name)).collect();
                all.join(", ")
            };
            let why = format!(
                "it is of a model with the state {}; this one has {}",
                words(&about.state),
                words(&found)
            );
            return Err(refused(why));
        }
        if Samples::fingerprint(&arrays) != about.fingerprint {
            let why = "it is of a model with another initial state".into();
            return Err(refused(why));
        }
    }
    drop(arrays);
    let mut options = options.clone();
    options.filters = Filters::new(&about.filters)?;
    if options.memory == u64::MAX {
        options.memory = about.budgets[0];
    }
    if options.disk == 0 {
        options.disk = about.budgets[1];
    }
    let rank = comm.rank() as u32;
    let (folder, found) = Folder::open(&options.store, path, &about, rank)?;
    let tiers = Tiers::new(Some(folder), [options.memory, options.disk], options.beside);
    Ok((about, tiers, found, options))
}

/// Checkpoints that all ranks have, with the most bytes of each.
fn in_common(comm: &dyn Communicator, mine: &BTreeMap<u64, u64>) -> Result<BTreeMap<u64, u64>> {
    let mut common = BTreeMap::new();
    let mut from = 0;
    loop {
        // The next step that some rank has; whether all have it.
        let next = mine.range(from..).next().map_or(u64::MAX, |(&step, _)| step);
        let mut lowest = [next];
        comm.all_reduce(Reduction::U64(&mut lowest), ReduceOp::Min)?;
        let step = lowest[0];
        if step == u64::MAX {
            return Ok(common);
        }
        let mut both = [mine.get(&step).map_or(u64::MAX, |&bytes| bytes)];
        comm.all_reduce(Reduction::U64(&mut both), ReduceOp::Max)?;
        if both[0] != u64::MAX {
            common.insert(step, both[0]);
        }
        from = step + 1;
    }
}
