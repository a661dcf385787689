//! How work that every rank can do is divided.

use std::ops::Range;

/// One rank of several that do something together.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Share {
    pub(crate) rank: u64,
    pub(crate) ranks: u64,
}

/// Bytes are divided at multiples of this: a multiple of every element's size, and long
/// enough that no rank writes scraps.
const GRAIN: u64 = 1 << 20;

impl Share {
    /// This rank's part of `len` bytes.
    pub(crate) fn of(&self, len: u64) -> Range<u64> {
        let grains = self.items(len.div_ceil(GRAIN));
        (grains.start * GRAIN).min(len)..(grains.end * GRAIN).min(len)
    }

    /// This rank's part of `count` things.
    pub(crate) fn items(&self, count: u64) -> Range<u64> {
        let cut =
            |rank: u64| (u128::from(count) * u128::from(rank) / u128::from(self.ranks)) as u64;
        cut(self.rank)..cut(self.rank + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_cover_everything_once() {
        for (len, ranks) in [(0, 3), (10, 3), (5 << 20, 3), ((7 << 20) + 1, 2), (1 << 40, 7)] {
            let mut at = 0;
            for rank in 0..ranks {
                let part = Share { rank, ranks }.of(len);
                assert_eq!(part.start, at);
                at = part.end;
            }
            assert_eq!(at, len);
        }
    }
}
