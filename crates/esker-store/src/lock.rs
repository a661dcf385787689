//! One writer of a file.

use std::fs::TryLockError;
use std::io;
use std::sync::Arc;

use crate::{File, Result};

/// What came of asking for a file's lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Locking {
    /// It is the asker's.
    Taken,
    /// Another has it.
    Busy,
    /// The store has no locks.
    Unsupported,
}

/// The file that a name stands for, whatever names it had and gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileId {
    /// Where such numbers are counted.
    pub device: u64,
    /// Its number there.
    pub number: u64,
}

/// When a file was changed last, and how long it is: while it is the same, nobody has changed the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    /// Seconds of the system's clock.
    pub seconds: i64,
    /// And nanoseconds.
    pub nanoseconds: i64,
    /// Bytes.
    pub len: u64,
}

/// A file whose lock this process has, until this is dropped.
///
/// Locks are advisory: they keep others from locking, and from nothing else. They go when the process
/// dies, however it does. A child that was forked has the open file too: it keeps the lock alive if its
/// parent is killed, but what it drops does not take the lock from its parent.
#[derive(Debug)]
pub struct Locked {
    file: Arc<dyn File>,
    process: u32,
}

impl Locked {
    /// Asks for the lock of an open file, without waiting. `Err` says that another has it; `Ok(None)` that
    /// the store has no locks.
    pub fn take(file: &Arc<dyn File>) -> Result<std::result::Result<Option<Locked>, Busy>> {
        Ok(match file.try_lock()? {
            Locking::Taken => Ok(Some(Locked { file: file.clone(), process: std::process::id() })),
            Locking::Busy => Err(Busy),
            Locking::Unsupported => Ok(None),
        })
    }
}

/// Another has the lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Busy;

impl Drop for Locked {
    fn drop(&mut self) {
        if self.process == std::process::id() {
            // Closing the file would do, if no child had it.
            let _ = self.file.unlock();
        }
    }
}

/// What a system said to a request for a lock.
pub(crate) fn outcome(asked: std::result::Result<(), TryLockError>) -> io::Result<Locking> {
    match asked {
        Ok(()) => Ok(Locking::Taken),
        Err(TryLockError::WouldBlock) => Ok(Locking::Busy),
        Err(TryLockError::Error(error)) => match error.kind() {
            io::ErrorKind::Interrupted => Err(error),
            // ENOLCK, ENOSYS, EOPNOTSUPP, EINVAL, EIO: file systems say in many ways that they have none,
            // and a file that can be written must not be refused for that.
            _ => Ok(Locking::Unsupported),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_system_without_locks_is_no_failure() {
        for errno in [37, 38, 95, 22, 5] {
            let error = io::Error::from_raw_os_error(errno);
            let asked = outcome(Err(TryLockError::Error(error)));
            assert_eq!(asked.expect("no failure"), Locking::Unsupported);
        }
        assert_eq!(outcome(Err(TryLockError::WouldBlock)).expect("no failure"), Locking::Busy);
    }
}
