//! Units that hold restart data or the dependencies of one step.

use super::reversal::{Decision, Policy, Reversal, View};
use super::revolve::{checked, next_or_end};
use super::{Action, Data, Place, Result, Schedule, ScheduleError, same_steps};

/// Mixed checkpoints (Maddison, 2024): a unit holds what restarts the model at a step, or what the
/// adjoint of one step depends on, whichever saves more forward steps.
#[derive(Debug)]
pub struct Mixed {
    steps: u64,
    place: Place,
    reversal: Reversal<Units>,
    done: bool,
}

/// More steps would need tables of more than some hundred megabytes.
const MOST: u64 = 1 << 20;
const MOST_CELLS: u64 = 1 << 26;

/// The best decisions for n steps and s free units.
#[derive(Debug)]
pub(crate) struct MixedTable {
    steps: usize,
    units: usize,
    /// For a state that is not kept: 0, keep the dependencies of its step, else keep restart data and
    /// run so many steps.
    fresh: Vec<u32>,
    /// For a state that is kept in one of the s units: run so many steps.
    kept: Vec<u32>,
    /// The forward steps of the last row.
    costs: Vec<u64>,
    /// The forward steps of all rows, for states that are not kept and that are, if asked for.
    all: Option<[Vec<u32>; 2]>,
}

const IMPOSSIBLE: u64 = u64::MAX / 4;

impl MixedTable {
    /// Fills the tables for up to `steps` steps and `units` units, in time proportional to steps × units².
    ///
    /// With A(n, s) the forward steps from a state that is not kept, and B(n, s) from one that one of
    /// s units keeps:
    ///
    /// - A(n, s) = n for n ≤ s + 1, else the least of 1 + A(n - 1, s - 1) and G(n, s);
    /// - B(n, s) = n for n ≤ s + 1 (its unit is free once it is loaded), else G(n, s);
    /// - G(n, s) = least over m of m + A(n - m, s - 1) + B(m, s).
    ///
    /// A and B are nearly convex in n: from one n to the next the best m moves by at most s, and is looked for
    /// there. (All m were compared for n up to 1,200 and s up to 30; the test `tables_are_the_optimum` does so
    /// for fewer.)
    pub(crate) fn new(steps: u64, units: u64) -> Result<MixedTable> {
        MixedTable::build(steps, units, false)
    }

    /// The same with the forward steps of all rows.
    pub(crate) fn with_costs(steps: u64, units: u64) -> Result<MixedTable> {
        MixedTable::build(steps, units, true)
    }

    fn build(steps: u64, units: u64, with_costs: bool) -> Result<MixedTable> {
        if steps > MOST || steps.saturating_mul(units + 1) > MOST_CELLS {
            let most = MOST.min(MOST_CELLS / (units + 1));
            return Err(ScheduleError::TooLong { steps, most });
        }
        let (steps, units) = (steps as usize, units as usize);
        let width = steps + 1;
        let mut fresh = vec![0; width * (units + 1)];
        let mut kept = vec![0; width * (units + 1)];
        let size = if with_costs { width * (units + 1) } else { 0 };
        let mut all = [vec![u32::MAX; size], vec![u32::MAX; size]];
        let short = |cost: &u64| u32::try_from(*cost).unwrap_or(u32::MAX);
        let mut before = vec![IMPOSSIBLE; width];
        before[0] = 0;
        if steps >= 1 {
            before[1] = 1;
        }
        if with_costs && steps >= 1 {
            all[0][1] = 1;
        }
        for s in 1..=units {
            let (mut a, mut b) = (vec![0; width], vec![0; width]);
            let mut m = 1usize;
            for n in 1..width {
                if n <= s + 1 {
                    (a[n], b[n]) = (n as u64, n as u64);
                    continue;
                }
                let cost = |m: usize| m as u64 + before[n - m] + b[m];
                // With one unit only the last step is left for the right part.
                let (from, to) = if s == 1 {
                    (n - 1, n)
                } else {
                    (m.saturating_sub(s).max(1), (m + s + 1).min(n))
                };
                for candidate in from..to {
                    if candidate == from || cost(candidate) < cost(m) {
                        m = candidate;
                    }
                }
                let (with_restart, with_deps) = (cost(m), 1 + before[n - 1]);
                b[n] = with_restart;
                kept[s * width + n] = m as u32;
                a[n] = with_restart.min(with_deps);
                if with_restart < with_deps {
                    fresh[s * width + n] = m as u32;
                }
            }
            if with_costs {
                let row = s * width..(s + 1) * width;
                all[0][row.clone()].iter_mut().zip(&a).for_each(|(to, cost)| *to = short(cost));
                all[1][row].iter_mut().zip(&b).for_each(|(to, cost)| *to = short(cost));
            }
            before = a;
        }
        let all = with_costs.then_some(all);
        Ok(MixedTable { steps, units, fresh, kept, costs: before, all })
    }

