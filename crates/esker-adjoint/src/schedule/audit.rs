//! Carries actions out without a model, and counts.

use std::collections::BTreeMap;

use super::{Action, Data, Place, Result, Schedule, ScheduleError};

/// What a schedule costs, found by following its actions; memory and disk in this order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Audit {
    /// Forward steps in all.
    pub forward: u64,
    /// Checkpoints written.
    pub writes: [u64; 2],
    /// Checkpoints read.
    pub reads: [u64; 2],
    /// The most checkpoints at one time.
    pub most: [u64; 2],
    /// How often the step that was run most was run, recording included.
    pub repetitions: u32,
    /// How many times at most a state went through a checkpoint before it was stored itself, with
    /// that store counted: by so much a bound of error is to be divided.
    pub depth: u32,
    /// Actions.
    pub actions: u64,
}

#[derive(Debug, Clone, Copy)]
struct Kept {
    restart: bool,
    /// The first step whose dependencies it does not hold.
    deps_end: u64,
    depth: u32,
}

#[derive(Debug, Default)]
struct Machine {
    steps: u64,
    /// The state the model is at, and through how many checkpoints it has come.
    at: Option<(u64, u32)>,
    /// Steps whose dependencies are in work.
    recorded: Option<(u64, u64)>,
    /// The state the adjoint is at.
    end: u64,
    ended: bool,
    /// By step, and whether it is dependencies alone.
    kept: [BTreeMap<(u64, bool), Kept>; 2],
    runs: Vec<u32>,
    audit: Audit,
}

fn tier(place: Place) -> Option<usize> {
    match place {
        Place::Memory => Some(0),
        Place::Disk => Some(1),
        Place::Work | Place::Nowhere => None,
    }
}

impl Machine {
    fn forward(&mut self, from: u64, to: u64) -> std::result::Result<(u64, u32), String> {
        let (at, depth) = self.at.ok_or("the model has no state")?;
        if at != from {
            return Err(format!("the model is at state {at}"));
        }
        let to = if self.ended { to } else { to.min(self.steps) };
        if to <= from || to > self.end {
            return Err(format!("the adjoint is at state {}", self.end));
        }
        let runs = self.runs.get_mut(from as usize..to as usize).ok_or("there is no such step")?;
        runs.iter_mut().for_each(|n| *n += 1);
        self.audit.forward += to - from;
        (self.at, self.recorded) = (Some((to, depth)), None);
        Ok((to, depth))
    }

    fn apply(&mut self, action: &Action) -> std::result::Result<(), String> {
        match *action {
            Action::Forward { from, to, restart, deps, place } => {
                let (to, depth) = self.forward(from, to)?;
                let deps_end = if deps { to } else { from };
                if let Some(tier) = tier(place).filter(|_| restart || deps) {
                    let depth = depth + 1;
                    let kept = Kept { restart, deps_end, depth };
                    if self.kept[tier].insert((from, !restart), kept).is_some() {
                        return Err("it is kept already".into());
                    }
                    self.audit.writes[tier] += 1;
                    self.audit.depth = self.audit.depth.max(depth);
                } else if place == Place::Work && deps {
                    self.recorded = Some((from, to));
                }
            }
            Action::Copy { step, what, from, to } | Action::Move { step, what, from, to } => {
                let key = (step, what == Data::Deps);
                let source = tier(from).ok_or("nothing is kept there")?;
                let kept = match action {
                    Action::Move { .. } => self.kept[source].remove(&key),
                    _ => self.kept[source].get(&key).copied(),
                };
                let kept = kept.ok_or("it is not there")?;
                if let Some(tier) = tier(to) {
                    if self.kept[tier].insert(key, kept).is_some() {
                        return Err("it is kept already".into());
                    }
                    self.audit.writes[tier] += 1;
                    self.audit.reads[source] += 1;
                } else if to == Place::Work {
                    if step >= self.end {
                        return Err(format!("the adjoint is at state {}", self.end));
                    }
                    self.audit.reads[source] += 1;
                    self.at = kept.restart.then_some((step, kept.depth));
                    self.recorded = (kept.deps_end > step).then_some((step, kept.deps_end));
                }
            }
            Action::Reverse { from, to } => {
                let recorded = self.recorded.filter(|(a, b)| *a <= to && from <= *b && to < from);
                if from != self.end || recorded.is_none() || !self.ended {
                    let (end, found) = (self.end, self.recorded);
                    return Err(format!("the adjoint is at state {end}, recorded is {found:?}"));
                }
                self.end = to;
            }
            Action::EndForward => {
                if self.at.is_none_or(|(at, _)| at != self.steps) {
                    return Err(format!("the model is not at state {}", self.steps));
                }
                self.ended = true;
            }
            Action::EndReverse => {
                if self.end != 0 {
                    return Err(format!("the adjoint is at state {}", self.end));
                }
            }
        }
        for tier in 0..2 {
            self.audit.most[tier] = self.audit.most[tier].max(self.kept[tier].len() as u64);
        }
        self.audit.actions += 1;
        Ok(())
    }
}

impl Audit {
    /// Follows all actions of a run of so many steps, up to the end of its first reversal. The schedule is told
    /// where the model ends. An error if an action cannot be carried out, or steps remain.
    pub fn of(schedule: &mut dyn Schedule, steps: u64) -> Result<Audit> {
        Audit::watched(schedule, steps, |_, _| {})
    }

    /// The same; `watch` sees each action after it, with the schedule, for instance to tell it sizes.
    pub fn watched(
        schedule: &mut dyn Schedule,
        steps: u64,
        mut watch: impl FnMut(&Action, &mut dyn Schedule),
    ) -> Result<Audit> {
        let runs = vec![0; steps as usize];
        let mut machine =
            Machine { steps, at: Some((0, 0)), end: steps, runs, ..Machine::default() };
        while let Some(action) = schedule.next_action() {
            let number = machine.audit.actions;
            let wrong = |why| ScheduleError::Impossible { number, action, why };
            machine.apply(&action).map_err(wrong)?;
            if !machine.ended && machine.at.is_some_and(|(at, _)| at == steps) {
                schedule.finalize(steps)?;
            }
            watch(&action, schedule);
            if action == Action::EndReverse {
                break;
            }
        }
        let kept = machine.kept.iter().map(BTreeMap::len).sum::<usize>();
        if machine.end != 0 || (kept != 0 && schedule.is_exhausted()) {
            return Err(ScheduleError::Unfinished { left: machine.end, kept });
        }
        machine.audit.repetitions = machine.runs.iter().copied().max().unwrap_or(0);
        Ok(machine.audit)
    }
}
