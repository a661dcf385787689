//! Carries a schedule out with a model.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use esker_codec::Scratch;
use esker_comm::{Communicator, ReduceOp, Reduction};
use esker_format::ExternalType;

use crate::error::{AdjointError, Result};
use crate::filters::Filters;
use crate::folder::{About, Folder};
use crate::journal::Event;
use crate::lane::{Lane, Promise};
use crate::model::{ArrayMut, Layout, Model};
use crate::options::{OnDrift, Options, Report};
use crate::samples::Samples;
use crate::schedule::{
    Action, Budget, Costs, Data, OPEN_END, Place, Revolve, Schedule, ScheduleError, binomial,
};
use crate::segment::{self, Kind, Snapshot};
use crate::tiers::{Key, Tiers};

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
    let began = about.and_then(|about| begin(&about, comm, options));
    let tiers = agree(comm, began, "start")?;
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
    let Some(path) = &options.folder else { return Ok(Tiers::new(None, limits)) };
    let mut about = about.clone();
    let mut identity = [if comm.rank() == 0 { about.identity } else { 0 }];
    comm.all_reduce(Reduction::U64(&mut identity), ReduceOp::Max)?;
    about.identity = identity[0];
    let made = match comm.rank() {
        0 => Folder::prepare(&*options.store, path, &about),
        _ => Ok(()),
    };
    agree(comm, made, "start")?;
    let folder = Folder::create(options.store.clone(), path, &about, comm.rank() as u32)?;
    Ok(Tiers::new(Some(folder), limits))
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

/// A state that is being encoded beside the model.
struct Encoding {
    key: Key,
    depth: u32,
    done: Promise<(Result<Vec<u8>>, Snapshot, Duration)>,
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
    /// Whether the other ranks know already that this one has failed.
    told: bool,
    step_time: Option<Duration>,
    encode_time: Option<Duration>,
    decode_time: Option<Duration>,
}

fn nanos(time: Option<Duration>) -> u64 {
    time.map_or(0, |time| time.as_nanos().min(u128::from(u64::MAX)) as u64)
}

/// The first element of a snapshot that is not finite.
fn not_finite(snapshot: &Snapshot, step: u64) -> Result<()> {
    for (layout, bytes) in &snapshot.arrays {
        let found = match layout.ty {
            ExternalType::Double => bytes
                .as_chunks::<8>()
                .0
                .iter()
                .position(|bytes| !f64::from_ne_bytes(*bytes).is_finite()),
            ExternalType::Float => bytes
                .as_chunks::<4>()
                .0
                .iter()
                .position(|bytes| !f32::from_ne_bytes(*bytes).is_finite()),
            _ => None,
        };
        if let Some(element) = found {
            return Err(AdjointError::NotFinite { array: layout.name.clone(), step, element });
        }
    }
    Ok(())
}

