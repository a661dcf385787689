//! What goes on while the program does: flushes, syncs and reads with a number to wait for.

use std::ffi::c_int;

use esker::{Pending, Values};

use crate::request::Request;

/// Work that was begun.
pub(crate) enum Work {
    /// A flush of the burst buffer.
    Flush(Pending<()>),
    /// A flush that is followed by a sync when it is waited for.
    Sync(Pending<()>),
    /// A read, and where it goes; none if it has no elements.
    Read(Option<(Pending<Values>, Box<Request>)>),
}

impl Work {
    /// Whether waiting for it does not take long.
    pub(crate) fn is_over(&self) -> bool {
        match self {
            Work::Flush(pending) | Work::Sync(pending) => pending.test(),
            Work::Read(Some((pending, _))) => pending.test(),
            Work::Read(None) => true,
        }
    }
}

/// The work of a file by number.
#[derive(Default)]
pub(crate) struct Tokens {
    begun: Vec<(c_int, Work)>,
    last: c_int,
}

impl Tokens {
    /// Gives it a number, from 1.
    pub(crate) fn add(&mut self, work: Work) -> c_int {
        self.last = self.last.checked_add(1).unwrap_or(1);
        self.begun.push((self.last, work));
        self.last
    }

    pub(crate) fn get(&self, token: c_int) -> Option<&Work> {
        self.begun.iter().find(|(number, _)| *number == token).map(|(_, work)| work)
    }

    pub(crate) fn take(&mut self, token: c_int) -> Option<Work> {
        let place = self.begun.iter().position(|(number, _)| *number == token)?;
        Some(self.begun.swap_remove(place).1)
    }
}
