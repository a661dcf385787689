//! One value of any type, exactly, for messages and comparisons.

use std::cmp::Ordering;
use std::fmt;

use super::native::{Char, Native};
use crate::types::MemoryType;

/// One value, exactly.
///
/// Numbers compare by their exact value, whatever their types: `I(1) == F64(1.0)`, and
/// `F32(0.1) > F64(0.1)` because the nearest `f32` is the larger one. Text and NaN compare
/// with no number.
#[derive(Debug, Clone, Copy)]
pub enum Scalar {
    /// A signed integer.
    I(i64),
    /// An unsigned integer.
    U(u64),
    /// A 32-bit float; apart from `F64` because it prints with fewer digits.
    F32(f32),
    /// A 64-bit float.
    F64(f64),
    /// A byte of text.
    Char(u8),
}

enum Exact {
    Integer(i128),
    Real(f64),
}

impl Scalar {
    /// The value of type `memory` at the beginning of `bytes`, in native order.
    pub fn read(memory: MemoryType, bytes: &[u8]) -> Option<Scalar> {
        fn one<T: Native>(bytes: &[u8]) -> Option<Scalar> {
            bytes.get(..size_of::<T>()).map(|b| bytemuck::pod_read_unaligned::<T>(b).scalar())
        }
        match memory {
            MemoryType::I8 => one::<i8>(bytes),
            MemoryType::U8 => one::<u8>(bytes),
            MemoryType::I16 => one::<i16>(bytes),
            MemoryType::U16 => one::<u16>(bytes),
            MemoryType::I32 => one::<i32>(bytes),
            MemoryType::U32 => one::<u32>(bytes),
            MemoryType::I64 => one::<i64>(bytes),
            MemoryType::U64 => one::<u64>(bytes),
            MemoryType::F32 => one::<f32>(bytes),
            MemoryType::F64 => one::<f64>(bytes),
            MemoryType::Text => one::<Char>(bytes),
        }
    }

    /// The number nearest to it; none for text.
    pub fn to_f64(self) -> Option<f64> {
        match self {
            Scalar::I(x) => Some(x as f64),
            Scalar::U(x) => Some(x as f64),
            Scalar::F32(x) => Some(x.into()),
            Scalar::F64(x) => Some(x),
            Scalar::Char(_) => None,
        }
    }

    fn exact(self) -> Option<Exact> {
        match self {
            Scalar::I(x) => Some(Exact::Integer(x.into())),
            Scalar::U(x) => Some(Exact::Integer(x.into())),
            Scalar::F32(x) => Some(Exact::Real(x.into())),
            Scalar::F64(x) => Some(Exact::Real(x)),
            Scalar::Char(_) => None,
        }
    }
}

/// Compares without rounding: the integers here need up to 65 bits, an `f64` has 53.
fn compare_integer_with_real(integer: i128, real: f64) -> Option<Ordering> {
    if real.is_nan() {
        return None;
    }
    // The cast saturates far beyond 64 bits, so infinities and huge values order rightly.
    let whole = integer.cmp(&(real.trunc() as i128));
    let fraction = 0.0f64.partial_cmp(&real.fract());
    Some(if real.is_finite() { whole.then(fraction.unwrap_or(Ordering::Equal)) } else { whole })
}

impl PartialOrd for Scalar {
    fn partial_cmp(&self, other: &Scalar) -> Option<Ordering> {
        if let (Scalar::Char(a), Scalar::Char(b)) = (self, other) {
            return Some(a.cmp(b));
        }
        match (self.exact()?, other.exact()?) {
            (Exact::Integer(a), Exact::Integer(b)) => Some(a.cmp(&b)),
            (Exact::Real(a), Exact::Real(b)) => a.partial_cmp(&b),
            (Exact::Integer(a), Exact::Real(b)) => compare_integer_with_real(a, b),
            (Exact::Real(a), Exact::Integer(b)) => {
                compare_integer_with_real(b, a).map(Ordering::reverse)
            }
        }
    }
}

impl PartialEq for Scalar {
    fn eq(&self, other: &Scalar) -> bool {
        self.partial_cmp(other) == Some(Ordering::Equal)
    }
}

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Scalar::I(x) => write!(f, "{x}"),
            Scalar::U(x) => write!(f, "{x}"),
            // Debug prints the shortest digits that read back, with an exponent when long.
            Scalar::F32(x) => write!(f, "{x:?}"),
            Scalar::F64(x) => write!(f, "{x:?}"),
            Scalar::Char(byte) => write!(f, "'{}'", byte.escape_ascii()),
        }
    }
}
