//! `auto`: which filters make the run shortest, by what they do with its states and what its steps take.

use std::sync::Arc;
use std::time::{Duration, Instant};

use esker_codec::Scratch;
use esker_comm::{ReduceOp, Reduction};

use super::Runner;
use crate::error::{AdjointError, Result};
use crate::filters::Filters;
use crate::options::Options;
use crate::schedule::{Budget, Costs, Place, Prospect, Schedule};
use crate::segment::{self, Kind, Snapshot, Title};

/// Longer runs are weighed by a shorter one with as much room for each step.
const WEIGHED: u64 = 400;

/// The filters of the first state, before anything was measured: none, unless there is room for few states only.
pub(super) fn first(options: &Options, state: u64) -> Filters {
    let disk = if options.folder.is_some() { options.disk } else { 0 };
    let is_tight = options.memory.saturating_add(disk) < state.saturating_mul(4);
    options.filters.at_level(usize::from(is_tight))
}

/// What a level does with a state: bytes, and nanoseconds of encoding and decoding.
fn trial(
    title: &Title,
    snapshot: &Snapshot,
    filters: &Filters,
    scratch: &mut Scratch,
) -> Result<[u64; 3]> {
    let nanos = |time: Duration| time.as_nanos().min(u128::from(u64::MAX)) as u64;
    let begin = Instant::now();
    let bytes = segment::encode(title, snapshot, |layout| filters.for_layout(layout), scratch)?;
    let encode = nanos(begin.elapsed());
    let begin = Instant::now();
    for stored in segment::open(&bytes, title, Place::Memory)? {
        let mut out = vec![0; stored.layout.bytes().unwrap_or(0)];
        stored.decode(&mut out, title.step, Place::Memory, scratch)?;
    }
    Ok([bytes.len() as u64, encode, nanos(begin.elapsed())])
}

/// The level with which a run is shortest. `levels` has what [`trial`] gives.
fn shortest(levels: &[[u64; 3]], run: &Prospect, write: f64, read: f64) -> usize {
    // A long run has the same shape as a short one with its share of the budgets.
    let steps = run.steps.min(WEIGHED);
    let share = |bytes: u64| (bytes as f64 * steps as f64 / run.steps as f64) as u64;
    let time = |&[bytes, encode, decode]: &[u64; 3]| {
        let costs = Costs {
            step: run.costs.step,
            encode: encode as f64 * 1e-9,
            decode: decode as f64 * 1e-9,
            write: bytes as f64 * write,
            read: bytes as f64 * read,
        };
        let (memory, disk) = (share(run.memory).max(run.memory.min(bytes)), share(run.disk));
        let prospect = Prospect { steps, state: bytes, memory, disk, costs, ..*run };
        let plan = Budget::new(steps, bytes, memory, disk).ok()?;
        let mut plan = plan.deps_are_state(run.deps_are_state);
        plan.learn(0, bytes);
        plan.set_costs(costs);
        Some(prospect.forecast("Budget", &mut plan).ok()?.seconds())
    };
    let times: Vec<f64> = levels.iter().map(|level| time(level).unwrap_or(f64::MAX)).collect();
    let mut best = 0;
    for (level, time) in times.iter().enumerate() {
        // More filters must pay for themselves: times are measured, and waver.
        if *time < 0.98 * times[best] {
            best = level;
        }
    }
    best
}

