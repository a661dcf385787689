//! f32: doubles stored as floats.

use esker_format::ExternalType;

use super::{Described, Site, ValuesFilter, no_params};
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
}
