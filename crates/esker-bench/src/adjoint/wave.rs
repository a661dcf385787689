//! A wave in a box: a cheap step over a large state, so that checkpoints are what a run waits for.

use esker_adjoint::{ArrayMut, Model, ModelError};

/// The square of the Courant number.
const C: f64 = 0.1;
/// The strength of the nonlinear term.
const K: f64 = 0.01;

/// u'' = c² Δu - k u³ in a cube with fixed walls, by leapfrog; what is wanted is the gradient of the sum of u² after
/// the last step, by both time levels at the beginning.
#[derive(Debug, Clone)]
pub struct Wave {
    cells: usize,
    steps: u64,
    before: Vec<f64>,
    now: Vec<f64>,
    a_before: Vec<f64>,
    a_now: Vec<f64>,
}

impl Wave {
    /// A cube of so many cells in each direction, with a pulse whose place depends on the rank.
    pub fn new(cells: usize, steps: u64, rank: usize) -> Wave {
        let at = |i: usize, shift: f64| 2.0 * i as f64 / cells.max(2) as f64 - 1.0 + shift;
        let shift = 0.05 * rank as f64;
        let mut now = Vec::with_capacity(cells * cells * cells);
        for place in 0..cells * cells * cells {
            let (z, y, x) = (place / (cells * cells), place / cells % cells, place % cells);
            let r = at(z, shift).powi(2) + at(y, 0.0).powi(2) + at(x, 0.0).powi(2);
            now.push((-r / 0.05).exp());
        }
        let zeros = vec![0.0; now.len()];
        let (before, a_before, a_now) = (now.clone(), zeros.clone(), zeros);
        Wave { cells, steps, before, now, a_before, a_now }
    }

    /// What is wanted, of a field.
    pub fn misfit(&self) -> f64 {
        self.now.iter().map(|u| u * u).sum()
    }

    /// Sums of the six neighbours of each cell; beyond the walls there is nothing.
    fn neighbours(&self, of: &[f64]) -> Vec<f64> {
        let n = self.cells;
        let mut sums = vec![0.0; of.len()];
        // Along each direction: how far the neighbour is, which the first cell of a line lacks.
        for step in [1, n, n * n] {
            for place in (step..of.len()).filter(|place| place / step % n != 0) {
                sums[place] += of[place - step];
                sums[place - step] += of[place];
            }
        }
        sums
    }
}

impl Model for Wave {
    fn state(&mut self) -> Vec<ArrayMut<'_>> {
        let shape = [self.cells; 3];
        vec![
            ArrayMut::doubles("before", &shape, &mut self.before),
            ArrayMut::doubles("now", &shape, &mut self.now),
        ]
    }

    fn adjoint(&mut self) -> Vec<ArrayMut<'_>> {
        let shape = [self.cells; 3];
        vec![
            ArrayMut::doubles("a_before", &shape, &mut self.a_before),
            ArrayMut::doubles("a_now", &shape, &mut self.a_now),
        ]
    }

    fn forward(&mut self, from: u64, to: u64) -> Result<(), ModelError> {
        for _ in from..to {
            let sums = self.neighbours(&self.now);
            for ((u, old), sum) in self.now.iter_mut().zip(&mut self.before).zip(sums) {
                let next = 2.0 * *u - *old + C * (sum - 6.0 * *u) - K * u.powi(3);
                *old = std::mem::replace(u, next);
            }
        }
        if to == self.steps {
            self.a_now = self.now.iter().map(|u| 2.0 * u).collect();
            self.a_before.fill(0.0);
        }
        Ok(())
    }

    fn reverse(&mut self, _: u64, _: u64) -> Result<(), ModelError> {
        let sums = self.neighbours(&self.a_now);
        let each = self.a_now.iter_mut().zip(&mut self.a_before).zip(&self.now).zip(sums);
        for (((a, a_old), u), sum) in each {
            let next = *a_old + (2.0 - 6.0 * C - 3.0 * K * u * u) * *a + C * sum;
            *a_old = -std::mem::replace(a, next);
        }
        Ok(())
    }
}
