//! A sheet that flows under its own weight: a step solves a system of equations over a small state, so that computing is
//! what a run takes.

use esker_adjoint::{ArrayMut, Model, ModelError};

/// The step over the square of the distance of cells.
const K: f64 = 10.0;
/// What the residual of a solution is at most, of the right side's norm.
const ENOUGH: f64 = 1e-12;
const MOST: usize = 2000;

/// u_t = div(D(u) grad u) with D = u² on a square with closed walls, each step implicit with the diffusivity of the state
/// before it; what is wanted is the gradient of the sum of u² after the last step, by the first state.
#[derive(Debug, Clone)]
pub struct Ice {
    cells: usize,
    steps: u64,
    u: Vec<f64>,
    a: Vec<f64>,
}

impl Ice {
    /// A square of so many cells in each direction, with a dome whose place depends on the rank.
    pub fn new(cells: usize, steps: u64, rank: usize) -> Ice {
        let at = |i: usize| 2.0 * i as f64 / cells.max(2) as f64 - 1.0;
        let dome = |place: usize| {
            let (y, x) = (at(place / cells) + 0.05 * rank as f64, at(place % cells));
            0.2 + (1.0 - y * y - x * x).max(0.0)
        };
        let u: Vec<f64> = (0..cells * cells).map(dome).collect();
        Ice { cells, steps, a: vec![0.0; u.len()], u }
    }

    /// What is wanted, of a field.
    pub fn misfit(&self) -> f64 {
        self.u.iter().map(|u| u * u).sum()
    }

    /// Both cells of every face.
    fn faces(&self) -> impl Iterator<Item = (usize, usize)> + use<> {
        let n = self.cells;
        (0..n * n).flat_map(move |place| {
            let right = (place % n + 1 < n).then_some((place, place + 1));
            let below = (place + n < n * n).then_some((place, place + n));
            right.into_iter().chain(below)
        })
    }

    /// (1 - k div D grad) x, with the diffusivity of each face.
    fn apply(&self, faces: &[(usize, usize, f64)], x: &[f64]) -> Vec<f64> {
        let mut out = x.to_vec();
        for &(one, other, d) in faces {
            let flow = K * d * (x[one] - x[other]);
            out[one] += flow;
            out[other] -= flow;
        }
        out
    }

    /// The field whose image is `right`, by conjugate gradients: the operator is symmetric, and so it is its adjoint's too.
    fn solve(&self, faces: &[(usize, usize, f64)], right: &[f64]) -> Result<Vec<f64>, ModelError> {
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        let mut x = right.to_vec();
        let image = self.apply(faces, &x);
        let mut residual: Vec<f64> = right.iter().zip(&image).map(|(b, a)| b - a).collect();
        let mut direction = residual.clone();
        let mut norm = dot(&residual, &residual);
        let enough = ENOUGH * ENOUGH * dot(right, right);
        for _ in 0..MOST {
            if norm <= enough {
                return Ok(x);
            }
            let image = self.apply(faces, &direction);
            let step = norm / dot(&direction, &image);
            for i in 0..x.len() {
                x[i] += step * direction[i];
                residual[i] -= step * image[i];
            }
            let before = std::mem::replace(&mut norm, dot(&residual, &residual));
            for (d, r) in direction.iter_mut().zip(&residual) {
                *d = r + norm / before * *d;
            }
        }
        Err(format!("{MOST} iterations did not solve a step: the residual is {:e}", norm.sqrt())
            .into())
    }

    fn diffusivities(&self) -> Vec<(usize, usize, f64)> {
        let mean = |(one, other): (usize, usize)| 0.5 * (self.u[one] + self.u[other]);
        self.faces().map(|face| (face.0, face.1, mean(face).powi(2))).collect()
    }
}

impl Model for Ice {
    fn state(&mut self) -> Vec<ArrayMut<'_>> {
        vec![ArrayMut::doubles("u", &[self.cells; 2], &mut self.u)]
    }

    fn adjoint(&mut self) -> Vec<ArrayMut<'_>> {
        vec![ArrayMut::doubles("a", &[self.cells; 2], &mut self.a)]
    }

    fn forward(&mut self, from: u64, to: u64) -> Result<(), ModelError> {
        for _ in from..to {
            self.u = self.solve(&self.diffusivities(), &self.u)?;
        }
        if to == self.steps {
            self.a = self.u.iter().map(|u| 2.0 * u).collect();
        }
        Ok(())
    }

    fn reverse(&mut self, _: u64, _: u64) -> Result<(), ModelError> {
        let faces = self.diffusivities();
        let next = self.solve(&faces, &self.u)?;
        let mut a = self.solve(&faces, &self.a)?;
        let weight = a.clone();
        // The diffusivity of a face is the square of a mean: its derivative by either cell is that mean.
        for &(one, other, d) in &faces {
            let by_cell = K * d.sqrt() * (weight[one] - weight[other]) * (next[one] - next[other]);
            a[one] -= by_cell;
            a[other] -= by_cell;
        }
        self.a = a;
        Ok(())
    }
}
