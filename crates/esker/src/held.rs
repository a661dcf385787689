//! What is to be one transaction: everything that a dataset is told until it is committed, whenever that is. And for which version a reader waits.

use std::time::Duration;

/// Which version is waited for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct After {
    /// The first that is there behind this one.
    pub(crate) version: u64,
    /// For how long; for ever without one.
    pub(crate) timeout: Option<Duration>,
}

/// How a transaction is committed. Rank 0's counts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Held {
    /// The number that the program chose for its version; the next one if it has chosen none.
    pub(crate) number: Option<u64>,
    /// Numbers that must have been committed: it is given up with them.
    pub(crate) needs: Vec<u64>,
    /// Whether the commit waits for the disk.
    pub(crate) durable: bool,
}

impl Held {
    /// As numbers, for other ranks: none where there is no transaction.
    pub(crate) fn to_u64s(held: Option<&Held>) -> Vec<u64> {
        let Some(held) = held else { return Vec::new() };
        let mut numbers = vec![held.number.unwrap_or(0), held.durable.into()];
        numbers.extend(&held.needs);
        numbers
    }

    /// What such numbers say.
    pub(crate) fn from_u64s(numbers: &[u64]) -> Option<Held> {
        let ([number, durable], needs) = numbers.split_first_chunk()?;
        let number = Some(*number).filter(|number| *number > 0);
        Some(Held { number, needs: needs.to_vec(), durable: *durable > 0 })
    }
}

/// What became of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Committed {
    /// It is the version of this number.
    Version(u64),
    /// It is stored as this number, and becomes that version when all numbers before it are decided, whoever decides the last one.
    Prepared(u64),
}

impl Committed {
    /// The number that it has, or will have.
    pub fn number(self) -> u64 {
        match self {
            Committed::Version(number) | Committed::Prepared(number) => number,
        }
    }

    /// Whether readers see it.
    pub fn is_visible(self) -> bool {
        matches!(self, Committed::Version(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_held_comes_back_from_its_numbers() {
        assert_eq!(Held::from_u64s(&Held::to_u64s(None)), None);
        for number in [None, Some(7)] {
            for needs in [vec![], vec![3, 5]] {
                let held = Held { number, needs, durable: number.is_some() };
                assert_eq!(Held::from_u64s(&Held::to_u64s(Some(&held))), Some(held));
            }
        }
    }
}
