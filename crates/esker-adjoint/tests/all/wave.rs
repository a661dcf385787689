//! A small nonlinear model with two time levels, whose gradient is known by keeping everything.

use esker_adjoint::{ArrayMut, Model, ModelError};

/// u'' = c² u_xx - k u³ on a ring, by leapfrog; J = sum of u² at the end. The gradient is by the initial u and by k.
#[derive(Clone)]
pub(crate) struct Wave {
    pub(crate) steps: u64,
    pub(crate) before: Vec<f64>,
    pub(crate) now: Vec<f64>,
    pub(crate) a_before: Vec<f64>,
    pub(crate) a_now: Vec<f64>,
    pub(crate) by_k: [f64; 1],
    pub(crate) forward_steps: u64,
    pub(crate) finished: Option<u64>,
    /// Fails at this step.
    pub(crate) fails_at: Option<u64>,
    /// Makes a value that is not a number at this step.
    pub(crate) nan_at: Option<u64>,
    /// Adds noise: a model that is not deterministic.
    pub(crate) noise: f64,
    /// Called before each reverse step.
    pub(crate) hook: Option<Hook>,
}

/// Something that happens in the middle of a run.
pub(crate) type Hook = std::sync::Arc<dyn Fn(u64) + Send + Sync>;

const C: f64 = 0.2;
const K: f64 = 0.01;

impl Wave {
    pub(crate) fn new(cells: usize, steps: u64, rank: usize) -> Wave {
        let start = |i: usize| {
            let x = i as f64 / cells as f64 + rank as f64 * 0.1;
            (12.0 * x).sin() + 0.3 * (40.0 * x).cos()
        };
        let now: Vec<f64> = (0..cells).map(start).collect();
        Wave {
            steps,
            before: now.clone(),
            now,
            a_before: vec![0.0; cells],
            a_now: vec![0.0; cells],
            by_k: [0.0],
            forward_steps: 0,
            finished: None,
            fails_at: None,
            nan_at: None,
            noise: 0.0,
            hook: None,
        }
    }

    pub(crate) fn state_bytes(&self) -> u64 {
        16 * self.now.len() as u64
    }

    /// Everything of the gradient, as bits.
    pub(crate) fn gradient(&self) -> Vec<u64> {
        let all = self.a_before.iter().chain(&self.a_now).chain(&self.by_k);
        all.map(|x| x.to_bits()).collect()
    }

    pub(crate) fn gradient_values(&self) -> Vec<f64> {
        self.a_before.iter().chain(&self.a_now).chain(&self.by_k).copied().collect()
    }

    fn step(&mut self) {
        let n = self.now.len();
        let next: Vec<f64> = (0..n)
            .map(|i| {
                let (left, right) = (self.now[(i + n - 1) % n], self.now[(i + 1) % n]);
                let u = self.now[i];
                2.0 * u - self.before[i] + C * (left - 2.0 * u + right) - K * u * u * u
            })
            .collect();
        self.before = std::mem::replace(&mut self.now, next);
    }

    /// The adjoint of the step from the state in place.
    fn step_back(&mut self) {
        let n = self.now.len();
        let (a_next, a_old) = (self.a_now.clone(), self.a_before.clone());
        for i in 0..n {
            let (left, right) = (a_next[(i + n - 1) % n], a_next[(i + 1) % n]);
            let u = self.now[i];
            self.a_now[i] =
                a_old[i] + (2.0 - 2.0 * C - 3.0 * K * u * u) * a_next[i] + C * (left + right);
            self.a_before[i] = -a_next[i];
            self.by_k[0] -= u * u * u * a_next[i];
        }
    }

    fn seed(&mut self) {
        self.a_now = self.now.iter().map(|u| 2.0 * u).collect();
        self.a_before.iter_mut().for_each(|a| *a = 0.0);
    }

    /// The gradient by keeping all states: no schedule, no checkpoints.
    pub(crate) fn plain_gradient(mut self) -> Wave {
        let mut states = Vec::new();
        for _ in 0..self.steps {
            states.push((self.before.clone(), self.now.clone()));
            self.step();
        }
        self.seed();
        while let Some((before, now)) = states.pop() {
            (self.before, self.now) = (before, now);
            self.step_back();
        }
        self
    }
}

impl Model for Wave {
    fn state(&mut self) -> Vec<ArrayMut<'_>> {
        let n = self.now.len();
        vec![
            ArrayMut::doubles("before", &[n], &mut self.before),
            ArrayMut::doubles("now", &[n], &mut self.now),
        ]
    }

    fn adjoint(&mut self) -> Vec<ArrayMut<'_>> {
        let n = self.now.len();
        vec![
            ArrayMut::doubles("a_before", &[n], &mut self.a_before),
            ArrayMut::doubles("a_now", &[n], &mut self.a_now),
            ArrayMut::doubles("by_k", &[1], &mut self.by_k),
        ]
    }

    fn forward(&mut self, from: u64, to: u64) -> Result<(), ModelError> {
        for n in from..to {
            if self.fails_at == Some(n) {
                return Err("the solver did not converge".into());
            }
            self.step();
            self.forward_steps += 1;
            if self.nan_at == Some(n) {
                self.now[3] = f64::NAN;
            }
            self.now[0] += self.noise * self.forward_steps as f64;
        }
        if to == self.steps {
            self.seed();
        }
        Ok(())
    }

    fn reverse(&mut self, from: u64, to: u64) -> Result<(), ModelError> {
        assert_eq!(from, to + 1);
        if let Some(hook) = &self.hook {
            hook(to);
        }
        self.step_back();
        Ok(())
    }

    fn is_finished(&mut self, state: u64) -> Option<bool> {
        self.finished.map(|end| state >= end)
    }
}

/// The same model, whose adjoint does not look at the state: what it needs of a step is left by the step.
#[derive(Clone)]
pub(crate) struct WithDeps {
    pub(crate) wave: Wave,
    u: Vec<f64>,
}

impl WithDeps {
    pub(crate) fn new(cells: usize, steps: u64) -> WithDeps {
        WithDeps { wave: Wave::new(cells, steps, 0), u: vec![0.0; cells] }
    }
}

impl Model for WithDeps {
    fn state(&mut self) -> Vec<ArrayMut<'_>> {
        self.wave.state()
    }

    fn adjoint(&mut self) -> Vec<ArrayMut<'_>> {
        self.wave.adjoint()
    }

    fn forward(&mut self, from: u64, to: u64) -> Result<(), ModelError> {
        for step in from..to {
            self.u.clone_from(&self.wave.now);
            self.wave.forward(step, step + 1)?;
        }
        Ok(())
    }

    fn reverse(&mut self, from: u64, to: u64) -> Result<(), ModelError> {
        // The state in place is of no use to it.
        let state = std::mem::replace(&mut self.wave.now, self.u.clone());
        let done = self.wave.reverse(from, to);
        self.wave.now = state;
        done
    }

    fn has_deps(&self) -> bool {
        true
    }

    fn deps(&mut self) -> Vec<ArrayMut<'_>> {
        let n = self.u.len();
        vec![ArrayMut::doubles("u", &[n], &mut self.u)]
    }

    fn is_finished(&mut self, state: u64) -> Option<bool> {
        Some(state >= self.wave.steps)
    }
}
