//! Between which values an array lies.

use esker_format::ExternalType;

/// The smallest and the largest finite value of an array.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Spread {
    pub(crate) least: f64,
    pub(crate) most: f64,
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

    /// By how much a value is off at most when it is stored as a float.
    pub(crate) fn error_of_floats(self) -> f64 {
        self.most.abs().max(self.least.abs()) * f64::from(f32::EPSILON) / 2.0
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
        assert_eq!((nothing.range(), nothing.error_of_floats()), (0.0, 0.0));
        assert_eq!(Spread::of(ExternalType::Int, &bytes).range(), 0.0);
    }

    #[test]
    fn the_error_of_floats_is_what_they_err_by() {
        for value in [1.0 + 1e-9, 0.1, 300.123_456_789, -7e20 / 3.0] {
            let bytes = f64::to_ne_bytes(value);
            let bound = Spread::of(ExternalType::Double, &bytes).error_of_floats();
            assert!((f64::from(value as f32) - value).abs() <= bound, "{value}");
        }
    }
}