    /// What the table was made for.
    pub(crate) fn reach(&self) -> (u64, u64) {
        (self.steps as u64, self.units as u64)
    }

    /// The forward steps for n steps and s units, if the table has them: from a state that is not kept, or
    /// from one that is kept in one of the units.
    pub(crate) fn cost_of(&self, n: u64, s: u64, kept: bool) -> Option<u64> {
        let all = self.all.as_ref()?;
        let cost = *all[usize::from(kept)].get(self.index(n, s))?;
        (cost != u32::MAX).then_some(cost.into())
    }

    fn index(&self, n: u64, s: u64) -> usize {
        (s as usize).min(self.units) * (self.steps + 1) + n as usize
    }

    /// The least number of forward steps with all units.
    pub(crate) fn cost(&self) -> Option<u64> {
        self.costs.last().copied().filter(|&cost| cost < IMPOSSIBLE)
    }
}

#[derive(Debug)]
struct Units {
    table: MixedTable,
    units: u64,
    place: Place,
}

impl Policy for Units {
    fn decide(&mut self, view: &View<'_>) -> Decision {
        let (left, place) = (view.left(), self.place);
        if left == 1 {
            return Decision::Record;
        }
        let free = self.units - view.held.len() as u64;
        if view.kept {
            let steps = self.table.kept[self.table.index(left, free + 1)];
            return Decision::Advance { steps: steps.into() };
        }
        match self.table.fresh[self.table.index(left, free)] {
            0 => Decision::Store { kind: Data::Deps, place, steps: 1 },
            steps => Decision::Store { kind: Data::Restart, place, steps: steps.into() },
        }
    }

    fn releases(&mut self, view: &View<'_>) -> bool {
        let with_its_own = self.units - view.held.len() as u64 + 1;
        view.left() <= with_its_own + 1
    }
}

impl Mixed {
    /// `units` units, all of them in `place`.
    pub fn new(steps: u64, units: u64, place: Place) -> Result<Mixed> {
        let units = checked(steps, units)?;
        let table = MixedTable::new(steps, units)?;
        let reversal = Reversal::new(Units { table, units, place }, steps);
        Ok(Mixed { steps, place, reversal, done: false })
    }
}

/// The least number of forward steps of a mixed schedule.
///
/// ```
/// assert_eq!(esker_adjoint::schedule::mixed_forward_steps(10, 3), Ok(19));
/// ```
pub fn mixed_forward_steps(steps: u64, units: u64) -> Result<u64> {
    let slots = checked(steps, units)?;
    let cost = MixedTable::new(steps, slots)?.cost();
    cost.ok_or(ScheduleError::TooFew { steps, slots: units, least: 1 })
}

impl Schedule for Mixed {
    fn next_action(&mut self) -> Option<Action> {
        next_or_end(&mut self.reversal, &mut self.done)
    }

    fn steps(&self) -> Option<u64> {
        Some(self.steps)
    }

    fn finalize(&mut self, steps: u64) -> Result<()> {
        same_steps(self.steps, steps)
    }

    fn uses(&self, place: Place) -> bool {
        self.steps > 1 && place == self.place
    }

    fn is_exhausted(&self) -> bool {
        self.done
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A(n, s) and B(n, s) by trying every m.
    fn plain(steps: usize, units: usize) -> Vec<Vec<u64>> {
        let mut rows = vec![vec![IMPOSSIBLE; steps + 1]];
        rows[0][1] = 1;
        for s in 1..=units {
            let (mut a, mut b) = (vec![0; steps + 1], vec![0; steps + 1]);
            for n in 1..=steps {
                if n <= s + 1 {
                    (a[n], b[n]) = (n as u64, n as u64);
                    continue;
                }
                b[n] = (1..n).map(|m| m as u64 + rows[s - 1][n - m] + b[m]).min().unwrap();
                a[n] = b[n].min(1 + rows[s - 1][n - 1]);
            }
            rows.push(a);
        }
        rows
    }

    #[test]
    fn tables_are_the_optimum() {
        let plain = plain(300, 40);
        for units in 1..=40 {
            let table = MixedTable::new(300, units).unwrap();
            assert_eq!(table.costs[1..], plain[units as usize][1..], "{units} units");
        }
    }
}
