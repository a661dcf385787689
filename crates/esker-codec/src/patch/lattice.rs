//! Shapes of levels, and where the points of a coarser level lie in a finer one.

/// The lengths of a level: each halved, rounded up, so many times.
pub fn level_shape(shape: &[usize], level: u32) -> Vec<usize> {
    let halved = |&len: &usize| match level < usize::BITS {
        true => (len >> level) + usize::from(len & ((1 << level) - 1) != 0),
        false => usize::from(len != 0),
    };
    shape.iter().map(halved).collect()
}

/// Elements between neighbours in each dimension.
pub(super) fn strides(shape: &[usize]) -> Vec<usize> {
    let mut strides = vec![1; shape.len()];
    for dim in (1..shape.len()).rev() {
        strides[dim - 1] = strides[dim] * shape[dim];
    }
    strides
}

/// A part of a grid: from `first` on, every `step`-th point of each dimension.
#[derive(Debug, Clone)]
pub(super) struct Part {
    pub(super) first: Vec<usize>,
    pub(super) step: usize,
    /// How many points there are in each dimension.
    pub(super) shape: Vec<usize>,
}

impl Part {
    /// All points.
    pub(super) fn whole(shape: &[usize]) -> Part {
        Part { first: vec![0; shape.len()], step: 1, shape: shape.to_vec() }
    }

    /// The points with even coordinates in all dimensions, but odd ones where `odd` has a bit.
    pub(super) fn parity(shape: &[usize], odd: u64) -> Part {
        let first: Vec<usize> = (0..shape.len()).map(|dim| (odd >> dim & 1) as usize).collect();
        let lengths = shape.iter().zip(&first).map(|(&len, &first)| (len + 1 - first) / 2);
        Part { shape: lengths.collect(), first, step: 2 }
    }

    /// All parts by parity that have points, the even one first.
    pub(super) fn parities(shape: &[usize]) -> impl Iterator<Item = Part> {
        let long: Vec<usize> = (0..shape.len()).filter(|&dim| shape[dim] > 1).collect();
        let most = 1u64.checked_shl(long.len() as u32).unwrap_or(0);
        (0..most).map(move |number| {
            let bits = long.iter().enumerate().filter(|(i, _)| number >> i & 1 == 1);
            Part::parity(shape, bits.fold(0, |odd, (_, dim)| odd | 1 << dim))
        })
    }

    pub(super) fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// Calls `row` for each row of the part with the place of its first point in the grid and in the part, and
    /// its length; the row's points are `step` apart in the grid.
    pub(super) fn rows(&self, grid: &[usize], mut row: impl FnMut(usize, usize, usize)) {
        let (Some(&len), false) = (self.shape.last(), self.shape.contains(&0)) else {
            if self.shape.is_empty() {
                row(0, 0, 1);
            }
            return;
        };
        let strides = strides(grid);
        let outer = self.shape.len() - 1;
        let start: usize =
            self.first.iter().zip(&strides).map(|(first, stride)| first * stride).sum();
        let mut at = vec![0; outer];
        let (mut place, mut number) = (start, 0);
        loop {
            row(place, number, len);
            number += len;
            let mut dim = outer;
            loop {
                if dim == 0 {
                    return;
                }
                dim -= 1;
                at[dim] += 1;
                place += self.step * strides[dim];
                if at[dim] < self.shape[dim] {
                    break;
                }
                place -= self.step * strides[dim] * at[dim];
                at[dim] = 0;
            }
        }
    }

    /// Copies the part out of a grid.
    pub(super) fn gather<T: Copy>(&self, grid: &[usize], from: &[T], to: &mut Vec<T>) {
        to.clear();
        self.rows(grid, |place, _, len| {
            to.extend(from[place..].iter().step_by(self.step).take(len));
        });
    }

    /// Copies the part into a grid.
    pub(super) fn scatter<T: Copy>(&self, grid: &[usize], from: &[T], to: &mut [T]) {
        self.rows(grid, |place, number, len| {
            let places = to[place..].iter_mut().step_by(self.step);
            places.zip(&from[number..number + len]).for_each(|(to, &from)| *to = from);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_by_parity_are_all_points_once() {
        for shape in [&[5][..], &[4, 1, 3], &[2, 2, 2], &[1, 1], &[], &[3, 2, 1, 2, 3]] {
            let count: usize = shape.iter().product();
            let mut seen = vec![0; count];
            for part in Part::parities(shape) {
                part.rows(shape, |place, _, len| {
                    (0..len).for_each(|i| seen[place + i * part.step] += 1);
                });
            }
            assert!(seen.iter().all(|&times| times == 1), "{shape:?}: {seen:?}");
        }
    }
}
