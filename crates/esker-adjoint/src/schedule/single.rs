//! Everything is kept, or nothing.

use super::{Action, Data, OPEN_END, Place, Result, Schedule, ScheduleError, same_steps};

fn learn(known: &mut Option<u64>, steps: u64) -> Result<()> {
    match *known {
        Some(known) => same_steps(known, steps),
        None if steps == 0 => Err(ScheduleError::NoSteps),
        None => {
            *known = Some(steps);
            Ok(())
        }
    }
}

/// The dependencies of all steps stay in work. May be reversed again and again.
#[derive(Debug, Default)]
pub struct SingleMemory {
    steps: Option<u64>,
    /// 0 forward, 1 its end, 2 reverse, 3 its end.
    stage: u8,
}

impl Schedule for SingleMemory {
    fn next_action(&mut self) -> Option<Action> {
        let steps = self.steps.unwrap_or(OPEN_END);
        let action = match self.stage {
            0 => {
                let place = Place::Work;
                Action::Forward { from: 0, to: steps, restart: false, deps: true, place }
            }
            1 => Action::EndForward,
            2 => Action::Reverse { from: steps, to: 0 },
            _ => Action::EndReverse,
        };
        self.stage = if self.stage == 3 { 2 } else { self.stage + 1 };
        Some(action)
    }

    fn steps(&self) -> Option<u64> {
        self.steps
    }

    fn finalize(&mut self, steps: u64) -> Result<()> {
        learn(&mut self.steps, steps)
    }

    fn uses(&self, place: Place) -> bool {
        place == Place::Work
    }

    fn is_exhausted(&self) -> bool {
        false
    }
}

/// The dependencies of each step go to disk.
#[derive(Debug)]
pub struct SingleDisk {
    moves: bool,
    steps: Option<u64>,
    at: u64,
    /// The adjoint's state, once the model has ended.
    end: Option<u64>,
    loaded: bool,
    done: bool,
}

impl SingleDisk {
    /// With `moves`, what was read is removed, and the run is reversed once; without, as often as one
    /// likes.
    pub fn new(moves: bool) -> SingleDisk {
        SingleDisk { moves, steps: None, at: 0, end: None, loaded: false, done: false }
    }
}

impl Schedule for SingleDisk {
    fn next_action(&mut self) -> Option<Action> {
        if self.done {
            return None;
        }
        let Some(end) = self.end else {
            if self.steps == Some(self.at) {
                self.end = self.steps;
                return Some(Action::EndForward);
            }
            let (from, place) = (self.at, Place::Disk);
            self.at += 1;
            return Some(Action::Forward { from, to: self.at, restart: false, deps: true, place });
        };
        if end == 0 {
            self.done = self.moves;
            self.end = self.steps;
            return Some(Action::EndReverse);
        }
        let step = end - 1;
        if std::mem::take(&mut self.loaded) {
            self.end = Some(step);
            return Some(Action::Reverse { from: end, to: step });
        }
        self.loaded = true;
        let (what, from, to) = (Data::Deps, Place::Disk, Place::Work);
        Some(match self.moves {
            true => Action::Move { step, what, from, to },
            false => Action::Copy { step, what, from, to },
        })
    }

    fn steps(&self) -> Option<u64> {
        self.steps
    }

    fn finalize(&mut self, steps: u64) -> Result<()> {
        learn(&mut self.steps, steps)
    }

    fn uses(&self, place: Place) -> bool {
        matches!(place, Place::Disk | Place::Work)
    }

    fn is_exhausted(&self) -> bool {
        self.done
    }
}

/// No adjoint: the model runs, and nothing is kept.
#[derive(Debug, Default)]
pub struct NoAdjoint {
    steps: Option<u64>,
    stage: u8,
}

impl Schedule for NoAdjoint {
    fn next_action(&mut self) -> Option<Action> {
        self.stage = self.stage.saturating_add(1);
        let (restart, deps, place) = (false, false, Place::Nowhere);
        match self.stage {
            1 => Some(Action::Forward { from: 0, to: OPEN_END, restart, deps, place }),
            2 => Some(Action::EndForward),
            _ => None,
        }
    }

    fn steps(&self) -> Option<u64> {
        self.steps
    }

    fn finalize(&mut self, steps: u64) -> Result<()> {
        learn(&mut self.steps, steps)
    }

    fn uses(&self, _: Place) -> bool {
        false
    }

    fn is_exhausted(&self) -> bool {
        self.stage >= 2
    }
}
