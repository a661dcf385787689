//! Where did the wave come from? A drum is struck somewhere, a few microphones listen, and the strike is sought.
//!
//! The wave is linear, so the misfit is a quadratic form of the strike, and conjugate gradients find its
//! minimum. Each of their steps takes one gradient: the wave forward, the adjoint back.

use esker_adjoint::{ArrayMut, Model, ModelError, Options, Report, budget, run};
use esker_comm::SelfComm;

pub(super) const ROWS: usize = 32;
pub(super) const COLUMNS: usize = 64;
const CELLS: usize = ROWS * COLUMNS;
pub(super) const STEPS: u64 = 240;
/// The square of the distance that a wave runs in a step, in cells.
const SPEED: f64 = 0.2;
/// Some of each movement is lost in a step.
const FRICTION: f64 = 0.002;
/// Every so many cells in both directions there is a microphone.
const SPACING: usize = 5;

fn microphones() -> Vec<usize> {
    let grid = |i: usize, n: usize| (SPACING / 2..n).step_by(SPACING).nth(i);
    let rows = (0..).map_while(|i| grid(i, ROWS));
    rows.flat_map(|row| (0..).map_while(move |i| grid(i, COLUMNS)).map(move |c| row * COLUMNS + c))
        .collect()
}

/// What the microphones hear, and how far that is from what they heard.
#[derive(Clone)]
struct Drum {
    before: Vec<f64>,
    now: Vec<f64>,
    a_before: Vec<f64>,
    a_now: Vec<f64>,
    microphones: Vec<usize>,
    /// What was heard: a row for each state.
    heard: Vec<Vec<f64>>,
}

/// The sum of the neighbours, less four times the middle; the rim is held fast.
fn bend(u: &[f64], i: usize) -> f64 {
    let (row, column) = (i / COLUMNS, i % COLUMNS);
    let at = |inside: bool, i: usize| if inside { u[i] } else { 0.0 };
    at(row > 0, i.wrapping_sub(COLUMNS))
        + at(row + 1 < ROWS, i + COLUMNS)
        + at(column > 0, i.wrapping_sub(1))
        + at(column + 1 < COLUMNS, i + 1)
        - 4.0 * u[i]
}

fn grown(u: &[f64], i: usize) -> f64 {
    (2.0 - FRICTION) * u[i] + SPEED * bend(u, i)
}

impl Drum {
    fn struck(strike: &[f64], heard: Vec<Vec<f64>>) -> Drum {
        Drum {
            before: strike.to_vec(),
            now: strike.to_vec(),
            a_before: vec![0.0; CELLS],
            a_now: vec![0.0; CELLS],
            microphones: microphones(),
            heard,
        }
    }

    fn step(&mut self) {
        let next =
            (0..CELLS).map(|i| grown(&self.now, i) - (1.0 - FRICTION) * self.before[i]).collect();
        self.before = std::mem::replace(&mut self.now, next);
    }

    fn hears(&self) -> Vec<f64> {
        self.microphones.iter().map(|&i| self.now[i]).collect()
    }

    /// The difference at the microphones, in the state that is in place.
    fn difference(&self, state: u64) -> Vec<f64> {
        self.hears().iter().zip(&self.heard[state as usize]).map(|(a, b)| a - b).collect()
    }

    fn listen(&mut self, state: u64) {
        let differences = self.difference(state);
        for (&i, difference) in self.microphones.iter().zip(differences) {
            self.a_now[i] += difference;
        }
    }
}

impl Model for Drum {
    fn state(&mut self) -> Vec<ArrayMut<'_>> {
        let shape = [ROWS, COLUMNS];
        vec![
            ArrayMut::doubles("before", &shape, &mut self.before),
            ArrayMut::doubles("now", &shape, &mut self.now),
        ]
    }

    fn adjoint(&mut self) -> Vec<ArrayMut<'_>> {
        let shape = [ROWS, COLUMNS];
        vec![
            ArrayMut::doubles("a_before", &shape, &mut self.a_before),
            ArrayMut::doubles("a_now", &shape, &mut self.a_now),
        ]
    }

    fn forward(&mut self, from: u64, to: u64) -> Result<(), ModelError> {
        for _ in from..to {
            self.step();
        }
        if to == STEPS {
            self.a_now.fill(0.0);
            self.a_before.fill(0.0);
            self.listen(STEPS);
        }
        Ok(())
    }

    fn reverse(&mut self, _: u64, to: u64) -> Result<(), ModelError> {
        let a = std::mem::take(&mut self.a_now);
        let back = (0..CELLS).map(|i| grown(&a, i) + self.a_before[i]);
        self.a_now = back.collect();
        self.a_before = a.iter().map(|a| (FRICTION - 1.0) * a).collect();
        self.listen(to);
        Ok(())
    }
}

