//! From a level to the next coarser one, as it should be.

use super::Coarse;
use super::lattice::{Part, level_shape, strides};
use crate::real::Number;

/// Which numbers are missing values: NaN, and these bits.
pub(super) struct Missing<'a> {
    pub(super) bits: &'a [u64],
}

impl Missing<'_> {
    #[inline(always)]
    fn is<T: Number>(&self, x: T) -> bool {
        x.wide().is_nan() || (!self.bits.is_empty() && self.bits.contains(&x.bits()))
    }

    /// A number that was computed must not become a missing value: then it is the one whose lowest bits differ.
    fn avoid<T: Number>(&self, x: T) -> T {
        let mut bits = x.bits();
        for other in 1.. {
            if !self.bits.contains(&bits) {
                break;
            }
            bits = x.bits() ^ other;
        }
        T::from_bits(bits)
    }
}

/// The next coarser level.
pub(super) fn coarsen<T: Number>(
    coarse: Coarse,
    shape: &[usize],
    values: &[T],
    missing: &Missing<'_>,
) -> Vec<T> {
    match coarse {
        Coarse::Sample => sample(shape, values),
        Coarse::Mean => means(shape, values, missing),
        Coarse::Spline => spline(shape, values, missing),
    }
}

fn sample<T: Number>(shape: &[usize], values: &[T]) -> Vec<T> {
    let mut out = Vec::new();
    Part::parity(shape, 0).gather(shape, values, &mut out);
    out
}

/// What is known of a box while its elements are seen.
#[derive(Clone, Copy)]
struct Sum<T: Number> {
    sum: T::Sum,
    count: u32,
    /// The first missing value.
    missing: Option<T>,
}

impl<T: Number> Sum<T> {
    fn empty() -> Sum<T> {
        Sum { sum: T::Sum::default(), count: 0, missing: None }
    }

    #[inline(always)]
    fn see(&mut self, x: T, missing: &Missing<'_>) {
        if missing.is(x) {
            self.missing = self.missing.or(Some(x));
        } else {
            self.sum = x.add(self.sum);
            self.count += 1;
        }
    }
}

/// Means of boxes of two in each dimension, in double precision and C order.
fn means<T: Number>(shape: &[usize], values: &[T], missing: &Missing<'_>) -> Vec<T> {
    let even = Part::parity(shape, 0);
    let strides = strides(shape);
    let Some((&length, outer)) = shape.split_last() else { return means(&[1], values, missing) };
    let mut out = Vec::with_capacity(even.len());
    let (mut boxes, mut starts) = (Vec::new(), Vec::new());
    even.rows(shape, |place, _, len| {
        // The rows of the box, in C order: each dimension doubles them where it has a neighbour.
        starts.clear();
        starts.push(place);
        for dim in (0..outer.len()).rev() {
            if place / strides[dim] % shape[dim] + 1 < shape[dim] {
                let more = starts.iter().map(|start| start + strides[dim]).collect::<Vec<_>>();
                starts.extend(more);
            }
        }
        boxes.clear();
        boxes.resize(len, Sum::<T>::empty());
        for &start in &starts {
            for (pair, sum) in values[start..start + length].chunks(2).zip(&mut boxes) {
                pair.iter().for_each(|&x| sum.see(x, missing));
            }
        }
        for (i, sum) in boxes.iter().enumerate() {
            out.push(mean(sum, missing, || {
                let row = |&start: &usize| start + 2 * i..(start + 2 * i + 2).min(start + length);
                starts
                    .iter()
                    .flat_map(row)
                    .map(|at| values[at])
                    .filter(|&x| !missing.is(x))
                    .collect()
            }));
        }
    });
    out
}

fn mean<T: Number>(sum: &Sum<T>, missing: &Missing<'_>, all: impl Fn() -> Vec<T>) -> T {
    if sum.count == 0 {
        return sum.missing.unwrap_or_default();
    }
    let mut mean = T::mean(sum.sum, sum.count);
    if !mean.wide().is_finite() {
        let all = all();
        if all.iter().all(|x| x.wide().is_finite()) {
            // The sum is too large for a double.
            let share = all.iter().map(|x| x.wide() / f64::from(sum.count));
            mean = T::narrow(share.sum::<f64>());
        } else if mean.wide().is_nan() {
            // Of both infinities. Which NaN a machine makes is its own business.
            return T::narrow(f64::from_bits(0x7FF8_0000_0000_0000));
        }
    }
    missing.avoid(mean)
}

/// The low-pass half of the 5/3 wavelet, dimension by dimension, the last one first, in double precision. Where the
/// filter would see a missing or infinite value, the point is what it is in the finer level.
fn spline<T: Number>(shape: &[usize], values: &[T], missing: &Missing<'_>) -> Vec<T> {
    let special = |x: &T| missing.is(*x) || !x.wide().is_finite();
    // NaN stands for all that the filter must not see.
    let wide = |x: &T| if special(x) { f64::NAN } else { x.wide() };
    let mut field: Vec<f64> = values.iter().map(wide).collect();
    let mut now = shape.to_vec();
    for dim in (0..shape.len()).rev() {
        field = low_pass(&now, dim, &field);
        now[dim] = now[dim].div_ceil(2);
    }
    let exact = sample(shape, values);
    let narrow = |(&low, &sample): (&f64, &T)| {
        let value = T::narrow(low);
        if low.is_nan() || !value.wide().is_finite() { sample } else { missing.avoid(value) }
    };
    field.iter().zip(&exact).map(narrow).collect()
}

/// Even points plus a quarter of what linear interpolation leaves of each odd neighbour; at an end the only
/// neighbour counts twice.
fn low_pass(shape: &[usize], dim: usize, field: &[f64]) -> Vec<f64> {
    let len = shape[dim];
    if len < 2 || field.is_empty() {
        return field.to_vec();
    }
    let inner: usize = shape[dim + 1..].iter().product();
    let mut out = Vec::with_capacity(field.len().div_ceil(2) + inner);
    for block in field.chunks_exact(len * inner) {
        let row = |at: usize| &block[at * inner..(at + 1) * inner];
        for at in (0..len).step_by(2) {
            let odd = |at: usize| {
                let right = if at + 1 < len { at + 1 } else { at - 1 };
                (row(at), row(at - 1), row(right))
            };
            let after = if at + 1 < len { at + 1 } else { at - 1 };
            let before = if at > 0 { at - 1 } else { after };
            let ((a, al, ar), (b, bl, br)) = (odd(before), odd(after));
            let here = row(at);
            out.extend((0..inner).map(|i| {
                let left = a[i] - (al[i] + ar[i]) * 0.5;
                let right = b[i] - (bl[i] + br[i]) * 0.5;
                let low = here[i] + (left + right) * 0.25;
                if low.is_finite() { low } else { here[i] }
            }));
        }
    }
    out
}

/// All levels, the finest first; the finest is borrowed.
pub(super) fn levels<T: Number>(
    coarse: Coarse,
    count: u32,
    shape: &[usize],
    values: &[T],
    missing: &Missing<'_>,
) -> Vec<Vec<T>> {
    let mut levels: Vec<Vec<T>> = Vec::new();
    for level in 1..count {
        let finer = levels.last().map_or(values, Vec::as_slice);
        levels.push(coarsen(coarse, &level_shape(shape, level - 1), finer, missing));
    }
    levels
}
