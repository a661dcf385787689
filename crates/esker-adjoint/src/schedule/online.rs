//! Checkpoints for a model whose number of steps is known only when it ends.

use super::binomial::Trajectory;
use super::reversal::{Held, Reversal};
use super::revolve::Binomial;
use super::{Action, Data, Place, Result, Schedule, ScheduleError, same_steps};

/// `slots` checkpoints that are at good places whenever the model ends.
///
/// While the model runs, checkpoints have levels (Wang, Moin and Iaccarino, 2009): one that has a
/// later one of a higher level may be given up for a new one of level 0; if there is none, the
/// latest moves on to the new place and rises by one. The latest place needs no checkpoint while
/// the dependencies of its step are in work, so the rule is that of one checkpoint more: a
/// state is kept only if the rule, one step later, still wants it. So no step is run more
/// often than in the best plan of somebody who knows the end. What is kept includes the dependencies of its
/// step.
#[derive(Debug)]
pub struct Online {
    slots: usize,
    place: Place,
    /// Places that the rule wants, with their levels; the last is where the model is.
    wanted: Vec<(u64, u64)>,
    kept: Vec<u64>,
    steps: Option<u64>,
    phase: Phase,
}

#[derive(Debug)]
enum Phase {
    Forward,
    /// Step `end - 1` is recorded in work.
    Recorded(u64),
    /// Everything from this state on is reversed.
    Between(u64),
    Loaded(u64),
    Segment(Reversal<Binomial>),
    Done,
}

impl Online {
    /// Checkpoints in `place`.
    pub fn new(slots: u64, place: Place) -> Result<Online> {
        let wanted = vec![(0, u64::MAX)];
        let slots = usize::try_from(slots).ok().filter(|&slots| slots > 0);
        let too_few = ScheduleError::TooFew { steps: 2, slots: 0, least: 1 };
        let (slots, steps, phase) = (slots.ok_or(too_few)?, None, Phase::Forward);
        Ok(Online { slots, place, wanted, kept: Vec::new(), steps, phase })
    }

    fn at(&self) -> u64 {
        self.wanted.last().map_or(0, |&(step, _)| step)
    }

    /// Which place the rule gives up for the next one: the latest that has a higher one behind it, or
    /// else the last.
    fn victim(&self) -> Option<usize> {
        if self.wanted.len() <= self.slots {
            return None;
        }
        let mut highest = 0;
        for (i, &(_, level)) in self.wanted.iter().enumerate().rev() {
            if level < highest {
                return Some(i);
            }
            highest = level;
        }
        Some(self.wanted.len() - 1)
    }

    /// Makes the next state the current one; gives the place that is no longer wanted.
    fn move_on(&mut self) -> Option<u64> {
        let (next, victim) = (self.at() + 1, self.victim());
        let (step, level) = victim.map(|i| self.wanted.remove(i)).unzip();
        let was_last = victim == Some(self.wanted.len());
        self.wanted.push((next, if was_last { level.unwrap_or(0) + 1 } else { 0 }));
        step
    }

    fn forward(&mut self) -> Action {
        let from = self.at();
        let unwanted = self.move_on();
        let to = from + 1;
        if unwanted == Some(from) {
            let place = Place::Work;
            return Action::Forward { from, to, restart: false, deps: true, place };
        }
        self.kept.push(from);
        Action::Forward { from, to, restart: true, deps: true, place: self.place }
    }

    /// Gives up what the next step's checkpoint will replace.
    fn make_room(&mut self) -> Option<Action> {
        if self.kept.len() < self.slots {
            return None;
        }
        let (step, _) = self.wanted[self.victim()?];
        if step == self.at() {
            return None;
        }
        self.kept.retain(|&kept| kept != step);
        let (what, from, to) = (Data::Both, self.place, Place::Nowhere);
        Some(Action::Move { step, what, from, to })
    }

    fn segment(&self, end: u64) -> Reversal<Binomial> {
        let held: Vec<Held> = self
            .kept
            .iter()
            .map(|&step| Held { step, place: self.place, kind: Data::Restart })
            .collect();
        let places = vec![self.place; self.slots];
        let policy = Binomial { places, trajectory: Trajectory::Maximum };
        let mut segment = Reversal::from(policy, None, end, held, false);
        segment.segment(end);
        segment
    }
}

impl Schedule for Online {
    fn next_action(&mut self) -> Option<Action> {
        loop {
            match &mut self.phase {
                Phase::Forward => {
                    let Some(steps) = self.steps else {
                        return Some(self.make_room().unwrap_or_else(|| self.forward()));
                    };
                    self.phase = match self.kept.last() {
                        // Its checkpoint has the dependencies.
                        Some(&step) if step + 1 == steps => Phase::Between(steps),
                        _ => Phase::Recorded(steps),
                    };
                    return Some(Action::EndForward);
                }
                Phase::Recorded(end) => {
                    let from = *end;
                    self.phase = Phase::Between(from - 1);
                    return Some(Action::Reverse { from, to: from - 1 });
                }
                Phase::Between(0) => {
                    self.phase = Phase::Done;
                    return Some(Action::EndReverse);
                }
                Phase::Between(end) => {
                    let end = *end;
                    let step = self.kept.last().copied().unwrap_or(0);
                    if step + 1 == end {
                        self.kept.pop();
                        self.phase = Phase::Loaded(step);
                        let (what, from, to) = (Data::Both, self.place, Place::Work);
                        return Some(Action::Move { step, what, from, to });
                    }
                    self.phase = Phase::Segment(self.segment(end));
                }
                Phase::Loaded(step) => {
                    let to = *step;
                    self.phase = Phase::Between(to);
                    return Some(Action::Reverse { from: to + 1, to });
                }
                Phase::Segment(segment) => {
                    // The step of the checkpoint itself is recorded in it.
                    let base = self.kept.last().copied().unwrap_or(0);
                    if segment.end == base + 1 && segment.at.is_none() && segment.is_idle() {
                        self.phase = Phase::Between(base + 1);
                        continue;
                    }
                    match segment.next() {
                        Some(action) => return Some(action),
                        None => self.phase = Phase::Between(base + 1),
                    }
                }
                Phase::Done => return None,
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
            // Another end than where it has led the model.
            None if steps != self.at() => {
                Err(ScheduleError::OtherEnd { promised: self.at(), found: steps })
            }
            None => {
                self.steps = Some(steps);
                Ok(())
            }
        }
    }

    fn uses(&self, place: Place) -> bool {
        place == self.place
    }

    fn is_exhausted(&self) -> bool {
        matches!(self.phase, Phase::Done)
    }
}
