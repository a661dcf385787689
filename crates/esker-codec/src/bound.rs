//! Bounds of error: as text, as parameters, and for a chunk.

use crate::real::Number;
use crate::special::Specials;

/// The error that the user allows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Bound {
    /// At every element at most so much.
    Absolute(f64),
    /// At every element at most so much of the range of the ordinary values: of a chunk for filters, of what the
    /// caller says for patches.
    Relative(f64),
}

impl Bound {
    /// The absolute bound for these values.
    pub(crate) fn resolve<T: Number>(self, values: &[T], specials: &Specials) -> f64 {
        match self {
            Bound::Absolute(bound) => bound,
            Bound::Relative(share) => {
                let (low, high) = range(values, specials);
                // Of numbers near the largest double the difference may be infinite.
                let range = (high - low).clamp(0.0, f64::MAX);
                (range * share).min(f64::MAX)
            }
        }
    }
}

/// The smallest and the largest ordinary value; (0, 0) when there is none.
fn range<T: Number>(values: &[T], specials: &Specials) -> (f64, f64) {
    let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
    let mut see = |x: f64| {
        low = low.min(x);
        high = high.max(x);
    };
    if specials.classes().is_empty() {
        values.iter().for_each(|x| see(x.wide()));
    } else {
        let ordinary = values.iter().zip(specials.classes()).filter(|(_, class)| **class == 0);
        ordinary.for_each(|(x, _)| see(x.wide()));
    }
    if low <= high { (low, high) } else { (0.0, 0.0) }
}

/// A positive number from text.
pub(crate) fn positive(text: &str) -> Option<f64> {
    text.parse().ok().filter(|&value| is_positive(value))
}

/// Whether it can be a bound.
pub(crate) fn is_positive(value: f64) -> bool {
    value.is_finite() && value > 0.0
}
