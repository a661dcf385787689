//! From a level to a guess of the next finer one: what a reader can know before it reads more.

use super::Coarse;
use super::lattice::level_shape;
use crate::real::Real;

/// Neighbours in the coarser level, and their weights.
type Taps = ([(usize, f64); 4], usize);

/// What the point `at` of `fine` points along a dimension is guessed from.
fn taps(coarse: Coarse, at: usize, fine: usize) -> Taps {
    let (len, near) = (fine.div_ceil(2), at / 2);
    let (left, right) = (near > 0, near + 1 < len);
    let none = (0, 0.0);
    let one = ([(near, 1.0), none, none, none], 1);
    if at.is_multiple_of(2) {
        return match coarse {
            Coarse::Mean if at + 1 < fine => slope(near, len, -1.0),
            Coarse::Spline if left && right => {
                let sixteenth = 1.0 / 16.0;
                let taps = [(near - 1, sixteenth), (near, 0.875), (near + 1, sixteenth), none];
                (taps, 3)
            }
            _ => one,
        };
    }
    if coarse == Coarse::Mean {
        return slope(near, len, 1.0);
    }
    match (left, right, near + 2 < len) {
        (_, false, _) if left => ([(near - 1, -0.5), (near, 1.5), none, none], 2),
        (_, false, _) => one,
        (true, true, true) => {
            let (far, close) = match coarse {
                Coarse::Spline => (-1.0 / 32.0, 17.0 / 32.0),
                _ => (-0.0625, 0.5625),
            };
            ([(near - 1, far), (near, close), (near + 1, close), (near + 2, far)], 4)
        }
        (true, true, false) => ([(near - 1, -0.125), (near, 0.75), (near + 1, 0.375), none], 3),
        (false, true, true) => ([(near, 0.375), (near + 1, 0.75), (near + 2, -0.125), none], 3),
        (false, true, false) => ([(near, 0.5), (near + 1, 0.5), none, none], 2),
    }
}

/// A quarter of a coarse cell to one side of its centre.
fn slope(near: usize, len: usize, side: f64) -> Taps {
    let none = (0, 0.0);
    match (near > 0, near + 1 < len) {
        (true, true) => ([(near - 1, -side / 8.0), (near, 1.0), (near + 1, side / 8.0), none], 3),
        (true, false) => ([(near - 1, -side / 4.0), (near, 1.0 + side / 4.0), none, none], 2),
        (false, true) => ([(near, 1.0 - side / 4.0), (near + 1, side / 4.0), none, none], 2),
        (false, false) => ([(near, 1.0), none, none, none], 1),
    }
}

/// A guess of the level with `shape` from the next coarser one. Dimensions one after the other, the last one first;
/// sums from left to right in the type's own precision.
pub(super) fn refine<F: Real>(coarse: Coarse, shape: &[usize], values: &[F]) -> Vec<F> {
    let mut now = level_shape(shape, 1);
    let mut field = values.to_vec();
    for dim in (0..shape.len()).rev() {
        if shape[dim] > 1 {
            field = along(coarse, &now, dim, shape[dim], &field);
        }
        now[dim] = shape[dim];
    }
    field
}

fn along<F: Real>(coarse: Coarse, shape: &[usize], dim: usize, fine: usize, field: &[F]) -> Vec<F> {
    let inner: usize = shape[dim + 1..].iter().product();
    let block = shape[dim] * inner;
    let mut out = Vec::with_capacity(field.len() / shape[dim].max(1) * fine);
    let all: Vec<([(usize, F); 4], usize)> = (0..fine)
        .map(|at| {
            let (list, count) = taps(coarse, at, fine);
            (list.map(|(place, weight)| (place, F::narrow(weight))), count)
        })
        .collect();
    if block == 0 {
        return out;
    }
    for block in field.chunks_exact(block) {
        for (taps, count) in &all {
            let row = |i: usize| (&block[taps[i].0 * inner..(taps[i].0 + 1) * inner], taps[i].1);
            match count {
                1 => out.extend_from_slice(row(0).0),
                2 => {
                    let ((a, u), (b, v)) = (row(0), row(1));
                    out.extend((0..inner).map(|i| a[i] * u + b[i] * v));
                }
                3 => {
                    let ((a, u), (b, v), (c, w)) = (row(0), row(1), row(2));
                    out.extend((0..inner).map(|i| a[i] * u + b[i] * v + c[i] * w));
                }
                _ => {
                    let ((a, u), (b, v), (c, w), (d, z)) = (row(0), row(1), row(2), row(3));
                    out.extend((0..inner).map(|i| a[i] * u + b[i] * v + c[i] * w + d[i] * z));
                }
            }
        }
    }
    out
}
