//! Carries a schedule out with a model.

mod auto;
mod back;
mod fetch;
mod forward;
mod keep;
mod sample;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use esker_codec::Scratch;
use esker_comm::{Communicator, ReduceOp, Reduction};

use crate::about::About;
use crate::error::{AdjointError, Result};
use crate::filters::Filters;
use crate::folder::Folder;
use crate::journal::Event;
use crate::lane::Lane;
use crate::model::{ArrayMut, Model};
use crate::options::{Options, Report};
use crate::samples::Samples;
use crate::schedule::{Action, Budget, Revolve, Schedule, ScheduleError, binomial};
use crate::segment::{Kind, Snapshot};
use crate::tiers::{Key, Tiers};
use crate::times::Recent;
use auto::Auto;

/// Bytes of all arrays.
fn total(arrays: &[ArrayMut<'_>]) -> u64 {
    arrays.iter().map(|array| array.bytes.len() as u64).sum()
}

/// A plan with the bytes of `options` for this model, which stands at its initial state.
///
/// With several ranks the smallest budgets and the largest state count, so this is collective.
pub fn budget(
    model: &mut dyn Model,
    steps: u64,
    comm: &dyn Communicator,
    options: &Options,
) -> Result<Budget> {
    let [memory, disk, raw] = agreed(model, comm, options)?;
    let deps_are_state = !model.has_deps();
    Ok(Budget::new(steps, raw, memory, disk)?.deps_are_state(deps_are_state))
}

/// The smallest budgets and the largest state of all ranks.
pub(crate) fn agreed(
    model: &mut dyn Model,
    comm: &dyn Communicator,
    options: &Options,
) -> Result<[u64; 3]> {
    let disk = if options.folder.is_some() { options.disk } else { 0 };
    let deps = total(&model.deps());
    let raw = total(&model.state()).max(deps);
    // The smallest of complements is the complement of the largest. A segment is a little longer than its arrays.
    let raw = raw + 64 * (model.state().len() as u64 + 4);
    let mut values = [options.memory, disk, !raw];
    comm.all_reduce(Reduction::U64(&mut values), ReduceOp::Min)?;
    Ok([values[0], values[1], !values[2]])
}

/// Runs the model forward and back as the schedule says.
///
/// Collective: every rank has its own part of the model, and a schedule that was made alike.
pub fn run(
    model: &mut dyn Model,
    schedule: &mut dyn Schedule,
    comm: &dyn Communicator,
    options: &Options,
) -> Result<Report> {
    let about = about(model, schedule.steps().unwrap_or(0), comm, options);
    // Before the folder is made, which takes reductions of its own.
    let about = agree(comm, about, "start")?;
    let tiers = agree(comm, begin(&about, comm, options), "start")?;
    let depth = expected_depth(schedule, model, options);
    let mut runner = Runner::new(model, comm, options, tiers, depth);
    runner.samples_first()?;
    let outcome = runner.carry_out(schedule);
    runner.finish(outcome)
}

fn about(
    model: &mut dyn Model,
    steps: u64,
    comm: &dyn Communicator,
    options: &Options,
) -> Result<About> {
    let arrays = model.state();
    options.filters.check(&arrays)?;
    let state = arrays.iter().map(ArrayMut::layout).collect();
    let fingerprint = Samples::fingerprint(&arrays);
    // The run's identity: when and where it began.
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let now = now.map_or(0, |time| time.as_nanos() as u64);
    let identity = now ^ (u64::from(std::process::id()) << 40);
    Ok(About {
        identity,
        ranks: comm.size() as u32,
        steps,
        budgets: [options.memory, options.disk],
        filters: options.filters.to_text(),
        state,
        fingerprint,
    })
}

/// Shares an outcome: if a rank failed, all fail.
pub(crate) fn agree<T>(comm: &dyn Communicator, outcome: Result<T>, at: &str) -> Result<T> {
    if comm.size() == 1 {
        return outcome;
    }
    let mut failed = [u64::from(outcome.is_err())];
    comm.all_reduce(Reduction::U64(&mut failed), ReduceOp::Max)?;
    match outcome {
        Ok(_) if failed[0] > 0 => Err(AdjointError::OtherRank { at: at.into() }),
        outcome => outcome,
    }
}

/// Makes the folder, if there is to be one. Rank 0's description is everyone's.
fn begin(about: &About, comm: &dyn Communicator, options: &Options) -> Result<Tiers> {
    let limits = [options.memory, if options.folder.is_some() { options.disk } else { 0 }];
    let Some(path) = &options.folder else { return Ok(Tiers::new(None, limits, options.beside)) };
    let mut about = about.clone();
    let mut identity = [if comm.rank() == 0 { about.identity } else { 0 }];
    comm.all_reduce(Reduction::U64(&mut identity), ReduceOp::Max)?;
    about.identity = identity[0];
    let made = match comm.rank() {
        0 => Folder::prepare(&options.store, path, &about),
        _ => Ok(()),
    };
    agree(comm, made, "start")?;
    let folder = Folder::create(&options.store, path, &about, comm.rank() as u32)?;
    Ok(Tiers::new(Some(folder), limits, options.beside))
}

/// Through how many checkpoints a state goes at most, so that a bound of error can be divided by it.
pub(crate) fn expected_depth(
    schedule: &mut dyn Schedule,
    model: &mut dyn Model,
    options: &Options,
) -> u32 {
    let Some(steps) = schedule.steps().filter(|_| !options.filters.is_lossless()) else { return 1 };
    let raw = total(&model.state()).max(1);
    // With filters there is room for more than this; more checkpoints make the depth smaller.
    let slots = (options.memory.saturating_add(options.disk) / raw).clamp(1, steps);
    let audited = steps <= 100_000;
    let depth = audited.then(|| {
        let mut plan = Revolve::new(steps, slots).ok()?;
        Some(crate::schedule::Audit::of(&mut plan, steps).ok()?.depth)
    });
    let bound = binomial::repetitions(steps, slots).min(u64::from(u32::MAX)) as u32;
    depth.flatten().unwrap_or(bound).max(1)
}
pub(crate) struct Runner<'a> {
    model: &'a mut dyn Model,
    comm: &'a dyn Communicator,
    options: &'a Options,
    tiers: Tiers,
    coder: Lane,
    scratch: Scratch,
    /// With bounds that hold for states that go through `depth` checkpoints.
    filters: Arc<Filters>,
    exact: Arc<Filters>,
    depth: u32,
    samples: Samples,
    pub(crate) report: Report,
    /// The state the model is at, and through how many checkpoints it has come.
    at: Option<(u64, u32)>,
    depths: BTreeMap<Key, u32>,
    /// The state of the step that was run last, where the model has gone on.
    recorded: BTreeMap<u64, Snapshot>,
    spare: Vec<Snapshot>,
    /// Whether the model has reached its end.
    pub(crate) ended: bool,
    pub(crate) end: u64,
    stride: u64,
    pub(crate) adjoint_kept: Option<u64>,
    lossy: bool,
    auto: Auto,
    /// Whether the other ranks know already that this one has failed.
    told: bool,
    /// State 0 as it was encoded for its size.
    first_encoded: Option<Vec<u8>>,
    /// Bytes of the newest encoded state.
    last_length: usize,
    step_time: Recent,
    encode_time: Recent,
    decode_time: Recent,
}
impl<'a> Runner<'a> {
    pub(crate) fn new(
        model: &'a mut dyn Model,
        comm: &'a dyn Communicator,
        options: &'a Options,
        tiers: Tiers,
        depth: u32,
    ) -> Runner<'a> {
        let filters = auto::first(options, total(&model.state())).divided(depth);
        Runner {
            model,
            comm,
            options,
            tiers,
            coder: Lane::start("esker encoding", options.beside),
            scratch: Scratch::new(),
            filters: Arc::new(filters),
            exact: Arc::new(options.filters.lossless()),
            depth,
            samples: Samples::default(),
            report: Report::default(),
            at: Some((0, 0)),
            depths: BTreeMap::new(),
            recorded: BTreeMap::new(),
            spare: Vec::new(),
            ended: false,
            end: u64::MAX,
            stride: u64::MAX,
            adjoint_kept: None,
            lossy: !options.filters.is_lossless(),
            auto: Auto::default(),
            told: false,
            first_encoded: None,
            last_length: 0,
            step_time: Recent::default(),
            encode_time: Recent::default(),
            decode_time: Recent::default(),
        }
    }

    /// Remembers the initial state.
    pub(crate) fn samples_first(&mut self) -> Result<()> {
        let remembered = match self.options.check_finite {
            true => self.samples.remember(0, &self.model.state()),
            false => Ok(()),
        };
        agree(self.comm, remembered, "start")
    }

    pub(crate) fn carry_out(&mut self, schedule: &mut dyn Schedule) -> Result<()> {
        if let Some(steps) = schedule.steps() {
            self.report.steps = steps;
            self.end = self.end.min(steps);
            self.stride = (steps / 64).max(1);
        }
        if let Some(plan) = schedule.budget() {
            plan.set_waits(!self.options.beside);
        }
        // The size of the first state is known before anything is planned, unless its filters are still to be chosen.
        if !self.may_choose(schedule)
            && let Some(plan) = schedule.budget().filter(|_| !self.ended)
            && self.at.is_some_and(|(at, _)| at == 0)
        {
            plan.learn(0, self.first_size()?);
        }
        while let Some(action) = schedule.next_action() {
            match action {
                Action::Forward { from, to, place, .. } => {
                    let what = action.kept();
                    self.forward(schedule, from, to, what, place)?;
                }
                Action::Copy { step, what, from: _, to } => self.fetch(step, what, to, false)?,
                Action::Move { step, what, from: _, to } => self.fetch(step, what, to, true)?,
                Action::Reverse { from, to } => self.reverse(from, to)?,
                Action::EndForward => self.end_forward()?,
                Action::EndReverse if self.end == 0 => return Ok(()),
                Action::EndReverse => {
                    let (left, kept) = (self.end, self.tiers.keys().len());
                    return Err(ScheduleError::Unfinished { left, kept }.into());
                }
            }
        }
        Ok(())
    }

    pub(super) fn call<T>(
        &mut self,
        what: impl FnOnce() -> String,
        work: impl FnOnce(&mut dyn Model) -> std::result::Result<T, crate::model::ModelError>,
    ) -> Result<T> {
        let begin = Instant::now();
        let done = work(self.model);
        self.report.model += begin.elapsed();
        done.map_err(|error| AdjointError::Model { call: what(), message: error.to_string() })
    }

    /// The one reduction of a checkpoint: the largest of each number.
    pub(super) fn reduce(&mut self, told: &mut [u64; 9]) -> Result<()> {
        if self.comm.size() == 1 {
            return Ok(());
        }
        self.comm.all_reduce(Reduction::U64(told), ReduceOp::Max)?;
        match told[0] {
            0 => Ok(()),
            _ => Err(AdjointError::OtherRank { at: "last checkpoint".into() }),
        }
    }

    pub(super) fn end_forward(&mut self) -> Result<()> {
        self.ended = true;
        self.end = self.report.steps;
        self.tiers.settle()?;
        match &mut self.tiers.folder {
            Some(folder) => folder.log(Event::EndForward),
            None => Ok(()),
        }
    }

    /// The end of a run, good or bad: all ranks hear of a failure.
    pub(crate) fn finish(mut self, outcome: Result<()>) -> Result<Report> {
        let told_already =
            matches!(outcome, Err(AdjointError::OtherRank { .. } | AdjointError::Comm(_)));
        let outcome = outcome.and_then(|()| self.tiers.settle());
        if self.comm.size() > 1 && !told_already {
            let mut told = [0; 9];
            told[0] = u64::from(outcome.is_err());
            let heard = self.reduce(&mut told);
            if outcome.is_ok() {
                heard?;
            }
        }
        outcome?;
        for key in self.tiers.keys().into_iter().filter(|key| *key != (0, Kind::Adjoint)) {
            self.tiers.drop_key(&key)?;
        }
        if let Some(folder) = &mut self.tiers.folder {
            folder.log(Event::EndReverse)?;
        }
        (self.report.peak, self.report.moved) = (self.tiers.peak, self.tiers.moved);
        self.report.notes.append(&mut self.tiers.notes);
        Ok(self.report)
    }
}
