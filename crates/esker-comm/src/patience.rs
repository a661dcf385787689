//! Waiting for something that can only be asked about.

use std::time::Duration;

use crate::Result;

/// Asks `step` again and again until it has an answer, giving the core to others in between.
///
/// MPICH waits without ever yielding, so that with more ranks than cores each message costs a
/// scheduler's slice. A barrier of 4 ranks on 2 cores takes 14,000 us in MPI_Barrier (MPICH 4.0),
/// 10,600 us in MPI_Ibarrier and MPI_Wait, and 16 us here; of 8 ranks 54,000, 33,000 and 140 us.
/// Of 2 ranks with a core each it takes 7, 4 and 4.5 us.
pub(crate) fn poll<T>(mut step: impl FnMut() -> Result<Option<T>>) -> Result<T> {
    let mut failed = 0u32;
    loop {
        if let Some(answer) = step()? {
            return Ok(answer);
        }
        failed += 1;
        if failed < SPINS {
            std::hint::spin_loop();
        } else if failed < SPINS + YIELDS {
            std::thread::yield_now();
        } else {
            // A long wait, as for another rank's disk: leave the core altogether.
            std::thread::sleep(NAP);
        }
    }
}

const SPINS: u32 = 4;
const YIELDS: u32 = 500;
const NAP: Duration = Duration::from_micros(50);
