//! Binomial numbers: how far s checkpoints reach when no step is run more than r times.
//!
//! Griewank and Walther (2000): with s checkpoints and at most r runs of each step, β(s, r) =
//! (s + r choose s) steps can be reversed, and the least number of runs is known without a table.

/// β(s, r), or `u64::MAX` where it is larger.
pub fn beta(s: u64, r: u64) -> u64 {
    let (few, many) = if s < r { (s, r) } else { (r, s) };
    let mut value: u128 = 1;
    for i in 1..=few {
        // Products of i consecutive numbers are divisible by i!.
        value = value * u128::from(many + i) / u128::from(i);
        if value > u128::from(u64::MAX) {
            return u64::MAX;
        }
    }
    value as u64
}

/// The smallest r with β(s, r) ≥ n: how often a step is run at most, not counting the run that
/// records it. `s` is at least 1, or n is at most 1.
pub fn repetitions(n: u64, s: u64) -> u64 {
    if n <= 1 {
        return 0;
    }
    if s <= 1 {
        return n - 1;
    }
    let mut high = 1;
    while beta(s, high) < n {
        high *= 2;
    }
    let mut low = high / 2;
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if beta(s, middle) < n { low = middle } else { high = middle }
    }
    high
}

/// The least number of forward steps with which n steps are reversed with s checkpoints (the
/// first of them at step 0), with the one run of each step that records it.
///
/// ```
/// use esker_adjoint::schedule::binomial::forward_steps;
/// assert_eq!(forward_steps(1000, 10), Some(4636));
/// assert_eq!(forward_steps(2, 0), None);
/// ```
pub fn forward_steps(n: u64, s: u64) -> Option<u64> {
    match (n, s) {
        (0, _) => return Some(0),
        (1, _) => return Some(1),
        (_, 0) => return None,
        _ => {}
    }
    let r = repetitions(n, s);
    let runs = u128::from(r) * u128::from(n) - u128::from(beta(s + 1, r - 1));
    u64::try_from(runs + u128::from(n)).ok()
}

/// Which of several optimal distances to the next checkpoint is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Trajectory {
    /// The one of Griewank and Walther's program.
    Revolve,
    /// The longest.
    #[default]
    Maximum,
}

/// How many steps to run from a checkpoint before the next one, with n steps to reverse and s
/// checkpoints, this one among them. At least 1 and less than n, which is at least 2.
pub fn advance(n: u64, s: u64, trajectory: Trajectory) -> u64 {
    if s <= 1 {
        return n - 1;
    }
    if n <= s + 1 {
        return 1;
    }
    let r = repetitions(n, s);
    // With r runs the left part has β(s, r - 2) to β(s, r - 1) steps, the right part β(s - 1, r - 1)
    // to β(s - 1, r).
    let least = beta(s, r - 2).max(n.saturating_sub(beta(s - 1, r)));
    let most = beta(s, r - 1).min(n - beta(s - 1, r - 1));
    match trajectory {
        Trajectory::Maximum => most,
        Trajectory::Revolve => {
            let middle = n.saturating_sub(beta(s - 1, r - 1)).saturating_sub(if s >= 2 {
                beta(s - 2, r - 1)
            } else {
                0
            });
            middle.clamp(least, most)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The optimum by trying everything, as Griewank and Walther define it.
    fn table(most: usize, slots: usize) -> Vec<Vec<Option<u64>>> {
        let mut best = vec![vec![None; most + 1]; slots + 1];
        for (s, row) in best.clone().iter().enumerate() {
            let mut row = row.clone();
            row[1] = Some(1);
            for n in 2..=most {
                let right = |m: usize| match s {
                    0 => None,
                    1 => (n - m == 1).then_some(1),
                    _ => best[s - 1][n - m],
                };
                row[n] = (1..n).filter_map(|m| Some(m as u64 + right(m)? + row[m]?)).min();
            }
            best[s] = row;
        }
        best
    }

    #[test]
    fn closed_forms_are_the_optimum() {
        let best = table(130, 9);
        for s in 1..=9u64 {
            for n in 1..=130u64 {
                assert_eq!(forward_steps(n, s), best[s as usize][n as usize], "{n} steps, {s}");
            }
        }
    }

    #[test]
    fn both_trajectories_are_optimal() {
        for trajectory in [Trajectory::Revolve, Trajectory::Maximum] {
            for s in 1..=12 {
                for n in 2..=400 {
                    let m = advance(n, s, trajectory);
                    assert!((1..n).contains(&m));
                    let right = if s == 1 { Some(1) } else { forward_steps(n - m, s - 1) };
                    let sum = right.zip(forward_steps(m, s)).map(|(a, b)| a + b + m);
                    assert_eq!(sum, forward_steps(n, s), "{n} steps, {s}, {m}, {trajectory:?}");
                }
            }
        }
    }

    #[test]
    fn large_numbers_do_not_overflow() {
        assert_eq!(beta(1000, 1000), u64::MAX);
        assert!(beta(3, repetitions(u64::MAX, 3)) == u64::MAX);
        assert_eq!(repetitions(1_000_000, 10), 13);
        assert!(forward_steps(u64::MAX, 1).is_none());
    }
}
