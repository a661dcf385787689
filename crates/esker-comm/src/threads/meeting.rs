//! Where the threads of a communicator meet for a collective operation.

use std::any::Any;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::group::{Group, locked};
use crate::{CommError, Result};

/// One place where every rank leaves its contribution; the last to come combines them all.
///
/// So each rank sleeps at most once for an operation, whatever the number of ranks, and no
/// message passes through a mailbox. With more ranks than cores that is what counts.
pub(super) struct Meeting {
    state: Mutex<State>,
    finished: Condvar,
    /// The state's round, to be looked at without the lock.
    round: AtomicU64,
    /// Whether there is a core for each rank, so that waiting awake hurts nobody.
    awake: bool,
}

/// How long a rank waits awake: about what falling asleep and being woken costs.
const AWAKE: Duration = Duration::from_micros(50);

type Parcel = Box<dyn Any + Send>;

struct State {
    round: u64,
    operation: &'static str,
    arrived: usize,
    /// What each rank brought to this round.
    brought: Vec<Option<Parcel>>,
    /// What each rank takes home. A rank comes to the next round only after it took this, so
    /// one slot for each rank is enough.
    results: Vec<Option<Parcel>>,
    /// Once an operation has failed, every later one fails with the same words.
    broken: Option<CommError>,
}

impl Meeting {
    pub(super) fn new(size: usize) -> Self {
        let state = State {
            round: 0,
            operation: "",
            arrived: 0,
            brought: (0..size).map(|_| None).collect(),
            results: (0..size).map(|_| None).collect(),
            broken: None,
        };
        let awake = std::thread::available_parallelism().is_ok_and(|cores| size <= cores.get());
        let (state, finished, round) = (Mutex::new(state), Condvar::new(), AtomicU64::new(0));
        Meeting { state, finished, round, awake }
    }

    /// Waits a little for the end of `round` without going to sleep.
    fn wait_awake(&self, round: u64) {
        let start = Instant::now();
        while self.round.load(Ordering::Acquire) == round && start.elapsed() < AWAKE {
            std::hint::spin_loop();
        }
    }

    pub(super) fn wake_all(&self) {
        drop(locked(&self.state));
        self.finished.notify_all();
    }

    /// Brings `mine`, waits for all, and returns this rank's part of what `combine` made of the
    /// contributions (by rank); `combine` runs on the rank that comes last.
    pub(super) fn meet<B, R>(
        &self,
        group: &Group,
        rank: usize,
        operation: &'static str,
        mine: B,
        combine: impl FnOnce(Vec<B>) -> Result<Vec<R>>,
    ) -> Result<R>
    where
        B: Send + 'static,
        R: Send + 'static,
    {
        group.world.check()?;
        let mut state = locked(&self.state);
        if let Some(error) = &state.broken {
            return Err(error.clone());
        }
        if state.arrived > 0 && state.operation != operation {
            let error = CommError::OutOfStep { ours: state.operation, rank, theirs: operation };
            return Err(self.fail(&mut state, error));
        }
        if state.brought[rank].is_some() {
            let reason = "two threads of one rank are in a collective at the same time".into();
            return Err(self.fail(&mut state, CommError::BadArgument { operation, reason }));
        }
        state.operation = operation;
        state.brought[rank] = Some(Box::new(mine));
        state.arrived += 1;

        if state.arrived == group.size() {
            let brought: Option<Vec<B>> = state
                .brought
                .iter_mut()
                .map(|parcel| parcel.take()?.downcast::<B>().ok().map(|bring| *bring))
                .collect();
            // The same operation brings the same type, except reductions of different types.
            let combined = brought.ok_or_else(|| mixed(operation)).and_then(combine);
            match combined {
                Ok(results) => {
                    for (slot, result) in state.results.iter_mut().zip(results) {
                        *slot = Some(Box::new(result));
                    }
                }
                Err(error) => return Err(self.fail(&mut state, error)),
            }
            state.arrived = 0;
            state.round += 1;
            self.round.store(state.round, Ordering::Release);
            self.finished.notify_all();
        } else {
            let round = state.round;
            if self.awake {
                drop(state);
                self.wait_awake(round);
                state = locked(&self.state);
            }
            while state.round == round {
                if let Some(error) = &state.broken {
                    return Err(error.clone());
                }
                group.world.check()?;
                if let Some(rank) = group.first_left() {
                    let error = CommError::RankLeft { operation, rank };
                    return Err(self.fail(&mut state, error));
                }
                state = self.finished.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
        }
        let result = state.results[rank].take().and_then(|parcel| parcel.downcast::<R>().ok());
        result.map(|result| *result).ok_or_else(|| mixed(operation))
    }

    fn fail(&self, state: &mut State, error: CommError) -> CommError {
        state.broken = Some(error.clone());
        self.finished.notify_all();
        error
    }
}

fn mixed(operation: &'static str) -> CommError {
    let reason = "the ranks gave values of different types".into();
    CommError::BadArgument { operation, reason }
}

impl fmt::Debug for Meeting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Meeting(round {})", locked(&self.state).round)
    }
}
