//! Boxes of elements: a start and a count in each dimension.

use std::fmt;

/// What is wrong with a box.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BoxError {
    /// Not as many numbers as dimensions.
    Dimensions {
        /// Which box, counted from 0.
        index: usize,
        /// As many as there should be.
        expected: usize,
        /// As many as there are.
        found: usize,
    },
    /// A count is zero.
    Empty {
        /// Which box, counted from 0.
        index: usize,
        /// Which dimension.
        dimension: usize,
    },
    /// The end is above the highest number there is.
    Overflow {
        /// Which box, counted from 0.
        index: usize,
        /// Which dimension.
        dimension: usize,
        /// Where it begins.
        start: u64,
        /// As many elements.
        count: u64,
    },
}

impl fmt::Display for BoxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BoxError::Dimensions { index, expected, found } => {
                write!(
                    f,
                    "box {index} has {found} starts or counts, but there are {expected} dimensions"
                )
            }
            BoxError::Empty { index, dimension } => {
                write!(f, "box {index} has no elements along dimension {dimension}")
            }
            BoxError::Overflow { index, dimension, start, count } => write!(
                f,
                "box {index} begins at {start} along dimension {dimension} and has {count} elements there, \
                 which is more than 64 bits can number"
            ),
        }
    }
}

impl std::error::Error for BoxError {}

/// A box that lies in a list: two numbers for each dimension, where it begins and where it ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BoxRef<'a> {
    corners: &'a [u64],
}

impl<'a> BoxRef<'a> {
    /// How many dimensions.
    pub fn dims(self) -> usize {
        self.corners.len() / 2
    }

    /// Where it begins and where it ends (one behind the last element), by dimension.
    pub fn ranges(self) -> impl ExactSizeIterator<Item = (u64, u64)> + 'a {
        self.corners.chunks_exact(2).map(|pair| (pair[0], pair[1]))
    }

    /// The first element's index in each dimension.
    pub fn start(self) -> Vec<u64> {
        self.ranges().map(|(start, _)| start).collect()
    }

    /// How many elements in each dimension.
    pub fn count(self) -> Vec<u64> {
        self.ranges().map(|(start, end)| end - start).collect()
    }

    /// How many elements, if 64 bits can number them.
    pub fn elements(self) -> Option<u64> {
        self.ranges().try_fold(1u64, |product, (start, end)| product.checked_mul(end - start))
    }

    /// Start and count of what both have, if anything.
    pub fn intersection(self, other: BoxRef<'_>) -> Option<(Vec<u64>, Vec<u64>)> {
        let common = self.ranges().zip(other.ranges());
        let common = common.map(|((a, b), (c, d))| {
            let (start, end) = (a.max(c), b.min(d));
            (start < end).then(|| (start, end - start))
        });
        common.collect::<Option<(Vec<u64>, Vec<u64>)>>()
    }
}

/// A list of boxes with the same number of dimensions, none of them empty. Later boxes win where they overlap.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Boxes {
    dims: usize,
    len: usize,
    /// Of each box and dimension, where it begins and where it ends.
    corners: Vec<u64>,
}

impl Boxes {
    /// None yet.
    pub fn new(dims: usize) -> Boxes {
        Boxes { dims, ..Boxes::default() }
    }

    /// Appends a box. Nothing is appended if it is not one.
    pub fn push(&mut self, start: &[u64], count: &[u64]) -> Result<(), BoxError> {
        let (index, expected) = (self.len, self.dims);
        if let Some(found) = [start.len(), count.len()].into_iter().find(|len| *len != expected) {
            return Err(BoxError::Dimensions { index, expected, found });
        }
        for (dimension, (start, count)) in
            start.iter().copied().zip(count.iter().copied()).enumerate()
        {
            if count == 0 {
                return Err(BoxError::Empty { index, dimension });
            }
            if start.checked_add(count).is_none() {
                return Err(BoxError::Overflow { index, dimension, start, count });
            }
        }
        self.corners
            .extend(start.iter().zip(count).flat_map(|(start, count)| [*start, start + count]));
        self.len += 1;
        Ok(())
    }

    /// Appends the box with these corners, which are known to be in order.
    pub(crate) fn push_corners(&mut self, corners: impl Iterator<Item = u64>) {
        self.corners.extend(corners);
        self.len += 1;
    }

    /// Where each box begins and ends along a dimension.
    pub(crate) fn corners_of(&self, dim: usize) -> impl Iterator<Item = (u64, u64)> {
        self.corners
            .chunks_exact(2 * self.dims)
            .map(move |corners| (corners[2 * dim], corners[2 * dim + 1]))
    }

    /// Removes all boxes, and keeps their memory.
    pub fn clear(&mut self) {
        self.len = 0;
        self.corners.clear();
    }

    /// How many dimensions.
    pub fn dims(&self) -> usize {
        self.dims
    }

    /// How many boxes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The box with this number.
    ///
    /// # Panics
    /// Panics if there are not as many.
    pub fn get(&self, index: usize) -> BoxRef<'_> {
        assert!(index < self.len, "box {index} of {}", self.len);
        BoxRef { corners: &self.corners[index * 2 * self.dims..][..2 * self.dims] }
    }

    /// All of them, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = BoxRef<'_>> {
        (0..self.len).map(|index| self.get(index))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_box_without_elements_or_beyond_the_numbers_is_an_error_that_names_it() {
        let mut boxes = Boxes::new(2);
        boxes.push(&[u64::MAX - 1, 0], &[1, u64::MAX]).unwrap();
        let error = |boxes: &mut Boxes, start: &[u64], count: &[u64]| {
            boxes.push(start, count).unwrap_err().to_string()
        };
        assert_eq!(error(&mut boxes, &[0, 0], &[3, 0]), "box 1 has no elements along dimension 1");
        assert_eq!(
            error(&mut boxes, &[u64::MAX, 0], &[1, 1]),
            "box 1 begins at 18446744073709551615 along dimension 0 and has 1 elements there, which is more \
             than 64 bits can number"
        );
        assert_eq!(
            error(&mut boxes, &[0], &[1, 1]),
            "box 1 has 1 starts or counts, but there are 2 dimensions"
        );
        assert_eq!(boxes.len(), 1);
    }

    #[test]
    fn what_two_boxes_share_is_a_box_or_nothing() {
        let mut boxes = Boxes::new(2);
        boxes.push(&[0, 0], &[4, 4]).unwrap();
        boxes.push(&[2, 3], &[9, 9]).unwrap();
        boxes.push(&[4, 0], &[1, 1]).unwrap();
        let (a, b, c) = (boxes.get(0), boxes.get(1), boxes.get(2));
        assert_eq!(a.intersection(b), Some((vec![2, 3], vec![2, 1])));
        assert_eq!(a.intersection(c), None);
    }
}