impl<'a> Runner<'a> {
    pub(crate) fn new(
        model: &'a mut dyn Model,
        comm: &'a dyn Communicator,
        options: &'a Options,
        tiers: Tiers,
        depth: u32,
    ) -> Runner<'a> {
        Runner {
            model,
            comm,
            options,
            tiers,
            coder: Lane::start("esker encoding"),
            scratch: Scratch::new(),
            filters: Arc::new(options.filters.divided(depth)),
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
            told: false,
            step_time: None,
            encode_time: None,
            decode_time: None,
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
        if let Some(plan) = schedule.budget().filter(|_| self.report.forward == 0) {
            // The size of the first state is known before anything is planned.
            let bytes = self.first_size()?;
            if self.at.is_some_and(|(at, _)| at == 0) && !self.ended {
                plan.learn(0, bytes);
            }
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

    /// How many bytes the initial state has when it is encoded, the most of all ranks.
    fn first_size(&mut self) -> Result<u64> {
        let mut snapshot = Snapshot::default();
        snapshot.take(&self.model.state());
        let (title, filters) = (self.tiers.title(&(0, Kind::Restart)), self.filters.clone());
        let encoded =
            segment::encode(&title, &snapshot, |l| filters.for_layout(l), &mut self.scratch);
        let mut told =
            [u64::from(encoded.is_err()), encoded.as_ref().map_or(0, |bytes| bytes.len() as u64)];
        self.comm.all_reduce(Reduction::U64(&mut told), ReduceOp::Max)?;
        match encoded {
            Ok(_) if told[0] > 0 => Err(AdjointError::OtherRank { at: "first state".into() }),
            Ok(_) => Ok(told[1]),
            Err(error) => {
                self.told = true;
                Err(error)
            }
        }
    }

    fn forward(
        &mut self,
        schedule: &mut dyn Schedule,
        from: u64,
        to: u64,
        what: Option<Data>,
        place: Place,
    ) -> Result<()> {
        let Some((at, depth)) = self.at.filter(|(at, _)| *at == from) else {
            return Err(AdjointError::NotKept { step: from, place: Place::Work });
        };
        debug_assert_eq!(at, from);
        if to == OPEN_END {
            return self.forward_to_the_end(schedule, from, what);
        }
        let has_deps = self.model.has_deps();
        let in_tier = matches!(place, Place::Memory | Place::Disk);
        let wants_deps = matches!(what, Some(Data::Deps | Data::Both));
        let mut encodings = Vec::new();
        if in_tier {
            // Where the adjoint depends on the state alone, what restarts the model is all there is to keep.
            let kind = match what {
                Some(Data::Restart | Data::Both) => Some(Kind::Restart),
                Some(Data::Deps) if !has_deps => Some(Kind::Deps),
                _ => None,
            };
            if let Some(kind) = kind {
                encodings.push(self.encode((from, kind), depth));
            }
        } else if wants_deps && !has_deps {
            if self.ended {
                // The state is in place: its step need not be run to be reversed.
                return Ok(());
            }
            self.record(from);
        }
        self.advance(schedule, from, to)?;
        if in_tier && wants_deps && has_deps {
            encodings.push(self.encode((from, Kind::Deps), depth));
        }
        for encoding in encodings {
            self.commit(schedule, encoding, place)?;
        }
        Ok(())
    }

    /// Keeps a copy of the state for the adjoint of its step.
    fn record(&mut self, step: u64) {
        let mut snapshot = self.spare.pop().unwrap_or_default();
        snapshot.take(&self.model.state());
        // One step at a time is recorded, but for the schedule that keeps all in work.
        if let Some((_, old)) = self.recorded.pop_last() {
            self.spare.push(old);
        }
        self.recorded.insert(step, snapshot);
    }

    /// A model whose end is not known: step by step; all dependencies stay in work if they are wanted.
    fn forward_to_the_end(
        &mut self,
        schedule: &mut dyn Schedule,
        from: u64,
        what: Option<Data>,
    ) -> Result<()> {
        let mut step = from;
        while schedule.steps().is_none() {
            if what.is_some() {
                let mut snapshot = Snapshot::default();
                snapshot.take(&self.model.state());
                self.recorded.insert(step, snapshot);
            }
            self.advance(schedule, step, step + 1)?;
            step += 1;
        }
        Ok(())
    }

    fn call<T>(
        &mut self,
        what: impl FnOnce() -> String,
        work: impl FnOnce(&mut dyn Model) -> std::result::Result<T, crate::model::ModelError>,
    ) -> Result<T> {
        let begin = Instant::now();
        let done = work(self.model);
        self.report.model += begin.elapsed();
        done.map_err(|error| AdjointError::Model { call: what(), message: error.to_string() })
    }

    /// Runs the model, in pieces where states are compared with what they were.
    fn advance(&mut self, schedule: &mut dyn Schedule, from: u64, to: u64) -> Result<()> {
        let depth = self.at.map_or(0, |(_, depth)| depth);
        // Where the end is not known, every state may be the last.
        let open = !self.ended && schedule.steps().is_none();
        let mut stops = match self.ended {
            true => self.samples.between(from, to),
            false if open => (from + 1..to).collect(),
            false => {
                let first = (from / self.stride).saturating_add(1).saturating_mul(self.stride);
                (first..to).step_by(self.stride.min(1 << 32) as usize).collect()
            }
        };
        stops.push(to);
        let mut at = from;
        for stop in stops {
            let begin = Instant::now();
            self.call(|| format!("forward({at}, {stop})"), |model| model.forward(at, stop))?;
            self.step_time = Some(begin.elapsed() / (stop - at).min(1 << 30) as u32);
            self.report.forward += stop - at;
            at = stop;
            self.look_at(stop, depth)?;
            self.at = Some((stop, depth));
            if !self.ended {
                self.ask_whether_it_ends(schedule, stop)?;
            }
            if open && schedule.steps().is_some() {
                break;
            }
        }
        Ok(())
    }

    /// Remembers a state of the first run, or compares it with what it was.
    fn look_at(&mut self, step: u64, depth: u32) -> Result<()> {
        if !self.options.check_finite {
            return Ok(());
        }
        if !self.ended {
            return self.samples.remember(step, &self.model.state());
        }
        let exact = depth == 0 || !self.lossy;
        let limit = self.options.drift_limit;
        match self.samples.compare(step, &self.model.state(), exact, limit) {
            Ok(drift) => self.report.drift = self.report.drift.max(drift),
            Err(AdjointError::Drift { drift, .. })
                if !exact && self.options.on_drift == OnDrift::Lossless =>
            {
                if self.report.drift <= limit {
                    self.report.notes.push(format!(
                        "the error of lossy checkpoints has grown to {drift:.3e} at step {step}: nothing is lost from here on"
                    ));
                }
                self.report.drift = self.report.drift.max(drift);
                self.filters = self.exact.clone();
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    fn ask_whether_it_ends(&mut self, schedule: &mut dyn Schedule, at: u64) -> Result<()> {
        let finished = self.model.is_finished(at);
        let promised = schedule.steps();
        match (promised, finished) {
            (Some(promised), Some(true)) if at < promised => {
                Err(AdjointError::OtherEnd { promised, found: at, what: "it has ended" })
            }
            (Some(promised), Some(false)) if at == promised => {
                Err(AdjointError::OtherEnd { promised, found: at, what: "it goes on" })
            }
            (None, Some(true)) => {
                schedule.finalize(at)?;
                (self.report.steps, self.end) = (at, at);
                Ok(())
            }
            (None, None) => Err(AdjointError::NoEnd),
            _ => Ok(()),
        }
    }

    /// Copies arrays of the model and lets them be encoded beside it.
    fn encode(&mut self, key: Key, depth: u32) -> Encoding {
        let begin = Instant::now();
        let mut snapshot = self.spare.pop().unwrap_or_default();
        let of_deps = key.1 == Kind::Deps && self.model.has_deps();
        match of_deps {
            true => snapshot.take(&self.model.deps()),
            false => snapshot.take(&self.model.state()),
        }
        self.report.waited += begin.elapsed();
        // What has gone through more checkpoints than planned must not lose again.
        let may_lose = depth < self.depth;
        let filters = if may_lose { self.filters.clone() } else { self.exact.clone() };
        let (title, check) = (self.tiers.title(&key), self.options.check_finite);
        let done = self.coder.submit(move |scratch| {
            let begin = Instant::now();
            let encoded = match check.then(|| not_finite(&snapshot, title.step)) {
                Some(Err(error)) => Err(error),
                _ => segment::encode(&title, &snapshot, |l| filters.for_layout(l), scratch),
            };
            (encoded, snapshot, begin.elapsed())
        });
        Encoding { key, depth: depth + 1, done }
    }

    /// Waits for an encoded state and keeps it, where the plan and all ranks want it.
    fn commit(
        &mut self,
        schedule: &mut dyn Schedule,
        encoding: Encoding,
        place: Place,
    ) -> Result<()> {
        let Encoding { key, depth, done } = encoding;
        let begin = Instant::now();
        let gone = || AdjointError::Model { call: "a thread".into(), message: "it ended".into() };
        let (encoded, snapshot, time) = done.wait().ok_or_else(gone)?;
        self.report.bytes[0] += snapshot.bytes();
        self.spare.truncate(1);
        self.spare.push(snapshot);
        self.encode_time = Some(time);
        let bytes = encoded?;
        self.report.bytes[1] += bytes.len() as u64;
        self.tiers.settle()?;
        let full = self.tiers.has_become_full();
        let stranded = self.tiers.stranded().map_or(0, |key| key.0 + 1);
        let mut told = [
            0,
            bytes.len() as u64,
            u64::from(full),
            stranded,
            nanos(self.step_time),
            nanos(self.encode_time),
            nanos(self.decode_time),
            nanos(self.tiers.write_time),
            nanos(self.tiers.read_time),
        ];
        self.reduce(&mut told)?;
        let step = key.0;
        let largest = told[1];
        let data = if key.1 == Kind::Deps { Data::Deps } else { Data::Restart };
        let mut target = place;
        if let Some(plan) = schedule.budget() {
            let seconds = |i: usize| told[i] as f64 * 1e-9;
            if self.options.measure && told[7] > 0 && told[4] > 0 {
                let costs = Costs {
                    step: seconds(4),
                    encode: seconds(5),
                    decode: seconds(6),
                    write: seconds(7),
                    read: if told[8] > 0 { seconds(8) } else { seconds(7) },
                };
                plan.set_costs(costs);
            }
            if told[2] > 0 {
                if told[3] > 1 {
                    // Lost on one rank, given up on all. The first is never lost in this way.
                    let lost = (told[3] - 1, Kind::Restart);
                    plan.lost(lost.0, Data::Restart);
                    self.tiers.drop_key(&lost)?;
                    self.depths.remove(&lost);
                }
                plan.limit(Place::Disk, plan.used()[1]);
            }
            let outcome = plan.encoded(step, data, largest)?;
            for (step, data, _) in outcome.given_up {
                let kind = if data == Data::Deps { Kind::Deps } else { Kind::Restart };
                self.tiers.drop_key(&(step, kind))?;
            }
            target = outcome.place;
        } else {
            target = self.room_for(step, largest, target)?;
        }
        if target != Place::Nowhere {
            self.depths.insert(key, depth);
            self.report.stored[usize::from(target == Place::Disk)] += 1;
            self.tiers.keep(key, target, bytes, false)?;
            if step == 0 && target == Place::Disk {
                self.secure_first(schedule, &key)?;
            }
        }
        self.report.waited += begin.elapsed();
        Ok(())
    }

    /// The first is what all others are computed from: it is whole before anything else happens. If the disk of a rank
    /// does not take it, it stays in memory on all.
    fn secure_first(&mut self, schedule: &mut dyn Schedule, key: &Key) -> Result<()> {
        self.tiers.settle()?;
        let mut told = [0; 9];
        told[1] = u64::from(self.tiers.stranded() == Some(*key));
        self.reduce(&mut told)?;
        if told[1] == 0 {
            return Ok(());
        }
        self.tiers.has_become_full();
        self.tiers.rescue(key)?;
        let (used, limits) = (self.tiers.used(), self.tiers.limits);
        if let Some(plan) = schedule.budget() {
            plan.moved(key.0, Data::Restart, Place::Memory);
            plan.limit(Place::Disk, 0);
        }
        if used[0] > limits[0] {
            let [memory, disk] = limits;
            let bytes = used[0];
            return Err(ScheduleError::BelowOneState { step: 0, bytes, memory, disk }.into());
        }
        Ok(())
    }

    /// Where a checkpoint of a plan of slots fits; all ranks have the same bytes in use, or fewer.
    fn room_for(&self, step: u64, bytes: u64, wanted: Place) -> Result<Place> {
        let (used, limits) = (self.tiers.used(), self.tiers.limits);
        let left = [limits[0].saturating_sub(used[0]), limits[1].saturating_sub(used[1])];
        let on_disk = self.tiers.folder.is_some() && !self.tiers.disk_is_full;
        let order = match wanted {
            Place::Disk => [(Place::Disk, left[1], on_disk), (Place::Memory, left[0], true)],
            _ => [(Place::Memory, left[0], true), (Place::Disk, left[1], on_disk)],
        };
        let found = order.into_iter().find(|(_, left, there)| *there && bytes <= *left);
        found.map(|(place, ..)| place).ok_or(AdjointError::OverBudget {
            step,
            bytes,
            memory: left[0],
            disk: left[1],
        })
    }

    /// The one reduction of a checkpoint: the largest of each number.
    fn reduce(&mut self, told: &mut [u64; 9]) -> Result<()> {
        if self.comm.size() == 1 {
            return Ok(());
        }
        self.comm.all_reduce(Reduction::U64(told), ReduceOp::Max)?;
        match told[0] {
            0 => Ok(()),
            _ => Err(AdjointError::OtherRank { at: "last checkpoint".into() }),
        }
    }

    /// Loads, moves or gives up a checkpoint.
    fn fetch(&mut self, step: u64, what: Data, to: Place, gives_up: bool) -> Result<()> {
        if what == Data::Both && self.model.has_deps() {
            self.fetch(step, Data::Restart, to, gives_up)?;
            return self.fetch(step, Data::Deps, to, gives_up);
        }
        let kind = if what == Data::Deps { Kind::Deps } else { Kind::Restart };
        let key = (step, kind);
        if to == Place::Work {
            self.load(&key)?;
        } else if to != Place::Nowhere {
            let bytes = self.tiers.load(&key)?;
            self.tiers.drop_key(&key)?;
            let bytes = Arc::try_unwrap(bytes).unwrap_or_else(|shared| shared.to_vec());
            return self.tiers.keep(key, to, bytes, false);
        }
        if gives_up {
            self.tiers.drop_key(&key)?;
            self.depths.remove(&key);
            self.tiers.read_ahead(step);
        }
        Ok(())
    }

    fn load(&mut self, key: &Key) -> Result<()> {
        let begin = Instant::now();
        let place = self.tiers.place_of(key).unwrap_or(Place::Memory);
        let loaded = self.restore(key, place);
        // A rank whose checkpoint is damaged computes it again, and the others with it.
        let mut damaged = [u64::from(matches!(loaded, Err(AdjointError::Damaged { .. })))];
        if self.comm.size() > 1 {
            let mut told = [0; 9];
            told[0] = u64::from(loaded.is_err() && damaged[0] == 0);
            told[1] = damaged[0];
            if told[0] > 0 {
                return loaded;
            }
            self.reduce(&mut told)?;
            damaged[0] = told[1];
        }
        if damaged[0] > 0 {
            return self.compute_again(key, loaded);
        }
        loaded?;
        self.report.loaded[usize::from(place == Place::Disk)] += 1;
        self.report.waited += begin.elapsed();
        let depth = self.depths.get(key).copied().unwrap_or(1);
        self.at = Some((key.0, depth));
        Ok(())
    }

    /// Decodes a checkpoint into the model.
    fn restore(&mut self, key: &Key, place: Place) -> Result<()> {
        let bytes = self.tiers.load(key)?;
        let begin = Instant::now();
        let stored = segment::open(&bytes, &self.tiers.title(key), place)?;
        let layout: Vec<Layout> = stored.iter().map(|array| array.layout.clone()).collect();
        let of_deps = key.1 == Kind::Deps && self.model.has_deps();
        let differs = |arrays: Vec<ArrayMut<'_>>| {
            !arrays.iter().map(ArrayMut::layout).eq(layout.iter().cloned())
        };
        if !of_deps && differs(self.model.state()) {
            self.call(|| "reshape".into(), |model| model.reshape(&layout))?;
        }
        let arrays = if of_deps { self.model.deps() } else { self.model.state() };
        segment::restore(&stored, arrays, key.0, place, &mut self.scratch)?;
        self.decode_time = Some(begin.elapsed());
        Ok(())
    }

    /// After a checkpoint turned out to be damaged: from an earlier one.
    fn compute_again(&mut self, key: &Key, found: Result<()>) -> Result<()> {
        let error = match found {
            Err(error) => error,
            Ok(()) => AdjointError::OtherRank { at: "load of a checkpoint".into() },
        };
        self.report.notes.push(format!("{error}; it is computed again from an earlier checkpoint"));
        for below in self.tiers.below(key.0) {
            let place = self.tiers.place_of(&below).unwrap_or(Place::Memory);
            let loaded = self.restore(&below, place);
            let loaded = agree(self.comm, loaded, "load of an earlier checkpoint");
            if let Err(error) = loaded {
                self.report.notes.push(error.to_string());
                continue;
            }
            let depth = self.depths.get(&below).copied().unwrap_or(1);
            self.at = Some((below.0, depth));
            let (mut at, to) = (below.0, key.0);
            let stops = self.samples.between(at, to);
            for stop in stops.into_iter().chain([to]) {
                self.call(|| format!("forward({at}, {stop})"), |m| m.forward(at, stop))?;
                self.report.forward += stop - at;
                at = stop;
            }
            if key.1 == Kind::Deps && self.model.has_deps() {
                self.call(|| format!("forward({to}, {})", to + 1), |m| m.forward(to, to + 1))?;
                self.report.forward += 1;
            }
            self.at = Some((to, depth));
            return Ok(());
        }
        Err(error)
    }

    fn reverse(&mut self, from: u64, to: u64) -> Result<()> {
        let mut at = from;
        while at > to {
            let step = at - 1;
            if let Some(snapshot) = self.recorded.remove(&step) {
                self.put_back(&snapshot)?;
                self.spare.truncate(1);
                self.spare.push(snapshot);
            }
            self.call(|| format!("reverse({at}, {step})"), |model| model.reverse(at, step))?;
            at = step;
            self.end = at;
            self.samples.forget_from(at);
            self.keep_adjoint()?;
        }
        self.at = None;
        Ok(())
    }

    fn put_back(&mut self, snapshot: &Snapshot) -> Result<()> {
        let layout: Vec<Layout> =
            snapshot.arrays.iter().map(|(layout, _)| layout.clone()).collect();
        let differs = !self.model.state().iter().map(ArrayMut::layout).eq(layout.iter().cloned());
        if differs {
            self.call(|| "reshape".into(), |model| model.reshape(&layout))?;
        }
        for ((layout, bytes), array) in snapshot.arrays.iter().zip(self.model.state()) {
            if array.layout() != *layout || array.bytes.len() != bytes.len() {
                return Err(AdjointError::Layout {
                    array: layout.name.clone(),
                    step: self.end.saturating_sub(1),
                    stored: layout.to_string(),
                    found: array.layout().to_string(),
                });
            }
            array.bytes.copy_from_slice(bytes);
        }
        Ok(())
    }

    /// Stores the adjoint every so many steps, so that a run can be resumed from there.
    fn keep_adjoint(&mut self) -> Result<()> {
        let every = self.options.adjoint_every.unwrap_or((self.report.steps / 20).max(1)).max(1);
        let since = self.adjoint_kept.unwrap_or(self.report.steps) - self.end;
        if self.tiers.folder.is_none() || self.end == 0 || since < every {
            return Ok(());
        }
        let begin = Instant::now();
        let key = (self.end, Kind::Adjoint);
        let mut snapshot = Snapshot::default();
        snapshot.take(&self.model.adjoint());
        let nothing = |_: &Layout| None;
        let bytes =
            segment::encode(&self.tiers.title(&key), &snapshot, nothing, &mut self.scratch)?;
        self.tiers.keep(key, Place::Disk, bytes, true)?;
        self.tiers.settle()?;
        if let Some(folder) = &self.tiers.folder {
            folder.sync()?;
        }
        // The older one goes when all ranks have the new one, unless a full disk did not take it.
        let kept = self.tiers.place_of(&key) == Some(Place::Disk);
        let mut told = [0; 9];
        told[1] = u64::from(!kept);
        self.reduce(&mut told)?;
        let loser = if told[1] == 0 { self.adjoint_kept.replace(self.end) } else { Some(self.end) };
        if let Some(step) = loser {
            self.tiers.drop_key(&(step, Kind::Adjoint))?;
        }
        self.report.waited += begin.elapsed();
        Ok(())
    }

    fn end_forward(&mut self) -> Result<()> {
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
        for key in self.tiers.keys() {
            self.tiers.drop_key(&key)?;
        }
        if let Some(folder) = &mut self.tiers.folder {
            folder.log(Event::EndReverse)?;
        }
        self.report.peak = self.tiers.peak;
        self.report.notes.append(&mut self.tiers.notes);
        Ok(self.report)
    }
}
