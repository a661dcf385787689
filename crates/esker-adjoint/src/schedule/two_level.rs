//! Checkpoints on disk at equal distances, binomial ones between them.

use super::binomial::Trajectory;
use super::reversal::{Held, Reversal};
use super::revolve::Binomial;
use super::{Action, Data, Place, Result, Schedule, ScheduleError, same_steps};

/// A checkpoint on disk every `period` steps; between two of them, Revolve with more checkpoints. The
/// number of steps need not be known before the model ends, and the run may be reversed again: what
/// is on disk stays.
#[derive(Debug)]
pub struct TwoLevel {
    period: u64,
    slots: u64,
    place: Place,
    trajectory: Trajectory,
    steps: Option<u64>,
    phase: Phase,
}

#[derive(Debug)]
enum Phase {
    /// The model is at this state, a multiple of the period.
    Forward(u64),
    /// Everything from this state on is reversed.
    Between(u64),
    Segment(Reversal<Binomial>),
}

impl TwoLevel {
    /// `slots` checkpoints in `place` beside that on disk.
    pub fn new(period: u64, slots: u64, place: Place, trajectory: Trajectory) -> Result<TwoLevel> {
        if period == 0 {
            return Err(ScheduleError::NoPeriod);
        }
        let phase = Phase::Forward(0);
        Ok(TwoLevel { period, slots, place, trajectory, steps: None, phase })
    }
}

/// Reverses the steps from a checkpoint on disk up to `end`; it stays.
pub(crate) fn between(
    step: u64,
    end: u64,
    slots: u64,
    place: Place,
    trajectory: Trajectory,
) -> Reversal<Binomial> {
    let slots = slots.min(end - step) as usize;
    let places = std::iter::once(Place::Disk).chain(vec![place; slots]).collect();
    let held = vec![Held { step, place: Place::Disk, kind: Data::Restart }];
    let mut segment = Reversal::from(Binomial { places, trajectory }, None, end, held, false);
    segment.segment(end);
    segment
}

impl Schedule for TwoLevel {
    fn next_action(&mut self) -> Option<Action> {
        loop {
            match &mut self.phase {
                Phase::Forward(at) => {
                    if self.steps.is_some_and(|steps| *at >= steps) {
                        self.phase = Phase::Between(self.steps.unwrap_or(0));
                        return Some(Action::EndForward);
                    }
                    let (from, to) = (*at, at.saturating_add(self.period));
                    *at = to;
                    let to = self.steps.map_or(to, |steps| steps.min(to));
                    let place = Place::Disk;
                    return Some(Action::Forward { from, to, restart: true, deps: false, place });
                }
                Phase::Between(0) => {
                    // Ready to be reversed again.
                    self.phase = Phase::Between(self.steps.unwrap_or(0));
                    return Some(Action::EndReverse);
                }
                Phase::Between(end) => {
                    let (end, step) = (*end, (*end - 1) / self.period * self.period);
                    let (slots, place) = (self.slots, self.place);
                    self.phase = Phase::Segment(between(step, end, slots, place, self.trajectory));
                }
                Phase::Segment(segment) => match segment.next() {
                    Some(action) => return Some(action),
                    None => self.phase = Phase::Between(segment.end),
                },
            }
        }
    }

    fn steps(&self) -> Option<u64> {
        self.steps
    }

    fn finalize(&mut self, steps: u64) -> Result<()> {
        match self.steps {
            Some(known) => same_steps(known, steps),
            None if steps == 0 => Err(ScheduleError::NoSteps),
            None => {
                self.steps = Some(steps);
                Ok(())
            }
        }
    }

    fn uses(&self, place: Place) -> bool {
        place == Place::Disk || (place == self.place && self.slots > 0)
    }

    fn is_exhausted(&self) -> bool {
        false
    }
}
