//! Numbers that look random and are the same in every run and on every rank.

/// SplitMix64: small, fast, and good enough to damage files with.
#[derive(Debug, Clone)]
pub struct Random(pub u64);

impl Random {
    /// The next number.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number below `n`, or 0.
    pub fn below(&mut self, n: usize) -> usize {
        self.below_u64(n as u64) as usize
    }

    /// A number below `n`, or 0.
    pub fn below_u64(&mut self, n: u64) -> u64 {
        self.next() % n.max(1)
    }

    /// True in so many of a hundred cases.
    pub fn chance(&mut self, percent: u64) -> bool {
        self.below_u64(100) < percent
    }

    /// True in one of `n` cases.
    pub fn one_in(&mut self, n: u64) -> bool {
        self.below_u64(n) == 0
    }

    /// One of the list.
    pub fn pick<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len())]
    }

    /// The list in another order.
    pub fn shuffled<T: Copy>(&mut self, list: &[T]) -> Vec<T> {
        let mut list = list.to_vec();
        for i in (1..list.len()).rev() {
            list.swap(i, self.below(i + 1));
        }
        list
    }
}