impl Runner<'_> {
    /// Tries the levels on the state in place: in the first forward run, at distances that double.
    pub(super) fn try_filters(&mut self, schedule: &mut dyn Schedule, at: u64) -> Result<()> {
        let levels = self.options.filters.levels();
        let (Some(steps), Some(step_time)) = (schedule.steps(), self.step_time) else {
            return Ok(());
        };
        if levels == 1 || self.ended || at < self.next_trial || !self.options.measure {
            return Ok(());
        }
        self.next_trial = at.saturating_mul(2);
        let begin = Instant::now();
        let mut snapshot = self.spare.pop().unwrap_or_default();
        snapshot.take(&self.model.state());
        let title = self.tiers.title(&(at, Kind::Restart));
        let of_level = |level| self.options.filters.at_level(level).divided(self.depth);
        let tried: Vec<Result<[u64; 3]>> = (0..levels)
            .map(|level| trial(&title, &snapshot, &of_level(level), &mut self.scratch))
            .collect();
        self.spare = vec![snapshot];
        // What all ranks see: the slowest and largest. A level that fails on one is none.
        let mut told: Vec<u64> = Vec::with_capacity(3 * levels + 3);
        for outcome in &tried {
            told.extend(outcome.as_ref().map_or([u64::MAX; 3], |found| *found));
        }
        let per_byte = |time: Option<Duration>, bytes: u64| {
            time.map_or(0, |time| (time.as_nanos() as f64 * 1e6 / bytes.max(1) as f64) as u64)
        };
        told.push(step_time.as_nanos().clamp(1, u128::from(u64::MAX)) as u64);
        told.push(per_byte(self.tiers.write_time, self.tiers.write_bytes));
        self.comm.all_reduce(Reduction::U64(&mut told), ReduceOp::Max)?;
        let found: Vec<[u64; 3]> = told[..3 * levels].as_chunks::<3>().0.to_vec();
        let (step, per_byte) =
            (told[3 * levels] as f64 * 1e-9, told[3 * levels + 1] as f64 * 1e-15);
        if found.iter().all(|level| level[0] == u64::MAX) {
            let failed = tried.into_iter().find_map(Result::err);
            return Err(failed.unwrap_or(AdjointError::OtherRank { at: "trial of filters".into() }));
        }
        let [memory, disk] = self.tiers.limits;
        let run = Prospect {
            steps,
            state: 1,
            memory,
            disk,
            // The same whatever the filters are.
            reverse: 0.0,
            costs: Costs { step, ..Costs::default() },
            deps_are_state: !self.model.has_deps(),
            beside: true,
        };
        // Reading was not measured yet: as fast as writing.
        let level = shortest(&found, &run, per_byte, per_byte);
        let filters = of_level(level);
        if filters != *self.filters
            && let Some(plan) = schedule.budget()
        {
            // What states had with other filters says nothing of what they will have.
            plan.forget_sizes();
            plan.learn(at, found[level][0]);
        }
        self.filters = Arc::new(filters);
        self.report.waited += begin.elapsed();
        Ok(())
    }
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

    /// Raw, lossless and bounded: bytes of a state, nanoseconds of encoding and decoding.
    const LEVELS: [[u64; 3]; 3] =
        [[1000, 1_000, 1_000], [500, 4_000_000, 1_000_000], [100, 10_000_000, 5_000_000]];

    #[test]
    fn filters_are_taken_where_they_pay_and_left_out_where_not() {
        // Steps of a second: fewer of them are worth any encoding.
        assert_eq!(shortest(&LEVELS, &run(1.0), 0.0, 0.0), 2);
        // Steps of ten microseconds: computing again is cheaper than decoding.
        assert_eq!(shortest(&LEVELS, &run(1e-5), 0.0, 0.0), 0);
        // Everything fits as it is.
        let roomy = Prospect { memory: 1_000_000, ..run(1.0) };
        assert_eq!(shortest(&LEVELS, &roomy, 0.0, 0.0), 0);
        // On a slow disk what is written must be small: 1 s for a raw state, steps of 0.1 s.
        let on_disk = Prospect { memory: 0, disk: 1_000_000, ..run(0.1) };
        assert_eq!(shortest(&LEVELS, &on_disk, 1e-3, 1e-3), 2);
        // A level that failed somewhere is none.
        let failed = [LEVELS[0], [u64::MAX; 3], LEVELS[2]];
        assert_eq!(shortest(&failed, &run(1.0), 0.0, 0.0), 2);
    }
}
