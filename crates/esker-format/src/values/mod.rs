//! Values: owned lists of one external type, native element types, and the conversion
//! between the external big-endian form and memory.

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

use crate::types::ExternalType;

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
}
