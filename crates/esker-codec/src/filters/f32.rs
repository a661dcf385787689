//! f32: doubles stored as floats.

use esker_format::ExternalType;

use super::{Described, Site, ValuesFilter, no_params};
use crate::chunk::{ByteOrder, Chunk};
use crate::elements::Elements;
use crate::error::Result;
use crate::real::fill_bits;
use crate::scratch::Tools;

pub(crate) struct F32;

impl Described for F32 {
    fn name(&self) -> &'static str {
        "f32"
    }

    fn is_lossless(&self, _params: &[u64]) -> bool {
        false
    }

    fn check(&self, params: &[u64], site: &Site<'_>) -> std::result::Result<(), String> {
        if site.ty != ExternalType::Double {
            return Err(format!("it stores doubles as floats, and {} is not double", site.ty));
        }
        if let Some(bits) = fill_bits::<f64>(site.fill) {
            let fill = f64::from_bits(bits);
            if f64::from(fill as f32).to_bits() != bits {
                return Err(format!(
                    "the fill value {fill:?} is no float; choose one that is, such as {:?}",
                    f64::from(fill as f32)
                ));
            }
        }
        no_params(params)
    }

    fn stored_type(&self, _ty: ExternalType) -> ExternalType {
        ExternalType::Float
    }

    fn settles(&self, _params: &[u64]) -> bool {
        true
    }

    fn in_zarr(&self) -> bool {
        true
    }

    fn zarr(&self, _params: &[u64], _site: &Site<'_>) -> Option<String> {
        Some(r#"{"id":"astype","encode_dtype":">f4","decode_dtype":">f8"}"#.into())
    }
}

impl ValuesFilter for F32 {
    fn encode(
        &self,
        _params: &[u64],
        site: &Site<'_>,
        elements: &mut Elements,
        tools: &mut Tools,
    ) -> Result<bool> {
        let fill = fill_bits::<f64>(site.fill);
        let fits = |&x: &f64| {
            let narrow = x as f32;
            let back = f64::from(narrow).to_bits();
            // An ordinary number that would come back as the fill value does not fit.
            back == x.to_bits() || (narrow.is_normal() && Some(back) != fill)
        };
        if !elements.typed::<f64>().iter().all(fits) {
            return Ok(false);
        }
        tools.with(|doubles: &mut Elements, _| {
            std::mem::swap(doubles, elements);
            elements.reset(ExternalType::Float, doubles.len());
            let floats = elements.typed_mut::<f32>().iter_mut();
            floats.zip(doubles.typed::<f64>()).for_each(|(to, from)| *to = *from as f32);
        });
        Ok(true)
    }

    fn decode(&self, ty: ExternalType, elements: &mut Elements, tools: &mut Tools) -> Result<()> {
        tools.with(|floats: &mut Elements, _| {
            std::mem::swap(floats, elements);
            elements.reset(ty, floats.len());
            let doubles = elements.typed_mut::<f64>().iter_mut();
            doubles.zip(floats.typed::<f32>()).for_each(|(to, from)| *to = f64::from(*from));
        });
        Ok(())
    }

    fn encode_straight(&self, chunk: &Chunk<'_>, elements: &[u8], out: &mut Vec<u8>) -> bool {
        let (doubles, fill) = (elements.as_chunks::<8>().0, fill_bits::<f64>(chunk.fill));
        match chunk.order {
            ByteOrder::Native => narrow(doubles, f64::from_ne_bytes, fill, out),
            ByteOrder::External => narrow(doubles, f64::from_be_bytes, fill, out),
        }
    }

    fn decode_straight(&self, chunk: &Chunk<'_>, stored: &[u8], out: &mut [u8]) -> bool {
        let (floats, doubles) = (stored.as_chunks::<4>().0, out.as_chunks_mut::<8>().0);
        match chunk.order {
            ByteOrder::Native => widen(floats, f64::to_ne_bytes, doubles),
            ByteOrder::External => widen(floats, f64::to_be_bytes, doubles),
        }
        true
    }
}

/// Appends doubles as big-endian floats; `false`, and nothing is appended, if one of them does not fit. In blocks, and without a
/// branch for each number, so that it is as fast as memory.
fn narrow(
    doubles: &[[u8; 8]],
    read: impl Fn([u8; 8]) -> f64,
    fill: Option<u64>,
    out: &mut Vec<u8>,
) -> bool {
    const BLOCK: usize = 512;
    let start = out.len();
    out.reserve(doubles.len() * 4);
    let (has_fill, fill) = (fill.is_some(), fill.unwrap_or(0));
    let mut floats = [[0; 4]; BLOCK];
    for block in doubles.chunks(BLOCK) {
        let mut all_fit = true;
        for (to, from) in floats.iter_mut().zip(block) {
            let double = read(*from);
            let float = double as f32;
            let back = f64::from(float).to_bits();
            // All exponents but the smallest and the largest are those of normal numbers.
            let is_normal = (float.to_bits() >> 23 & 0xff).wrapping_sub(1) < 0xfe;
            let is_fill = has_fill & (back == fill);
            all_fit &= (back == double.to_bits()) | (is_normal & !is_fill);
            *to = float.to_be_bytes();
        }
        if !all_fit {
            out.truncate(start);
            return false;
        }
        out.extend_from_slice(floats[..block.len()].as_flattened());
    }
    true
}

/// Big-endian floats as doubles.
fn widen(floats: &[[u8; 4]], write: impl Fn(f64) -> [u8; 8], doubles: &mut [[u8; 8]]) {
    for (to, from) in doubles.iter_mut().zip(floats) {
        *to = write(f64::from(f32::from_be_bytes(*from)));
    }
}
