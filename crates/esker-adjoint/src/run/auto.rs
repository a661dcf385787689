//! `auto`: which filters make the run shortest, by what they do with its states and what its steps take.
//!
//! Nothing is known before the first step was run. So the first state is copied, its step is run, the levels are tried on
//! parts of the next state ([`Sample`]), the disk is measured with as many bytes, and a [`Prospect`] of each level tells how long the
//! run would be. That is done again, at distances that double, where states turn out to have other sizes than was thought.

use std::sync::Arc;
use std::time::Instant;

use esker_comm::{ReduceOp, Reduction};

use super::sample::{Effect, Sample};
use super::{Runner, total};
use crate::error::{AdjointError, Result};
use crate::filters::{FLOATS, Filters};
use crate::options::Options;
use crate::schedule::{Budget, Costs, Prospect, Schedule};

/// Longer runs are weighed by a shorter one with as much room for each step.
const WEIGHED: u64 = 400;
/// What trying may take of the time that the steps will take, forward and back.
const SHARE: f64 = 0.004;
/// Seconds in which all levels are tried on a byte, about.
const PER_BYTE: f64 = 20e-9;
/// The shortest sample that says something.
const LEAST: usize = 64 << 10;
/// A state of which parts say little: what a filter does at its beginning is most of what it does.
const SMALL_STATE: usize = 256 << 10;
/// Bytes with which the disk is measured: as few as tell its speed from the time of a call.
const PROBE: usize = 64 << 10;
/// Another level must be so much better than the one before it: times are measured, and waver.
const WORTH: f64 = 0.98;
/// By how much sizes may be off before the choice is made again.
const OFF: f64 = 1.25;

/// What was chosen, and with what in mind.
#[derive(Debug, Default)]
pub(super) struct Auto {
    level: Option<usize>,
    /// What the levels were thought to do, and what steps and transfers took.
    found: Vec<Effect>,
    seconds: Seconds,
    /// Bytes of the newest state that was stored with this level, on the rank where it was largest.
    stored: Option<u64>,
    /// The state from which on it may be chosen again.
    next: u64,
}

impl Auto {
    /// The size of a state is known.
    pub(super) fn stored(&mut self, bytes: u64) {
        self.stored = Some(bytes);
    }

    /// The levels with the size that states turn out to have, if that is another than was thought.
    fn corrected(&self) -> Option<Vec<Effect>> {
        let (level, stored) = (self.level?, self.stored?);
        let corrected = correct(self.found.clone(), level, stored as f64);
        let ratio = stored as f64 / self.found[level].bytes.max(1.0);
        (!(1.0 / OFF..OFF).contains(&ratio)).then_some(corrected)
    }
}

/// The filters of the first state where nothing can be measured: none, unless there is room for few states only.
pub(super) fn first(options: &Options, state: u64) -> Filters {
    let disk = if options.folder.is_some() { options.disk } else { 0 };
    let is_tight = options.memory.saturating_add(disk) < state.saturating_mul(4);
    options.filters.at_level(usize::from(is_tight))
}

/// A transfer: seconds of an empty one, and of each byte.
#[derive(Debug, Clone, Copy, Default)]
struct Speed {
    fixed: f64,
    per_byte: f64,
}

impl Speed {
    fn of(self, bytes: f64) -> f64 {
        self.fixed + self.per_byte * bytes
    }
}

/// How long a run takes with a level; nothing if it cannot be.
fn time(level: &Effect, run: &Prospect, write: Speed, read: Speed) -> Option<f64> {
    if !level.bytes.is_finite() {
        return None;
    }
    // A long run has the same shape as a short one with its share of the budgets.
    let steps = run.steps.min(WEIGHED);
    let share = |bytes: u64| (bytes as f64 * steps as f64 / run.steps as f64) as u64;
    let costs = Costs {
        step: run.costs.step,
        encode: level.encode,
        decode: level.decode,
        write: write.of(level.bytes),
        read: read.of(level.bytes),
    };
    let bytes = level.bytes.ceil().max(1.0) as u64;
    let (memory, disk) = (share(run.memory).max(run.memory.min(bytes)), share(run.disk));
    let disk = disk.max(run.disk.min(bytes));
    let prospect = Prospect { steps, state: bytes, memory, disk, costs, ..*run };
    let plan = Budget::new(steps, bytes, memory, disk).ok()?;
    let mut plan = plan.deps_are_state(run.deps_are_state);
    plan.learn(0, bytes);
    plan.set_waits(!run.beside);
    plan.set_costs(costs);
    Some(prospect.forecast("Budget", &mut plan).ok()?.seconds())
}

