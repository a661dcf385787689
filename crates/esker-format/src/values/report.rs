//! What a conversion has to say: what did not fit, and what cannot be converted at all.

use std::fmt;

use super::Scalar;
use crate::types::{ExternalType, MemoryType};

/// The first element of a conversion that did not fit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OutOfRange {
    /// Its place among the converted elements, from 0.
    pub index: u64,
    /// Its value before the conversion.
    pub value: Scalar,
    /// The name of the type that cannot hold it.
    pub target: &'static str,
}

/// How many elements of a conversion did not fit (NC_ERANGE), and which was the first.
///
/// The others went through, so this is a report and not an error: the caller decides.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
#[must_use = "elements may have been out of range"]
pub struct RangeReport {
    /// Elements converted.
    pub elements: u64,
    /// Elements that did not fit and became the fill value.
    pub out_of_range: u64,
    /// The first of these.
    pub first: Option<OutOfRange>,
}

impl RangeReport {
    /// Whether every element fitted.
    pub fn all_fit(&self) -> bool {
        self.out_of_range == 0
    }

    /// Adds the report of the elements that follow, whose places count on from here.
    pub fn append(&mut self, next: RangeReport) {
        let shifted = |o: OutOfRange| OutOfRange { index: self.elements + o.index, ..o };
        self.first = self.first.or(next.first.map(shifted));
        self.elements += next.elements;
        self.out_of_range += next.out_of_range;
    }

    /// An error unless every element fitted.
    pub fn into_result(self) -> Result<(), ConvertError> {
        if self.all_fit() { Ok(()) } else { Err(ConvertError::OutOfRange(self)) }
    }
}

impl fmt::Display for RangeReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.first {
            None => write!(f, "all {} values fit", self.elements),
            Some(OutOfRange { index, value, target }) => write!(
                f,
                "{} of {} values are out of the range of {target}; the first is {value}, at index {index}",
                self.out_of_range, self.elements
            ),
        }
    }
}

/// Why nothing, or not everything, could be converted.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum ConvertError {
    /// Text meets numbers.
    #[error(
        "text and numbers do not convert: the file's type is {external}, the memory's {memory}"
    )]
    TextAndNumber {
        /// The type in the file.
        external: ExternalType,
        /// The type in memory.
        memory: MemoryType,
    },
    /// Buffers that do not belong together.
    #[error(
        "{external_bytes} bytes of {external} and {memory_bytes} bytes of {memory} \
         are not equally many elements"
    )]
    Length {
        /// The type in the file.
        external: ExternalType,
        /// Bytes in the file's form.
        external_bytes: usize,
        /// The type in memory.
        memory: MemoryType,
        /// Bytes in memory.
        memory_bytes: usize,
    },
    /// The fill value is not one element.
    #[error("a fill value of {found} bytes cannot stand for one {external}")]
    FillLength {
        /// The type in the file.
        external: ExternalType,
        /// The bytes that were given.
        found: usize,
    },
    /// Elements did not fit, where the caller wanted all of them.
    #[error("{0}")]
    OutOfRange(RangeReport),
}
