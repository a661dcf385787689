//! What CDL text describes.

use esker_format::runs::advance;
use esker_format::values::fill_value;
use esker_format::{Schema, Values, VarId, Version};

use crate::cdl::fill::each_values;
use crate::cdl::source::{CdlSource, SourceError};

/// The content of a CDL text: a schema, a number of records, and values.
#[derive(Debug, Clone, PartialEq)]
pub struct CdlFile {
    /// The name after `netcdf`.
    pub name: String,
    /// Dimensions, attributes and variables. Its version is the one that `_Format` asks for, or
    /// the oldest that has the types and lengths used.
    pub schema: Schema,
    /// The version that the attribute `_Format` asks for.
    pub format: Option<Version>,
    /// How many records there are: as many as the longest list of a record variable fills.
    pub numrecs: u64,
    /// For each variable the values given, in C order from its first element on; what comes
    /// after them is fill. Kept short so that a large variable without data costs nothing.
    pub given: Vec<Values>,
    /// What was read but has no effect, in sentences.
    pub notes: Vec<String>,
}

impl CdlSource for CdlFile {
    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn numrecs(&self) -> u64 {
        self.numrecs
    }

    fn name(&self) -> String {
        self.name.clone()
    }

    fn read(&self, var: VarId, start: &[u64], count: &[u64]) -> Result<Values, SourceError> {
        let (Some(variable), Some(given)) = (self.schema.variable(var), self.given.get(var.0))
        else {
            return Err(format!("there is no variable number {}", var.0).into());
        };
        let shape = self.schema.shape(variable, self.numrecs);
        let inside = start.len() == shape.len()
            && count.len() == shape.len()
            && (0..shape.len())
                .all(|d| start[d].checked_add(count[d]).is_some_and(|e| e <= shape[d]));
        if !inside {
            return Err(format!("{start:?} + {count:?} is outside the shape {shape:?}").into());
        }
        let total = count.iter().try_fold(1u64, |size, len| size.checked_mul(*len));
        let Some(total) = total.and_then(|total| usize::try_from(total).ok()) else {
            return Err(format!("{count:?} is too much at once").into());
        };
        let slab = Slab { total, shape: &shape, start, count };
        let fill = fill_value(variable);
        macro_rules! read {
            ($($variant:ident),*) => {
                match (given, &fill) {
                    $((Values::$variant(given), Values::$variant(fill)) => {
                        Ok(Values::$variant(slab.take(given, fill.first().copied().unwrap_or_default())))
                    })*
                    _ => Err("the values are not of the variable's type".into()),
                }
            };
        }
        read!(Byte, Char, Short, Int, Float, Double, UByte, UShort, UInt, Int64, UInt64)
    }
}

impl CdlFile {
    /// How many values of a variable are given.
    pub fn given_len(&self, var: VarId) -> u64 {
        self.given.get(var.0).map_or(0, |v| v.len() as u64)
    }

    /// An empty list of a variable's type.
    pub(super) fn nothing(like: &Values) -> Values {
        let mut empty = like.clone();
        each_values!(&mut empty, v => v.clear());
        empty
    }
}

/// A hyperslab of an array that is given up to some element.
struct Slab<'a> {
    total: usize,
    shape: &'a [u64],
    start: &'a [u64],
    count: &'a [u64],
}

impl Slab<'_> {
    fn take<T: Copy>(&self, given: &[T], fill: T) -> Vec<T> {
        let mut out = Vec::with_capacity(self.total);
        if self.total == 0 {
            return out;
        }
        let outer = &self.count[..self.shape.len().saturating_sub(1)];
        let mut walked = vec![0; outer.len()];
        let run = self.count.last().copied().unwrap_or(1);
        let mut index = self.start.to_vec();
        loop {
            let flat = index
                .iter()
                .zip(self.shape)
                .fold(0u64, |flat, (i, len)| flat.saturating_mul(*len).saturating_add(*i));
            let end = flat.saturating_add(run).min(given.len() as u64);
            if flat < end {
                out.extend_from_slice(&given[flat as usize..end as usize]);
            }
            let missing = run - end.saturating_sub(flat);
            out.resize(out.len() + missing as usize, fill);
            if advance(&mut walked, outer).is_none() {
                return out;
            }
            walked.iter().enumerate().for_each(|(d, i)| index[d] = self.start[d] + i);
        }
    }
}
