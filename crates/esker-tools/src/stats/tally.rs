//! Counting through lists of numbers.

use esker::values::default_fill;
use esker::{ExternalType, Native, Scalar, Values, Variable};

use super::Statistics;

/// A number that can be summed without losing what matters.
pub(super) trait Number: Native + PartialOrd {
    /// What a sum is kept in.
    type Sum: Default;
    /// Adds one number.
    fn add_to(self, sum: &mut Self::Sum);
    /// The sum, divided.
    fn mean(sum: &Self::Sum, count: u64) -> f64;
    /// Whether it is not a number.
    fn is_nan(self) -> bool {
        false
    }
}

macro_rules! whole {
    ($($t:ty)*) => {$(
        impl Number for $t {
            // 2^63 values of 64 bits fit in 127 bits.
            type Sum = i128;
            fn add_to(self, sum: &mut i128) {
                *sum += i128::from(self);
            }
            fn mean(sum: &i128, count: u64) -> f64 {
                let count = i128::from(count);
                // The whole part apart from the rest: an f64 has only 53 bits.
                (sum / count) as f64 + (sum % count) as f64 / count as f64
            }
        }
    )*};
}
whole!(i8 u8 i16 u16 i32 u32 i64 u64);

/// A sum of reals and what rounding took from it (Neumaier's variant of Kahan's sum).
#[derive(Debug, Default)]
pub(super) struct RealSum {
    sum: f64,
    lost: f64,
}

macro_rules! real {
    ($($t:ty)*) => {$(
        impl Number for $t {
            type Sum = RealSum;
            fn add_to(self, sum: &mut RealSum) {
                let value = f64::from(self);
                let next = sum.sum + value;
                sum.lost += if sum.sum.abs() >= value.abs() {
                    (sum.sum - next) + value
                } else {
                    (value - next) + sum.sum
                };
                sum.sum = next;
            }
            fn mean(sum: &RealSum, count: u64) -> f64 {
                // With an infinity among the values the correction is NaN.
                let lost = if sum.sum.is_finite() { sum.lost } else { 0.0 };
                (sum.sum + lost) / count as f64
            }
            fn is_nan(self) -> bool {
                <$t>::is_nan(self)
            }
        }
    )*};
}
real!(f32 f64);

/// Statistics in the making.
pub(super) struct Tally<T: Number> {
    missing_values: Vec<T>,
    nan_is_missing: bool,
    count: u64,
    missing: u64,
    nan: u64,
    range: Option<(T, T)>,
    sum: T::Sum,
}

impl<T: Number> Tally<T> {
    pub(super) fn new(missing_values: Vec<T>) -> Tally<T> {
        let nan_is_missing = missing_values.iter().any(|v| v.is_nan());
        let (count, missing, nan) = (0, 0, 0);
        let sum = T::Sum::default();
        Tally { missing_values, nan_is_missing, count, missing, nan, range: None, sum }
    }

    pub(super) fn add(&mut self, list: &[T]) {
        self.count += list.len() as u64;
        for value in list {
            if self.missing_values.contains(value) {
                self.missing += 1;
            } else if value.is_nan() {
                self.nan += 1;
            } else {
                let (low, high) = self.range.get_or_insert((*value, *value));
                if *value < *low {
                    *low = *value;
                }
                if *value > *high {
                    *high = *value;
                }
                value.add_to(&mut self.sum);
            }
        }
    }

    pub(super) fn finish(self) -> Statistics {
        let (missing, nan) = match self.nan_is_missing {
            true => (self.missing + self.nan, 0),
            false => (self.missing, self.nan),
        };
        let numbers = self.count - missing - nan;
        Statistics {
            count: self.count,
            missing,
            nan,
            min: self.range.map(|(low, _)| low.scalar()),
            max: self.range.map(|(_, high)| high.scalar()),
            mean: (numbers > 0).then(|| T::mean(&self.sum, numbers)),
        }
    }
}

/// The values of `var` that mean that nothing is there.
pub(super) fn missing_values<T: Number>(var: &Variable) -> Vec<T> {
    let mut values = Vec::new();
    let own = var.attrs.get("_FillValue").map(|a| same_in::<T>(&a.values)).unwrap_or_default();
    if own.is_empty() && !matches!(var.ty, ExternalType::Byte | ExternalType::UByte) {
        values.extend(same_in::<T>(&default_fill(var.ty)));
    }
    values.extend(own);
    if let Some(missing) = var.attrs.get("missing_value") {
        values.extend(same_in::<T>(&missing.values));
    }
    values
}

