//! Values: owned lists of one external type, native element types, and the conversion
//! between the file's big-endian form and memory.
//!
//! [`Values`] holds attributes and small arrays. Large arrays never become `Values`: the
//! dataset calls [`encode`] and [`decode`] on contiguous runs of plain bytes.
//!
//! # What fits
//!
//! Any number converts to any numeric type; text meets text alone. An element that does not
//! fit becomes the fill value, all others go through, and a [`RangeReport`] says how many did
//! not fit (netCDF's NC_ERANGE). The rules, beside what netCDF-C 4.9.0 and PnetCDF 1.12.3
//! were seen to do:
//!
//! | from, to | Esker | netCDF-C, PnetCDF |
//! | --- | --- | --- |
//! | integer to integer | fits when the target has the number | the same |
//! | NC_BYTE and `u8` in CDF-1, CDF-2 | the bits, unchecked ([`ConversionRules`]) | the same |
//! | real to integer | fits when min ≤ x ≤ max *before* the fraction is cut off, compared exactly: 127.9 does not fit a byte, -0.5 no unsigned type, 2^63 no `i64` | the same, but 2^63 passes as an `i64` and is stored as -2^63 |
//! | NaN to integer | does not fit | passes, stored as 0 or the smallest integer |
//! | `f64` to `f32` | fits when \|x\| ≤ `f32::MAX` before rounding; then rounds to nearest | the same |
//! | ±∞ to `f32` | fits, stays ±∞ | NC_ERANGE; netCDF-C stores ∞, PnetCDF the fill value |
//! | NaN to `f32` | fits, stays NaN | the same |
//! | integer to real | always fits, rounds to nearest | the same |
//! | what does not fit, written | the variable's fill value | PnetCDF the same; netCDF-C, as Debian builds it, whatever a C cast gives |
//! | what does not fit, read | the default fill value of the memory's type | as above |
//!
//! The deviations lose no data: `f32` has infinities (netCDF4-python, which lets numpy
//! convert, stores them too), and neither NaN nor 2^63 has a meaning as an integer.

mod convert;
mod fill;
mod from;
mod native;
mod number;
mod report;
mod scalar;
mod swap;

use std::borrow::Cow;

use crate::types::ExternalType;

pub use convert::{ConversionRules, decode, encode};
pub use fill::{default_fill, default_fill_bytes, fill_bytes, fill_value};
pub use native::{Char, Native};
pub use report::{ConvertError, OutOfRange, RangeReport};
pub use scalar::Scalar;
pub use swap::{copy_reversed, swap_in_place};

/// An owned list of values of one external type, as attributes and small arrays hold them.
#[derive(Debug, Clone, PartialEq)]
pub enum Values {
    /// NC_BYTE
    Byte(Vec<i8>),
    /// NC_CHAR: bytes of text, usually UTF-8, not ended by a zero.
    Char(Vec<u8>),
    /// NC_SHORT
    Short(Vec<i16>),
    /// NC_INT
    Int(Vec<i32>),
    /// NC_FLOAT
    Float(Vec<f32>),
    /// NC_DOUBLE
    Double(Vec<f64>),
    /// NC_UBYTE
    UByte(Vec<u8>),
    /// NC_USHORT
    UShort(Vec<u16>),
    /// NC_UINT
    UInt(Vec<u32>),
    /// NC_INT64
    Int64(Vec<i64>),
    /// NC_UINT64
    UInt64(Vec<u64>),
}

/// The same expression for the list inside, whatever its type.
macro_rules! each {
    ($values:expr, $list:ident => $body:expr) => {
        match $values {
            Values::Byte($list) => $body,
            Values::Char($list) => $body,
            Values::Short($list) => $body,
            Values::Int($list) => $body,
            Values::Float($list) => $body,
            Values::Double($list) => $body,
            Values::UByte($list) => $body,
            Values::UShort($list) => $body,
            Values::UInt($list) => $body,
            Values::Int64($list) => $body,
            Values::UInt64($list) => $body,
        }
    };
}

impl Values {
    /// The type in the file.
    pub fn ty(&self) -> ExternalType {
        match self {
            Values::Byte(_) => ExternalType::Byte,
            Values::Char(_) => ExternalType::Char,
            Values::Short(_) => ExternalType::Short,
            Values::Int(_) => ExternalType::Int,
            Values::Float(_) => ExternalType::Float,
            Values::Double(_) => ExternalType::Double,
            Values::UByte(_) => ExternalType::UByte,
            Values::UShort(_) => ExternalType::UShort,
            Values::UInt(_) => ExternalType::UInt,
            Values::Int64(_) => ExternalType::Int64,
            Values::UInt64(_) => ExternalType::UInt64,
        }
    }

