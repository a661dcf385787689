//! sz: fields within a bound of error, by interpolation; the codec is in `crate::sz`.

use esker_format::ExternalType;
use esker_format::values::default_fill_bytes;

use super::{Described, PackingFilter, Site};
use crate::bound::{Bound, is_positive, positive};
use crate::elements::Elements;
use crate::error::{CodecError, Result};
use crate::fold::fold;
use crate::reader::Reader;
use crate::real::{Real, fill_bits};
use crate::scratch::Tools;
use crate::sz::{self, Buffers};

const NAME: &str = "sz";
const WHAT: &str = "it takes abs= (the error allowed) or rel= (as a share of the chunk's range)";

pub(crate) struct Sz;

fn bound(params: &[u64]) -> Option<Bound> {
    let real = |bits: u64| Some(f64::from_bits(bits)).filter(|&value| is_positive(value));
    match *params {
        [1, bits] => Some(Bound::Absolute(real(bits)?)),
        [2, bits] => Some(Bound::Relative(real(bits)?)),
        _ => None,
    }
}

impl Described for Sz {
    fn name(&self) -> &'static str {
        NAME
    }

    fn is_lossless(&self, _params: &[u64]) -> bool {
        false
    }

    fn parse(&self, words: &[&str]) -> std::result::Result<Vec<u64>, String> {
        let params = match words {
            [word] => word.split_once('=').and_then(|(key, value)| match key {
                "abs" => Some(vec![1, positive(value)?.to_bits()]),
                "rel" => Some(vec![2, positive(value)?.to_bits()]),
                _ => None,
            }),
            _ => None,
        };
        params.ok_or_else(|| WHAT.into())
    }

    fn show(&self, params: &[u64]) -> String {
        match bound(params) {
            Some(Bound::Absolute(bound)) => format!(",abs={bound:?}"),
            Some(Bound::Relative(share)) => format!(",rel={share:?}"),
            None => format!(",{params:?}"),
        }
    }

    fn check(&self, params: &[u64], site: &Site<'_>) -> std::result::Result<(), String> {
        if !matches!(site.ty, ExternalType::Float | ExternalType::Double) {
            return Err(format!("it packs float and double, not {}; use pco", site.ty));
        }
        bound(params).map(drop).ok_or_else(|| WHAT.into())
    }
}

fn pack<T: Real>(
    bound: Bound,
    site: &Site<'_>,
    values: &[T],
    out: &mut Vec<u8>,
    tools: &mut Tools,
) -> Result<bool> {
    tools.with(|buffers: &mut Buffers<T>, tools| {
        let own = fill_bits::<T>(site.fill);
        let default = fill_bits::<T>(Some(&default_fill_bytes(site.ty)));
        let fills: Vec<u64> = own.into_iter().chain(default).collect();
        buffers.specials.find(values, &fills);
        let bound = bound.resolve(values, &buffers.specials);
        buffers.specials.write::<T>(out, tools)?;
        sz::encode(fold(site.shape), values, &fills, bound, buffers, out);
        Ok(true)
    })
}

fn unpack<T: Real>(
    site: &Site<'_>,
    input: &[u8],
    values: &mut [T],
    tools: &mut Tools,
) -> Result<()> {
    tools.with(|buffers: &mut Buffers<T>, tools| {
        let mut reader = Reader::new(NAME, input);
        buffers.specials.read::<T>(&mut reader, values.len(), tools)?;
        sz::decode(fold(site.shape), &mut reader, values, buffers)?;
        buffers.specials.restore(values);
        Ok(())
    })
}

impl PackingFilter for Sz {
    fn encode(
        &self,
        params: &[u64],
        site: &Site<'_>,
        elements: &Elements,
        out: &mut Vec<u8>,
        tools: &mut Tools,
    ) -> Result<bool> {
        let Some(bound) = bound(params) else { return Err(CodecError::failed(NAME, WHAT)) };
        if elements.len() == 0 {
            return Ok(false);
        }
        match elements.ty() {
            ExternalType::Float => pack::<f32>(bound, site, elements.typed(), out, tools),
            _ => pack::<f64>(bound, site, elements.typed(), out, tools),
        }
    }

    fn decode(
        &self,
        _params: &[u64],
        site: &Site<'_>,
        input: &[u8],
        elements: &mut Elements,
        tools: &mut Tools,
    ) -> Result<()> {
        match elements.ty() {
            ExternalType::Float => unpack::<f32>(site, input, elements.typed_mut(), tools),
            _ => unpack::<f64>(site, input, elements.typed_mut(), tools),
        }
    }
}
