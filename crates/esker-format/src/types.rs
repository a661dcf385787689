//! The eleven external types, the three file versions, and the memory types they meet.

use std::fmt;

/// The three classic file versions, told apart by the fourth byte of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Version {
    /// CDF-1, "classic": 32-bit sizes and offsets, six types.
    Cdf1,
    /// CDF-2, "64-bit offset": 64-bit offsets, 32-bit sizes, six types.
    Cdf2,
    /// CDF-5, "64-bit data": 64-bit sizes and offsets, eleven types.
    Cdf5,
}

impl Version {
    /// All versions, oldest first.
    pub const ALL: [Version; 3] = [Version::Cdf1, Version::Cdf2, Version::Cdf5];

    /// The fourth byte of the file.
    pub fn byte(self) -> u8 {
        match self {
            Version::Cdf1 => 1,
            Version::Cdf2 => 2,
            Version::Cdf5 => 5,
        }
    }

    /// The version whose fourth byte is `byte`.
    pub fn from_byte(byte: u8) -> Option<Version> {
        Version::ALL.into_iter().find(|v| v.byte() == byte)
    }

    /// The name that `ncdump -k` prints.
    pub fn kind_name(self) -> &'static str {
        match self {
            Version::Cdf1 => "classic",
            Version::Cdf2 => "64-bit offset",
            Version::Cdf5 => "cdf5",
        }
    }

    /// Bytes of a NON_NEG: a count, a dimension's length or id, `vsize`, `numrecs`.
    pub fn count_width(self) -> usize {
        if self == Version::Cdf5 { 8 } else { 4 }
    }

    /// Bytes of an OFFSET: a variable's `begin`.
    pub fn offset_width(self) -> usize {
        if self == Version::Cdf1 { 4 } else { 8 }
    }

    /// The largest count this version can store (counts are signed in the specification).
    pub fn max_count(self) -> u64 {
        if self == Version::Cdf5 { i64::MAX as u64 } else { i32::MAX as u64 }
    }

    /// The longest dimension this version can store: in CDF-2 a little less than 2³², as
    /// netCDF-C has it, though counts are signed otherwise.
    pub fn max_dim_len(self) -> u64 {
        if self == Version::Cdf2 { u32::MAX as u64 - 3 } else { self.max_count() }
    }

    /// The largest `begin` this version can store.
    pub fn max_offset(self) -> u64 {
        if self == Version::Cdf1 { i32::MAX as u64 } else { i64::MAX as u64 }
    }

    /// Whether attributes and variables of this type exist in this version.
    pub fn has_type(self, ty: ExternalType) -> bool {
        self == Version::Cdf5 || (ty as u32) <= ExternalType::Double as u32
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CDF-{}", self.byte())
    }
}

/// A type as it stands in the file: big-endian, of fixed size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u32)]
pub enum ExternalType {
    /// NC_BYTE, signed 8-bit.
    Byte = 1,
    /// NC_CHAR, text; never converts to a number.
    Char = 2,
    /// NC_SHORT, signed 16-bit.
    Short = 3,
    /// NC_INT, signed 32-bit.
    Int = 4,
    /// NC_FLOAT, IEEE 32-bit.
    Float = 5,
    /// NC_DOUBLE, IEEE 64-bit.
    Double = 6,
    /// NC_UBYTE, CDF-5 only.
    UByte = 7,
    /// NC_USHORT, CDF-5 only.
    UShort = 8,
    /// NC_UINT, CDF-5 only.
    UInt = 9,
    /// NC_INT64, CDF-5 only.
    Int64 = 10,
    /// NC_UINT64, CDF-5 only.
    UInt64 = 11,
}

impl ExternalType {
    /// All eleven types, in the order of their codes.
    pub const ALL: [ExternalType; 11] = [
        ExternalType::Byte,
        ExternalType::Char,
        ExternalType::Short,
        ExternalType::Int,
        ExternalType::Float,
        ExternalType::Double,
        ExternalType::UByte,
        ExternalType::UShort,
        ExternalType::UInt,
        ExternalType::Int64,
        ExternalType::UInt64,
    ];

    /// The `nc_type` code in the file.
    pub fn code(self) -> u32 {
        self as u32
    }

    /// The type with this `nc_type` code.
    pub fn from_code(code: u32) -> Option<ExternalType> {
        ExternalType::ALL.get(code.checked_sub(1)? as usize).copied()
    }

