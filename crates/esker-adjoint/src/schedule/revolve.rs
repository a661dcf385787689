//! Binomial checkpoints in memory and on disk.

use super::binomial::{self, Trajectory};
use super::reversal::{Decision, Policy, Reversal, View};
use super::{Action, Data, Place, Result, Schedule, ScheduleError, same_steps};

/// Revolve: with s checkpoints, the least number of forward steps (Griewank and Walther, 2000).
///
/// Checkpoints are a stack, and those of some heights are written and read more often than those of
/// others. With a share of them on disk (multistage; Stumm and Walther, 2009), the heights with the
/// least traffic are there. No tables: a plan of a million steps needs no memory.
#[derive(Debug)]
pub struct Revolve {
    steps: u64,
    reversal: Reversal<Binomial>,
    done: bool,
}

/// The decisions of a binomial schedule.
#[derive(Debug)]
pub(crate) struct Binomial {
    /// The place of each checkpoint by its height, lowest first.
    pub(crate) places: Vec<Place>,
    pub(crate) trajectory: Trajectory,
}

impl Policy for Binomial {
    fn decide(&mut self, view: &View<'_>) -> Decision {
        let (left, height) = (view.left(), view.held.len());
        if left == 1 {
            return Decision::Record;
        }
        let free = (self.places.len().saturating_sub(height)) as u64;
        if view.kept {
            return Decision::Advance { steps: binomial::advance(left, free + 1, self.trajectory) };
        }
        match self.places.get(height) {
            Some(&place) => {
                let steps = binomial::advance(left, free, self.trajectory);
                Decision::Store { kind: Data::Restart, place, steps }
            }
            None => Decision::Advance { steps: left - 1 },
        }
    }

    fn releases(&mut self, view: &View<'_>) -> bool {
        view.left() == 1
    }
}

/// How often the checkpoints of each height are written and read.
fn traffic(steps: u64, slots: u64, trajectory: Trajectory) -> Vec<u64> {
    let places = vec![Place::Memory; slots as usize];
    let mut counts = vec![0; slots as usize];
    let mut reversal = Reversal::new(Binomial { places, trajectory }, steps);
    loop {
        // The height before a load is that of the checkpoint; after a store, that of the next one.
        let height = reversal.held.len();
        match reversal.next() {
            Some(Action::Forward { restart: true, .. }) => counts[height] += 1,
            Some(Action::Copy { .. } | Action::Move { .. }) => counts[height - 1] += 1,
            Some(_) => {}
            None => return counts,
        }
    }
}

impl Revolve {
    /// `slots` checkpoints in memory.
    pub fn new(steps: u64, slots: u64) -> Result<Revolve> {
        Revolve::multistage(steps, slots, 0, Trajectory::Maximum)
    }

    /// `memory` checkpoints in memory and `disk` on disk.
    pub fn multistage(
        steps: u64,
        memory: u64,
        disk: u64,
        trajectory: Trajectory,
    ) -> Result<Revolve> {
        let slots = checked(steps, memory.saturating_add(disk))?;
        let in_memory = memory.min(slots) as usize;
        let mut places = vec![Place::Memory; slots as usize];
        if (in_memory as u64) < slots {
            let counts = traffic(steps, slots, trajectory);
            let mut heights: Vec<usize> = (0..slots as usize).collect();
            // Of equals the higher one is in memory: it is written and read sooner.
            heights.sort_by_key(|&height| std::cmp::Reverse((counts[height], height)));
            heights[in_memory..].iter().for_each(|&height| places[height] = Place::Disk);
        }
        let reversal = Reversal::new(Binomial { places, trajectory }, steps);
        Ok(Revolve { steps, reversal, done: false })
    }
}

/// Checkpoints that can be of use, if there are enough.
pub(crate) fn checked(steps: u64, slots: u64) -> Result<u64> {
    match (steps, slots) {
        (0, _) => Err(ScheduleError::NoSteps),
        (2.., 0) => Err(ScheduleError::TooFew { steps, slots, least: 1 }),
        _ => Ok(slots.min(steps - 1)),
    }
}

impl Schedule for Revolve {
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
        self.reversal.policy.places.contains(&place)
    }

    fn is_exhausted(&self) -> bool {
        self.done
    }
}

/// The next action of a run, and the end of it once.
pub(crate) fn next_or_end<P: Policy>(
    reversal: &mut Reversal<P>,
    done: &mut bool,
) -> Option<Action> {
    if *done {
        return None;
    }
    reversal.next().or_else(|| {
        *done = true;
        Some(Action::EndReverse)
    })
}
