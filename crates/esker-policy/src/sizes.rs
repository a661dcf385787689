//! Sizes that many ranks would have, from those that few had (seeds/001 §V-C).

/// The sizes of a grid of cells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SizeGrid {
    shape: Vec<usize>,
    sizes: Vec<u64>,
}

impl SizeGrid {
    /// Sizes in C order; none when they are not as many as the grid has cells, or there are none.
    pub fn new(shape: &[usize], sizes: Vec<u64>) -> Option<SizeGrid> {
        let cells = shape.iter().try_fold(1usize, |cells, &len| cells.checked_mul(len))?;
        (cells == sizes.len() && cells > 0).then(|| SizeGrid { shape: shape.to_vec(), sizes })
    }

    /// Cells in each dimension.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The size at the centre of a cell of a grid with other lengths over the same domain: between the centres of the
    /// nearest cells linearly, beyond the outermost ones theirs. None if the cell or the number of dimensions is not
    /// that of the grids.
    pub fn at(&self, lengths: &[usize], cell: &[usize]) -> Option<u64> {
        if lengths.len() != self.shape.len() || cell.len() != self.shape.len() {
            return None;
        }
        // Corners with their weights, dimension after dimension.
        let mut corners = vec![(0usize, 1.0f64)];
        for ((&own, &len), &at) in self.shape.iter().zip(lengths).zip(cell) {
            if at >= len {
                return None;
            }
            // The centre in units of our cells is ((2 at + 1) own / len - 1) / 2: exact as a fraction.
            let (numerator, whole) = ((2 * at as u128 + 1) * own as u128, 2 * len as u128);
            let beyond = numerator.saturating_sub(len as u128);
            let low = ((beyond / whole) as usize).min(own - 1);
            let high = (low + 1).min(own - 1);
            let share = if low == high { 0.0 } else { (beyond % whole) as f64 / whole as f64 };
            let mut next = Vec::with_capacity(2 * corners.len());
            for &(place, weight) in &corners {
                next.push((place * own + low, weight * (1.0 - share)));
                if share > 0.0 {
                    next.push((place * own + high, weight * share));
                }
            }
            corners = next;
        }
        let sizes = || corners.iter().map(|&(place, _)| self.sizes[place]);
        let mean: f64 = corners.iter().map(|&(p, weight)| self.sizes[p] as f64 * weight).sum();
        // Rounding never leaves the range; and one cell is itself, also beyond 2^53.
        let (low, high) = (sizes().min()?, sizes().max()?);
        Some((mean.round() as u64).clamp(low, high))
    }
}