/// Those of `values` that `T` can be: an integer only what it equals, a real also what is
/// rounded to it (a `missing_value` is often a double where the variable is a float).
fn same_in<T: Number>(values: &Values) -> Vec<T> {
    let real = matches!(T::zeroed().scalar(), Scalar::F32(_) | Scalar::F64(_));
    let one = |i: usize| -> Option<T> {
        let value = values.get(i)?;
        let same = single(value)?.convert_to::<T>().ok()?.first().copied()?;
        (real || same.scalar() == value).then_some(same)
    };
    // A real attribute has one or two; a hostile one must not make every comparison long.
    (0..values.len().min(16)).filter_map(one).collect()
}

fn single(value: Scalar) -> Option<Values> {
    match value {
        Scalar::I(x) => Some(Values::Int64(vec![x])),
        Scalar::U(x) => Some(Values::UInt64(vec![x])),
        Scalar::F32(x) => Some(Values::Float(vec![x])),
        Scalar::F64(x) => Some(Values::Double(vec![x])),
        Scalar::Char(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use esker::{Owner, Schema, Version};

    fn tally<T: Number>(missing: &[T], list: &[T]) -> Statistics {
        let mut tally = Tally::new(missing.to_vec());
        // In two pieces: a sum must not care where blocks end.
        let (a, b) = list.split_at(list.len() / 2);
        tally.add(a);
        tally.add(b);
        tally.finish()
    }

    #[test]
    fn integers_are_summed_exactly() {
        let found = tally(&[], &[i64::MAX, i64::MAX, i64::MAX - 3]);
        assert_eq!(found.mean, Some((i64::MAX - 1) as f64));
        assert_eq!(found.max, Some(Scalar::I(i64::MAX)));
        assert_eq!(tally(&[], &[1u8, 2]).mean, Some(1.5));
        assert_eq!(tally(&[], &[-1i8, -2]).mean, Some(-1.5));
    }

    #[test]
    fn small_numbers_are_not_lost_beside_large_ones() {
        let found = tally(&[], &[1e16, 1.0, 1.0, -1e16]);
        assert_eq!(found.mean, Some(0.5));
    }

    #[test]
    fn missing_values_and_nan_count_for_nothing_else() {
        let found = tally(&[-999.0f32], &[1.0, -999.0, f32::NAN, 3.0]);
        assert_eq!((found.count, found.missing, found.nan), (4, 1, 1));
        assert_eq!(found.mean, Some(2.0));
        assert_eq!(found.min, Some(Scalar::F32(1.0)));
        let nothing = tally(&[1i16], &[1, 1]);
        assert_eq!((nothing.missing, nothing.min, nothing.mean), (2, None, None));
    }

    #[test]
    fn nan_as_fill_value_is_missing() {
        let found = tally(&[f64::NAN], &[f64::NAN, 1.0]);
        assert_eq!((found.missing, found.nan), (1, 0));
    }

    #[test]
    fn an_infinity_is_a_number() {
        let found = tally(&[], &[f64::INFINITY, 1.0, 2.0]);
        assert_eq!(found.mean, Some(f64::INFINITY));
        assert_eq!(found.max, Some(Scalar::F64(f64::INFINITY)));
    }

    fn variable(ty: ExternalType, attrs: &[(&str, Values)]) -> Variable {
        let mut schema = Schema::new(Version::Cdf5);
        let var = schema.add_var("v", ty, &[]).unwrap();
        for (name, values) in attrs {
            schema.put_attr(Owner::Var(var), name, values.clone()).unwrap();
        }
        schema.variable(var).unwrap().clone()
    }

    #[test]
    fn what_is_missing_follows_the_attributes() {
        let plain = variable(ExternalType::Short, &[]);
        assert_eq!(missing_values::<i16>(&plain), [-32767]);
        let byte = variable(ExternalType::Byte, &[]);
        assert_eq!(missing_values::<i8>(&byte), [0i8; 0]);
        let both = variable(
            ExternalType::Float,
            &[
                ("_FillValue", Values::Float(vec![-1.0])),
                ("missing_value", Values::Double(vec![1e20])),
            ],
        );
        assert_eq!(missing_values::<f32>(&both), [-1.0, 1e20]);
    }

    #[test]
    fn a_missing_value_that_the_type_cannot_be_is_ignored() {
        let odd = [("missing_value", Values::Double(vec![-99.9, 1e36, 7.0]))];
        let var = variable(ExternalType::Byte, &odd);
        assert_eq!(missing_values::<i8>(&var), [7]);
        let text = [("missing_value", Values::Char(b"-99".to_vec()))];
        assert_eq!(missing_values::<i8>(&variable(ExternalType::Byte, &text)), [0i8; 0]);
    }
}