/// The level with which a run is shortest.
fn shortest(levels: &[Effect], run: &Prospect, write: Speed, read: Speed) -> usize {
    // What was seen of a part may be off: a state that fits only just may not fit.
    let room = run.memory.max(run.disk) as f64;
    let fits = |level: &&Effect| level.bytes * OFF <= room;
    let time = |level: &Effect| match fits(&level) {
        true => time(level, run, write, read).unwrap_or(f64::MAX),
        false => f64::MAX,
    };
    let times: Vec<f64> = levels.iter().map(time).collect();
    let smallest = (0..levels.len()).min_by(|&a, &b| levels[a].bytes.total_cmp(&levels[b].bytes));
    let mut best = 0;
    for (level, time) in times.iter().enumerate() {
        if *time < WORTH * times[best] {
            best = level;
        }
    }
    if times[best] == f64::MAX {
        return smallest.unwrap_or(0);
    }
    // Of several that lose within the bound and take as long, the smallest: it bears states that turn out larger than was thought.
    let is_as_good = |&level: &usize| level > FLOATS && times[level] * WORTH <= times[best];
    let alike = (0..levels.len()).filter(|level| best > FLOATS && is_as_good(level));
    alike.min_by(|&a, &b| levels[a].bytes.total_cmp(&levels[b].bytes)).unwrap_or(best)
}

