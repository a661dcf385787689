//! Disk-revolve with checkpoints on disk at equal distances.

use super::binomial::{self, Trajectory};
use super::hierarchy::StepCosts;
use super::reversal::Reversal;
use super::revolve::{Binomial, checked};
use super::{Action, Data, Place, Result, Schedule, ScheduleError, same_steps};

/// A checkpoint on disk every so many steps, and Revolve in memory between them (Aupy and Herrmann,
/// 2017). The distance is that of the least time per step; no tables are needed.
#[derive(Debug)]
pub struct Periodic {
    steps: u64,
    memory: u64,
    period: u64,
    /// The state at which the segment begins that memory alone serves.
    last: u64,
    phase: Phase,
}

#[derive(Debug)]
enum Phase {
    Forward(u64),
    /// The last segment, from a state that is not kept; or a segment whose checkpoint was loaded.
    Segment(Reversal<Binomial>),
    Between(u64),
    Done,
}

/// The distance with the least time per step: a write, a read, and the forward steps.
fn best_period(steps: u64, memory: u64, costs: StepCosts) -> u64 {
    let mean = |m: u64| {
        let runs = binomial::forward_steps(m, memory)?;
        let time = (runs + m) as f64 * costs.forward + costs.write + costs.read;
        Some(time / m as f64)
    };
    let mut best = (f64::INFINITY, 1);
    for m in 1..=steps {
        match mean(m) {
            Some(time) if time < best.0 => best = (time, m),
            Some(_) => {}
            None => break,
        }
        // From here on, steps alone cost more a step than the best has with its transfers.
        if m as f64 > 4.0 * best.1 as f64 + 64.0 {
            break;
        }
    }
    best.1
}

impl Periodic {
    /// `memory` checkpoints in memory; any number on disk.
    pub fn new(steps: u64, memory: u64, costs: StepCosts) -> Result<Periodic> {
        costs.check()?;
        checked(steps, memory)?;
        if steps > 1 && memory == 0 {
            return Err(ScheduleError::TooFew { steps, slots: 0, least: 1 });
        }
        let period = best_period(steps, memory, costs);
        let last = (steps - 1) / period * period;
        Ok(Periodic { steps, memory, period, last, phase: Phase::Forward(0) })
    }

    /// The distance of checkpoints on disk.
    pub fn period(&self) -> u64 {
        self.period
    }

    fn in_memory(&self, at: u64, end: u64, first: bool) -> Reversal<Binomial> {
        let slots = self.memory.min((end - at).saturating_sub(1)) as usize;
        let (places, trajectory) = (vec![Place::Memory; slots], Trajectory::Maximum);
        Reversal::from(Binomial { places, trajectory }, Some(at), end, Vec::new(), first)
    }
}

impl Schedule for Periodic {
    fn next_action(&mut self) -> Option<Action> {
        loop {
            match &mut self.phase {
                Phase::Forward(at) if *at == self.last => {
                    let at = *at;
                    self.phase = Phase::Segment(self.in_memory(at, self.steps, true));
                }
                Phase::Forward(at) => {
                    let (from, to) = (*at, *at + self.period);
                    *at = to;
                    let place = Place::Disk;
                    return Some(Action::Forward { from, to, restart: true, deps: false, place });
                }
                Phase::Segment(segment) => match segment.next() {
                    Some(action) => return Some(action),
                    None => self.phase = Phase::Between(segment.end),
                },
                Phase::Between(0) => {
                    self.phase = Phase::Done;
                    return Some(Action::EndReverse);
                }
                Phase::Between(end) => {
                    let (end, step) = (*end, *end - self.period);
                    self.phase = Phase::Segment(self.in_memory(step, end, false));
                    let (what, from, to) = (Data::Restart, Place::Disk, Place::Work);
                    return Some(Action::Move { step, what, from, to });
                }
                Phase::Done => return None,
            }
        }
    }

    fn steps(&self) -> Option<u64> {
        Some(self.steps)
    }

    fn finalize(&mut self, steps: u64) -> Result<()> {
        same_steps(self.steps, steps)
    }

    fn uses(&self, place: Place) -> bool {
        match place {
            Place::Memory => self.memory > 0,
            Place::Disk => self.last > 0,
            Place::Work | Place::Nowhere => false,
        }
    }

    fn is_exhausted(&self) -> bool {
        matches!(self.phase, Phase::Done)
    }
}