    /// `n` zeros (for text, zero bytes).
    pub fn zeros(ty: ExternalType, n: usize) -> Values {
        match ty {
            ExternalType::Byte => Values::Byte(vec![0; n]),
            ExternalType::Char => Values::Char(vec![0; n]),
            ExternalType::Short => Values::Short(vec![0; n]),
            ExternalType::Int => Values::Int(vec![0; n]),
            ExternalType::Float => Values::Float(vec![0.0; n]),
            ExternalType::Double => Values::Double(vec![0.0; n]),
            ExternalType::UByte => Values::UByte(vec![0; n]),
            ExternalType::UShort => Values::UShort(vec![0; n]),
            ExternalType::UInt => Values::UInt(vec![0; n]),
            ExternalType::Int64 => Values::Int64(vec![0; n]),
            ExternalType::UInt64 => Values::UInt64(vec![0; n]),
        }
    }

    /// A copy of native elements, as values of the type that holds them exactly.
    pub fn from_slice<T: Native>(list: &[T]) -> Values {
        T::into_values(list.to_vec())
    }

    /// How many values there are; for text, bytes.
    pub fn len(&self) -> usize {
        each!(self, list => list.len())
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many bytes they take in the file (and in memory), without padding.
    pub fn bytes_len(&self) -> usize {
        self.native_bytes().len()
    }

    /// Reads `count` values from the file's form; none unless `bytes` is exactly as long.
    pub fn decode(ty: ExternalType, count: usize, bytes: &[u8]) -> Option<Values> {
        // Before anything is allocated: `count` may be any number from a hostile header.
        if count.checked_mul(ty.size() as usize) != Some(bytes.len()) {
            return None;
        }
        let mut values = Values::zeros(ty, count);
        swap::swap_copy(bytes, values.native_bytes_mut(), ty.size() as usize);
        Some(values)
    }

    /// Appends the file's form, without padding.
    pub fn encode_into(&self, out: &mut Vec<u8>) {
        let begin = out.len();
        out.extend_from_slice(self.native_bytes());
        swap_in_place(&mut out[begin..], self.ty().size() as usize);
    }

    /// The file's form, without padding.
    pub fn external_bytes(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.bytes_len());
        self.encode_into(&mut out);
        out
    }

    /// The values as bytes in native order.
    pub fn native_bytes(&self) -> &[u8] {
        each!(self, list => bytemuck::cast_slice(list))
    }

    /// The values as bytes in native order, to be filled.
    pub fn native_bytes_mut(&mut self) -> &mut [u8] {
        each!(self, list => bytemuck::cast_slice_mut(list))
    }

    /// The values, when they are of exactly this type.
    pub fn as_slice<T: Native>(&self) -> Option<&[T]> {
        T::of_values(self)
    }

    /// The values in another type; an error when one does not fit.
    pub fn convert_to<T: Native>(&self) -> Result<Vec<T>, ConvertError> {
        let (list, report) = self.convert_with(ConversionRules::default())?;
        report.into_result()?;
        Ok(list)
    }

    /// The values in another type by the rules of a file version; those that do not fit are
    /// the default fill value of that type, and are counted in the report.
    pub fn convert_with<T: Native>(
        &self,
        rules: ConversionRules,
    ) -> Result<(Vec<T>, RangeReport), ConvertError> {
        let mut list = vec![T::zeroed(); self.len()];
        let dst = bytemuck::cast_slice_mut(&mut list);
        let bytes = self.native_bytes();
        let report = convert::convert_native(self.ty(), bytes, T::MEMORY, dst, rules)?;
        Ok((list, report))
    }

    /// The value at `index`.
    pub fn get(&self, index: usize) -> Option<Scalar> {
        let memory = self.ty().natural();
        let begin = index.checked_mul(memory.size())?;
        Scalar::read(memory, self.native_bytes().get(begin..)?)
    }

    /// The number at `index`, or the nearest `f64` to it; none for text.
    pub fn get_f64(&self, index: usize) -> Option<f64> {
        self.get(index)?.to_f64()
    }

    /// The text, with the replacement character for what is not UTF-8; none for numbers.
    pub fn text(&self) -> Option<Cow<'_, str>> {
        if let Values::Char(bytes) = self { Some(String::from_utf8_lossy(bytes)) } else { None }
    }
}
