//! The road that all offline schedules share: run forward from the newest checkpoint, keep some states
//! on the way, reverse the last step, go back to the newest checkpoint.
//!
//! A [`Policy`] decides what is kept and how far to run; checkpoints form a stack, because whatever
//! lies behind the adjoint has been given up.

use std::collections::VecDeque;

use super::{Action, Data, Place};

/// A checkpoint on the stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Held {
    pub(crate) step: u64,
    pub(crate) place: Place,
    pub(crate) kind: Data,
}

/// What to do at a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Decision {
    /// Keep it, and run so many steps.
    Store { kind: Data, place: Place, steps: u64 },
    /// Run so many steps.
    Advance { steps: u64 },
    /// It is the last state before the adjoint: run its step, recorded, and reverse it.
    Record,
}

/// Where a reversal stands.
#[derive(Debug)]
pub(crate) struct View<'a> {
    /// The state the model is at.
    pub(crate) at: u64,
    /// The state the adjoint is at: steps from here on have been reversed.
    pub(crate) end: u64,
    /// Whether the newest checkpoint is of this state.
    pub(crate) kept: bool,
    /// Checkpoints, oldest first.
    pub(crate) held: &'a [Held],
}

impl View<'_> {
    /// Steps to reverse from here on.
    pub(crate) fn left(&self) -> u64 {
        self.end - self.at
    }

    /// Checkpoints in a place.
    pub(crate) fn count(&self, place: Place) -> u64 {
        self.held.iter().filter(|held| held.place == place).count() as u64
    }
}

/// What a schedule decides.
pub(crate) trait Policy: Send {
    /// What to do at the state `view.at`.
    fn decide(&mut self, view: &View<'_>) -> Decision;

    /// Whether the newest checkpoint, which is about to be loaded, is given up by that.
    fn releases(&mut self, view: &View<'_>) -> bool;
}

/// Makes actions of a policy's decisions, for a segment of steps.
#[derive(Debug)]
pub(crate) struct Reversal<P> {
    pub(crate) policy: P,
    /// Where the adjoint is.
    pub(crate) end: u64,
    /// Where the model is, if its state is known.
    pub(crate) at: Option<u64>,
    pub(crate) held: Vec<Held>,
    /// Checkpoints below this one belong to somebody else.
    floor: usize,
    /// Whether the model runs for the first time.
    pub(crate) first: bool,
    queue: VecDeque<Action>,
}

impl<P: Policy> Reversal<P> {
    /// A run of so many steps whose model is at state 0.
    pub(crate) fn new(policy: P, steps: u64) -> Reversal<P> {
        let queue = VecDeque::with_capacity(4);
        Reversal { policy, end: steps, at: Some(0), held: Vec::new(), floor: 0, first: true, queue }
    }

    /// The rest of a run: checkpoints that are there already, and where model and adjoint are.
    pub(crate) fn from(policy: P, at: Option<u64>, end: u64, held: Vec<Held>, first: bool) -> Self {
        Reversal { policy, end, at, held, floor: 0, first, queue: VecDeque::new() }
    }

    /// Reverses the steps before `end` from the newest checkpoint, which stays, as does what is below it.
    pub(crate) fn segment(&mut self, end: u64) {
        (self.end, self.at, self.first) = (end, None, false);
        self.floor = self.held.len();
    }

    /// The next action, `None` when everything down to the first checkpoint is reversed.
    pub(crate) fn next(&mut self) -> Option<Action> {
        if let Some(action) = self.queue.pop_front() {
            return Some(action);
        }
        match self.at {
            Some(at) => Some(self.run(at)),
            None => self.load(),
        }
    }

    /// Whether the last decision has been carried out.
    pub(crate) fn is_idle(&self) -> bool {
        self.queue.is_empty()
    }

    fn run(&mut self, at: u64) -> Action {
        let kept = self.held.last().is_some_and(|h| h.step == at && h.kind == Data::Restart);
        let view = View { at, end: self.end, kept, held: &self.held };
        match self.policy.decide(&view) {
            Decision::Store { kind, place, steps } => {
                self.held.push(Held { step: at, place, kind });
                self.at = Some(at + steps);
                let restart = kind == Data::Restart;
                Action::Forward { from: at, to: at + steps, restart, deps: !restart, place }
            }
            Decision::Advance { steps } => {
                self.at = Some(at + steps);
                let (restart, deps, place) = (false, false, Place::Nowhere);
                Action::Forward { from: at, to: at + steps, restart, deps, place }
            }
            Decision::Record => {
                if std::mem::take(&mut self.first) {
                    self.queue.push_back(Action::EndForward);
                }
                self.reverse(at);
                let place = Place::Work;
                Action::Forward { from: at, to: at + 1, restart: false, deps: true, place }
            }
        }
    }

    fn reverse(&mut self, step: u64) {
        self.queue.push_back(Action::Reverse { from: step + 1, to: step });
        (self.end, self.at) = (step, None);
    }

    fn load(&mut self) -> Option<Action> {
        // A segment ends with the step of the checkpoint that it began from.
        let bottom = self.floor.checked_sub(1).and_then(|i| self.held.get(i));
        if bottom.is_some_and(|held| held.step == self.end) {
            return None;
        }
        let top = *self.held.last()?;
        let (step, what, from, to) = (top.step, top.kind, top.place, Place::Work);
        if top.kind == Data::Deps {
            self.held.pop();
            self.reverse(step);
            return Some(Action::Move { step, what, from, to });
        }
        let view = View { at: step, end: self.end, kept: true, held: &self.held };
        let belongs_here = self.held.len() > self.floor;
        let released = belongs_here && self.policy.releases(&view);
        self.at = Some(step);
        if released {
            self.held.pop();
            return Some(Action::Move { step, what, from, to });
        }
        Some(Action::Copy { step, what, from, to })
    }
}
