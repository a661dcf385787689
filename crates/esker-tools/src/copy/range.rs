//! Ranges of dimensions.

use std::fmt;

use crate::runs::Along;

/// A range of a dimension, counted as Python counts: from `start` to before `stop` in steps of
/// `stride`, negative numbers from the end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DimRange {
    /// The dimension.
    pub name: String,
    /// The first index; none for the beginning.
    pub start: Option<i64>,
    /// The first index that is not in the range; none for the end.
    pub stop: Option<i64>,
    /// The step, at least 1.
    pub stride: u64,
}

impl DimRange {
    /// The range `start:stop:stride` of dimension `name`.
    pub fn new(name: &str, start: Option<i64>, stop: Option<i64>, stride: u64) -> DimRange {
        DimRange { name: name.to_string(), start, stop, stride }
    }

    /// The range from `min` to `max`, which is in it, as NCO counts.
    pub fn inclusive(name: &str, min: Option<i64>, max: Option<i64>, stride: u64) -> DimRange {
        // After -1, the last, comes the end and not 0.
        let stop = max.and_then(|max| if max == -1 { None } else { max.checked_add(1) });
        DimRange::new(name, min, stop, stride)
    }

    /// The indices in a dimension of length `len`, or what is wrong. Nothing is clamped: a
    /// range that the dimension does not have is more likely a mistake than a wish.
    pub(super) fn resolve(&self, len: u64) -> Result<Along, &'static str> {
        if self.stride == 0 {
            return Err("has a step of 0");
        }
        let bound = |given: Option<i64>, default: u64| match given {
            None => Some(default),
            Some(n) if n >= 0 => Some(n as u64),
            Some(n) => len.checked_sub(n.unsigned_abs()),
        };
        let start = bound(self.start, 0).ok_or("begins before the first index")?;
        let stop = bound(self.stop, len).ok_or("ends before the first index")?;
        if start > len || stop > len {
            return Err("goes beyond the end");
        }
        let count = stop.saturating_sub(start).div_ceil(self.stride);
        Ok(Along { start, count, stride: self.stride })
    }
}

impl fmt::Display for DimRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bound = |b: Option<i64>| b.map_or(String::new(), |b| b.to_string());
        write!(f, "{}:{}", bound(self.start), bound(self.stop))?;
        if self.stride == 1 { Ok(()) } else { write!(f, ":{}", self.stride) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn indices(range: DimRange, len: u64) -> Result<Vec<u64>, &'static str> {
        let along = range.resolve(len)?;
        Ok((0..along.count).map(|i| along.start + i * along.stride).collect())
    }

    #[test]
    fn ranges_count_as_python_does() {
        let range = |start, stop, stride| indices(DimRange::new("x", start, stop, stride), 10);
        assert_eq!(range(None, None, 1).unwrap(), (0..10).collect::<Vec<_>>());
        assert_eq!(range(Some(2), Some(5), 1).unwrap(), [2, 3, 4]);
        assert_eq!(range(Some(-3), None, 1).unwrap(), [7, 8, 9]);
        assert_eq!(range(None, Some(-8), 1).unwrap(), [0, 1]);
        assert_eq!(range(Some(1), None, 4).unwrap(), [1, 5, 9]);
        assert_eq!(range(Some(5), Some(5), 1).unwrap(), [0u64; 0]);
        assert_eq!(range(Some(7), Some(5), 1).unwrap(), [0u64; 0]);
        assert!(range(None, Some(11), 1).is_err());
        assert!(range(Some(-11), None, 1).is_err());
        assert!(range(None, None, 0).is_err());
        assert_eq!(range(Some(0), None, u64::MAX).unwrap(), [0]);
    }

    #[test]
    fn inclusive_ranges_keep_their_last_index() {
        let range = |min, max| indices(DimRange::inclusive("x", min, max, 1), 10);
        assert_eq!(range(Some(2), Some(4)).unwrap(), [2, 3, 4]);
        assert_eq!(range(Some(-2), Some(-1)).unwrap(), [8, 9]);
        assert!(range(Some(2), Some(10)).is_err());
    }
}
