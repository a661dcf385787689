//! What steps and transfers take, measured while a run goes on.

use std::collections::VecDeque;

/// The last few measurements of something. Their median counts: on a busy machine some are many times too long.
#[derive(Debug, Clone, Default)]
pub(crate) struct Recent {
    last: VecDeque<f64>,
}

/// An odd number, so that the median is one of them.
const KEPT: usize = 7;

impl Recent {
    pub(crate) fn add(&mut self, seconds: f64) {
        if self.last.len() == KEPT {
            self.last.pop_front();
        }
        self.last.push_back(seconds);
    }

    /// The lower one of the two in the middle: what is too long is more often wrong than what is too short.
    pub(crate) fn median(&self) -> Option<f64> {
        let mut sorted: Vec<f64> = self.last.iter().copied().collect();
        sorted.sort_unstable_by(f64::total_cmp);
        sorted.get(sorted.len().saturating_sub(1) / 2).copied()
    }

    pub(crate) fn forget(&mut self) {
        self.last.clear();
    }
}

/// Transfers of different lengths: a time for each, and one for each byte.
#[derive(Debug, Clone, Default)]
pub(crate) struct Transfers {
    /// Seconds of an empty one.
    pub(crate) fixed: f64,
    /// Seconds of a byte.
    per_byte: Recent,
}

impl Transfers {
    pub(crate) fn add(&mut self, bytes: u64, seconds: f64) {
        let moving = (seconds - self.fixed).max(0.0);
        self.per_byte.add(moving / bytes.max(1) as f64);
    }

    /// Seconds of so many bytes, if something was measured.
    pub(crate) fn of(&self, bytes: u64) -> Option<f64> {
        Some(self.fixed + self.per_byte.median()? * bytes as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_measurement_that_is_far_off_does_not_count() {
        let mut times = Recent::default();
        assert_eq!(times.median(), None);
        for seconds in [5.0, 900.0, 4.0, 6.0] {
            times.add(seconds);
        }
        assert_eq!(times.median(), Some(5.0));
        // What was measured long ago does not, either.
        (0..KEPT).for_each(|_| times.add(1.0));
        assert_eq!(times.median(), Some(1.0));
    }

    #[test]
    fn a_transfer_costs_a_time_of_its_own_and_one_for_each_byte() {
        let mut writes = Transfers { fixed: 0.5, ..Transfers::default() };
        assert_eq!(writes.of(10), None);
        writes.add(100, 2.5);
        assert_eq!(writes.of(100), Some(2.5));
        assert_eq!(writes.of(1000), Some(20.5));
        // Faster than an empty one: the bytes cost nothing.
        writes.add(100, 0.1);
        assert_eq!(writes.of(0), Some(0.5));
    }
}
