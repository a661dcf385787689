//! bitround: mantissas rounded to so many bits; the zeros after them compress well.
//!
//! Decoding does nothing, so everything that rounding would break is left as it is: NaN,
//! infinities, subnormals, fill values, what would become infinite or a fill value.

use esker_format::ExternalType;
use esker_format::values::default_fill_bytes;

use super::{Described, Site, ValuesFilter, is_one_integer, one_integer};
use crate::elements::Elements;
use crate::error::Result;
use crate::real::fill_bits;
use crate::scratch::Tools;

const WHAT: &str = "the number of mantissa bits to keep";

pub(crate) struct BitRound;

impl Described for BitRound {
    fn name(&self) -> &'static str {
        "bitround"
    }

    fn is_lossless(&self, _params: &[u64]) -> bool {
        false
    }

    fn parse(&self, words: &[&str]) -> std::result::Result<Vec<u64>, String> {
        one_integer(words, None, 0..=52, WHAT)
    }

    fn show(&self, params: &[u64]) -> String {
        params.iter().map(|bits| format!(",{bits}")).collect()
    }

    fn check(&self, params: &[u64], site: &Site<'_>) -> std::result::Result<(), String> {
        match site.ty {
            ExternalType::Float => is_one_integer(params, 0..=23, WHAT),
            ExternalType::Double => is_one_integer(params, 0..=52, WHAT),
            ty => Err(format!("it rounds float and double, and would lose what {ty} holds")),
        }
    }

    fn settles(&self, _params: &[u64]) -> bool {
        true
    }

    fn in_zarr(&self) -> bool {
        true
    }

    fn zarr(&self, params: &[u64], _site: &Site<'_>) -> Option<String> {
        Some(format!(r#"{{"id":"bitround","keepbits":{}}}"#, params.first()?))
    }
}

macro_rules! round_all {
    ($name:ident, $bits:ident, $mantissa:expr, $exponent:expr, $real:ty) => {
        fn $name(values: &mut [$bits], keep: u64, fills: &[$bits]) {
            let drop = $mantissa - keep.min($mantissa) as u32;
            if drop == 0 {
                return;
            }
            let (half, mask) = ((1 << (drop - 1)) - 1, $bits::MAX << drop);
            let infinite = |x: $bits| x & $exponent == $exponent;
            for x in values {
                let rounded = x.wrapping_add((*x >> drop & 1) + half) & mask;
                let unfit = infinite(*x) || infinite(rounded) || *x & $exponent == 0;
                if !unfit && !fills.iter().any(|fill| *fill == *x || *fill == rounded) {
                    *x = rounded;
                }
            }
        }
    };
}
round_all!(round32, u32, 23, 0x7F80_0000, f32);
round_all!(round64, u64, 52, 0x7FF0_0000_0000_0000, f64);

impl ValuesFilter for BitRound {
    fn encode(
        &self,
        params: &[u64],
        site: &Site<'_>,
        elements: &mut Elements,
        _tools: &mut Tools,
    ) -> Result<bool> {
        let keep = params.first().copied().unwrap_or(52);
        let default = default_fill_bytes(site.ty);
        if site.ty == ExternalType::Float {
            let own = fill_bits::<f32>(site.fill);
            let fills =
                [own, fill_bits::<f32>(Some(&default))].map(|fill| fill.unwrap_or(0) as u32);
            round32(elements.typed_mut(), keep, &fills[usize::from(own.is_none())..]);
        } else {
            let own = fill_bits::<f64>(site.fill);
            let fills = [own, fill_bits::<f64>(Some(&default))].map(|fill| fill.unwrap_or(0));
            round64(elements.typed_mut(), keep, &fills[usize::from(own.is_none())..]);
        }
        Ok(true)
    }

    fn decode(
        &self,
        _ty: ExternalType,
        _elements: &mut Elements,
        _tools: &mut Tools,
    ) -> Result<()> {
        Ok(())
    }
}
