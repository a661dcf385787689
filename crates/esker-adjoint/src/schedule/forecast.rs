//! How long a run would take with each schedule, without a model.
//!
//! A clock follows the actions as [`run`](crate::run) carries them out: states are encoded and written beside the model,
//! which waits only for what is not done in time; the checkpoint that is wanted next is read ahead.

use std::collections::BTreeSet;

use super::{
    Action, Audit, Budget, Costs, Hierarchy, Mixed, Online, Periodic, Place, Result, Revolve,
    Schedule, ScheduleError, SingleDisk, StepCosts, Trajectory,
};

/// A run that is thought of. Times are seconds, and of one state or one step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Prospect {
    /// Steps.
    pub steps: u64,
    /// Bytes of an encoded state.
    pub state: u64,
    /// Bytes of memory for checkpoints.
    pub memory: u64,
    /// Bytes on disk.
    pub disk: u64,
    /// A reverse step.
    pub reverse: f64,
    /// A forward step, encoding, decoding, writing and reading.
    pub costs: Costs,
    /// Whether the adjoint of a step depends on nothing but the state before it: a state in place is then reversed
    /// without running its step.
    pub deps_are_state: bool,
    /// Whether encoding and writing are done beside the model.
    pub beside: bool,
}

/// What is expected of a schedule.
#[derive(Debug, Clone, PartialEq)]
pub struct Forecast {
    /// The schedule's name.
    pub schedule: &'static str,
    /// Forward steps that are run.
    pub forward: u64,
    /// Checkpoints written, read, and the most at one time.
    pub audit: Audit,
    /// Seconds of the steps that any adjoint run has: each forward and back once.
    pub needed: f64,
    /// Seconds of steps that are run again.
    pub again: f64,
    /// Seconds in which the model waits for checkpoints.
    pub waiting: f64,
}

impl Forecast {
    /// Seconds in all.
    pub fn seconds(&self) -> f64 {
        self.needed + self.again + self.waiting
    }
}

/// Follows the actions with times.
#[derive(Debug)]
struct Clock {
    prospect: Prospect,
    now: f64,
    encoder_free: f64,
    disk_free: f64,
    waiting: f64,
    forward: u64,
    ended: bool,
    on_disk: BTreeSet<u64>,
    in_memory: BTreeSet<u64>,
    /// A state that is read ahead, and when it is there.
    ahead: Option<(u64, f64)>,
}

impl Clock {
    fn new(prospect: Prospect) -> Clock {
        Clock {
            prospect,
            now: 0.0,
            encoder_free: 0.0,
            disk_free: 0.0,
            waiting: 0.0,
            forward: 0,
            ended: false,
            on_disk: BTreeSet::new(),
            in_memory: BTreeSet::new(),
            ahead: None,
        }
    }

    fn wait_until(&mut self, then: f64) {
        if then > self.now {
            self.waiting += then - self.now;
            self.now = then;
        }
    }

    fn advance(&mut self, steps: u64) {
        self.forward += steps;
        self.now += steps as f64 * self.prospect.costs.step;
    }

    fn forward(&mut self, from: u64, to: u64, keeps: bool, place: Place) {
        let (costs, beside) = (self.prospect.costs, self.prospect.beside);
        if place == Place::Work && self.ended && self.prospect.deps_are_state {
            return;
        }
        if !keeps || !matches!(place, Place::Memory | Place::Disk) {
            return self.advance(to - from);
        }
        let encoded = self.now.max(self.encoder_free) + costs.encode;
        self.encoder_free = encoded;
        if !beside {
            self.wait_until(encoded);
        }
        self.advance(to - from);
        self.wait_until(encoded);
        if place == Place::Disk {
            // One is written at a time.
            self.wait_until(self.disk_free);
            self.disk_free = self.now + costs.write;
            self.on_disk.insert(from);
            if !beside {
                self.wait_until(self.disk_free);
            }
        } else {
            self.in_memory.insert(from);
        }
    }

    fn load(&mut self, step: u64, from: Place, gives_up: bool) {
        let costs = self.prospect.costs;
        if from == Place::Disk {
            let there = match self.ahead.take() {
                Some((ahead, there)) if ahead == step => there,
                _ => self.now.max(self.disk_free) + costs.read,
            };
            self.wait_until(there);
        }
        self.wait_until(self.now + costs.decode);
        if gives_up {
            self.give_up(step);
        }
    }

