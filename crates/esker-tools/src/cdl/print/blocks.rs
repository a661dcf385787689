//! A variable cut into blocks: hyperslabs of bounded size that follow each other in C order.

/// At most this many values are read at once.
const BLOCK: u64 = 1 << 18;

/// The hyperslabs `(start, count)` that make up an array of this shape, in C order.
pub(super) struct Blocks {
    shape: Vec<u64>,
    start: Vec<u64>,
    /// The dimension that is cut; the ones after it are read whole, the ones before one by one.
    cut: usize,
    /// How many indices of the cut dimension are read at once.
    step: u64,
    done: bool,
}

impl Blocks {
    pub(super) fn new(shape: &[u64]) -> Blocks {
        let mut inner = 1u64;
        let mut cut = 0;
        let mut step = 1;
        for (dim, &len) in shape.iter().enumerate().rev() {
            cut = dim;
            step = (BLOCK / inner.max(1)).clamp(1, len.max(1));
            if step < len {
                break;
            }
            inner = inner.saturating_mul(len);
        }
        let done = shape.contains(&0);
        Blocks { shape: shape.to_vec(), start: vec![0; shape.len()], cut, step, done }
    }
}

impl Iterator for Blocks {
    type Item = (Vec<u64>, Vec<u64>);

    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        let start = self.start.clone();
        let mut count = vec![1; self.shape.len()];
        for (dim, (count, &len)) in count.iter_mut().zip(&self.shape).enumerate() {
            if dim == self.cut {
                *count = self.step.min(len - start[dim]);
            } else if dim > self.cut {
                *count = len;
            }
        }
        self.done = true;
        for dim in (0..self.shape.len().min(self.cut + 1)).rev() {
            self.start[dim] += if dim == self.cut { self.step } else { 1 };
            if self.start[dim] < self.shape[dim] {
                self.done = false;
                break;
            }
            self.start[dim] = 0;
        }
        Some((start, count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_cover_the_array_once_and_in_order() {
        for shape in [
            vec![],
            vec![1],
            vec![BLOCK * 2 + 3],
            vec![5, BLOCK + 1],
            vec![3, 7, 100_000],
            vec![2, 3, 4],
            vec![1000, 30, 20, 10],
        ] {
            let mut next = 0u64;
            for (start, count) in Blocks::new(&shape) {
                let mut flat = 0;
                for (dim, len) in shape.iter().enumerate() {
                    flat = flat * len + start[dim];
                }
                assert_eq!(flat, next, "{shape:?}");
                let size: u64 = count.iter().product();
                assert!(size <= BLOCK);
                next += size;
            }
            assert_eq!(next, shape.iter().product::<u64>(), "{shape:?}");
        }
        assert_eq!(Blocks::new(&[0, 5]).count(), 0);
        assert_eq!(Blocks::new(&[5, 0]).count(), 0);
    }
}