/// What is sought: two strikes.
pub(super) fn truth() -> Vec<f64> {
    let bump = |i: usize, row: f64, column: f64, height: f64| {
        let (y, x) = ((i / COLUMNS) as f64 - row, (i % COLUMNS) as f64 - column);
        height * (-(y * y + x * x) / 8.0).exp()
    };
    (0..CELLS).map(|i| bump(i, 10.0, 17.0, 1.0) + bump(i, 21.0, 45.0, -0.8)).collect()
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// The misfit of a strike: half the sum of squares of all differences.
pub(super) fn misfit(strike: &[f64], heard: &[Vec<f64>]) -> f64 {
    let mut drum = Drum::struck(strike, heard.to_vec());
    let mut sum = 0.0;
    for state in 0..=STEPS {
        let difference = drum.difference(state);
        sum += 0.5 * dot(&difference, &difference);
        drum.step();
    }
    sum
}

/// The gradient of the misfit by the strike, with checkpoints as the options say.
pub(super) fn gradient(
    strike: &[f64],
    heard: &[Vec<f64>],
    options: &Options,
) -> esker_adjoint::Result<(Vec<f64>, Report)> {
    let (mut drum, comm) = (Drum::struck(strike, heard.to_vec()), SelfComm::new());
    let mut plan = budget(&mut drum, STEPS, &comm, options)?;
    let report = run(&mut drum, &mut plan, &comm, options)?;
    let sum = drum.a_now.iter().zip(&drum.a_before).map(|(a, b)| a + b).collect();
    Ok((sum, report))
}

/// What the microphones hear of a strike, in each state.
pub(super) fn heard(strike: &[f64]) -> Vec<Vec<f64>> {
    let mut drum = Drum::struck(strike, Vec::new());
    let states = 0..=STEPS;
    states
        .map(|_| {
            let now = drum.hears();
            drum.step();
            now
        })
        .collect()
}

/// Bytes of one state.
pub(super) const STATE: u64 = 16 * CELLS as u64;

/// The search for a strike, one gradient after the other.
pub(super) struct Search {
    pub(super) strike: Vec<f64>,
    pub(super) misfit: f64,
    residual: Vec<f64>,
    direction: Vec<f64>,
    heard: Vec<Vec<f64>>,
    silence: Vec<Vec<f64>>,
}

impl Search {
    /// Begins with a drum that nobody struck.
    pub(super) fn begin(
        heard: Vec<Vec<f64>>,
        options: &Options,
    ) -> esker_adjoint::Result<(Search, Report)> {
        let strike = vec![0.0; CELLS];
        let (gradient, report) = gradient(&strike, &heard, options)?;
        let residual: Vec<f64> = gradient.iter().map(|g| -g).collect();
        let silence = vec![vec![0.0; microphones().len()]; STEPS as usize + 1];
        let (misfit, direction) = (misfit(&strike, &heard), residual.clone());
        Ok((Search { strike, misfit, residual, direction, heard, silence }, report))
    }

    /// One step of conjugate gradients.
    pub(super) fn improve(&mut self, options: &Options) -> esker_adjoint::Result<Report> {
        // The gradient with nothing heard is the matrix of the quadratic form times the strike.
        let (turned, report) = gradient(&self.direction, &self.silence, options)?;
        let before = dot(&self.residual, &self.residual);
        let curvature = dot(&self.direction, &turned);
        if curvature <= 0.0 || before == 0.0 {
            return Ok(report);
        }
        let length = before / curvature;
        self.strike.iter_mut().zip(&self.direction).for_each(|(s, d)| *s += length * d);
        self.residual.iter_mut().zip(&turned).for_each(|(r, t)| *r -= length * t);
        let ratio = dot(&self.residual, &self.residual) / before;
        for (d, r) in self.direction.iter_mut().zip(&self.residual) {
            *d = r + ratio * *d;
        }
        self.misfit = misfit(&self.strike, &self.heard);
        Ok(report)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Central differences of a quadratic form are exact up to rounding.
    #[test]
    fn the_gradient_is_that_of_the_misfit() {
        let heard = heard(&truth());
        let strike: Vec<f64> = (0..CELLS).map(|i| (i as f64 * 0.37).sin() * 0.1).collect();
        let options = Options { memory: 6 * (STATE + 400), ..Options::default() };
        let (gradient, report) = gradient(&strike, &heard, &options).unwrap();
        assert!(report.peak[0] <= options.memory);
        let direction: Vec<f64> = (0..CELLS).map(|i| (i as f64 * 0.73).cos()).collect();
        let moved = |by: f64| {
            let moved: Vec<f64> = strike.iter().zip(&direction).map(|(s, d)| s + by * d).collect();
            misfit(&moved, &heard)
        };
        let expected = (moved(1e-3) - moved(-1e-3)) / 2e-3;
        let found = dot(&gradient, &direction);
        assert!((found - expected).abs() < 1e-6 * expected.abs(), "{found} {expected}");
    }
}
