//! A box of cells.

/// Cells from `lo` to `hi`, both inclusive, in up to three dimensions; x is first. Those that a hierarchy has not are 0 to 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Cells {
    /// The lowest cell.
    pub lo: [i64; 3],
    /// The highest cell.
    pub hi: [i64; 3],
}

impl Cells {
    /// A box; `None` if it is empty, or if a corner is so far out that its size has no number.
    pub fn new(lo: [i64; 3], hi: [i64; 3]) -> Option<Cells> {
        const FAR: i64 = 1 << 40;
        let cells = Cells { lo, hi };
        let fits = (0..3).all(|d| lo[d] <= hi[d] && lo[d] >= -FAR && hi[d] <= FAR);
        (fits && cells.checked_volume().is_some()).then_some(cells)
    }

    fn checked_volume(&self) -> Option<u64> {
        (0..3).try_fold(1u64, |n, d| n.checked_mul((self.hi[d] - self.lo[d] + 1) as u64))
    }

    /// How many cells it has in each dimension.
    pub fn shape(&self) -> [u64; 3] {
        [0, 1, 2].map(|d| (self.hi[d] - self.lo[d] + 1) as u64)
    }

    /// How many cells it has.
    pub fn volume(&self) -> u64 {
        self.shape().iter().product()
    }

    /// What both have.
    pub fn intersection(&self, other: &Cells) -> Option<Cells> {
        let lo = [0, 1, 2].map(|d| self.lo[d].max(other.lo[d]));
        let hi = [0, 1, 2].map(|d| self.hi[d].min(other.hi[d]));
        Cells::new(lo, hi)
    }

    /// Whether it has all of the other.
    pub fn contains(&self, other: &Cells) -> bool {
        self.intersection(other) == Some(*other)
    }

    /// The coarser cells that these are in.
    pub fn coarsened(&self, ratio: [i64; 3]) -> Cells {
        let down = |corner: [i64; 3]| [0, 1, 2].map(|d| corner[d].div_euclid(ratio[d].max(1)));
        Cells { lo: down(self.lo), hi: down(self.hi) }
    }

    /// The finer cells that are in these.
    pub fn refined(&self, ratio: [i64; 3]) -> Option<Cells> {
        let lo = [0, 1, 2].map(|d| self.lo[d].checked_mul(ratio[d].max(1)));
        let hi = [0, 1, 2].map(|d| {
            let r = ratio[d].max(1);
            self.hi[d].checked_mul(r)?.checked_add(r - 1)
        });
        let all = |corner: [Option<i64>; 3]| Some([corner[0]?, corner[1]?, corner[2]?]);
        Cells::new(all(lo)?, all(hi)?)
    }

    /// The place of a cell in the box's array, x fastest.
    pub fn place(&self, cell: [i64; 3]) -> u64 {
        let shape = self.shape();
        let at = [0, 1, 2].map(|d| (cell[d] - self.lo[d]) as u64);
        (at[2] * shape[1] + at[1]) * shape[0] + at[0]
    }

    /// In words, for the dimensions that count: `(0,0) to (15,15)`.
    pub fn words(&self, dims: usize) -> String {
        let corner = |c: &[i64; 3]| {
            let numbers: Vec<String> = c.iter().take(dims).map(i64::to_string).collect();
            format!("({})", numbers.join(","))
        };
        format!("{} to {}", corner(&self.lo), corner(&self.hi))
    }
}
