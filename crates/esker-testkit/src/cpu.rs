//! The time that a thread computed, which does not depend on what else runs on the machine: for
//! tests that something does not take the square of a number.

use std::time::Duration;

/// What `call` gives, and how long this thread computed for it, to a hundredth of a second.
pub fn of_this_thread<T>(call: impl FnOnce() -> T) -> (T, Duration) {
    let before = so_far();
    let result = call();
    (result, so_far().saturating_sub(before))
}

/// User's and system's time of this thread. `/proc` counts in ticks, of which Linux tells
/// programs that there are 100 in a second.
fn so_far() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/stat").unwrap_or_default();
    // Behind the name, which is in parentheses and may have any character.
    let fields = text.rsplit(')').next().unwrap_or_default().split_whitespace();
    let ticks: u64 = fields.skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
    Duration::from_millis(10 * ticks)
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    #[test]
    fn computing_counts_and_sleeping_does_not() {
        let ((), asleep) = super::of_this_thread(|| std::thread::sleep(Duration::from_millis(200)));
        let ((), busy) = super::of_this_thread(|| {
            let mut sum = 0u64;
            // Until this thread has had some time, however long that takes.
            let begun = Instant::now();
            while super::so_far() < Duration::from_millis(100)
                && begun.elapsed() < crate::ranks::HANG
            {
                (0..1_000_000).for_each(|i| sum = std::hint::black_box(sum + i));
            }
        });
        assert!(asleep < Duration::from_millis(100), "{asleep:?}");
        assert!(busy >= Duration::from_millis(50), "{busy:?}");
    }
}
