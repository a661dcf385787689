//! Between which values an array lies.

use esker_format::ExternalType;

/// What a value is off at most when it is stored as a float, relative to it.
pub(crate) const HALF_OF_FLOATS: f64 = f32::EPSILON as f64 / 2.0;

/// The smallest and the largest finite value of an array.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Spread {
    pub(crate) least: f64,
    pub(crate) most: f64,
}

/// Elements that are looked at where some are enough.
const SOME: usize = 2048;

/// Whether the absolute values of an array of reals are all at most so large; what is not a number is not.
pub(crate) fn are_below(ty: ExternalType, bytes: &[u8], most: f64) -> bool {
    const BLOCK: usize = 512;
    match ty {
        ExternalType::Double => bytes.as_chunks::<8>().0.chunks(BLOCK).all(|block| {
            block.iter().fold(true, |good, bytes| good & (f64::from_ne_bytes(*bytes).abs() <= most))
        }),
        _ => false,
    }
}

impl Spread {
    /// Of an array of reals in the machine's byte order; nothing lies between the values of others.
    pub(crate) fn of(ty: ExternalType, bytes: &[u8]) -> Spread {
        match ty {
            ExternalType::Double => Spread::between(bytes.as_chunks::<8>().0, f64::from_ne_bytes),
            ExternalType::Float => {
                Spread::between(bytes.as_chunks::<4>().0, |b| f64::from(f32::from_ne_bytes(b)))
            }
            _ => Spread { least: 0.0, most: 0.0 },
        }
    }

    /// Of some elements of an array of doubles.
    pub(crate) fn of_some(ty: ExternalType, bytes: &[u8]) -> Spread {
        let all = bytes.as_chunks::<8>().0;
        let some: Vec<[u8; 8]> = all.iter().step_by((all.len() / SOME).max(1)).copied().collect();
        match ty {
            ExternalType::Double => Spread::between(&some, f64::from_ne_bytes),
            _ => Spread { least: 0.0, most: 0.0 },
        }
    }

    fn between<const N: usize>(values: &[[u8; N]], value: impl Fn([u8; N]) -> f64) -> Spread {
        // In lanes: it is done for every state. What is not a number is neither more nor less.
        const LANES: usize = 8;
        let (lanes, rest) = values.as_chunks::<LANES>();
        let mut least = [f64::INFINITY; LANES];
        let mut most = [f64::NEG_INFINITY; LANES];
        for values in lanes {
            for lane in 0..LANES {
                let value = value(values[lane]);
                least[lane] = if value < least[lane] { value } else { least[lane] };
                most[lane] = if value > most[lane] { value } else { most[lane] };
            }
        }
        let rest = rest.iter().map(|bytes| value(*bytes));
        let least = rest.clone().chain(least).fold(f64::INFINITY, f64::min);
        let most = rest.chain(most).fold(f64::NEG_INFINITY, f64::max);
        if least.is_finite() && most.is_finite() {
            return Spread { least, most };
        }
        let finite = values.iter().map(|bytes| value(*bytes)).filter(|value| value.is_finite());
        let least = finite.clone().fold(f64::INFINITY, f64::min);
        let most = finite.fold(f64::NEG_INFINITY, f64::max);
        if least <= most { Spread { least, most } } else { Spread { least: 0.0, most: 0.0 } }
    }

    /// The range that relative bounds refer to.
    pub(crate) fn range(self) -> f64 {
        self.most - self.least
    }

    /// The largest absolute value.
    pub(crate) fn largest(self) -> f64 {
        self.most.abs().max(self.least.abs())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_finite_does_not_count() {
        let values = [f64::NAN, 3.0, f64::INFINITY, -5.0, f64::NEG_INFINITY];
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_ne_bytes()).collect();
        let found = Spread::of(ExternalType::Double, &bytes);
        assert_eq!((found.least, found.most, found.range()), (-5.0, 3.0, 8.0));
        let nothing = Spread::of(ExternalType::Double, &bytes[..8]);
        assert_eq!((nothing.range(), nothing.largest()), (0.0, 0.0));
        assert_eq!(Spread::of(ExternalType::Int, &bytes).range(), 0.0);
        assert!(!are_below(ExternalType::Double, &bytes, f64::MAX));
        assert!(!are_below(ExternalType::Double, &bytes[..8], f64::INFINITY));
        assert_eq!(Spread::of_some(ExternalType::Double, &bytes), found);
    }

    #[test]
    fn the_error_of_floats_is_what_they_err_by() {
        for value in [1.0 + 1e-9, 0.1, 300.123_456_789, -7e20 / 3.0] {
            let bytes = f64::to_ne_bytes(value);
            let largest = Spread::of(ExternalType::Double, &bytes).largest();
            let bound = largest * HALF_OF_FLOATS;
            assert!(are_below(ExternalType::Double, &bytes, largest));
            assert!(!are_below(ExternalType::Double, &bytes, largest * 0.999));
            assert!((f64::from(value as f32) - value).abs() <= bound, "{value}");
        }
    }
}
