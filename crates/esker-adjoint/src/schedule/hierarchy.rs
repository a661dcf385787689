//! Memory is free and disk costs time: H-Revolve and disk-revolve.

use super::binomial::{self, Trajectory};
use super::least_sum::least_sum;
use super::reversal::{Decision, Policy, Reversal, View};
use super::revolve::next_or_end;
use super::{Action, Data, Place, Result, Schedule, ScheduleError, same_steps};

/// What a step and a transfer cost, in any unit of time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StepCosts {
    /// A forward step.
    pub forward: f64,
    /// Writing a checkpoint to disk.
    pub write: f64,
    /// Reading it.
    pub read: f64,
}

impl Default for StepCosts {
    /// Those of the literature: a transfer takes as long as two steps.
    fn default() -> Self {
        StepCosts { forward: 1.0, write: 2.0, read: 2.0 }
    }
}

impl StepCosts {
    pub(crate) fn check(&self) -> Result<()> {
        let named = [("forward", self.forward), ("write", self.write), ("read", self.read)];
        for (name, value) in named {
            let good = value.is_finite() && value >= 0.0 && (name != "forward" || value > 0.0);
            if !good {
                return Err(ScheduleError::BadCost { name, value });
            }
        }
        Ok(())
    }
}

/// H-Revolve (Herrmann and Pallez, 2020): some checkpoints in memory, some on disk, and the least time
/// when transfers to and from disk take time. Without a limit of those on disk it is
/// disk-revolve (Aupy and others, 2016).
///
/// Between two checkpoints on disk, memory is used as Revolve does. Planning takes
/// steps² × checkpoints on disk operations.
#[derive(Debug)]
pub struct Hierarchy {
    steps: u64,
    reversal: Reversal<Levels>,
    done: bool,
}

/// Larger tables take minutes.
const MOST: u64 = 20_000;

/// The best decisions with c checkpoints on disk.
#[derive(Debug, Clone)]
struct Row {
    /// From a state that is not kept: 0, memory alone; else keep it on disk and run so far.
    fresh: Vec<u32>,
    /// From a state that is kept on disk and was just read: 0, memory alone; else run so far.
    kept: Vec<u32>,
}

#[derive(Debug)]
struct Levels {
    memory: u64,
    /// `None`: without a limit.
    disk: Option<u64>,
    rows: Vec<Row>,
    /// Of the whole run.
    cost: f64,
}

impl Levels {
    fn new(steps: u64, memory: u64, disk: Option<u64>, costs: StepCosts) -> Levels {
        let width = steps as usize + 1;
        let alone: Vec<f64> = (0..=steps)
            .map(|n| binomial::forward_steps(n, memory))
            .map(|runs| runs.map_or(f64::INFINITY, |runs| runs as f64 * costs.forward))
            .collect();
        let nothing = vec![0; width];
        let mut rows = vec![Row { fresh: nothing.clone(), kept: nothing.clone() }];
        let count = disk.map_or(1, |disk| disk.min(steps.saturating_sub(1)));
        // The cost of n steps from a state that is not kept, last first: the steps behind a split of n are then in order.
        let mut behind: Vec<f64> = alone.iter().rev().copied().collect();
        // What it costs to run m steps and to come back for them from a state on disk.
        let there_and_back = |m: usize, kept: f64| m as f64 * costs.forward + costs.read + kept;
        let mut cost = alone[width - 1];
        for _ in 0..count {
            let mut row = Row { fresh: nothing.clone(), kept: nothing.clone() };
            let mut before: Vec<f64> = Vec::with_capacity(width);
            before.extend((0..width.min(2)).map(|m| there_and_back(m, alone[m])));
            let mut fresh = alone.clone();
            for n in 2..width {
                let (least, at) = least_sum(&before[1..n], &behind[width - n..width - 1]);
                let mut kept = alone[n];
                if least < alone[n] {
                    (kept, row.kept[n]) = (least, at as u32 + 1);
                }
                before.push(there_and_back(n, kept));
                if costs.write + least < alone[n] {
                    (fresh[n], row.fresh[n]) = (costs.write + least, at as u32 + 1);
                }
                if disk.is_none() {
                    // As many as one likes: what is behind a split may use the disk as well as this.
                    behind[width - 1 - n] = fresh[n];
                }
            }
            cost = fresh[width - 1];
            behind.iter_mut().zip(fresh.iter().rev()).for_each(|(to, from)| *to = *from);
            rows.push(row);
        }
        Levels { memory, disk, rows, cost }
    }

