//! What a schedule asks for, one thing after the other.

use std::fmt;

/// Where data of a step are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Place {
    /// Checkpoints in memory.
    Memory,
    /// Checkpoints on disk.
    Disk,
    /// What the model and its adjoint work with.
    Work,
    /// Nowhere: what is moved there is forgotten.
    Nowhere,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Place::Memory => "memory",
            Place::Disk => "disk",
            Place::Work => "work",
            Place::Nowhere => "nowhere",
        })
    }
}

/// What is kept of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Data {
    /// What restarts the model there.
    Restart,
    /// What the adjoint of the step depends on.
    Deps,
    /// Both, in one.
    Both,
}

impl fmt::Display for Data {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Data::Restart => "restart data",
            Data::Deps => "dependencies",
            Data::Both => "restart data and dependencies",
        })
    }
}

/// The end of a forward action whose schedule does not know the number of steps: go on until the
/// model ends, then call [`finalize`](crate::schedule::Schedule::finalize).
pub const OPEN_END: u64 = u64::MAX;

/// One thing to do. Step n leads from state n to state n + 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action {
    /// Run the model from state `from` to state `to`.
    Forward {
        /// The state the model is at.
        from: u64,
        /// The state it is to reach, or [`OPEN_END`].
        to: u64,
        /// Keep what restarts the model at `from`, in `place`.
        restart: bool,
        /// Keep what the adjoints of these steps depend on, in `place`.
        deps: bool,
        /// Where to keep it.
        place: Place,
    },
    /// Copy what is kept of a step.
    Copy {
        /// The step.
        step: u64,
        /// What of it.
        what: Data,
        /// Where it is.
        from: Place,
        /// Where it goes.
        to: Place,
    },
    /// Move what is kept of a step; to [`Place::Nowhere`], forget it.
    Move {
        /// The step.
        step: u64,
        /// What of it.
        what: Data,
        /// Where it is.
        from: Place,
        /// Where it goes.
        to: Place,
    },
    /// Run the adjoint from state `from` down to state `to`.
    Reverse {
        /// The state the adjoint is at.
        from: u64,
        /// The state it is to reach.
        to: u64,
    },
    /// The model has reached its end.
    EndForward,
    /// The adjoint has reached state 0.
    EndReverse,
}

impl Action {
    /// What a forward action keeps.
    pub fn kept(&self) -> Option<Data> {
        match *self {
            Action::Forward { restart: true, deps: true, .. } => Some(Data::Both),
            Action::Forward { restart: true, .. } => Some(Data::Restart),
            Action::Forward { deps: true, .. } => Some(Data::Deps),
            _ => None,
        }
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Action::Forward { from, to, place, .. } => {
                match to {
                    OPEN_END => write!(f, "forward {from} → end")?,
                    to => write!(f, "forward {from} → {to}")?,
                }
                match self.kept() {
                    Some(what) => write!(f, ", {what} to {place}"),
                    None => Ok(()),
                }
            }
            Action::Copy { step, what, from, to } => {
                write!(f, "copy {what} of {step} from {from} to {to}")
            }
            Action::Move { step, what, from, to } => {
                write!(f, "move {what} of {step} from {from} to {to}")
            }
            Action::Reverse { from, to } => write!(f, "reverse {from} → {to}"),
            Action::EndForward => f.write_str("end of the forward run"),
            Action::EndReverse => f.write_str("end of the reverse run"),
        }
    }
}
