//! One number to another type, with netCDF's idea of what fits.
//!
//! Every source widens to one of four carriers (`i64`, `u64`, `f32`, `f64`) that holds it
//! exactly, and every target says what it takes from each carrier. The compiler folds the
//! widening away, so that all pairs of types become loops over their own widths.

use super::native::Native;
use crate::types::MemoryType;

/// A numeric element type.
pub(super) trait Number: Native {
    /// This number as a `T`, and whether it fits.
    fn convert<T: Number>(self) -> (T, bool);
    fn from_i64(x: i64) -> (Self, bool);
    fn from_u64(x: u64) -> (Self, bool);
    fn from_f32(x: f32) -> (Self, bool);
    fn from_f64(x: f64) -> (Self, bool);
}

macro_rules! integer {
    ($($t:ident by $from:ident;)*) => {$(
        impl Number for $t {
            #[inline(always)]
            fn convert<T: Number>(self) -> (T, bool) {
                T::$from(self.into())
            }

            #[inline(always)]
            fn from_i64(x: i64) -> (Self, bool) {
                let y = x as $t;
                // The second half is for u64 alone, where every i64 survives the round trip.
                (y, (y as i64 == x) & ($t::MIN != 0 || x >= 0))
            }

            #[inline(always)]
            fn from_u64(x: u64) -> (Self, bool) {
                (x as $t, x <= $t::MAX as u64)
            }

            #[inline(always)]
            fn from_f32(x: f32) -> (Self, bool) {
                const LAST: f32 = {
                    let max = $t::MAX as f32;
                    if max as i128 > $t::MAX as i128 { max.next_down() } else { max }
                };
                (x as $t, (x >= $t::MIN as f32) & (x <= LAST))
            }

            #[inline(always)]
            fn from_f64(x: f64) -> (Self, bool) {
                const LAST: f64 = {
                    let max = $t::MAX as f64;
                    if max as i128 > $t::MAX as i128 { max.next_down() } else { max }
                };
                (x as $t, (x >= $t::MIN as f64) & (x <= LAST))
            }
        }
    )*};
}

integer! {
    i8 by from_i64;
    u8 by from_i64;
    i16 by from_i64;
    u16 by from_i64;
    i32 by from_i64;
    u32 by from_i64;
    i64 by from_i64;
    u64 by from_u64;
}

impl Number for f32 {
    #[inline(always)]
    fn convert<T: Number>(self) -> (T, bool) {
        T::from_f32(self)
    }
    #[inline(always)]
    fn from_i64(x: i64) -> (f32, bool) {
        (x as f32, true)
    }
    #[inline(always)]
    fn from_u64(x: u64) -> (f32, bool) {
        (x as f32, true)
    }
    #[inline(always)]
    fn from_f32(x: f32) -> (f32, bool) {
        (x, true)
    }
    #[inline(always)]
    fn from_f64(x: f64) -> (f32, bool) {
        let size = x.abs();
        // NaN compares with nothing, so it is not too large; nor is an infinity.
        let too_large = (size > f32::MAX as f64) & (size < f64::INFINITY);
        (x as f32, !too_large)
    }
}

impl Number for f64 {
    #[inline(always)]
    fn convert<T: Number>(self) -> (T, bool) {
        T::from_f64(self)
    }
    #[inline(always)]
    fn from_i64(x: i64) -> (f64, bool) {
        (x as f64, true)
    }
    #[inline(always)]
    fn from_u64(x: u64) -> (f64, bool) {
        (x as f64, true)
    }
    #[inline(always)]
    fn from_f32(x: f32) -> (f64, bool) {
        (x.into(), true)
    }
    #[inline(always)]
    fn from_f64(x: f64) -> (f64, bool) {
        (x, true)
    }
}

/// Converts whole elements from one native form to another and says whether all fit. An
/// element that does not fit leaves some value of the target type.
pub(super) type Converter = fn(&[u8], &mut [u8]) -> bool;

fn convert_all<S: Number, D: Number>(src: &[u8], dst: &mut [u8]) -> bool {
    // No branch per element: the loop only remembers whether any did not fit.
    let mut all = true;
    for (s, d) in src.chunks_exact(size_of::<S>()).zip(dst.chunks_exact_mut(size_of::<D>())) {
        let (y, fits) = bytemuck::pod_read_unaligned::<S>(s).convert::<D>();
        d.copy_from_slice(bytemuck::bytes_of(&y));
        all &= fits;
    }
    all
}

fn from<S: Number>(to: MemoryType) -> Option<Converter> {
    Some(match to {
        MemoryType::I8 => convert_all::<S, i8>,
        MemoryType::U8 => convert_all::<S, u8>,
        MemoryType::I16 => convert_all::<S, i16>,
        MemoryType::U16 => convert_all::<S, u16>,
        MemoryType::I32 => convert_all::<S, i32>,
        MemoryType::U32 => convert_all::<S, u32>,
        MemoryType::I64 => convert_all::<S, i64>,
        MemoryType::U64 => convert_all::<S, u64>,
        MemoryType::F32 => convert_all::<S, f32>,
        MemoryType::F64 => convert_all::<S, f64>,
        MemoryType::Text => return None,
    })
}

/// The converter for a pair of types; none between text and numbers.
pub(super) fn converter(from_type: MemoryType, to: MemoryType) -> Option<Converter> {
    match from_type {
        MemoryType::I8 => from::<i8>(to),
        MemoryType::U8 => from::<u8>(to),
        MemoryType::I16 => from::<i16>(to),
        MemoryType::U16 => from::<u16>(to),
        MemoryType::I32 => from::<i32>(to),
        MemoryType::U32 => from::<u32>(to),
        MemoryType::I64 => from::<i64>(to),
        MemoryType::U64 => from::<u64>(to),
        MemoryType::F32 => from::<f32>(to),
        MemoryType::F64 => from::<f64>(to),
        MemoryType::Text => None,
    }
}