impl Runner<'_> {
    /// Whether filters are still to be chosen.
    pub(super) fn may_choose(&self, schedule: &dyn Schedule) -> bool {
        let chooses = self.options.measure && self.options.filters.levels() > 1;
        chooses && self.auto.level.is_none() && schedule.steps().is_some()
    }

    /// Chooses the filters of state `at` and those behind it, if it is time to, by the state in place: that of the next step for the first
    /// of all, because what a run begins with is often simpler than all that comes.
    pub(super) fn choose_filters(&mut self, schedule: &mut dyn Schedule, at: u64) -> Result<()> {
        let (Some(steps), Some(step)) = (schedule.steps(), self.step_time.median()) else {
            return Ok(());
        };
        let steps = if self.ended { self.end } else { steps };
        let begin = Instant::now();
        if !self.may_choose(schedule) {
            if self.ended || at < self.auto.next {
                return Ok(());
            }
            let Some(corrected) = self.auto.corrected() else { return Ok(()) };
            self.auto.next = at.saturating_mul(2).max(1);
            // Without a trial first: mostly nothing comes of it.
            let level = self.best_level(&corrected, self.auto.seconds, steps);
            self.auto.found = corrected;
            if self.auto.level == Some(level) {
                self.report.waited += begin.elapsed();
                return Ok(());
            }
        }
        self.auto.next = at.saturating_mul(2).max(1);
        // A rank that has failed says so here, before numbers of another kind are shared.
        self.reduce(&mut [0; 9])?;
        let (found, seconds) = self.try_levels(at, step, steps)?;
        let level = self.best_level(&found, seconds, steps);
        let filters = self.options.filters.at_level(level).divided(self.depth);
        (self.auto.found, self.auto.seconds) = (found.clone(), seconds);
        if self.auto.level.replace(level) != Some(level) {
            self.auto.stored = None;
            // What the trial took counts: the first state of all is encoded into memory that nobody has touched, which takes
            // three times as long as with those behind it, and a plan would keep too few of them.
            self.encode_time.forget();
            self.encode_time.add(found[level].encode);
            self.decode_time.forget();
            self.decode_time.add(found[level].decode);
            if let Some(plan) = schedule.budget() {
                // What states had with other filters says nothing of what they will have.
                plan.forget_sizes();
                plan.learn(at, found[level].bytes.ceil() as u64);
            }
            self.filters = Arc::new(filters);
            self.report.chosen.push((at, self.options.filters.at_level(level).describe()));
        }
        self.report.waited += begin.elapsed();
        Ok(())
    }

    fn best_level(&mut self, found: &[Effect], seconds: Seconds, steps: u64) -> usize {
        let [memory, disk] = seconds.limits;
        let run = Prospect {
            steps,
            state: 1,
            memory,
            disk,
            // The same whatever the filters are.
            reverse: 0.0,
            costs: Costs { step: seconds.step, ..Costs::default() },
            deps_are_state: !self.model.has_deps(),
            beside: self.options.beside,
        };
        shortest(found, &run, seconds.write, seconds.read)
    }

    /// What each level does with a state, and what steps and transfers take, at most of all ranks.
    fn try_levels(&mut self, at: u64, step: f64, steps: u64) -> Result<(Vec<Effect>, Seconds)> {
        let raw = total(&self.model.state()) as usize;
        let affordable = SHARE * 2.0 * steps as f64 * step / PER_BYTE;
        let least = if raw <= SMALL_STATE { raw } else { LEAST };
        let wanted = (affordable as usize).max(least).min(raw);
        let arrays = self.model.state();
        let sample =
            Sample::of(arrays.iter().map(|array| (array.layout(), &array.bytes[..])), wanted);
        drop(arrays);
        if self.tiers.limits[1] > 0 && self.tiers.writes.of(0).is_none() {
            self.tiers.measure_disk(&sample.bytes(PROBE));
        }
        let levels = self.options.filters.levels();
        let of_level = |level| self.options.filters.at_level(level).divided(self.depth);
        let tried: Vec<Result<Effect>> = (0..levels)
            .map(|level| sample.effect(&of_level(level), at, &mut self.scratch))
            .collect();
        // What all ranks see: the slowest and largest. A level that fails on one is none.
        let nanos = |seconds: f64| (seconds * 1e9) as u64;
        let mut told: Vec<u64> = Vec::with_capacity(3 * levels + 7);
        for outcome in &tried {
            let of = |e: &Effect| [e.bytes.ceil() as u64, nanos(e.encode), nanos(e.decode)];
            told.extend(outcome.as_ref().map_or([u64::MAX; 3], of));
        }
        // Reading is as fast as writing until it was measured.
        let (writes, reads) = (&self.tiers.writes, &self.tiers.reads);
        let of = |bytes: u64| nanos(writes.of(bytes).unwrap_or(0.0));
        let back = |bytes: u64| reads.of(bytes).map_or(of(bytes), nanos);
        told.extend([nanos(step).max(1), of(0), of(MANY), back(0), back(MANY)]);
        // The smallest of budgets is the complement of the largest complement.
        told.extend(self.tiers.limits.map(|bytes| !bytes));
        self.comm.all_reduce(Reduction::U64(&mut told), ReduceOp::Max)?;
        let seconds = |i: usize| told[i] as f64 * 1e-9;
        let speed = |i: usize| Speed {
            fixed: seconds(i),
            per_byte: (seconds(i + 1) - seconds(i)).max(0.0) / MANY as f64,
        };
        let level = |i: usize| match told[3 * i] {
            u64::MAX => Effect { bytes: f64::INFINITY, encode: 0.0, decode: 0.0 },
            bytes => Effect {
                bytes: bytes as f64,
                encode: seconds(3 * i + 1),
                decode: seconds(3 * i + 2),
            },
        };
        let found: Vec<Effect> = (0..levels).map(level).collect();
        if found.iter().all(|level| level.bytes.is_infinite()) {
            let failed = tried.into_iter().find_map(Result::err);
            return Err(failed.unwrap_or(AdjointError::OtherRank { at: "trial of filters".into() }));
        }
        let last = 3 * levels;
        let all = Seconds {
            step: seconds(last),
            write: speed(last + 1),
            read: speed(last + 3),
            limits: [!told[last + 5], !told[last + 6]],
        };
        let known = self.auto.level.zip(self.auto.stored);
        let found = match known {
            Some((level, stored)) => correct(found, level, stored as f64),
            None => found,
        };
        Ok((found, all))
    }
}

/// What a part said of the bytes of the level in use was right or not, and so for those that lose, if it does.
fn correct(mut found: Vec<Effect>, level: usize, stored: f64) -> Vec<Effect> {
    let (raw, factor) = (found[0].bytes, stored / found[level].bytes.max(1.0));
    let alike = |other: usize| other == level || (other > FLOATS && level > FLOATS);
    if level > 0 && factor.is_finite() && raw.is_finite() {
        for (_, effect) in found.iter_mut().enumerate().filter(|(i, _)| alike(*i)) {
            effect.bytes = (effect.bytes * factor).min(raw);
        }
    }
    found
}

