//! Rows that ranks have between them: contiguous shares, as equal as possible.

use std::ops::Range;

/// How `len` rows are shared by `ranks`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shares {
    /// Rows of all.
    pub len: u64,
    /// Ranks, at least one.
    pub ranks: usize,
}

impl Shares {
    /// The shares of `len` rows.
    pub fn new(len: u64, ranks: usize) -> Shares {
        Shares { len, ranks: ranks.max(1) }
    }

    /// The rows of a rank.
    pub fn of(&self, rank: usize) -> Range<u64> {
        self.begin(rank as u64)..self.begin(rank as u64 + 1)
    }

    /// The rank that has a row.
    pub fn owner(&self, row: u64) -> usize {
        let ranks = self.ranks as u64;
        let (each, more) = (self.len / ranks, self.len % ranks);
        // The first `more` ranks have one row more.
        let long = more * (each + 1);
        let owner = match row < long {
            true => row / (each + 1),
            false => more + (row - long) / each.max(1),
        };
        owner.min(ranks - 1) as usize
    }

    fn begin(&self, rank: u64) -> u64 {
        let ranks = self.ranks as u64;
        rank * (self.len / ranks) + rank.min(self.len % ranks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_has_the_owner_whose_share_it_is_in() {
        for len in 0..40 {
            for ranks in 1..9 {
                let shares = Shares::new(len, ranks);
                let rows: Vec<u64> = (0..ranks).flat_map(|rank| shares.of(rank)).collect();
                assert_eq!(rows, (0..len).collect::<Vec<_>>());
                for rank in 0..ranks {
                    assert!(shares.of(rank).all(|row| shares.owner(row) == rank));
                }
            }
        }
    }
}