    /// Bytes of one value in the file.
    pub fn size(self) -> u64 {
        match self {
            ExternalType::Byte | ExternalType::Char | ExternalType::UByte => 1,
            ExternalType::Short | ExternalType::UShort => 2,
            ExternalType::Int | ExternalType::Float | ExternalType::UInt => 4,
            ExternalType::Double | ExternalType::Int64 | ExternalType::UInt64 => 8,
        }
    }

    /// The CDL keyword, as ncdump prints it.
    pub fn cdl_name(self) -> &'static str {
        match self {
            ExternalType::Byte => "byte",
            ExternalType::Char => "char",
            ExternalType::Short => "short",
            ExternalType::Int => "int",
            ExternalType::Float => "float",
            ExternalType::Double => "double",
            ExternalType::UByte => "ubyte",
            ExternalType::UShort => "ushort",
            ExternalType::UInt => "uint",
            ExternalType::Int64 => "int64",
            ExternalType::UInt64 => "uint64",
        }
    }

    /// The memory type that holds every value of this type exactly.
    pub fn natural(self) -> MemoryType {
        match self {
            ExternalType::Byte => MemoryType::I8,
            ExternalType::Char => MemoryType::Text,
            ExternalType::Short => MemoryType::I16,
            ExternalType::Int => MemoryType::I32,
            ExternalType::Float => MemoryType::F32,
            ExternalType::Double => MemoryType::F64,
            ExternalType::UByte => MemoryType::U8,
            ExternalType::UShort => MemoryType::U16,
            ExternalType::UInt => MemoryType::U32,
            ExternalType::Int64 => MemoryType::I64,
            ExternalType::UInt64 => MemoryType::U64,
        }
    }
}

impl fmt::Display for ExternalType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.cdl_name())
    }
}

/// A type as it stands in the caller's memory: native byte order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MemoryType {
    /// `i8`
    I8,
    /// `u8`, a number
    U8,
    /// `i16`
    I16,
    /// `u16`
    U16,
    /// `i32`
    I32,
    /// `u32`
    U32,
    /// `i64`
    I64,
    /// `u64`
    U64,
    /// `f32`
    F32,
    /// `f64`
    F64,
    /// One byte of text ([`Char`](crate::Char)).
    Text,
}

impl MemoryType {
    /// All memory types.
    pub const ALL: [MemoryType; 11] = [
        MemoryType::I8,
        MemoryType::U8,
        MemoryType::I16,
        MemoryType::U16,
        MemoryType::I32,
        MemoryType::U32,
        MemoryType::I64,
        MemoryType::U64,
        MemoryType::F32,
        MemoryType::F64,
        MemoryType::Text,
    ];

    /// Bytes of one value in memory.
    pub fn size(self) -> usize {
        match self {
            MemoryType::I8 | MemoryType::U8 | MemoryType::Text => 1,
            MemoryType::I16 | MemoryType::U16 => 2,
            MemoryType::I32 | MemoryType::U32 | MemoryType::F32 => 4,
            MemoryType::I64 | MemoryType::U64 | MemoryType::F64 => 8,
        }
    }

    /// The external type that holds every value of this type exactly.
    pub fn natural(self) -> ExternalType {
        match self {
            MemoryType::I8 => ExternalType::Byte,
            MemoryType::U8 => ExternalType::UByte,
            MemoryType::I16 => ExternalType::Short,
            MemoryType::U16 => ExternalType::UShort,
            MemoryType::I32 => ExternalType::Int,
            MemoryType::U32 => ExternalType::UInt,
            MemoryType::I64 => ExternalType::Int64,
            MemoryType::U64 => ExternalType::UInt64,
            MemoryType::F32 => ExternalType::Float,
            MemoryType::F64 => ExternalType::Double,
            MemoryType::Text => ExternalType::Char,
        }
    }

    /// The Rust spelling, for messages.
    pub fn name(self) -> &'static str {
        match self {
            MemoryType::I8 => "i8",
            MemoryType::U8 => "u8",
            MemoryType::I16 => "i16",
            MemoryType::U16 => "u16",
            MemoryType::I32 => "i32",
            MemoryType::U32 => "u32",
            MemoryType::I64 => "i64",
            MemoryType::U64 => "u64",
            MemoryType::F32 => "f32",
            MemoryType::F64 => "f64",
            MemoryType::Text => "text",
        }
    }
}

impl fmt::Display for MemoryType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