    fn give_up(&mut self, step: u64) {
        self.on_disk.remove(&step);
        self.in_memory.remove(&step);
        let next = self.on_disk.range(..step).next_back().copied();
        let nearer = self.in_memory.range(..step).next_back().copied();
        if let Some(next) = next.filter(|next| nearer.is_none_or(|near| near < *next))
            && self.prospect.beside
        {
            let there = self.now.max(self.disk_free) + self.prospect.costs.read;
            self.disk_free = there;
            self.ahead = Some((next, there));
        }
    }

    fn follow(&mut self, action: &Action) {
        match *action {
            Action::Forward { from, to, restart, deps, place } => {
                let to = to.min(self.prospect.steps);
                self.forward(from, to, restart || deps, place);
            }
            Action::Copy { step, from, to: Place::Work, .. } => self.load(step, from, false),
            Action::Move { step, from, to: Place::Work, .. } => self.load(step, from, true),
            Action::Move { step, to: Place::Nowhere, .. } => self.give_up(step),
            Action::Copy { .. } | Action::Move { .. } => {}
            Action::Reverse { from, to } => {
                self.now += (from - to) as f64 * self.prospect.reverse;
            }
            Action::EndForward => self.ended = true,
            Action::EndReverse => {}
        }
    }
}

/// Times that make no sense are refused.
fn check(prospect: &Prospect) -> Result<()> {
    let costs = prospect.costs;
    let named = [
        ("the time of a forward step", costs.step),
        ("the time of a reverse step", prospect.reverse),
        ("the time of encoding", costs.encode),
        ("the time of decoding", costs.decode),
        ("the time of writing", costs.write),
        ("the time of reading", costs.read),
    ];
    for (i, (name, value)) in named.into_iter().enumerate() {
        if !value.is_finite() || value < 0.0 || (i == 0 && value == 0.0) {
            return Err(ScheduleError::BadCost { name, value });
        }
    }
    Ok(())
}

impl Prospect {
    /// What is expected of a schedule that was made for this run.
    pub fn forecast(&self, schedule: &'static str, plan: &mut dyn Schedule) -> Result<Forecast> {
        check(self)?;
        let mut clock = Clock::new(*self);
        let audit = Audit::watched(plan, self.steps, |action, _| clock.follow(action))?;
        let (step, n) = (self.costs.step, self.steps as f64);
        let needed = n * (step + self.reverse);
        let again = clock.forward.saturating_sub(self.steps) as f64 * step;
        let (forward, waiting) = (clock.forward, clock.waiting);
        Ok(Forecast { schedule, forward, audit, needed, again, waiting })
    }

