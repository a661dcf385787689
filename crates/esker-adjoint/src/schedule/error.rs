//! What can be wrong with a schedule.

use super::{Action, Place};

/// A result of planning.
pub type Result<T> = std::result::Result<T, ScheduleError>;

/// A schedule that cannot be.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ScheduleError {
    /// Nothing to reverse.
    #[error("there must be at least one step to reverse")]
    NoSteps,
    /// Too few checkpoints.
    #[error(
        "{steps} steps cannot be reversed with {slots} checkpoints: at least {least} are needed"
    )]
    TooFew {
        /// The steps.
        steps: u64,
        /// The checkpoints allowed.
        slots: u64,
        /// The least number.
        least: u64,
    },
    /// A cost that is no time.
    #[error("{name} is {value}: costs are numbers from 0 on, and a forward step costs more than 0")]
    BadCost {
        /// Whose cost.
        name: &'static str,
        /// What was given.
        value: f64,
    },
    /// A period of no steps.
    #[error("the distance of periodic checkpoints must be at least one step")]
    NoPeriod,
    /// More steps than tables are made for.
    #[error(
        "this schedule is planned with tables and takes at most {most} steps; {steps} were asked for"
    )]
    TooLong {
        /// The steps.
        steps: u64,
        /// The largest number.
        most: u64,
    },
    /// The model ended elsewhere.
    #[error("the schedule was made for {promised} steps, but the model ended after {found}")]
    OtherEnd {
        /// What was promised.
        promised: u64,
        /// What came.
        found: u64,
    },
    /// A budget that the first state does not fit into.
    #[error(
        "the state at step {step} needs {bytes} bytes, more than the budgets of {memory} bytes of memory and {disk} on disk"
    )]
    BelowOneState {
        /// The step.
        step: u64,
        /// Its bytes.
        bytes: u64,
        /// The budget of memory.
        memory: u64,
        /// The budget on disk.
        disk: u64,
    },
    /// An action that cannot be carried out.
    #[error("action {number} ({action}) cannot be carried out: {why}")]
    Impossible {
        /// Its number, from 0 on.
        number: u64,
        /// The action.
        action: Action,
        /// What is wrong.
        why: String,
    },
    /// The actions ended too early.
    #[error("the actions end with {left} steps not reversed and {kept} checkpoints kept")]
    Unfinished {
        /// Steps not reversed.
        left: u64,
        /// Checkpoints left over.
        kept: usize,
    },
    /// A checkpoint that is not there.
    #[error("there is no checkpoint of step {step} in {place}")]
    NotThere {
        /// The step.
        step: u64,
        /// Where it was looked for.
        place: Place,
    },
}
