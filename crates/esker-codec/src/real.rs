//! Numbers of all types, and the two types of reals.

use bytemuck::Pod;

/// A number of one of the classic types, for code that is written once.
pub(crate) trait Number: Pod + PartialEq + Default + Send + Sync + 'static {
    /// An unsigned number of the same width.
    type Code: pco::data_types::Number + Pod + Default;
    /// What so many numbers add up to: exact for integers.
    type Sum: Copy + Default;
    /// What is computed with: the type itself, or doubles for integers.
    type Work: Real;

    /// Its bits as an integer.
    fn bits(self) -> u64;
    fn from_bits(bits: u64) -> Self;
    /// Exact but for integers beyond 2^53.
    fn wide(self) -> f64;
    /// Rounds to nearest, ties to even.
    fn narrow(wide: f64) -> Self;
    /// The distance from a prediction in the order of the type's values, small where they are near.
    fn difference(self, predicted: Self) -> Self::Code;
    /// The number at this distance.
    fn at_distance(predicted: Self, distance: Self::Code) -> Self;
    /// How large a distance is, in bits.
    fn size_of_distance(distance: Self::Code) -> u8;
    fn add(self, sum: Self::Sum) -> Self::Sum;
    /// A sum over `count`, rounded to nearest, ties to even.
    fn mean(sum: Self::Sum, count: u32) -> Self;
    /// A number that is at least as small, or as large, as a double.
    fn bounds(self) -> (f64, f64);
}

/// `f32` and `f64`.
pub(crate) trait Real:
    Number
    + PartialOrd
    + std::ops::Add<Output = Self>
    + std::ops::Sub<Output = Self>
    + std::ops::Mul<Output = Self>
{
}

impl Real for f32 {}
impl Real for f64 {}

/// The methods that depend on the order of values alone.
macro_rules! distances {
    ($t:ident, $unsigned:ident, $signed:ident, $rank:expr, $value:expr) => {
        type Code = $unsigned;

        #[inline(always)]
        fn difference(self, predicted: $t) -> $unsigned {
            let rank: fn($t) -> $unsigned = $rank;
            let distance = rank(self).wrapping_sub(rank(predicted));
            (distance << 1) ^ ((distance as $signed) >> ($unsigned::BITS - 1)) as $unsigned
        }
        #[inline(always)]
        fn at_distance(predicted: $t, distance: $unsigned) -> $t {
            let (rank, value): (fn($t) -> $unsigned, fn($unsigned) -> $t) = ($rank, $value);
            let distance = (distance >> 1) ^ (0 as $unsigned).wrapping_sub(distance & 1);
            value(rank(predicted).wrapping_add(distance))
        }
        #[inline(always)]
        fn size_of_distance(distance: $unsigned) -> u8 {
            ($unsigned::BITS - distance.leading_zeros()) as u8
        }
    };
}

macro_rules! real {
    ($($t:ident $bits:ident $signed:ident)*) => {$(
        impl Number for $t {
            type Sum = f64;
            type Work = $t;
            distances!($t, $bits, $signed, |x| {
                let bits = x.to_bits();
                let negative = bits >> ($bits::BITS - 1) == 1;
                if negative { !bits } else { bits | 1 << ($bits::BITS - 1) }
            }, |rank| {
                let positive = rank >> ($bits::BITS - 1) == 1;
                $t::from_bits(if positive { rank & ($bits::MAX >> 1) } else { !rank })
            });

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
            #[inline(always)]
            fn add(self, sum: f64) -> f64 {
                sum + f64::from(self)
            }
            #[inline(always)]
            fn mean(sum: f64, count: u32) -> $t {
                (sum / f64::from(count)) as $t
            }
            fn bounds(self) -> (f64, f64) {
                (self.into(), self.into())
            }
        }
    )*};
}
real! { f32 u32 i32 f64 u64 i64 }

macro_rules! integers {
    ($($t:ident $unsigned:ident $signed:ident $sum:ident)*) => {$(
        impl Number for $t {
            type Sum = $sum;
            type Work = f64;
            // Signed values in the order of unsigned ones: the distance is the same.
            distances!($t, $unsigned, $signed, |x| x as $unsigned, |rank| rank as $t);

            #[inline(always)]
            fn bits(self) -> u64 {
                (self as $unsigned).into()
            }
            #[inline(always)]
            fn from_bits(bits: u64) -> $t {
                bits as $t
            }
            #[inline(always)]
            fn wide(self) -> f64 {
                self as f64
            }
            #[inline(always)]
            fn narrow(wide: f64) -> $t {
                wide.round_ties_even() as $t
            }
            #[inline(always)]
            fn add(self, sum: $sum) -> $sum {
                sum + $sum::from(self)
            }
            #[inline(always)]
            fn mean(sum: $sum, count: u32) -> $t {
                let count = $sum::from(count);
                let (below, left) = (sum.div_euclid(count), sum.rem_euclid(count));
                let up = 2 * left > count || (2 * left == count && below % 2 != 0);
                (below + $sum::from(up)) as $t
            }
            fn bounds(self) -> (f64, f64) {
                let wide = self as f64;
                // Back in an integer that holds any of these and any double that one rounds to.
                match (wide as i128).cmp(&i128::from(self)) {
                    std::cmp::Ordering::Less => (wide, wide.next_up()),
                    std::cmp::Ordering::Equal => (wide, wide),
                    std::cmp::Ordering::Greater => (wide.next_down(), wide),
                }
            }
        }
    )*};
}
integers! {
    i8 u8 i8 i64  u8 u8 i8 i64  i16 u16 i16 i64  u16 u16 i16 i64
    i32 u32 i32 i64  u32 u32 i32 i64  i64 u64 i64 i128  u64 u64 i64 i128
}

/// The bits of one big-endian element, or none if it is not as wide as `T`.
pub(crate) fn fill_bits<T: Number>(fill: Option<&[u8]>) -> Option<u64> {
    let fill = fill.filter(|fill| fill.len() == size_of::<T>())?;
    Some(fill.iter().fold(0, |bits, &byte| bits << 8 | u64::from(byte)))
}