/// So many bytes show the speed of a transfer in nanoseconds.
const MANY: u64 = 1 << 30;

/// What a step and transfers take, and how much room there is.
#[derive(Debug, Clone, Copy, Default)]
struct Seconds {
    step: f64,
    write: Speed,
    read: Speed,
    limits: [u64; 2],
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(step: f64) -> Prospect {
        let costs = Costs { step, ..Costs::default() };
        let (steps, memory, disk) = (100, 5_000, 0);
        let (state, reverse, deps_are_state, beside) = (1, 0.0, true, true);
        Prospect { steps, state, memory, disk, reverse, costs, deps_are_state, beside }
    }

    /// Raw, lossless and bounded.
    const LEVELS: [Effect; 3] = [
        Effect { bytes: 1000.0, encode: 1e-6, decode: 1e-6 },
        Effect { bytes: 500.0, encode: 4e-3, decode: 1e-3 },
        Effect { bytes: 100.0, encode: 10e-3, decode: 5e-3 },
    ];

    #[test]
    fn what_is_known_of_one_that_loses_says_something_of_the_others() {
        let of = |bytes| Effect { bytes, encode: 1.0, decode: 1.0 };
        let found = vec![of(100.0), of(60.0), of(50.0), of(20.0), of(10.0)];
        let bytes = |level, stored| {
            let found = correct(found.clone(), level, stored);
            found.iter().map(|effect| effect.bytes).collect::<Vec<_>>()
        };
        assert_eq!(bytes(3, 40.0), [100.0, 60.0, 50.0, 40.0, 20.0]);
        assert_eq!(bytes(4, 200.0), [100.0, 60.0, 50.0, 100.0, 100.0]);
        assert_eq!(bytes(1, 30.0), [100.0, 30.0, 50.0, 20.0, 10.0]);
        assert_eq!(bytes(0, 90.0), [100.0, 60.0, 50.0, 20.0, 10.0]);
    }

    #[test]
    fn of_two_that_lose_and_take_as_long_it_is_the_smaller() {
        let [raw, lossless, _] = LEVELS;
        let of = |bytes, encode| Effect { bytes, encode, decode: 5e-3 };
        let floats = of(500.0, 2e-3);
        let free = Speed::default();
        // Room for all of either: steps of a second, and what encoding takes is nothing beside them.
        let roomy = Prospect { memory: 20_000, ..run(1.0) };
        let chosen = |zfp, sz| shortest(&[raw, lossless, floats, zfp, sz], &roomy, free, free);
        assert_eq!(chosen(of(150.0, 9e-3), of(50.0, 10e-3)), 4);
        assert_eq!(chosen(of(50.0, 10e-3), of(150.0, 9e-3)), 3);
        // One that takes longer is not better for being smaller.
        assert_eq!(chosen(of(150.0, 9e-3), of(50.0, 5.0)), 3);
    }

    #[test]
    fn filters_are_taken_where_they_pay_and_left_out_where_not() {
        let free = Speed::default();
        // Steps of a second: fewer of them are worth any encoding.
        assert_eq!(shortest(&LEVELS, &run(1.0), free, free), 2);
        // Steps of ten microseconds: computing again is cheaper than decoding.
        assert_eq!(shortest(&LEVELS, &run(1e-5), free, free), 0);
        // Everything fits as it is.
        let roomy = Prospect { memory: 1_000_000, ..run(1.0) };
        assert_eq!(shortest(&LEVELS, &roomy, free, free), 0);
        // On a slow disk what is written must be small: 1 s for a raw state, steps of 0.1 s.
        let on_disk = Prospect { memory: 0, disk: 1_000_000, ..run(0.1) };
        let slow = Speed { fixed: 0.0, per_byte: 1e-3 };
        assert_eq!(shortest(&LEVELS, &on_disk, slow, slow), 2);
        // A level that failed somewhere is none.
        let failed = Effect { bytes: f64::INFINITY, encode: 0.0, decode: 0.0 };
        assert_eq!(shortest(&[LEVELS[0], failed, LEVELS[2]], &run(1.0), free, free), 2);
        // Where none seems to fit, the smallest may.
        let tight = Prospect { memory: 90, ..run(1.0) };
        assert_eq!(shortest(&LEVELS, &tight, free, free), 2);
    }
}
