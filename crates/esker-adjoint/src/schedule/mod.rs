//! Schedules: which steps are run, kept, loaded and reversed, in which order. Pure.
//!
//! A [`Schedule`] gives one [`Action`] after the other. [`Audit`] carries them out without a
//! model, so that a mistake of a schedule is an error of a test and not of a run. A [`Prospect`] tells how long a run would
//! take with each of them.
//!
//! | schedule | what it is for |
//! | --- | --- |
//! | [`Revolve`] | s checkpoints in memory, or some in memory and some on disk (multistage) |
//! | [`Hierarchy`] | checkpoints on disk cost time: H-Revolve; without a limit of their number, disk-revolve |
//! | [`Periodic`] | disk-revolve with disk checkpoints at equal distances |
//! | [`TwoLevel`] | a disk checkpoint every so many steps, the number of steps unknown at first |
//! | [`Mixed`] | a unit holds restart data or the dependencies of one step |
//! | [`Online`] | s checkpoints, the number of steps unknown until the model ends |
//! | [`Budget`] | bytes instead of a number of checkpoints, sizes known only once they are encoded |
//! | [`SingleMemory`], [`SingleDisk`], [`NoAdjoint`] | everything is kept, or nothing |
//!
//! ```
//! use esker_adjoint::schedule::{Audit, Revolve};
//! let audit = Audit::of(&mut Revolve::new(1000, 10)?, 1000)?;
//! assert_eq!((audit.forward, audit.most), (4636, [10, 0]));
//! # Ok::<(), esker_adjoint::schedule::ScheduleError>(())
//! ```

mod action;
mod audit;
pub mod binomial;
mod budget;
mod error;
mod forecast;
mod hierarchy;
mod least_sum;
mod mixed;
mod online;
mod periodic;
mod reversal;
mod revolve;
mod single;
mod two_level;

pub use action::{Action, Data, OPEN_END, Place};
pub use audit::Audit;
pub use binomial::Trajectory;
pub use budget::{Budget, Costs, Outcome, Sizes};
pub use error::{Result, ScheduleError};
pub use forecast::{Forecast, Prospect};
pub use hierarchy::{Hierarchy, StepCosts};
pub use mixed::{Mixed, mixed_forward_steps};
pub use online::Online;
pub use periodic::Periodic;
pub use revolve::Revolve;
pub use single::{NoAdjoint, SingleDisk, SingleMemory};
pub use two_level::TwoLevel;

/// A plan of an adjoint run.
pub trait Schedule: Send {
    /// The next thing to do; `None` after the last.
    fn next_action(&mut self) -> Option<Action>;

    /// The number of steps, if it is known.
    fn steps(&self) -> Option<u64>;

    /// Says how many steps there are, once the model has ended. An error if the schedule was made for
    /// another number.
    fn finalize(&mut self, steps: u64) -> Result<()>;

    /// Whether it may keep something there.
    fn uses(&self, place: Place) -> bool;

    /// Whether there will be no more actions.
    fn is_exhausted(&self) -> bool;

    /// The bytes plan of a schedule that wants to know sizes.
    fn budget(&mut self) -> Option<&mut Budget> {
        None
    }
}

/// The error of a [`Schedule::finalize`] that has nothing to say to a known number.
fn same_steps(known: u64, found: u64) -> Result<()> {
    if known == found { Ok(()) } else { Err(ScheduleError::OtherEnd { promised: known, found }) }
}
