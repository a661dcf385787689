//! Which rounds an exchange has: those in which nobody has anything are left out.
//!
//! Where requests lie far apart, as the first and the last element of a large file do, there
//! are more windows between them than anyone wants to wait for. So the ranks look ahead
//! together: at every round while that leads past empty ones, at every sixteenth otherwise.

use esker_comm::{Communicator, CommunicatorExt};

use crate::error::Result;
use crate::plan::Sweep;
use crate::strategy::Windows;

/// So few rounds are all made; looking would cost as much.
const FEW: u64 = 8;

/// The most rounds between two looks.
const RARELY: u64 = 16;

/// The rounds of one exchange, the same on every rank.
#[derive(Debug)]
pub(crate) struct Rounds {
    windows: Windows,
    next: u64,
    /// Rounds until the next look, and from that to the one after it.
    wait: u64,
    interval: u64,
    /// Rounds made.
    pub(crate) made: u64,
}

impl Rounds {
    pub(crate) fn new(windows: Windows) -> Rounds {
        Rounds { windows, next: 0, wait: 1, interval: 1, made: 0 }
    }

    /// Whether there may be a round after this one.
    pub(crate) fn go_on(&self) -> bool {
        self.next < self.windows.rounds()
    }

    /// The next round in which somebody may have something. Collective.
    pub(crate) fn next(
        &mut self,
        comm: &dyn Communicator,
        sweep: &Sweep<'_, '_>,
    ) -> Result<Option<u64>> {
        if self.go_on() && self.windows.rounds() > FEW {
            if self.wait == 0 {
                self.look_ahead(comm, sweep)?;
            }
            self.wait -= 1;
        }
        if !self.go_on() {
            return Ok(None);
        }
        let round = self.next;
        self.next += 1;
        self.made += 1;
        Ok(Some(round))
    }

    fn look_ahead(&mut self, comm: &dyn Communicator, sweep: &Sweep<'_, '_>) -> Result<()> {
        let from = self.windows.window(self.next, 0).start;
        let mine = sweep.next_offset(from).unwrap_or(u64::MAX);
        let first = if comm.size() == 1 { mine } else { comm.min_u64(mine)? };
        let round = self.windows.round_of(first);
        if round > self.next {
            self.next = round;
            self.interval = 1;
        } else {
            self.interval = (2 * self.interval).min(RARELY);
        }
        self.wait = self.interval;
        Ok(())
    }
}
