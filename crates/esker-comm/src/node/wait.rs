//! Counters in shared memory, and waiting for them.

use std::sync::atomic::{AtomicU32, Ordering, fence};
use std::time::Duration;

use super::Watch;
use crate::Result;

/// A counter that ranks wait for, on a cache line of its own. All zeros is its beginning.
#[repr(C, align(64))]
#[derive(Debug)]
pub(super) struct Counter {
    value: AtomicU32,
    /// Ranks that are asleep, or about to be.
    asleep: AtomicU32,
}

/// Looks before the core is given away, some microseconds, and how often that is done before falling asleep. Seldom: on a busy
/// machine a yield gives the core to strangers for all of their slice, and who sleeps is woken when there is something to do.
const LOOKS: u32 = 100;
const YIELDS: u32 = 3;

/// How long a rank sleeps before it looks whether the others are still there.
const NAP: Duration = Duration::from_millis(100);

impl Counter {
    pub(super) fn get(&self) -> u32 {
        self.value.load(Ordering::Acquire)
    }

    pub(super) fn set(&self, value: u32) {
        self.value.store(value, Ordering::Release);
        self.wake();
    }

    /// Counts one, and wakes those who wait for `enough`.
    pub(super) fn count(&self, enough: u32) {
        if self.value.fetch_add(1, Ordering::AcqRel) + 1 >= enough {
            self.wake();
        }
    }

    /// Waits for a value, which those that are `awaited` bring about.
    pub(super) fn wait_for(
        &self,
        wanted: u32,
        watch: &Watch,
        awaited: impl Fn(usize) -> bool,
    ) -> Result<()> {
        let mut tries = 0;
        loop {
            let found = self.get();
            if found == wanted {
                return Ok(());
            }
            tries += 1;
            if tries < LOOKS {
                std::hint::spin_loop();
            } else if tries < LOOKS + YIELDS {
                std::thread::yield_now();
            } else {
                match watch.check(tries - LOOKS - YIELDS, &awaited) {
                    Ok(()) => self.sleep(found),
                    // Who is gone may have done its part just before.
                    Err(_) if self.get() == wanted => return Ok(()),
                    Err(error) => return Err(error),
                }
            }
        }
    }

    /// Wakes everyone who waits, whatever the value is.
    #[allow(unsafe_code)]
    pub(super) fn wake(&self) {
        // Either this sees who falls asleep, or that one sees the new value.
        fence(Ordering::SeqCst);
        if self.asleep.load(Ordering::SeqCst) > 0 {
            let (word, everyone) = (self.value.as_ptr(), i32::MAX);
            // SAFETY: the word lives as long as `self`; the call wakes and touches nothing.
            unsafe { libc::syscall(libc::SYS_futex, word, libc::FUTEX_WAKE, everyone) };
        }
    }

    /// Sleeps while the value is `found`, but not for long.
    #[allow(unsafe_code)]
    fn sleep(&self, found: u32) {
        self.asleep.fetch_add(1, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        let nap = libc::timespec { tv_sec: 0, tv_nsec: NAP.subsec_nanos() as libc::c_long };
        let word = self.value.as_ptr();
        // SAFETY: the word and the time live until the call returns. Whatever it returns, the value is looked at again.
        unsafe { libc::syscall(libc::SYS_futex, word, libc::FUTEX_WAIT, found, &nap) };
        self.asleep.fetch_sub(1, Ordering::SeqCst);
    }
}
