//! Reversal where keeping a state takes time: the least cost with s checkpoints, each of which costs as much as so many steps.

use std::cell::RefCell;

use crate::schedule::least_sum::least_sum;

/// Longer runs have no table.
const MOST_STEPS: u64 = 1024;
/// Of more checkpoints there is no table.
const MOST_SLOTS: u64 = 128;
/// What costs less of a step is free.
const FREE: f64 = 0.02;
/// Costs are measured again and again: those that differ by less are the same.
const WAVER: f64 = 1.3;

/// Costs in steps, of runs in which the adjoint of a step depends on the state alone. The row of s checkpoints is made when it
/// is asked for.
#[derive(Debug)]
pub(super) struct Priced {
    /// Steps that keeping a state costs.
    price: f64,
    steps: usize,
    /// From a state that is kept in one of s checkpoints, by the number of steps; the first row is of one.
    rows: RefCell<Vec<Vec<f64>>>,
}

impl Priced {
    /// Nothing where states are kept for nothing, or the run is too long.
    pub(super) fn new(steps: u64, price: f64) -> Option<Priced> {
        let makes_sense = price.is_finite() && price > FREE && steps <= MOST_STEPS;
        makes_sense.then(|| Priced { price, steps: steps as usize, rows: RefCell::default() })
    }

    /// Whether this is the price, as far as one can tell. On the other side of one step it is another: what is cheaper to keep than to
    /// compute again is kept, always.
    pub(super) fn is_about(&self, price: f64) -> bool {
        let is_near = (self.price / WAVER..self.price * WAVER).contains(&price);
        is_near && (self.price < 1.0) == (price < 1.0)
    }

    /// What n steps cost with s checkpoints, one of which holds the first state if `kept`, or will.
    pub(super) fn of(&self, n: u64, s: u64, kept: bool) -> f64 {
        if n <= 1 {
            return 0.0;
        }
        if s == 0 {
            return f64::INFINITY;
        }
        let own = if kept { 0.0 } else { self.price };
        let s = s.min(n - 1);
        if s <= MOST_SLOTS {
            return own + self.row_of(s, n);
        }
        // Between so many checkpoints and all of them, which cost a step and a price each.
        let (some, all) =
            (self.row_of(MOST_SLOTS, n), (n - 1) as f64 + (n - 2) as f64 * self.price);
        let share = (s - MOST_SLOTS) as f64 / (n - 1 - MOST_SLOTS) as f64;
        own + some + share * (all - some).min(0.0)
    }

    fn row_of(&self, s: u64, n: u64) -> f64 {
        let mut rows = self.rows.borrow_mut();
        while rows.len() < s as usize {
            let next = self.row(rows.last());
            rows.push(next);
        }
        rows[s as usize - 1][n as usize]
    }

    /// The row of one checkpoint more: run m steps, reverse those behind with one checkpoint less, come back for the m.
    fn row(&self, fewer: Option<&Vec<f64>>) -> Vec<f64> {
        let width = self.steps + 1;
        // What is behind costs, longest first; its first state is kept, unless it is the last of all.
        let behind = |n: usize| match (n, fewer) {
            (0 | 1, _) => 0.0,
            (_, Some(fewer)) => self.price + fewer[n],
            (_, None) => f64::INFINITY,
        };
        let behind: Vec<f64> = (0..width).rev().map(behind).collect();
        let (mut row, mut before) = (vec![0.0; width.min(2)], vec![0.0; width.min(2)]);
        if let Some(one) = before.get_mut(1) {
            *one = 1.0;
        }
        for n in 2..width {
            let (least, _) = least_sum(&before[1..n], &behind[width - n..width - 1]);
            row.push(least);
            before.push(n as f64 + least);
        }
        row
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::{Hierarchy, StepCosts, binomial};

    #[test]
    fn it_is_the_optimum_of_h_revolve_without_memory() {
        for price in [0.1, 1.0, 3.5, 40.0] {
            let priced = Priced::new(90, price).unwrap();
            let costs = StepCosts { forward: 1.0, write: price, read: 0.0 };
            for n in 2..90 {
                for slots in [1, 2, 5, 30] {
                    let best = Hierarchy::new(n, 0, Some(slots), costs).unwrap().cost();
                    // H-Revolve counts the run of each step that records it.
                    let found = priced.of(n, slots, false) + n as f64;
                    assert!((found - best).abs() < 1e-9 * best, "{n} {slots}: {found} {best}");
                }
            }
        }
    }

    #[test]
    fn a_price_that_falls_below_a_step_is_a_new_one() {
        let priced = Priced::new(32, 1.1).unwrap();
        assert!(priced.is_about(1.2) && priced.is_about(1.01) && !priced.is_about(2.0));
        assert!(!priced.is_about(0.95), "a state that is cheaper than its step would not be kept");
        assert!(!Priced::new(32, 0.95).unwrap().is_about(1.1));
    }

    #[test]
    fn where_it_costs_nearly_nothing_steps_are_those_of_revolve() {
        let priced = Priced::new(200, 0.021).unwrap();
        for slots in 1..12 {
            let best = binomial::forward_steps(200, slots).unwrap() as f64 - 200.0;
            let found = priced.of(200, slots, true);
            assert!(
                found >= best && found < best * 1.02 + 0.021 * 200.0,
                "{slots}: {found} {best}"
            );
        }
        assert!(Priced::new(200, 0.0).is_none() && Priced::new(200, f64::NAN).is_none());
        assert!(Priced::new(1 << 20, 1.0).is_none());
    }
}
