//! When two values are the same.

use esker::Scalar;

/// How closely values are compared.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Closeness {
    pub(super) atol: f64,
    pub(super) rtol: f64,
    pub(super) nan_equal: bool,
}

/// How two values differ.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Apart {
    /// `|a - b|`, of finite numbers.
    pub(super) abs: Option<f64>,
    /// `|a - b| / |b|`, of finite numbers, b not 0.
    pub(super) rel: Option<f64>,
}

impl Closeness {
    /// Whether equal bytes are equal values.
    pub(super) fn bytes_suffice(&self) -> bool {
        self.nan_equal
    }

    /// None when both are the same, within the tolerance.
    pub(super) fn compare(&self, a: Scalar, b: Scalar) -> Option<Apart> {
        if a == b {
            return None;
        }
        let (Some(x), Some(y)) = (a.to_f64(), b.to_f64()) else {
            return Some(Apart { abs: None, rel: None });
        };
        if x.is_nan() && y.is_nan() && self.nan_equal {
            return None;
        }
        if !x.is_finite() || !y.is_finite() {
            return Some(Apart { abs: None, rel: None });
        }
        let abs = distance(a, b).unwrap_or((x - y).abs());
        if abs <= self.atol + self.rtol * y.abs() && (self.atol > 0.0 || self.rtol > 0.0) {
            return None;
        }
        Some(Apart { abs: Some(abs), rel: (y != 0.0).then(|| abs / y.abs()) })
    }
}

/// The distance of integers, which is exact before it is rounded once.
fn distance(a: Scalar, b: Scalar) -> Option<f64> {
    let integer = |s: Scalar| match s {
        Scalar::I(x) => Some(i128::from(x)),
        Scalar::U(x) => Some(i128::from(x)),
        _ => None,
    };
    Some((integer(a)? - integer(b)?).unsigned_abs() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXACT: Closeness = Closeness { atol: 0.0, rtol: 0.0, nan_equal: true };

    #[test]
    fn numbers_of_different_types_compare_by_value() {
        assert_eq!(EXACT.compare(Scalar::I(3), Scalar::F32(3.0)), None);
        assert!(EXACT.compare(Scalar::F32(0.1), Scalar::F64(0.1)).is_some());
        // These have one nearest double.
        let (a, b) = (Scalar::U(u64::MAX), Scalar::U(u64::MAX - 1));
        assert_eq!(EXACT.compare(a, b).and_then(|d| d.abs), Some(1.0));
        let (a, b) = (Scalar::I(i64::MAX), Scalar::F64(i64::MAX as f64));
        assert!(EXACT.compare(a, b).is_some());
    }

    #[test]
    fn a_nan_is_a_nan_unless_told_otherwise() {
        let nan = Scalar::F64(f64::NAN);
        assert_eq!(EXACT.compare(nan, nan), None);
        assert_eq!(EXACT.compare(nan, Scalar::F32(f32::NAN)), None);
        assert!(EXACT.compare(nan, Scalar::F64(0.0)).is_some());
        assert!(Closeness { nan_equal: false, ..EXACT }.compare(nan, nan).is_some());
    }

    #[test]
    fn tolerances_add_up_and_are_relative_to_the_second() {
        let close = Closeness { atol: 0.5, rtol: 0.25, nan_equal: true };
        assert_eq!(close.compare(Scalar::F64(3.5), Scalar::F64(2.5)), None);
        assert!(close.compare(Scalar::F64(2.5), Scalar::F64(4.1)).is_some());
        assert_eq!(close.compare(Scalar::F64(4.1), Scalar::F64(2.9)), None);
        let (inf, big) = (Scalar::F64(f64::INFINITY), Scalar::F64(1e300));
        assert_eq!(close.compare(inf, inf), None);
        assert!(close.compare(inf, big).is_some());
        assert!(close.compare(Scalar::F64(f64::NEG_INFINITY), inf).is_some());
        assert!(close.compare(big, inf).is_some());
    }
}