    /// Every schedule for this run, as many checkpoints as the budgets hold; those that cannot be, with the reason.
    pub fn all(&self) -> Vec<(&'static str, Result<Forecast>)> {
        let n = self.steps;
        let fit = |bytes: u64| (bytes / self.state.max(1)).min(n);
        let (memory, disk) = (fit(self.memory), fit(self.disk));
        let costs = StepCosts {
            forward: self.costs.step,
            write: self.costs.write + self.costs.encode,
            read: self.costs.read + self.costs.decode,
        };
        let too_few = || ScheduleError::TooFew { steps: n, slots: disk, least: n };
        let known_end = Trajectory::Maximum;
        type Plan = Result<Box<dyn Schedule>>;
        fn boxed<S: Schedule + 'static>(made: Result<S>) -> Plan {
            made.map(|plan| Box::new(plan) as Box<dyn Schedule>)
        }
        let budget = || {
            let plan = Budget::new(n, self.state, self.memory, self.disk)?;
            let mut plan = plan.deps_are_state(self.deps_are_state);
            plan.learn(0, self.state);
            plan.set_waits(!self.beside);
            plan.set_costs(self.costs);
            Ok(plan)
        };
        // Tables of a larger plan take minutes.
        let hierarchy = |on_disk: Option<u64>| match n.saturating_mul(n) {
            0..4_000_001 => Hierarchy::new(n, memory, on_disk, costs),
            _ => Err(ScheduleError::TooLong { steps: n, most: 2000 }),
        };
        let plans: Vec<(&'static str, Plan)> = vec![
            ("Budget", boxed(budget())),
            ("Revolve", boxed(Revolve::new(n, memory))),
            ("multistage", boxed(Revolve::multistage(n, memory, disk, known_end))),
            ("mixed", boxed(Mixed::new(n, memory, Place::Memory))),
            ("H-Revolve", boxed(hierarchy(Some(disk)))),
            ("disk-revolve", boxed(hierarchy(None))),
            ("periodic", boxed(Periodic::new(n, memory, costs))),
            ("Online", boxed(Online::new(memory, Place::Memory))),
            (
                "all on disk",
                if disk < n { Err(too_few()) } else { boxed(Ok(SingleDisk::new(true))) },
            ),
        ];
        plans
            .into_iter()
            .map(|(name, plan)| (name, plan.and_then(|mut plan| self.fits(name, &mut *plan))))
            .collect()
    }

    /// The forecast, unless the schedule wants more than a tier holds.
    fn fits(&self, name: &'static str, plan: &mut dyn Schedule) -> Result<Forecast> {
        let found = self.forecast(name, plan)?;
        for (least, bytes) in found.audit.most.into_iter().zip([self.memory, self.disk]) {
            let slots = bytes / self.state.max(1);
            if least > slots {
                return Err(ScheduleError::TooFew { steps: self.steps, slots, least });
            }
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prospect() -> Prospect {
        let costs = Costs { step: 2.0, encode: 0.0, decode: 0.0, write: 0.0, read: 0.0 };
        Prospect {
            steps: 100,
            state: 10,
            memory: 55,
            disk: 0,
            reverse: 3.0,
            costs,
            deps_are_state: false,
            beside: true,
        }
    }

    #[test]
    fn where_transfers_are_free_time_is_that_of_the_steps() {
        let found = prospect().forecast("Revolve", &mut Revolve::new(100, 5).unwrap()).unwrap();
        // The closed form counts the recording steps.
        assert_eq!(Some(found.forward), super::super::binomial::forward_steps(100, 5));
        assert_eq!(found.seconds(), found.forward as f64 * 2.0 + 100.0 * 3.0);
        assert_eq!((found.needed, found.waiting), (500.0, 0.0));
        // Where the state is all that is needed, each recording but the first costs nothing.
        let free = Prospect { deps_are_state: true, ..prospect() };
        let fewer = free.forecast("Revolve", &mut Revolve::new(100, 5).unwrap()).unwrap();
        assert_eq!(fewer.forward, found.forward - 99);
    }

    #[test]
    fn what_is_done_beside_the_model_costs_only_what_is_left_of_it() {
        let costs = Costs { step: 2.0, encode: 1.0, decode: 0.5, write: 1.5, read: 1.0 };
        let whole = Prospect { steps: 4, disk: 100, costs, ..prospect() };
        let time = |prospect: Prospect| {
            let found = prospect.forecast("", &mut SingleDisk::new(true)).unwrap();
            (found.needed + found.again, found.waiting)
        };
        // By hand: 4 × (encode 1 + write 1.5), and 4 × (read 1 + decode 0.5).
        assert_eq!(time(Prospect { beside: false, ..whole }), (20.0, 16.0));
        // Beside: encoding and writing are hidden by steps of 2 s but for the last write (1.5), behind which the first is read;
        // the others are read while the adjoint of a step takes 3 s.
        assert_eq!(time(whole), (20.0, 1.5 + 1.0 + 4.0 * 0.5));
    }

    #[test]
    fn schedules_that_cannot_be_have_a_reason_and_the_others_a_time() {
        let all = prospect().all();
        let of = |name: &str| &all.iter().find(|(found, _)| *found == name).unwrap().1;
        assert!(of("Budget").is_ok() && of("Revolve").is_ok() && of("mixed").is_ok());
        let why = of("all on disk").as_ref().unwrap_err().to_string();
        assert!(why.contains("100 steps") && why.contains("0 checkpoints"), "{why}");
        let best = all.iter().filter_map(|(_, f)| f.as_ref().ok()).map(Forecast::seconds);
        let best = best.fold(f64::INFINITY, f64::min);
        assert_eq!(of("Budget").as_ref().unwrap().seconds(), best);
        let nothing = Prospect { memory: 5, ..prospect() };
        assert!(nothing.all().iter().all(|(_, found)| found.is_err()));
        let costs = Costs { step: f64::NAN, ..Costs::default() };
        assert!(Prospect { costs, ..prospect() }.all().iter().all(|(_, found)| found.is_err()));
    }
}
