//! How long something takes, without what other programs take.

use std::time::Instant;

/// What is shorter is not worth asking the system about, which takes some microseconds.
const SHORT: f64 = 1e-3;

/// Measures time without that in which this thread was ready and another one had its processor: a busy machine does not make
/// steps look longer than filters. Where the system does not tell, all time counts.
#[derive(Debug)]
pub(crate) struct Stopwatch {
    begin: Instant,
    kept_waiting: Option<f64>,
}

/// Seconds in which this thread has waited for a processor.
fn kept_waiting() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    Some(text.split_whitespace().nth(1)?.parse::<f64>().ok()? * 1e-9)
}

impl Stopwatch {
    /// For something of which it is known how long it takes, or not.
    pub(crate) fn start(expected: Option<f64>) -> Stopwatch {
        let asks = expected.is_none_or(|seconds| seconds > SHORT);
        let kept_waiting = if asks { kept_waiting() } else { None };
        Stopwatch { begin: Instant::now(), kept_waiting }
    }

    pub(crate) fn seconds(&self) -> f64 {
        let all = self.begin.elapsed().as_secs_f64();
        let lost = self.kept_waiting.and_then(|before| Some(kept_waiting()? - before));
        // At least a little, whatever the system says.
        (all - lost.unwrap_or(0.0)).max(all * 0.01)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn waiting_for_something_counts_and_nothing_is_more_than_all() {
        for expected in [None, Some(0.0), Some(1.0)] {
            let begin = Instant::now();
            let watch = Stopwatch::start(expected);
            std::thread::sleep(Duration::from_millis(30));
            let (seconds, all) = (watch.seconds(), begin.elapsed().as_secs_f64());
            assert!(seconds <= all && seconds > 0.0, "{seconds} of {all}");
        }
    }
}