    /// The row for so many free checkpoints on disk.
    fn row(&self, free: u64) -> &Row {
        let last = self.rows.len() - 1;
        &self.rows[if self.disk.is_none() { last } else { last.min(free as usize) }]
    }

    fn free_on_disk(&self, view: &View<'_>) -> u64 {
        self.disk.map_or(0, |disk| disk - view.count(Place::Disk))
    }

    /// Revolve in memory, from a state that memory does not keep.
    fn in_memory(&self, view: &View<'_>) -> Decision {
        let (left, free) = (view.left(), self.memory - view.count(Place::Memory));
        if free == 0 {
            return Decision::Advance { steps: left - 1 };
        }
        let steps = binomial::advance(left, free, Trajectory::Maximum);
        Decision::Store { kind: Data::Restart, place: Place::Memory, steps }
    }
}

impl Policy for Levels {
    fn decide(&mut self, view: &View<'_>) -> Decision {
        let left = view.left();
        if left == 1 {
            return Decision::Record;
        }
        if view.held.last().is_some_and(|top| top.place == Place::Memory) {
            if view.kept {
                let with_its_own = self.memory - view.count(Place::Memory) + 1;
                let steps = binomial::advance(left, with_its_own, Trajectory::Maximum);
                return Decision::Advance { steps };
            }
            return self.in_memory(view);
        }
        let free = self.free_on_disk(view);
        if view.kept {
            // It is kept on disk because memory alone would cost more.
            let steps = self.row(free + 1).kept[left as usize];
            return Decision::Advance { steps: u64::from(steps).max(1) };
        }
        match self.row(free).fresh[left as usize] {
            0 => self.in_memory(view),
            steps => {
                let place = Place::Disk;
                Decision::Store { kind: Data::Restart, place, steps: steps.into() }
            }
        }
    }

    fn releases(&mut self, view: &View<'_>) -> bool {
        let left = view.left();
        if view.held.last().is_some_and(|top| top.place == Place::Memory) {
            return left == 1;
        }
        let free = self.free_on_disk(view);
        left == 1 || self.row(free + 1).kept[left as usize] == 0
    }
}

impl Hierarchy {
    /// `memory` checkpoints in memory and `disk` on disk; without a limit there if it is `None`.
    pub fn new(steps: u64, memory: u64, disk: Option<u64>, costs: StepCosts) -> Result<Hierarchy> {
        costs.check()?;
        match (steps, memory, disk) {
            (0, ..) => return Err(ScheduleError::NoSteps),
            (2.., 0, Some(0)) => return Err(ScheduleError::TooFew { steps, slots: 0, least: 1 }),
            (MOST.., ..) => return Err(ScheduleError::TooLong { steps, most: MOST - 1 }),
            _ => {}
        }
        let reversal = Reversal::new(Levels::new(steps, memory, disk, costs), steps);
        Ok(Hierarchy { steps, reversal, done: false })
    }

    /// The least time that reversal takes, without that of the adjoint itself.
    pub fn cost(&self) -> f64 {
        self.reversal.policy.cost
    }
}

impl Schedule for Hierarchy {
    fn next_action(&mut self) -> Option<Action> {
        next_or_end(&mut self.reversal, &mut self.done)
    }

    fn steps(&self) -> Option<u64> {
        Some(self.steps)
    }

    fn finalize(&mut self, steps: u64) -> Result<()> {
        same_steps(self.steps, steps)
    }

    fn uses(&self, place: Place) -> bool {
        let policy = &self.reversal.policy;
        match place {
            Place::Memory => policy.memory > 0,
            Place::Disk => policy.disk != Some(0),
            Place::Work | Place::Nowhere => false,
        }
    }

    fn is_exhausted(&self) -> bool {
        self.done
    }
}
