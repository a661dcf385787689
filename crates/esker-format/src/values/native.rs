//! The element types that user memory is made of.

use bytemuck::{Pod, Zeroable};

use super::{Scalar, Values};
use crate::types::MemoryType;

/// One byte of text, so that text and the number `u8` are different types.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Pod, Zeroable)]
#[repr(transparent)]
pub struct Char(pub u8);

impl From<u8> for Char {
    fn from(byte: u8) -> Char {
        Char(byte)
    }
}

mod sealed {
    pub trait Sealed {}
}

/// An element type of user memory: the ten numbers and [`Char`].
pub trait Native: Pod + PartialEq + Send + Sync + std::fmt::Debug + sealed::Sealed {
    /// Its name at run time.
    const MEMORY: MemoryType;

    /// A list of such elements as values of the external type that holds them exactly.
    fn into_values(list: Vec<Self>) -> Values;

    /// The elements of `values`, when they are of exactly this type.
    fn of_values(values: &Values) -> Option<&[Self]>;

    /// This one element.
    fn scalar(self) -> Scalar;
}

macro_rules! native {
    ($($t:ident $memory:ident $values:ident $scalar:expr;)*) => {$(
        impl sealed::Sealed for $t {}
        impl Native for $t {
            const MEMORY: MemoryType = MemoryType::$memory;

            fn into_values(list: Vec<Self>) -> Values {
                Values::$values(list)
            }

            fn of_values(values: &Values) -> Option<&[Self]> {
                if let Values::$values(list) = values { Some(list) } else { None }
            }

            fn scalar(self) -> Scalar {
                $scalar(self.into())
            }
        }
    )*};
}

native! {
    i8 I8 Byte Scalar::I;
    u8 U8 UByte Scalar::U;
    i16 I16 Short Scalar::I;
    u16 U16 UShort Scalar::U;
    i32 I32 Int Scalar::I;
    u32 U32 UInt Scalar::U;
    i64 I64 Int64 Scalar::I;
    u64 U64 UInt64 Scalar::U;
    f32 F32 Float Scalar::F32;
    f64 F64 Double Scalar::F64;
}

impl sealed::Sealed for Char {}
impl Native for Char {
    const MEMORY: MemoryType = MemoryType::Text;

    fn into_values(list: Vec<Self>) -> Values {
        Values::Char(list.into_iter().map(|c| c.0).collect())
    }

    fn of_values(values: &Values) -> Option<&[Self]> {
        if let Values::Char(bytes) = values { Some(bytemuck::cast_slice(bytes)) } else { None }
    }

    fn scalar(self) -> Scalar {
        Scalar::Char(self.0)
    }
}
