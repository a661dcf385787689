//! The two types of real numbers.

use bytemuck::Pod;

/// `f32` and `f64`, for code that is written once.
pub(crate) trait Real:
    Pod + PartialOrd + PartialEq + Default + Send + Sync + 'static
{
    /// Its bits as an integer.
    fn bits(self) -> u64;
    fn from_bits(bits: u64) -> Self;
    /// Exact.
    fn wide(self) -> f64;
    /// Rounds to nearest.
    fn narrow(wide: f64) -> Self;
}

macro_rules! real {
    ($($t:ident $bits:ident)*) => {$(
        impl Real for $t {
            #[inline(always)]
            fn bits(self) -> u64 {
                self.to_bits().into()
            }
            #[inline(always)]
            fn from_bits(bits: u64) -> $t {
                $t::from_bits(bits as $bits)
            }
            #[inline(always)]
            fn wide(self) -> f64 {
                self.into()
            }
            #[inline(always)]
            fn narrow(wide: f64) -> $t {
                wide as $t
            }
        }
    )*};
}
real! { f32 u32 f64 u64 }

/// The bits of one big-endian element, or none if it is not as wide as `T`.
pub(crate) fn fill_bits<T: Real>(fill: Option<&[u8]>) -> Option<u64> {
    let fill = fill.filter(|fill| fill.len() == size_of::<T>())?;
    Some(fill.iter().fold(0, |bits, &byte| bits << 8 | u64::from(byte)))
}
